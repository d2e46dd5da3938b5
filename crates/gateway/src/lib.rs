//! The FIX fan-out gateway: producers' sessions in, each marked message encoded once, many
//! consumers' sessions out.
//!
//! A [`Gateway`] listens on two ports. The ingress agent owns the producers' sessions; a message
//! that carries `FanoutID(20001)` goes into one broadcast ring. Each worker owns a group of
//! consumers' sessions and reads the ring: it puts each session's own header in front of the
//! shared body and sends. Which agents share a thread is configuration.
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

mod batch;
mod bridge;
mod config;
mod counts;
mod digest;
mod feed;
mod gateway;
mod greeter;
mod hole;
mod ingress;
mod lobby;
mod notice;
mod peer;
mod peers;
mod record;
mod registry;
mod rules;
mod seats;
mod source_rings;
mod versions;
mod worker;

pub use bridge::channels::{Channels, Identity, Turn, epoch};
pub use bridge::config::{Dds, DdsEnd};
pub use bridge::endpoint::{DdsQos, DdsTransport};
pub use config::{
    Config, ConfigError, FanOut, Idle, Limits, Pair, PortConfig, SlowConsumer, SlowPolicy, Threads,
};
pub use digest::Digest;
pub use feed::FeedError;
pub use feed::config::{Feed, FeedLine, FeedTopics};
pub use feed::feed_notice::{ExchangeState, FeedNotice};
pub use gateway::{Gateway, StartError, descriptors_wanted, total};
pub use hole::Missing;
pub use notice::{Notice, NoticeReceiver, Outlet, PeerEnd, Refusal, Rejection, Why};

/// The mark of a message for all consumers. Its value is unique in a run, so that a capture can
/// pair what came in with what went out.
pub use fanfare_fix::codec::tags::FANOUT_ID;
