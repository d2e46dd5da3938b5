//! The fan-out: messages of producers and feeds in, one ring for each source, and the workers that
//! send them to the consumers' sessions.

pub(crate) mod audience;
pub(crate) mod batch;
pub(crate) mod consumer;
pub(crate) mod hole;
pub(crate) mod ingress;
pub(crate) mod record;
pub(crate) mod rings;
pub(crate) mod source_rings;
pub(crate) mod stamp;
pub(crate) mod versions;
pub(crate) mod worker;
