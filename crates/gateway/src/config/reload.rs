//! The reload: the keys that a running gateway adopts from another configuration, and the names of
//! those that differ.

use super::{Config, Limits};
use crate::feed::config::Feed;
use crate::gateway::start_error::StartError;
use crate::notice::program_log::ProgramLog;
use crate::ports::config::PortConfig;

/// The name of a key, and whether the key is the same in both configurations.
type Key = (&'static str, bool);

/// The keys of a port, in the order of [`keys_of_port`].
const PRODUCERS: [&str; 7] = [
    "producers.bind",
    "producers.port",
    "producers.sessions",
    "producers.max_sessions",
    "producers.allow",
    "producers.tls",
    "producers.open",
];
const CONSUMERS: [&str; 7] = [
    "consumers.bind",
    "consumers.port",
    "consumers.sessions",
    "consumers.max_sessions",
    "consumers.allow",
    "consumers.tls",
    "consumers.open",
];

impl Config {
    /// Returns this configuration with the keys of another one that a running gateway can adopt.
    pub(crate) fn with_changes_of(&self, other: &Self) -> Self {
        Self {
            producers: port_with_changes(&self.producers, &other.producers),
            consumers: port_with_changes(&self.consumers, &other.consumers),
            limits: limits_with_changes(&self.limits, &other.limits),
            log: log_with_changes(&self.log, &other.log),
            feeds: self.feeds_with_mappings_of(other),
            ..self.with_users_of(other)
        }
    }

    /// Returns this configuration with the users and lists of another one.
    pub(crate) fn with_users_of(&self, other: &Self) -> Self {
        Self {
            users: other.users.clone(),
            users_file: other.users_file.clone(),
            lists: other.lists.clone(),
            ..self.clone()
        }
    }

    /// Checks this configuration, which has the keys of another one that a reload adopts.
    ///
    /// # Errors
    /// Returns `Kept` if keys differ that the reload does not adopt, and `Config` otherwise.
    pub(crate) fn check_with_changes_of(&self, other: &Self) -> Result<(), StartError> {
        self.check()
            .map_err(|error| match self.keys_changed(other) {
                kept if kept.is_empty() => error.into(),
                kept => StartError::Kept(kept, error),
            })
    }

    /// Returns the feeds, with the mappings that another configuration has for the same channels.
    fn feeds_with_mappings_of(&self, other: &Self) -> Vec<Feed> {
        let with_mapping = |feed: &Feed| {
            let mut feed = feed.clone();
            let mut others = other.feeds.iter();
            let same = others.find(|other| other.channel() == feed.channel());
            // Whether a feed is a market is fixed at the start.
            if let (Some(own), Some(new)) =
                (&mut feed.mapping, same.and_then(|f| f.mapping.as_ref()))
            {
                own.clone_from(new);
            }
            feed
        };
        self.feeds.iter().map(with_mapping).collect()
    }

    /// Returns the keys that differ in another configuration and that a running gateway cannot
    /// change.
    pub(crate) fn fixed_keys_changed(&self, other: &Self) -> Vec<&'static str> {
        // What is not adopted still differs.
        self.with_changes_of(other).keys_changed(other)
    }

    /// Returns the keys that differ in another configuration, without users, lists and mappings,
    /// which are reported by their own names.
    pub(crate) fn keys_changed(&self, other: &Self) -> Vec<&'static str> {
        keys_of_port(PRODUCERS, &self.producers, &other.producers)
            .into_iter()
            .chain(keys_of_port(CONSUMERS, &self.consumers, &other.consumers))
            .chain(self.keys_of_program(other))
            .chain(keys_of_limits(&self.limits, &other.limits))
            .chain(keys_of_log(&self.log, &other.log))
            .filter(|(_, is_same)| !is_same)
            .map(|(key, _)| key)
            .collect()
    }

    /// Compares the keys of the gateway as a whole, besides those of its ports, limits and log.
    fn keys_of_program(&self, other: &Self) -> impl Iterator<Item = Key> {
        // All are named, so that no new key is left out.
        let Self {
            producers: _,
            consumers: _,
            workers,
            threads,
            idle,
            pin,
            ring_bytes,
            limits: _,
            slow_consumer,
            fan_out,
            mode,
            dds,
            feeds: _,
            files,
            live,
            sessions,
            message_log,
            capture,
            edges,
            dbn,
            events,
            replay,
            history,
            kafka,
            audit,
            control,
            stages,
            console,
            log: _,
            users: _,
            users_file: _,
            lists: _,
        } = self;
        let feeds_are_same = self.feeds_with_mappings_of(other) == other.feeds
            && (files, live, sessions) == (&other.files, &other.live, &other.sessions);
        [
            ("workers", *workers == other.workers),
            ("threads", *threads == other.threads),
            ("idle", *idle == other.idle),
            ("pin", *pin == other.pin),
            ("ring_bytes", *ring_bytes == other.ring_bytes),
            ("slow_consumer", *slow_consumer == other.slow_consumer),
            ("fan_out", *fan_out == other.fan_out),
            ("mode", *mode == other.mode),
            ("dds", *dds == other.dds),
            ("feed", feeds_are_same),
            ("message_log", *message_log == other.message_log),
            ("capture", *capture == other.capture),
            ("edge", *edges == other.edges),
            ("dbn", *dbn == other.dbn),
            ("events", *events == other.events),
            ("replay", *replay == other.replay),
            ("history", *history == other.history),
            ("kafka", *kafka == other.kafka),
            ("audit", *audit == other.audit),
            ("control", *control == other.control),
            ("stages", *stages == other.stages),
            ("console", *console == other.console),
        ]
        .into_iter()
    }
}

/// Returns a port with the keys of another one that can change while the gateway runs.
fn port_with_changes(own: &PortConfig, other: &PortConfig) -> PortConfig {
    PortConfig {
        bind: own.bind,
        port: own.port,
        tls: own.tls.clone(),
        ..other.clone()
    }
}

/// Compares all keys of a port.
fn keys_of_port(names: [&'static str; 7], own: &PortConfig, other: &PortConfig) -> [Key; 7] {
    let PortConfig {
        bind,
        port,
        sessions,
        max_sessions,
        allow,
        tls,
        open,
    } = own;
    let are_same = [
        *bind == other.bind,
        *port == other.port,
        *sessions == other.sessions,
        *max_sessions == other.max_sessions,
        *allow == other.allow,
        *tls == other.tls,
        *open == other.open,
    ];
    std::array::from_fn(|i| (names[i], are_same[i]))
}

/// Returns limits with those of others that can change while the gateway runs.
fn limits_with_changes(own: &Limits, other: &Limits) -> Limits {
    Limits {
        message_bytes: own.message_bytes,
        ..other.clone()
    }
}

/// Compares what a reload adopts of limits, and what it does not.
fn keys_of_limits(own: &Limits, other: &Limits) -> [Key; 2] {
    let adopted = limits_with_changes(own, other);
    [
        ("limits", adopted == *own),
        ("limits.message_bytes", adopted == *other),
    ]
}

/// Returns the configuration of a log with the keys of another one that can change while it is
/// written.
fn log_with_changes(own: &ProgramLog, other: &ProgramLog) -> ProgramLog {
    ProgramLog {
        level: other.level.clone(),
        ..own.clone()
    }
}

/// Compares what a reload adopts of the log's configuration, and what it does not.
fn keys_of_log(own: &ProgramLog, other: &ProgramLog) -> [Key; 2] {
    let adopted = log_with_changes(own, other);
    [("log.level", adopted == *own), ("log", adopted == *other)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(text).unwrap()
    }

    /// Returns the keys that a reload changes, and those that only a new start changes.
    fn changed(old: &str, new: &str) -> [Vec<&'static str>; 2] {
        let (old, new) = (config(old), config(new));
        let adopted = old.keys_changed(&old.with_changes_of(&new));
        [adopted, old.fixed_keys_changed(&new)]
    }

    #[test]
    fn what_a_reload_does_not_change_is_named() {
        let text = "workers = 2\n[limits]\nlogon_timeout_s = 3\n\
                    [producers]\nport = 3000\nbind = \"127.0.0.2\"\n\
                    sessions = [{ sender = \"A\", target = \"B\" }]\n[consumers]\nport = 4\n";
        let expected = [
            vec!["producers.sessions", "limits"],
            vec!["producers.bind", "consumers.port", "workers"],
        ];
        assert_eq!(changed("", text), expected);
        assert_eq!(changed(text, text), [[""; 0]; 2]);
    }

    #[test]
    fn a_table_of_which_a_reload_changes_a_part_is_named_by_both_parts() {
        let text = "[limits]\nmessage_bytes = 300\nheartbeat_max_s = 5\n\
                    [log]\nlevel = \"debug\"\nformat = \"json\"\n\
                    [consumers]\nmax_sessions = 3\nallow = [\"10.0.0.0/8\"]\nopen = true\n\
                    tls = { certificate = \"a\", key = \"b\" }\n";
        let expected = [
            vec![
                "consumers.max_sessions",
                "consumers.allow",
                "consumers.open",
                "limits",
                "log.level",
            ],
            vec!["consumers.tls", "limits.message_bytes", "log"],
        ];
        assert_eq!(changed("", text), expected);
    }

    #[test]
    fn keys_that_need_a_new_start_are_named_in_order() {
        let text = "threads = \"dedicated\"\nidle = \"spin\"\npin = [0]\nring_bytes = 131072\n\
                    fan_out = \"all\"\nmode = \"subscriptions\"\ncapture = \"c\"\naudit = \"a\"\n\
                    control = \"s\"\nstages = false\n[limits]\nmessage_bytes = 256\n\
                    [slow_consumer]\npolicy = \"drop\"\n[message_log]\nfolder = \"f\"\n\
                    [console]\n";
        let of_table = "[limits]\nmessage_bytes = 256\n";
        let expected = [
            vec![],
            vec![
                "threads",
                "idle",
                "pin",
                "ring_bytes",
                "slow_consumer",
                "fan_out",
                "mode",
                "message_log",
                "capture",
                "audit",
                "control",
                "stages",
                "console",
            ],
        ];
        assert_eq!(changed(of_table, text), expected);
    }

    #[test]
    fn keys_of_markets_and_their_outlets_need_a_new_start() {
        let text = "events = \"e\"\n[[feed]]\ndbn = \"f.dbn\"\n[[edge]]\nchannel = \"one\"\n\
                    [dbn]\n[history]\nfolder = \"h\"\n[dds.publish]\n";
        let expected = ["dds", "feed", "edge", "dbn", "events", "history"];
        assert_eq!(changed("", text), [vec![], expected.to_vec()]);
        let replayed = "[replay]\nlog = \"l\"\n";
        assert_eq!(changed("", replayed), [vec![], vec!["replay"]]);
    }

    #[test]
    fn an_error_names_what_a_reload_keeps() {
        let text = "[[feed]]\ndbn = \"f.dbn\"\n[dbn]\nbind = \"0.0.0.0\"\n";
        let old = config(&format!("users = \"u\"\n{text}"));
        let new = config(&format!("{text}open = true\n"));
        for adopted in [old.with_changes_of(&new), old.with_users_of(&new)] {
            let StartError::Kept(kept, error) = adopted.check_with_changes_of(&new).unwrap_err()
            else {
                panic!("another error");
            };
            assert_eq!(kept, ["dbn"]);
            assert!(error.to_string().starts_with("`dbn.bind` = 0.0.0.0: "));
        }
        old.with_changes_of(&old)
            .check_with_changes_of(&old)
            .unwrap();
    }

    #[test]
    fn of_a_feed_only_the_mapping_is_adopted() {
        let feed = |mapping: &str, rest: &str| {
            format!(
                "[feed]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.1.1:5000\"]\n\
                 mapping = \"{mapping}\"\n{rest}"
            )
        };
        let (old, new) = (feed("builtin:spectra", ""), feed("builtin:fix", ""));
        assert_eq!(changed(&old, &new), [[""; 0]; 2]);
        for key in ["lenient", "lenient_templates"] {
            let other = feed("builtin:fix", &format!("{key} = true\n"));
            assert_eq!(changed(&old, &other), [vec![], vec!["feed"]]);
        }
    }
}
