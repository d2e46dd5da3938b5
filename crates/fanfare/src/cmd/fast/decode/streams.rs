//! The recordings of one or two lines as continuous streams: no packets, and dictionaries that are
//! kept from message to message.

use super::feed::Feed;
use super::place::{Place, lowest};
use super::sequence::Numbered;
use super::sink::{Next, Sink};
use super::{Args, Outcome, decoder};
use crate::cmd::fast::packets::ByteFile;
use crate::cmd::fast::packets::Flow;
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_fast::program::RESET_ID;
use fanfare_fast::{Decoder, Message};
use fanfare_feed::{Line, PacketNumbers, Verdict};
use std::io;
use std::path::Path;

/// The longest datagram, bytes.
const DATAGRAM: usize = 65_507;

/// Returns whether a stream consists of datagrams: each begins with a Reset, so that the next Reset
/// is not far from the first.
pub(super) fn is_of_packets(args: &Args, feed: &mut Feed, stream: &[u8]) -> bool {
    let mut decoder = decoder(args, feed.sink().program());
    let mut message = Message::new();
    let mut begins_with_reset = |bytes: &[u8]| {
        let is_whole = decoder.decode(bytes, &mut message).is_ok();
        let view = message.view(decoder.program());
        is_whole && view.is_some_and(|view| view.template().id() == Some(RESET_ID))
    };
    if !begins_with_reset(stream) {
        return false;
    }
    let (packet, _) = feed.channel().cut(Line::A, stream);
    packet <= DATAGRAM && stream.get(packet..).is_some_and(begins_with_reset)
}

/// Plays one file, whose numbers are checked. A hole is a gap at once: no other line can fill it.
/// Messages that were delivered before are omitted.
pub(super) fn one(args: &Args, file: &Path, sink: Sink) -> Result<Outcome> {
    let stop = Stop::on_interrupt()?;
    let stream = ByteFile::open(file, &stop)?;
    run(
        args,
        vec![(stream, file.display().to_string())],
        sink,
        &stop,
    )
}

/// Plays the files as lines, each with a decoder of its own; the message that is lower in the
/// sequence goes first.
pub(super) fn run(
    args: &Args,
    files: Vec<(ByteFile, String)>,
    sink: Sink,
    stop: &Stop,
) -> Result<Outcome> {
    let mut feed = Numbered::new(args, sink, files.len())?;
    let is_alone = files.len() == 1;
    let mut streams = Vec::new();
    let mut flow = Flow::Continue(());
    for (index, (file, name)) in files.into_iter().enumerate() {
        let counts = &mut feed.sink().counts;
        counts.packets += 1;
        if let Some(packets) = counts.line_packets.get_mut(index) {
            *packets = 1;
        }
        let decoder = decoder(args, feed.sink().program());
        let mut stream = Stream::new(file, name, decoder, is_alone);
        if flow.is_continue() {
            flow = stream.advance(&mut feed)?;
        }
        streams.push(stream);
    }
    // A number that is doubtful until another message confirms it, and its message.
    let mut doubtful = None;
    // Before the first number, all messages of one line are delivered.
    let mut leader = None;
    while flow.is_continue() && !stop.is_raised() && !feed.sink().is_full() {
        let places = streams.iter().map(Stream::in_hand);
        let Some(index) = lowest(places) else {
            break;
        };
        let (Some(stream), Some(line)) = (streams.get_mut(index), Line::new(index)) else {
            break;
        };
        let is_leader = *leader.get_or_insert(index) == index;
        stream.deliver(&mut feed, line, is_leader, &mut doubtful)?;
        if !feed.sink().is_full() {
            flow = stream.advance(&mut feed)?;
        }
    }
    let (sink, arbiter) = feed.finish();
    Ok(Outcome::arbitrated(sink, arbiter))
}

/// One of the files.
struct Stream {
    file: ByteFile,
    name: String,
    decoder: Decoder,
    /// Whether there is a current message; false at the end.
    is_in_hand: bool,
    /// The current message, its numbers, and its bytes, which identify it on another line.
    message: Message,
    bytes: Vec<u8>,
    numbers: PacketNumbers,
    place: Place,
    /// Whether it is the only stream.
    is_alone: bool,
    /// Whether the last numbered message was delivered, if there was one: the messages without a
    /// number behind it follow it.
    was_delivered: Option<bool>,
}

impl Stream {
    fn new(file: ByteFile, name: String, decoder: Decoder, is_alone: bool) -> Self {
        Self {
            file,
            name,
            decoder,
            is_in_hand: false,
            message: Message::new(),
            bytes: Vec::new(),
            numbers: PacketNumbers::default(),
            place: Place::default(),
            is_alone,
            was_delivered: None,
        }
    }

    /// Returns the place of the current message, if there is one.
    fn in_hand(&self) -> Option<&Place> {
        self.is_in_hand.then_some(&self.place)
    }

    /// Delivers the current message if it is new.
    fn deliver(
        &mut self,
        feed: &mut Numbered,
        line: Line,
        is_leader: bool,
        doubtful: &mut Option<(u32, Message)>,
    ) -> io::Result<()> {
        let Some(sequence) = self.numbers.first else {
            return match self.is_alone || self.was_delivered.unwrap_or(is_leader) {
                true => feed.sink().deliver(&self.message),
                false => Ok(()),
            };
        };
        let mut was_delivered = false;
        let message = &self.message;
        let verdict = feed.turn(line, self.numbers, &self.bytes, |sink, number| {
            if number == sequence {
                was_delivered = true;
                return sink.deliver(message);
            }
            match doubtful.take_if(|(kept, _)| *kept == number) {
                Some((_, kept)) => sink.deliver(&kept),
                None => Ok(()),
            }
        })?;
        match verdict {
            // No other line can confirm the number.
            Verdict::Suspect if self.is_alone => feed.sink().deliver(message)?,
            Verdict::Suspect => *doubtful = Some((sequence, self.message.clone())),
            _ => {}
        }
        self.was_delivered = Some(was_delivered);
        Ok(())
    }

    /// Advances to the next message. A decoding error ends the file: all messages behind it depend
    /// on it.
    fn advance(&mut self, feed: &mut Numbered) -> Result<Flow> {
        self.is_in_hand = false;
        let cannot = || format!("cannot read `{}`", self.name);
        let sink = feed.sink();
        loop {
            let (offset, bytes, is_whole) = self.file.ready().with_context(cannot)?;
            let next = match (bytes, is_whole) {
                ([], true) => return Ok(Flow::Continue(())),
                ([], false) => Next::Partial,
                _ => {
                    let place = (bytes, offset, is_whole);
                    sink.take(&mut self.decoder, &mut self.message, place)?
                }
            };
            match next {
                Next::Message(len) => {
                    self.is_in_hand = true;
                    self.numbers = feed.numbers_of(&self.message);
                    if !self.is_alone {
                        self.bytes.clear();
                        let bytes = bytes.get(..len).unwrap_or_default();
                        self.bytes.extend_from_slice(bytes);
                        self.place.go_on(self.numbers);
                    }
                    self.file.consume(len);
                    return Ok(Flow::Continue(()));
                }
                Next::Error => {
                    if !self.is_alone {
                        let text = format_args!("`{}` is read no further", self.name);
                        sink.output().remark(text);
                    }
                    return Ok(sink.after_error());
                }
                Next::Partial => {
                    sink.flush()?;
                    if !self.file.read_more().with_context(cannot)? {
                        return Ok(Flow::Continue(()));
                    }
                }
            }
        }
    }
}
