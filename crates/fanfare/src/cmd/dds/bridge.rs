//! `fanfare dds bridge`: a FIX gateway that exchanges messages with others over DDS.

use super::options::{DomainArgs, InstancesArg, QosArg, TransportArg};
use crate::cmd::fanout;
use crate::cmd::plant::{self, When};
use crate::usage::misuse;
use anyhow::{Result, bail};
use clap::{Args as _, FromArgMatches as _};
use fanfare_gateway::{Config, Dds, DdsEnd, DdsQos, DdsTransport, FanOut};
use std::process::ExitCode;

/// FIX over DDS: publish the messages of FIX producers, and fan out to FIX consumers those that
/// other gateways publish.
///
/// The command runs the service of `fanfare gateway` with a configuration for FIX over DDS.
///
/// Messages travel with their bodies as received, one topic for each MsgType(35), keyed by
/// Symbol(55). A message from DDS is not published again without --relay. With --relay, no message
/// loops: each names the gateway where it entered, and a gateway drops a message that it has
/// already seen.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    server: fanout::ServerArgs,
    #[command(flatten)]
    domain: DomainArgs,
    /// Domain to subscribe in, if it differs from the one to publish in.
    #[arg(long, value_name = "ID")]
    subscribe_domain: Option<u32>,
    /// Only fan out the messages that others publish.
    #[arg(long, conflicts_with = "no_subscribe")]
    no_publish: bool,
    /// Only publish.
    #[arg(long)]
    no_subscribe: bool,
    /// Publish received samples too: a link between two domains.
    #[arg(long)]
    relay: bool,
    /// Fan out and publish all messages of producers, not only those with FanoutID(20001).
    #[arg(long)]
    all: bool,
    /// MsgType(35) of the messages that go over DDS, separated by commas.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        default_value = "W,X,d,f,h"
    )]
    msg_types: Vec<String>,
    /// Prefix of topic names, followed by _ and MsgType(35).
    #[arg(long, value_name = "NAME", default_value = "Fix")]
    topics: String,
    /// Partition; gateways in different ones do not discover each other.
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// reliable: lost packets are sent again, and a subscriber that hangs delays a message by at
    /// most a tenth of a second. best-effort: lost packets are not sent again. last-value:
    /// reliable, and a gateway, or another program over DDS, that subscribes late receives the last
    /// message of each Symbol(55). Consumers receive only what comes after their Logon.
    #[arg(long, value_enum, default_value_t = QosArg::Reliable)]
    qos: QosArg,
    #[command(flatten)]
    instances: InstancesArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = configuration(args, When::Start)?;
    let (quiet, log) = (args.server.quiet, &args.server.log);
    let reread = || configuration(args, When::Reload);
    plant::run(&config, quiet, log, &reread)
}

fn configuration(args: &Args, when: When) -> Result<Config> {
    let mut config = args.server.configuration(when)?;
    let dds = args.dds()?;
    if config.dds == Dds::default() {
        config.dds = dds;
    } else if dds != Args::plain()?.dds()? {
        bail!("the configuration has [dds]: move the DDS options of the command line into it");
    }
    if args.all {
        config.fan_out = FanOut::All;
    }
    Ok(config)
}

impl Args {
    /// Returns the configuration of a command line without options.
    fn plain() -> Result<Self> {
        let command = Self::augment_args(clap::Command::new("bridge"));
        let matches = command.try_get_matches_from(["bridge"])?;
        Ok(Self::from_arg_matches(&matches)?)
    }

    fn dds(&self) -> Result<Dds> {
        let domain = &self.domain;
        let tcp = domain.transport == TransportArg::Tcp;
        if tcp && domain.peer.is_empty() && domain.tcp_port.is_none() {
            misuse!(
                "--transport tcp needs --peer or --tcp-port: participants are not discovered \
                 otherwise"
            );
        }
        let publish = DdsEnd {
            domain: self.domain.domain,
            interface: self.domain.interface.clone(),
            transport: match self.domain.transport {
                TransportArg::Udp => DdsTransport::Udp,
                TransportArg::Tcp => DdsTransport::Tcp,
                TransportArg::Mcast => DdsTransport::Mcast,
                TransportArg::Shm => {
                    misuse!("--transport shm is supported by publish and subscribe only")
                }
            },
            peers: self.domain.peer.clone(),
            tcp_port: self.domain.tcp_port.unwrap_or(0),
            topics: self.topics.clone(),
            partition: self.partition.clone(),
            msg_types: self.msg_types.clone(),
            qos: match self.qos {
                QosArg::Reliable => DdsQos::Reliable,
                QosArg::BestEffort => DdsQos::BestEffort,
                QosArg::LastValue => DdsQos::LastValue,
            },
            instances: self.instances.most,
            ..DdsEnd::default()
        };
        let subscribe = DdsEnd {
            domain: self.subscribe_domain.unwrap_or(publish.domain),
            ..publish.clone()
        };
        if self.relay && subscribe.domain == publish.domain {
            misuse!("--relay links two domains: --subscribe-domain is missing");
        }
        Ok(Dds {
            publish: (!self.no_publish).then_some(publish),
            subscribe: (!self.no_subscribe).then_some(subscribe),
            relay: self.relay,
        })
    }
}
