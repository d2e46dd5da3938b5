//! Reads a feed, and writes its samples.

use super::Args;
use super::make::Maker;
use crate::cmd::dds::input::{self, Losses, SampleRing, Source};
use crate::cmd::dds::options::TransportArg;
use crate::cmd::fast::packets::{Flow, PacketFile};
use crate::plural::counted;
use crate::print::note;
use anyhow::{Result, bail};
use fanfare_dds::distribute::{Departures, Publisher};
use fanfare_dds::fast::{Converted, Mapping};
use fanfare_dds::{Error as DdsError, ReturnCode};
use fanfare_engine::stop::Stop;
use fanfare_fast::Decoder;
use fanfare_feed::channel::Event;
use fanfare_instruments::dds::DepartureWatch;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A run: one half decodes messages and makes samples, the other writes them.
pub(super) struct Run {
    pub(super) maker: Maker,
    pub(super) writer: Writer,
}

/// Writes samples, and waits for their echoes.
pub(super) struct Writer {
    mapping: Arc<Mapping>,
    pub(super) publisher: Option<Publisher>,
    stop: Stop,
    echo: bool,
    /// The limit of samples in flight; 0: no limit.
    pub(super) in_flight: u64,
    unechoed: Unechoed,
    /// The time that samples waited for the echoes of others.
    waited: Duration,
    /// Whether Ctrl-C ended a wait.
    is_broken_off: bool,
    /// The patience with a subscriber that does not read; `None` in shared memory, where the
    /// publisher itself cuts it off.
    patience: Option<Duration>,
    /// The remark about a subscriber that does not read.
    remark: Remark,
    watch: DepartureWatch,
    /// Departures of subscribers before the Done token: those after it are expected.
    pub(super) departures: Departures,
    /// Subscribers in shared memory that were cut off, and that died.
    pub(super) lost_subscribers: (u64, u64),
    last: Option<Instant>,
}

impl Run {
    pub(super) fn new(
        args: &Args,
        mapping: &Arc<Mapping>,
        publisher: Option<Publisher>,
        stop: Stop,
    ) -> Self {
        let longest = publisher.as_ref().and_then(Publisher::longest);
        let longest = longest.unwrap_or(usize::MAX);
        let writer = Writer {
            mapping: Arc::clone(mapping),
            publisher,
            stop: stop.clone(),
            echo: !args.feed.no_echo,
            in_flight: match args.in_flight {
                _ if args.feed.no_echo => 0,
                Some(samples) => samples,
                // Lost samples have no echoes to wait for.
                None if args.file.is_none() && args.feed.is_best_effort() => 0,
                None => 1,
            },
            unechoed: Unechoed::default(),
            waited: Duration::ZERO,
            is_broken_off: false,
            patience: (args.domain.transport != TransportArg::Shm)
                .then(|| Duration::from_secs(args.patience)),
            remark: Remark::default(),
            watch: DepartureWatch::new("readers", |line| note!("fanfare: {line}")),
            departures: Departures::default(),
            lost_subscribers: (0, 0),
            last: None,
        };
        let maker = Maker::new(args, mapping, longest, stop);
        Self { maker, writer }
    }

    /// Reads all input: the file, or multicast.
    pub(super) fn read(&mut self, args: &Args, file: Option<PacketFile>) -> Result<Losses> {
        let Self { maker, writer } = self;
        let (stop, mapping) = (writer.stop.clone(), Arc::clone(&writer.mapping));
        let options = args.feed.strictness.options();
        let decoder = Decoder::with_options(Arc::clone(mapping.program()), options);
        if let (Some(path), Some(file)) = (&args.file, file) {
            let write = |sample: &Converted<'_>| writer.publish(sample);
            let mut write = write;
            let take = |event: Event<'_>| maker.take(event, &mut write);
            return input::file(file, path, decoder, &stop, take).map(|()| Losses::default());
        }
        let source = Source {
            groups: &args.multicast,
            interface: args.receive_interface,
            idle: args.idle.map(Duration::from_secs),
            backlog: usize::from(args.backlog) << 20,
        };
        let make =
            |event: Event<'_>, ring: &mut SampleRing| maker.take(event, |sample| ring.put(sample));
        input::multicast(
            &source,
            decoder,
            &stop,
            make,
            |bytes| match Converted::read(&mapping, bytes) {
                Some(sample) => writer.publish(&sample),
                None => Ok(Flow::Continue(())),
            },
        )
    }

    /// Returns the durations since the first packet.
    pub(super) fn times(&self, last_echo: Option<Instant>) -> Times {
        let (first, last) = (self.maker.first, self.writer.last);
        Times {
            published: span(first, last, None),
            waited: self.writer.waited,
            elapsed: span(first, last, last_echo),
        }
    }
}

impl Writer {
    /// Publishes a sample, once fewer than the limit are in flight.
    fn publish(&mut self, sample: &Converted<'_>) -> Result<Flow> {
        let (Some(publisher), in_flight) = (&mut self.publisher, self.in_flight) else {
            return Ok(Flow::Continue(()));
        };
        let (unechoed, stop, watch) = (&mut self.unechoed, &self.stop, &mut self.watch);
        let waited = wait_for_room(publisher, in_flight, unechoed, stop);
        self.waited += waited;
        let (remark, patience) = (&mut self.remark, self.patience);
        let flow = patiently(publisher, sample, patience, stop, remark, watch)?;
        self.is_broken_off |= flow.is_break() || !waited.is_zero() && stop.is_raised();
        watch.look(publisher.departures());
        Ok(flow)
    }

    /// Writes the Done token and waits for the echoes in flight. Returns whether every sample was
    /// published, to every subscriber that is alive, and all echoes came. After a wait that Ctrl-C
    /// ended, it waits for a second each, as the cause of that wait may still be there.
    pub(super) fn finish(&mut self) -> Result<bool> {
        self.last = Some(Instant::now());
        let Some(publisher) = &mut self.publisher else {
            return Ok(true);
        };
        let [for_token, for_echoes] = match self.is_broken_off {
            true => [1, 1],
            false => [10, 5],
        };
        self.departures = publisher.departures();
        self.watch.tell(self.departures);
        note!("Writing Done token");
        let acknowledged = publisher.finish(Duration::from_secs(for_token))?;
        if !acknowledged {
            note!("fanfare: a subscriber has not acknowledged everything within {for_token} s");
        }
        self.lost_subscribers = publisher.lost_subscribers();
        let (slow, dead) = self.lost_subscribers;
        if slow + dead > 0 {
            let slow = counted(slow, "subscriber");
            note!("fanfare: cut off {slow} that did not read; {dead} died");
        }
        if publisher.without_topic() > 0 {
            note!(
                "fanfare: {} samples of securities without a topic were not published",
                publisher.without_topic()
            );
        }
        if publisher.refused() > 0 {
            note!(
                "fanfare: {} samples of more or longer keys than a topic may have were not \
                 published: --instances limits their number, and a key has at most 1,024 bytes",
                publisher.refused()
            );
        }
        for failure in publisher.failures() {
            note!("fanfare: echoes: {failure}");
        }
        let is_whole = publisher.refused() == 0 && publisher.without_topic() == 0;
        // A subscriber that died is no failure, as over DDS.
        let complete = acknowledged && is_whole && slow == 0;
        if !self.echo {
            return Ok(complete);
        }
        let end = Instant::now() + Duration::from_secs(for_echoes);
        while publisher.echoed() < publisher.written() && Instant::now() < end {
            thread::park_timeout(Duration::from_millis(10));
        }
        let written = publisher.written();
        let missing = written.saturating_sub(publisher.echoed());
        if missing > 0 {
            note!("fanfare: {missing} of {written} echoes did not come");
        }
        Ok(complete && missing == 0)
    }
}

/// Durations since the first packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The time until the last sample was written.
    pub(super) published: Duration,
    /// The part of it that samples waited for echoes.
    pub(super) waited: Duration,
    /// The time until the last echo, if there were any.
    pub(super) elapsed: Duration,
}

/// Returns the time from the first packet to the end of writing or to the last echo, without the
/// wait for missing echoes.
fn span(first: Option<Instant>, written: Option<Instant>, echo: Option<Instant>) -> Duration {
    let ends = written.max(echo).zip(first);
    ends.map_or(Duration::ZERO, |(end, first)| {
        end.saturating_duration_since(first)
    })
}

/// Publishes a sample, and waits while a reader's history, or the ring, is full: until it reads,
/// leaves, is cut off, or the patience ends. Ctrl-C ends the wait, and the run, without the sample.
fn patiently(
    publisher: &mut Publisher,
    sample: &Converted<'_>,
    patience: Option<Duration>,
    stop: &Stop,
    remark: &mut Remark,
    watch: &mut DepartureWatch,
) -> Result<Flow> {
    let mut since = None;
    loop {
        match publisher.publish(sample) {
            Ok(_) => return Ok(Flow::Continue(())),
            Err(DdsError::Dds {
                code: ReturnCode::Timeout,
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
        if stop.is_raised() {
            return Ok(Flow::Break(()));
        }
        watch.look(publisher.departures());
        let since = since.get_or_insert_with(Instant::now);
        if remark.is_due(Instant::now()) {
            note!("fanfare: a subscriber does not read, and all wait for it");
        }
        if let Some(patience) = patience.filter(|patience| since.elapsed() >= *patience) {
            bail!(
                "a subscriber is alive but has not read for {} s: with --qos last-value or \
                 best-effort the publisher does not wait for it",
                patience.as_secs()
            );
        }
    }
}

/// The time of the last remark, which would otherwise be made for each sample.
#[derive(Debug, Default)]
struct Remark(Option<Instant>);

impl Remark {
    /// The least time between two remarks.
    const APART: Duration = Duration::from_secs(10);

    /// Returns whether the remark is due. It is then taken to be made now.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now >= last + Self::APART);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// The echoes that are not waited for.
#[derive(Debug, Default)]
struct Unechoed {
    /// The samples whose echoes did not come in time.
    lost: u64,
    /// Whether a topic had no subscriber at the last look.
    is_deserted: bool,
}

/// Waits while too many samples are in flight. An echo counts as lost after a second, or at once
/// while a topic has no subscriber. Returns the time waited.
fn wait_for_room(
    publisher: &Publisher,
    in_flight: u64,
    unechoed: &mut Unechoed,
    stop: &Stop,
) -> Duration {
    // Whoever else echoes in the domain may echo more than was written.
    let under_way = || publisher.written().saturating_sub(publisher.echoed());
    if in_flight == 0 || under_way() < in_flight + unechoed.lost {
        return Duration::ZERO;
    }
    let begin = Instant::now();
    while !stop.is_raised() {
        if !unechoed.is_deserted {
            thread::park_timeout(Duration::from_millis(100));
        }
        if under_way() < in_flight + unechoed.lost {
            break;
        }
        unechoed.is_deserted = !publisher.is_matched();
        if unechoed.is_deserted || begin.elapsed() > Duration::from_secs(1) {
            unechoed.lost = under_way();
        }
    }
    begin.elapsed()
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

    #[test]
    fn a_remark_is_made_once_in_ten_seconds() {
        let begin = Instant::now();
        let mut remark = Remark::default();
        let due = [0, 1, 9_999, 10_000, 19_999, 20_001]
            .map(|ms| remark.is_due(begin + Duration::from_millis(ms)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
