//! The gateway's counters, by agent. Each has one writer; anybody may read them.

use crate::feed::Tally;
use crate::notice::{Notice, Notices};
use fanfare_dds::Status;
use fanfare_engine::counters::{Counter, Counters};

/// What each port counts.
pub(crate) struct PortCounts {
    /// Connections turned away before they had a session.
    pub(crate) refused: Counter,
    /// Connections at this moment that have not logged on.
    pub(crate) waiting: Counter,
}

impl PortCounts {
    pub(crate) fn new(counters: &Counters, side: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{side}_{name}"), what);
        Self {
            refused: add(
                "refused",
                "connections turned away before they had a session",
            ),
            waiting: add("waiting", "connections now that have not logged on"),
        }
    }
}

/// What every host of sessions counts.
pub(crate) struct SessionCounts {
    /// Sessions that reached logged on.
    pub(crate) logons: Counter,
    /// Sessions that ended.
    pub(crate) ended: Counter,
    /// Connections with a session at this moment.
    pub(crate) connections: Counter,
    /// Messages of ours that peers rejected: Reject(3) and BusinessMessageReject(j).
    pub(crate) rejects: Counter,
}

impl SessionCounts {
    pub(crate) fn new(counters: &Counters, agent: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{agent}_{name}"), what);
        Self {
            logons: add("logons", "sessions that logged on"),
            ended: add("ended", "sessions that ended"),
            connections: add("connections", "connections with a session now"),
            rejects: add("rejects", "messages that peers rejected (3 and j)"),
        }
    }
}

/// What ingress counts.
pub(crate) struct IngressCounts {
    /// Application messages from producers.
    pub(crate) received: Counter,
    /// Those with the mark: written to the ring.
    pub(crate) marked: Counter,
    /// Marked ones that no worker can take (too long for the ring): counted, not sent on.
    pub(crate) unroutable: Counter,
}

impl IngressCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        Self {
            received: counters.add("received", "application messages from producers"),
            marked: counters.add(
                "marked",
                "messages with FanoutID(20001), written to the ring",
            ),
            unroutable: counters.add("unroutable", "marked messages that the ring cannot take"),
        }
    }
}

/// What each worker counts.
pub(crate) struct WorkerCounts {
    /// Messages given to consumers' connections.
    pub(crate) deliveries: Counter,
    /// Messages left out because a consumer's queue was full.
    pub(crate) dropped: Counter,
    /// Consumers disconnected because their queue was full.
    pub(crate) slow: Counter,
}

impl WorkerCounts {
    pub(crate) fn new(counters: &Counters, agent: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{agent}_{name}"), what);
        Self {
            deliveries: add("deliveries", "messages given to consumers' connections"),
            dropped: add(
                "dropped",
                "messages left out because a consumer's queue was full",
            ),
            slow: add(
                "slow_consumers",
                "consumers disconnected because their queue was full",
            ),
        }
    }
}

/// What the DDS publisher counts.
pub(crate) struct PublishCounts {
    pub(crate) published: Counter,
    pub(crate) relayed: Counter,
    pub(crate) unsent: Counter,
    pub(crate) left: Counter,
    pub(crate) overrun: Counter,
    pub(crate) other_types: Counter,
    pub(crate) refused: Counter,
}

impl PublishCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        let add = |name: &str, what: &str| counters.add(name.to_owned(), what);
        Self {
            published: add("published", "messages written to DDS"),
            relayed: add("relayed", "those of them that came from DDS"),
            unsent: add(
                "unsent",
                "messages left out because a subscriber did not acknowledge in time",
            ),
            left: add(
                "left_at_stop",
                "messages that subscribers did not take before the stop",
            ),
            overrun: add(
                "overrun",
                "messages overwritten before the DDS publisher came to them",
            ),
            other_types: add("other_types", "messages whose MsgType(35) has no topic"),
            refused: add(
                "symbols_refused",
                "messages of a Symbol(55) more than the topic may have",
            ),
        }
    }
}

/// What the DDS subscriber counts.
pub(crate) struct SubscribeCounts {
    pub(crate) received: Counter,
    pub(crate) own: Counter,
    pub(crate) before: Counter,
    pub(crate) other: Counter,
    pub(crate) behind: Counter,
    pub(crate) missing: Counter,
    pub(crate) bad: Counter,
    pub(crate) closed: Counter,
}

impl SubscribeCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        let add = |name: &str, what: &str| counters.add(name.to_owned(), what);
        Self {
            received: add("taken", "messages taken from DDS for the consumers"),
            own: add(
                "own",
                "samples of this gateway's own, or of the feed that it receives itself, dropped",
            ),
            before: add("seen_before", "samples that had come before, dropped"),
            other: add(
                "from_another",
                "messages of a feed that another gateway had brought, dropped",
            ),
            behind: add(
                "behind",
                "messages of a gateway too far behind the others of its feed, dropped",
            ),
            missing: add(
                "missing",
                "messages that other gateways numbered and that did not come",
            ),
            bad: add("malformed", "samples that hold no message, dropped"),
            closed: add(
                "topics_closed",
                "topics left because writers had too many keys for them",
            ),
        }
    }
}

/// What the feed counts.
pub(crate) struct FeedCounts {
    pub(crate) datagrams: Counter,
    pub(crate) messages: Counter,
    pub(crate) missing: Counter,
    pub(crate) bad_packets: Counter,
    pub(crate) unusable: Counter,
    pub(crate) restarts: Counter,
    pub(crate) strangers: Counter,
    pub(crate) kernel_drops: Counter,
    pub(crate) unread: Counter,
}

impl FeedCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        let add = |name: &str, what: &str| counters.add(name.to_owned(), what);
        Self {
            datagrams: add("datagrams", "datagrams of all lines"),
            messages: add("decoded", "messages decoded, each once"),
            missing: add("gaps", "sequence numbers that were on no line"),
            bad_packets: add("undecodable", "packets whose rest could not be decoded"),
            unusable: add("unusable", "packets whose numbers could not be used"),
            restarts: add("restarts", "times that the numbers of a feed began again"),
            strangers: add(
                "strangers",
                "datagrams of senders that are not a line's source",
            ),
            kernel_drops: add("kernel_drops", "datagrams that the kernel dropped"),
            unread: add(
                "unread",
                "datagrams that waited with the kernel when the gateway stopped",
            ),
        }
    }
}

/// What the publisher of the feed's decoded messages counts. The names end in no other's.
pub(crate) struct TopicsCounts {
    pub(crate) samples: Counter,
    pub(crate) unsent: Counter,
    pub(crate) left: Counter,
    pub(crate) overrun: Counter,
    pub(crate) no_topic: Counter,
    pub(crate) refused: Counter,
}

impl TopicsCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        let add = |name: &str, what: &str| counters.add(name.to_owned(), what);
        Self {
            samples: add("samples", "samples of decoded messages written"),
            unsent: add(
                "samples_not_sent",
                "samples left out because a subscriber did not acknowledge in time",
            ),
            left: add(
                "samples_left",
                "samples that subscribers did not take before the stop",
            ),
            overrun: add(
                "samples_overwritten",
                "samples overwritten before they were published on topics of the feed",
            ),
            no_topic: add("no_topic", "samples of securities without a topic"),
            refused: add(
                "samples_of_more_keys",
                "samples of a key more than the topic may have",
            ),
        }
    }
}

/// What the way of a feed's messages to FIX sessions counts.
pub(crate) struct FanCounts {
    pub(crate) heartbeats: Counter,
    pub(crate) sequence_resets: Counter,
    pub(crate) logons: Counter,
    pub(crate) logouts: Counter,
    pub(crate) others: Counter,
    pub(crate) empty: Counter,
    pub(crate) done: Counter,
    pub(crate) unfit: Counter,
    pub(crate) no_fix: Counter,
    pub(crate) no_room: Counter,
    fields: Counter,
    values: Counter,
    entries: Counter,
}

impl FanCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        let add = |name: &str, what: &str| counters.add(name.to_owned(), what);
        Self {
            heartbeats: add("exchange_heartbeat", "Heartbeats of the exchange"),
            sequence_resets: add("exchange_reset", "SequenceResets of the exchange"),
            logons: add("exchange_logon", "Logons of the exchange"),
            logouts: add("exchange_logout", "Logouts of the exchange"),
            others: add("exchange_other", "other session messages of the exchange"),
            empty: add(
                "fast_resets",
                "messages without a field of FIX, as FAST's Reset",
            ),
            done: add("feed_done", "messages that say that the feed is over"),
            unfit: add(
                "unfit",
                "messages that cannot be valid in a version, once for each version",
            ),
            no_fix: add("no_fix", "messages too long for FIX"),
            no_room: add(
                "no_room",
                "messages left out because the workers were behind",
            ),
            fields: add("fields_left_out", "fields that a version has no place for"),
            values: add("values_left_out", "values that their fields cannot have"),
            entries: add(
                "entries_left_out",
                "entries of groups that lack what a version asks for",
            ),
        }
    }

    /// Adds what a message did not take along.
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

/// What the listener of one topic counts.
pub(crate) struct TopicCounts {
    topic: String,
    matched: Counter,
    incompatible: Counter,
}

impl TopicCounts {
    /// `others` names the other side's ends.
    pub(crate) fn new(counters: &Counters, topic: &str, others: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{topic}_{name}"), what);
        Self {
            matched: add(others, "ends at the other side now"),
            incompatible: add("incompatible", "ends whose policies do not fit"),
            topic: topic.to_owned(),
        }
    }

    /// Counts events, and tells of them.
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
