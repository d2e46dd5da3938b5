//! The list of subscriptions, worker by worker.

use super::Watch;
use super::page::Page;
use crate::service::{At, NoAnswer, WantedSubscriptions};
use serde_json::{Value, json};

/// The reason why the list cannot be returned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoList {
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// A worker has not responded.
    #[error(transparent)]
    Worker(#[from] NoAnswer),
}

impl Watch {
    /// Returns a page of the subscriptions that match, worker by worker. Waits for the workers.
    ///
    /// # Errors
    /// Returns a [`NoList`].
    pub(crate) fn subscriptions(
        &self,
        wanted: &WantedSubscriptions,
        page: &Page,
    ) -> Result<Value, NoList> {
        let after = page.after.as_deref().map(place).transpose()?;
        let (mut total, mut rows, mut has_more) = (0, Vec::new(), false);
        for (worker, inspector) in self.0.inspectors.iter().enumerate() {
            // Workers before this position were listed completely.
            let after = match after {
                Some((of, _)) if worker < of => Some((u32::MAX, u32::MAX)),
                Some((of, at)) if worker == of => Some(at),
                _ => None,
            };
            let found = inspector.ask(wanted, after, page.limit - rows.len())?;
            total += found.total;
            has_more |= found.has_more;
            rows.extend(found.rows.into_iter().map(|(at, row)| ((worker, at), row)));
        }
        let last = rows.last().filter(|_| has_more);
        let next = last.map(|((worker, at), _)| format!("{worker}.{}.{}", at.0, at.1));
        let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
        Ok(json!({"total": total, "next": next, "subscriptions": rows}))
    }
}

/// Parses a position named in a previous response.
fn place(text: &str) -> Result<(usize, At), NoList> {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    let place = [parts.next(), parts.next(), parts.next()].map(Option::flatten);
    match (place, parts.next()) {
        ([Some(worker), Some(session), Some(subscription)], None) => {
            Ok((worker as usize, (session, subscription)))
        }
        _ => Err(NoList::Asked(
            "`after` must be the `next` of an answer".to_owned(),
        )),
    }
}
