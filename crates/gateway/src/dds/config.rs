//! The `[dds]` table of the configuration.

use super::endpoint::{
    DdsQos, DdsTransport, LEASE_MS, Participant, check, check_names, dds_endpoint,
};
use crate::config::error::{ConfigError, range};
use fanfare_dds::{Domain, Durability, History, Qos};
use serde::Deserialize;

/// FIX messages over DDS, to and from other gateways.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dds {
    /// The topics on which messages of this gateway's own sources are published.
    pub publish: Option<DdsEnd>,
    /// The topics of other gateways whose messages are forwarded to the consumers.
    pub subscribe: Option<DdsEnd>,
    /// Whether received messages are published too, under their first gateway's origin, as a link
    /// between two domains. A message that was here before is dropped, so a ring of gateways makes
    /// no loop.
    pub relay: bool,
}

dds_endpoint! {
    lease_ms = LEASE_MS;
    /// One direction: a domain, and the topics in it.
    pub struct DdsEnd {
        /// The delivery of samples.
        pub qos: DdsQos = DdsQos::Reliable,
        /// The prefix of `_` and MsgType(35) in the names of topics.
        pub topics: String = "Fix".to_owned(),
        /// The partition. Gateways in different partitions do not communicate.
        pub partition: Option<String> = None,
        /// The MsgTypes(35) of the messages that are sent over DDS.
        pub msg_types: Vec<String> = ["W", "X", "d", "f", "h"].map(str::to_owned).to_vec(),
    }
}

/// The samples that a reader keeps until the gateway takes them.
pub(crate) const READER_SAMPLES: u32 = 8_192;

/// The most topics of one direction.
const MOST_TYPES: usize = 64;

impl Dds {
    /// Opens the participants of both directions, publishers first. They are one if both are in the
    /// same domain.
    pub(crate) fn domains(&self) -> Result<[Option<Domain>; 2], fanfare_dds::Error> {
        let open = |end: &DdsEnd| end.participant().open();
        let publish = self.publish.as_ref().map(open).transpose()?;
        let subscribe = match (&self.publish, &self.subscribe) {
            (Some(a), Some(b)) if a.shares_domain(b) => publish.clone(),
            (_, end) => end.as_ref().map(open).transpose()?,
        };
        Ok([publish, subscribe])
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let both = self.publish.is_some() && self.subscribe.is_some();
        range(
            "dds.relay",
            self.relay,
            both || !self.relay,
            "needs [dds.publish] and [dds.subscribe]",
        )?;
        let publish = self.publish.as_ref();
        publish.map_or(Ok(()), |end| end.check("dds.publish"))?;
        let subscribe = self.subscribe.as_ref();
        subscribe.map_or(Ok(()), |end| end.check("dds.subscribe"))
    }
}

impl DdsEnd {
    /// Checks the ranges. `at` is the name of the table.
    fn check(&self, at: &str) -> Result<(), ConfigError> {
        check(at, self.domain, self.wait_ms, self.instances, self.lease_ms)?;
        let types = format!("{at}.msg_types");
        let count = self.msg_types.len();
        range(
            &types,
            count,
            (1..=MOST_TYPES).contains(&count),
            "must be 1 to 64 types",
        )?;
        for (i, t) in self.msg_types.iter().enumerate() {
            let plain = t.bytes().all(|b| b.is_ascii_alphanumeric());
            let fits = plain && (1..=8).contains(&t.len());
            range(&types, t, fits, "must be 1 to 8 letters and digits")?;
            let session = ["0", "1", "2", "3", "4", "5", "A"].contains(&t.as_str());
            range(
                &types,
                t,
                !session,
                "is a message of the session layer, which is not published",
            )?;
            let first = !self.msg_types.iter().take(i).any(|other| other == t);
            range(&types, t, first, "occurs twice")?;
        }
        check_names(at, &self.topics, self.partition.as_deref())
    }

    /// Returns whether both use the same participant.
    fn shares_domain(&self, other: &Self) -> bool {
        self.participant() == other.participant()
    }

    /// Returns the policies of writers and readers alike. A reader keeps the messages that its
    /// gateway has not taken yet, up to 8,192, and then a reliable writer blocks.
    pub(crate) fn qos(&self) -> Qos {
        let qos = self.qos.policies(self.wait_ms, self.instances);
        let partition = self.partition.iter();
        partition.fold(qos, |qos, name| qos.partition(name))
    }

    /// Returns the policies of a reader. It keeps more than the last value, which may not be taken
    /// yet, but never more than is taken at once.
    pub(crate) fn reader_qos(&self) -> Qos {
        let limits = (Some(READER_SAMPLES), Some(self.instances));
        let qos = self.qos().ignore_own();
        let qos = qos.resource_limits(limits.0, limits.1, None);
        match self.qos {
            DdsQos::LastValue => qos
                .history(History::KeepLast(1_024))
                .durability(Durability::TransientLocal),
            _ => qos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn told(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn both_sides_have_defaults_and_values_of_their_own() {
        let text = "[dds]\nrelay = true\n[dds.publish]\ndomain = 5\n\
                    [dds.subscribe]\nqos = \"last-value\"\npartition = \"paris\"\n";
        let dds = Config::from_toml(text).unwrap().dds;
        let (publish, subscribe) = (dds.publish.unwrap(), dds.subscribe.unwrap());
        assert_eq!((publish.domain, subscribe.domain), (5, 0));
        assert_eq!(publish.qos, DdsQos::Reliable);
        assert_eq!(subscribe.partition.as_deref(), Some("paris"));
        assert!(!publish.shares_domain(&subscribe));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (text, what) in [
            ("[dds]\nrelay = true", "dds.relay"),
            ("[dds.publish]\ndomain = 233", "dds.publish.domain"),
            ("[dds.subscribe]\nmsg_types = []", "dds.subscribe.msg_types"),
            ("[dds.publish]\nmsg_types = [\"W\", \"W\"]", "occurs twice"),
            (
                "[dds.publish]\nmsg_types = [\"A\"]",
                "message of the session layer",
            ),
            ("[dds.publish]\nmsg_types = [\"W/\"]", "letters and digits"),
            ("[dds.publish]\ntopics = \"1 x\"", "dds.publish.topics"),
            (
                "[dds.publish]\npartition = \"a\\u0000\"",
                "`dds.publish.partition` = a\\0",
            ),
            ("[dds.publish]\nwait_ms = 60000", "dds.publish.wait_ms"),
            ("[dds.subscribe]\ninstances = 0", "dds.subscribe.instances"),
            ("[dds.publish]\n\nqos = \"fast\"", "line 3"),
            ("[dds.publish]\ndomian = 3", "domian"),
        ] {
            let told = told(text);
            assert!(told.contains(what), "{text}: {told}");
        }
    }
}
