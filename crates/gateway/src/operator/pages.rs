//! What all long lists have in common.

use crate::watch::Page;
use fanfare_operator::{Ask, Field, Member, OperatorError, Shape};

/// Where a part begins.
pub(super) const AFTER: Field = Field::text("after", "Those behind: the `next` of an answer.");
/// How long it is.
pub(super) const LIMIT: Field = Field::number("limit", "Rows at most: 1 to 1000, 100 without.");

/// How many there are.
pub(super) const TOTAL: Member = Member::new("total", Shape::Count, "All that are asked for.");
/// Where the next part begins.
pub(super) const NEXT: Member = Member::new(
    "next",
    Shape::Maybe(&Shape::Text),
    "What `after` is for the next part; null if this is the last one.",
);

/// The part that is asked for.
pub(super) fn page(ask: &Ask) -> Result<Page, OperatorError> {
    let after = ask.text("after").map(str::to_owned);
    Page::new(after, ask.number("limit")).map_err(OperatorError::usage)
}
