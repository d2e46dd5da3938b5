//! Generated structs on the bench: those of the builtin templates are part of the binary.

use anyhow::{Result, anyhow};
use fanfare_fast::builtin::{COMPLEX, SIMPLE, SPECTRA, complex, simple, spectra};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{CodecError, Options};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measures decoding into structs and encoding from them; nanoseconds of all messages.
pub(super) trait Structs {
    /// One pass over all packets.
    fn decode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<f64>;

    /// One pass that encodes all messages, so many packets at a time; only the encoding is timed.
    /// Whether the bytes are the same, too.
    fn encode(&mut self, packets: &[Vec<u8>], chunk: usize, keeps: bool) -> Result<(f64, bool)>;
}

/// The structs of a template document, if the binary has any.
pub(super) fn find(xml: &str, options: Options) -> Result<Option<Box<dyn Structs>>> {
    Ok(match xml {
        SIMPLE => Some(Box::new(Of::<simple::Messages>::new(options)?)),
        COMPLEX => Some(Box::new(Of::<complex::Messages>::new(options)?)),
        SPECTRA => Some(Box::new(Of::<spectra::Messages>::new(options)?)),
        _ => None,
    })
}

struct Of<F> {
    decoder: TypedDecoder<F>,
    encoder: TypedEncoder,
    /// Each message in structs of its own.
    messages: Vec<F>,
}

impl<F: Feed> Of<F> {
    fn new(options: Options) -> Result<Self> {
        Ok(Self {
            decoder: TypedDecoder::new(options)?,
            encoder: TypedEncoder::new::<F>(options)?,
            messages: Vec::new(),
        })
    }
}

impl<F> Structs for Of<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed,
{
    fn decode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<f64> {
        let decoder = &mut self.decoder;
        decoder.reset();
        let start = Instant::now();
        for packet in packets {
            if !keeps {
                decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let (len, decoded) = decoder.decode(rest).map_err(failed)?;
                black_box(decoded);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    fn encode(&mut self, packets: &[Vec<u8>], chunk: usize, keeps: bool) -> Result<(f64, bool)> {
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
                    let decoded = messages.decoded();
                    let message = decoded.ok_or_else(|| anyhow!("a message of no template"))?;
                    self.encoder.encode(&message, &mut out).map_err(failed)?;
                }
                at = end;
            }
            timed += start.elapsed();
            same &= chunk.iter().flatten().eq(&out);
        }
        Ok((timed.as_nanos() as f64, same))
    }
}

impl<F: Feed + Clone> Of<F> {
    /// Decodes packets into structs that are kept; the number of messages up to the end of each.
    fn keep(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<Vec<usize>> {
        self.messages.clear();
        let mut ends = Vec::with_capacity(packets.len());
        for packet in packets {
            if !keeps {
                self.decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let (len, _) = self.decoder.decode(rest).map_err(failed)?;
                rest = rest.get(len..).unwrap_or_default();
                self.messages.push(self.decoder.messages().clone());
            }
            ends.push(self.messages.len());
        }
        Ok(ends)
    }
}

fn failed(error: CodecError) -> anyhow::Error {
    anyhow!("{error}")
}
