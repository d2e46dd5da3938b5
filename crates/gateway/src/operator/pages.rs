//! The parameters and results that all long lists share.

use crate::watch::Page;
use fanfare_operator::{Ask, Field, Member, OperatorError, Shape};

/// The parameter for the start of a page.
pub(super) const AFTER: Field = Field::text(
    "after",
    "Only rows after this one: the `next` of a response.",
);
/// The parameter for the length of a page.
pub(super) const LIMIT: Field = Field::number("limit", "Most rows: 1 to 1000. Default: 100.");

/// The member with the number of all rows.
pub(super) const TOTAL: Member = Member::new("total", Shape::Count, "All rows that match.");
/// The member with the start of the next page.
pub(super) const NEXT: Member = Member::new(
    "next",
    Shape::Maybe(&Shape::Text),
    "The `after` of the next page; null if there is none.",
);

/// Returns the page that is requested.
pub(super) fn page(ask: &Ask) -> Result<Page, OperatorError> {
    let after = ask.text("after").map(str::to_owned);
    Page::new(after, ask.number("limit")).map_err(OperatorError::usage)
}
