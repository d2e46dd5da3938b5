//! Sorted rows in one piece of memory, the best at the end, with room in front and behind.

/// Rows with a key, in ascending order of it: the last is the best.
pub(super) trait Row: Copy + Default {
    /// Returns the key by which rows are sorted: a price, or [`!price`](super::Side::key) among
    /// offers.
    fn key(&self) -> i64;
}

/// Rows that move as little as may be when one comes or goes: only those on its shorter side.
///
/// Most changes are near the best, so that mostly one to three rows move. Where the room at an
/// end is used up, all rows move to the middle; that is once in a quarter of the most rows at the
/// earliest.
#[derive(Clone, Debug)]
pub(super) struct Window<R> {
    /// As long as there is room.
    rows: Box<[R]>,
    start: usize,
    end: usize,
}

/// Rows at the end that are compared without a branch for each.
const NEAR: usize = 16;

impl<R: Row> Window<R> {
    /// Returns an empty window for `most` rows.
    pub(super) fn new(most: usize) -> Self {
        let room = most + most / 2 + 8;
        Self {
            rows: vec![R::default(); room].into(),
            start: room / 2,
            end: room / 2,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns the rows, the best at the end.
    #[inline]
    pub(super) fn rows(&self) -> &[R] {
        self.rows.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub(super) fn rows_mut(&mut self) -> &mut [R] {
        self.rows.get_mut(self.start..self.end).unwrap_or_default()
    }

    /// Returns how many rows have keys below this one: the place of the row with the key, or where
    /// it would be.
    #[inline]
    pub(super) fn place(&self, key: i64) -> usize {
        let rows = self.rows();
        let far = rows.len().saturating_sub(NEAR);
        let mut at = rows.len();
        while at > far {
            if rows[at - 1].key() < key {
                return at;
            }
            at -= 1;
        }
        rows[..far].partition_point(|row| row.key() < key)
    }

    /// Puts a row in front of the one at `at`. There must be room: fewer rows than the most, and
    /// `at` no more than there are.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, row: R) {
        debug_assert!(at <= self.len() && self.len() + 2 < self.rows.len());
        if at >= self.len() - at {
            if self.end == self.rows.len() {
                self.centre();
            }
            let place = self.start + at;
            self.rows.copy_within(place..self.end, place + 1);
            self.end += 1;
            self.rows[place] = row;
        } else {
            if self.start == 0 {
                self.centre();
            }
            self.rows
                .copy_within(self.start..self.start + at, self.start - 1);
            self.start -= 1;
            self.rows[self.start + at] = row;
        }
    }

    /// Takes the row at `at` out, which must be one.
    #[inline]
    pub(super) fn remove(&mut self, at: usize) {
        debug_assert!(at < self.len());
        let place = self.start + at;
        if at >= self.len() - at {
            self.rows.copy_within(place + 1..self.end, place);
            self.end -= 1;
        } else {
            self.rows.copy_within(self.start..place, self.start + 1);
            self.start += 1;
        }
    }

    /// Removes the `count` best, or all if there are fewer.
    pub(super) fn remove_best(&mut self, count: usize) {
        self.end -= count.min(self.len());
    }

    /// Removes the `count` worst, or all if there are fewer.
    #[inline]
    pub(super) fn remove_worst(&mut self, count: usize) {
        self.start += count.min(self.len());
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (self.rows.len() / 2, self.rows.len() / 2);
    }

    /// Returns the number of bytes allocated.
    pub(super) fn memory(&self) -> usize {
        size_of_val::<[R]>(&self.rows)
    }

    #[cold]
    #[inline(never)]
    fn centre(&mut self) {
        let start = (self.rows.len() - self.len()) / 2;
        self.rows.copy_within(self.start..self.end, start);
        (self.start, self.end) = (start, start + self.len());
    }
}
