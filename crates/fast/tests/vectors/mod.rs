//! The vectors of this folder: what stands in the stream, and what it means.
//!
//! A case is a few lines, each with a letter in front:
//!
//! ```text
//! == both: a copied value                    decode, encode, or both; then what is shown
//! t <uInt32 name="V"><copy/></uInt32>        the fields of the template T with the id 1, or
//!                                            a whole document
//! x e0 81 81 80                              the stream, in hexadecimal
//! j {"V": 1}                                 a message: the fields of T, or a whole line
//! j {"V": 1}
//! e D5@2 V                                   what it ends with: code, offset, path of the field;
//!                                            the code alone if it does not matter where
//! ```
//!
//! The offset of an error is that in the stream; encoding, that in the message's bytes.

use std::path::Path;

/// Which ways a case goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Decode,
    Encode,
    Both,
}

/// One vector.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) templates: String,
    pub(crate) bytes: Vec<u8>,
    /// Lines of JSON, as they are written.
    pub(crate) lines: Vec<String>,
    /// `CODE@OFFSET PATH`, the path only if there is one; or the code alone.
    pub(crate) error: Option<String>,
}

/// All cases of the folder, the files in the order of their names.
pub(crate) fn cases(folder: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        if file.extension().is_some_and(|extension| extension == "txt") {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.file_stem().unwrap().to_str().unwrap();
            read(name, &text, &mut cases);
        }
    }
    cases
}

fn read(file: &str, text: &str, cases: &mut Vec<Case>) {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (letter, rest) = line.split_once(' ').unwrap_or((line, ""));
        if letter == "==" {
            let (way, name) = rest.split_once(": ").unwrap();
            cases.push(Case::new(format!("{file}:{number} {name}"), way));
            continue;
        }
        let case = cases.last_mut().unwrap();
        match letter {
            "t" => case.templates += rest,
            "x" => case.bytes.extend(hex(rest)),
            "j" if rest.starts_with("{\"template\":") || rest.starts_with("{\"id\":") => {
                case.lines.push(rest.to_owned());
            }
            "j" => {
                let line = format!("{{\"template\": \"T\", \"id\": 1, \"fields\": {rest}}}");
                case.lines.push(line);
            }
            "e" if case.way != Way::Both => case.error = Some(rest.to_owned()),
            _ => panic!("{file}:{number} is no line of a case"),
        }
    }
}

impl Case {
    fn new(name: String, way: &str) -> Self {
        let way = match way {
            "decode" => Way::Decode,
            "encode" => Way::Encode,
            "both" => Way::Both,
            _ => panic!("{name}: no way is {way:?}"),
        };
        Self {
            name,
            way,
            templates: String::new(),
            bytes: Vec::new(),
            lines: Vec::new(),
            error: None,
        }
    }

    /// The template document.
    pub(crate) fn document(&self) -> String {
        if self.templates.contains("template ") || self.templates.contains("templates") {
            return self.templates.clone();
        }
        format!(
            "<template name=\"T\" id=\"1\">{}</template>",
            self.templates
        )
    }

    /// Checks an error, of which the case may give the code alone.
    pub(crate) fn check_error(&self, error: Option<&str>, name: &str) {
        let expected = self.error.as_deref();
        let given = match expected {
            Some(code) if !code.contains('@') => error.map(|e| e.split('@').next().unwrap()),
            _ => error,
        };
        assert_eq!(given, expected, "{name}");
    }

    /// Whether bytes are to be decoded.
    pub(crate) fn decodes(&self) -> bool {
        self.way != Way::Encode
    }

    /// Whether lines are to be encoded.
    pub(crate) fn encodes(&self) -> bool {
        self.way != Way::Decode
    }
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |pair: &str| u8::from_str_radix(pair, 16).unwrap();
    text.split_ascii_whitespace().map(byte).collect()
}
