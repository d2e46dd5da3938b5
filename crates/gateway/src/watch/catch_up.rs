//! The wait of queries for the reader of market events.
//!
//! An answer is as of everything that was in the ring when its query began. The thread of the query
//! reads up to there by itself: the thread of the view sleeps while the ring is empty, and may have
//! been started only by this query.

use super::Watch;
use super::error::{NO_MARKET, NoBook};
use super::market::Market;
use super::places::Places;
use fanfare_engine::stop::Stop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait of a query.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause of a query that has read everything and lacks more.
const PAUSE: Duration = Duration::from_millis(1);
/// The most queries that pause at the same time. The console has other threads for commands.
pub(super) const WAITING: usize = 4;

/// The clock of a wait.
trait Clock {
    fn now(&self) -> Instant;
    /// Returns whether the gateway stops, in which case nothing more comes.
    fn is_over(&self) -> bool;
    /// Waits for [`PAUSE`].
    fn pause(&mut self);
}

/// The clock of the system.
struct System<'a>(&'a Stop);

impl Clock for System<'_> {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn is_over(&self) -> bool {
        self.0.is_raised()
    }

    fn pause(&mut self) {
        std::thread::sleep(PAUSE);
    }
}

impl Watch {
    /// Returns the market once it has everything that was in the ring at the call, and all
    /// instruments if the reader was overtaken. Waits up to 2 s, and not while the gateway stops.
    ///
    /// # Errors
    /// Returns [`NoBook::NotYet`] if it lacks some of this after the wait, or if it has read
    /// everything and [`WAITING`] queries wait for more already, and an error if there is no
    /// market.
    pub(super) fn caught_up(&self) -> Result<MutexGuard<'_, Market>, NoBook> {
        let market = self.0.market.as_ref().ok_or(NO_MARKET)?;
        caught_up(market, &self.0.waiting, &mut System(&self.0.stop))
    }
}

fn caught_up<'a>(
    market: &'a Mutex<Market>,
    places: &Places,
    clock: &mut impl Clock,
) -> Result<MutexGuard<'a, Market>, NoBook> {
    let until = clock.now() + PATIENCE;
    let (mut head, mut place) = (None, None);
    loop {
        let has_more = {
            let mut market = market.lock().unwrap_or_else(PoisonError::into_inner);
            let head = *head.get_or_insert_with(|| market.head());
            let has_more = market.read(clock.now());
            if market.has_read(head) && !market.may_lack_some() {
                return Ok(market);
            }
            has_more
        };
        if clock.now() >= until || clock.is_over() {
            return Err(NoBook::NotYet);
        }
        if !has_more {
            if place.is_none() {
                place = Some(places.take().ok_or(NoBook::NotYet)?);
            }
            clock.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::ring::EventRing;
    use crate::test_log::{feed, instrument, named};
    use fanfare_engine::counters::Counters;
    use fanfare_engine::poll::Waker;
    use fanfare_market::Event;
    use fanfare_market::book::BookConfig;
    use fanfare_market::instruments::Lookup;
    use fanfare_operator::Changes;

    /// A clock that a pause moves, in which the writer goes on.
    struct Virtual<F> {
        now: Instant,
        pauses: u32,
        /// The pauses after which the gateway stops.
        most: u32,
        write: F,
    }

    impl<F: FnMut(u32)> Clock for Virtual<F> {
        fn now(&self) -> Instant {
            self.now
        }

        fn is_over(&self) -> bool {
            self.pauses == self.most
        }

        fn pause(&mut self) {
            self.now += PAUSE;
            self.pauses += 1;
            (self.write)(self.pauses);
        }
    }

    fn clock<F: FnMut(u32)>(write: F) -> Virtual<F> {
        Virtual {
            now: Instant::now(),
            pauses: 0,
            most: u32::MAX,
            write,
        }
    }

    /// The pauses of a wait that is in vain.
    const ALL: u32 = (PATIENCE.as_millis() / PAUSE.as_millis()) as u32;

    fn market(bytes: usize) -> (EventRing, Mutex<Market>) {
        let mut ring = EventRing::new(bytes, 1, Waker::detached().unwrap(), 1);
        let feed = feed(BookConfig::by_price(4).unwrap());
        let events = ring.reader(Waker::detached().unwrap()).unwrap();
        let market = Market::new(events, vec![feed], Changes::default(), &Counters::new());
        (ring, Mutex::new(market))
    }

    fn event(number: u64) -> Event {
        Event {
            number,
            source: 1,
            ..Event::EMPTY
        }
    }

    fn is_not_yet(found: Result<MutexGuard<'_, Market>, NoBook>) -> bool {
        matches!(found, Err(NoBook::NotYet))
    }

    #[test]
    fn all_that_was_in_the_ring_is_read_before_the_answer() {
        let (mut ring, market) = market(1 << 20);
        let mut clock = clock(|_| panic!("nothing is lacking"));
        let mut written = 0;
        for number in [9_000, 18_000, 18_000] {
            (written..number).for_each(|_| ring.put(&mut [event(0)]));
            written = number;
            let found = caught_up(&market, &Places::new(1), &mut clock).unwrap();
            assert_eq!(found.number(), number);
        }
    }

    #[test]
    fn the_rest_of_a_message_is_waited_for() {
        let (mut ring, market) = market(1 << 20);
        ring.put_numbered(&[event(1)], true);
        let places = Places::new(1);
        let mut in_vain = clock(|_| {});
        assert!(is_not_yet(caught_up(&market, &places, &mut in_vain)));
        assert_eq!(in_vain.pauses, ALL);
        let mut clock = clock(|pauses| {
            if pauses == 3 {
                ring.put_numbered(&[event(2)], false);
            }
        });
        let found = caught_up(&market, &places, &mut clock).unwrap();
        assert_eq!((found.number(), clock.pauses), (2, 3));
    }

    #[test]
    fn nothing_is_waited_for_while_the_gateway_stops() {
        let (mut ring, market) = market(1 << 20);
        ring.put_numbered(&[event(1)], true);
        let mut clock = clock(|_| {});
        clock.most = 3;
        assert!(is_not_yet(caught_up(&market, &Places::new(1), &mut clock)));
        assert_eq!(clock.pauses, 3);
    }

    #[test]
    fn a_reader_that_was_overtaken_has_to_be_shown_all_instruments() {
        let (mut ring, market) = market(1);
        ring.put_bytes(&instrument(0, named("A")));
        (0..20_000).for_each(|_| ring.put(&mut [event(0)]));
        let places = Places::new(1);
        let mut in_vain = clock(|_| {});
        assert!(is_not_yet(caught_up(&market, &places, &mut in_vain)));
        assert_eq!(in_vain.pauses, ALL);
        let mut clock = clock(|pauses| match pauses {
            2 => {
                assert!(ring.is_asked());
                ring.put_bytes(&instrument(0, named("A")));
            }
            5 => ring.put_shown(),
            _ => {}
        });
        let found = caught_up(&market, &places, &mut clock).unwrap();
        assert_eq!((found.directory().bound(), clock.pauses), (1, 5));
    }

    #[test]
    fn a_query_beyond_the_limit_does_not_wait() {
        let (mut ring, market) = market(1 << 20);
        let places = Places::new(1);
        let place = places.take();
        let mut clock = clock(|_| panic!("it has no place"));
        ring.put(&mut [event(0)]);
        assert_eq!(caught_up(&market, &places, &mut clock).unwrap().number(), 1);
        ring.put_numbered(&[event(2)], true);
        assert!(is_not_yet(caught_up(&market, &places, &mut clock)));
        ring.end_message();
        drop(place);
        assert_eq!(caught_up(&market, &places, &mut clock).unwrap().number(), 2);
    }
}
