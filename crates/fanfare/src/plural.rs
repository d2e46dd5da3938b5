//! Nouns with their numbers.

/// Returns a number of things: "1 session", "2 sessions".
pub(crate) fn counted(n: u64, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {thing}{plural}")
}
