//! The announcements of participants: themselves, their writers and readers.

use std::sync::Arc;
use std::time::Duration;

use crate::guid::Guid;
use crate::sys::TypeInfo;
use crate::{Durability, Error, History, Ownership, Qos, Reliability};

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// Its GUID in the domain.
    pub guid: Guid,
    /// The name that its program gave it.
    pub name: Option<String>,
    /// Its program, if announced (Cyclone DDS announces it).
    pub process: Option<String>,
    /// The number of its process.
    pub pid: Option<String>,
    /// Its host.
    pub host: Option<String>,
}

/// The role of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it
pub enum EndpointKind {
    Writer,
    Reader,
}

/// A writer or a reader.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Whether it is a writer or a reader.
    pub kind: EndpointKind,
    /// Its GUID in the domain.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Its topic.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Whether it offers or requests reliable delivery.
    pub reliable: bool,
    /// Whether it offers or requests earlier samples for late readers, which persistent kinds
    /// include.
    pub durability: Durability,
    /// Whether each instance has one writer or all of them.
    pub ownership: Ownership,
    /// Its partitions, which may contain `*` and `?`.
    pub partitions: Vec<String>,
    pub(crate) info: Option<Arc<TypeInfo>>,
}

impl Endpoint {
    /// Returns whether it announced its type by XTypes, so that other programs can read its
    /// samples.
    pub const fn has_type(&self) -> bool {
        self.info.is_some()
    }

    /// Returns the hash of the type that it announced (XTypes 1.3, 7.3.4), which differs where a
    /// member or its kind does, and does not contain the name of the type.
    pub fn type_hash(&self) -> Option<[u8; 14]> {
        self.info.as_deref()?.hash()
    }

    /// Returns the policies of a reader that matches this writer and receives all it offers: its
    /// reliability, its durability and its ownership, and the newest `depth` samples of each
    /// instance. A partition of the writer that is a pattern is replaced by a name that it matches,
    /// as two patterns never match.
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
        self.names().fold(qos, |qos, name| qos.partition(&name))
    }

    /// Adds the partitions of this writer to the policies of a reader of others, which then matches
    /// this one, too, if nothing else differs.
    #[must_use]
    pub fn join(&self, qos: Qos) -> Qos {
        let names: Vec<_> = self.names().collect();
        qos.join(&names)
    }

    /// Returns names that match its partitions: `*` stands for nothing, and `?` for a letter.
    fn names(&self) -> impl Iterator<Item = String> + use<'_> {
        let plain = |partition: &String| partition.replace('*', "").replace('?', "x");
        self.partitions.iter().map(plain)
    }

    pub(crate) fn type_info(&self) -> Result<&TypeInfo, Error> {
        self.info.as_deref().ok_or_else(|| Error::NoType {
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
        })
    }
}
