//! The recordings of two lines (or of one, with its sequence checked), arbitrated.

use super::feed::Feed;
use super::place::{Place, lowest};
use super::sink::Sink;
use super::streams;
use super::{Args, Outcome};
use crate::cmd::fast::packets::Flow;
use crate::cmd::fast::packets::{ByteFile, PacketError, PacketFile, frame_code};
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_feed::channel::Datagram;
use fanfare_feed::{FrameErrorKind, Header, Line};
use std::path::Path;

/// Plays the files as lines. A recording has no time, so the line that stands lower in the
/// sequence goes first: nothing waits for long, and nothing is missing that one file has.
pub(crate) fn run(args: &Args, files: &[&Path], sink: Sink) -> Result<Outcome> {
    let stop = Stop::on_interrupt()?;
    let header = args.framing.of_file();
    let mut feed = Feed::new(args, sink, files.len(), 0)?;
    let sources = match header {
        Header::None => {
            let mut streams = Vec::new();
            let mut of_packets = true;
            for file in files {
                let mut stream = ByteFile::open(file, &stop)?;
                let name = file.display().to_string();
                let window = stream.window();
                let (_, bytes) = window.with_context(|| format!("cannot read `{name}`"))?;
                of_packets &= streams::is_of_packets(args, &mut feed, bytes);
                streams.push((stream, name));
            }
            if !of_packets {
                let (sink, _) = feed.finish()?;
                return streams::run(args, streams, sink, &stop);
            }
            let packets = streams.into_iter();
            packets
                .map(|(file, name)| (Source::Stream(file), name))
                .collect()
        }
        _ => {
            let open = |file: &&Path| {
                let packets = PacketFile::open(file, header, &stop)?;
                Ok((Source::Packets(packets), file.display().to_string()))
            };
            files.iter().map(open).collect::<Result<Vec<_>>>()?
        }
    };
    let mut lines = Vec::new();
    let mut flow = Flow::Continue(());
    let asks = sources.len() > 1;
    for ((source, name), line) in sources.into_iter().zip([Line::A, Line::B]) {
        let mut recording = Recording {
            source,
            name,
            line,
            asks,
            packet: Vec::new(),
            offset: 0,
            place: Place::default(),
        };
        if flow.is_continue() {
            flow = recording.advance(&mut feed)?;
        }
        lines.push(recording);
    }
    while flow.is_continue() && !stop.is_raised() {
        let places = lines.iter().map(Recording::in_hand);
        let Some(index) = lowest(places) else {
            break;
        };
        let Some(recording) = lines.get_mut(index) else {
            break;
        };
        flow = feed.receive(recording.datagram())?;
        if flow.is_continue() {
            flow = recording.advance(&mut feed)?;
        }
    }
    let (sink, arbiter) = feed.finish()?;
    Ok(Outcome::arbitrated(sink, arbiter))
}

struct Recording {
    source: Source,
    name: String,
    line: Line,
    /// Whether the numbers of the packet in hand are asked for: one line alone has its turn anyhow.
    asks: bool,
    /// The packet in hand; empty at the end.
    packet: Vec<u8>,
    offset: u64,
    place: Place,
}

enum Source {
    Packets(PacketFile),
    /// Each packet begins with a Reset message.
    Stream(ByteFile),
}

impl Source {
    /// Whether the next packet must be read first, which may take as long as a pipe likes.
    fn must_read(&self) -> bool {
        match self {
            Self::Packets(file) => file.must_read(),
            Self::Stream(file) => file.must_wait(),
        }
    }
}

impl Recording {
    /// Where the packet in hand stands, if there is one.
    fn in_hand(&self) -> Option<&Place> {
        (!self.packet.is_empty()).then_some(&self.place)
    }

    /// The packet in hand. A recording has no time.
    const fn datagram(&self) -> Datagram<'_> {
        Datagram {
            line: self.line,
            now: 0,
            received: 0,
            offset: self.offset,
            bytes: self.packet.as_slice(),
        }
    }

    /// Takes the next packet in hand.
    fn advance(&mut self, feed: &mut Feed) -> Result<Flow> {
        self.packet.clear();
        let cannot = || format!("cannot read `{}`", self.name);
        if self.source.must_read() {
            feed.sink().flush()?;
        }
        match &mut self.source {
            Source::Stream(file) => {
                let (offset, window) = file.window().with_context(cannot)?;
                self.offset = offset;
                let (len, _) = feed.channel().cut(self.line, window);
                let packet = window.get(..len).unwrap_or_default();
                self.packet.extend_from_slice(packet);
                file.consume(len);
            }
            Source::Packets(file) => loop {
                match file.next() {
                    Ok(Some(packet)) => {
                        self.offset = packet.offset;
                        self.packet.extend_from_slice(packet.bytes);
                    }
                    Ok(None) => {}
                    Err(PacketError::Io(error)) => return Err(error).with_context(cannot),
                    Err(PacketError::Frame(error)) => {
                        let text = format!("{} in `{}`", error.kind, self.name);
                        let code = frame_code(error.kind);
                        let flow = feed.sink().error(code, error.offset, &text)?;
                        if error.kind == FrameErrorKind::ZeroBlock && flow.is_continue() {
                            continue;
                        }
                        return Ok(flow);
                    }
                }
                break;
            },
        }
        if self.asks {
            self.place.go_on(feed.channel().numbers(self.datagram()));
        }
        Ok(Flow::Continue(()))
    }
}
