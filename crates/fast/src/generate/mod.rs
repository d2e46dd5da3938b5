//! Generators of test feeds: packets of encoded messages, the same ones every time.
//!
//! [`Generator::simple`] makes orders for [`crate::builtin::SIMPLE`], [`Generator::complex`] market
//! data for [`crate::builtin::COMPLEX`], [`Generator::spectra`] market data in the shapes of a real
//! exchange's for [`crate::builtin::SPECTRA`]. Other templates can be used if they have the same
//! names. Each packet starts with empty dictionaries.

mod complex;
mod simple;
mod spectra;

use std::sync::Arc;

use crate::encode::Encoder;
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, Program};
use crate::source::{Scalar, Source};
use crate::visitor::Visitor as _;
use spectra::Spectra;

pub use complex::ComplexOptions;
pub use spectra::SpectraOptions;

/// The default length of a packet of orders in bytes.
pub const PACKET_SIZE: usize = 1024;

/// A generator of the packets of a feed, one after the other.
#[derive(Debug)]
pub struct Generator {
    encoder: Encoder,
    feed: Feed,
    /// The number of messages made, and the number to be made. Done comes then, if `all` counts it.
    next: u64,
    count: u64,
    all: u64,
    packet_size: Option<usize>,
    message: Message,
    /// The Reset before each message of spectra.
    reset: Message,
    packet: Vec<u8>,
    /// Whether there is a message that did not fit into the packet before.
    waiting: bool,
}

#[derive(Debug)]
enum Feed {
    Simple,
    Complex(ComplexOptions),
    Spectra(Box<Spectra>),
}

impl Generator {
    /// Returns a generator of orders: `count` messages, Quote, New, Change and Remove in turn, then
    /// Done. A packet holds as many messages as `packet_size` bytes allow, but at least one.
    #[must_use]
    pub fn simple(program: impl Into<Arc<Program>>, count: u64, packet_size: usize) -> Self {
        Self::new(program.into(), Feed::Simple, count, Some(packet_size))
    }

    /// Returns a generator of market data: `count` messages, of which each hundredth is a
    /// QuoteRequest and the others are MarketData, then Done in a packet of its own. A packet holds
    /// one message, or as many as `packet_size` bytes allow.
    #[must_use]
    pub fn complex(
        program: impl Into<Arc<Program>>,
        count: u64,
        packet_size: Option<usize>,
        options: ComplexOptions,
    ) -> Self {
        Self::new(program.into(), Feed::Complex(options), count, packet_size)
    }

    /// Returns a generator of market data in the shapes of MOEX SPECTRA's: `count` messages, then
    /// Done if the templates have it. Each of them comes after a Reset, which is not counted. A
    /// packet holds one message, or as many as `packet_size` bytes allow. The messages are a
    /// market's increments, or the snapshots that agree with the increments of the same seed: one
    /// of each security in turn, the session's state, and a SequenceReset.
    #[must_use]
    pub fn spectra(
        program: impl Into<Arc<Program>>,
        count: u64,
        packet_size: Option<usize>,
        options: SpectraOptions,
    ) -> Self {
        let feed = Feed::Spectra(Box::new(Spectra::new(options)));
        Self::new(program.into(), feed, count, packet_size)
    }

    fn new(program: Arc<Program>, feed: Feed, count: u64, packet_size: Option<usize>) -> Self {
        let done = match feed {
            Feed::Simple | Feed::Complex(_) => true,
            Feed::Spectra(_) => program.by_name("Done").is_some(),
        };
        let mut reset = Message::new();
        if let Some(template) = program.by_name("Reset") {
            reset.begin_message(template);
        }
        let encoder = Encoder::new(program);
        let (message, packet) = (Message::new(), Vec::new());
        Self {
            encoder,
            feed,
            next: 0,
            count,
            all: count.saturating_add(done.into()),
            packet_size,
            message,
            reset,
            packet,
            waiting: false,
        }
    }

    /// Returns the number of messages in the packets so far, with Done, and without the Resets of
    /// spectra.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.next
    }

    /// Returns true if the last packet was made.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.next >= self.all
    }

    /// Returns the next packet, or `None` after the last one.
    ///
    /// # Errors
    /// A [`CodecError`] if the templates do not have the fields, or do not take the values: D9 for
    /// a missing template, D6 for a mandatory field that the feed does not have.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>, CodecError> {
        self.packet.clear();
        self.encoder.reset();
        while self.next < self.all {
            if !std::mem::take(&mut self.waiting) {
                self.make()?;
            }
            let len = self.packet.len();
            if matches!(self.feed, Feed::Spectra(_)) {
                self.encoder.encode(&self.reset, &mut self.packet)?;
            }
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
        match &mut self.feed {
            _ if done => fill("Done", &mut Nothing),
            Feed::Simple => {
                let mut order = simple::Order::new(number);
                fill(order.template(), &mut order)
            }
            Feed::Complex(options) => {
                let mut data = complex::Data::new(number, *options);
                fill(data.template(), &mut data)
            }
            Feed::Spectra(spectra) => {
                spectra.advance();
                fill(spectra.template(), spectra.as_mut())
            }
        }
    }
}

/// The source of Done, which has nothing but its constant.
struct Nothing;

impl Source for Nothing {
    fn scalar(&mut self, _: &Field) -> Scalar<'_> {
        Scalar::Absent
    }
}
