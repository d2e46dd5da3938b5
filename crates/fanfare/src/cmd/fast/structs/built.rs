//! Structs that are built on demand: a package with the generated code, in a folder of the user's
//! cache, is compiled by the installed toolchain, runs as a child process and makes passes on
//! request.

use super::Structs;
use anyhow::{Context, Result, anyhow, bail};
use fanfare_fast::{Options, Program, codegen};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

/// The path of the sources when this program was built.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A program that measures structs.
#[derive(Debug)]
pub(crate) struct Built {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Built {
    /// Generates the structs of a template document, builds the program that measures them, and
    /// sends it the packets. The first build takes about a minute.
    pub(crate) fn new(
        (program, xml): (&Program, &str),
        options: Options,
        kernel: Option<&str>,
        keeps: bool,
        packets: &[Vec<u8>],
    ) -> Result<Self> {
        let mut child = Command::new(build(program, xml)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the program that was built for the structs")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut asks, answers) = pipes
            .ok_or_else(|| anyhow!("the program that was built for the structs has no pipes"))?;
        let kernel = kernel.unwrap_or("best");
        let strict = options.strict;
        writeln!(asks, "{strict} {keeps} {kernel} {}", packets.len())?;
        for packet in packets {
            asks.write_all(&(packet.len() as u64).to_le_bytes())?;
            asks.write_all(packet)?;
        }
        let answers = BufReader::new(answers);
        Ok(Self {
            child,
            asks,
            answers,
        })
    }

    /// Requests a pass; returns its nanoseconds a message, and whether the bytes are the same.
    fn ask(&mut self, pass: &str) -> Result<(f64, bool)> {
        const STOPPED: &str = "the program that was built for the structs stopped";
        writeln!(self.asks, "{pass}").context(STOPPED)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).context(STOPPED)?;
        let answer = line.trim().split_once(' ');
        let answer = answer.and_then(|(nanos, same)| Some((nanos.parse().ok()?, same == "true")));
        answer.ok_or_else(|| anyhow!(STOPPED))
    }
}

impl Structs for Built {
    fn decode(&mut self, _: &[Vec<u8>], _: bool) -> Result<f64> {
        Ok(self.ask("decode")?.0)
    }

    fn encode(&mut self, _: &[Vec<u8>], _: bool) -> Result<(f64, bool)> {
        self.ask("encode")
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        // A pass may be running; its result is of no use.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Builds the program for a template document. Returns its path.
fn build(program: &Program, xml: &str) -> Result<PathBuf> {
    let sources = fs::canonicalize(SOURCES).ok();
    let sources = sources.filter(|sources| sources.join("fast/Cargo.toml").is_file());
    let sources = sources.ok_or_else(|| {
        anyhow!("--structs compiles the codec, but its source is no longer in `{SOURCES}`")
    })?;
    let mut hash = DefaultHasher::new();
    (xml, env!("CARGO_PKG_VERSION")).hash(&mut hash);
    let name = format!("structs-{:016x}", hash.finish());
    let cache = cache()?;
    let package = cache.join(&name);
    let write = |file: &str, text: &str| {
        let file = package.join(file);
        // An unchanged file keeps its time, so that it is not compiled again.
        if fs::read_to_string(&file).is_ok_and(|before| before == text) {
            return Ok(());
        }
        fs::write(&file, text).with_context(|| format!("cannot write `{}`", file.display()))
    };
    fs::create_dir_all(package.join("src"))
        .with_context(|| format!("cannot make the folder `{}`", package.display()))?;
    write("Cargo.toml", &manifest(&name, &sources))?;
    // The lock file fixes the versions that the codec itself is built with.
    if let Ok(lock) = fs::read_to_string(sources.join("../Cargo.lock"))
        && !package.join("Cargo.lock").exists()
    {
        write("Cargo.lock", &lock)?;
    }
    write("src/main.rs", include_str!("main.rs.in"))?;
    write("src/measure.rs", include_str!("measure.rs"))?;
    write("src/feed.rs", &codegen::generate_from(program, xml))?;
    compile(&package, &cache.join("target"))?;
    let built = cache.join("target/release").join(&name);
    Ok(built.with_extension(env::consts::EXE_EXTENSION))
}

fn manifest(name: &str, sources: &Path) -> String {
    let path = |folder: &str| format!("{:?}", sources.join(folder).display().to_string());
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nfanfare-fast = {{ path = {} }}\nfanfare-wire = {{ path = {} }}\n\n\
         [profile.release]\nlto = \"thin\"\ncodegen-units = 1\n",
        path("fast"),
        path("wire")
    )
}

/// Returns the folder of the user for build results.
fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let cache = cache.filter(|cache| cache.is_absolute());
    let cache =
        cache.context("--structs builds in $XDG_CACHE_HOME or $HOME/.cache: neither is set")?;
    Ok(cache.join("fanfare/structs"))
}

fn compile(package: &Path, target: &Path) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(["build", "--release", "--offline", "--quiet"])
        .env("CARGO_TARGET_DIR", target)
        .current_dir(package)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("--structs needs cargo: cannot start `{}`", cargo.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().take(20).collect::<Vec<_>>();
        let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        // Cargo that is ended by a signal says nothing.
        let why = match last.is_empty() {
            true => format!("cargo: {}", output.status),
            false => last,
        };
        bail!("cannot build the structs in `{}`: {why}", package.display());
    }
    Ok(())
}
