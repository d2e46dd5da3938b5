//! Notices of the warnings of the DDS library.

use crate::notice::{Limit, Notice, Notices};
use crate::users::cut;
use fanfare_dds::Warnings;
use fanfare_engine::clock::monotonic;
use std::sync::Mutex;

/// Sends a notice of each warning of the DDS library, at most ten in 10 s, until the result is
/// dropped. Any host that reaches the ports of a domain can cause warnings without end.
pub(crate) fn warnings(notices: &Notices) -> Warnings {
    Warnings::new(listener(notices.clone(), monotonic))
}

/// Returns the listener to warnings, with its clock.
fn listener(notices: Notices, now: impl Fn() -> u64) -> impl Fn(&str) {
    let limit = Mutex::new(Limit::default());
    move |text| {
        let Ok(mut limit) = limit.lock() else {
            return;
        };
        if limit.lets(i64::try_from(now()).unwrap_or(i64::MAX)) {
            notices.send(Notice::DdsWarning {
                what: cut(text.to_owned()),
                untold: limit.untold(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::channel;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn warnings_without_end_are_ten_notices_and_a_sum() {
        let (notices, received) = channel();
        let clock = Arc::new(AtomicU64::new(1));
        let time = Arc::clone(&clock);
        let warn = listener(notices, move || time.load(Ordering::Relaxed));
        let told = || received.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        for _ in 0..15 {
            warn("malformed packet");
        }
        assert_eq!(told(), ["Cyclone DDS: malformed packet"; 10]);
        clock.store(11_000_000_000, Ordering::Relaxed);
        warn(&"x".repeat(1 << 20));
        let told = told();
        let [one] = told.as_slice() else {
            panic!("{} notices", told.len());
        };
        assert!(
            one.starts_with("Cyclone DDS: xxx") && one.len() < 2_000,
            "{one}"
        );
        assert!(one.ends_with(" (and 5 more before)"), "{one}");
    }
}
