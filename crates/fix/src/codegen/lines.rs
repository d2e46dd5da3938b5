//! Lines of code, laid out as rustfmt lays them out.

use std::fmt::Write as _;

/// The width of rustfmt's lines.
const WIDTH: usize = 100;

pub(super) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    pub(super) fn new(depth: usize) -> Self {
        Self {
            text: String::new(),
            depth,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// One line; an empty one has no indentation.
    pub(super) fn line(&mut self, text: &str) {
        let indent = 4 * self.depth;
        _ = match text.is_empty() {
            true => writeln!(self.text),
            false => writeln!(self.text, "{:indent$}{text}", ""),
        };
    }

    /// A line that ends in `{`: what follows stands deeper, up to [`Lines::close`].
    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    pub(super) fn close(&mut self, text: &str) {
        self.depth -= 1;
        self.line(text);
    }

    /// A line in front of an item: none at the beginning of a block.
    pub(super) fn gap(&mut self) {
        if !self.text.ends_with("{\n") {
            self.line("");
        }
    }

    /// `head(parameters) -> result {`, in one line where it fits.
    pub(super) fn function(&mut self, head: &str, parameters: &[&str], result: &str) {
        let arrow = match result {
            "" => String::new(),
            result => format!(" -> {result}"),
        };
        let flat = format!("{head}({}){arrow} {{", parameters.join(", "));
        if 4 * self.depth + flat.len() <= WIDTH {
            return self.open(&flat);
        }
        self.open(&format!("{head}("));
        for parameter in parameters {
            self.line(&format!("{parameter},"));
        }
        self.close(&format!("){arrow} {{"));
        self.depth += 1;
    }

    /// `pattern => value,` of a match, in one line where it fits.
    pub(super) fn arm(&mut self, pattern: &str, value: &str) {
        let flat = format!("{pattern} => {value},");
        if 4 * self.depth + flat.len() <= WIDTH {
            return self.line(&flat);
        }
        self.open(&format!("{pattern} => {{"));
        self.line(value);
        self.close("}");
    }
}

/// Returns a literal of the bytes of a text.
pub(super) fn literal(text: &str) -> String {
    format!("b\"{}\"", text.as_bytes().escape_ascii())
}
