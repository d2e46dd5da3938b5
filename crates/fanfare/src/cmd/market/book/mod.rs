//! `fanfare market book`: one book, displayed live in the terminal.

mod capture;
mod files;
mod live;
mod view;

use super::feed::Feed;
use super::options::{INSTRUMENTS, MAPPING_HELP, mapping, read_table};
use super::snapshot::some_names;
use crate::cmd::fast::decode::{self, feed::channel_config};
use crate::cmd::fast::options::load;
use crate::print::{Remarks, exit_code};
use crate::range::whole;
use crate::usage::misuse;
use anyhow::{Result, bail};
use clap::ValueEnum;
use fanfare_fast::Program;
use fanfare_feed::channel::{Channel, ChannelConfig, Event as ChannelEvent};
use fanfare_feed::recovery::{Numbering, RecoveryConfig};
use fanfare_market::event::{Event, InstrumentId};
use fanfare_market::{BookConfig, Follower, FollowerConfig, Instruments, MarketConfig};
use fanfare_wire::text::Escaped;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use view::View;

/// Follow the book of one instrument in the terminal.
///
/// The feed's changes are read from --file or --multicast as by `fanfare fast decode`, its
/// snapshots from --snapshot. The book is shown with its state: live, or recovering, with what is
/// missing. The screen is redrawn when the book changes; for a file, and with --once, only the last
/// state is printed.
///
/// In files, a snapshot comes after the message that its LastMsgSeqNumProcessed(369) names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    feed: Feed,
    /// Snapshots: one or two files, or with --multicast and --pcap one or two groups.
    #[arg(long, value_name = "FILE|ADDRESS:PORT")]
    snapshot: Vec<String>,
    /// Mapping; default: the built-in one that fits the templates.
    #[arg(short, long, value_name = "MAPPING", long_help = MAPPING_HELP)]
    mapping: Option<String>,
    /// Known instruments: a CSV file, or a TOML file.
    #[arg(long, value_name = "FILE")]
    instruments: Option<PathBuf>,
    /// Symbol(55) or SecurityID(48) of the instrument.
    #[arg(long, value_name = "SYMBOL")]
    symbol: String,
    /// Representation of books in the feed.
    #[arg(long, value_enum, default_value_t = Kind::Levels)]
    book: Kind,
    /// Levels of a side: of numbered levels exactly as many as the feed sends, of others at most.
    #[arg(
        long, value_name = "LEVELS", default_value_t = 5, value_parser = whole::<u32>(1..=65_535)
    )]
    depth: u32,
    /// Most orders of the book, with --book orders.
    #[arg(
        long, value_name = "ORDERS", default_value_t = 100_000,
        value_parser = whole::<u32>(1..=1 << 24)
    )]
    orders: u32,
    /// Bids may be above offers, as in auctions; without it, such a book has to recover.
    #[arg(long)]
    may_cross: bool,
    /// Numbers of the changes: RptSeq(83) of the instrument, or MsgSeqNum(34) of the channel.
    #[arg(long, value_enum, default_value_t = Numbers::Instrument)]
    numbers: Numbers,
    /// Recover a book without a snapshot, from the levels that the feed refreshes: numbered ones
    /// with RptSeq(83), at most 64 on a side.
    #[arg(long)]
    natural_refresh: bool,
    /// Print the book once: when it is live, or at the end of the feed.
    #[arg(long)]
    once: bool,
    /// Print JSON objects: one for each message that changes the book; with --once, only the last
    /// one.
    #[arg(long)]
    json: bool,
}

/// The representation of books in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Numbered levels, MDPriceLevel(1023).
    Levels,
    /// Levels identified by their prices.
    Prices,
    /// Orders.
    Orders,
}

/// The numbers of the changes of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Numbers {
    /// RptSeq(83).
    Instrument,
    /// MsgSeqNum(34) of the channel, with LastMsgSeqNumProcessed(369) in snapshots.
    Channel,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let templates = args.feed.check()?;
    // The contents of a bad packet are missing, and the book is marked so until it recovers.
    let decoding = args.feed.decoding(true);
    decoding.check()?;
    if args.snapshot.len() > 2 {
        misuse!("snapshots come over at most two lines");
    }
    let program = load(templates, args.feed.strictness.reading())?;
    let mut watch = Watch::new(args, &program)?;
    let is_live = decoding.file.is_empty() && decoding.pcap.is_none();
    match (&decoding.pcap, is_live) {
        (Some(file), _) => capture::run(args, &decoding, file, &program, &mut watch)?,
        (None, true) => live::run(args, &decoding, &program, &mut watch)?,
        (None, false) => files::run(args, &decoding, &program, &mut watch)?,
    }
    watch.finish(args.once || !is_live)
}

/// Creates a channel of changes or of snapshots.
fn channel(decoding: &decode::Args, program: &Arc<Program>, lines: usize) -> Result<Channel> {
    let decoder = decode::decoder(decoding, program);
    Ok(Channel::new(decoder, config(decoding, lines))?)
}

fn config(decoding: &decode::Args, lines: usize) -> ChannelConfig {
    let wait = match lines {
        1 => 0,
        _ => decoding.arbitration.gap_timeout.saturating_mul(1_000_000),
    };
    channel_config(decoding, lines, wait)
}

/// The follower of a feed, which shows one of its books.
struct Watch {
    follower: Follower,
    wanted: String,
    instrument: Option<InstrumentId>,
    /// The number of instruments that were searched for it.
    looked_at: usize,
    has_changed: bool,
    /// Remarks on packets that cannot be used.
    bad: Remarks,
    /// Remarks on values that cannot be represented.
    faults: Remarks,
    view: View,
}

/// The lines that an event came over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Changes,
    Snapshots,
}

impl Watch {
    fn new(args: &Args, program: &Arc<Program>) -> Result<Self> {
        let mapper = mapping(args.mapping.as_deref(), program)?.for_templates(program, 0)?;
        let mut table = Instruments::new(INSTRUMENTS);
        if let Some(file) = &args.instruments {
            read_table(file, &mut table)?;
        }
        let book = match args.book {
            Kind::Levels => BookConfig::by_level(args.depth)?,
            Kind::Prices => BookConfig::by_price(args.depth)?,
            Kind::Orders => BookConfig::by_order(args.depth, args.orders)?,
        };
        let numbering = match args.numbers {
            Numbers::Instrument => Numbering::Instrument,
            Numbers::Channel => Numbering::Channel,
        };
        let market = MarketConfig {
            book: book.may_cross(args.may_cross),
            recovery: RecoveryConfig::new(numbering),
            source: 0,
            has_natural_refresh: args.natural_refresh,
        };
        if args.natural_refresh && !market.can_refresh() {
            misuse!(
                "--natural-refresh needs --book levels, --numbers instrument and a --depth of at \
                 most {}",
                MarketConfig::MOST_REFRESHED_LEVELS
            );
        }
        Ok(Self {
            follower: Follower::new(FollowerConfig::new(market), mapper, table),
            wanted: args.symbol.clone(),
            instrument: None,
            looked_at: 0,
            has_changed: false,
            bad: Remarks::default(),
            faults: Remarks::default(),
            view: View::new(args.json, args.once),
        })
    }

    /// Takes an event of a channel.
    ///
    /// # Errors
    /// The book cannot be printed.
    fn take(&mut self, from: From, now: u64, event: &ChannelEvent<'_>) -> io::Result<()> {
        if let ChannelEvent::Bad(bad) = event {
            let (line, offset, fault) = (bad.line, bad.offset, &bad.fault);
            self.bad
                .push(format_args!("fanfare: line {line}, byte {offset}: {fault}"));
        }
        let (wanted, has_changed) = (self.instrument, &mut self.has_changed);
        let send = &mut |event: &Event| *has_changed |= Some(event.instrument) == wanted;
        match from {
            From::Changes => self.follower.channel(now, event, send),
            From::Snapshots => self.follower.snapshot_lines(0, now, event, send),
        }
        if let ChannelEvent::Message(_) = event {
            self.name_faults();
        }
        self.look();
        match self.has_changed && self.view.wants_each() {
            true => self.show(),
            false => Ok(()),
        }
    }

    /// Names the values of the last message that cannot be represented.
    fn name_faults(&mut self) {
        let (mapper, table) = (self.follower.mapper(), self.follower.instruments());
        for fault in mapper.faults() {
            let what = mapper.describe(fault, table);
            self.faults
                .push(format_args!("fanfare: {}", Escaped::text(&what)));
        }
    }

    /// Reports an incomplete datagram.
    fn spoilt(&mut self, why: &str) {
        self.bad.push(format_args!("fanfare: {why}"));
    }

    /// Advances time without a message.
    fn handle_timeout(&mut self, now: u64) {
        let (wanted, has_changed) = (self.instrument, &mut self.has_changed);
        let send = &mut |event: &Event| *has_changed |= Some(event.instrument) == wanted;
        self.follower.handle_timeout(now, send);
    }

    /// Searches the new instruments for the one to show.
    fn look(&mut self) {
        let table = self.follower.instruments();
        while self.instrument.is_none() && self.looked_at < table.len() {
            let id = InstrumentId(self.looked_at as u32);
            self.looked_at += 1;
            let is_it = table.get(id).is_some_and(|known| {
                let name = known.definition.name;
                name.symbol == self.wanted.as_bytes() || name.id.to_string() == self.wanted
            });
            if is_it {
                self.instrument = Some(id);
                self.has_changed = true;
            }
        }
    }

    fn show(&mut self) -> io::Result<()> {
        self.has_changed = false;
        match self.instrument {
            Some(instrument) => self.view.show(&self.follower, instrument),
            None => Ok(()),
        }
    }

    /// Redraws the book if it has changed. Returns true if nothing more is wanted.
    ///
    /// # Errors
    /// The book cannot be printed.
    fn draw(&mut self) -> io::Result<bool> {
        if self.view.is_once() {
            let market = self.follower.market();
            let state = self.instrument.and_then(|id| market.state(id));
            return Ok(state == Some(fanfare_feed::recovery::State::Live));
        }
        if self.has_changed && !self.view.wants_each() {
            self.show()?;
        }
        Ok(false)
    }

    /// Ends the feed: prints the last state, and the counts.
    fn finish(mut self, shows_last: bool) -> Result<ExitCode> {
        self.look();
        let Some(instrument) = self.instrument else {
            bail!(
                "the feed has no instrument {:?} (it has {})",
                self.wanted,
                some_names(
                    self.follower.instruments().iter(),
                    self.follower.instruments().len()
                )
            );
        };
        if shows_last && !(self.view.wants_each()) {
            self.view.show_last(&self.follower, instrument)?;
        }
        view::report(&self.follower);
        Ok(exit_code(self.bad.is_empty()))
    }
}
