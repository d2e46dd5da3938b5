//! A feed from files: changes of one line or two, and snapshots of any number of lines.

use super::{Args, From, Watch, channel};
use crate::cmd::fast::decode;
use crate::cmd::fast::decode::place::lowest;
use crate::cmd::fast::decode::recording::{Recording, Source};
use crate::usage::misuse;
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_fast::program::{FieldId, FieldKind};
use fanfare_fast::{Cell, Decoder, Program, Record};
use fanfare_feed::Line;
use fanfare_feed::channel::Channel;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The time between two packets of a recording, which has none, ns.
const STEP: u64 = 1_000_000;

/// LastMsgSeqNumProcessed(369).
const LAST_PROCESSED: u32 = 369;

pub(super) fn run(
    args: &Args,
    decoding: &decode::Args,
    program: &Arc<Program>,
    watch: &mut Watch,
) -> Result<()> {
    let stop = Stop::on_interrupt()?;
    let mut changes = Recordings::open(decoding, program, &decoding.file, &stop)?;
    let snapshots: Vec<PathBuf> = args.snapshot.iter().map(PathBuf::from).collect();
    let mut snapshots = match snapshots.is_empty() {
        true => None,
        false => Some(Snapshots {
            lines: Recordings::open(decoding, program, &snapshots, &stop)?,
            due: Due::new(decoding, program),
        }),
    };
    let mut now = 0;
    while !stop.is_raised() {
        let Some(number) = changes.play_one(now, From::Changes, watch)? else {
            break;
        };
        now += STEP;
        while let Some(snapshots) = &mut snapshots
            && snapshots.are_due(number)
            && !stop.is_raised()
        {
            snapshots.lines.play_one(now, From::Snapshots, watch)?;
        }
    }
    changes.finish(now, From::Changes, watch)?;
    if let Some(mut snapshots) = snapshots {
        while !stop.is_raised()
            && snapshots
                .lines
                .play_one(now, From::Snapshots, watch)?
                .is_some()
        {}
        snapshots.lines.finish(now, From::Snapshots, watch)?;
    }
    Ok(())
}

/// The lines of snapshots.
struct Snapshots {
    lines: Recordings,
    due: Due,
}

impl Snapshots {
    /// Returns whether the next snapshot comes after the message with this number.
    fn are_due(&mut self, number: Option<u32>) -> bool {
        let Some(packet) = self.lines.next_packet() else {
            return false;
        };
        match (self.due.of(packet), number) {
            (Some(due), Some(number)) => (due.wrapping_sub(number) as i32) <= 0,
            _ => true,
        }
    }
}

/// A reader of the number of the channel's message after which a snapshot comes.
struct Due {
    decoder: Decoder,
    fields: Vec<FieldId>,
    record: Record,
    /// The number of the snapshot before, for one without a number.
    last: Option<u32>,
}

impl Due {
    fn new(decoding: &decode::Args, program: &Arc<Program>) -> Self {
        let templates = program.templates().iter();
        let fields = templates.filter_map(|template| {
            let mut fields = program.template_fields(template).iter().copied();
            fields.find(|id| {
                let field = program.field(*id);
                field.tag() == Some(LAST_PROCESSED) && matches!(field.kind(), FieldKind::Int(_))
            })
        });
        Self {
            fields: fields.collect(),
            decoder: decode::decoder(decoding, program),
            record: Record::new(),
            last: None,
        }
    }

    /// Returns the number of a packet. A packet without one has the number of the packet before.
    fn of(&mut self, packet: &[u8]) -> Option<u32> {
        let mut rest = packet;
        self.decoder.reset();
        while !rest.is_empty() {
            let Ok(len) = self.decoder.decode_record(rest, &mut self.record) else {
                break;
            };
            rest = rest.get(len..).unwrap_or_default();
            let program = self.decoder.program();
            let found = self
                .fields
                .iter()
                .find_map(|id| match self.record.get(program, *id, 0) {
                    Cell::Unsigned(last) => Some(last as u32),
                    _ => None,
                });
            self.last = found.or(self.last);
        }
        self.last
    }
}

/// The recordings of one channel's lines.
struct Recordings {
    channel: Channel,
    lines: Vec<Recording>,
}

impl Recordings {
    fn open(
        decoding: &decode::Args,
        program: &Arc<Program>,
        files: &[PathBuf],
        stop: &Stop,
    ) -> Result<Self> {
        if files.is_empty() {
            misuse!("--file is missing: it names a file of changes");
        }
        let header = decoding.framing.of_file();
        let mut channel = channel(decoding, program, files.len())?;
        let mut lines = Vec::new();
        for (file, line) in files.iter().zip([Line::A, Line::B]) {
            let source = Source::open(file, header, stop)?;
            let mut recording = Recording::new(source, file.display().to_string(), line);
            advance(&mut recording, &mut channel)?;
            lines.push(recording);
        }
        Ok(Self { channel, lines })
    }

    /// Returns the packet that comes next by the order of the files.
    fn next_packet(&self) -> Option<&[u8]> {
        let next = lowest(self.lines.iter().map(Recording::in_hand))?;
        self.lines.get(next).map(Recording::packet)
    }

    /// Plays one packet. Returns its number, or `None` at the end.
    fn play_one(&mut self, now: u64, from: From, watch: &mut Watch) -> Result<Option<Option<u32>>> {
        let next = lowest(self.lines.iter().map(Recording::in_hand));
        let Some(line) = next.and_then(|next| self.lines.get_mut(next)) else {
            return Ok(None);
        };
        let mut events = self.channel.receive(line.datagram(now));
        while let Some(event) = events.next() {
            watch.take(from, now, &event)?;
        }
        let mut events = self.channel.handle_timeout(now);
        while let Some(event) = events.next() {
            watch.take(from, now, &event)?;
        }
        let number = line.number();
        advance(line, &mut self.channel)?;
        Ok(Some(number))
    }

    /// Delivers everything that is held back.
    fn finish(&mut self, now: u64, from: From, watch: &mut Watch) -> io::Result<()> {
        let mut events = self.channel.finish();
        while let Some(event) = events.next() {
            watch.take(from, now, &event)?;
        }
        Ok(())
    }
}

/// Advances to the next packet. After a wrong header the start of the next packet is unknown.
fn advance(line: &mut Recording, channel: &mut Channel) -> Result<()> {
    match line.advance(channel, true)? {
        None => Ok(()),
        Some(error) => Err(error).with_context(|| format!("cannot read `{}`", line.name)),
    }
}
