//! Decodes packets, converts and writes what they hold, and measures that.

use super::{Args, SAMPLE, nanos};
use crate::cmd::dds::departures::Watch;
use crate::cmd::dds::input::{self, Losses, Packets, Source};
use crate::cmd::dds::statistics::Series;
use crate::print::note;
use anyhow::{Context, Result, bail};
use fanfare_bus::distribute::{Departures, Publisher};
use fanfare_bus::fast::{Converted, Converter, Mapping};
use fanfare_bus::{Error as BusError, ReturnCode};
use fanfare_engine::stop::Stop;
use fanfare_fast::{Decoder, Ignore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(super) struct Run {
    decoder: Decoder,
    /// Decodes a second time into nothing, to tell decoding from converting.
    bare: Decoder,
    /// Messages decoded, to take turns by.
    turn: u64,
    pub(super) converter: Converter,
    pub(super) publisher: Option<Publisher>,
    stop: Stop,
    last_template: Option<u32>,
    echo: bool,
    /// Samples that may be under way at once; 0: no limit.
    pub(super) in_flight: u64,
    echo_lost: u64,
    /// How long samples waited for the echoes of others.
    waited: Duration,
    patience: Duration,
    watch: Watch,
    /// Of subscribers, before the Done token: departures after it are in order.
    pub(super) departures: Departures,
    pub(super) decode: Series,
    pub(super) convert: BTreeMap<u32, Series>,
    pub(super) messages: u64,
    /// Packets that are no messages end a file, but not what anybody on a network may disturb.
    live: bool,
    pub(super) bad_packets: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Run {
    pub(super) fn new(
        args: &Args,
        mapping: &Arc<Mapping>,
        publisher: Option<Publisher>,
        stop: Stop,
    ) -> Self {
        let program = mapping.program();
        let convert = mapping.types().map(|t| (t.index, Series::default()));
        Self {
            decoder: Decoder::new(Arc::clone(program)),
            bare: Decoder::new(Arc::clone(program)),
            turn: 0,
            converter: Converter::new(Arc::clone(mapping), SAMPLE),
            publisher,
            stop,
            last_template: program.by_name("Done").map(|t| t.index()),
            echo: !args.feed.no_echo,
            in_flight: match args.in_flight {
                _ if args.feed.no_echo => 0,
                Some(samples) => samples,
                // What is lost is not waited for.
                None if args.file.is_none() && args.feed.is_best_effort() => 0,
                None => 1,
            },
            echo_lost: 0,
            waited: Duration::ZERO,
            patience: Duration::from_secs(args.patience),
            watch: Watch::new("readers"),
            departures: Departures::default(),
            decode: Series::default(),
            convert: convert.collect(),
            messages: 0,
            live: args.file.is_none(),
            bad_packets: 0,
            first: None,
            last: None,
        }
    }

    /// Reads all input.
    pub(super) fn read(&mut self, args: &Args) -> Result<Losses> {
        let stop = self.stop.clone();
        if let Some(file) = &args.file {
            return input::file(file, args.header, &stop, self).map(|()| Losses::default());
        }
        let program = Arc::clone(self.decoder.program());
        let source = Source {
            groups: &args.multicast,
            interface: args.receive_interface,
            idle: args.idle.map(Duration::from_secs),
            backlog: usize::from(args.backlog) << 20,
        };
        input::multicast(&source, &program, &stop, self)
    }

    /// How long it took from the first packet on.
    pub(super) fn times(&self, last_echo: Option<Instant>) -> Times {
        Times {
            published: span(self.first, self.last, None),
            waited: self.waited,
            elapsed: span(self.first, self.last, last_echo),
        }
    }

    /// Decodes one message, and measures that; its length.
    fn decode(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.publisher.is_none() {
            return self.decode_bare(bytes);
        }
        // The first to see a message finds the caches cold, the second finds them warm: they take
        // turns, by the parity of the counter's bits, in step with no pattern of the feed.
        self.turn += 1;
        let bare_first = self.turn.count_ones().is_multiple_of(2);
        if bare_first {
            self.decode_bare(bytes)?;
        }
        let len = self.decode_and_convert(bytes)?;
        if !bare_first {
            self.decode_bare(bytes)?;
        }
        Ok(len)
    }

    /// Publishes the samples of the message decoded last. The Done message is no data: the token
    /// stands for it.
    fn deliver(&mut self) -> Result<()> {
        if self.publisher.is_none() {
            self.messages += 1;
        } else if !self.is_over() {
            self.messages += 1;
            self.publish()?;
        }
        Ok(())
    }

    /// Decodes a message into nothing, measuring.
    fn decode_bare(&mut self, bytes: &[u8]) -> Result<usize> {
        let begin = Instant::now();
        let len = self.bare.decode(bytes, &mut Ignore)?;
        self.decode.record(nanos(begin.elapsed()));
        Ok(len)
    }

    /// Decodes a message and makes its samples, measuring: they are made a second time to be
    /// written, so that no write is measured here.
    fn decode_and_convert(&mut self, bytes: &[u8]) -> Result<usize> {
        let begin = Instant::now();
        let len = self.converter.decode(&mut self.decoder, bytes)?;
        // An error comes again when they are made to be written.
        let _ = self.converter.samples(|sample| {
            std::hint::black_box(sample.cdr);
        });
        let converted = begin.elapsed();
        let template = self.converter.template();
        if let Some(series) = template.and_then(|t| self.convert.get_mut(&t)) {
            series.record(nanos(converted));
        }
        Ok(len)
    }

    /// Whether the message decoded last says that the feed is over.
    fn is_over(&self) -> bool {
        self.last_template.is_some() && self.converter.template() == self.last_template
    }

    /// Counts a packet that is not, or not wholly, made of messages; tells of the first.
    fn bad_packet(&mut self, error: &anyhow::Error) {
        self.bad_packets += 1;
        if self.bad_packets == 1 {
            note!("fanfare: a packet is no good, the rest of it is left out: {error:#}");
        }
    }

    fn publish(&mut self) -> Result<()> {
        let (Some(publisher), in_flight) = (&mut self.publisher, self.in_flight) else {
            return Ok(());
        };
        let (lost, stop, watch) = (&mut self.echo_lost, &self.stop, &mut self.watch);
        let waited = &mut self.waited;
        let patience = self.patience;
        let mut result = Ok(());
        self.converter.samples(|sample| {
            if result.is_ok() {
                *waited += wait_for_room(publisher, in_flight, lost, stop);
                result = patiently(publisher, &sample, patience, stop, watch);
            }
        })?;
        watch.look(publisher.departures());
        result
    }

    /// The Done token, and the echoes still out; whether all came.
    pub(super) fn finish(&mut self) -> Result<bool> {
        self.last = Some(Instant::now());
        let Some(publisher) = &mut self.publisher else {
            return Ok(true);
        };
        self.departures = publisher.departures();
        self.watch.tell(self.departures);
        note!("Writing Done token");
        let acknowledged = publisher.finish(Duration::from_secs(10))?;
        if !acknowledged {
            note!("fanfare: a subscriber has not acknowledged everything within 10 s");
        }
        match publisher.lost_subscribers() {
            (0, 0) => {}
            (slow, dead) => {
                note!("fanfare: {slow} subscribers stopped reading and were cut off, {dead} died");
            }
        }
        if publisher.without_topic() > 0 {
            note!(
                "fanfare: {} samples of securities without a topic were not published",
                publisher.without_topic()
            );
        }
        if publisher.refused() > 0 {
            note!(
                "fanfare: {} samples of more keys than a topic may have were not published: \
                 --instances",
                publisher.refused()
            );
        }
        for failure in publisher.failures() {
            note!("fanfare: echoes: {failure}");
        }
        let complete = acknowledged && publisher.refused() == 0;
        if !self.echo {
            return Ok(complete);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while publisher.echoed() < publisher.written() && Instant::now() < end {
            thread::park_timeout(Duration::from_millis(10));
        }
        Ok(complete && publisher.echoed() >= publisher.written())
    }
}

/// How long it took from the first packet on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Until the last sample was written.
    pub(super) published: Duration,
    /// How long of that samples waited for echoes.
    pub(super) waited: Duration,
    /// Until the last echo, if there were any.
    pub(super) elapsed: Duration,
}

/// From the first packet to the end of writing, or to the last echo: not to the end of waiting for
/// those that did not come.
fn span(first: Option<Instant>, written: Option<Instant>, echo: Option<Instant>) -> Duration {
    let ends = written.max(echo).zip(first);
    ends.map_or(Duration::ZERO, |(end, first)| {
        end.saturating_duration_since(first)
    })
}

/// Publishes a sample, waiting for as long as a reader's history is full: until it reads, is gone,
/// or has tried our patience.
fn patiently(
    publisher: &mut Publisher,
    sample: &Converted<'_>,
    patience: Duration,
    stop: &Stop,
    watch: &mut Watch,
) -> Result<()> {
    let mut since = None;
    loop {
        match publisher.publish(sample) {
            Ok(_) => return Ok(()),
            Err(BusError::Dds {
                code: ReturnCode::Timeout,
                ..
            }) if !stop.is_raised() => {}
            Err(error) => return Err(error.into()),
        }
        watch.look(publisher.departures());
        let since = since.get_or_insert_with(|| {
            note!("fanfare: a subscriber does not read, and all wait for it");
            Instant::now()
        });
        if since.elapsed() >= patience {
            bail!(
                "a subscriber is alive but has not read for {} s: with --qos last-value or \
                 best-effort nobody waits for it",
                patience.as_secs()
            );
        }
    }
}

/// Waits while too many samples are under way. An echo that does not come within a second is
/// given up. How long it waited.
fn wait_for_room(publisher: &Publisher, in_flight: u64, lost: &mut u64, stop: &Stop) -> Duration {
    let under_way = || publisher.written() - publisher.echoed();
    if in_flight == 0 || under_way() < in_flight + *lost {
        return Duration::ZERO;
    }
    let begin = Instant::now();
    while under_way() >= in_flight + *lost && !stop.is_raised() {
        thread::park_timeout(Duration::from_millis(100));
        if begin.elapsed() > Duration::from_secs(1) {
            *lost = under_way();
        }
    }
    begin.elapsed()
}

impl Packets for Run {
    fn packet(&mut self, bytes: &[u8], mut skip: u32) -> Result<bool> {
        self.first.get_or_insert_with(Instant::now);
        self.decoder.reset();
        self.bare.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let decoded = self.decode(rest);
            let decoded = decoded
                .with_context(|| format!("message {}, at byte {at} of its packet", self.messages));
            let len = match decoded {
                Ok(len) => len,
                Err(error) if self.live => {
                    self.bad_packet(&error);
                    break;
                }
                Err(error) => return Err(error),
            };
            if skip == 0 {
                self.deliver()?;
            }
            skip = skip.saturating_sub(1);
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(!self.is_over() && !self.stop.is_raised())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_ends_with_what_came_last_and_not_with_waiting() {
        let begin = Instant::now();
        let at = |ms| Some(begin + Duration::from_millis(ms));
        let span = |first, written, echo| span(first, written, echo).as_millis();
        assert_eq!(span(at(10), at(50), at(70)), 60);
        assert_eq!(
            span(at(10), at(50), at(40)),
            40,
            "the last ones did not come"
        );
        assert_eq!(span(at(10), at(50), None), 40);
        assert_eq!(span(None, at(50), None), 0, "nothing was published");
    }
}
