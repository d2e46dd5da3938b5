//! A FAST feed: multicast lines, arbitrated and decoded once. Its messages are forwarded as FIX
//! messages to the consumers and to DDS, and as samples of their own types to a thread that
//! publishes them.

pub(crate) mod config;
mod fan;
pub(crate) mod feed_notice;
mod feeds;
mod files;
pub(crate) mod fix;
pub(crate) mod lines;
pub(crate) mod meters;
pub(crate) mod publish;
pub(crate) mod session;
mod source;
mod watermarks;

use crate::market::error::MarketError;
use fanfare_dds::Error as DdsError;
use fanfare_dds::fast::MappingError;
use fanfare_engine::feed::OpenError;
use fanfare_engine::tls::TlsError;
use fanfare_fast::TemplateError;
use fanfare_fix::dict::LoadError;
pub(crate) use feeds::Feeds;
pub(crate) use files::{check, mapping, templates, topics};
pub(crate) use fix::Tally;
pub(crate) use source::{FeedSource, Outlets};
use std::io;
pub(crate) use watermarks::Watermarks;

/// The reason why a feed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The template file could not be read.
    #[error("cannot read templates `{0}`")]
    Read(String, #[source] io::Error),
    /// No templates of this name are built in.
    #[error("unknown templates `{0}`: expected builtin:simple, builtin:complex or builtin:spectra")]
    NoBuiltin(String),
    /// The file has no usable templates.
    #[error("templates `{0}`")]
    Templates(String, #[source] TemplateError),
    /// A dictionary could not be read.
    #[error("cannot read dictionary `{0}`")]
    ReadDictionary(String, #[source] io::Error),
    /// The file is not a dictionary.
    #[error("dictionary `{0}`")]
    Dictionary(String, #[source] LoadError),
    /// The topics are to be keyed, and no template has the field.
    #[error("`feed.publish.keyed`: no template has a field {0:?} (`feed.publish.key`)")]
    Key(String),
    /// A template has no type on DDS.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A line could not be received, or the lines cannot be arbitrated.
    #[error(transparent)]
    Lines(#[from] OpenError),
    /// DDS could not be joined, or two topics of the feed have the same name.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// A FIX session cannot be opened, or a host of it has no address.
    #[error("session `{0}`")]
    Session(String, #[source] io::Error),
    /// The certificates of a FIX session cannot be used.
    #[error("`feed.fix.tls`")]
    Tls(#[from] TlsError),
    /// The key for a gateway of DBN's live protocol cannot be read, for this reason.
    #[error("`feed.live`: {0}")]
    LiveKey(String),
    /// The feed cannot become a market.
    #[error("market of the feed")]
    Market(#[from] MarketError),
    /// All feeds together may have more instruments than the plant has numbers.
    #[error(
        "the sum of `feed.book.most_instruments` of all feeds is {0}: too many for the numbers of \
         the plant"
    )]
    Instruments(u64),
}
