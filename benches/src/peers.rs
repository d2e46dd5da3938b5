//! The peers: what is fetched and built, and how it is started.

use anyhow::{Context, Result, bail};
use fanfare_peers::{Absent, Program, cpp, jars, java, unpack};
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's QuickFIX declares its exceptions as C++ had them up to 2014.
const CPP_OPTIONS: [&str; 5] = ["-O2", "-std=c++14", "-w", "-lquickfix", "-lpthread"];

/// A peer, or the reason for which it is missing.
pub(crate) type Found<T> = Result<T, String>;

/// Everything that is measured.
pub(crate) struct Peers {
    home: PathBuf,
    fanfare: PathBuf,
    pub(crate) quickfix: Found<PathBuf>,
    /// Debian's package of QuickFIX C++ and its version.
    pub(crate) quickfix_version: String,
    pub(crate) java: Found<Java>,
    pub(crate) go: Found<PathBuf>,
    pub(crate) nats: Found<PathBuf>,
    pub(crate) relay: Found<PathBuf>,
}

/// Java programs, and the dictionaries that come with QuickFIX/J.
#[derive(Clone)]
pub(crate) struct Java {
    jars: PathBuf,
    quickfixj: PathBuf,
    philadelphia: PathBuf,
    pub(crate) dictionary: PathBuf,
}

impl Peers {
    /// Fetches and builds what can be had, below `home`.
    ///
    /// # Errors
    /// There is no program `fanfare`.
    pub(crate) fn new(home: &Path, fanfare: &Path) -> Result<Self> {
        let fanfare = fanfare.canonicalize();
        let fanfare = fanfare.context("there is no program to measure: make build")?;
        std::fs::create_dir_all(home)?;
        let home = home.canonicalize()?;
        let said = |who: &str, absent: Absent| format!("{who}: {absent}");
        let quickfix = cpp(
            &home.join("quickfix"),
            &source("quickfix.cpp"),
            &CPP_OPTIONS,
        );
        Ok(Self {
            quickfix: quickfix.map_err(|absent| said("QuickFIX C++", absent)),
            quickfix_version: debian("libquickfix-dev"),
            java: Java::find(&home).map_err(|absent| said("QuickFIX/J and Philadelphia", absent)),
            go: go(&home, "quickfixgo").map_err(|why| format!("QuickFIX/Go: {why:#}")),
            nats: go(&home, "nats").map_err(|why| format!("NATS: {why:#}")),
            relay: relay(&home).map_err(|why| format!("Plain C: {why:#}")),
            home,
            fanfare,
        })
    }

    pub(crate) fn fanfare(&self) -> Command {
        Command::new(&self.fanfare)
    }

    /// A file of the folder for peers.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// An empty folder there.
    pub(crate) fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.file(name);
        empty(&folder)?;
        Ok(folder)
    }
}

/// Makes a folder anew, without the files that it had.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(())
}

impl Java {
    fn find(home: &Path) -> Result<Self, Absent> {
        let jars = jars(&home.join("java"), &source("pom.xml"))?;
        let dictionaries = home.join("dictionaries");
        let archive = jars.join("quickfixj-messages-fix44-2.3.2.jar");
        unpack(&dictionaries, &[archive], ".xml")?;
        let classes = |name: &str| {
            let file = source(&format!("{name}.java"));
            java(&home.join(name), &file, &jars)
        };
        Ok(Self {
            quickfixj: classes("QuickFixJ")?,
            philadelphia: classes("Philadelphia")?,
            jars,
            dictionary: dictionaries.join("FIX44.xml"),
        })
    }

    pub(crate) fn quickfixj(&self) -> Command {
        self.program(&self.quickfixj, "QuickFixJ")
    }

    pub(crate) fn philadelphia(&self) -> Command {
        self.program(&self.philadelphia, "Philadelphia")
    }

    fn program(&self, classes: &Path, main: &str) -> Command {
        java_program(&self.jars, classes, &[], main)
    }
}

/// A Java program in the configuration that all have, with options of its own.
pub(crate) fn java_program(jars: &Path, classes: &Path, own: &[&str], main: &str) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xms256m", "-Xmx1g", "-XX:+UseSerialGC"]);
    command.args(own).arg("-classpath");
    let (jars, classes) = (jars.display(), classes.display());
    command.arg(format!("{jars}/*:{classes}")).arg(main);
    command
}

/// A package of Debian and its version on this machine.
pub(crate) fn debian(package: &str) -> String {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Package} ${Version}", package]);
    match query.output() {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout).into_owned(),
        _ => format!("{package}, unknown version"),
    }
}

/// What the modules of the programs in Go require; a system's Go may be older.
const GO: &str = "Go 1.26 and its module proxy are needed";

/// A program in Go; `go.sum` says what it is made of.
fn go(home: &Path, name: &str) -> Result<PathBuf> {
    let folder = home.join(name);
    let program = folder.join(name);
    let mut build = Command::new("go");
    build
        .args(["build", "-trimpath", "-modcacherw", "-o"])
        .arg(&program)
        .arg(".");
    build.env("GOPATH", &folder).env("GOFLAGS", "-mod=readonly");
    run(build.current_dir(source(name))).context(GO)?;
    Ok(program)
}

/// The plain fan-out in C.
fn relay(home: &Path) -> Result<PathBuf> {
    let program = home.join("relay");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-Wall", "-Wextra", "-o"])
        .arg(&program);
    run(compiler.arg(source("relay.c")))?;
    Ok(program)
}

/// Runs a command, and returns what it prints.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output();
    let out = out.with_context(|| format!("{name} cannot be started"))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        bail!("{name}: {}: {}", out.status, why.trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// A command that can be started again and again.
pub(crate) struct Recipe(Command);

impl Recipe {
    /// Returns the command with the arguments of the recipe.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.0.get_program());
        command.args(self.0.get_args());
        command
    }
}

impl From<Command> for Recipe {
    fn from(command: Command) -> Self {
        Self(command)
    }
}

/// Runs a command of ours, and returns the figures that it prints as JSON.
pub(crate) fn figures(command: &mut Command) -> Result<Value> {
    let mut all: Value = serde_json::from_str(&run(command)?)?;
    Ok(all["figures"].take())
}

/// Returns ports that nobody listens on at the moment, no two alike. One may be taken soon after:
/// they are for programs that are started at once.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    // No port is free again before all are chosen.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Returns the number behind a word in the next line of a peer.
pub(crate) fn number(program: &mut Program, word: &str) -> Result<f64> {
    let line = program.line()?;
    let found = line
        .strip_prefix(word)
        .and_then(|rest| rest.trim().parse().ok());
    found.with_context(|| format!("{word} was expected, {line:?} came"))
}

/// A file or folder of the sources of the peers.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_all_different() {
        // The kernel repeats some of 512 ports whose sockets are closed at once.
        let mut ports = Vec::from(free_ports::<512>().unwrap());
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 512);
    }
}
