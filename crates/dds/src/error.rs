//! Errors between the application and DDS.

use crate::cdr::CdrError;
use crate::guid::Guid;
use crate::qos::LONGEST_KEY;
use crate::types::TypeError;

/// An error of DDS. Nothing here aborts the process: the caller decides.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Cyclone DDS refused an operation, or, with [`ReturnCode::Timeout`], the wait of a write to a
    /// full ring in shared memory was too long.
    #[error("{action}: {code}{detail}")]
    Dds {
        /// The operation, with the name of its object.
        action: String,
        /// The reason.
        code: ReturnCode,
        /// What Cyclone DDS logged about it: empty, or `": …"`.
        detail: String,
    },
    /// The program was built without the feature `cyclone` of this crate.
    #[error("this program is built without DDS: build it with the feature `dds`, as `make` does")]
    NotBuiltIn,
    /// The domain id has no RTPS ports: they would lie above 65535.
    #[error("domain id {0} is out of range: RTPS has ports for domains 0 to 232")]
    DomainId(u32),
    /// The configuration is contradictory or names something unknown.
    #[error("domain configuration: {0}")]
    Config(String),
    /// The C library does not accept a name (empty, too long, or with a NUL byte).
    #[error("{what} {name:?} is not a valid name")]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two topics of a feed have the same name.
    #[error("topic {topic:?} would have two uses: {first}, and {second}")]
    SameTopic {
        /// The name.
        topic: String,
        /// One use, with the name of its template.
        first: String,
        /// The other one.
        second: String,
    },
    /// DDS cannot carry a type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The bytes are no sample of their type.
    #[error(transparent)]
    Cdr(#[from] CdrError),
    /// The bytes passed to a writer do not match the type of its topic.
    #[error("the bytes of the sample do not match the type of topic {topic:?}")]
    SampleMismatch {
        /// The topic of the writer.
        topic: String,
    },
    /// A foreign endpoint has not announced the type of its samples.
    #[error("topic {topic:?}: its writer does not describe type {type_name:?}")]
    NoType {
        /// The topic.
        topic: String,
        /// The name of its type.
        type_name: String,
    },
    /// No participant described a foreign type in time.
    #[error("topic {0:?}: no writer described its type in time")]
    TypeUnanswered(String),
    /// Shared memory is not available.
    #[error("shared memory: cannot {action}: {why}")]
    SharedMemory {
        /// The operation, with the name of the file.
        action: String,
        /// The reason.
        why: String,
    },
    /// A writer has written as many keys as it may: samples of new ones are not written.
    #[error("topic {topic:?} has {limit} keys already: the sample of another key is not written")]
    TooManyKeys {
        /// The topic of the writer.
        topic: String,
        /// The limit.
        limit: u32,
    },
    /// A key is longer than readers keep: its sample, or its end, is not written.
    #[error("topic {topic:?}: a key of {length} bytes, more than {LONGEST_KEY}, is not written")]
    LongKey {
        /// The topic of the writer.
        topic: String,
        /// The length of the key, in bytes of CDR.
        length: u32,
    },
    /// A reader was closed because of what writers sent; readers of other topics continue.
    #[error("the reader of topic {topic:?} is closed: {why}, from writer {writer}")]
    ReaderClosed {
        /// The topic.
        topic: String,
        /// The limit that was exceeded.
        why: Overflow,
        /// The writer of the sample.
        writer: Guid,
    },
    /// A closure of a listener panicked; it will not be called again.
    #[error("the listener of {0:?} panicked and is no longer called")]
    ListenerPanicked(String),
}

/// A limit of a reader that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Overflow {
    /// More instances than this many.
    #[error("more than {0} keys")]
    Keys(u32),
    /// A key of this many bytes.
    #[error("a key of {0} bytes, which is more than {LONGEST_KEY}")]
    Key(u32),
}

/// The return codes of the DDS specification and Cyclone DDS, one variant each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ReturnCode {
    /// Unspecified error.
    #[error("unspecified error")]
    Error,
    /// This build does not have the feature.
    #[error("not supported")]
    Unsupported,
    /// An argument is invalid.
    #[error("bad parameter")]
    BadParameter,
    /// The entity is not in the state that the operation needs.
    #[error("precondition not met")]
    PreconditionNotMet,
    /// Memory, samples or instances are at their limits.
    #[error("out of resources")]
    OutOfResources,
    /// The feature is not switched on.
    #[error("not enabled")]
    NotEnabled,
    /// The policy cannot change after creation.
    #[error("policy cannot be changed")]
    ImmutablePolicy,
    /// Two policies contradict each other.
    #[error("policies contradict each other")]
    InconsistentPolicy,
    /// The entity is deleted.
    #[error("already deleted")]
    AlreadyDeleted,
    /// The time was not enough; for a write, a reliable reader keeps the history full.
    #[error("timeout")]
    Timeout,
    /// There is nothing to take.
    #[error("no data")]
    NoData,
    /// The operation does not exist on this kind of entity.
    #[error("illegal operation")]
    IllegalOperation,
    /// DDS Security refused the operation.
    #[error("not allowed by security")]
    NotAllowedBySecurity,
    /// The operation is still in progress.
    #[error("in progress")]
    InProgress,
    /// The operation may be tried again.
    #[error("try again")]
    TryAgain,
    /// The operation was interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
    /// The operating system refused the operation.
    #[error("not allowed")]
    NotAllowed,
    /// The host name is unknown.
    #[error("host not found")]
    HostNotFound,
    /// The network is down.
    #[error("no network")]
    NoNetwork,
    /// There is no connection.
    #[error("no connection")]
    NoConnection,
    /// A buffer is too small.
    #[error("not enough space")]
    NotEnoughSpace,
    /// A number is out of range.
    #[error("out of range")]
    OutOfRange,
    /// Nothing has that name.
    #[error("not found")]
    NotFound,
    /// A code this version does not know.
    #[error("return code {0}")]
    Other(i32),
}

impl ReturnCode {
    /// Returns the variant for a negative return code of Cyclone DDS.
    #[cfg(any(feature = "cyclone", test))]
    pub(crate) const fn from_raw(code: i32) -> Self {
        // Cyclone's own codes count down from here (DDS_XRETCODE_BASE).
        const EXTENDED: i32 = -50;
        match code {
            -1 => Self::Error,
            -2 => Self::Unsupported,
            -3 => Self::BadParameter,
            -4 => Self::PreconditionNotMet,
            -5 => Self::OutOfResources,
            -6 => Self::NotEnabled,
            -7 => Self::ImmutablePolicy,
            -8 => Self::InconsistentPolicy,
            -9 => Self::AlreadyDeleted,
            -10 => Self::Timeout,
            -11 => Self::NoData,
            -12 => Self::IllegalOperation,
            -13 => Self::NotAllowedBySecurity,
            c if c == EXTENDED - 1 => Self::InProgress,
            c if c == EXTENDED - 2 => Self::TryAgain,
            c if c == EXTENDED - 3 => Self::Interrupted,
            c if c == EXTENDED - 4 => Self::NotAllowed,
            c if c == EXTENDED - 5 => Self::HostNotFound,
            c if c == EXTENDED - 6 => Self::NoNetwork,
            c if c == EXTENDED - 7 => Self::NoConnection,
            c if c == EXTENDED - 8 => Self::NotEnoughSpace,
            c if c == EXTENDED - 9 => Self::OutOfRange,
            c if c == EXTENDED - 10 => Self::NotFound,
            other => Self::Other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_specification_has_its_variant() {
        assert_eq!(ReturnCode::from_raw(-10), ReturnCode::Timeout);
        assert_eq!(ReturnCode::from_raw(-52), ReturnCode::TryAgain);
        assert_eq!(ReturnCode::from_raw(-60), ReturnCode::NotFound);
        for code in (1..=13).chain(51..=60) {
            assert!(!matches!(ReturnCode::from_raw(-code), ReturnCode::Other(_)));
        }
        assert_eq!(ReturnCode::from_raw(-77), ReturnCode::Other(-77));
    }
}
