//! The samples that the subscribing side receives, and their counts.

use std::sync::atomic::{AtomicU64, Ordering};

use super::DoneToken;
use crate::Sample;
use crate::fast::TemplateType;

/// A sample that a subscriber received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The type of the template.
    pub template: &'a TemplateType,
    /// The topic on which it arrived.
    pub topic: &'a str,
    /// The sample.
    pub sample: Sample<'a>,
}

/// Counts of received samples and tokens.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) received: AtomicU64,
    pub(super) echo_failed: AtomicU64,
    /// The total that the tokens announced, the most that one announced, and the number of tokens.
    pub(super) announced: AtomicU64,
    pub(super) most: AtomicU64,
    pub(super) tokens: AtomicU64,
}

impl Counts {
    /// Counts a token; other bytes are ignored.
    pub(super) fn token(&self, sample: &Sample<'_>) {
        if let Ok(token) = sample.value::<DoneToken>() {
            self.announced.fetch_add(token.samples, Ordering::Release);
            self.most.fetch_max(token.samples, Ordering::Release);
            self.tokens.fetch_add(1, Ordering::Release);
        }
    }
}
