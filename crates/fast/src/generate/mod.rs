//! Generators of test feeds: packets of encoded messages, the same ones every time.
//!
//! [`Generator::simple`] makes orders for [`crate::builtin::SIMPLE`], [`Generator::complex`]
//! market data for [`crate::builtin::COMPLEX`]; other templates do if they have the same names.
//! Each packet starts with empty dictionaries.

mod complex;
mod simple;

use std::sync::Arc;

use crate::encode::Encoder;
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, Program};
use crate::source::{Scalar, Source};

pub use complex::ComplexOptions;

/// Bytes of a packet of orders, unless told otherwise.
pub const PACKET_SIZE: usize = 1024;

/// Makes the packets of a feed, one after the other.
#[derive(Debug)]
pub struct Generator {
    encoder: Encoder,
    feed: Feed,
    /// Messages made, and to be made; then comes Done.
    next: u64,
    count: u64,
    packet_size: Option<usize>,
    message: Message,
    packet: Vec<u8>,
    /// A message that did not fit into the packet before.
    waiting: bool,
}

#[derive(Debug)]
enum Feed {
    Simple,
    Complex(ComplexOptions),
}

impl Generator {
    /// Orders: `count` messages, Quote, New, Change and Remove in turn, then Done. Packets hold
    /// as many messages as `packet_size` bytes allow (one at least).
    #[must_use]
    pub fn simple(program: impl Into<Arc<Program>>, count: u64, packet_size: usize) -> Self {
        Self::new(program.into(), Feed::Simple, count, Some(packet_size))
    }

    /// Market data: `count` messages, each hundredth a QuoteRequest, the others MarketData, then
    /// Done in a packet of its own. One message a packet, or as many as `packet_size` bytes
    /// allow.
    #[must_use]
    pub fn complex(
        program: impl Into<Arc<Program>>,
        count: u64,
        packet_size: Option<usize>,
        options: ComplexOptions,
    ) -> Self {
        Self::new(program.into(), Feed::Complex(options), count, packet_size)
    }

    fn new(program: Arc<Program>, feed: Feed, count: u64, packet_size: Option<usize>) -> Self {
        let encoder = Encoder::new(program);
        let (message, packet) = (Message::new(), Vec::new());
        Self {
            encoder,
            feed,
            next: 0,
            count,
            packet_size,
            message,
            packet,
            waiting: false,
        }
    }

    /// Messages in the packets so far, Done among them.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.next
    }

    /// The next packet, or `None` behind the one with Done.
    ///
    /// # Errors
    /// A [`CodecError`] if the templates do not have the fields, or do not take the values:
    /// D9 for a missing template, D6 for a mandatory field that the feed does not have.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>, CodecError> {
        self.packet.clear();
        self.encoder.reset();
        while self.next <= self.count {
            if !std::mem::take(&mut self.waiting) {
                self.make()?;
            }
            let len = self.packet.len();
            self.encoder.encode(&self.message, &mut self.packet)?;
            let full = self.packet_size.is_none_or(|size| self.packet.len() > size);
            let alone = self.next == self.count && matches!(self.feed, Feed::Complex(_));
            if len > 0 && (full || alone) {
                self.packet.truncate(len);
                self.waiting = true;
                break;
            }
            self.next += 1;
        }
        Ok(if self.packet.is_empty() {
            None
        } else {
            Some(&self.packet)
        })
    }

    /// Makes the message of number `self.next`.
    fn make(&mut self) -> Result<(), CodecError> {
        let program = Arc::clone(self.encoder.program());
        let number = self.next;
        let done = number == self.count;
        let mut fill = |name: &str, source: &mut dyn Source| {
            let template = program
                .by_name(name)
                .ok_or(CodecError::new(ErrorCode::D9, 0))?;
            self.message.fill(&program, template, source)
        };
        match &self.feed {
            _ if done => fill("Done", &mut Nothing),
            Feed::Simple => {
                let mut order = simple::Order::new(number);
                fill(order.template(), &mut order)
            }
            Feed::Complex(options) => {
                let mut data = complex::Data::new(number, *options);
                fill(data.template(), &mut data)
            }
        }
    }
}

/// Done has nothing but its constant.
struct Nothing;

impl Source for Nothing {
    fn scalar(&mut self, _: &Field) -> Scalar<'_> {
        Scalar::Absent
    }
}
