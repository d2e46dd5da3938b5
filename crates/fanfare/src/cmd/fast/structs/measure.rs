//! Decoding into generated structs and encoding from them, measured. This file is also part of the
//! program that is built for templates whose structs the binary does not have: it uses nothing but
//! the codec and the standard library.

use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{CodecError, Options, TemplateError};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measures the structs of a feed; nanoseconds of all messages.
pub(super) struct Of<F> {
    decoder: TypedDecoder<F>,
    encoder: TypedEncoder,
    /// Each message in structs of its own.
    messages: Vec<F>,
}

impl<F> Of<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed,
{
    pub(super) fn new(options: Options) -> Result<Self, TemplateError> {
        Ok(Self {
            decoder: TypedDecoder::new(options)?,
            encoder: TypedEncoder::new::<F>(options)?,
            messages: Vec::new(),
        })
    }

    /// One pass over all packets.
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

    /// One pass that encodes all messages, so many packets at a time; only the encoding is timed.
    /// Whether the bytes are the same, too.
    pub(super) fn encode(
        &mut self,
        packets: &[Vec<u8>],
        chunk: usize,
        keeps: bool,
    ) -> Result<(f64, bool), CodecError> {
        self.decoder.reset();
        self.encoder.reset();
        let (mut out, mut timed, mut same) = (Vec::new(), Duration::ZERO, true);
        for chunk in packets.chunks(chunk.max(1)) {
            let ends = self.keep(chunk, keeps)?;
            out.clear();
            let (start, mut at) = (Instant::now(), 0);
            for end in ends {
                match keeps {
                    true => self.encoder.reset_template(),
                    false => self.encoder.reset(),
                }
                for messages in self.messages.get(at..end).unwrap_or_default() {
                    if let Some(message) = messages.decoded() {
                        self.encoder.encode(&message, &mut out)?;
                    }
                }
                at = end;
            }
            timed += start.elapsed();
            same &= chunk.iter().flatten().eq(&out);
        }
        Ok((timed.as_nanos() as f64, same))
    }

    /// Decodes packets into structs that are kept; the number of messages up to the end of each.
    fn keep(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<Vec<usize>, CodecError> {
        self.messages.clear();
        let mut ends = Vec::with_capacity(packets.len());
        for packet in packets {
            if !keeps {
                self.decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let (len, _) = self.decoder.decode(rest)?;
                rest = rest.get(len..).unwrap_or_default();
                self.messages.push(self.decoder.messages().clone());
            }
            ends.push(self.messages.len());
        }
        Ok(ends)
    }
}
