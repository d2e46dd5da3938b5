//! A venue, its session and the books of a gateway in virtual time, with faults at random.

use super::subscriptions::{Effect, Named, Request, Subscriptions, Terms};
use fanfare_feed::recovery::State;
use fanfare_fix::codec::{Decoder, FieldWriter};
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::instruments::Lookup;
use fanfare_market::{
    Book, BookConfig, Event, InstrumentId, Instruments, Mapping, MarketConfig, SessionFollower,
    Side, state,
};
use fanfare_peers::fix::{framed, wire};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const RETRY: u64 = 1_000;
const SYMBOLS: [&str; 5] = ["A", "B", "C", "D", "E"];

/// Sizes of bids by price.
type Bids = BTreeMap<i64, i64>;

/// The message that refuses a request.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// MarketDataRequestReject(Y).
    Request,
    /// Reject(3), which names MsgSeqNum(34).
    Session,
    /// BusinessMessageReject(j), which names MDReqID(262).
    Business,
}

impl Refusal {
    fn message(self, id: &str, seq: u64) -> (&'static str, String) {
        match self {
            Self::Request => ("Y", format!("262={id}|281=0|58=no|")),
            Self::Session => ("3", format!("45={seq}|372=V|373=5|58=no|")),
            Self::Business => ("j", format!("372=V|379={id}|380=3|58=no|")),
        }
    }
}

/// A step of the venue, the network or the clock.
#[derive(Debug, Clone)]
enum Step {
    /// A size at a price of an instrument, or 0 to delete the level.
    Change(usize, i64, i64),
    /// A snapshot that nobody requested.
    Snapshot(usize),
    /// A change of an instrument that was never requested.
    Stranger,
    /// The messages under way arrive.
    Arrive(usize),
    /// The next message under way is lost, and a gap fill takes its place.
    Lose,
    /// The connection is lost, with all that is under way.
    Cut,
    /// The numbers are reset: messages under way are discarded.
    Reset(usize),
    /// The venue refuses requests of this instrument, or serves it again.
    Refuse(usize, Option<Refusal>),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..SYMBOLS.len();
    let refusal = prop::sample::select(vec![Refusal::Request, Refusal::Session, Refusal::Business]);
    prop_oneof![
        8 => (at.clone(), 1..6_i64, 0..4_i64).prop_map(|(at, price, size)| {
            Step::Change(at, price, size)
        }),
        2 => at.clone().prop_map(Step::Snapshot),
        1 => Just(Step::Stranger),
        8 => (1..6_usize).prop_map(Step::Arrive),
        1 => Just(Step::Lose),
        1 => Just(Step::Cut),
        1 => (1..6_usize).prop_map(Step::Reset),
        2 => (at, prop::option::of(refusal)).prop_map(|(at, how)| Step::Refuse(at, how)),
        3 => (1..2 * RETRY).prop_map(Step::Wait),
    ]
}

/// A message under way, with the bids of its instrument at the moment at which it was sent.
struct Sent {
    text: String,
    of: Option<(usize, Bids)>,
}

/// The venue: its books, and the requests that it serves.
#[derive(Default)]
struct Venue {
    bids: [Bids; SYMBOLS.len()],
    refuses: [Option<Refusal>; SYMBOLS.len()],
    /// MDReqID(262) of each instrument's requests.
    open: [Vec<String>; SYMBOLS.len()],
    under_way: VecDeque<Sent>,
}

impl Venue {
    fn send(&mut self, msg_type: &str, body: &str, of: Option<usize>) {
        let text = format!("35={msg_type}|49=V|56=G|34=1|52=20260101-00:00:00|{body}");
        let of = of.map(|at| (at, self.bids[at].clone()));
        self.under_way.push_back(Sent { text, of });
    }

    fn snapshot(&mut self, at: usize) {
        let bids = self.bids[at].iter();
        let entries: Vec<_> = bids
            .map(|(price, size)| format!("269=0|270={price}|271={size}|"))
            .collect();
        let symbol = SYMBOLS[at];
        let entries = match entries.is_empty() {
            true => "268=1|269=J|".to_owned(),
            false => format!("268={}|{}", entries.len(), entries.concat()),
        };
        self.send("W", &format!("55={symbol}|{entries}"), Some(at));
    }

    fn change(&mut self, at: usize, price: i64, size: i64) {
        let before = match size {
            0 => self.bids[at].remove(&price),
            _ => self.bids[at].insert(price, size),
        };
        let action = match (before, size) {
            (None, 0) => return,
            (Some(_), 0) => 2,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        // Each request of the instrument has its own copy, as with any venue.
        if !self.open[at].is_empty() {
            let size = size.max(1);
            let symbol = SYMBOLS[at];
            let entry = format!("268=1|279={action}|269=0|55={symbol}|270={price}|271={size}|");
            self.send("X", &entry, Some(at));
        }
    }

    fn take(&mut self, request: &Request, seq: u64) {
        let index = |named: &Named| {
            let all = SYMBOLS.iter();
            all.map(|symbol| Named::symbol(symbol))
                .position(|own| own == *named)
                .unwrap()
        };
        match request {
            Request::List { .. } => panic!("no list is requested"),
            Request::Close { id, instruments } => {
                let mut is_known = false;
                for named in instruments {
                    let open = &mut self.open[index(named)];
                    is_known |= open.contains(id);
                    open.retain(|own| own != id);
                }
                if !is_known {
                    // Its refusal was lost.
                    self.send("Y", &format!("262={id}|58=no subscription|"), None);
                }
            }
            Request::Open { id, instruments } => {
                let all: Vec<usize> = instruments.iter().map(index).collect();
                if let Some(how) = all.iter().find_map(|at| self.refuses[*at]) {
                    let (msg_type, body) = how.message(id, seq);
                    return self.send(msg_type, &body, None);
                }
                for at in all {
                    assert!(self.open[at].is_empty(), "an instrument has one request");
                    self.open[at].push(id.clone());
                    self.snapshot(at);
                }
            }
        }
    }
}

/// The gateway's side, and what its books are to be.
struct World {
    venue: Venue,
    subscriptions: Subscriptions,
    follower: SessionFollower,
    decoder: Decoder,
    is_on: bool,
    now: u64,
    seq: u64,
    /// The bids of each instrument as of its last message that arrived.
    expected: [Option<Bids>; SYMBOLS.len()],
    /// Whether each instrument was requested since the Logon, and whether a snapshot of it has
    /// arrived since then, and since the last loss.
    requested: [bool; SYMBOLS.len()],
    answered: [bool; SYMBOLS.len()],
    /// The books as a reader of the events builds them, with whether they are live.
    read: BTreeMap<u32, (Option<Book>, bool)>,
}

fn terms() -> Terms {
    Terms {
        depth: 0,
        entry_types: vec!["0".to_owned()],
        full_refresh: false,
        by_order: false,
        per_request: 2,
        most: 10,
        retry: RETRY,
    }
}

fn take(read: &mut BTreeMap<u32, (Option<Book>, bool)>, event: &Event) {
    let (book, is_live) = read.entry(event.instrument.0).or_default();
    if let Some(new) = state::of_event(event) {
        *is_live = new == State::Live;
    } else if event.kind.is_of_book() {
        let book = book.get_or_insert_with(|| Book::new(&BookConfig::by_price(10).unwrap()));
        book.apply(event).unwrap();
    }
}

impl World {
    fn new() -> Self {
        let mapping = Mapping::built_in("builtin:fix").unwrap();
        let mapper = mapping.for_fix(&Dictionary::built_in(Version::Fix44), 1);
        let market = MarketConfig {
            book: BookConfig::by_price(10).unwrap(),
            recovery: fanfare_feed::recovery::RecoveryConfig::new(
                fanfare_feed::recovery::Numbering::Channel,
            ),
            has_natural_refresh: false,
            source: 1,
        };
        let config = fanfare_market::FollowerConfig::new(market);
        let symbols = SYMBOLS.iter().map(|own| Named::symbol(own)).collect();
        Self {
            venue: Venue::default(),
            subscriptions: Subscriptions::new(terms(), Some(symbols)),
            follower: SessionFollower::new(config, mapper.unwrap(), Instruments::new(100)),
            decoder: Decoder::new(),
            is_on: false,
            now: 1,
            seq: 0,
            expected: Default::default(),
            requested: Default::default(),
            answered: Default::default(),
            read: BTreeMap::new(),
        }
    }

    fn log_on(&mut self) {
        self.is_on = true;
        self.subscriptions.log_on(self.now);
        let read = &mut self.read;
        self.follower
            .logged_on(self.now, &mut |event| take(read, event));
        self.expected = Default::default();
        (self.requested, self.answered) = Default::default();
    }

    fn cut(&mut self) {
        self.is_on = false;
        self.subscriptions.end();
        (self.venue.open, self.venue.under_way) = Default::default();
        let read = &mut self.read;
        self.follower
            .ended(self.now, &mut |event| take(read, event));
    }

    /// Sends the requests that are due.
    fn send(&mut self) {
        while let Some(request) = self.subscriptions.poll(self.now) {
            self.seq += 1;
            let mut room = [0; 4_096];
            let mut out = FieldWriter::new(&mut room);
            request.write(&terms(), &mut out);
            assert!(!out.written().unwrap().is_empty());
            self.subscriptions.sent(&request, self.seq);
            if let Request::Open { instruments, .. } = &request {
                for (at, symbol) in SYMBOLS.iter().enumerate() {
                    self.requested[at] |= instruments.contains(&Named::symbol(symbol));
                }
            }
            self.venue.take(&request, self.seq);
        }
    }

    /// Brings the next message under way, if there is one.
    fn arrive(&mut self) {
        let Some(Sent { text, of }) = self.venue.under_way.pop_front() else {
            return;
        };
        let bytes = wire(&framed("FIX.4.4", &text));
        let message = self.decoder.decode(&bytes).unwrap();
        let effect = match message.msg_type() {
            b"3" => self.subscriptions.rejected(self.now, &message),
            _ => self.subscriptions.take(self.now, &message),
        };
        let is_refusal = [&b"Y"[..], b"3", b"j"].contains(&message.msg_type());
        let is_snapshot = message.msg_type() == b"W";
        assert_eq!(effect != Effect::Data, is_refusal, "{text}");
        if let Effect::Lost(_) = effect {
            self.lose();
        } else if effect == Effect::Data {
            let read = &mut self.read;
            self.follower
                .message(self.now, 7, &message, &mut |event| take(read, event));
        }
        if let Some((at, bids)) = of {
            self.expected[at] = Some(bids);
            self.answered[at] |= is_snapshot;
        }
    }

    fn lose(&mut self) {
        let read = &mut self.read;
        self.follower.lost(self.now, &mut |event| take(read, event));
        self.answered = Default::default();
        self.subscriptions.lose(self.now);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Change(at, price, size) => self.venue.change(at, price, size),
            Step::Snapshot(at) if self.venue.open[at].is_empty() => {}
            Step::Snapshot(at) => self.venue.snapshot(at),
            Step::Stranger if !self.is_on => {}
            Step::Stranger => {
                let entry = "268=1|279=0|269=0|55=Z|270=1|271=1|";
                self.venue.send("X", entry, None);
            }
            Step::Arrive(count) => (0..count).for_each(|_| self.arrive()),
            Step::Lose => {
                if self.venue.under_way.pop_front().is_some() {
                    self.lose();
                }
            }
            Step::Reset(count) => {
                let under_way = &mut self.venue.under_way;
                let count = count.min(under_way.len());
                if under_way.drain(..count).count() > 0 {
                    self.lose();
                }
            }
            Step::Cut if self.is_on => self.cut(),
            Step::Cut => {}
            Step::Refuse(at, how) => self.venue.refuses[at] = how,
            Step::Wait(time) => self.now += time,
        }
        if !self.is_on {
            self.log_on();
        }
        self.send();
        self.check();
    }

    /// Checks that each book that is live is that of the venue as of the last message.
    fn check(&self) {
        let table = self.follower.instruments();
        for number in 0..table.len() as u32 {
            let id = InstrumentId(number);
            let name = table.instrument(id).unwrap().definition.name.symbol;
            let state = self.follower.market().state(id);
            let is_live = state == Some(State::Live);
            let none = (None, false);
            let (read, is_read_live) = self.read.get(&number).unwrap_or(&none);
            assert_eq!(*is_read_live, is_live, "{id:?}: {state:?}");
            let Some(at) = SYMBOLS.iter().position(|own| own.as_bytes() == name) else {
                assert!(
                    !is_live,
                    "an instrument that was never requested is not live"
                );
                continue;
            };
            if is_live {
                assert!(self.requested[at], "{} was not requested", SYMBOLS[at]);
                assert!(self.answered[at], "{} was not answered", SYMBOLS[at]);
                let of = |book: &Book| -> Bids {
                    let levels = book.depth(Side::Bid);
                    levels
                        .map(|level| (level.price.units() / 1_000_000_000, level.size))
                        .collect()
                };
                let own = self.follower.market().book(id).map(of).unwrap_or_default();
                let expected = self.expected[at].clone().unwrap_or_default();
                assert_eq!(own, expected, "{}", SYMBOLS[at]);
                let read = read.as_ref().map(of).unwrap_or_default();
                assert_eq!(read, expected, "{}", SYMBOLS[at]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A live book is that of the venue whatever is lost, refused or cut, and once nothing is, all
    /// books are live.
    #[test]
    fn a_live_book_is_that_of_the_venue(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        world.log_on();
        world.send();
        for step in &steps {
            world.step(step);
        }
        world.venue.refuses = Default::default();
        for _ in 0..8 {
            world.step(&Step::Arrive(1_000));
            world.step(&Step::Wait(2 * RETRY));
        }
        world.step(&Step::Arrive(1_000));
        let requested = world.subscriptions.requested();
        let count: usize = requested.map(|(_, all)| all.len()).sum();
        prop_assert_eq!(count, SYMBOLS.len());
        let live = world.read.values().filter(|(_, is_live)| *is_live).count();
        prop_assert_eq!(live, SYMBOLS.len());
    }
}

#[test]
fn a_request_that_is_too_long_is_halved_and_only_what_never_fits_is_left_out() {
    let long = "L".repeat(300);
    let symbols = ["A", "B", long.as_str(), "C", "D"].map(Named::symbol);
    let wide = Terms {
        per_request: 5,
        ..terms()
    };
    let mut all = Subscriptions::new(wide, Some(symbols.to_vec()));
    all.log_on(0);
    let (mut sent, mut left_out) = (Vec::new(), Vec::new());
    while let Some(request) = all.poll(0) {
        let mut room = [0; 200];
        let mut out = FieldWriter::new(&mut room);
        request.write(&terms(), &mut out);
        let written = out.written().map(<[u8]>::len);
        if written.is_err() {
            left_out.extend(all.divide(request));
            continue;
        }
        assert!(written.unwrap() <= request.size() + 100);
        all.sent(&request, 1);
        if let Request::Open { instruments, .. } = request {
            sent.extend(instruments);
        }
    }
    assert_eq!(sent, ["A", "B", "C", "D"].map(Named::symbol));
    assert_eq!(left_out, ["L".repeat(100)], "with a part of its name");
    let requested: usize = all.requested().map(|(_, own)| own.len()).sum();
    assert_eq!(requested, 4);
    // So is one that ends a subscription.
    let late = 1 << 40;
    all.renew(late);
    let end = all.poll(late).unwrap();
    let id = match &end {
        Request::Close { id, instruments } if instruments.len() == 2 => id.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(all.divide(end), None);
    for symbol in ["A", "B"] {
        let (id, instruments) = (id.clone(), vec![Named::symbol(symbol)]);
        assert_eq!(all.poll(late), Some(Request::Close { id, instruments }));
    }
}

/// Returns the effect of a message on the requests, with `|` for SOH.
fn brought(subscriptions: &mut Subscriptions, msg_type: &str, body: &str) -> Effect {
    let text = format!("35={msg_type}|49=V|56=G|34=1|52=20260101-00:00:00|{body}");
    let bytes = wire(&framed("FIX.4.4", &text));
    let mut decoder = Decoder::new();
    subscriptions.take(5, &decoder.decode(&bytes).unwrap())
}

/// Returns the body of the next request.
fn next(subscriptions: &mut Subscriptions, now: u64) -> Option<String> {
    let request = subscriptions.poll(now)?;
    let mut room = [0; 4_096];
    let mut out = FieldWriter::new(&mut room);
    request.write(&terms(), &mut out);
    let body = String::from_utf8_lossy(out.written().unwrap()).replace('\x01', "|");
    subscriptions.sent(&request, 9);
    Some(body)
}

#[test]
fn the_instruments_of_a_list_are_requested_as_it_comes() {
    let mut all = Subscriptions::new(terms(), None);
    all.log_on(0);
    assert_eq!(next(&mut all, 0).unwrap(), "320=f1|559=4|");
    assert_eq!(next(&mut all, 0), None);
    let page = "320=f1|560=0|146=3|55=A|48=1|22=8|55=B|454=1|455=x|456=8|55=[N/A]|48=3|22=8|";
    assert_eq!(brought(&mut all, "y", page), Effect::Data);
    let front = "263=1|264=0|265=1|267=1|269=0|146=";
    let first = format!("262=f2|{front}2|55=A|48=1|22=8|55=B|");
    assert_eq!(next(&mut all, 0).unwrap(), first);
    let second = format!("262=f3|{front}1|55=[N/A]|48=3|22=8|");
    assert_eq!(next(&mut all, 0).unwrap(), second);
    // The same instrument again, and those of another request.
    assert_eq!(brought(&mut all, "y", page), Effect::Data);
    assert_eq!(
        brought(&mut all, "y", "320=x|560=0|146=1|55=Q|"),
        Effect::Data
    );
    assert_eq!(next(&mut all, 0), None);
    let many: Vec<_> = (0..20).map(|at| format!("55=S{at}|")).collect();
    let many = format!("320=f1|560=0|146=20|{}", many.concat());
    let Effect::Refused(why) = brought(&mut all, "y", &many) else {
        panic!("the list has no limit");
    };
    assert!(why.contains("more than 10 instruments"), "{why}");
}

#[test]
fn a_list_that_is_refused_is_requested_again() {
    let mut all = Subscriptions::new(terms(), None);
    all.log_on(0);
    next(&mut all, 0).unwrap();
    let refused = brought(&mut all, "y", "320=f1|560=2|");
    assert!(matches!(refused, Effect::Refused(why) if why.contains("securities")));
    assert_eq!(all.due(), Some(5 + RETRY));
    assert_eq!(next(&mut all, RETRY), None);
    assert_eq!(next(&mut all, 5 + RETRY).unwrap(), "320=f2|559=4|");
    // A Reject(3) names the request by its MsgSeqNum(34).
    let refused = brought(&mut all, "j", "45=9|372=x|380=3|58=not here|");
    assert!(matches!(refused, Effect::Refused(why) if why.contains("3 not here")));
}

#[test]
fn a_list_of_which_a_part_was_lost_is_requested_again() {
    let mut all = Subscriptions::new(terms(), None);
    all.log_on(0);
    assert_eq!(next(&mut all, 0).unwrap(), "320=f1|559=4|");
    let part = "320=f1|560=0|146=1|55=A|";
    assert_eq!(brought(&mut all, "y", part), Effect::Data);
    assert!(next(&mut all, 0).unwrap().starts_with("262=f2|263=1|"));
    all.lose(1);
    assert_eq!(next(&mut all, 1), None);
    assert!(next(&mut all, RETRY).unwrap().starts_with("262=f2|263=2|"));
    assert!(next(&mut all, RETRY).unwrap().starts_with("262=f3|263=1|"));
    assert_eq!(next(&mut all, RETRY).unwrap(), "320=f4|559=4|");
    // What was lost is requested, and what was requested before is not.
    let whole = "320=f4|560=0|146=2|55=A|55=B|";
    assert_eq!(brought(&mut all, "y", whole), Effect::Data);
    assert!(next(&mut all, RETRY).unwrap().ends_with("|146=1|55=B|"));
    assert_eq!(next(&mut all, RETRY), None);
}

#[test]
fn a_request_that_is_refused_once_it_has_brought_books_is_a_loss() {
    let symbols = ["A", "B"].map(Named::symbol);
    let mut all = Subscriptions::new(terms(), Some(symbols.to_vec()));
    all.log_on(0);
    let open = |all: &mut Subscriptions, now| std::iter::from_fn(|| all.poll(now)).count();
    assert_eq!(open(&mut all, 0), 1);
    assert_eq!(brought(&mut all, "W", "262=f1|55=A|268=0|"), Effect::Data);
    // Some of it may be served further: it is ended, and each is requested by itself.
    let refused = brought(&mut all, "Y", "262=f1|281=0|58=no more|");
    assert!(matches!(refused, Effect::Lost(why) if why.contains("no more")));
    let ended = all.poll(0);
    assert!(matches!(ended, Some(Request::Close { id, .. }) if id == "f1"));
    assert_eq!(open(&mut all, 0), 2);
    // Without books, a refusal costs no other instrument.
    let refused = brought(&mut all, "Y", "262=f2|281=0|");
    assert!(matches!(refused, Effect::Refused(_)));
    // The book of the other one may be complete while its renewed request is refused.
    assert_eq!(brought(&mut all, "W", "262=f3|55=B|268=0|"), Effect::Data);
    all.renew(1 << 40);
    assert!(open(&mut all, 1 << 40) >= 2);
    let of_b = all
        .requested()
        .find(|(_, named)| named[0] == Named::symbol("B"));
    let id = of_b.map(|(id, _)| id.to_owned()).unwrap();
    let refused = brought(&mut all, "Y", &format!("262={id}|281=0|"));
    assert!(matches!(refused, Effect::Lost(_)));
}
