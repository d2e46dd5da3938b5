//! Values to rows: a record filled field by field, as a decoder would have left it, so that it is
//! encoded in lanes.

use fanfare_wire::lanes::{self, Plan, Row};

use crate::program::lanes::Flat;
use crate::program::{Field, Place, Program, Reading, TemplateProgram};
use crate::record::Record;
use crate::value::Decimal;
use crate::visitor::Visitor;

/// A visitor that writes what it is told into a record's rows.
pub(crate) struct RowFiller<'f> {
    program: &'f Program,
    record: &'f mut Record,
    /// The form of the message, as long as everything fits into its rows.
    flat: Option<&'f Flat>,
    /// Which row is being filled.
    row: usize,
}

impl<'f> RowFiller<'f> {
    pub(crate) fn new(program: &'f Program, record: &'f mut Record) -> Self {
        Self {
            program,
            record,
            flat: None,
            row: 0,
        }
    }

    /// Whether the record now holds the message, all of it.
    pub(crate) fn finish(self) -> bool {
        let Some(flat) = self.flat else {
            return false;
        };
        let head = &self.program.segment(flat.head).plan;
        let entry = flat.entry.as_ref();
        let entry = entry.map(|entry| &self.program.segment(entry.segment).plan);
        self.record.close(|index, row| match (index, entry) {
            (0, _) => head.may_hold(row.present),
            (_, Some(entry)) => entry.may_hold(row.present),
            _ => false,
        })
    }

    /// It does not fit.
    #[cold]
    fn give_up(&mut self) {
        self.flat = None;
    }

    /// Writes a value that goes with `reading` to the field's lane and those behind it.
    #[inline(always)]
    fn put<const N: usize>(
        &mut self,
        field: &Field,
        fits: impl FnOnce(&Place) -> Option<[i64; N]>,
    ) {
        let Some(flat) = self.flat else { return };
        if self.try_put(flat, field, fits).is_none() {
            self.give_up();
        }
    }

    #[inline(always)]
    fn try_put<const N: usize>(
        &mut self,
        flat: &Flat,
        field: &Field,
        fits: impl FnOnce(&Place) -> Option<[i64; N]>,
    ) -> Option<()> {
        let place = self.program.place(field.id())?;
        let plan = self.plan(flat, &place)?;
        let values = fits(&place)?;
        if place.lane == Place::NO_LANE {
            return Some(());
        }
        let row = self.record.row_mut(self.row)?;
        for (value, lane) in values.into_iter().zip(usize::from(place.lane)..) {
            if !plan.holds(lane, value) {
                return None;
            }
            *row.values.get_mut(lane)? = value as i32;
            row.present |= 1 << lane;
        }
        Some(())
    }

    /// The plan of the row being filled, if it is the one that the field belongs to.
    #[inline(always)]
    fn plan(&self, flat: &Flat, place: &Place) -> Option<&'f Plan> {
        let segment = match (place.in_entry, &flat.entry) {
            (false, _) => flat.head,
            (true, Some(entry)) => entry.segment,
            (true, None) => return None,
        };
        let is_here = place.template == flat.template && place.in_entry == (self.row > 0);
        is_here.then(|| &self.program.segment(segment).plan)
    }

    #[inline(always)]
    fn text(&mut self, field: &Field, value: &[u8]) {
        let program = self.program;
        self.put(field, |place| match place.reading {
            Reading::Ascii => Some([lanes::pack(value)? as i64]),
            Reading::ConstantText(text) if program.text(text) == value => Some([0]),
            _ => None,
        });
    }
}

impl Visitor for RowFiller<'_> {
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.flat = self.program.flat_of(template.index());
        self.row = 0;
        self.record.open(template.index());
    }

    #[inline(always)]
    fn unsigned(&mut self, field: &Field, value: u64) {
        self.put(field, |place| match place.reading {
            Reading::Unsigned => Some([i64::try_from(value).ok()?]),
            Reading::ConstantUnsigned(constant) if constant == value => Some([0]),
            _ => None,
        });
    }

    #[inline(always)]
    fn signed(&mut self, field: &Field, value: i64) {
        self.put(field, |place| match place.reading {
            Reading::Signed => Some([value]),
            Reading::ConstantSigned(constant) if constant == value => Some([0]),
            _ => None,
        });
    }

    #[inline(always)]
    fn decimal(&mut self, field: &Field, value: Decimal) {
        let Decimal { mantissa, exponent } = value;
        let place = self.program.place(field.id());
        match place.map(|place| place.reading) {
            Some(Reading::Decimal) => self.put(field, |_| Some([i64::from(exponent), mantissa])),
            Some(Reading::Mantissa(constant)) if constant == exponent => {
                self.put(field, |_| Some([mantissa]));
            }
            Some(Reading::ConstantDecimal(constant)) if constant == value => {
                self.put(field, |_| Some([0]));
            }
            _ => self.give_up(),
        }
    }

    #[inline(always)]
    fn ascii(&mut self, field: &Field, value: &[u8]) {
        self.text(field, value);
    }

    #[inline(always)]
    fn unicode(&mut self, field: &Field, value: &[u8]) {
        self.text(field, value);
    }

    #[inline(always)]
    fn bytes(&mut self, field: &Field, value: &[u8]) {
        self.text(field, value);
    }

    /// Absent is what was not told; whether it may be is seen at the end.
    #[inline(always)]
    fn absent(&mut self, _: &Field) {}

    fn begin_group(&mut self, _: &Field) {
        self.give_up();
    }

    fn begin_sequence(&mut self, field: &Field, length: u32) {
        self.put(field, |place| {
            (place.reading == Reading::Length).then_some([i64::from(length)])
        });
        if self.flat.is_some() {
            self.record.open_sequence(length);
        }
    }

    fn begin_entry(&mut self, _: &Field, _: u32) {
        if self.flat.is_some() {
            self.row = self.record.open_entry();
        }
    }

    fn end_sequence(&mut self, _: &Field) {
        self.row = 0;
    }

    fn begin_template(&mut self, _: &Field, _: &TemplateProgram) {
        self.give_up();
    }
}

impl Record {
    /// A message begins that is filled from outside.
    fn open(&mut self, template: u32) {
        self.fill_rows(template);
        self.clear_row(0);
    }

    fn open_sequence(&mut self, count: u32) {
        self.set_sequence(count);
    }

    /// The next entry: the number of its row.
    fn open_entry(&mut self) -> usize {
        let row = self.add_row();
        self.clear_row(row);
        row
    }

    fn clear_row(&mut self, number: usize) {
        if let Some(row) = self.row_mut(number) {
            (row.present, row.bits) = (0, 0);
        }
    }

    /// The message is complete, if all rows are as they may be.
    fn close(&mut self, is_whole: impl Fn(usize, &Row) -> bool) -> bool {
        let Some(rows) = self.all_rows() else {
            return false;
        };
        let entries = rows.entries.unwrap_or_default() as usize;
        let mut all = rows.rows.iter().enumerate();
        let done = rows.rows.len() == entries + 1 && all.all(|(index, row)| is_whole(index, row));
        self.set_complete(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{ComplexOptions, Generator, PACKET_SIZE};
    use crate::typed::replay;
    use crate::{Decoder, Message};

    #[test]
    fn rows_are_as_a_decoder_leaves_them() {
        let complex = ComplexOptions::default();
        for (program, mut generator) in [
            (
                Program::simple(),
                Generator::simple(Program::simple(), 300, PACKET_SIZE),
            ),
            (
                Program::complex(),
                Generator::complex(Program::complex(), 300, None, complex),
            ),
        ] {
            let mut decoder = Decoder::new(program.clone());
            let mut other = Decoder::new(program.clone());
            let (mut message, mut filled) = (Message::new(), Record::new());
            let mut decoded = Record::new();
            while let Some(packet) = generator.next_packet().unwrap() {
                decoder.reset();
                other.reset();
                let mut at = 0;
                while at < packet.len() {
                    other.decode_record(&packet[at..], &mut decoded).unwrap();
                    at += decoder.decode(&packet[at..], &mut message).unwrap();
                    let view = message.view(&program).unwrap();
                    let mut filler = RowFiller::new(&program, &mut filled);
                    filler.begin_message(view.template());
                    replay(view.fields(), &mut filler);
                    let (is_whole, flat) =
                        (filler.finish(), program.flat_of(view.template().index()));
                    assert_eq!(is_whole, flat.is_some());
                    // Without lanes there are no rows to compare with.
                    if is_whole && decoded.all_rows().is_some() {
                        compare(&filled, &decoded);
                    }
                }
            }
        }
    }

    fn compare(filled: &Record, decoded: &Record) {
        let (filled, decoded) = (filled.all_rows().unwrap(), decoded.all_rows().unwrap());
        assert_eq!(filled.rows.len(), decoded.rows.len());
        for (filled, decoded) in filled.rows.iter().zip(decoded.rows) {
            assert_eq!(filled.present, decoded.present);
            for lane in (0..lanes::MAX_LANES).filter(|lane| filled.present >> lane & 1 != 0) {
                assert_eq!(filled.values[lane], decoded.values[lane]);
            }
        }
    }
}
