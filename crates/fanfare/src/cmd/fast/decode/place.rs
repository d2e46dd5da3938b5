//! The order of two recordings, which have numbers but no time.

use fanfare_feed::PacketNumbers;

/// Returns the line whose current packet or message comes first; one without a number comes at
/// once.
pub(crate) fn lowest<'p>(lines: impl Iterator<Item = Option<&'p Place>>) -> Option<usize> {
    let mut best: Option<(usize, &Place)> = None;
    for (index, place) in lines.enumerate() {
        let Some(place) = place else {
            continue;
        };
        if best.is_none_or(|(_, other)| place.is_before(other)) {
            best = Some((index, place));
        }
    }
    best.map(|(index, _)| index)
}

/// The position of a line in the sequence.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    sequence: Option<u32>,
    /// Number of sequences that have ended on this line.
    run: u32,
    /// The first number of the current sequence, once announced.
    begin: Option<u32>,
    /// The number that the current packet announces for the next one.
    announced: Option<u32>,
}

impl Place {
    fn is_before(&self, other: &Self) -> bool {
        match (self.sequence, other.sequence) {
            (Some(_), Some(_)) if self.run != other.run => self.run < other.run,
            (Some(mine), Some(theirs)) => (mine.wrapping_sub(theirs) as i32) < 0,
            (mine, _) => mine.is_none(),
        }
    }

    /// Advances to the packet with these numbers. A sequence ends if the line says so, or if the
    /// numbers go back to nearer the begin than to the last one: the announcement was lost then.
    pub(crate) fn go_on(&mut self, numbers: PacketNumbers) {
        let before = self.sequence;
        self.sequence = numbers.first;
        if let Some(next) = self.announced.take() {
            self.run += 1;
            self.begin = Some(next);
        } else if let (Some(before), Some(now), Some(begin)) = (before, numbers.first, self.begin)
            && let back = before.wrapping_sub(now)
            && (back as i32) > 0
            && now.wrapping_sub(begin) < back
        {
            self.run += 1;
        }
        let goes_on = numbers.first.map(|first| first.wrapping_add(numbers.count));
        self.announced = numbers.next.filter(|next| goes_on != Some(*next));
    }
}
