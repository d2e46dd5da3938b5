//! Third-party counterparties for the interoperation tests: libraries are fetched from the registry
//! of their language with a pinned version, small programs are built on them, all in the build's
//! own folder and once only. The crate also has DDS domains and temporary paths for the exclusive
//! use of a test, and messages of FIX.
#![forbid(unsafe_code)]

mod domain;
pub mod fix;
mod program;
mod scratch;

pub use domain::domain;
pub use program::{PATIENCE, Program};
pub use scratch::Scratch;

use std::fmt;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The reason why a counterparty is unavailable: a tool is missing, a registry cannot be reached,
/// or the download does not build.
#[derive(Debug)]
pub struct Absent(String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Absent {}

/// Returns the counterparty, or `None` after printing why the test is skipped.
///
/// # Errors
/// The counterparty is unavailable and `CI` is set: there the test must not be skipped.
pub fn or_skip<T>(found: Result<T, Absent>) -> Result<Option<T>, Absent> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(absent) if std::env::var_os("CI").is_some() => Err(absent),
        Err(absent) => {
            skipped(&absent);
            Ok(None)
        }
    }
}

/// Prints why a test is skipped. It does not use a macro: the harness hides their output for a test
/// that passes.
pub fn skipped(why: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "skipped: {why}");
}

/// Waits for fetches of other tests, of this process or another, into the folder that `home` is in,
/// and holds off further ones until the file is dropped.
fn reserve(home: &Path) -> Result<File, Absent> {
    let path = home.with_file_name("fetches.lock");
    let file = File::create(&path).and_then(|file| file.lock().map(|()| file));
    file.map_err(|error| Absent(format!("{}: {error}", path.display())))
}

/// Returns a Python interpreter that has `packages` (as `pip` names them, with their versions,
/// separated by spaces) and can import `module`; its environment is created in `home`.
///
/// # Errors
/// See [`Absent`].
pub fn python(home: &Path, packages: &str, module: &str) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let python = home.join("bin/python");
    let mut probe = Command::new(&python);
    let probed = probe.args(["-c", &format!("import {module}")]).output();
    if !probed.is_ok_and(|out| out.status.success()) {
        // The system's Python may be another one by now.
        let _ = fs::remove_file(home.join(MADE_OF));
    }
    once(home, &[], &[packages], || {
        run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"]);
        pip.arg("--disable-pip-version-check");
        fetch(pip.args(packages.split(' ')))
    })?;
    Ok(python)
}

/// Returns a folder with the packages that the lock file of an npm project names. Their install
/// scripts are not run.
///
/// # Errors
/// See [`Absent`].
pub fn npm(home: &Path, project: &Path) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let files = ["package.json", "package-lock.json"].map(|name| project.join(name));
    once(home, &[&files[0], &files[1]], &[], || {
        for file in &files {
            let name = file.file_name().unwrap_or_default();
            let copied = fs::copy(file, home.join(name));
            copied.map_err(|error| Absent(format!("{}: {error}", file.display())))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        fetch(npm.current_dir(home))
    })?;
    Ok(home.to_path_buf())
}

/// Returns a folder with the jars of the dependencies that a Maven project file names, and of
/// theirs.
///
/// # Errors
/// See [`Absent`].
pub fn jars(home: &Path, pom: &Path) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let jars = home.join("jars");
    once(home, &[pom], &[], || {
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", "--file"]).arg(pom);
        maven.args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
        maven.arg(format!("-DoutputDirectory={}", jars.display()));
        maven.arg(format!("-DbuildDirectory={}", home.display()));
        fetch(&mut maven)
    })?;
    Ok(jars)
}

/// Returns a folder with the classes of one Java source file that uses `jars`, a folder that
/// [`jars`] returned.
///
/// # Errors
/// See [`Absent`].
pub fn java(home: &Path, source: &Path, jars: &Path) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let made_of = jars.with_file_name(MADE_OF);
    once(home, &[source, &made_of], &[], || {
        let mut javac = Command::new("javac");
        javac.arg("-classpath").arg(jars.join("*"));
        run(javac.arg("-d").arg(home).arg(source))
    })?;
    Ok(home.to_path_buf())
}

/// Returns a program built from one C++ source file with these options of the compiler.
///
/// # Errors
/// See [`Absent`].
pub fn cpp(home: &Path, source: &Path, options: &[&str]) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let program = home.join("peer");
    once(home, &[source], options, || {
        let mut compiler = Command::new("g++");
        run(compiler.arg("-o").arg(&program).arg(source).args(options))
    })?;
    Ok(program)
}

/// Returns the program of a Cargo package outside this workspace, with the dependencies that its
/// `Cargo.lock` names, built in `home`. Cargo decides what to rebuild.
///
/// # Errors
/// See [`Absent`].
pub fn cargo(home: &Path, package: &Path, program: &str) -> Result<PathBuf, Absent> {
    let _reserved = reserve(home)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked", "--manifest-path"]);
    build.arg(package.join("Cargo.toml"));
    fetch(build.arg("--target-dir").arg(home))?;
    Ok(home.join("debug").join(program))
}

/// Returns the files of an archive (jar) whose names end in `suffix`, unpacked into `home`.
///
/// # Errors
/// See [`Absent`].
pub fn unpack(home: &Path, archives: &[PathBuf], suffix: &str) -> Result<(), Absent> {
    let _reserved = reserve(home)?;
    let sources: Vec<&Path> = archives.iter().map(PathBuf::as_path).collect();
    once(home, &sources, &[suffix], || {
        for archive in archives {
            let mut jar = Command::new("jar");
            let names = run(jar.arg("tf").arg(archive))?;
            let names = names.lines().filter(|name| name.ends_with(suffix));
            let mut jar = Command::new("jar");
            jar.current_dir(home).arg("xf").arg(archive).args(names);
            run(&mut jar)?;
        }
        Ok(String::new())
    })
}

/// The file of a folder that says what its content is made of.
const MADE_OF: &str = "made-of";

/// Runs a step in a new folder unless it has succeeded there before with the same sources and
/// options.
fn once(
    home: &Path,
    sources: &[&Path],
    options: &[&str],
    make: impl FnOnce() -> Result<String, Absent>,
) -> Result<(), Absent> {
    let cannot = |what: &Path, error: &io::Error| Absent(format!("{}: {error}", what.display()));
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let bytes = fs::read(source).map_err(|error| cannot(source, &error))?;
        bytes.hash(&mut hasher);
    }
    for option in options {
        option.hash(&mut hasher);
    }
    let stamp = hasher.finish().to_string();
    let stamp_file = home.join(MADE_OF);
    if fs::read_to_string(&stamp_file).is_ok_and(|known| known == stamp) {
        return Ok(());
    }
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home).map_err(|error| cannot(home, &error))?;
    make()?;
    fs::write(&stamp_file, stamp).map_err(|error| cannot(&stamp_file, &error))
}

/// The number of attempts to reach a registry, which may be down for a moment, and the pause
/// between them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// Runs a command as [`run`] does, with retries, for downloads from a registry.
fn fetch(command: &mut Command) -> Result<String, Absent> {
    for _ in 1..TRIES {
        let fetched = run(command);
        if fetched.is_ok() {
            return fetched;
        }
        thread::sleep(PAUSE);
    }
    run(command)
}

/// The longest reason, in characters.
const MOST_OF_A_REASON: usize = 400;

/// Runs a command. Returns its output, if it succeeds.
fn run(command: &mut Command) -> Result<String, Absent> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .map_err(|error| Absent(format!("{name} cannot be started: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if out.status.success() {
        return Ok(text(&out.stdout));
    }
    let said = text(&out.stderr) + &text(&out.stdout);
    // Of the pages that some tools print, the first line with a reason is kept.
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next_back().unwrap_or_default();
    let fault = |line: &&str| line.to_lowercase().contains("error");
    let why = lines.find(fault).unwrap_or(last);
    let why: String = why.chars().take(MOST_OF_A_REASON).collect();
    Err(Absent(format!("{name} failed: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_repeated_for_other_sources_and_options_alone() {
        let folder = Scratch::new("peers");
        fs::create_dir_all(&folder).unwrap();
        let (source, home) = (folder.join("source"), folder.join("home"));
        let is_made = |text: &str, options: &[&str]| {
            fs::write(&source, text).unwrap();
            let mut is_made = false;
            let made = once(&home, &[&source], options, || {
                is_made = true;
                Ok(String::new())
            });
            made.unwrap();
            is_made
        };
        assert!(is_made("source", &["package==1"]));
        assert!(!is_made("source", &["package==1"]));
        assert!(is_made("source", &["package==2"]));
        assert!(is_made("source", &["package", "==2"]));
        assert!(is_made("another", &["package", "==2"]));
        assert!(!is_made("another", &["package", "==2"]));
    }
}
