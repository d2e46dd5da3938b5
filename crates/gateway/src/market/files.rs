//! The components of a feed's market: mapping, instruments, replay.

use super::config::{FeedBook, FeedReplay, ReplayKind};
use super::error::MarketError;
use crate::feed::config::Feed;
use crate::history::KnownInstruments;
use fanfare_engine::feed::OpenError;
use fanfare_engine::poll::Waker;
use fanfare_engine::regular;
use fanfare_engine::replay::{FastReplay, Replayer, Service};
use fanfare_fast::Program;
use fanfare_feed::SequenceField;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_fix::session::Version as SessionVersion;
use fanfare_market::{FastMapper, FixMapper, Follower, Instruments, Mapping};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The longest mapping file, table of instruments and password file, in bytes.
const MOST_MAPPING: u64 = 16 << 20;
const MOST_INSTRUMENTS: u64 = 1 << 30;
const MOST_PASSWORD: u64 = 4096;

/// The mappings compiled for the messages of a feed and, if its replay responds in FIX, for those
/// responses.
pub(super) type Mappers = (FastMapper, Option<FixMapper>);

/// Builds the follower of the feed, with this mapping and the instruments known in advance.
/// Instruments in a log keep their numbers.
pub(super) fn follower(
    feed: &Feed,
    (mapper, fix): Mappers,
    source: u16,
    known: &KnownInstruments,
) -> Result<Follower, MarketError> {
    let book = feed.book.clone().unwrap_or_default();
    let config = book.follower(source, feed.replay.as_ref())?;
    let mut table = Instruments::new(book.most_instruments as usize);
    known.define(&feed.channel(), &mut table);
    read_instruments(&book, &mut table)?;
    let follower = Follower::new(config, mapper, table);
    Ok(match fix {
        Some(fix) => follower.with_fix(fix),
        None => follower,
    })
}

/// Reads the instruments that are known in advance, if there is a file of them.
pub(crate) fn read_instruments(
    book: &FeedBook,
    table: &mut Instruments,
) -> Result<(), MarketError> {
    if let Some(file) = &book.instruments {
        let text = text("instruments", file, MOST_INSTRUMENTS)?;
        table.read_file(&file.display().to_string(), &text)?;
    }
    Ok(())
}

/// Compiles the mapping of a feed that is a FIX session, for messages of this version.
pub(crate) fn session_mapper(
    name: &str,
    version: Version,
    source: u16,
) -> Result<FixMapper, MarketError> {
    let mapper = named(name)?.for_fix(&Dictionary::built_in(version), source)?;
    let has_messages = mapper.msg_types().next().is_some();
    match has_messages {
        true => Ok(mapper),
        false => Err(MarketError::NoMessages(name.to_owned())),
    }
}

/// Compiles the mapping of a feed.
pub(super) fn mappers(
    feed: &Feed,
    mapping: &Mapping,
    program: &Arc<Program>,
    source: u16,
) -> Result<Mappers, MarketError> {
    let fast = mapping.for_templates(program, source)?;
    let fix = match &feed.replay {
        Some(replay) if replay.service == ReplayKind::Fix => {
            Some(fix_mapper(mapping, replay, source)?)
        }
        _ => None,
    };
    Ok((fast, fix))
}

/// Reads the mapping that a feed names.
pub(super) fn mapping(feed: &Feed, program: &Program) -> Result<Mapping, MarketError> {
    let name = match feed.mapping.as_deref() {
        Some(name) => name,
        None => Mapping::name_for(program),
    };
    named(name)
}

/// Reads a mapping file, or returns the mapping of this name that is built in.
fn named(name: &str) -> Result<Mapping, MarketError> {
    if name.starts_with("builtin:") {
        return Mapping::built_in(name).ok_or_else(|| MarketError::NoBuiltin(name.to_owned()));
    }
    let text = text("mapping", Path::new(name), MOST_MAPPING)?;
    Ok(Mapping::parse(name, &text)?)
}

/// Compiles the mapping for a replay's responses in FIX: the mapping of the feed, or `builtin:fix`
/// if the feed's has no FIX messages.
fn fix_mapper(
    mapping: &Mapping,
    replay: &FeedReplay,
    source: u16,
) -> Result<FixMapper, MarketError> {
    let version = match replay.source(None).version {
        SessionVersion::Fix40 => Version::Fix40,
        SessionVersion::Fix41 => Version::Fix41,
        SessionVersion::Fix42 => Version::Fix42,
        SessionVersion::Fix43 => Version::Fix43,
        SessionVersion::Fix44 => Version::Fix44,
        SessionVersion::Fixt11 => Version::Fix50Sp2,
    };
    let dictionary = Dictionary::built_in(version);
    if let Ok(mapper) = mapping.for_fix(&dictionary, source)
        && mapper.msg_types().next().is_some()
    {
        return Ok(mapper);
    }
    let standard = Mapping::built_in("builtin:fix");
    let standard = standard.ok_or_else(|| MarketError::NoBuiltin("builtin:fix".to_owned()))?;
    Ok(standard.for_fix(&dictionary, source)?)
}

/// Starts the replay of a feed, which wakes `waker`.
pub(super) fn replayer(
    feed: &Feed,
    replay: &FeedReplay,
    program: &Arc<Program>,
    waker: &Waker,
) -> Result<Replayer, MarketError> {
    let source = replay.source(password(replay.password_file.as_deref())?);
    let service = service(feed, replay, program);
    Replayer::start(source, service, Some(waker.clone())).map_err(MarketError::Replay)
}

/// Returns the service of a feed's replay.
fn service(feed: &Feed, replay: &FeedReplay, program: &Arc<Program>) -> Service {
    match replay.service {
        ReplayKind::Fix => Service::Fix,
        ReplayKind::Fast => Service::Fast(FastReplay {
            options: feed.decoding(),
            number: feed.sequence.clone().unwrap_or(SequenceField::Auto),
            ..FastReplay::new(Arc::clone(program))
        }),
    }
}

/// Reads the first line of a password file, if there is one.
pub(crate) fn password(file: Option<&Path>) -> Result<Option<String>, MarketError> {
    let Some(file) = file else {
        return Ok(None);
    };
    let what = "password";
    let text = text(what, file, MOST_PASSWORD)?;
    let line = text.lines().next().unwrap_or_default();
    // Without one the Logon would have none, and with a separator it would have another field.
    if line.is_empty() || line.contains('\x01') {
        let source = io::Error::other("its first line is empty or has a SOH");
        return Err(cannot_read(what, file, source));
    }
    Ok(Some(line.to_owned()))
}

fn text(what: &'static str, file: &Path, most: u64) -> Result<String, MarketError> {
    let text = regular::read(file, most)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    text.map_err(|source| cannot_read(what, file, source))
}

fn cannot_read(what: &'static str, file: &Path, source: io::Error) -> MarketError {
    let file = file.display().to_string();
    MarketError::Read { what, file, source }
}

/// Reads the files that the feed names, and opens no socket.
pub(crate) fn check(feed: &Feed, program: &Arc<Program>) -> Result<(), MarketError> {
    let mapping = mapping(feed, program)?;
    let none = KnownInstruments::default();
    follower(feed, mappers(feed, &mapping, program, 0)?, 0, &none)?;
    for lines in &feed.snapshot {
        let channel = feed.snapshot_receiver(lines).channel;
        channel.check(program).map_err(OpenError::from)?;
    }
    match &feed.replay {
        Some(replay) => {
            password(replay.password_file.as_deref())?;
            let service = service(feed, replay, program);
            service.check().map_err(MarketError::Replay)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_peers::Scratch;
    use std::error::Error;

    #[test]
    fn a_file_without_a_password_is_refused() {
        let file = Scratch::new("replay.password");
        for (content, expected) in [("secret\r\nmore\n", "secret"), (" a b", " a b")] {
            file.write(content);
            assert_eq!(password(Some(&*file)).unwrap().as_deref(), Some(expected));
        }
        for content in ["", "\nsecret\n", "secret\x0134=9"] {
            file.write(content);
            let error = password(Some(&*file)).unwrap_err();
            let why = error.source().unwrap().to_string();
            assert_eq!(why, "its first line is empty or has a SOH", "{content:?}");
        }
    }
}
