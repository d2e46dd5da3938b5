//! The type that an endpoint announced.

use cyclors as c;

/// The type of an endpoint, as it was announced.
#[derive(Debug)]
pub(crate) struct TypeInfo(*mut c::ddsi_typeinfo_t);

// SAFETY: type information does not change once made, and is not tied to a thread.
unsafe impl Send for TypeInfo {}
// SAFETY: as above.
unsafe impl Sync for TypeInfo {}

impl TypeInfo {
    pub(super) fn copy(lent: *const c::dds_typeinfo_t) -> Option<Self> {
        if lent.is_null() {
            return None;
        }
        // SAFETY: live type information; the copy is owned here.
        let own = unsafe { c::ddsi_typeinfo_dup(lent.cast()) };
        (!own.is_null()).then_some(Self(own))
    }

    pub(super) const fn as_ptr(&self) -> *const c::dds_typeinfo_t {
        self.0.cast_const()
    }

    /// Returns the hash of the minimal type: of its members, without the name of the type.
    pub(crate) fn hash(&self) -> Option<[u8; 14]> {
        // SAFETY: live type information; the result is borrowed from it.
        let id = unsafe { c::ddsi_typeinfo_minimal_typeid(self.0) };
        // SAFETY: a type identifier of the library is this structure (ddsi__xt_impl.h), or null.
        let id = unsafe { id.cast::<c::DDS_XTypes_TypeIdentifier>().as_ref() }?;
        if u32::from(id._d) != c::DDS_XTypes_EK_MINIMAL {
            return None;
        }
        // SAFETY: an identifier of this kind has a hash, plain bytes.
        Some(unsafe { id._u.equivalence_hash })
    }
}

impl Drop for TypeInfo {
    fn drop(&mut self) {
        // SAFETY: made by ddsi_typeinfo_dup, not freed before, not used after.
        unsafe { c::ddsi_typeinfo_free(self.0) };
    }
}
