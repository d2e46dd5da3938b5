//! Records of flat templates: each row is one segment for the kernel. What is not regular goes to
//! the scalar encoder, from its segment on.

use super::Encoder;
use super::run::Run;
use crate::error::{CodecError, ErrorCode};
use crate::record::Record;
use crate::rows::Rows;

/// Beyond these, template identifiers take more than a byte.
const SMALL_IDS: u32 = 128;

impl Encoder {
    /// Appends one message to `out`; returns the number of bytes.
    ///
    /// # Errors
    /// As [`Self::encode`]; [`ErrorCode::Foreign`], before anything is done, if the record comes
    /// from a decoder with other templates, and an input error if it holds no whole message.
    #[inline]
    pub fn encode_record(
        &mut self,
        record: &Record,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        if !record.is_of(&self.program) {
            return Err(CodecError::new(ErrorCode::Foreign, 0));
        }
        let Some(rows) = record.all_rows() else {
            return self.encode(record.message(), out);
        };
        if !rows.is_whole {
            return Err(CodecError::new(ErrorCode::Input, 0));
        }
        self.writer.clear();
        match self.rows(&rows) {
            Some(0) => {}
            Some(done) => self.go_on(&rows, done - 1)?,
            None => {
                rows.write(&self.program, &mut self.message);
                self.run_own()?;
            }
        }
        self.hand_over(out)
    }

    /// Encodes rows in lanes: `Some(0)` if all are done, else one more than the entries that are;
    /// `None` if not even the first row is.
    #[inline(always)]
    fn rows(&mut self, rows: &Rows<'_>) -> Option<usize> {
        let kernel = self.options.lane_kernel()?;
        let program = &*self.program;
        let flat = program.flat_of(rows.template)?;
        let template = program.templates().get(rows.template as usize)?;
        let id = template.id().filter(|id| *id < SMALL_IDS)?;
        if self.dictionaries.is_noting() {
            return None;
        }
        let front = match self.dictionaries.template == Some(rows.template) {
            true => 0,
            false => 0x180 | id,
        };
        if flat.resets {
            self.dictionaries.reset();
        }
        let (first, entries) = rows.rows.split_first()?;
        let columns = &mut self.dictionaries.columns;
        let head = &program.segment(flat.head).plan;
        let len = kernel.encode(head, columns, first, front, self.writer.room())?;
        self.writer.advance(len);
        self.dictionaries.template = Some(rows.template);
        let Some(entry) = &flat.entry else {
            return Some(0);
        };
        let plan = &program.segment(entry.segment).plan;
        for (index, row) in entries.iter().enumerate() {
            match kernel.encode(plan, columns, row, 0, self.writer.room()) {
                Some(len) => self.writer.advance(len),
                None => return Some(index + 1),
            }
        }
        Some(0)
    }

    /// Encodes the entries behind those that are done, field by field.
    #[cold]
    fn go_on(&mut self, rows: &Rows<'_>, done: usize) -> Result<(), CodecError> {
        rows.write(&self.program, &mut self.message);
        let flat = self.program.flat_of(rows.template);
        let Some(entry) = flat.and_then(|flat| flat.entry.as_ref()) else {
            return Ok(());
        };
        Run {
            program: &self.program,
            dictionaries: &mut self.dictionaries,
            message: &self.message,
            out: &mut self.writer,
            options: &self.options,
        }
        .further_entries(entry.field, entry.body, done)
        .map_err(|error| error.in_template(rows.template))
    }
}
