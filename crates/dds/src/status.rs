//! Events of writers and readers besides samples.

use std::fmt;

/// An event of a writer or a reader. Counts are totals since the entity was made, unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The number of matching writers (of a reader) or readers (of a writer) changed.
    Matched {
        /// The number of matches now.
        current: u32,
        /// The number of matches ever.
        total: u32,
        /// The change of `current` by this event.
        change: i32,
    },
    /// Samples were lost on the way, or dropped by a full history.
    SampleLost {
        /// Samples lost so far.
        total: u32,
    },
    /// Samples were refused because a resource limit was reached.
    SampleRejected {
        /// Samples refused so far.
        total: u32,
    },
    /// An instance went without a sample for longer than its deadline.
    DeadlineMissed {
        /// Missed deadlines so far.
        total: u32,
    },
    /// The peer offers less, or requests more, than this entity: they do not match.
    IncompatibleQos {
        /// The number of incompatible peers so far.
        total: u32,
        /// The incompatible policy of the last of them.
        policy: Policy,
    },
    /// Writers of a reader came alive or fell silent.
    LivelinessChanged {
        /// Writers alive now.
        alive: u32,
        /// Matched writers that are silent now.
        not_alive: u32,
    },
    /// The writer itself did not assert its liveliness in time.
    LivelinessLost {
        /// The number of times so far.
        total: u32,
    },
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matched {
                current, change, ..
            } => {
                write!(f, "matched with {current} ({change:+})")
            }
            Self::SampleLost { total } => write!(f, "{total} samples lost"),
            Self::SampleRejected { total } => write!(f, "{total} samples rejected"),
            Self::DeadlineMissed { total } => write!(f, "{total} deadlines missed"),
            Self::IncompatibleQos {
                policy: Policy::TypeConsistency,
                ..
            } => f.write_str(
                "no match: the other side has another type of this topic, as another version of \
                 the program may",
            ),
            Self::IncompatibleQos { policy, .. } => {
                write!(f, "no match: the other side's {policy} does not fit")
            }
            Self::LivelinessChanged { alive, not_alive } => {
                write!(f, "{alive} writers alive, {not_alive} silent")
            }
            Self::LivelinessLost { total } => write!(f, "liveliness lost {total} times"),
        }
    }
}

/// A policy of the DDS specification, named when two entities are incompatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // the names are the specification's
pub enum Policy {
    Durability,
    Presentation,
    Deadline,
    LatencyBudget,
    Ownership,
    Liveliness,
    Partition,
    Reliability,
    DestinationOrder,
    TypeConsistency,
    DataRepresentation,
    /// Any other, by its number in DDS 1.4, table 2.2.3.
    Other(u32),
}

/// Their numbers in DDS 1.4, table 2.2.3, and their names.
const POLICIES: [(u32, Policy, &str); 11] = [
    (2, Policy::Durability, "durability"),
    (3, Policy::Presentation, "presentation"),
    (4, Policy::Deadline, "deadline"),
    (5, Policy::LatencyBudget, "latency budget"),
    (6, Policy::Ownership, "ownership"),
    (8, Policy::Liveliness, "liveliness"),
    (10, Policy::Partition, "partition"),
    (11, Policy::Reliability, "reliability"),
    (12, Policy::DestinationOrder, "destination order"),
    (24, Policy::TypeConsistency, "type consistency"),
    (25, Policy::DataRepresentation, "data representation"),
];

impl Policy {
    #[cfg(feature = "cyclone")]
    pub(crate) fn from_raw(id: u32) -> Self {
        let known = POLICIES.iter().find(|(known, ..)| *known == id);
        known.map_or(Self::Other(id), |(_, policy, _)| *policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(id) = self {
            return write!(f, "policy {id}");
        }
        let known = POLICIES.iter().find(|(_, policy, _)| policy == self);
        f.write_str(known.map_or("", |(.., name)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_type_of_a_topic_is_told_with_its_likely_cause() {
        let told = |policy| Status::IncompatibleQos { total: 1, policy }.to_string();
        assert!(told(Policy::TypeConsistency).ends_with("as another version of the program may"));
        let told = told(Policy::Durability);
        assert_eq!(told, "no match: the other side's durability does not fit");
    }
}
