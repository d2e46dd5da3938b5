//! The plant as a service: FIX sessions, FAST feeds, DBN files and other plants as sources; books,
//! a log; FIX, DBN, DDS and Kafka as outlets.
//!
//! A [`Gateway`] is started from a [`Config`], as docs/gateway.md describes it.
//!
//! For the fan-out of FIX it listens on two ports. The ingress agent owns the producers' sessions
//! and writes each message that is fanned out, by default those that carry `FanoutID(20001)`, to a
//! broadcast ring; each feed has a ring of its own. Each worker owns a group of consumers'
//! sessions, reads the rings, puts each session's own header before the shared body and sends.
//! Which agents share a thread is configuration.
//!
//! ```
//! use fanfare_engine::stop::Stop;
//! use fanfare_gateway::{Config, Gateway};
//!
//! let mut config = Config::default();
//! config.producers.port = 0; // the kernel picks
//! config.consumers.port = 0;
//! let gateway = Gateway::start(&config, Stop::new())?;
//! assert_ne!(gateway.producers().port(), gateway.consumers().port());
//! gateway.stop().raise();
//! gateway.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod audience;
mod audit;
mod batch;
mod bridge;
mod config;
mod config_error;
mod console_config;
mod consumer;
mod counts;
mod dbn;
mod digest;
mod edges;
mod feed;
mod gateway;
mod gateway_handle;
mod history;
mod hole;
mod ingress;
mod kafka;
mod lag;
mod market;
mod notice;
mod numbering;
mod operator;
mod plan;
mod port_agent;
mod port_config;
mod port_handle;
mod program_log;
mod record;
mod registry;
mod reloaded;
mod replay;
mod reports;
mod retry;
mod rings;
mod rotation_config;
mod rules;
mod seats;
mod service;
mod source_rings;
mod stages;
mod stamp;
mod start_error;
#[cfg(test)]
mod test_log;
mod users;
mod versions;
mod watch;
mod which;
mod worker;

pub use bridge::channels::{Channels, Identity, Turn, epoch};
pub use bridge::config::{Dds, DdsEnd};
pub use bridge::endpoint::{DdsQos, DdsTransport};
pub use config::{
    Config, FanOut, Idle, Limits, LogConfig, Mode, SlowConsumer, SlowPolicy, Threads,
};
pub use config_error::ConfigError;
pub use console_config::{ConsoleConfig, ConsoleTls};
pub use counts::total;
pub use dbn::DbnError;
pub use dbn::config::DbnConfig;
pub use dbn::server::DbnServer;
pub use digest::Digest;
pub use edges::config::{Edge, FeedEdges};
pub use fanfare_engine::host::Refusal;
pub use feed::FeedError;
pub use feed::config::{Feed, FeedTopics};
pub use feed::feed_notice::{ExchangeState, FeedNotice, MarketNotice, TemplateNotice};
pub use feed::lines::FeedLine;
pub use gateway::{Gateway, descriptors_wanted};
pub use gateway_handle::GatewayHandle;
pub use history::config::{History, RawHistory, WhenBehind};
pub use hole::Missing;
pub use kafka::config::{Kafka, KafkaBegin, KafkaFormat};
pub use market::config::{
    FeedBook, FeedBookKind, FeedNumbers, FeedReplay, ReplayKind, SnapshotLines,
};
pub use market::error::MarketError;
pub use market::ring::EventReader;
pub use market::states::StateCounts;
pub use notice::{Notice, NoticeReceiver, Outlet, PeerEnd, Rejection, Why};
pub use operator::{ConfigAsk, ConfigAsked, ConfigAsks, GatewayOperator};
pub use port_config::{Pair, PortConfig, PortTls};
pub use port_handle::PortHandle;
pub use program_log::{LOG_TARGETS, LogFormat, LogTo, ProgramLog};
pub use reloaded::{Changes, Reloaded};
pub use replay::ReplayError;
pub use replay::config::{Replay, Speed, Turns};
pub use replay::feed_config::{FileFeed, FileSource};
pub use replay::file::{DbnFile, DbnFileError};
pub use rotation_config::RotationConfig;
pub use service::{Contract, EntryTypes, Pattern};
pub use start_error::StartError;
pub use users::{Denied, LONGEST_PASSWORD, Lists, PortName, UserTables, UsersError, hash_password};
pub use watch::{lacks, state_name};

/// The tag that marks a message for all consumers. Its value is unique in a run, so that a capture
/// can pair incoming with outgoing messages.
pub use fanfare_fix::tag::FANOUT_ID;
