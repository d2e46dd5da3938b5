//! The plant as a service: FIX sessions, FAST feeds, DBN files and other plants as sources; books,
//! a log; FIX, DBN, DDS and Kafka as outlets.
//!
//! A [`Gateway`] is started from a [`Config`], as docs/gateway.md describes it.
//!
//! For the fan-out of FIX it listens on two ports. The ingress agent owns the producers' sessions
//! and writes each message that is fanned out, by default those that carry `FanoutID(20001)`, to a
//! broadcast ring; each feed has a ring of its own. Each worker owns a group of consumers'
//! sessions, reads the rings, puts each session's own header before the shared body and sends.
//! The configuration determines which agents share a thread.
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

mod config;
mod counts;
mod dbn;
mod dds;
mod edges;
mod fanout;
mod feed;
mod gateway;
mod history;
mod kafka;
mod market;
mod notice;
mod operator;
mod ports;
mod replay;
mod retry;
mod service;
mod stages;
#[cfg(test)]
mod test_log;
mod users;
mod watch;

pub use config::console::{ConsoleConfig, ConsoleTls};
pub use config::error::ConfigError;
pub use config::rotation::RotationConfig;
pub use config::{
    Config, FanOut, Idle, Limits, LogConfig, Mode, SlowConsumer, SlowPolicy, Threads,
};
pub use counts::total;
pub use dbn::DbnError;
pub use dbn::config::DbnConfig;
pub use dbn::server::DbnServer;
pub use dds::channels::{Channels, Identity, Verdict, epoch};
pub use dds::config::{Dds, DdsEnd};
pub use dds::endpoint::{DdsQos, DdsTransport};
pub use dds::sample::{FIX_MESSAGE, place_of_sample, sample_type as fix_message_type};
pub use edges::config::{Edge, FeedEdges};
pub use fanfare_engine::host::Refusal;
pub use fanout::hole::Missing;
pub use feed::FeedError;
pub use feed::config::{Feed, FeedTopics};
pub use feed::feed_notice::{ExchangeState, FeedNotice, MarketNotice, TemplateNotice};
pub use feed::lines::FeedLine;
pub use feed::session::config::{SessionFeed, SessionSource, SessionTls, Subscribe};
pub use gateway::Gateway;
pub use gateway::descriptors::{dbn_clients, descriptors_wanted};
pub use gateway::handle::GatewayHandle;
pub use gateway::reloaded::{Changes, Reloaded};
pub use gateway::start_error::StartError;
pub use history::config::{History, RawHistory, WhenBehind};
pub use kafka::config::{Kafka, KafkaBegin, KafkaFormat};
pub use market::config::{
    FeedBook, FeedBookKind, FeedNumbers, FeedReplay, ReplayKind, SnapshotLines,
};
pub use market::error::MarketError;
pub use market::ring::EventReader;
pub use market::states::StateCounts;
pub use notice::digest::Digest;
pub use notice::program_log::{LOG_TARGETS, LogFormat, LogTo, ProgramLog};
pub use notice::{MessageTrouble, Notice, NoticeReceiver, Outlet, PeerEnd, Rejection, Why};
pub use operator::{ConfigAsk, ConfigAsked, ConfigAsks, GatewayOperator};
pub use ports::config::{Pair, PortConfig, PortTls};
pub use ports::handle::PortHandle;
pub use replay::ReplayError;
pub use replay::config::{Replay, Speed, Turns};
pub use replay::feed_config::{FileFeed, FileSource};
pub use replay::file::{DbnFile, DbnFileError};
pub use replay::live::config::{LiveFeed, LiveRequest, LiveSource};
pub use service::{Contract, EntryTypes, Pattern};
pub use users::{Denied, LONGEST_PASSWORD, Lists, PortName, UserTables, UsersError, hash_password};
pub use watch::{lacks, state_name};

/// The tag that marks a message for all consumers. Its value is unique in a run, so that a capture
/// can pair incoming with outgoing messages.
pub use fanfare_fix::tag::FANOUT_ID;
