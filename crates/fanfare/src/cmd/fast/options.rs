//! Options that several commands share, and their values.

use crate::input::{Input, is_standard};
use crate::print::note;
use crate::usage::misuse;
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_fast::template::limits::MAX_BYTES;
use fanfare_fast::{Options, Program, TemplateError};
use fanfare_feed::{Header, Preamble, SequenceField};
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// The help of templates: a file, or one of the three sets that are part of the product.
pub(crate) const TEMPLATES_HELP: &str =
    "Template file (FAST 1.1 XML), or builtin:simple, builtin:complex or builtin:spectra";

/// Returns the text of a template file or builtin set.
fn template_text(templates: &str) -> Result<String, LoadError> {
    if let Some(text) = fanfare_fast::builtin::find(templates) {
        return Ok(text.to_owned());
    }
    let bytes = template_bytes(templates).map_err(LoadError::File)?;
    fanfare_fast::template::decode(&bytes).map_err(|error| LoadError::Templates {
        file: templates.to_owned(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        error,
    })
}

fn template_bytes(templates: &str) -> Result<Vec<u8>> {
    if templates.starts_with("builtin:") {
        bail!(
            "unknown templates `{templates}`: expected builtin:simple, builtin:complex or \
             builtin:spectra"
        );
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(templates)
        .and_then(|file| file.take(2 * MAX_BYTES as u64 + 3).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read templates `{templates}`"))?;
    // A document in UTF-16, with its byte order mark, may have twice as many bytes.
    if bytes.len() > 2 * MAX_BYTES + 2 {
        bail!("templates `{templates}` have more than {MAX_BYTES} bytes");
    }
    Ok(bytes)
}

/// The reason why templates could not be used: the file, or its contents.
#[derive(Debug)]
pub(crate) enum LoadError {
    File(anyhow::Error),
    Templates {
        file: String,
        text: String,
        error: TemplateError,
    },
}

impl From<LoadError> for anyhow::Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::File(error) => error,
            LoadError::Templates { file, error, .. } => Self::new(error).context(file),
        }
    }
}

/// The handling of parts of a template document that the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The document is refused.
    Strict,
    /// Such parts are listed and omitted.
    Lenient,
}

impl Reading {
    pub(crate) const fn new(lenient: bool) -> Self {
        if lenient { Self::Lenient } else { Self::Strict }
    }
}

pub(crate) fn load(templates: &str, reading: Reading) -> Result<Arc<Program>, LoadError> {
    load_with_text(templates, reading).map(|(program, _)| program)
}

/// Loads the program, and returns it with its text, since a pipe can be read only once.
pub(crate) fn load_with_text(
    templates: &str,
    reading: Reading,
) -> Result<(Arc<Program>, String), LoadError> {
    let text = template_text(templates)?;
    let read = Program::parse_lenient(&text).and_then(|(program, deviations)| {
        if reading == Reading::Strict
            && let Some(first) = deviations.first().first()
        {
            let message = format!("{} (--lenient leaves it out)", first.message);
            return Err(TemplateError {
                message,
                ..first.clone()
            });
        }
        for deviation in deviations.first() {
            note!("{templates}: left out: {deviation}");
        }
        let more = deviations.count() - deviations.first().len();
        if more > 0 {
            note!("{templates}: left out: {more} more");
        }
        Ok(program)
    });
    match read {
        Ok(program) => Ok((Arc::new(program), text)),
        Err(error) => Err(LoadError::Templates {
            file: templates.to_owned(),
            text,
            error,
        }),
    }
}

/// `--lenient` of the commands that neither decode nor encode.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct TemplateReading {
    /// List and omit attributes, elements and text of templates that the schema of FAST does not
    /// have.
    #[arg(long)]
    lenient: bool,
}

impl TemplateReading {
    pub(crate) const fn reading(self) -> Reading {
        Reading::new(self.lenient)
    }
}

/// The framing of the bytes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Framing {
    /// Length header in front of each packet: none, u8, u16le, u16be, u32le, u32be or fast.
    /// Default: u32le for a file, none for datagrams.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Option<Header>,
    /// Sequence number in front of each packet's messages: none, seq32le, seq32be or cme.
    #[arg(long, value_name = "PREAMBLE", default_value = "none")]
    pub(crate) preamble: Preamble,
    /// Keep previous values from packet to packet. Packets behind one with an error, and behind a
    /// gap in the numbers (--preamble; --sequence, unless none), are left out, up to one that
    /// begins with a Reset. Without a length header previous values are always kept: behind a gap
    /// they may be wrong.
    #[arg(long)]
    pub(crate) keep_dictionary: bool,
}

impl Framing {
    /// Returns the header of a file.
    pub(crate) fn of_file(&self) -> Header {
        self.header.unwrap_or(Header::U32Le)
    }
}

/// Refuses a preamble without a header: a stream without packets has none.
pub(crate) fn check_preamble(header: Header, preamble: Preamble) -> Result<()> {
    if header == Header::None && !preamble.is_empty() {
        misuse!("--preamble needs packets: --header none has none");
    }
    Ok(())
}

/// The strictness of the codec.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Strictness {
    /// Accept deviations from the specification that exchanges are known to send: overlong
    /// integers, presence maps and strings, unused presence bits, exponents beyond 63, broken
    /// UTF-8. List and omit attributes, elements and text of templates that the schema does not
    /// have.
    #[arg(long)]
    pub(crate) lenient: bool,
}

impl Strictness {
    pub(crate) const fn reading(self) -> Reading {
        Reading::new(self.lenient)
    }

    pub(crate) fn options(self) -> Options {
        Options::with_strict(!self.lenient)
    }
}

/// The source of the sequence numbers of messages, if no preamble has them.
#[derive(Debug, Clone)]
pub(crate) enum Sequence {
    /// No sequence numbers.
    None,
    /// A field of the messages.
    Field(SequenceField),
}

impl FromStr for Sequence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            _ => text.parse().map(Self::Field),
        }
    }
}

/// Parses `ADDRESS:PORT`, or `ADDRESS` with port 13014.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddrV4, String> {
    match text.trim().parse::<Ipv4Addr>() {
        Ok(address) => Ok(SocketAddrV4::new(address, 13014)),
        Err(_) => address_and_port(text),
    }
}

/// Parses `ADDRESS:PORT`.
pub(crate) fn address_and_port(text: &str) -> Result<SocketAddrV4, String> {
    match text.trim().parse::<SocketAddrV4>() {
        Ok(address) if address.port() > 0 => Ok(address),
        Ok(_) => Err(format!("`{text}`: the port must be between 1 and 65535")),
        Err(_) => Err(format!(
            "`{text}`: expected ADDRESS:PORT, such as 239.1.1.1:13014"
        )),
    }
}

/// Returns the path in the file system of an input.
pub(crate) fn named(path: &Path) -> &Path {
    match is_standard(path) {
        true => Path::new("/dev/stdin"),
        false => path,
    }
}

/// Opens an input: a file, or stdin for `-`.
pub(crate) fn open(path: &Path, stop: &Stop) -> Result<Input> {
    Input::open(path, stop).with_context(|| format!("cannot open `{}`", path.display()))
}
