//! The books of a session, on the thread of the feeds.

use super::link::{Kind, LinkReader};
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::gateway::plan::Plan;
use crate::market::outlet::{MarketOutlet, SHOWN, left_out};
use crate::market::ring::EventRing;
use crate::notice::{Limit, Notice, Notices};
use fanfare_engine::poll::Waker;
use fanfare_feed::recovery::State;
use fanfare_fix::codec::{Decoder, FrameFinder, Message};
use fanfare_fix::session::Now;
use fanfare_fix::{msg_type, tag};
use fanfare_market::instruments::{IdSource, SecurityId};
use fanfare_market::{InstrumentId, Instruments, SessionFollower};
use std::collections::HashSet;
use std::sync::Arc;

/// The most records of one turn.
const TURN: usize = 256;

/// A feed that is a FIX session.
pub(crate) struct SessionMarket {
    link: LinkReader,
    /// The waker of the session's thread.
    session: Waker,
    books: Books,
}

/// The books, and the outlet of their events.
struct Books {
    decoder: Decoder,
    follower: SessionFollower,
    outlet: MarketOutlet,
    channel: Arc<str>,
    notices: Notices,
    limit: Limit,
    /// The faults of the mapping so far, and the entries left out at the last notice.
    faults: u64,
    left_out: u64,
    /// The faults of snapshots that were counted so far.
    bad_snapshots: u64,
    /// The reasons so far for which books need snapshots.
    breaks: u64,
    /// The instruments whose books the counterparty, a gateway, has last said to be stale.
    stale: HashSet<InstrumentId>,
    /// Whether such a book is current again without a snapshot, which only a request brings.
    asks_again: bool,
    utc_nanos: i64,
}

impl SessionMarket {
    /// Creates the market. `base` is the plant's number of its first instrument.
    pub(super) fn new(
        (link, session): (LinkReader, Waker),
        (channel, base): (Arc<str>, u32),
        follower: SessionFollower,
        plan: Plan<'_>,
    ) -> Self {
        Self {
            link,
            session,
            books: Books {
                decoder: Decoder::knowing(FrameFinder::new(plan.message_bytes), &[]),
                breaks: follower.breaks(),
                follower,
                outlet: MarketOutlet::new(Arc::clone(&channel), base, plan).with_values(),
                channel,
                notices: plan.notices.clone(),
                limit: Limit::default(),
                faults: 0,
                left_out: 0,
                bad_snapshots: 0,
                stale: HashSet::new(),
                asks_again: false,
                utc_nanos: 0,
            },
        }
    }

    /// Introduces the instruments that are known before the session brings anything.
    pub(crate) fn introduce(&mut self, ring: &mut EventRing) {
        let books = &mut self.books;
        books.outlet.introduce(books.follower.instruments(), ring);
    }

    /// Processes the records that have arrived. Returns their number.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let books = &mut self.books;
        books.utc_nanos = now.utc.nanos();
        let (read, waited) = self.link.read(TURN, |kind, bytes| {
            books.take(now.mono, kind, bytes, ring);
        });
        if waited {
            self.session.wake();
        }
        books.outlet.count(now.mono);
        if books.outlet.is_due(now.mono) {
            books.count();
            books.describe();
            books.outlet.tell_room(books.follower.instruments());
            let asks_again = std::mem::take(&mut books.asks_again);
            if books.has_broken() || asks_again {
                self.link.renew();
                self.session.wake();
            }
        }
        read
    }

    /// Returns whether messages have arrived that are still to be processed.
    pub(crate) fn is_behind(&self) -> bool {
        self.link.is_behind()
    }

    /// Shows the next instruments again, after a reader has lost events, each in a message of its
    /// own. Returns their number.
    pub(crate) fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let Books {
            follower, outlet, ..
        } = &mut self.books;
        for shown in 0..SHOWN {
            let is_there = outlet.show_next(now, |received, instrument, events| {
                follower.show(received, instrument, &mut |event| events.push(*event));
            });
            if !is_there {
                return shown;
            }
            outlet.pass_on(follower.instruments(), ring);
        }
        SHOWN
    }

    /// Returns the outlet to the ring.
    pub(crate) const fn outlet(&mut self) -> &mut MarketOutlet {
        &mut self.books.outlet
    }

    /// Drops the changes that still wait, and passes on the trades among them. Sets the counters.
    pub(crate) fn close(&mut self, ring: Option<&mut EventRing>) {
        let books = &mut self.books;
        if let Some(ring) = ring {
            let brought = &mut books.outlet.brought;
            books.follower.finish(&mut |event| brought.take(event));
            books.outlet.pass_last(books.follower.instruments(), ring);
        }
        books.count();
        books.describe();
    }
}

/// What another gateway of Fanfare says of its book of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It is not complete. A snapshot follows once it is.
    Recovering,
    /// It is not current, and kept. No snapshot follows when it is current again.
    Stale,
    /// It is complete and current.
    Live,
}

/// Returns the instrument of a News(B) of another gateway of Fanfare, and the state of its book
/// there. Returns `None` for any other message.
fn told(message: &Message<'_>, table: &Instruments) -> Option<(InstrumentId, Told)> {
    if message.msg_type() != msg_type::NEWS || message.get(tag::HEADLINE)? != b"Instrument state" {
        return None;
    }
    let text = message.get(tag::TEXT)?;
    let words: [(&[u8], Told); 3] = [
        (b"state=recovering", Told::Recovering),
        (b"state=stale", Told::Stale),
        (b"state=live", Told::Live),
    ];
    let mut words = words.into_iter();
    let (_, told) = words.find(|(word, _)| text.starts_with(word))?;
    // FIX.4.2 has RelatdSym(46).
    let symbol = message.get(tag::SYMBOL).or(message.get(tag::RELATD_SYM))?;
    let source = message
        .get(tag::SECURITY_ID_SOURCE)
        .and_then(IdSource::parse);
    let by_id = message.get(tag::SECURITY_ID).and_then(|id| {
        let id = SecurityId::parse(id);
        table.by_id(id, source.unwrap_or(IdSource::NONE))
    });
    Some((by_id.or_else(|| table.by_symbol(symbol))?, told))
}

impl Books {
    fn take(&mut self, now: u64, kind: Kind, bytes: &[u8], ring: &mut EventRing) {
        // Events have the time of the turn, so that none is earlier than a watermark before it.
        let received = self.utc_nanos.unsigned_abs();
        let (follower, brought) = (&mut self.follower, &mut self.outlet.brought);
        let send = &mut |event: &_| brought.take(event);
        match kind {
            Kind::Message => match self.decoder.decode(bytes) {
                Ok(message) => {
                    follower.message(now, received, &message, send);
                    match told(&message, follower.instruments()) {
                        Some((instrument, Told::Recovering)) => {
                            self.stale.remove(&instrument);
                            follower.doubt(instrument, send);
                        }
                        Some((instrument, Told::Stale)) => {
                            self.stale.insert(instrument);
                            follower.doubt(instrument, send);
                        }
                        Some((instrument, Told::Live)) => {
                            let was_stale = self.stale.remove(&instrument);
                            let state = follower.market().state(instrument);
                            self.asks_again |= was_stale && state != Some(State::Live);
                        }
                        None => {}
                    }
                }
                // The session has decoded it with the same limits.
                Err(_) => follower.lost(now, send),
            },
            // Requests follow for all instruments. The counterparty answers each with its state.
            Kind::LoggedOn => {
                self.stale.clear();
                follower.logged_on(now, send);
            }
            Kind::Lost => {
                self.stale.clear();
                follower.lost(now, send);
            }
            Kind::Ended => follower.ended(now, send),
        }
        self.outlet.pass_on(self.follower.instruments(), ring);
        if self.follower.counts().faults != self.faults {
            self.describe_faults();
        }
    }

    /// Returns whether books need snapshots for a reason that is new since the last call.
    fn has_broken(&mut self) -> bool {
        let breaks = self.follower.breaks();
        std::mem::replace(&mut self.breaks, breaks) != breaks
    }

    fn tell(&mut self, what: MarketNotice) {
        if self.limit.lets(self.utc_nanos) {
            let channel = Arc::clone(&self.channel);
            let notice = FeedNotice::Market { channel, what };
            self.notices.send(Notice::Feed(notice));
        }
    }

    /// Sends notices of values that no event can hold.
    #[cold]
    fn describe_faults(&mut self) {
        self.faults = self.follower.counts().faults;
        let (mapper, table) = (self.follower.mapper(), self.follower.instruments());
        let faults = mapper.faults().iter();
        let texts: Vec<String> = faults.map(|fault| mapper.describe(fault, table)).collect();
        for text in texts {
            self.tell(MarketNotice::Value(text));
        }
    }

    /// Sends notices of the first snapshot since the last call that was not read, and of entries
    /// that are left out, whenever their number has doubled.
    fn describe(&mut self) {
        if let Some(fault) = self.follower.take_snapshot_fault() {
            let what = self.follower.describe_snapshot(&fault);
            self.tell(MarketNotice::Snapshot(what));
        }
        let refused = self.follower.market().stats().refused;
        if let Some(what) = left_out(self.follower.counts(), refused, &mut self.left_out) {
            self.tell(what);
        }
    }

    /// Sets the counters that are not counted on arrival.
    fn count(&mut self) {
        self.outlet.set_counts();
        let market = self.follower.market();
        let (counts, recovery) = (&self.outlet.counts, market.recovery_stats());
        let mapped = self.follower.counts();
        counts.instruments.set(self.outlet.known().into());
        let parts = self.follower.fragment_stats();
        let bad = parts.discarded + parts.no_room + parts.without_beginning;
        counts.bad_snapshots.increment(bad - self.bad_snapshots);
        self.bad_snapshots = bad;
        let left_out = mapped.no_rule + mapped.without_instrument + mapped.unknown_instrument;
        counts.left_out.set(left_out);
        let refused = self.follower.instruments().refused() + market.stats().refused;
        counts.refused.set(refused);
        counts.faults.set(market.stats().faults);
        counts.recoveries.set(recovery.recoveries);
        counts.recovered.set(recovery.recovered);
        counts.taken.set(recovery.snapshots_taken);
        counts.dropped.set(recovery.dropped);
        counts.errors.set(mapped.faults);
    }
}
