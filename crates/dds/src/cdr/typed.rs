//! Rust structures that are DDS types.

use super::{CdrBuffer, CdrError, CdrReader};
use crate::types::{Kind, StructType};

/// A Rust type with a CDR form. [`cdr_struct!`](crate::cdr_struct) implements it for structures.
pub trait CdrType: Sized {
    /// Returns the type of a member that holds it.
    fn kind() -> Kind;

    /// Writes the value after the bytes already in the buffer. Never allocates.
    fn write_cdr(&self, out: &mut CdrBuffer);

    /// Reads a value.
    ///
    /// # Errors
    /// The first byte that does not match the type.
    fn read_cdr(from: &mut CdrReader<'_>) -> Result<Self, CdrError>;

    /// Returns the structure of this type; `None` for a type that is no structure and so no topic.
    fn structure() -> Option<StructType> {
        match Self::kind() {
            Kind::Struct(t) => Some(StructType::clone(&t)),
            _ => None,
        }
    }
}

macro_rules! primitives {
    ($($type:ident $kind:ident),*) => {$(
        impl CdrType for $type {
            fn kind() -> Kind {
                Kind::$kind
            }
            #[inline]
            fn write_cdr(&self, out: &mut CdrBuffer) {
                out.$type(*self);
            }
            #[inline]
            fn read_cdr(from: &mut CdrReader<'_>) -> Result<Self, CdrError> {
                from.$type()
            }
        }
    )*};
}

primitives!(
    bool Bool, u8 Byte, i8 Int8, u16 UInt16, i16 Int16, u32 UInt32, i32 Int32, u64 UInt64,
    i64 Int64, f32 Float32, f64 Float64
);

impl CdrType for String {
    fn kind() -> Kind {
        Kind::String(None)
    }

    fn write_cdr(&self, out: &mut CdrBuffer) {
        out.string(self.as_bytes());
    }

    fn read_cdr(from: &mut CdrReader<'_>) -> Result<Self, CdrError> {
        Ok(Self::from_utf8_lossy(from.string()?).into_owned())
    }
}

impl<T: CdrType> CdrType for Vec<T> {
    fn kind() -> Kind {
        Kind::Sequence(Box::new(T::kind()), None)
    }

    fn write_cdr(&self, out: &mut CdrBuffer) {
        let count = out.count();
        for element in self {
            element.write_cdr(out);
        }
        // More elements than the length field can hold do not fit in a buffer either.
        out.set_count(count, u32::try_from(self.len()).unwrap_or(u32::MAX));
    }

    fn read_cdr(from: &mut CdrReader<'_>) -> Result<Self, CdrError> {
        let n = from.count(1)?;
        (0..n).map(|_| T::read_cdr(from)).collect()
    }
}

/// Declares a Rust structure that is a DDS type: the type's name, then members in order;
/// `#[key]` in front of a member makes it part of the key.
///
/// ```
/// use fanfare_dds::{cdr::CdrType, cdr_struct};
///
/// cdr_struct! {
///     /// A quote.
///     #[derive(Debug, Clone, PartialEq)]
///     pub struct Quote: "Example::Quote" {
///         #[key] security: u32,
///         price: f64,
///         venue: String,
///     }
/// }
/// let t = Quote::structure().unwrap();
/// assert!(t.is_keyed());
/// assert_eq!(t.members.len(), 3);
/// ```
#[macro_export]
macro_rules! cdr_struct {
    (@add $t:ident, $name:ident, $kind:ident) => { $t.member($name, $kind) };
    (@add $t:ident, $name:ident, $kind:ident, key) => { $t.key($name, $kind) };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $dds:literal {
            $($(#[$is_key:ident])? $member:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[allow(missing_docs)]
        $vis struct $name {
            $(pub $member: $type,)+
        }

        impl $crate::cdr::CdrType for $name {
            fn kind() -> $crate::types::Kind {
                let mut t = $crate::types::StructType::new($dds);
                $(
                    let name = stringify!($member);
                    let kind = <$type as $crate::cdr::CdrType>::kind();
                    t = $crate::cdr_struct!(@add t, name, kind $(, $is_key)?);
                )+
                $crate::types::Kind::Struct(::std::sync::Arc::new(t))
            }
            fn write_cdr(&self, out: &mut $crate::cdr::CdrBuffer) {
                $($crate::cdr::CdrType::write_cdr(&self.$member, out);)+
            }
            fn read_cdr(
                from: &mut $crate::cdr::CdrReader<'_>,
            ) -> ::std::result::Result<Self, $crate::cdr::CdrError> {
                Ok(Self { $($member: $crate::cdr::CdrType::read_cdr(from)?,)+ })
            }
        }
    };
}
