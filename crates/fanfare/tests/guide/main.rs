//! Follows the guide (docs/guide) as a newcomer does: each chapter's files are created and its
//! commands run, in order and in a folder of its own, and they print the lines of the chapter.
//!
//! Ports differ from the text, as tests run at the same time. [`chapter::Block`] defines the words
//! after a block's language.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod book;
mod chapter;
#[path = "../common/mod.rs"]
mod common;
mod decisions;

use chapter::{Block, blocks, is_like, note};
use common::{Folder, Running, Said, nobody, with_program};
use fanfare_peers::{cpp, or_skip, python};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The TCP ports of the guide, and those of multicast groups.
const TCP: [&str; 7] = ["3000", "3001", "4000", "4001", "9464", "9880", "13000"];
const GROUPS: [&str; 2] = ["13014", "13016"];

macro_rules! chapters {
    ($($name:ident: $file:literal,)*) => {
        $(#[test]
        fn $name() {
            read(concat!($file, ".md"));
        })*

        #[test]
        fn every_chapter_is_read() {
            let mut known = vec![$(concat!($file, ".md").to_owned()),*];
            let files = std::fs::read_dir(guide()).unwrap().flatten();
            let mut found: Vec<String> =
                files.map(|file| file.file_name().into_string().unwrap()).collect();
            known.sort();
            found.sort();
            assert_eq!(known, found);
        }
    };
}

chapters! {
    install: "install",
    first_plant: "first-plant",
    fix_sessions: "fix-sessions",
    typed_messages: "typed-messages",
    subscribing: "subscribing",
    fast_feeds: "fast-feeds",
    fix_source: "fix-source",
    dbn_source: "dbn-source",
    dds: "dds",
    recording: "recording",
    analysing: "analysing",
    latency: "latency",
    operating: "operating",
    migrating: "migrating",
    other_programs: "other-programs",
    threads: "threads",
    security: "security",
    testing: "testing",
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// Returns the folder of the program.
fn of_program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fanfare"));
    program.parent().unwrap().to_owned()
}

#[test]
fn the_order_of_the_readme_is_returned() {
    let readme = std::fs::read_to_string(guide().join("../../README.md")).unwrap();
    let script = |start: &str| {
        let mut commands = readme.lines().filter_map(|line| line.strip_prefix("    "));
        let found = commands.find(|line| line.starts_with(start));
        format!("{}\n", found.unwrap())
    };
    let prints = |line: &str| Block::Prints {
        lines: vec![line.to_owned()],
    };
    let chapter = std::fs::read_to_string(guide().join("fix-sessions.md")).unwrap();
    let mut reader = Reader::new("readme", vec![of_program()]);
    for block in blocks(&reader.with_own_ports(&chapter)) {
        if matches!(block, Block::File { .. }) {
            reader.take(block);
        }
    }
    reader.take(Block::Background {
        script: script("fanfare fix acceptor"),
    });
    reader.take(prints("listening on 127.0.0.1:…"));
    reader.take(Block::Run {
        script: script("echo '35=D|"),
    });
    reader.take(prints("NewOrderSingle(D)"));
    reader.close();
}

/// Follows a chapter.
fn read(name: &str) {
    let text = std::fs::read_to_string(guide().join(name)).unwrap();
    let mut path = vec![of_program()];
    if let Some(wanted) = note(&text, "python") {
        let [name, modules, packages] = [0, 1, 2].map(|part| {
            let parts = wanted.split(" | ").nth(part);
            parts.unwrap_or_else(|| panic!("python: NAME | MODULES | PACKAGES"))
        });
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{name}"));
        let found = or_skip(python(&home, packages, modules));
        let Some(python) = found.unwrap_or_else(|absent| panic!("{absent}")) else {
            return;
        };
        path.push(python.parent().unwrap().to_owned());
    }
    if let Some(wanted) = note(&text, "cpp")
        && !builds(wanted)
    {
        return;
    }
    let mut reader = Reader::new(name, path);
    for block in blocks(&reader.with_own_ports(&text)) {
        reader.take(block);
    }
    reader.close();
}

/// Returns whether a C++ program builds that includes a header, with these options of the compiler.
fn builds(wanted: &str) -> bool {
    let (header, options) = wanted.split_once(" | ").unwrap();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide-cpp");
    let source = home.with_extension("cpp");
    std::fs::write(&source, format!("#include <{header}>\nint main() {{}}\n")).unwrap();
    let options: Vec<&str> = options.split(' ').collect();
    let built = or_skip(cpp(&home, &source, &options));
    built.unwrap_or_else(|absent| panic!("{absent}")).is_some()
}

/// A reader who follows a chapter.
struct Reader {
    folder: Folder,
    path: Vec<PathBuf>,
    /// The processes that are running.
    running: Vec<Running>,
    /// The output of the last commands to stdout and stderr, if they have ended.
    printed: Option<[String; 2]>,
    /// Multicast ports that are exclusive to this test.
    _ports: Vec<UdpSocket>,
    ports: Vec<(&'static str, u16)>,
}

impl Reader {
    fn new(name: &str, path: Vec<PathBuf>) -> Self {
        let of_tcp = TCP.map(|port| (port, nobody().port()));
        let sockets = GROUPS.map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        let of_groups = GROUPS.iter().zip(&sockets);
        let of_groups = of_groups.map(|(&own, socket)| (own, port(socket)));
        Self {
            ports: of_tcp.into_iter().chain(of_groups).collect(),
            folder: Folder::new(name),
            path,
            running: Vec::new(),
            printed: None,
            _ports: sockets.into(),
        }
    }

    /// Returns the text with ports that are exclusive to this test.
    fn with_own_ports(&self, text: &str) -> String {
        let word = |word: &str| {
            let own = self.ports.iter().find(|(port, _)| *port == word);
            own.map_or_else(|| word.to_owned(), |(_, own)| own.to_string())
        };
        let mut out = String::new();
        let mut digits = String::new();
        for char in text.chars().chain(['\n']) {
            if char.is_ascii_digit() {
                digits.push(char);
                continue;
            }
            out.push_str(&word(&std::mem::take(&mut digits)));
            out.push(char);
        }
        out
    }

    fn take(&mut self, block: Block) {
        match block {
            Block::File { name, text } => {
                self.folder.with(&name, text);
            }
            Block::Run { script } => {
                let Said { code, out, err } = Running::start(&mut self.shell(&script)).end();
                assert_eq!(code, 0, "{script}: {out}{err}");
                self.printed = Some([out, err]);
            }
            Block::Background { script } => {
                let shell = &mut self.shell(&format!("exec {script}"));
                self.running.push(Running::start(shell));
                self.printed = None;
            }
            Block::Prints { lines } => self.check(&lines),
        }
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = with_program(Command::new("bash"), &["-euo", "pipefail", "-c", script]);
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let inherited = std::env::split_paths(&inherited);
        let path = std::env::join_paths(self.path.iter().cloned().chain(inherited));
        command
            .current_dir(self.folder.path())
            .env("PATH", path.unwrap());
        command
    }

    /// Checks that the last command printed these lines in this order; for one that runs, waits for
    /// them.
    fn check(&mut self, lines: &[String]) {
        let lines = lines.iter().filter(|line| !line.trim().is_empty());
        let Some(printed) = &self.printed else {
            let running = self.running.last_mut().unwrap();
            lines.for_each(|line| running.says(|said| is_like(said, line), line));
            return;
        };
        let mut streams = printed.each_ref().map(|text| text.lines());
        for line in lines {
            let found = streams.iter_mut().any(|stream| {
                let mut ahead = stream.clone();
                let found = ahead.any(|own| is_like(own, line));
                if found {
                    *stream = ahead;
                }
                found
            });
            assert!(found, "no line like {line:?} in its place in: {printed:?}");
        }
    }

    /// Interrupts the running processes, the last first.
    fn close(mut self) {
        while let Some(running) = self.running.pop() {
            running.interrupt();
            let said = running.end();
            assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        }
    }
}
