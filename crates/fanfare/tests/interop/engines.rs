//! The engines: how each is fetched, built, configured and started.

use crate::common;
use crate::ours::Ours;
use fanfare_peers::{PATIENCE, Program, cpp, jars, java, or_skip, python, unpack};
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A version of FIX in the engines' settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) begin_string: &'static str,
    /// For FIXT.1.1: ApplVerID, its name in settings, and that of its dictionary.
    pub(crate) application: Option<(&'static str, &'static str, &'static str)>,
    dictionary: &'static str,
}

const fn plain(begin_string: &'static str, dictionary: &'static str) -> Version {
    Version {
        begin_string,
        application: None,
        dictionary,
    }
}

const fn transported(id: &'static str, name: &'static str, dictionary: &'static str) -> Version {
    Version {
        begin_string: "FIXT.1.1",
        application: Some((id, name, dictionary)),
        dictionary: "FIXT11",
    }
}

pub(crate) const VERSIONS: [Version; 8] = [
    plain("FIX.4.0", "FIX40"),
    plain("FIX.4.1", "FIX41"),
    plain("FIX.4.2", "FIX42"),
    plain("FIX.4.3", "FIX43"),
    plain("FIX.4.4", "FIX44"),
    transported("7", "FIX.5.0", "FIX50"),
    transported("8", "FIX.5.0SP1", "FIX50SP1"),
    transported("9", "FIX.5.0SP2", "FIX50SP2"),
];

impl Version {
    /// Returns `44`, `50SP2`: for names of files and folders.
    pub(crate) fn short(&self) -> &'static str {
        let name = self
            .application
            .map_or(self.dictionary, |(_, _, name)| name);
        name.trim_start_matches("FIX")
    }

    /// Returns the settings of a session, from `sender` to `target`.
    pub(crate) fn settings(&self, dictionaries: &Path, sender: &str, target: &str) -> String {
        let mut text = format!(
            "[SESSION]\nBeginString={}\nSenderCompID={sender}\nTargetCompID={target}\n",
            self.begin_string
        );
        let folder = dictionaries.display();
        let own = self.dictionary;
        let written = match self.application {
            None => writeln!(text, "DataDictionary={folder}/{own}.xml"),
            Some((_, name, application)) => writeln!(
                text,
                "DefaultApplVerID={name}\nTransportDataDictionary={folder}/{own}.xml\n\
                 AppDataDictionary={folder}/{application}.xml"
            ),
        };
        written.unwrap();
        text
    }
}

/// The vendors of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Ours,
    QuickFix,
    QuickFixJ,
}

/// The start of an initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With a new store, in files for a QuickFIX: its memory store resends nothing of a range whose
    /// first number it does not have.
    Stored,
    /// Without its previous store.
    Forgetful,
    /// With ResetSeqNumFlag(141) in its Logon.
    Resets,
}

/// The prerequisites of the engines, created once.
pub(crate) struct Engines {
    cpp: PathBuf,
    jars: PathBuf,
    classes: PathBuf,
    /// The folder with dictionaries in QuickFIX's XML.
    pub(crate) dictionaries: PathBuf,
}

impl Engines {
    /// Returns the engines, or `None` after printing why they are unavailable.
    pub(crate) fn find() -> Option<Self> {
        let found = || {
            let jars = jars(&home("quickfixj"), &source("pom.xml"))?;
            let dictionaries = home("quickfix-dictionaries");
            unpack(&dictionaries, &archives(&jars), ".xml")?;
            Ok(Self {
                cpp: cpp(&home("quickfix-peer"), &source("peer.cpp"), &CPP_OPTIONS)?,
                classes: java(&home("quickfixj-peer"), &source("Peer.java"), &jars)?,
                jars,
                dictionaries,
            })
        };
        or_skip(found()).unwrap_or_else(|absent| panic!("{absent}"))
    }

    /// Starts an engine with these settings, controlled by lines.
    pub(crate) fn start(&self, engine: Engine, role: &str, name: &str, settings: &str) -> Program {
        let command = match engine {
            Engine::Ours => &mut fanfare(name, settings),
            Engine::QuickFix => &mut Command::new(&self.cpp),
            Engine::QuickFixJ => &mut self.java(),
        };
        if engine != Engine::Ours {
            command.arg(role).arg(settings_file(name, settings));
        }
        Program::start(command).unwrap()
    }

    /// Returns a command of Java, small and quick to start: several of them run during the build.
    fn java(&self) -> Command {
        java_program(&self.jars, &self.classes, "Peer")
    }

    /// Starts an acceptor that echoes orders. Returns it with its address.
    pub(crate) fn acceptor(&self, engine: Engine, version: Version) -> (Program, SocketAddr) {
        let name = format!("acceptor-{engine:?}-{}", version.short());
        let settings = acceptor_settings() + &version.settings(&self.dictionaries, "ISLD", "TW");
        let mut program = self.start(engine, "acceptor", &name, &settings);
        let address = program.listens().unwrap();
        (program, address)
    }

    /// Starts an initiator that connects to `address`.
    pub(crate) fn initiator(
        &self,
        engine: Engine,
        version: Version,
        address: SocketAddr,
        start: Start,
    ) -> Party {
        if engine == Engine::Ours {
            return Party::Ours(Ours::start(version, address, start == Start::Resets));
        }
        let name = format!("initiator-{engine:?}-{}-{start:?}", version.short());
        let mut settings = format!(
            "[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\n\
             SocketConnectPort={}\nReconnectInterval=1\nHeartBtInt=30\n\
             StartTime=00:00:00\nEndTime=00:00:00\n",
            address.port()
        );
        if start == Start::Resets {
            settings += "ResetOnLogon=Y\n";
        }
        if start == Start::Stored {
            // Simultaneous tests start engines of the same name.
            let folder = home("interop-stores").join(format!("{name}-{}", number()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            writeln!(settings, "FileStorePath={}", folder.display()).unwrap();
        }
        settings += &version.settings(&self.dictionaries, "TW", "ISLD");
        Party::Theirs(self.start(engine, "initiator", &name, &settings))
    }
}

/// Returns a command of Fanfare's acceptor with these settings.
pub(crate) fn fanfare(name: &str, settings: &str) -> Command {
    let acceptor = ["fix", "acceptor", "--echo", "--quiet", "--config"];
    let mut command = common::fanfare(&acceptor);
    command.arg(settings_file(name, settings));
    command.stderr(Stdio::inherit());
    command
}

/// Returns another number for each call.
fn number() -> u32 {
    static MADE: AtomicU32 = AtomicU32::new(0);
    MADE.fetch_add(1, Ordering::Relaxed)
}

/// Writes a new file each time: simultaneous tests start engines of the same name.
fn settings_file(name: &str, settings: &str) -> PathBuf {
    let path = home("interop-settings").join(format!("{name}-{}.cfg", number()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, settings).unwrap();
    path
}

/// Returns the settings common to all acceptors; the kernel chooses the port.
pub(crate) fn acceptor_settings() -> String {
    "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
     SocketReuseAddress=Y\nStartTime=00:00:00\nEndTime=00:00:00\n"
        .to_owned()
}

/// An initiator: a third-party one, or Fanfare's in this process; both have the same commands and
/// output.
pub(crate) enum Party {
    Ours(Ours),
    Theirs(Program),
}

impl Party {
    pub(crate) fn tell(&mut self, line: &str) {
        match self {
            Self::Ours(ours) => ours.tell(line),
            Self::Theirs(program) => program.tell(line).unwrap(),
        }
    }

    /// Stops it before another replaces it.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Ours(ours) => ours.end(),
            Self::Theirs(program) => program.end(),
        }
    }

    /// Waits for a line of the program's log that `fits`, and returns it; on a timeout, the lines
    /// so far are the error.
    pub(crate) fn wait(
        &mut self,
        wanted: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let mut seen = Vec::new();
        while let Some(line) = self.line() {
            if fits(&line) {
                return Ok(line);
            }
            seen.push(line);
        }
        Err(format!("no {wanted}: {seen:#?}"))
    }

    /// Returns the next line; `None` if the process ended, or prints nothing for three minutes.
    fn line(&mut self) -> Option<String> {
        match self {
            Self::Ours(ours) => ours.lines.recv_timeout(PATIENCE).ok(),
            Self::Theirs(program) => program.line().ok(),
        }
    }
}

/// Debian's QuickFIX declares its exceptions in the style of C++ up to 2014.
fn java_program(jars: &Path, classes: &Path, main: &str) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
    let (jars, classes) = (jars.display(), classes.display());
    command.arg("-classpath").arg(format!("{jars}/*:{classes}"));
    command.arg(main);
    command
}

/// Returns programs that write a file store to a folder; none if they are unavailable.
pub(crate) fn file_stores() -> Vec<(&'static str, Command)> {
    let found = || {
        let jars = jars(&home("quickfixj"), &source("pom.xml"))?;
        let classes = java(&home("quickfixj-stores"), &source("Stores.java"), &jars)?;
        let program = cpp(
            &home("quickfix-stores"),
            &source("stores.cpp"),
            &CPP_OPTIONS,
        )?;
        Ok(vec![
            ("stores-quickfix", Command::new(program)),
            ("stores-quickfixj", java_program(&jars, &classes, "Stores")),
        ])
    };
    let found = or_skip(found()).unwrap_or_else(|absent| panic!("{absent}"));
    found.unwrap_or_default()
}

const CPP_OPTIONS: [&str; 4] = ["-std=c++14", "-w", "-lquickfix", "-lpthread"];

/// Returns an interpreter with PyPI's simplefix.
pub(crate) fn simplefix() -> Option<PathBuf> {
    let found = python(&home("python-simplefix"), "simplefix==1.0.17", "simplefix");
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// Returns an interpreter with PyPI's databento-dbn.
pub(crate) fn databento_dbn() -> Option<PathBuf> {
    let package = "databento-dbn==0.72.0";
    let found = python(&home("python-databento-dbn"), package, "databento_dbn");
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// Returns an interpreter with PyPI's databento, pandas, polars and duckdb.
pub(crate) fn frames() -> Option<PathBuf> {
    let packages = "databento==0.87.0 databento-dbn==0.70.0 duckdb==2.0.0 pandas==3.1.1 \
                    polars==2.1.0 pyarrow==26.0.1";
    let modules = "databento, duckdb, pandas, polars, pyarrow";
    let found = python(&home("python-frames"), packages, modules);
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// Returns the path of a file in this folder.
pub(crate) fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    folder.join(name)
}

fn home(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the jars that hold dictionaries.
fn archives(jars: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(jars).unwrap().flatten();
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).collect();
    found.retain(|path| path.to_string_lossy().contains("quickfixj-messages-"));
    found.sort();
    found
}
