//! Messages as FIX tag=value and back. Field ids are tags; a sequence is a repeating group whose
//! count has the tag of the length, or of the sequence, if the length has none. Groups and dynamic
//! references have no counterpart and are flattened. Fields without a numeric id are left out.
//! Decimals are exact.
//!
//! This crate does not use the FIX engine: it writes and reads plain fields, which any engine
//! frames. [`write_body`] writes the fields, [`write_message`] a whole message, [`write_value`] the
//! text of a value.

mod read;
mod write;

pub use read::{FixError, KnownTags, read_fields, read_message, split_fields, templates_of};
pub use write::{SohError, write_body, write_message, write_value};
