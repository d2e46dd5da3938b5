//! The recordings of two lines (or of one, with its sequence checked), arbitrated.

use super::feed::Feed;
use super::place::lowest;
use super::recording::{Recording, Source};
use super::sink::Sink;
use super::streams;
use super::{Args, Outcome};
use crate::cmd::fast::packets::Flow;
use crate::cmd::fast::packets::{ByteFile, frame_code};
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_feed::{FrameErrorKind, Header, Line};
use std::path::Path;

/// Plays the files as lines. A recording has no time, so the line that is lower in the sequence
/// goes first: no packet waits for long, and a packet in one file is never missing.
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
                let source = Source::open(file, header, &stop)?;
                Ok((source, file.display().to_string()))
            };
            files.iter().map(open).collect::<Result<Vec<_>>>()?
        }
    };
    let mut lines = Vec::new();
    let mut flow = Flow::Continue(());
    // A line alone needs no number to be ordered.
    let is_asked = sources.len() > 1;
    for ((source, name), line) in sources.into_iter().zip([Line::A, Line::B]) {
        let mut recording = Recording::new(source, name, line);
        if flow.is_continue() {
            flow = advance(&mut recording, &mut feed, is_asked)?;
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
        flow = feed.receive(recording.datagram(0))?;
        if flow.is_continue() {
            flow = advance(recording, &mut feed, is_asked)?;
        }
    }
    let (sink, arbiter) = feed.finish()?;
    Ok(Outcome::arbitrated(sink, arbiter))
}

/// Advances a line to its next packet. A packet of no bytes is an error with others behind it.
fn advance(line: &mut Recording, feed: &mut Feed, is_asked: bool) -> Result<Flow> {
    loop {
        if line.must_read() {
            feed.sink().flush()?;
        }
        let Some(error) = line.advance(feed.channel(), is_asked)? else {
            return Ok(Flow::Continue(()));
        };
        let text = format!("{} in `{}`", error.kind, line.name);
        let code = frame_code(error.kind);
        let flow = feed.sink().error(code, error.offset, &text)?;
        if error.kind != FrameErrorKind::ZeroBlock || flow.is_break() {
            return Ok(flow);
        }
    }
}
