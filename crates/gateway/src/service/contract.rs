//! Delivery contracts: what happens to a subscription whose client is behind its bound.

use serde::Deserialize;

/// What is delivered while a client keeps up, and when it is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// Each change; a client that is behind is logged out.
    Cut,
    /// Each change; what a client that is behind does not get is announced, and a picture follows.
    Skip,
    /// The newest state of each instrument; changes are merged while a client is behind.
    Conflated,
}

impl Contract {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cut, Self::Skip, Self::Conflated];

    /// Its name, as in the configuration and in `DeliveryContract(20010)`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Skip => "skip",
            Self::Conflated => "conflated",
        }
    }

    /// The contract of a name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|contract| contract.name().as_bytes() == name)
    }
}
