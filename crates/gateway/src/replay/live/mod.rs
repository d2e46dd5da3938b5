//! A gateway of DBN's live protocol as a feed: this one connects to it as its client.
//!
//! A thread of its own connects, authenticates, subscribes and converts the records ([`follow`]).
//! Their messages go through the channel of a file's pieces to the thread of the feeds. While that
//! is full, nothing is read from the connection: what the gateway does with a slow client applies.

mod client;
pub(crate) mod config;
mod follow;
mod thread;
mod trades;

use super::config::Speed;
use super::cursor::Cursor;
use super::dbn::DbnPlace;
use super::file_market::FileMarket;
use super::piece;
use crate::feed::FeedError;
use crate::gateway::plan::Plan;
use crate::users::DbnKey;
use config::{LiveFeed, LiveSource};
use fanfare_engine::poll::Waker;
use fanfare_market::BookConfig;
use std::io;
use std::sync::Arc;
use thread::Live;

/// Starts the thread of a feed. It wakes the thread of the feeds by `waker`. `books` has the books
/// of all feeds.
pub(crate) fn open(
    feed: &LiveFeed,
    place: DbnPlace,
    books: &[BookConfig],
    waker: &Waker,
    plan: Plan<'_>,
) -> Result<FileMarket, FeedError> {
    let key = key(&feed.source)?;
    let (sender, pieces) = piece::channel();
    let life = Arc::new(());
    let live = Live::new(feed, key, place, (sender, waker.clone()), &life, plan);
    let thread = std::thread::Builder::new().name(format!("feed {}", feed.channel));
    let cannot = |error: io::Error| FeedError::Session(feed.channel.clone(), error);
    thread.spawn(move || live.run()).map_err(cannot)?;
    let ends = (Cursor::new(pieces, Speed::Max), life);
    Ok(FileMarket::new(&feed.channel, ends, place, books, plan))
}

/// Reads the key of a feed. Opens no socket.
pub(crate) fn check(feed: &LiveFeed) -> Result<(), FeedError> {
    key(&feed.source).map(drop)
}

fn key(source: &LiveSource) -> Result<DbnKey, FeedError> {
    let (key, of) = match (&source.key_file, &source.key_env) {
        (Some(file), _) => (DbnKey::read(file), format!("file `{}`", file.display())),
        (None, Some(name)) => (DbnKey::of_env(name), format!("variable `{name}`")),
        // The configuration was checked.
        (None, None) => (Err("is not set".to_owned()), "`key_file`".to_owned()),
    };
    key.map_err(|why| FeedError::LiveKey(format!("{of} {why}")))
}
