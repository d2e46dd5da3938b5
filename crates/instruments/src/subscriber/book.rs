//! The book of an instrument in one subscription.

use fanfare_fix::codec::{FieldSet, Message};
use fanfare_fix::tag;
use fanfare_market::Side;

use super::entry::{Action, Entry, RPT_SEQ, action, said};
use super::levels::{Levels, Row};
use super::news::Range;
use super::orders::Orders;
use super::{Counts, Terms, Updates, symbol_of};

/// `BookChecksum(20013)`.
const CHECKSUM: u32 = 20_013;

/// A book as a client holds it, with its state.
#[derive(Debug, Clone)]
pub struct Held {
    terms: Terms,
    sides: [Levels; 2],
    orders: [Orders; 2],
    /// The number of the last entry; `None` if it is unknown.
    number: Option<u64>,
    /// Whether a snapshot has come, and X continue from it.
    is_live: bool,
    /// The last state of the instrument from the gateway.
    state: Box<[u8]>,
    /// Whether entries were skipped, and no snapshot has come since.
    is_skipped: bool,
    /// Whether a fault was found, and no snapshot has come since.
    is_doubtful: bool,
    /// X since the last checksum.
    unchecked: u32,
}

impl Held {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            terms: *terms,
            sides: Default::default(),
            orders: Default::default(),
            number: None,
            is_live: false,
            state: Box::default(),
            is_skipped: false,
            is_doubtful: false,
            unchecked: 0,
        }
    }

    /// Returns the levels of a side, the best first; none if entries are orders.
    #[must_use]
    pub fn levels(&self, side: Side) -> &[Row] {
        let [bids, offers] = &self.sides;
        match side {
            Side::Bid => bids.rows(),
            Side::Offer => offers.rows(),
        }
    }

    /// Returns RptSeq(83) of the last entry, if it is known.
    #[must_use]
    pub const fn rpt_seq(&self) -> Option<u64> {
        self.number
    }

    /// Returns whether it has a snapshot, and nothing was skipped since.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.is_live && !self.is_skipped && !self.is_doubtful
    }

    /// Returns the FNV-1a checksum of 64 bits, the same as `market::Book::checksum`.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        let mut words = Vec::new();
        for (side, levels) in Side::BOTH.into_iter().zip(&self.sides) {
            if self.terms.by_order {
                let [bids, offers] = &self.orders;
                let orders = if side == Side::Bid { bids } else { offers };
                let levels = orders.levels(side);
                words.push(levels.len() as u64);
                for (row, queue) in levels {
                    add_row(&mut words, &row);
                    let queue = queue.iter();
                    words.extend(queue.flat_map(|(id, size)| [*id, size.cast_unsigned()]));
                }
            } else {
                words.push(levels.rows().len() as u64);
                let rows = levels.rows().iter();
                rows.for_each(|row| add_row(&mut words, row));
            }
        }
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// Takes W.
    pub(super) fn snapshot(&mut self, w: &Message<'_>, counts: &mut Counts) -> Result<(), String> {
        let before = self.number;
        let was_live = self.is_live();
        self.sides = Default::default();
        self.orders = Default::default();
        (self.is_live, self.is_doubtful, self.is_skipped) = (true, true, false);
        self.state = Box::default();
        self.unchecked = 0;
        let mut numbers = Vec::new();
        for fields in w.group(tag::NO_MD_ENTRIES).map_err(said)? {
            numbers.extend(fields.opt_u64(RPT_SEQ).map_err(said)?);
            let Some(entry) = Entry::of(&fields)? else {
                continue;
            };
            let side = entry.side as usize;
            match self.terms.by_order {
                true => own(&mut self.orders, side)?.change(Action::New, &entry)?,
                false => own(&mut self.sides, side)?.add(&entry)?,
            }
        }
        self.number = numbers.iter().copied().max().or(self.number);
        if numbers.iter().any(|number| Some(*number) != self.number) {
            return Err("the entries of a snapshot have several numbers".to_owned());
        }
        // A snapshot for all who have the instrument may have a number of its own.
        if let (Some(before), Some(now)) = (before, self.number)
            && (now < before || (was_live && now > before + 1 && self.has_all()))
        {
            return Err(format!("a snapshot of number {now} behind {before}"));
        }
        self.behind(w, counts, true)
    }

    /// Returns whether each entry has to come.
    const fn has_all(&self) -> bool {
        matches!(self.terms.updates, Updates::Changes) && !self.terms.conflated
    }

    /// Takes X.
    pub(super) fn change(&mut self, x: &Message<'_>, counts: &mut Counts) -> Result<(), String> {
        if self.is_doubtful {
            return Ok(());
        }
        self.is_doubtful = true;
        if self.terms.updates != Updates::Changes {
            let entries = x.body().escape_ascii();
            return Err(format!("changes were not asked for: {entries}"));
        }
        let has_numbers = x.begin_string() == b"FIXT.1.1";
        let is_waiting = !self.is_live || self.is_skipped;
        if (is_waiting || has_numbers) && are_held_back(x)? {
            // The next message of the instrument is a snapshot.
            (self.is_doubtful, self.is_live) = (false, false);
            return Ok(());
        }
        if is_waiting {
            let state = self.state.escape_ascii();
            let what = if self.is_skipped {
                "a gap"
            } else {
                "no snapshot"
            };
            return Err(format!("changes behind {what}, state `{state}`"));
        }
        let name = symbol_of(x);
        for fields in x.group(tag::NO_MD_ENTRIES).map_err(said)? {
            let symbol = fields.get(tag::SYMBOL);
            if symbol.is_some_and(|symbol| symbol != name && symbol != b"[N/A]") {
                return Err("an X has entries of several instruments".to_owned());
            }
            counts.entries += 1;
            self.count(&fields, has_numbers)?;
            self.entry(&fields)?;
        }
        self.unchecked += 1;
        self.behind(x, counts, false)
    }

    /// Counts an entry, whose number must be one more than the last.
    fn count(&mut self, fields: &FieldSet<'_>, has_numbers: bool) -> Result<(), String> {
        let expected = self.number.map(|number| number + 1);
        let number = fields.opt_u64(RPT_SEQ).map_err(said)?;
        if has_numbers && number.is_none() {
            return Err("an entry has no RptSeq(83)".to_owned());
        }
        if let (Some(expected), Some(number)) = (expected, number)
            && (number < expected || (number > expected && !self.terms.conflated))
        {
            return Err(format!("entry {number} for {expected}"));
        }
        self.number = number.or(expected);
        Ok(())
    }

    fn entry(&mut self, fields: &FieldSet<'_>) -> Result<(), String> {
        let Some(entry) = Entry::of(fields)? else {
            return Ok(());
        };
        let action = action(fields)?;
        let side = entry.side as usize;
        if self.terms.by_order {
            return own(&mut self.orders, side)?.change(action, &entry);
        }
        let depth = self.depth();
        own(&mut self.sides, side)?.change(action, &entry, depth)
    }

    const fn depth(&self) -> usize {
        match self.terms.depth {
            0 => usize::MAX,
            depth => depth as usize,
        }
    }

    /// Checks the book after a message, from which on it is not in doubt.
    fn behind(
        &mut self,
        message: &Message<'_>,
        counts: &mut Counts,
        is_snapshot: bool,
    ) -> Result<(), String> {
        for (side, levels) in Side::BOTH.into_iter().zip(&self.sides) {
            levels.agree(side)?;
            if levels.rows().len() > self.depth() {
                let (len, depth) = (levels.rows().len(), self.terms.depth);
                return Err(format!("{len} levels where {depth} were asked for"));
            }
        }
        self.check(message, counts, is_snapshot)?;
        self.is_doubtful = false;
        Ok(())
    }

    fn check(
        &mut self,
        message: &Message<'_>,
        counts: &mut Counts,
        is_snapshot: bool,
    ) -> Result<(), String> {
        let every = self.terms.checksum_every;
        let Some(said) = message.get(CHECKSUM) else {
            // The plant may count X of all who share them: two rounds have one of each.
            let is_due = is_snapshot || self.unchecked > every.saturating_mul(2);
            return match every > 0 && is_due {
                true => Err("a checksum was asked for, and there is none".to_owned()),
                false => Ok(()),
            };
        };
        self.unchecked = 0;
        counts.checked += 1;
        let ours = format!("{:016X}", self.checksum());
        match said.eq_ignore_ascii_case(ours.as_bytes()) {
            true => Ok(()),
            false => {
                let said = said.escape_ascii();
                let number = self.number.unwrap_or(0);
                Err(format!(
                    "checksum {ours} at number {number}, the plant has {said}"
                ))
            }
        }
    }

    /// Sets the instrument's state.
    pub(super) fn state(&mut self, state: &[u8]) {
        self.state = state.into();
        // A stale or closed book keeps its contents.
        self.is_live &= state != b"recovering";
    }

    /// Takes an announcement of skipped entries.
    pub(super) fn skipped(&mut self, range: Range) -> Result<(), String> {
        self.is_skipped = true;
        let Range { count, first, last } = range;
        let expected = self.number.map_or(first, |number| number + 1);
        self.number = Some(last);
        if count == 0 || first != expected || last.checked_sub(first) != count.checked_sub(1) {
            return Err(format!(
                "{count} entries from {first} to {last} are said to be missing, {expected} was next"
            ));
        }
        Ok(())
    }
}

/// Returns whether the entries are trades that were held back: neither bids nor offers, and without
/// numbers.
fn are_held_back(x: &Message<'_>) -> Result<bool, String> {
    for fields in x.group(tag::NO_MD_ENTRIES).map_err(said)? {
        if fields.get(RPT_SEQ).is_some() || Entry::of(&fields)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn own<T>(sides: &mut [T; 2], side: usize) -> Result<&mut T, String> {
    sides.get_mut(side).ok_or_else(|| "no side".to_owned())
}

fn add_row(words: &mut Vec<u64>, row: &Row) {
    words.push(row.price.units().cast_unsigned());
    words.push(row.size.cast_unsigned());
    words.push(row.orders);
}
