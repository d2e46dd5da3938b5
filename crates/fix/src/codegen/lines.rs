//! Lines of code in the layout of rustfmt.

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

    /// Appends a line with indentation. An empty line has none.
    pub(super) fn line(&mut self, text: &str) {
        let indent = 4 * self.depth;
        _ = match text.is_empty() {
            true => writeln!(self.text),
            false => writeln!(self.text, "{:indent$}{text}", ""),
        };
    }

    /// Appends a line that ends in `{`. The lines up to [`Lines::close`] are indented further.
    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    pub(super) fn close(&mut self, text: &str) {
        self.depth -= 1;
        self.line(text);
    }

    /// Appends an empty line before an item, except at the beginning of a block.
    pub(super) fn gap(&mut self) {
        if !self.text.ends_with("{\n") {
            self.line("");
        }
    }

    /// Appends `head(parameters) -> result {`, in one line if it fits.
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

    /// Appends the arm `pattern => value,` of a match, in one line if it fits.
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

/// Returns a byte string literal of a text.
pub(super) fn literal(text: &str) -> String {
    format!("b\"{}\"", text.as_bytes().escape_ascii())
}
