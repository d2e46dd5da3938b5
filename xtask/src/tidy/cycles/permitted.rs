//! The knots that may stay, each with its reason.

/// A knot that may stay.
pub(super) struct Permitted {
    /// The crate's folder.
    pub(super) name: &'static str,
    /// The modules of its files, in the order of the alphabet.
    pub(super) modules: &'static [&'static str],
    /// Why they use each other.
    pub(super) why: &'static str,
}

/// Who mends one of them removes it here. All but those of `wire::lanes` are to go.
pub(super) const PERMITTED: &[Permitted] = &[
    Permitted {
        name: "wire",
        modules: &["lanes::avx2", "lanes::avx2_short"],
        why: "the kernels are about to be replaced",
    },
    Permitted {
        name: "wire",
        modules: &["lanes::avx512_plain", "lanes::shortcuts"],
        why: "the kernels are about to be replaced",
    },
];
