//! A part of a long list.

/// The rows of a list unless an operator asks for another number, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 1_000;

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where the part before ended: what `next` was there.
    pub(crate) after: Option<String>,
    /// Rows at most.
    pub(crate) limit: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            after: None,
            limit: ROWS,
        }
    }
}

impl Page {
    /// The part that an operator asks for.
    ///
    /// # Errors
    /// The limit is out of range.
    pub(crate) fn new(after: Option<String>, limit: Option<u64>) -> Result<Self, String> {
        let limit = limit.map_or(Ok(ROWS), |limit| {
            let rows = usize::try_from(limit).ok();
            let rows = rows.filter(|rows| (1..=MOST_ROWS).contains(rows));
            rows.ok_or_else(|| format!("`limit` is {limit}: it can be 1 to {MOST_ROWS}"))
        });
        Ok(Self {
            after,
            limit: limit?,
        })
    }

    /// `after` as a number, 0 if it is not there.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn after_number(&self) -> Result<u64, String> {
        self.after.as_deref().map_or(Ok(0), |after| {
            let number = after.parse();
            number.map_err(|_| "`after` is the `next` of an answer, or a number".to_owned())
        })
    }
}
