//! The programs at both ends of a contest of samples: how they are built, and started.

use crate::peers::{Found, number, run, source};
use anyhow::{Context, Result, ensure};
use fanfare_peers::{Program, cpp, jars, java};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The command line of an end, without the arguments that all ends have.
#[derive(Clone)]
pub(crate) struct Ends {
    words: Vec<OsString>,
    /// A folder that an end makes, and that is left if it is killed.
    folder: Option<PathBuf>,
}

/// The numbers of round trips or samples of a turn.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    /// Those that warm up.
    pub(crate) warm_up: u64,
    /// Those that are measured, after these.
    pub(crate) count: u64,
}

/// What an end is to do.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// Bytes of a sample.
    pub(crate) size: usize,
    pub(crate) amount: Amount,
    pub(crate) domain: u32,
}

/// The folder of an end, which is removed when a turn is over.
struct Removed<'a>(Option<&'a Path>);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.0 {
            // An end that was not killed has removed it.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Ends {
    pub(crate) fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            folder: None,
        }
    }

    /// Adds words in front.
    pub(crate) fn after(mut self, words: &[String]) -> Self {
        let front = words.iter().map(OsString::from);
        self.words = front.chain(self.words).collect();
        self
    }

    /// Adds a word behind.
    pub(crate) fn with(mut self, word: &str) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds the folder that the end makes as a word behind.
    fn with_folder(mut self, folder: PathBuf) -> Self {
        self.words.push(folder.clone().into());
        self.folder = Some(folder);
        self
    }

    /// Returns p50 and p99 of round trips, in microseconds.
    pub(crate) fn round_trip(&self, task: Task) -> Result<Vec<f64>> {
        // It is dropped after the ends, which a failure kills.
        let _removed = Removed(self.folder.as_deref());
        let mut pong = self.start(1, "pong", task)?;
        is_ready(&mut pong)?;
        let mut ping = self.start(0, "ping", task)?;
        let p50 = number(&mut ping, "p50")?;
        let p99 = number(&mut ping, "p99")?;
        ping.close();
        pong.close();
        Ok(vec![p50 / 1e3, p99 / 1e3])
    }

    /// Returns the samples a second from a source to a sink.
    pub(crate) fn throughput(&self, task: Task) -> Result<Vec<f64>> {
        let _removed = Removed(self.folder.as_deref());
        let mut sink = self.start(1, "sink", task)?;
        is_ready(&mut sink)?;
        let mut source = self.start(0, "source", task)?;
        let rate = number(&mut sink, "rate")?;
        source.close();
        sink.close();
        Ok(vec![rate])
    }

    /// Starts an end on a processor of its own, if there are two.
    fn start(&self, processor: usize, role: &str, task: Task) -> Result<Program> {
        let processors = thread::available_parallelism()?.get();
        let mut command = Command::new("taskset");
        command.args(["-c", &(processor % processors).to_string()]);
        command.args(&self.words).arg(role);
        command.arg(task.size.to_string());
        let Amount { warm_up, count } = task.amount;
        command.args([warm_up, count].map(|amount| amount.to_string()));
        command.arg(task.domain.to_string());
        Program::start(&mut command).context("taskset cannot be started")
    }
}

fn is_ready(program: &mut Program) -> Result<()> {
    let line = program.line()?;
    ensure!(line == "ready", "it says {line:?}");
    Ok(())
}

/// Builds a package of `benches/dds`, and returns the program's path.
pub(crate) fn package(home: &Path, name: &str) -> Result<PathBuf> {
    let target = home.join("dds");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "--locked"]);
    build.args(["--package", name, "--target-dir"]).arg(&target);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("dds");
    run(build.current_dir(sources))?;
    Ok(target.join("release").join(name))
}

/// Watermarks of Cyclone DDS where listeners write: none may wait for an acknowledgement that its
/// thread receives, and by default the limit of what is not acknowledged begins at 30 kB.
pub(crate) const WATERMARKS: &str = "<WhcHigh>16MB</WhcHigh><WhcHighInit>16MB</WhcHighInit>";

/// The level of Rust's release profile. With -O2, GCC does not vectorize the sums of the ends.
const OPTIMIZED: &str = "-O3";

/// Builds a C program against the library that the program `ours` is linked with.
pub(crate) fn cyclone(home: &Path, ours: &Path, name: &str) -> Result<PathBuf> {
    let library = library(ours)?;
    let program = home.join(name);
    let mut compiler = Command::new("cc");
    compiler.args([OPTIMIZED, "-Wall", "-o"]).arg(&program);
    compiler.arg(source(&format!("{name}.c")));
    compiler.arg("-I").arg(library.join("include"));
    compiler.arg(library.join("lib/libddsc.a"));
    run(compiler.args(["-lpthread", "-ldl", "-lm"]))?;
    Ok(program)
}

/// Builds the program on Debian's Fast DDS.
pub(crate) fn fast_dds(home: &Path) -> Result<PathBuf> {
    let options = [OPTIMIZED, "-std=c++14", "-Wall", "-lfastrtps", "-lfastcdr"];
    Ok(cpp(
        &home.join("fastdds"),
        &source("fastdds.cpp"),
        &options,
    )?)
}

/// Fetches Aeron, compiles its ends, and returns their command line. Its logs are in shared memory.
pub(crate) fn aeron(home: &Path, domain: u32) -> Result<Ends> {
    let jars = jars(&home.join("aeron"), &source("aeron/pom.xml"))?;
    let classes = java(
        &home.join("aeron-ends"),
        &source("aeron/AeronIpc.java"),
        &jars,
    )?;
    let classes = format!("{}/*:{}", jars.display(), classes.display());
    let words = [
        "java",
        "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
        "-XX:+UseSerialGC",
        "-Dagrona.disable.bounds.checks=true",
        "-classpath",
        &classes,
        "AeronIpc",
    ];
    let folder = format!("/dev/shm/fanfare-benches-aeron-{domain}");
    Ok(Ends::new(words).with_folder(folder.into()))
}

/// Returns the newest Cyclone DDS that cargo has built beside a program.
fn library(program: &Path) -> Result<PathBuf> {
    let builds = program.with_file_name("build");
    let mut found = Vec::new();
    for build in std::fs::read_dir(&builds)?.flatten() {
        let library = build.path().join("out/cyclonedds-build");
        if let Ok(about) = library.join("lib/libddsc.a").metadata() {
            found.push((about.modified()?, library));
        }
    }
    let newest = found.into_iter().max();
    let (_, library) = newest.with_context(|| format!("no library in {}", builds.display()))?;
    Ok(library)
}

/// Returns the peer, or its name and the reason for its absence.
pub(crate) fn found<T>(who: &str, built: Result<T>) -> Found<T> {
    built.map_err(|error| format!("{who}: {error:#}"))
}

/// Returns Fanfare's configuration of Cyclone DDS for a role.
pub(crate) fn configuration(ours: &Path, role: &str, domain: u32) -> Result<String> {
    let domain = domain.to_string();
    let xml = run(Command::new(ours).args(["xml", role, "128", "0", "1", &domain]))?;
    Ok(xml.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_peers::Scratch;

    #[test]
    fn the_folder_of_ends_that_fail_is_removed() {
        let folder = Scratch::new("ends");
        let ends = Ends::new(["false"]).with_folder(folder.to_path_buf());
        let amount = Amount {
            warm_up: 0,
            count: 1,
        };
        let task = Task {
            size: 128,
            amount,
            domain: 1,
        };
        for turn in [Ends::round_trip, Ends::throughput] {
            std::fs::create_dir_all(folder.join("logs")).unwrap();
            assert!(turn(&ends, task).is_err());
            assert!(!folder.exists());
        }
    }
}
