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

/// A knot that is mended is removed here.
pub(super) const PERMITTED: &[Permitted] = &[
    Permitted {
        name: "wire",
        modules: &["lanes::avx2", "lanes::avx2_short"],
        why: "one kernel in two files; issue 15 decides whether the second one stays",
    },
    Permitted {
        name: "wire",
        modules: &["lanes::avx512_plain", "lanes::shortcuts"],
        why: "one kernel in two files; issue 15 decides whether the second one stays",
    },
];
