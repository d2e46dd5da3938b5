//! Messages as lines of JSON, in both directions.
//!
//! A message is `{"template": NAME, "id": ID, "fields": {NAME: VALUE, …}}` with the fields in the
//! order of the template, constants included. Integers are numbers, decimals `{"mantissa": M,
//! "exponent": E}`, strings strings, byte vectors `{"hex": "…"}`, an absent optional field `null`,
//! groups objects, sequences arrays of objects (without their length), the fields of a static
//! reference are in place, a dynamic one is `"templateRef": {"template": …, "id": …, "fields": …}`.
//! Where several fields of a level have one name, as where a template is referenced twice, the
//! second is `NAME#2`, the third `NAME#3`: see [`Field::member`](crate::program::Field::member). A
//! string that is not valid UTF-8, as a lenient decoder lets pass, is `{"raw": "…"}` with its bytes
//! as hexadecimal digits. An error is `{"error": CODE, "offset": BYTE, "template": …, "field":
//! PATH, "message": …}`.

mod parse;
mod read;
mod value;
mod write;

pub use read::{LineError, read_line};
pub use write::{write_error, write_line};
