//! The descriptions of errors, with the names of a program.

use super::Program;
use crate::error::CodecError;

impl CodecError {
    /// Returns the name of the template, if one was known.
    #[must_use]
    pub fn template_name<'p>(&self, program: &'p Program) -> Option<&'p str> {
        Some(program.templates().get(self.template? as usize)?.name())
    }

    /// Returns the field as a path like `MDEntries[2].MDEntryPx`, with entries counted from 0.
    #[must_use]
    pub fn path(&self, program: &Program) -> Option<String> {
        let mut entries = self.entries().iter();
        let mut path = String::new();
        let mut next = self.field;
        let mut inner = false;
        while let Some(id) = next {
            let field = program.field(id);
            let index = match field.is_sequence() && (inner || self.is_of_entry()) {
                true => entries
                    .next()
                    .map(|entry| format!("[{entry}]"))
                    .unwrap_or_default(),
                false => String::new(),
            };
            let dot = if inner { "." } else { "" };
            path = format!("{}{index}{dot}{path}", field.name());
            inner = true;
            next = field.parent();
        }
        self.field.map(|_| path)
    }

    /// Returns the error as a sentence with all names: `D9 at byte 7 in template T, field S[1].V:
    /// ...`. `base` is the offset of the bytes in a file or stream.
    #[must_use]
    pub fn describe(&self, program: &Program, base: u64) -> String {
        let mut text = format!("{} at byte {}", self.code, base + self.offset as u64);
        if let Some(template) = self.template_name(program) {
            text += " in template ";
            text += template;
        }
        if let Some(path) = self.path(program) {
            text += ", field ";
            text += &path;
        }
        text += ": ";
        text += &self.text();
        text
    }
}
