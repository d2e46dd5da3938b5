//! The options of a feed, which are those of `fanfare fast decode`.

use crate::cmd::fast::decode::{self, Arbitration, Network};
use crate::cmd::fast::options::{Framing, Sequence, Strictness, TEMPLATES_HELP, socket_address};
use crate::usage::misuse;
use anyhow::Result;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

/// The source of a feed, and its framing.
#[derive(Debug, clap::Args)]
pub(super) struct Feed {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    pub(super) templates: Option<String>,
    /// File to decode, - for stdin; twice for the recordings of two lines.
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Multicast group to receive, ADDRESS:PORT; twice for two lines with the same feed.
    #[arg(
        long, value_name = "ADDRESS:PORT", value_parser = socket_address,
        conflicts_with = "file"
    )]
    multicast: Vec<SocketAddrV4>,
    /// Capture (pcap or pcapng) to read datagrams from instead of the network: those to the groups
    /// of --multicast, or to the only address in it.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    framing: Framing,
    #[command(flatten)]
    pub(super) strictness: Strictness,
    /// Field with the sequence number: none, auto (tag 34, or MsgSeqNum, or SequenceNumber), a
    /// tag, or a name.
    #[arg(long, value_name = "FIELD", default_value = "auto")]
    sequence: Sequence,
    #[command(flatten)]
    arbitration: Arbitration,
    #[command(flatten)]
    network: Network,
}

/// The effect of an error on a feed that is played to its end.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Errors {
    /// Continue with the next packet after an error. The exit status is still 1.
    #[arg(long)]
    pub(super) keep_going: bool,
}

impl Feed {
    /// Returns whether a source of the feed is given.
    const fn has_source(&self) -> bool {
        !self.file.is_empty() || !self.multicast.is_empty() || self.pcap.is_some()
    }

    /// Returns the names of the files that are read.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let templates = self.templates.iter().map(Path::new);
        let feeds = self.file.iter().chain(&self.pcap);
        templates.chain(feeds.map(PathBuf::as_path))
    }

    /// Returns whether a feed is given at all.
    pub(super) const fn is_wanted(&self) -> bool {
        self.templates.is_some() || self.has_source()
    }

    /// Checks that templates and a source are given. Returns the templates.
    pub(super) fn check(&self) -> Result<&str> {
        match (&self.templates, self.has_source()) {
            (Some(templates), true) => Ok(templates),
            (None, _) => misuse!("--templates is missing: it names the templates of the feed"),
            (_, false) => misuse!("no feed is given: --file, --multicast or --pcap names one"),
        }
    }

    /// Returns the same options for `fast decode`, without messages written.
    pub(super) fn decoding(&self, keep_going: bool) -> decode::Args {
        decode::Args {
            templates: self.templates.clone().unwrap_or_default(),
            file: self.file.clone(),
            multicast: self.multicast.clone(),
            pcap: self.pcap.clone(),
            framing: self.framing.clone(),
            strictness: self.strictness,
            format: None,
            begin_string: String::new(),
            empty: false,
            keep_going,
            messages: None,
            sequence: self.sequence.clone(),
            arbitration: self.arbitration.clone(),
            network: self.network.clone(),
            json: false,
        }
    }
}
