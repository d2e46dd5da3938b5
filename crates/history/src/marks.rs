//! The watermarks in front of an event.

use fanfare_market::Watermark;
use fanfare_market::watermark::ClockCourse;

/// The watermarks in front of the next event: the last one, and in front of it one with which the
/// clock was set back.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    back: Option<Watermark>,
    last: Option<Watermark>,
}

impl Marks {
    /// Adds a watermark behind the others. It replaces the last one, and one with which the clock
    /// was set back replaces all.
    pub(crate) const fn add(&mut self, mark: Watermark) {
        match mark.clock {
            // It ends whatever the watermarks before it would.
            ClockCourse::SetBack(_) => (self.back, self.last) = (Some(mark), None),
            ClockCourse::Forward | ClockCourse::Unknown => self.last = Some(mark),
        }
    }

    /// Adds the watermark of a record. Returns true, as the record is at no end.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> bool {
        if let Some(mark) = Watermark::from_bytes(bytes) {
            self.add(mark);
        }
        true
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.back.is_none() && self.last.is_none()
    }

    /// Takes the watermark with which the clock was set back, if there is one.
    pub(crate) const fn take_back(&mut self) -> Option<Watermark> {
        self.back.take()
    }

    /// Takes all of them, in their order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Watermark> + use<> {
        let all = [self.back.take(), self.last.take()];
        all.into_iter().flatten()
    }
}
