//! A FIX session as a feed: the gateway logs on to a counterparty that serves market data, requests
//! it, and keeps books of its answers.
//!
//! The session has a thread of its own, whose [`handler`] sends the requests and hands the messages
//! through a ring ([`link`]) to the thread of the feeds, which keeps the books ([`market`]).

pub(crate) mod config;
mod handler;
mod link;
mod market;
mod subscriptions;
#[cfg(test)]
mod tests;

use crate::counts::SourceCounts;
use crate::feed::FeedError;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::gateway::plan::Plan;
use crate::history::KnownInstruments;
use crate::market::error::MarketError;
use crate::market::place::Place;
use crate::market::{password, read_instruments, session_mapper};
use crate::notice::Notice;
use config::{SessionFeed, SessionSource, split};
use fanfare_engine::agent::Agent;
use fanfare_engine::host::{Host, Initiator};
use fanfare_engine::poll::Waker;
use fanfare_engine::tcp::NamedHost;
use fanfare_engine::tls::{Identity, TlsClient};
use fanfare_fix::session::{Config, SessionId, Version};
use fanfare_fix::tag;
use fanfare_market::{Instruments, SessionFollower};
use handler::Source;
use link::link;
pub(crate) use market::SessionMarket;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use subscriptions::{Subscriptions, Terms};

/// The longest request that is sent, in bytes.
const LONGEST_REQUEST: usize = 64 << 10;

const MS: u64 = 1_000_000;

/// Opens a session, whose messages wake the thread of the feeds. Returns its market, and the agent
/// of its thread.
pub(crate) fn open(
    feed: &SessionFeed,
    place: Place,
    known: &KnownInstruments,
    (ring_bytes, waker): (usize, &Waker),
    plan: Plan<'_>,
) -> Result<(SessionMarket, Box<dyn Agent>), FeedError> {
    let follower = follower(feed, place.source, known)?;
    let channel: Arc<str> = feed.channel.as_str().into();
    let hosts = find(&feed.source, |what| {
        let (channel, is_trouble) = (Arc::clone(&channel), true);
        let what = MarketNotice::Session { what, is_trouble };
        let notice = FeedNotice::Market { channel, what };
        plan.notices.send(Notice::Feed(notice));
    });
    let initiator = initiator(&feed.source, hosts, plan.message_bytes)?;
    let (writer, reader) = link(ring_bytes, waker.clone());
    let terms = terms(feed);
    let subscriptions = Subscriptions::new(terms.clone(), feed.source.symbols());
    let counts = SourceCounts::new(plan.counters, &channel);
    let told = (Arc::clone(&channel), plan.notices.clone());
    let source = Source::new(writer, terms, subscriptions, counts, told);
    let cannot = |error: io::Error| FeedError::Session(feed.channel.clone(), error);
    let name = format!("feed {channel}");
    let mut host = Host::new(source).map_err(cannot)?.named(name);
    let hosted = host.initiate(initiator);
    hosted.map_err(|error| cannot(io::Error::other(error)))?;
    let ends = (reader, host.handle().waker());
    let market = SessionMarket::new(ends, (channel, place.base), follower, plan);
    Ok((market, Box::new(host)))
}

/// Reads the files that a session names. Opens no socket.
pub(crate) fn check(feed: &SessionFeed) -> Result<(), FeedError> {
    follower(feed, 0, &KnownInstruments::default())?;
    initiator(&feed.source, Vec::new(), 1 << 16).map(|_| ())
}

fn terms(feed: &SessionFeed) -> Terms {
    let source = &feed.source;
    Terms {
        depth: source.depth,
        entry_types: source.entry_types.clone(),
        full_refresh: source.full_refresh,
        by_order: feed.book.kind == crate::market::config::FeedBookKind::Orders,
        per_request: source.per_request,
        most: feed.book.most_instruments as usize,
        retry: source.retry_ms.saturating_mul(MS),
    }
}

fn follower(
    feed: &SessionFeed,
    source: u16,
    known: &KnownInstruments,
) -> Result<SessionFollower, MarketError> {
    let config = feed.follower(source)?;
    let versions = feed.source.versions();
    let version = versions.map_or(fanfare_fix::dict::Version::Fix50Sp2, |(own, ..)| own);
    let mapper = session_mapper(&feed.mapping, version, source)?;
    let mut table = Instruments::new(feed.book.most_instruments as usize);
    known.define(&feed.channel, &mut table);
    read_instruments(&feed.book, &mut table)?;
    Ok(SessionFollower::new(config, mapper, table))
}

/// Looks up the hosts of a session. One that is not found is told, and looked up again in front of
/// each attempt to connect.
fn find(source: &SessionSource, tell: impl Fn(String)) -> Vec<NamedHost> {
    let hosts = source.hosts.iter().filter_map(|host| split(host));
    let find = |(name, port): (&str, u16)| {
        let addresses = match (name, port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                tell(format!("{name} is not found yet: {error}"));
                Vec::new()
            }
        };
        NamedHost {
            name: name.to_owned(),
            port,
            addresses,
        }
    };
    hosts.map(find).collect()
}

fn initiator(
    source: &SessionSource,
    hosts: Vec<NamedHost>,
    message_bytes: usize,
) -> Result<Initiator, FeedError> {
    let versions = source.versions();
    let session = versions.map_or(Version::Fixt11, |(_, session, _)| session);
    let mut config = Config::new(SessionId::new(session, &source.sender, &source.target));
    if let Some((_, _, appl)) = versions {
        config.default_appl_ver_id = appl;
    }
    config.reset_on_logon = source.reset;
    config.heart_bt_int = source.heartbeat_s;
    config.max_message = message_bytes;
    config.max_send = LONGEST_REQUEST;
    let password = password(source.password_file.as_deref())?;
    let fields = [
        (tag::USERNAME, source.username.clone()),
        (tag::PASSWORD, password),
    ];
    for (tag, value) in fields {
        if let Some(value) = value {
            config.logon_fields.push((tag, value.into_bytes().into()));
        }
    }
    let addresses = hosts.iter().flat_map(|host| host.addresses.iter().copied());
    let addresses: Vec<SocketAddr> = addresses.collect();
    let mut initiator = Initiator::new(config, addresses);
    if let Some(tls) = &source.tls {
        initiator = initiator.tls(client(source, tls, &hosts)?);
    }
    initiator.names = hosts;
    Ok(initiator)
}

/// Reads the certificates of a session.
fn client(
    source: &SessionSource,
    tls: &config::SessionTls,
    hosts: &[NamedHost],
) -> Result<TlsClient, FeedError> {
    let first = source.hosts.first().and_then(|host| split(host));
    let first = first.map_or("", |(name, _)| name);
    let identity = tls.certificate.as_ref().zip(tls.key.as_ref());
    let identity = identity.map(|(certificates, key)| Identity {
        certificates: certificates.clone(),
        key: key.clone(),
    });
    let name = tls.name.as_deref();
    let mut client = TlsClient::new(&tls.ca, name.unwrap_or(first), identity.as_ref())?;
    if name.is_none() {
        // Of hosts that are not found yet, no address is known.
        client.expect_each_host();
        for host in hosts {
            for address in &host.addresses {
                client.expect_at(*address, &host.name)?;
            }
        }
    }
    Ok(client)
}
