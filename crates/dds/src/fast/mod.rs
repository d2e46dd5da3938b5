//! Conversion of FAST templates to DDS: each template becomes a type, each decoded message one
//! sample or several.
//!
//! # The rules
//! - A template becomes a structure of its name in the module `Fanfare` (or another); fields become
//!   members in the order of the template, constants included. Names that are not valid in IDL are
//!   changed by [`identifier`](crate::types::identifier).
//! - Integers keep their size (`uInt8` is `octet`); strings become `string` and end at a NUL;
//!   byte vectors become `sequence<octet>`.
//! - A decimal becomes `double`, or with [`TypeOptions::exact_decimals`] the structure
//!   `Decimal {long long mantissa; long exponent;}`.
//! - A group becomes a structure, a sequence a sequence of structures, named `TEMPLATE_FIELD`.
//!   Static references are expanded in place. A template with a dynamic reference, which has no
//!   type, is refused.
//! - Optional fields: a structure that has some begins with `unsigned long long present`. Bit i is
//!   set when the i-th optional member, counted from 0, is present; absent members hold zero, an
//!   empty string or an empty sequence. So nothing is lost, any vendor's XCDR1 reads it, and an
//!   entry has the same bytes at every place. A structure has at most 64 of them.
//! - Key: the field named by [`TypeOptions::key`], where a template has it at its top level.
//! - Split: a template whose last field is a sequence whose entries hold the field named by
//!   [`TypeOptions::split`] becomes one sample for each value of that field in a message; the value
//!   is the first member, and the key if there are keys. The entries always have `present`.

mod convert;
mod converted;
mod fields;
mod members;
mod rows;
mod types;

pub use convert::Converter;
pub use converted::Converted;
pub use types::{Mapping, TemplateType, TypeOptions};

use crate::types::TypeError;

/// A template that cannot become a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {template:?} cannot be mapped to a DDS type: {why}")]
pub struct MappingError {
    /// The name of the template.
    pub template: String,
    /// The place in the type, and the reason.
    pub why: TypeError,
}
