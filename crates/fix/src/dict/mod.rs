//! Dictionaries, which define the fields and messages of a version of FIX, and the validation of
//! messages.
//!
//! Tables of FIX.4.0 to FIX.5.0SP2 and FIXT.1.1 are built in ([`Dictionary::built_in`]). Others are
//! loaded at run time from QuickFIX-style or FIX Orchestra XML ([`Dictionary::from_xml`]), also as
//! user fields on top of a built-in one ([`Dictionary::merged`]). Decoding needs no dictionary:
//! validation is a separate pass over a decoded message.
//!
//! ```
//! use fanfare_fix::codec::Decoder;
//! use fanfare_fix::dict::{Dictionary, Switches, Version};
//! use fanfare_fix::session::RejectReason;
//!
//! let order = b"8=FIX.4.4\x019=98\x0135=D\x0149=A\x0156=B\x0134=2\x01\
//!     52=20261120-10:00:00.000\x0111=1\x0155=X\x0154=7x\x0160=20261120-10:00:00.000\x01\
//!     38=100\x0140=1\x0110=058\x01";
//! let mut decoder = Decoder::new();
//! let message = decoder.decode(order).unwrap();
//! let dictionary = Dictionary::built_in(Version::Fix44);
//! let fault = dictionary.validate(&message, Switches::default()).unwrap_err();
//! assert_eq!(fault.reason, RejectReason::DataFormat);
//! assert_eq!(fault.to_string(), "Incorrect data format for value (54)");
//! assert_eq!(dictionary.value_name(54, b"1"), Some("Buy"));
//! ```

mod compile;
mod dictionary;
mod groups;
mod hook;
mod kind;
mod layout;
mod load;
mod orchestra;
mod pretty;
mod quickfix;
mod schema;
mod table;
mod validate;
mod values;

pub use dictionary::{DictGroup, Dictionary, Version, check_xml, schema_from_xml};
pub use hook::DictionaryValidator;
pub use kind::DataType;
pub use layout::Layout;
pub use load::{Cause, LoadError, MAX_TEXT};
pub use pretty::{Line, Pretty, Printable, lines, names_for, names_of};
pub use schema::{EnumValue, FieldDef, Item, MessageDef, Schema, SchemaError};
pub use validate::Switches;
