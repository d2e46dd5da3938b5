//! Measures decoding into generated structs and encoding from them. This file is also part of the
//! program that is built for templates whose structs the binary does not have: it depends on the
//! codec and the standard library only.

use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{CodecError, Options, TemplateError};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measures the structs of a feed, in nanoseconds of all messages.
pub(super) struct Of<F> {
    decoder: TypedDecoder<F>,
    encoder: TypedEncoder<F>,
    /// The messages, each in structs of its own.
    messages: Vec<F>,
}

impl<F> Of<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    pub(super) fn new(options: Options) -> Result<Self, TemplateError> {
        Ok(Self {
            decoder: TypedDecoder::new(options)?,
            encoder: TypedEncoder::<F>::new(options)?,
            messages: Vec::new(),
        })
    }

    /// Decodes all packets, once.
    pub(super) fn decode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<f64, CodecError> {
        let decoder = &mut self.decoder;
        decoder.reset();
        let start = Instant::now();
        for packet in packets {
            if !keeps {
                decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let (len, decoded) = decoder.decode(rest)?;
                black_box(decoded);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    /// Encodes all messages, once ([`encode`]).
    pub(super) fn encode(
        &mut self,
        packets: &[Vec<u8>],
        keeps: bool,
    ) -> Result<(f64, bool), CodecError> {
        encode(self, packets, keeps)
    }
}

impl<F> Held for Of<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    fn reset_decoder(&mut self) {
        self.decoder.reset();
    }

    fn decode(&mut self, bytes: &[u8], place: usize) -> Result<usize, CodecError> {
        let (len, _) = self.decoder.decode(bytes)?;
        match self.messages.get_mut(place) {
            Some(messages) => messages.clone_from(self.decoder.messages()),
            None => self.messages.push(self.decoder.messages().clone()),
        }
        Ok(len)
    }

    fn reset_encoder(&mut self, keeps: bool) {
        match keeps {
            true => self.encoder.reset_template(),
            false => self.encoder.reset(),
        }
    }

    #[inline(always)]
    fn encode(&mut self, place: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        if let Some(message) = self.messages.get(place).and_then(Feed::decoded) {
            self.encoder.encode(&message, out)?;
        }
        Ok(())
    }
}

/// The number of messages that are decoded before they are encoded: few enough to stay in the
/// cache.
const BATCH: usize = 64;

/// A holder of decoded messages, each in a place, until they are encoded.
pub(crate) trait Held {
    fn reset_decoder(&mut self);

    /// Decodes a message. Returns its length.
    fn decode(&mut self, bytes: &[u8], place: usize) -> Result<usize, CodecError>;

    /// Resets the encoder as at the start of a packet.
    fn reset_encoder(&mut self, keeps: bool);

    fn encode(&mut self, place: usize, out: &mut Vec<u8>) -> Result<(), CodecError>;
}

/// Encodes all messages, once. Returns the nanoseconds of the encoding alone, and whether the bytes
/// are the same.
pub(crate) fn encode<H: Held>(
    held: &mut H,
    packets: &[Vec<u8>],
    keeps: bool,
) -> Result<(f64, bool), CodecError> {
    held.reset_decoder();
    held.reset_encoder(false);
    let mut batch = Batch::default();
    for packet in packets {
        if !keeps {
            held.reset_decoder();
        }
        let (mut rest, mut is_first) = (&packet[..], true);
        while !rest.is_empty() {
            let len = held.decode(rest, batch.begins.len())?;
            batch.begins.push(is_first);
            is_first = false;
            let (message, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            batch.expected.extend_from_slice(message);
            rest = behind;
            if batch.begins.len() == BATCH {
                batch.encode(held, keeps)?;
            }
        }
    }
    batch.encode(held, keeps)?;
    Ok((batch.timed.as_nanos() as f64, !batch.differs))
}

/// Messages that are decoded, and then encoded.
#[derive(Default)]
struct Batch {
    /// For each message, whether it is the first one of a packet.
    begins: Vec<bool>,
    expected: Vec<u8>,
    out: Vec<u8>,
    timed: Duration,
    differs: bool,
}

impl Batch {
    #[inline(never)]
    fn encode<H: Held>(&mut self, held: &mut H, keeps: bool) -> Result<(), CodecError> {
        self.out.clear();
        let start = Instant::now();
        for (place, begins) in self.begins.iter().enumerate() {
            if *begins {
                held.reset_encoder(keeps);
            }
            held.encode(place, &mut self.out)?;
        }
        self.timed += start.elapsed();
        self.differs |= self.out != self.expected;
        self.begins.clear();
        self.expected.clear();
        Ok(())
    }
}
