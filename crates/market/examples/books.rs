//! Builds books from FAST, and prints the best prices of those that change:
//! `cargo run -p fanfare-market --example books -- templates.xml mapping.toml own.dat`

use fanfare_fast::{Decoder, Program};
use fanfare_feed::Line;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram, Events};
use fanfare_feed::recovery::{Numbering, RecoveryConfig};
use fanfare_market::{BookConfig, Event, Flags, Follower, FollowerConfig};
use fanfare_market::{InstrumentId, Instruments, Mapping, MarketConfig, Side};
use std::{error::Error, fs, sync::Arc};

pub(crate) fn open(xml: &str, toml: &str) -> Result<(Channel, Follower), Box<dyn Error>> {
    let program = Arc::new(Program::parse(xml)?);
    let mapper = Mapping::parse("mapping", toml)?.for_templates(&program, 1)?;
    let config = FollowerConfig::new(MarketConfig {
        book: BookConfig::by_level(20)?,
        recovery: RecoveryConfig::new(Numbering::Instrument),
        has_natural_refresh: false,
        source: 1,
    });
    let follower = Follower::new(config, mapper, Instruments::new(10_000));
    let channel = Channel::new(Decoder::new(program), ChannelConfig::new(1))?;
    Ok((channel, follower))
}

pub(crate) fn take(now: u64, mut events: Events<'_, '_>, follower: &mut Follower) -> Vec<String> {
    let mut changed = Vec::new();
    while let Some(event) = events.next() {
        follower.channel(now, &event, &mut |event: &Event| {
            // With its last event for an instrument, a message has changed the whole book.
            if event.flags.has(Flags::LAST) && !changed.contains(&event.instrument) {
                changed.push(event.instrument);
            }
        });
    }
    let line = |id: InstrumentId| {
        let (known, market) = (follower.instruments().get(id)?, follower.market());
        let symbol = String::from_utf8_lossy(known.definition.name.symbol);
        let best = |side| Some(market.book(id)?.best(side)?.price.to_string());
        let [bid, offer] = Side::BOTH.map(|side| best(side).unwrap_or("-".into()));
        Some(format!("{symbol} {bid} | {offer} {}", market.state(id)?))
    };
    changed.into_iter().filter_map(line).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let mut path = || args.next().ok_or("usage: books TEMPLATES MAPPING PACKET");
    let (xml, toml) = (fs::read_to_string(path()?)?, fs::read_to_string(path()?)?);
    let (bytes, (mut channel, mut follower)) = (fs::read(path()?)?, open(&xml, &toml)?);
    let events = channel.receive(Datagram {
        line: Line::A,
        now: 0,
        received: 0,
        offset: 0,
        bytes: &bytes,
    });
    println!("{}", take(0, events, &mut follower).join("\n"));
    Ok(())
}
