//! Options that the commands share: the domain, the feed, its types and topics.

use crate::cmd::fast::options::{Reading, Strictness, TEMPLATES_HELP, load};
use crate::usage::misuse;
use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches, Id, ValueEnum};
use fanfare_dds::distribute::{Carrier, Distribution};
use fanfare_dds::fast::{Mapping, TemplateType, TypeOptions};
use fanfare_dds::types::is_scoped_name;
use fanfare_dds::{Domain, DomainConfig, INSTANCES, Liveliness, Policy, Qos, Transport, shm};
use std::sync::Arc;
use std::time::Duration;

/// The domain of the participant, and its transport.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DomainArgs {
    /// Domain id, 0 to 232.
    #[arg(long, value_name = "ID", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,
    /// Network interface, by name or address.
    #[arg(long, value_name = "NAME", default_value = "127.0.0.1")]
    pub(crate) interface: String,
    /// Transport of the samples.
    #[arg(long, value_enum, default_value_t = TransportArg::Udp)]
    pub(crate) transport: TransportArg,
    /// Another host with participants, ADDRESS or ADDRESS:PORT; may be repeated. With udp this host
    /// is always included.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<String>,
    /// With tcp: the port to listen on, which must be free [default: 13020 to publish, 13021 to
    /// subscribe, and the other one on the interface is a peer; for a bridge any port]
    #[arg(long, value_name = "PORT")]
    pub(crate) tcp_port: Option<u16>,
}

/// `--transport`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportArg {
    /// UDP unicast.
    Udp,
    /// TCP.
    Tcp,
    /// UDP multicast.
    Mcast,
    /// Shared memory, on this host only, for `publish` and `subscribe`; without --instances,
    /// --interface, --lease and --peer.
    Shm,
}

/// The options without effect in shared memory, each with the reason.
const NOT_OF_SHM: [(&str, &str); 4] = [
    ("instances", "shared memory has no limit of keys"),
    ("interface", "shared memory reaches this host only"),
    ("lease", "shared memory detects a dead process at once"),
    ("peer", "shared memory reaches this host only"),
];

/// Arguments of a participant, all of which have an effect with its transport.
#[derive(Debug)]
pub(crate) struct Fitting<T>(pub(crate) T);

/// Refuses an option that is given and has no effect with the transport.
fn check_transport(matches: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |id: &str| {
        let is_known = matches.ids().any(|known| known.as_str() == id);
        is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let transport = matches.get_one::<TransportArg>("transport").copied();
    let needs = |option: &str, transport: &str| {
        let text = format!("--{option} has no effect without --transport {transport}");
        Err(clap::Error::raw(ErrorKind::ArgumentConflict, text))
    };
    if transport != Some(TransportArg::Tcp) && is_given("tcp_port") {
        return needs("tcp-port", "tcp");
    }
    if transport == Some(TransportArg::Shm) {
        let Some((option, why)) = NOT_OF_SHM.into_iter().find(|(id, _)| is_given(id)) else {
            return Ok(());
        };
        let text = format!("--{option} has no effect with --transport shm: {why}");
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
    }
    match ["ring", "spin"].into_iter().find(|id| is_given(id)) {
        Some(option) => needs(option, "shm"),
        None => Ok(()),
    }
}

impl<T: FromArgMatches> FromArgMatches for Fitting<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        check_transport(matches)?;
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        check_transport(matches)?;
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: clap::Args> clap::Args for Fitting<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// The options of `--transport shm` alone.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ShmArgs {
    /// With shm: size in MiB of the ring for a publisher's samples, or a subscriber's echoes. A
    /// sample takes up to a quarter of it.
    #[arg(long, value_name = "MIB", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring: u32,
    /// With shm: receive threads spin all the time, each on a processor of its own, instead of
    /// sleeping after a millisecond without a sample.
    #[arg(long)]
    spin: bool,
}

/// Which side of a feed a participant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Publisher,
    Subscriber,
}

impl DomainArgs {
    pub(crate) fn open(&self, role: Role) -> Result<Domain> {
        if self.transport == TransportArg::Shm {
            misuse!("--transport shm is supported by publish and subscribe only");
        }
        Ok(Domain::open(&self.config(role))?)
    }

    /// Opens shared memory.
    fn shared(&self, shm: &ShmArgs) -> Result<Carrier> {
        let config = shm::Config::new(self.domain)?.ring((shm.ring as usize) << 20);
        Ok((&config.spin(shm.spin)).into())
    }

    pub(crate) fn config(&self, role: Role) -> DomainConfig {
        let mut config = DomainConfig {
            interface: self.interface.clone(),
            transport: match self.transport {
                TransportArg::Udp | TransportArg::Shm => Transport::Udp,
                TransportArg::Tcp => Transport::Tcp,
                TransportArg::Mcast => Transport::Multicast,
            },
            peers: self.peer.clone(),
            ..DomainConfig::new(self.domain)
        };
        if role == Role::Publisher {
            // It waits for acknowledgements once for all topics. Closed, each would wait again.
            config.linger = Duration::ZERO;
        }
        if self.transport == TransportArg::Tcp {
            let (own, other) = match role {
                Role::Publisher => (13_020, 13_021),
                Role::Subscriber => (13_021, 13_020),
            };
            config.tcp_port = self.tcp_port.unwrap_or(own);
            if self.peer.is_empty() {
                config.peers.push(format!("{}:{other}", self.interface));
            }
        }
        config
    }
}

/// The longest lease, in ms. Cyclone DDS takes up to an hour, and the lease of a process whose
/// writers assert theirs by writing is twice as long as theirs.
const LONGEST_LEASE: u64 = 1_800_000;

/// Parses the name of an IDL module, which may be in others: `A::B`.
fn idl_module(text: &str) -> Result<String, String> {
    match is_scoped_name(text) {
        true => Ok(text.to_owned()),
        false => Err("not a valid name in IDL".to_owned()),
    }
}

/// The set-up: the templates, and their topics.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FeedArgs {
    /// simple: a topic for each message type. complex: a MarketData and a QuoteRequest topic for
    /// each security, messages split by security.
    #[arg(value_enum)]
    pub(crate) setup: Setup,
    #[arg(short, long, value_name = "TEMPLATES", help = format!(
        "{TEMPLATES_HELP} [default: the builtin of the set-up]"
    ))]
    pub(crate) templates: Option<String>,
    #[command(flatten)]
    pub(crate) types: TypeArgs,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
    /// Securities that have topics of their own, counted from 0.
    #[arg(long, value_name = "COUNT", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) securities: u32,
    /// reliable: nothing is lost, and a full history makes the publisher wait. best-effort: a lost
    /// packet is not sent again. last-value: reliable, a late joiner receives the last value of
    /// each key, and a slow reader loses older values. With shm the history is the ring: with
    /// reliable a full one makes the publisher wait, otherwise its oldest samples are replaced, and
    /// with last-value a late joiner receives all that it holds.
    #[arg(long, value_enum, default_value_t = QosArg::Reliable)]
    pub(crate) qos: QosArg,
    #[command(flatten)]
    pub(crate) instances: InstancesArg,
    /// Do not send samples back to the publisher.
    #[arg(long)]
    pub(crate) no_echo: bool,
    /// How long, in ms, a peer may be silent before it is dropped: a stopped or disconnected peer
    /// delays its counterpart no longer than that. With udp, tcp and mcast; the subscriber's must
    /// not be shorter than the publisher's. It is at most half an hour [default: 10,000]
    #[arg(long, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(100..=LONGEST_LEASE))]
    pub(crate) lease: Option<u64>,
    /// With --lease: how a writer asserts its liveliness. automatic: its process, by running.
    /// participant: any writer of its process, by writing. topic: the writer, by writing; one that
    /// does not within the lease is reported as not alive until it writes again, and its process is
    /// dropped after twice as long [default: automatic]
    #[arg(long, value_enum, value_name = "KIND", requires = "lease")]
    pub(crate) liveliness: Option<LivelinessArg>,
}

/// The number of keys.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct InstancesArg {
    /// Keys that a topic may have, about 800 bytes each in a reader. A reader that receives more,
    /// or a key of more than 1,024 bytes, closes its topic, and the others continue; a publisher
    /// counts samples of more or longer keys instead of publishing them.
    #[arg(id = "instances", long = "instances", value_name = "COUNT", default_value_t = INSTANCES,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LivelinessArg {
    Automatic,
    Participant,
    Topic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Setup {
    Simple,
    Complex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QosArg {
    Reliable,
    BestEffort,
    LastValue,
}

/// The mapping of templates to types.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TypeArgs {
    /// Key samples by --key, and put all securities of a split template on one topic.
    #[arg(long)]
    pub(crate) keyed: bool,
    /// Name of the key field, in any case [default: SecurityID]
    #[arg(long, value_name = "FIELD", requires = "keyed")]
    pub(crate) key: Option<String>,
    /// A template whose last field is a sequence with this field in its entries is split: one
    /// sample for each of its values. none: no template is split [default: SecurityID]
    #[arg(long, value_name = "FIELD")]
    pub(crate) split: Option<String>,
    /// Decimals become {mantissa, exponent} instead of double.
    #[arg(long)]
    pub(crate) exact_decimals: bool,
    /// IDL module around the types.
    #[arg(long, value_name = "NAME", default_value = "Fanfare", value_parser = idl_module)]
    pub(crate) module: String,
}

impl TypeArgs {
    pub(crate) fn options(&self) -> TypeOptions {
        let split = self.split.as_deref().unwrap_or("SecurityID");
        TypeOptions {
            module: self.module.clone(),
            exact_decimals: self.exact_decimals,
            keyed: self.keyed,
            key: self.key_field().to_owned(),
            split: (split != "none").then(|| split.to_owned()),
        }
    }

    fn key_field(&self) -> &str {
        self.key.as_deref().unwrap_or("SecurityID")
    }

    /// Refuses options that these templates do not support.
    fn check(&self, mapping: &Mapping) -> Result<()> {
        // A split template has a key of its own, whatever its other fields are.
        let is_keyed = |of: &TemplateType| match &self.key {
            Some(field) => of.is_keyed_by(field),
            None => of.is_keyed(),
        };
        if self.keyed && !mapping.types().any(is_keyed) {
            let field = self.key_field();
            bail!("--keyed: no template has a field {field:?} (--key) that can be a key");
        }
        match self.split.as_deref() {
            Some(field) if field != "none" && !mapping.types().any(|t| t.is_split) => {
                bail!("--split: no template ends in a sequence with an integer {field:?}")
            }
            _ => Ok(()),
        }
    }
}

impl FeedArgs {
    /// Returns the types of the templates.
    pub(crate) fn mapping(&self) -> Result<Arc<Mapping>> {
        let builtin = match self.setup {
            Setup::Simple => "builtin:simple",
            Setup::Complex => "builtin:complex",
        };
        let templates = self.templates.as_deref().unwrap_or(builtin);
        mapping(templates, self.strictness.reading(), &self.types)
    }

    pub(crate) fn distribution(&self) -> Distribution {
        Distribution {
            keyed: self.types.keyed,
            securities: self.securities,
            echo: !self.no_echo,
            qos: self.policies(),
            ..Distribution::default()
        }
    }

    /// Returns whether lost samples are not sent again.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.qos == QosArg::BestEffort
    }

    fn policies(&self) -> Qos {
        let qos = match self.qos {
            QosArg::Reliable => Qos::reliable(),
            QosArg::BestEffort => Qos::best_effort(),
            QosArg::LastValue => Qos::last_value(),
        };
        let qos = qos.instances(self.instances.most);
        let Some(lease) = self.lease.map(Duration::from_millis) else {
            return qos;
        };
        qos.liveliness(match self.liveliness {
            None | Some(LivelinessArg::Automatic) => Liveliness::Automatic(lease),
            Some(LivelinessArg::Participant) => Liveliness::ManualByParticipant(lease),
            Some(LivelinessArg::Topic) => Liveliness::ManualByTopic(lease),
        })
    }

    /// Opens the transport of the feed.
    pub(crate) fn carrier(
        &self,
        domain: &DomainArgs,
        role: Role,
        shm: &ShmArgs,
    ) -> Result<Carrier> {
        match (domain.transport, self.lease) {
            (TransportArg::Shm, _) => domain.shared(shm),
            (_, None) => Ok((&domain.open(role)?).into()),
            (_, Some(ms)) => {
                let by_writing = matches!(
                    self.liveliness,
                    Some(LivelinessArg::Participant | LivelinessArg::Topic)
                );
                let lease = Duration::from_millis(ms) * if by_writing { 2 } else { 1 };
                let mut config = domain.config(role);
                config.lease = Some(lease);
                Ok((&Domain::open(&config)?).into())
            }
        }
    }
}

pub(crate) fn mapping(templates: &str, reading: Reading, types: &TypeArgs) -> Result<Arc<Mapping>> {
    let mapping = Mapping::new(load(templates, reading)?, &types.options())?;
    types.check(&mapping)?;
    Ok(Arc::new(mapping))
}

/// Returns a hint on which option to check when the policies of two sides do not match.
pub(crate) fn misfit(policy: Option<Policy>) -> String {
    match policy {
        Some(Policy::Liveliness) => "liveliness does not fit: are --lease and --liveliness".into(),
        Some(policy) => format!("{policy} does not fit: are --qos and the options of types"),
        None => "policies or types do not fit: are --qos and the options of types".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::dds::publish;
    use clap::Args as _;

    /// Returns why `dds publish` does not accept these options, if it does not.
    fn refusal(options: &str) -> Option<String> {
        let command = Fitting::<publish::Args>::augment_args(Command::new("publish"));
        let words = ["publish", "simple", "-f", "feed.dat"].into_iter();
        let words = words.chain(options.split_whitespace());
        let matches = command.try_get_matches_from(words).unwrap();
        let read = Fitting::<publish::Args>::from_arg_matches(&matches);
        read.err().map(|error| error.to_string())
    }

    #[test]
    fn topics_of_a_publisher_do_not_wait_one_by_one_at_the_end() {
        let command = DomainArgs::augment_args(Command::new("x"));
        let matches = command.get_matches_from(["x"]);
        let args = DomainArgs::from_arg_matches(&matches).unwrap();
        assert!(args.config(Role::Publisher).linger.is_zero());
        assert!(!args.config(Role::Subscriber).linger.is_zero());
    }

    #[test]
    fn an_option_that_the_transport_has_no_use_for_is_refused() {
        for options in [
            "",
            "--transport shm --ring 1 --spin --qos last-value --patience 1",
            "--transport tcp --tcp-port 7 --peer 127.0.0.1 --lease 500",
            "--transport mcast --instances 7 --patience 1 --interface lo",
        ] {
            assert_eq!(refusal(options), None, "{options}");
        }
        for (options, why) in [
            ("--tcp-port 7", "--tcp-port has no effect without"),
            ("--spin", "--spin has no effect without --transport shm"),
            ("--transport tcp --ring 8", "--ring has no effect without"),
            ("--transport shm --tcp-port 7", "without --transport tcp"),
            ("--transport shm --instances 7", "no limit of keys"),
            ("--transport shm --interface lo", "reaches this host only"),
            ("--transport shm --peer 10.0.0.1", "reaches this host only"),
            ("--transport shm --lease 500", "detects a dead process"),
        ] {
            let told = refusal(options).unwrap_or_default();
            assert!(told.contains(why), "{options}: {told}");
        }
    }
}
