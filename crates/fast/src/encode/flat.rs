//! Records of flat templates: each row is one segment for the kernel. What is not regular goes to
//! the scalar encoder, from its segment on.

use super::Encoder;
use super::run::Run;
use crate::error::{CodecError, ErrorCode};
use crate::record::Record;
use crate::rows::Rows;

impl Encoder {
    /// Appends one message to `out`; returns the number of bytes.
    ///
    /// # Errors
    /// As [`Self::encode`]; [`ErrorCode::Foreign`], before anything is done, if the record comes
    /// from a decoder with other templates, and an input error if it holds no whole message.
    #[inline(always)]
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
        let start = out.len();
        match self.rows(&rows, out) {
            Some(0) => {}
            done => {
                if let Err(error) = self.rest(&rows, done, out) {
                    out.truncate(start);
                    return Err(error);
                }
            }
        }
        let len = out.len() - start;
        if len > self.options.limits.message {
            out.truncate(start);
            return Err(CodecError::new(ErrorCode::Limit, len));
        }
        Ok(len)
    }

    /// Encodes rows in lanes: `Some(0)` if all are done, else one more than the entries that are;
    /// `None` if not even the first row is.
    #[inline(always)]
    fn rows(&mut self, rows: &Rows<'_>, out: &mut Vec<u8>) -> Option<usize> {
        let kernel = self.options.lane_kernel()?;
        let program = &*self.program;
        let flat = program.flat_of(rows.template)?;
        if self.dictionaries.is_noting() || flat.front == 0 {
            return None;
        }
        let front = match self.dictionaries.template == Some(rows.template) {
            true => 0,
            false => flat.front,
        };
        if flat.resets {
            self.dictionaries.reset();
        }
        let (first, entries) = rows.rows.split_first()?;
        let columns = &mut self.dictionaries.columns;
        if !kernel.encode(&flat.segment.plan, columns, first, front, out) {
            return None;
        }
        self.dictionaries.template = Some(rows.template);
        let Some(entry) = &flat.entry else {
            return Some(0);
        };
        let plan = &entry.at_hand.plan;
        let done = kernel.encode_entries(plan, columns, entries, out);
        Some(if done == entries.len() { 0 } else { done + 1 })
    }

    /// Encodes what was not done in lanes, field by field.
    #[cold]
    #[inline(never)]
    fn rest(
        &mut self,
        rows: &Rows<'_>,
        done: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.writer.clear();
        rows.write(&self.program, &mut self.message);
        match done {
            Some(done) => self.go_on(rows, done - 1)?,
            None => self.run_own()?,
        }
        out.extend_from_slice(self.writer.written());
        Ok(())
    }

    /// Encodes the entries behind those that are done, field by field.
    fn go_on(&mut self, rows: &Rows<'_>, done: usize) -> Result<(), CodecError> {
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
