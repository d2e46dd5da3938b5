//! Checks that the page's bundle, which is checked in, is made from the sources beside it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use ring::digest::{Context, SHA256};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
const BUNDLE: [&str; 4] = ["index.html", "page.js", "page.css", "icon.svg"];
const PACKAGE: [&str; 2] = ["package.json", "package-lock.json"];
const AGAIN: &str = "npm ci --ignore-scripts && npm run build, in crates/console/page";

/// Returns all sources of the bundle, sorted by path.
fn sources() -> Vec<String> {
    let mut all = ["build.mjs", "tsconfig.json", PACKAGE[0], PACKAGE[1]]
        .map(str::to_owned)
        .to_vec();
    for entry in fs::read_dir(format!("{PAGE}/src")).unwrap() {
        let name = entry.unwrap().file_name();
        all.push(format!("src/{}", name.to_str().unwrap()));
    }
    all.sort();
    all
}

fn read(path: &str) -> Vec<u8> {
    fs::read(format!("{PAGE}/{path}")).unwrap()
}

#[test]
fn the_bundle_names_the_sources_that_are_here() {
    let mut hash = Context::new(&SHA256);
    for path in sources() {
        for part in [path.as_bytes(), b"\0", &read(&path), b"\0"] {
            hash.update(part);
        }
    }
    let mut hex = String::new();
    for byte in hash.finish().as_ref() {
        write!(hex, "{byte:02x}").unwrap();
    }
    for name in ["page.js", "page.css"] {
        let bundle = String::from_utf8(read(&format!("dist/{name}"))).unwrap();
        let first = bundle.lines().next().unwrap();
        assert!(first.contains(&hex), "{name} is of other sources: {AGAIN}");
    }
    for name in ["index.html", "icon.svg"] {
        assert!(
            read(&format!("dist/{name}")) == read(&format!("src/{name}")),
            "{AGAIN}"
        );
    }
}

#[test]
fn the_sources_make_the_bundle_byte_by_byte() {
    if Command::new("npm").arg("--version").output().is_err() {
        return fanfare_peers::skipped(&"npm is not here, and the page is not built again");
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let packages = fanfare_peers::npm(&home, Path::new(PAGE));
    let Some(home) = fanfare_peers::or_skip(packages).unwrap() else {
        return;
    };
    let src = home.join("src");
    let _ = fs::remove_dir_all(&src);
    fs::create_dir_all(&src).unwrap();
    for path in sources() {
        fs::write(home.join(&path), read(&path)).unwrap();
    }
    let out = home.join("out");
    run(&mut Command::new(home.join("node_modules/.bin/tsc")), &home);
    run(Command::new("node").arg("build.mjs").arg(&out), &home);
    for name in BUNDLE {
        let built = fs::read(out.join(name)).unwrap();
        assert!(
            built == read(&format!("dist/{name}")),
            "{name} differs: {AGAIN}"
        );
    }
}

/// Runs a program in the project.
fn run(program: &mut Command, home: &Path) {
    let out = program.current_dir(home).output();
    let out = out.unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let said = [out.stdout, out.stderr].concat();
    assert!(
        out.status.success(),
        "{program:?}: {}",
        String::from_utf8_lossy(&said)
    );
}
