//! Sorted rows in one buffer, the best last, with free capacity at both ends.

/// A row with a key, in ascending order, so that the last is the best.
pub(super) trait Row: Copy + Default {
    /// Returns the key by which rows are sorted: a price, or [`!price`](super::Side::key) among
    /// offers.
    fn key(&self) -> i64;
}

/// Sorted rows, of which as few as possible move on insertion and removal: those on the shorter
/// side.
///
/// Most changes are near the best, so that mostly one to three rows move. When the capacity at an
/// end is used up, all rows move to the middle, at most once in as many insertions as a quarter of
/// the limit.
#[derive(Clone, Debug)]
pub(super) struct Window<R> {
    /// The buffer, as long as the capacity.
    rows: Box<[R]>,
    start: usize,
    end: usize,
}

/// The rows at the end that are compared without branches.
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

    /// Returns how many rows have keys below this one: the index of the row with the key, or of its
    /// insertion.
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

    /// Inserts a row before the one at `at`. There must be fewer rows than the limit, and `at` must
    /// not exceed their number.
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

    /// Removes the row at `at`, which must exist.
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
