//! The command lines of the documentation, held against the program's arguments. Chapters of the
//! guide are also run (`tests/guide`).

use crate::Cli;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::{Path, PathBuf};

/// Words that may precede the program in a command.
const BEFORE: [&str; 6] = ["$", "exec", "if", "sudo", "until", "while"];

/// Returns README.md, the pages of docs and the READMEs of the crates.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let of = |folder: &str| {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        files.map(|file| file.unwrap().path())
    };
    let docs = of("docs").chain(of("docs/guide"));
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let crates = of("crates").map(|folder| folder.join("README.md"));
    let all = docs.chain(crates).chain([root.join("README.md")]);
    all.filter(|path| path.exists()).collect()
}

/// Returns the lines of blocks that are indented or marked as commands, and the other text.
fn lines_of_blocks(page: &str) -> (Vec<String>, String) {
    let (mut blocks, mut text) = (Vec::<String>::new(), String::new());
    let mut fence = None;
    for line in page.lines() {
        let (is_command, line) = match (line.strip_prefix("```"), fence) {
            (Some(info), None) => {
                fence = Some(info);
                continue;
            }
            (Some(_), Some(_)) => {
                fence = None;
                continue;
            }
            (None, Some(info)) if info.is_empty() || info.starts_with("sh") => (true, line),
            (None, Some(_)) => continue,
            (None, None) => match line.strip_prefix("    ") {
                Some(code) => (true, code),
                None => (false, line),
            },
        };
        match blocks.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) if is_command => {
                last.pop();
                last.push_str(line);
            }
            _ if is_command => blocks.push(line.to_owned()),
            _ => text.extend([line, "\n"]),
        }
    }
    (blocks, text)
}

/// Returns the texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    // A backtick that is alone affects its own paragraph only.
    let paragraphs = text.split("\n\n");
    paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2))
}

/// Splits a line into commands, and these into words, as a shell does.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    for char in line.chars().chain([' ']) {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\n' | '|' | '&' | ';' | '<' | '>') => {
                all.last_mut().unwrap().extend(word.take());
                // The file of a redirection is a command of its own, which no one looks at.
                if !char.is_whitespace() {
                    all.push(Vec::new());
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    all
}

/// Returns the arguments of a command, from the program on. Words that stand for others are left
/// out: `…`, and the brackets of `[OPTIONAL]`.
fn arguments(command: &[String]) -> Option<Vec<&str>> {
    let words = command.iter().map(|word| word.trim_matches(['[', ']']));
    let mut words = words.skip_while(|word| BEFORE.contains(word));
    let program = words.next()?;
    let is_program = program == "fanfare" || program.ends_with("/fanfare");
    let arguments = words.filter(|word| *word != "…");
    is_program.then(|| std::iter::once(program).chain(arguments).collect())
}

/// Returns why the program does not accept the arguments. Those of a text may lack some, and may
/// have names in the place of values.
fn refusal(arguments: &[&str], is_whole: bool) -> Option<String> {
    if cfg!(not(feature = "dds")) && arguments.starts_with(&["fanfare", "bench", "dds"]) {
        return None;
    }
    let error = Cli::try_parse_from(arguments).err()?;
    let is_fault = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => false,
        ErrorKind::UnknownArgument => true,
        ErrorKind::InvalidSubcommand => {
            let name = error.get(ContextKind::InvalidSubcommand);
            !matches!(name, Some(ContextValue::String(name)) if *name == name.to_uppercase())
        }
        _ => is_whole,
    };
    is_fault.then(|| format!("{arguments:?}: {error}"))
}

#[test]
fn the_program_accepts_the_command_lines_of_the_documentation() {
    let (mut count, mut refused) = (0, Vec::new());
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let (blocks, text) = lines_of_blocks(&page);
        // The failure of a command in front of `||` may be what it shows.
        let blocks = blocks.iter().filter(|line| !line.contains("||"));
        let blocks = blocks.map(|line| (line.as_str(), true));
        for (line, is_whole) in blocks.chain(spans(&text).map(|span| (span, false))) {
            for command in commands(line) {
                let Some(arguments) = arguments(&command) else {
                    continue;
                };
                count += 1;
                let why = refusal(&arguments, is_whole);
                refused.extend(why.map(|why| format!("{}: {why}", path.display())));
            }
        }
    }
    assert!(count > 150, "{count} commands");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn what_no_command_has_is_refused() {
    let why = |line: &str, is_whole| {
        let found = commands(line);
        refusal(&arguments(&found[0]).unwrap(), is_whole)
    };
    assert_eq!(why("sudo fanfare store list 'a b' # text", true), None);
    assert_eq!(why("fanfare ctl --socket PATH COMMAND", false), None);
    assert_eq!(why("fanfare market book --depth N", false), None);
    assert!(why("fanfare market book --depth N", true).is_some());
    assert!(why("fanfare market books", false).is_some());
    assert!(why("fanfare ctl sessions --usr desk", false).is_some());
}

#[test]
fn commands_are_found_in_pages() {
    let page = "Run `fanfare\ntop`:\n\n    a; until b | fanfare ls \\\n    -n 1 >c\n\n\
                ```text\nfanfare\n```\n```sh skip\n./fanfare 'x # y' # z\n```\n";
    let (blocks, text) = lines_of_blocks(page);
    assert_eq!(spans(&text).collect::<Vec<_>>(), ["fanfare\ntop"]);
    let found: Vec<_> = blocks.iter().flat_map(|line| commands(line)).collect();
    let found: Vec<_> = found.iter().filter_map(|words| arguments(words)).collect();
    assert_eq!(
        found,
        [vec!["fanfare", "ls", "-n", "1"], vec!["./fanfare", "x # y"]]
    );
}
