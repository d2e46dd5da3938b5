//! What happens to a writer or a reader besides samples.

use std::fmt;

/// An event of a writer or a reader. Counts are totals since the entity was made, unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The number of matching writers (of a reader) or readers (of a writer) changed.
    Matched {
        /// How many match now.
        current: u32,
        /// How many have ever matched.
        total: u32,
        /// What this event adds to or takes from `current`.
        change: i32,
    },
    /// Samples were lost on the way, or dropped by a history that was full.
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
    /// The other side offers less, or asks for more, than this side: they do not match.
    IncompatibleQos {
        /// Such meetings so far.
        total: u32,
        /// The policy that did not fit in the last of them.
        policy: Policy,
    },
    /// Writers of a reader came alive or fell silent.
    LivelinessChanged {
        /// Writers alive now.
        alive: u32,
        /// Matched writers that are silent now.
        not_alive: u32,
    },
    /// The writer itself did not say that it lives in time.
    LivelinessLost {
        /// Times so far.
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

/// A policy of the DDS specification, as named when two sides do not fit.
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

impl Policy {
    pub(crate) const fn from_raw(id: u32) -> Self {
        match id {
            2 => Self::Durability,
            3 => Self::Presentation,
            4 => Self::Deadline,
            5 => Self::LatencyBudget,
            6 => Self::Ownership,
            8 => Self::Liveliness,
            10 => Self::Partition,
            11 => Self::Reliability,
            12 => Self::DestinationOrder,
            24 => Self::TypeConsistency,
            25 => Self::DataRepresentation,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Durability => "durability",
            Self::Presentation => "presentation",
            Self::Deadline => "deadline",
            Self::LatencyBudget => "latency budget",
            Self::Ownership => "ownership",
            Self::Liveliness => "liveliness",
            Self::Partition => "partition",
            Self::Reliability => "reliability",
            Self::DestinationOrder => "destination order",
            Self::TypeConsistency => "type consistency",
            Self::DataRepresentation => "data representation",
            Self::Other(id) => return write!(f, "policy {id}"),
        };
        f.write_str(name)
    }
}
