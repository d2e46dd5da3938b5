//! The News(B) of the service, and the fields that it adds to W and X.

use super::bodies::Writer;
use super::class::Class;
use super::feeds::Feeds;
use super::request::{BOOK_CHECKSUM, FEED};
use super::view::Seen;
use crate::fanout::hole::{Hole, NEWS};
use fanfare_feed::recovery::{Lack, State};
use fanfare_fix::codec::{EncodeError, FieldWriter};
use fanfare_market::book::checksum_of_levels;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::to_fix::WriteError;
use fanfare_market::{Event, InstrumentId, Kind, Side};
use std::io::{Cursor, Write};

/// TradingSessionID(336): day.
pub(crate) const DAY: &[u8] = b"1";

/// SecurityTradingStatus(326): unknown or invalid.
const UNKNOWN_STATUS: u64 = 20;

/// TradSesStatus(340): unknown. FIX.4.2 does not have it.
const UNKNOWN_SESSION: u64 = 0;

/// The most bytes of a Text(58).
const TEXT: usize = 256;

/// Writes the fields of a News(B) about the state of an instrument.
pub(crate) fn state(
    writer: &Writer,
    directory: &Directory,
    instrument: InstrumentId,
    state: State,
    out: &mut FieldWriter<'_>,
) {
    head(writer, "Instrument state", directory, instrument, out);
    let mut text = Cursor::new([0; TEXT]);
    // The longest line fits.
    let _ = match state {
        State::Live => write!(text, "state=live"),
        State::Stale => write!(text, "state=stale"),
        State::Closed => write!(text, "state=closed"),
        State::Recovering(Lack::Snapshot) => write!(text, "state=recovering lacks=snapshot"),
        State::Recovering(Lack::SnapshotAfterFault) => {
            write!(text, "state=recovering lacks=snapshot after=fault")
        }
        State::Recovering(Lack::Changes(first, last)) => {
            write!(
                text,
                "state=recovering lacks=changes first={first} last={last}"
            )
        }
        State::Recovering(Lack::Certainty(_)) => write!(text, "state=recovering lacks=certainty"),
    };
    line(&text, out);
}

/// Writes the fields of a News(B) about skipped entries of a subscription.
pub(crate) fn missing(
    writer: &Writer,
    directory: &Directory,
    instrument: InstrumentId,
    request: &[u8],
    hole: &Hole,
    out: &mut FieldWriter<'_>,
) {
    head(writer, "Messages missing", directory, instrument, out);
    let mut text = Cursor::new([0; TEXT]);
    let _ = write!(
        text,
        "missing={} request={} count={}",
        hole.why.word(),
        request.escape_ascii(),
        hole.count,
    );
    if hole.first != 0 {
        let _ = write!(text, " first={} last={}", hole.first, hole.last);
    }
    line(&text, out);
}

/// Writes Headline(148) and the instrument.
fn head(
    writer: &Writer,
    headline: &str,
    directory: &Directory,
    instrument: InstrumentId,
    out: &mut FieldWriter<'_>,
) {
    out.str(148, headline);
    let group = writer
        .dictionary
        .body(NEWS)
        .and_then(|body| body.group(146));
    let (Some(group), Some(known)) = (group, directory.instrument(instrument)) else {
        return;
    };
    out.u64(146, 1);
    let name = &known.definition.name;
    // FIX.4.2 has RelatdSym(46).
    let symbol = if group.has(46) { 46 } else { 55 };
    match name.symbol {
        b"" => out.field(symbol, b"[N/A]"),
        own => out.field(symbol, own),
    };
    if group.has(48) && name.id != fanfare_market::instruments::SecurityId::None {
        let mut id = Cursor::new([0; TEXT]);
        let _ = write!(id, "{}", name.id);
        out.field(48, written(&id));
        let source = name.source.as_bytes();
        if !source.is_empty() && group.has(22) {
            out.field(22, source);
        }
    }
}

/// Writes the body of f: the trading status of an instrument, which is unknown where the version
/// does not have it.
pub(crate) fn status(
    writer: &Writer,
    directory: &Directory,
    request: &[u8],
    event: &Event,
    out: &mut FieldWriter<'_>,
) -> Result<(), WriteError> {
    let event = or_unknown(writer, 326, event, UNKNOWN_STATUS);
    writer.to_fix.status(directory, request, &event, out)
}

/// Writes the body of h: TradingSessionStatus of the day, of the feed that is named if there are
/// several. The status is unknown where the version does not have it.
pub(crate) fn session_status(
    writer: &Writer,
    feeds: &Feeds,
    request: &[u8],
    event: &Event,
    out: &mut FieldWriter<'_>,
) -> Result<(), WriteError> {
    put_feed(feeds.of_source(event.source), out);
    let event = or_unknown(writer, 340, event, UNKNOWN_SESSION);
    writer.to_fix.session_status(request, DAY, &event, out)
}

/// Returns a status, with `unknown` in place of a value that the version does not have, so that no
/// client keeps the status before it.
fn or_unknown(writer: &Writer, tag: u32, event: &Event, unknown: u64) -> Event {
    let mut text = Cursor::new([0; TEXT]);
    let _ = write!(text, "{}", event.id);
    let id = match writer.dictionary.fits(tag, written(&text)) {
        true => event.id,
        false => unknown,
    };
    Event { id, ..*event }
}

fn line(text: &Cursor<[u8; TEXT]>, out: &mut FieldWriter<'_>) {
    out.u64(33, 1).field(58, written(text));
}

fn written(text: &Cursor<[u8; TEXT]>) -> &[u8] {
    let end = text.position() as usize;
    text.get_ref().get(..end).unwrap_or_default()
}

/// Returns the checksum of the state last sent to a class. For a class of orders, `seen` is the
/// book as of its last update.
pub(crate) fn checksum(class: &Class, seen: &Seen) -> u64 {
    match (&seen.book, class.spec.by_order) {
        (Some(book), true) => book.checksum_of(|side| class.spec.entries.has(side.entry())),
        _ => checksum_of_levels(class.levels(Side::Bid), class.levels(Side::Offer)),
    }
}

/// Writes a checksum, if there is one. Groups follow it, because some parsers take a user-defined
/// field behind a group for one of its last entry.
pub(crate) fn put_checksum(checksum: Option<u64>, out: &mut FieldWriter<'_>) {
    let Some(checksum) = checksum else {
        return;
    };
    let mut text = Cursor::new([0; TEXT]);
    let _ = write!(text, "{checksum:016X}");
    out.field(BOOK_CHECKSUM, written(&text));
}

/// Writes the name of a feed, if there is one, in front of groups as [`put_checksum`] does.
pub(crate) fn put_feed(feed: Option<&[u8]>, out: &mut FieldWriter<'_>) {
    if let Some(feed) = feed {
        out.field(FEED, feed);
    }
}

/// Writes to `out` the events that `write` can write, each on its own, because versions lack
/// entries that others have.
pub(crate) fn sayable(
    events: &[Event],
    out: &mut Vec<Event>,
    write: impl Fn(&[Event], &mut FieldWriter<'_>) -> Result<(), WriteError>,
) {
    let mut room = [0; 1024];
    let can = |event: &&Event| {
        let mut writer = FieldWriter::new(&mut room);
        let done = write(std::slice::from_ref(*event), &mut writer);
        let fits = !matches!(
            writer.written(),
            Err(EncodeError::Separator { .. } | EncodeError::Empty { .. })
        );
        event.kind == Kind::Clear || done.is_ok() && fits
    };
    out.clear();
    out.extend(events.iter().filter(can));
}
