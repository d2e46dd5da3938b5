//! Generated structs in benchmarks: those of the builtin templates are part of the binary, those of
//! other templates are built on demand.

mod built;
pub(super) mod measure;

use anyhow::{Result, anyhow};
pub(super) use built::Built;
use fanfare_fast::builtin::{COMPLEX, SIMPLE, SPECTRA, complex, simple, spectra};
use fanfare_fast::typed::{Feed, Typed};
use fanfare_fast::{CodecError, Options};
use measure::Of;

/// Measures decoding into structs and encoding from them, in nanoseconds of all messages.
pub(super) trait Structs {
    /// Decodes all packets, once.
    fn decode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<f64>;

    /// Encodes all messages, once; only the encoding is timed. Also returns whether the bytes are
    /// the same.
    fn encode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<(f64, bool)>;
}

/// Returns the structs of a template document, if the binary has them.
pub(super) fn find(xml: &str, options: Options) -> Result<Option<Box<dyn Structs>>> {
    Ok(match xml {
        SIMPLE => Some(Box::new(Of::<simple::Messages>::new(options)?)),
        COMPLEX => Some(Box::new(Of::<complex::Messages>::new(options)?)),
        SPECTRA => Some(Box::new(Of::<spectra::Messages>::new(options)?)),
        _ => None,
    })
}

impl<F> Structs for Of<F>
where
    F: Feed + Clone,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    fn decode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<f64> {
        Self::decode(self, packets, keeps).map_err(failed)
    }

    fn encode(&mut self, packets: &[Vec<u8>], keeps: bool) -> Result<(f64, bool)> {
        Self::encode(self, packets, keeps).map_err(failed)
    }
}

fn failed(error: CodecError) -> anyhow::Error {
    anyhow!("{error}")
}
