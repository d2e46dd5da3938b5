//! Delivery contracts: the treatment of a subscription whose client exceeds its limit.

use serde::Deserialize;

/// The delivery to a client that keeps up, and to one that is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// Each change is sent, and a client that is behind is logged out.
    Cut,
    /// Each change is sent. The changes that a client misses while it is behind are announced, and
    /// a snapshot follows.
    Skip,
    /// The newest state of each instrument is sent. Changes are merged while a client is behind.
    Conflated,
}

impl Contract {
    /// All contracts.
    pub const ALL: [Self; 3] = [Self::Cut, Self::Skip, Self::Conflated];

    /// Returns its name, as in the configuration and in `DeliveryContract(20010)`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Skip => "skip",
            Self::Conflated => "conflated",
        }
    }

    /// Returns the contract of a name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|contract| contract.name().as_bytes() == name)
    }
}
