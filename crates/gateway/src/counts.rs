//! The gateway's counters, by agent. Each has one writer and any number of readers.

use crate::feed::Tally;
use crate::notice::{Notice, Notices};
use fanfare_dds::Status;
use fanfare_engine::counters::{Counter, Counters, Kind};
use std::sync::{Arc, Mutex};

/// Returns the sum of a counter over all agents of a gateway that have a counter of this name.
/// Counters that were cloned before [`Gateway::join`](crate::Gateway::join) keep their last values.
#[must_use]
pub fn total(counters: &Counters, name: &str) -> u64 {
    let all = counters.snapshot();
    let of_name = all.iter().filter(|reading| reading.name == name);
    of_name.map(|reading| reading.value).sum()
}

/// Expands to the kind of a counter: a count, or a gauge if marked `now`.
macro_rules! kind {
    () => {
        Kind::Count
    };
    (now) => {
        Kind::Gauge
    };
}

/// Declares the counters of a part of the gateway: the field, the name, and the description.
macro_rules! counts {
    (
        $(#[$about:meta])*
        $name:ident: $( $field:ident = $label:literal, $($now:ident:)? $what:literal; )*
    ) => {
        $(#[$about])*
        pub(crate) struct $name {
            $( #[doc = $what] pub(crate) $field: Counter, )*
        }

        impl $name {
            /// Registers the counters of the agent or port `of`. An empty name stands for the
            /// gateway.
            pub(crate) fn new(counters: &Counters, of: &str) -> Self {
                Self {
                    $( $field: counters.add_of(of, $label, kind!($($now)?), $what), )*
                }
            }
        }
    };
}

counts! {
    /// The counters of a port.
    PortCounts:
    refused = "refused", "connections refused before they had a session";
    waiting = "waiting", now: "current connections that have not logged on";
}

counts! {
    /// The counters of a host of sessions.
    SessionCounts:
    logons = "logons", "sessions that logged on";
    ended = "ended", "sessions that ended, of those that logged on";
    failed = "failed_logons", "sessions that ended before they were logged on";
    connections = "connections", now: "current connections with a session";
    rejects = "rejects", "messages that counterparties rejected (3 and j)";
}

counts! {
    /// The counters of ingress.
    IngressCounts:
    received = "received", "application messages from producers";
    marked = "marked", "messages with FanoutID(20001), written to the ring";
    unroutable = "unroutable", "marked messages that do not fit into the ring";
}

counts! {
    /// The counters of a worker.
    WorkerCounts:
    deliveries = "deliveries", "messages passed to consumers' connections";
    dropped = "dropped", "messages left out because a consumer's queue was full";
    skipped = "skipped", "updates of subscriptions skipped because a consumer's queue was full";
    slow = "slow_consumers", "consumers disconnected because their queue was full";
    lapped = "events_lapped", "market events overwritten before the worker read them";
}

counts! {
    /// The counters of the log of market events.
    HistoryCounts:
    events = "log_written", "market events written to the log";
    lost = "log_missed", "market events that the log lacks: it was behind, or the disk full";
    commits = "log_commits", "writes to the log";
    bytes = "log_bytes", "bytes written to the log";
    failures = "log_failures", "writes to the log that the system refused";
}

counts! {
    /// The counters of the raw log.
    RawCounts:
    pieces = "raw_written", "datagrams and messages written to the raw log";
    lost = "raw_missed",
        "datagrams and messages that the raw log lacks: it was behind, or the disk full";
    failures = "raw_failures", "writes to the raw log that the system refused";
}

counts! {
    /// The counters of the log's keeper.
    KeeperCounts:
    checkpoints = "log_checkpoints", "checkpoints of all books";
    compacted = "log_compacted", "segments compacted";
    removed = "log_removed", "segments removed by retention";
    damaged = "log_damaged", "damaged segments, which cannot be compacted";
    number = "log_followed", now: "number of the event up to which the log was followed";
}

counts! {
    /// The counters of the DDS publisher.
    PublishCounts:
    published = "published", "messages written to DDS";
    relayed = "relayed", "messages from DDS that were published again";
    unsent = "unsent", "messages left out because a subscriber did not acknowledge in time";
    left = "left_at_stop", "messages that subscribers had not received at the stop";
    overrun = "overrun", "messages overwritten before the DDS publisher read them";
    other_types = "other_types", "messages whose MsgType(35) has no topic";
    refused = "symbols_refused",
        "messages of symbols beyond the limit of the topic, longer than 1,015 bytes, or with a NUL";
}

counts! {
    /// The counters of the DDS subscriber.
    SubscribeCounts:
    received = "taken", "messages taken from DDS for the consumers";
    own = "own", "dropped samples of this gateway, or of the feed that it receives itself";
    before = "seen_before", "dropped samples that had been received before";
    other = "from_another", "dropped messages of a feed that another gateway had delivered";
    behind = "behind", "dropped messages of a gateway too far behind the others of its feed";
    missing = "missing", "messages numbered by other gateways and not received";
    feed_gaps = "feed_gaps", "places where other gateways lack messages of their feeds";
    overtaken = "overtaken", "messages delivered after later ones of their gateway";
    bad = "malformed", "dropped samples that contain no message";
    closed = "topics_closed", "topics closed because their writers had too many keys";
}

counts! {
    /// The counters of a feed.
    FeedCounts:
    datagrams = "datagrams", "datagrams of all lines";
    messages = "decoded", "messages decoded, each once";
    missing = "gaps", "sequence numbers that were on no line";
    bad_packets = "undecodable", "packets whose rest could not be decoded";
    unusable = "unusable", "packets whose numbers could not be used";
    restarts = "restarts", "restarts of the sequence numbers of a feed";
    strangers = "strangers", "datagrams from senders other than the line's source";
    kernel_drops = "kernel_drops", "datagrams that the kernel dropped";
    unread = "unread", "datagrams in the kernel's buffer when the gateway stopped";
}

counts! {
    /// The counters of a feed's market.
    MarketCounts:
    events = "market_events", "market events";
    snapshots = "snapshot_packets", "datagrams of the lines with snapshots";
    bad_snapshots = "snapshots_bad", "snapshots and packets of their lines that could not be read";
    snapshot_drops = "snapshot_drops", "datagrams with snapshots that the kernel dropped";
    live = "instruments_live", now: "current instruments whose books are complete";
    recovering = "instruments_recovering", now: "current instruments that are recovering";
    stale = "instruments_stale", now: "current instruments whose lines are silent";
    closed = "instruments_closed", now: "current instruments that are not traded any more";
    instruments = "instruments", now: "instruments of the feed";
    refused = "instruments_beyond", "instruments and events beyond the limit";
    faults = "book_faults", "changes that a book refused, or after which it was crossed";
    recoveries = "recoveries", "recoveries that began";
    recovered = "recovered", "recoveries that were completed";
    taken = "snapshots_used", "snapshots that books were rebuilt from";
    dropped = "changes_discarded", "waiting changes that were dropped, at the limit or at a reset";
    left_out = "entries_unmapped",
        "entries that match no rule, or name no instrument, or one that was never defined";
    errors = "value_errors", "values that no event can represent";
    requests = "replay_requests", "requests sent to the replay";
    given_up = "replay_given_up", "messages that the replay did not deliver";
}

counts! {
    /// The counters of the publisher of the feed's decoded messages. No other counter's name ends
    /// like theirs.
    TopicsCounts:
    samples = "samples", "samples of decoded messages written";
    unsent = "samples_not_sent",
        "samples left out because a subscriber did not acknowledge in time";
    left = "samples_left", "samples that subscribers had not received at the stop";
    overrun = "samples_overwritten",
        "samples overwritten before they were published on topics of the feed";
    no_topic = "no_topic", "samples of securities without a topic";
    refused = "samples_of_more_keys",
        "samples of keys beyond the limit of the topic, or longer than 1,024 bytes";
}

counts! {
    /// The counters of a FIX session, or of one with a gateway of DBN, that is a feed.
    SourceCounts:
    logged_on = "source_logged_on", now: "whether the session is logged on: 1 or 0";
    logons = "source_logons", "Logons of the session";
    ended = "source_ended", "ends of the session, of those that were logged on";
    heard = "source_heard_ms", now: "time of the last message, since 1970; 0: none";
    messages = "source_messages", "application messages of the session, without refusals";
    requests = "source_requests", "requests sent";
    refused = "source_refused", "requests that the counterparty refused";
    losses = "source_losses",
        "losses of messages within the session, after which all is requested anew";
}

counts! {
    /// The counters of events that the thread of the feeds could not pass to the publisher of
    /// market events.
    RelayCounts:
    too_long = "edge_too_long", "packets and snapshots too long for the ring to the edges";
}

counts! {
    /// The counters of the publisher of a feed's market events.
    EdgesCounts:
    samples = "edge_written", "samples of market events written for edges";
    snapshots = "edge_snapshots_written", "snapshots of instruments written for edges";
    overrun = "edge_lapped", "samples overwritten before they were written for edges";
    unsent = "edge_untaken", "samples for edges that DDS did not accept in time";
    beyond = "edge_beyond", "samples for edges beyond a limit of their topic, as that of keys";
}

counts! {
    /// The counters of an edge.
    EdgeCounts:
    samples = "edge_read", "samples of market events from other gateways";
    bad = "edge_unreadable",
        "samples from other gateways that contain no event, or one for another kind of book";
    lost = "edge_samples_lost", "samples numbered by other gateways and not received";
    plants = "edge_plants", now: "current gateways that publish the feed";
    lacking = "edge_lacking", now: "instruments that the gateway in use does not know";
    gaps = "edge_unbrought", "messages of the feed that no gateway delivered";
    ignored = "edge_passed_over", "packets of gateways that lack what the one in use knows";
    closed = "edge_topics_left", "topics closed because their writers had too many keys";
}

counts! {
    /// The counters of a line of a feed. All are set ten times a second.
    LineCounts:
    packets = "line_packets", "datagrams of the line";
    bytes = "line_bytes", "bytes in the datagrams of the line";
    first = "line_first", "packets with new content";
    duplicate = "line_duplicate", "packets that another line had delivered before";
    late = "line_late", "packets that arrived after their content had been given up";
    refused = "line_refused", "packets whose numbers could not be used";
    lost = "line_lost", "sequence numbers missing on the line";
    behind = "line_behind", "packets that arrived after those of another line";
    behind_ns = "line_behind_ns", "total delay behind another line";
    behind_max = "line_behind_max_ns", now: "longest delay behind another line";
    heard = "line_heard_ms", now: "time of the last datagram, since 1970; 0: none";
    drops = "line_drops", "datagrams that the kernel dropped";
}

counts! {
    /// The counters of the thread that keeps what operators view.
    WatchCounts:
    lapped = "watch_lapped", "market events overwritten before operators could see them";
}

counts! {
    /// The counters of the DBN port.
    DbnCounts:
    clients = "dbn_clients", now: "current connections";
    logons = "dbn_logons", "sessions that authenticated";
    refused = "dbn_turned_away", "connections that were refused";
    records = "dbn_records", "records made of market events, each once for all clients";
    skipped = "dbn_skipped", "records left out for clients that read too slowly";
    bytes = "dbn_bytes", "bytes written to clients' connections";
    lost = "dbn_values_lost", "values that DBN cannot represent";
}

#[cfg(any(test, feature = "kafka"))]
counts! {
    /// The counters of the outlet to a topic of Kafka. No other counter's name ends like theirs.
    KafkaCounts:
    sent = "kafka_sent", "messages of transactions that are in the topic";
    lag = "kafka_lag", now: "events in the log that have not been read";
    gone = "kafka_gone", "events that the log no longer had";
    errors = "kafka_errors", "failures of the topic or the log, each followed by a new start";
    blocked = "kafka_blocked_s", now: "age of a transaction that holds up the topic, in seconds";
}

counts! {
    /// The counters of the path of a feed's messages to FIX sessions.
    FanCounts:
    heartbeats = "exchange_heartbeat", "Heartbeats of the exchange";
    sequence_resets = "exchange_reset", "SequenceResets of the exchange";
    logons = "exchange_logon", "Logons of the exchange";
    logouts = "exchange_logout", "Logouts of the exchange";
    others = "exchange_other", "other session messages of the exchange";
    empty = "fast_resets", "messages without a field of FIX, as FAST's Reset";
    done = "feed_done", "messages that end the feed";
    unfit = "unfit", "messages of which a version can express nothing, once for each version";
    no_fix = "no_fix", "messages that a version cannot express, which its sessions lack";
    no_room = "no_room", "messages left out because the workers were behind";
    fields = "fields_left_out", "fields that a version does not define";
    values = "values_left_out", "values that are not valid in their fields";
    entries = "entries_left_out", "entries of groups that are not valid in a version";
}

impl FanCounts {
    /// Adds the fields that the conversion of a message left out.
    pub(crate) fn add(&self, tally: Tally) {
        for (counter, count) in [
            (&self.fields, tally.fields),
            (&self.values, tally.values),
            (&self.entries, tally.entries),
        ] {
            if count > 0 {
                counter.increment(count);
            }
        }
    }
}

/// The counters of the listener of one topic.
pub(crate) struct TopicCounts {
    topic: String,
    matched: Counter,
    incompatible: Counter,
}

impl TopicCounts {
    /// Registers the counters. `others` names the remote ends of the topic.
    pub(crate) fn new(counters: &Counters, topic: &str, others: &str) -> Self {
        let add = |name: &str, kind, what: &str| counters.add_of(topic, name, kind, what);
        let unfit = "remote readers or writers whose policies are incompatible";
        Self {
            matched: add(others, Kind::Gauge, "current remote readers or writers"),
            incompatible: add("incompatible", Kind::Count, unfit),
            topic: topic.to_owned(),
        }
    }

    /// Returns a listener to one of several topics that share the counters. It counts events, and
    /// sends notices of policies that are incompatible.
    pub(crate) fn share(
        all: &Arc<Mutex<Self>>,
        topic: &str,
        notices: &Notices,
    ) -> impl FnMut(Status) + Send + 'static + use<> {
        let (all, topic, notices) = (Arc::clone(all), topic.to_owned(), notices.clone());
        let mut before = 0;
        move |what| {
            let Ok(all) = all.lock() else {
                return;
            };
            match what {
                Status::Matched { change, .. } => {
                    let now = all.matched.value().saturating_add_signed(change.into());
                    all.matched.set(now);
                }
                Status::IncompatibleQos { total, .. } => {
                    let more = total.saturating_sub(before);
                    all.incompatible.increment(more.into());
                    before = total;
                    let topic = topic.clone();
                    notices.send(Notice::Dds { topic, what });
                }
                _ => {}
            }
        }
    }

    /// Returns a listener that counts events and sends notices of them.
    pub(crate) fn listener(self, notices: &Notices) -> impl FnMut(Status) + Send + 'static + use<> {
        let notices = notices.clone();
        move |what| {
            match what {
                Status::Matched { current, .. } => self.matched.set(current.into()),
                Status::IncompatibleQos { total, .. } => self.incompatible.set(total.into()),
                _ => {}
            }
            let topic = self.topic.clone();
            notices.send(Notice::Dds { topic, what });
        }
    }
}
