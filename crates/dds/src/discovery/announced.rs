//! What participants announce: themselves, their writers and readers.

use std::sync::Arc;
use std::time::Duration;

use crate::guid::Guid;
use crate::sys::TypeInfo;
use crate::{Durability, Error, History, Ownership, Qos, Reliability};

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// Its name in the domain.
    pub guid: Guid,
    /// The name it was given by its program.
    pub name: Option<String>,
    /// Its program, where it says so (Cyclone DDS does).
    pub process: Option<String>,
    /// The number of its process.
    pub pid: Option<String>,
    /// Its host.
    pub host: Option<String>,
}

/// What an endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it
pub enum EndpointKind {
    Writer,
    Reader,
}

/// A writer or a reader.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Which of the two.
    pub kind: EndpointKind,
    /// Its name in the domain.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Its topic.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Offers or asks for reliable delivery.
    pub reliable: bool,
    /// Offers or asks for samples from before a reader came; persistent kinds count as that.
    pub durability: Durability,
    /// One writer for each instance or all of them.
    pub ownership: Ownership,
    /// Partitions, as it named them; may hold `*` and `?`.
    pub partitions: Vec<String>,
    pub(crate) info: Option<Arc<TypeInfo>>,
}

impl Endpoint {
    /// Whether it announced its type in the way of XTypes, so that others can read its samples.
    pub const fn has_type(&self) -> bool {
        self.info.is_some()
    }

    /// Policies of a reader that matches this writer and gets all it can give: its reliability, its
    /// durability and its ownership, and the newest `depth` samples of each instance.
    pub fn reader_qos(&self, depth: u32) -> Qos {
        let qos = Qos::default()
            .reliability(if self.reliable {
                Reliability::Reliable(Duration::ZERO)
            } else {
                Reliability::BestEffort
            })
            .durability(self.durability)
            .ownership(self.ownership)
            .history(History::KeepLast(depth));
        self.partitions.iter().fold(qos, |q, p| q.partition(p))
    }

    pub(crate) fn type_info(&self) -> Result<&TypeInfo, Error> {
        self.info.as_deref().ok_or_else(|| Error::NoType {
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
        })
    }
}
