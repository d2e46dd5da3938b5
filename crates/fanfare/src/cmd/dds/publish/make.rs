//! Makes the samples of a feed's messages, and measures the time of that.

use super::{Args, SAMPLE, nanos};
use crate::cmd::fast::packets::Flow;
use crate::print::note;
use anyhow::{Error, Result, anyhow};
use fanfare_dds::fast::{Converted, Converter, Mapping};
use fanfare_engine::ring::WriteError;
use fanfare_engine::stop::Stop;
use fanfare_feed::channel::{BadPacket, Delivered, Event};
use fanfare_instruments::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The consumer of a feed. It decodes each message once and passes each of its samples on as it is
/// made.
pub(super) struct Maker {
    pub(super) converter: Converter,
    stop: Stop,
    /// The template of the message that ends the feed.
    last_template: Option<u32>,
    /// Whether to make no samples: decoding alone is measured.
    is_empty: bool,
    /// The longest sample that the carrier takes.
    longest: usize,
    pub(super) decode: Histogram,
    /// The times of decoding and converting, by template.
    pub(super) convert: BTreeMap<u32, Histogram>,
    pub(super) messages: u64,
    /// Whether the input is live: a malformed packet, or a message with a sample that is too long,
    /// ends a file, but not a feed that others on the network may disturb.
    live: bool,
    pub(super) bad_packets: u64,
    /// Messages with a sample above the limit of a sample, of the queue, or of the ring in shared
    /// memory.
    pub(super) too_long: u64,
    /// The time of the first message.
    pub(super) first: Option<Instant>,
}

impl Maker {
    pub(super) fn new(args: &Args, mapping: &Arc<Mapping>, longest: usize, stop: Stop) -> Self {
        let last = mapping.program().by_name("Done");
        let convert = mapping.types().map(|t| (t.index, Histogram::new()));
        Self {
            converter: Converter::new(Arc::clone(mapping), SAMPLE),
            stop,
            last_template: last.map(|template| template.index()),
            is_empty: args.empty,
            longest,
            decode: Histogram::new(),
            convert: convert.collect(),
            messages: 0,
            live: args.file.is_none(),
            bad_packets: 0,
            too_long: 0,
            first: None,
        }
    }

    /// Takes one event, and passes its samples to `out`.
    pub(super) fn take(
        &mut self,
        event: Event<'_>,
        out: impl FnMut(&Converted<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        self.first.get_or_insert_with(Instant::now);
        match event {
            Event::Message(message) => self.message(message, out),
            Event::Bad(bad) => self.bad_packet(&bad),
            Event::Gap(_) | Event::Recover(_) | Event::Reset { .. } => Ok(Flow::Continue(())),
        }
    }

    fn message(
        &mut self,
        message: Delivered<'_>,
        mut out: impl FnMut(&Converted<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        self.decode.record(message.decoding);
        let template = message.record.template_index();
        let is_over = self.last_template.is_some() && template == self.last_template;
        let mut flow = Ok(Flow::Continue(()));
        // The Done message is not data: the token represents it.
        if self.is_empty || !is_over {
            self.messages += 1;
        }
        if !self.is_empty && !is_over {
            let (begin, mut going_on) = (Instant::now(), Duration::ZERO);
            let max = self.longest;
            let converted = self.converter.samples(message.record, |sample| {
                if matches!(flow, Ok(Flow::Continue(()))) {
                    let begin = Instant::now();
                    flow = match sample.cdr.len() {
                        len if len > max => Err(WriteError::TooLong { len, max }.into()),
                        _ => out(&sample),
                    };
                    going_on += begin.elapsed();
                }
            });
            let converting = nanos(begin.elapsed().saturating_sub(going_on));
            flow = match (flow, converted) {
                (Ok(Flow::Continue(())), Err(error)) => self.leave_out(error.into()),
                (Err(error), _) if is_too_long(&error) => self.leave_out(error),
                (flow, _) => flow,
            };
            if let Some(series) = template.and_then(|t| self.convert.get_mut(&t)) {
                series.record(message.decoding + converting);
            }
        }
        match flow {
            Ok(_) if is_over || self.stop.is_raised() => Ok(Flow::Break(())),
            flow => flow,
        }
    }

    /// Counts a message with a sample that is too long, and prints the first one. Earlier samples
    /// of a split message have been passed on.
    fn leave_out(&mut self, error: Error) -> Result<Flow> {
        let error = error.context(format!("message {}", self.messages));
        if !self.live {
            return Err(error);
        }
        self.too_long += 1;
        if self.too_long == 1 {
            note!("fanfare: a sample is too long, the rest of its message is left out: {error:#}");
        }
        Ok(Flow::Continue(()))
    }

    /// Counts a packet that cannot be decoded completely, and prints the first one.
    fn bad_packet(&mut self, bad: &BadPacket) -> Result<Flow> {
        let error = anyhow!("{}", bad.fault).context(format!(
            "message {}, in the packet at byte {}",
            self.messages + 1,
            bad.offset
        ));
        if !self.live {
            return Err(error);
        }
        self.bad_packets += 1;
        if self.bad_packets == 1 {
            note!("fanfare: a packet cannot be decoded, the rest of it is left out: {error:#}");
        }
        Ok(Flow::Continue(()))
    }
}

/// Returns whether a sample was longer than the queue to the thread that writes, or the ring in
/// shared memory, takes.
fn is_too_long(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::TooLong { .. }))
}
