//! The construction of definitions from the values of a message.

use super::cells::{Cells, Raw, Ref, Room};
use super::fault::Flaw;
use super::plan::Plan;
use crate::instruments::{Column, Columns, Definition, IdSource, Name};

/// The number of texts of a definition, besides its name, that may have been sent as numbers.
pub(super) const ROOMS: usize = 8;

/// Returns the name of the instrument of a message or an entry.
pub(super) fn name<'c>(
    cells: &'c Cells,
    plan: &Plan,
    source: IdSource,
    texts: &'c [u8],
    room: &'c mut Room,
) -> Result<Name<'c>, Flaw> {
    let mut name = Name {
        source,
        ..Name::default()
    };
    if let Some((cell, raw)) = cells.find(plan.id) {
        name.id = raw.security_id(texts).map_err(|why| (cell, why))?;
    }
    if let Some((_, raw)) = cells.find(plan.symbol) {
        name.symbol = raw.text(texts, room);
    }
    Ok(name)
}

/// Returns the definition of this name in a message or an entry, without maturity, the values that
/// it has, and its SecurityTradingStatus(326).
pub(super) fn read<'c>(
    cells: &'c Cells,
    plan: &Plan,
    texts: &'c [u8],
    (name, rooms): (Name<'c>, &'c mut [Room; ROOMS]),
) -> Result<(Definition<'c>, Columns, Option<u16>), Flaw> {
    let mut definition = Definition::named(name);
    let (mut has, mut status) = (Columns::NAME, None);
    let mut rooms = rooms.iter_mut();
    let mut text = |field: Ref| -> &'c [u8] {
        match (cells.find(field), rooms.next()) {
            (Some((_, raw)), Some(room)) => raw.text(texts, room),
            _ => b"",
        }
    };
    let price = |cell: u8, raw: &Raw| raw.price(texts).map_err(|why| (cell, why));
    let small =
        |cell: u8, raw: &Raw, most: u64| raw.at_most(most, texts).map_err(|why| (cell, why));
    for (key, field) in &plan.definition {
        let Some((cell, raw)) = cells.find(*field) else {
            continue;
        };
        has = has.with(Columns::of(*key));
        match *key {
            Column::Description => definition.description = text(*field),
            Column::Type => definition.security_type = text(*field),
            Column::Cfi => definition.cfi = text(*field),
            Column::Currency => definition.currency = text(*field),
            Column::Market => definition.market = text(*field),
            Column::Segment => definition.segment = text(*field),
            Column::Underlying => definition.underlying = text(*field),
            Column::MaturityMonth => definition.maturity_month = text(*field),
            Column::Tick => definition.tick = price(cell, raw)?,
            Column::Multiplier => definition.multiplier = price(cell, raw)?,
            Column::Strike => definition.strike = price(cell, raw)?,
            Column::LowLimit => definition.low_limit = price(cell, raw)?,
            Column::HighLimit => definition.high_limit = price(cell, raw)?,
            Column::Depth => definition.depth = small(cell, raw, u16::MAX.into())? as u16,
            Column::BookType => definition.book_type = small(cell, raw, u8::MAX.into())? as u8,
            Column::Status => status = Some(small(cell, raw, u16::MAX.into())? as u16),
        }
    }
    Ok((definition, has, status))
}
