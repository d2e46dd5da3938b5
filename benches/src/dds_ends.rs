//! The programs at both ends of a contest of samples: how they are built, and started.

use crate::peers::{Found, number, source};
use anyhow::{Context, Result, bail, ensure};
use fanfare_peers::{Program, cpp, jars, java};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The command line of an end, without the arguments that all ends have.
#[derive(Clone)]
pub(crate) struct Ends(Vec<OsString>);

/// What an end is to do.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// Bytes of a sample.
    pub(crate) size: usize,
    /// Round trips, or samples.
    pub(crate) count: u64,
    pub(crate) domain: u32,
}

impl Ends {
    pub(crate) fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self(words.into_iter().map(Into::into).collect())
    }

    /// Adds words in front.
    pub(crate) fn after(&self, words: &[String]) -> Self {
        let front = words.iter().map(OsString::from);
        Self(front.chain(self.0.iter().cloned()).collect())
    }

    /// Adds a word behind.
    pub(crate) fn with(mut self, word: &str) -> Self {
        self.0.push(word.into());
        self
    }

    /// Returns p50 and p99 of round trips, in microseconds.
    pub(crate) fn round_trip(&self, task: Task) -> Result<Vec<f64>> {
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
        command.args(&self.0).arg(role);
        command.args([task.size.to_string(), task.count.to_string()]);
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

/// Fetches Aeron, compiles its ends, and returns their command line.
pub(crate) fn aeron(home: &Path) -> Result<Ends> {
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
    Ok(Ends::new(words))
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

fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().with_context(|| name.clone())?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        bail!("{name}: {}", why.trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// Returns Fanfare's configuration of Cyclone DDS for a role.
pub(crate) fn configuration(ours: &Path, role: &str, domain: u32) -> Result<String> {
    let domain = domain.to_string();
    let xml = run(Command::new(ours).args(["xml", role, "128", "1", &domain]))?;
    Ok(xml.trim().to_owned())
}
