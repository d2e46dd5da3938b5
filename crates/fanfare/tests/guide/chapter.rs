//! A chapter of the guide: its blocks, in reading order.

/// The purpose of a fenced block, from the words after the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// `LANGUAGE file=NAME`: a file that the reader creates.
    File { name: String, text: String },
    /// `sh`: commands that the reader runs, and waits for.
    Run { script: String },
    /// `sh background`: a command that runs to the end of the chapter.
    Background { script: String },
    /// `text`: lines that the preceding commands print, among others.
    Prints { lines: Vec<String> },
}

/// Returns the blocks of a chapter, in order. `sh skip`, and blocks with a language only, are
/// ignored.
pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        found.extend(block(info, &body));
    }
    found
}

fn block(info: &str, body: &[&str]) -> Option<Block> {
    let mut words = info.split_whitespace();
    let language = words.next()?;
    let more = words.next();
    let text = || body.iter().map(|line| format!("{line}\n")).collect();
    if let Some(name) = more.and_then(|word| word.strip_prefix("file=")) {
        let (name, text) = (name.to_owned(), text());
        return Some(Block::File { name, text });
    }
    match (language, more) {
        ("sh", None) => Some(Block::Run { script: text() }),
        ("sh", Some("background")) => Some(Block::Background { script: text() }),
        ("sh", Some("skip")) => None,
        ("text", None) => Some(Block::Prints {
            lines: body.iter().map(|line| (*line).to_owned()).collect(),
        }),
        (_, None) => None,
        (_, Some(word)) => panic!("a block says `{word}`, which means nothing"),
    }
}

/// Returns the value of `<!-- NAME: VALUE -->`, a note for the tests.
pub(crate) fn note<'a>(markdown: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| {
        let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        inner.strip_prefix(name)?.strip_prefix(": ")
    };
    markdown.lines().find_map(line)
}

/// Returns whether a program printed a line of the guide: digits may differ, white space may be
/// longer or shorter, and `…` stands for anything.
pub(crate) fn is_like(printed: &str, expected: &str) -> bool {
    let printed = plain(printed);
    let mut rest = printed.as_str();
    for piece in plain(expected).split('…') {
        let piece = piece.trim();
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    true
}

/// Replaces white space by one blank, and each number by one 0.
fn plain(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for char in word.chars() {
            if !char.is_ascii_digit() {
                out.push(char);
            } else if !out.ends_with('0') {
                out.push('0');
            }
        }
    }
    out
}

#[test]
fn lines_are_alike_but_for_numbers() {
    assert!(is_like(
        "  12 events from 1 to 12,  2026",
        "14439 events from 1 to 9, …"
    ));
    assert!(is_like("feed A: of 11 instruments, 11 live", "…, 3 live"));
    assert!(!is_like("feed A: of 11 instruments, 11 stale", "…, 3 live"));
    assert!(!is_like("b a", "a … b"));
}

#[test]
fn blocks_are_found() {
    let text = "# One\n```toml file=a.toml\nport = 1\n```\n\n```sh\nls\n```\n```text\na.toml\n```\n\
                ```sh skip\nrm -r\n```\n```rust\nfn main() {}\n```\n<!-- python: a b -->\n";
    assert_eq!(
        blocks(text),
        [
            Block::File {
                name: "a.toml".to_owned(),
                text: "port = 1\n".to_owned()
            },
            Block::Run {
                script: "ls\n".to_owned()
            },
            Block::Prints {
                lines: vec!["a.toml".to_owned()]
            },
        ]
    );
    assert_eq!(note(text, "python"), Some("a b"));
}
