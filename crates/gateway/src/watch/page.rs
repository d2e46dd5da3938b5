//! A page of a long list.

/// The default and the greatest number of rows of a list.
const ROWS: usize = 100;
const MOST_ROWS: usize = 1_000;

/// The selection of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The end of the previous page: its `next`.
    pub(crate) after: Option<String>,
    /// The most rows.
    pub(crate) limit: usize,
}

impl Page {
    /// Returns the page that an operator requests.
    ///
    /// # Errors
    /// Returns an error if the limit is out of range.
    pub(crate) fn new(after: Option<String>, limit: Option<u64>) -> Result<Self, String> {
        let limit = limit.map_or(Ok(ROWS), |limit| {
            let rows = usize::try_from(limit).ok();
            let rows = rows.filter(|rows| (1..=MOST_ROWS).contains(rows));
            rows.ok_or_else(|| format!("`limit` is {limit}: must be between 1 and {MOST_ROWS}"))
        });
        Ok(Self {
            after,
            limit: limit?,
        })
    }

    /// Returns `after` as a number, or 0 if it is absent.
    ///
    /// # Errors
    /// Returns an error if it is not a number.
    pub(crate) fn after_number(&self) -> Result<u64, String> {
        self.after.as_deref().map_or(Ok(0), |after| {
            let number = after.parse();
            number.map_err(|_| "`after` must be the `next` of an answer, or a number".to_owned())
        })
    }
}
