//! Options that several of the commands share.

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::RangedU64ValueParser;
use fanfare_engine::host::StoreKind;
use fanfare_engine::journal::{Durability, Options};
use fanfare_instruments::throughput::{
    MAX_MESSAGES, MAX_SESSIONS, MAX_THREADS, Orders, holds, segment_bytes,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::range::whole;

/// The orders sent, the same for both sides.
#[derive(ClapArgs)]
pub(crate) struct Load {
    /// Orders of each session.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    #[arg(value_parser = whole::<u64>(1..=MAX_MESSAGES))]
    pub(crate) messages: u64,
    /// Flat file of orders, one NewOrderSingle(D) per line: `tag=value` of its body, separated by
    /// `|`; lines that begin with `#` are comments. The file is repeated as needed [default:
    /// 20,000 built-in orders, those of `throughput orders`].
    #[arg(long, value_name = "FILE")]
    pub(crate) orders: Option<PathBuf>,
    /// Threads of each process that host sessions, 1 to 18.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole::<usize>(1..=MAX_THREADS as u64))]
    pub(crate) threads: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Load {
    pub(crate) fn orders(&self) -> Result<Arc<Orders>> {
        Ok(Arc::new(match &self.orders {
            Some(path) => Orders::read(path)?,
            None => Orders::built_in(),
        }))
    }

    /// Returns the same options for a child process.
    pub(crate) fn args(&self) -> Vec<String> {
        let (messages, threads) = (self.messages.to_string(), self.threads.to_string());
        let mut args = ["--messages", &messages, "--threads", &threads, "--json"]
            .map(str::to_owned)
            .to_vec();
        if let Some(path) = &self.orders {
            args.extend(["--orders".to_owned(), path.display().to_string()]);
        }
        args
    }
}

/// The persistence of the initiator's messages.
#[derive(ClapArgs)]
pub(crate) struct Store {
    /// Folder for the journals, which `throughput run` removes after each run, or `none` to persist
    /// nothing [default: a temporary folder, removed at the end].
    #[arg(long, value_name = "DIR|none")]
    pub(crate) store: Option<PathBuf>,
    /// When messages are written to disk, to survive a crash of the machine: `none` (when the
    /// system writes them back; a kill of the process loses nothing), `every` (before each is
    /// sent), or a number (after this many orders).
    #[arg(long, value_name = "none|every|N", default_value = "none", value_parser = durability)]
    durability: Durability,
    /// Size of a journal's segment, 64K to 1G. Each session has two in memory, the current one and
    /// the next [default: 4M up to 256 sessions, then less, so that all together have 2G].
    #[arg(long, value_name = "BYTES", value_parser = segment)]
    segment: Option<u32>,
    /// Segments that a journal keeps, 2 or more; the oldest is deleted for the newest.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = whole::<u32>(2..=1 << 20))]
    max_segments: u32,
    /// Start even if a journal has lost messages: intact messages are saved, and the damaged
    /// journal is kept beside the new one.
    #[arg(long)]
    accept_loss: bool,
}

impl Store {
    /// Returns whether nothing is persisted.
    pub(crate) fn is_none(&self) -> bool {
        self.store.as_deref() == Some(Path::new("none"))
    }

    /// Returns the store of each session, with its journal under `base`.
    pub(crate) fn kind(&self, base: &Path, sessions: usize) -> StoreKind {
        let options = Options {
            segment_bytes: self.segment(sessions),
            max_segments: self.max_segments,
            durability: self.durability,
            accept_loss: self.accept_loss,
            ..Options::default()
        };
        let options = options.full_from_the_start();
        if self.is_none() {
            StoreKind::NoResend(options.max_unsent)
        } else {
            StoreKind::Journal(base.to_owned(), options)
        }
    }

    fn segment(&self, sessions: usize) -> u32 {
        self.segment.unwrap_or_else(|| segment_bytes(sessions))
    }

    /// Returns whether the journals of `sessions` sessions keep `messages` orders each.
    pub(crate) fn holds(&self, orders: &Orders, messages: u64, sessions: usize) -> bool {
        holds(orders, messages, self.segment(sessions), self.max_segments)
    }

    /// Returns the same options for a child process, with the journals in `base`.
    pub(crate) fn args(&self, base: &Path) -> Vec<String> {
        let store = if self.is_none() {
            "none".to_owned()
        } else {
            base.display().to_string()
        };
        let durability = match self.durability {
            Durability::None => "none".to_owned(),
            Durability::Every => "every".to_owned(),
            Durability::EveryN(n) => n.to_string(),
        };
        let most = self.max_segments.to_string();
        let mut args = vec!["--store", &store, "--durability", &durability];
        args.extend(["--max-segments", &most]);
        let segment = self.segment.map(|bytes| bytes.to_string());
        if let Some(segment) = &segment {
            args.extend(["--segment", segment]);
        }
        if self.accept_loss {
            args.push("--accept-loss");
        }
        args.into_iter().map(str::to_owned).collect()
    }
}

/// Returns the parser of a number of sessions.
pub(crate) fn sessions() -> RangedU64ValueParser<usize> {
    whole(1..=MAX_SESSIONS as u64)
}

fn durability(text: &str) -> Result<Durability, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Durability::None),
        ("every", _) => Ok(Durability::Every),
        (_, Ok(n)) if n > 0 => Ok(Durability::EveryN(n)),
        _ => Err("must be `none`, `every` or a number of at least 1".to_owned()),
    }
}

/// Parses a size with an optional suffix `K`, `M` or `G`.
fn segment(text: &str) -> Result<u32, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 10),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 20),
        Some(b'G' | b'g') => (text.get(..text.len() - 1), 30),
        _ => (Some(text), 0),
    };
    let count = digits.and_then(|digits| digits.parse::<u32>().ok());
    count
        .and_then(|count| count.checked_mul(1 << shift))
        .filter(|bytes| (64 << 10..=1 << 30).contains(bytes))
        .ok_or_else(|| "must be a size between 64K and 1G, such as 4M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_policies_are_read_or_refused() {
        assert_eq!(segment("4M"), Ok(4 << 20));
        assert_eq!(segment("65536"), Ok(64 << 10));
        assert_eq!(segment("1g"), Ok(1 << 30));
        for bad in ["", "M", "63K", "2G", "4096M", "-1", "4 M", "€"] {
            assert!(segment(bad).is_err(), "{bad}");
        }
        assert_eq!(durability("100"), Ok(Durability::EveryN(100)));
        assert!(durability("0").is_err() && durability("some").is_err());
    }

    #[test]
    fn segments_of_all_sessions_together_are_bounded() {
        let store = Store {
            store: None,
            durability: Durability::None,
            segment: None,
            max_segments: 256,
            accept_loss: false,
        };
        let sizes = [1, 200, 256, 257, 1_000, 10_000].map(|sessions| store.segment(sessions) >> 10);
        assert_eq!(sizes, [4096, 4096, 4096, 2048, 1024, 64]);
        let orders = Orders::built_in();
        assert!(store.holds(&orders, 20_000, 200));
        assert!(!store.holds(&orders, 100_000_000, 1));
    }
}
