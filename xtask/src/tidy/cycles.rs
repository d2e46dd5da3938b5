//! Checks that files of a crate do not use each other in a cycle.
//!
//! A module and its children are one unit in several files: the use of a child by an ancestor and
//! that of an ancestor by a child do not count. Any other file that a file names, through a
//! re-export too, is an arrow to that file; files with a path from each to each are a *knot*. Uses
//! in tests do not count.

use super::uses::{Uses, uses};
use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a crate by their modules' paths: `session::state`; the crate's root has an empty
/// one.
type Modules<'a> = BTreeMap<String, (&'a Path, Uses<'a>)>;
/// For each module, the modules it uses, with the first line of each use.
type Arrows = BTreeMap<String, BTreeMap<String, usize>>;

/// The most re-exports that are followed in a chain.
const HOPS: usize = 8;

pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for modules in crates(files).values() {
        let arrows = arrows(modules);
        for knot in knots(&arrows) {
            found.extend(tell(&knot, modules, &arrows));
        }
    }
    found
}

/// Returns findings for the knot, one for each arrow in it.
fn tell(knot: &[String], modules: &Modules<'_>, arrows: &Arrows) -> Vec<Finding> {
    let file = |module: &String| modules.get(module).map_or(Path::new(""), |(path, _)| path);
    let what = format!("files that use each other: {}", knot.join(", "));
    let mut found = vec![Finding::new(
        knot.first().map_or(Path::new(""), file),
        1,
        what,
    )];
    for from in knot {
        for (to, line) in arrows.get(from).into_iter().flatten() {
            if knot.contains(to) {
                found.push(Finding::new(file(from), *line, format!("uses `{to}`")));
            }
        }
    }
    found
}

/// Returns the files of each crate's `src`.
fn crates(files: &[File]) -> BTreeMap<&str, Modules<'_>> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let folder = file.crate_name().or_else(|| {
            let is_xtask = file.path.starts_with("xtask");
            is_xtask.then_some("xtask")
        });
        if let Some(folder) = folder
            && let Some(module) = module(&file.path)
        {
            let this = (file.path.as_path(), uses(&file.text));
            crates.entry(folder).or_default().insert(module, this);
        }
    }
    crates
}

/// Returns the module of a file, from its path below `src`; `None` for tests and other programs.
pub(super) fn module(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let src = parts.iter().position(|part| *part == "src")?;
    let (last, folders) = parts.get(src + 1..)?.split_last()?;
    let last = last.strip_suffix(".rs")?;
    let mut module = folders.to_vec();
    match last {
        "lib" | "main" if folders.is_empty() => {}
        "mod" => {}
        _ => module.push(last),
    }
    let is_other = module.first() == Some(&"bin") || module.contains(&"tests");
    (!is_other && src <= 2).then(|| module.join("::"))
}

fn arrows(modules: &Modules<'_>) -> Arrows {
    let of = |(from, (_, uses)): (&String, &(&Path, Uses<'_>))| {
        let mut to = BTreeMap::new();
        for path in &uses.paths {
            let used = resolve(modules, from, &path.segments, HOPS);
            if let Some(used) = used.filter(|used| !is_family(from, used)) {
                to.entry(used).or_insert(path.line);
            }
        }
        (from.clone(), to)
    };
    modules.iter().map(of).collect()
}

/// Returns whether one is the other or one of its ancestors.
fn is_family(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| short.is_empty() || rest.is_empty() || rest.starts_with("::"))
}

/// Returns the module of this crate that defines `path`, as named in module `from`.
fn resolve(modules: &Modules<'_>, from: &str, path: &[&str], hops: usize) -> Option<String> {
    let mut path = path;
    let own = from.split("::").filter(|part| !part.is_empty());
    let mut at: Vec<&str> = own.collect();
    match path.first()? {
        &"crate" => (at, path) = (Vec::new(), &path[1..]),
        &("self" | "super") => {}
        first => {
            let child = joined(&at, first);
            modules.contains_key(&child).then_some(())?;
        }
    }
    while let Some((first @ ("self" | "super"), behind)) = path.split_first().map(|(f, b)| (*f, b))
    {
        if first == "super" {
            at.pop();
        }
        path = behind;
    }
    while let Some((first, behind)) = path.split_first()
        && modules.contains_key(&joined(&at, first))
    {
        at.push(first);
        path = behind;
    }
    let module = at.join("::");
    let export = path.first().filter(|_| hops > 0).and_then(|name| {
        let (_, uses) = modules.get(&module)?;
        let (_, export) = uses.exports.iter().find(|(exported, _)| exported == name)?;
        resolve(modules, &module, &export.segments, hops - 1)
    });
    Some(export.unwrap_or(module))
}

fn joined(at: &[&str], name: &str) -> String {
    let parts: Vec<&str> = at.iter().copied().chain([name]).collect();
    parts.join("::")
}

/// Returns the sets of modules with a path from each to each.
fn knots(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows
        .keys()
        .map(|from| (from, reach(arrows, from)))
        .collect();
    let is_way = |a: &String, b: &String| reached.get(a).is_some_and(|to| to.contains(b));
    let mut knots: BTreeSet<Vec<String>> = BTreeSet::new();
    for a in arrows.keys().filter(|a| is_way(a, a)) {
        let knot = arrows.keys().filter(|b| is_way(a, b) && is_way(b, a));
        knots.insert(knot.cloned().collect());
    }
    knots.into_iter().collect()
}

/// Returns the modules that arrows reach from `from`, in one step or many.
fn reach<'a>(arrows: &'a Arrows, from: &String) -> BTreeSet<&'a String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for (to, _) in arrows.get(module).into_iter().flatten() {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn files(texts: &[(&str, &str)]) -> Vec<File> {
        let file = |(path, text): &(&str, &str)| File {
            path: PathBuf::from("crates/x/src").join(path),
            text: (*text).to_owned(),
        };
        texts.iter().map(file).collect()
    }

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        let found = check(&files(texts));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_knot() {
        let knot = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "\nfn f() -> super::a::A { }"),
        ];
        let expected = [
            "crates/x/src/a.rs:1: files that use each other: a, b",
            "crates/x/src/a.rs:1: uses `b`",
            "crates/x/src/b.rs:2: uses `a`",
        ];
        assert_eq!(found(&knot), expected);
        assert_eq!(found(&knot[..2]), [""; 0]);
    }

    #[test]
    fn a_circle_of_three_is_one_knot_and_a_way_to_it_is_none() {
        let circle = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ];
        assert_eq!(
            found(&circle)[0],
            "crates/x/src/a.rs:1: files that use each other: a, b, c"
        );
    }

    #[test]
    fn a_module_and_its_descendants_are_no_knot() {
        let family = [
            ("a/mod.rs", "mod b; use b::B; use self::b::c::C;"),
            ("a/b/mod.rs", "use super::A;"),
            ("a/b/c.rs", "use crate::a::A; use crate::Root;"),
            ("lib.rs", "mod a; pub use a::A;"),
        ];
        assert_eq!(found(&family), [""; 0]);
    }

    #[test]
    fn a_name_is_followed_through_re_exports_to_its_file() {
        for export in ["pub use a::A;", "pub(crate) use a::{B, A as C};"] {
            let name = if export.contains("as C") { "C" } else { "A" };
            let user = format!("use super::{name};");
            let knot = [
                ("m/mod.rs", export),
                ("m/a.rs", "use super::b::B;"),
                ("m/b.rs", &*user),
            ];
            assert_eq!(found(&knot).len(), 3, "{export}");
        }
    }

    #[test]
    fn what_tests_use_and_what_is_only_passed_on_is_no_arrow() {
        for back in [
            "#[cfg(test)] mod tests { use crate::a::A; }",
            "pub use crate::a::A;",
        ] {
            assert_eq!(
                found(&[("a.rs", "use crate::b::B;"), ("b.rs", back)]),
                [""; 0]
            );
        }
        let in_tests = [
            ("a.rs", "use crate::b::tests::B;"),
            ("b/tests.rs", "use crate::a::A;"),
        ];
        assert_eq!(found(&in_tests), [""; 0]);
    }

    #[test]
    fn modules_are_named_by_their_files() {
        let name = |path: &str| module(Path::new(path));
        assert_eq!(name("crates/x/src/lib.rs").as_deref(), Some(""));
        assert_eq!(name("crates/x/src/a/mod.rs").as_deref(), Some("a"));
        assert_eq!(name("xtask/src/a/b.rs").as_deref(), Some("a::b"));
        assert_eq!(name("crates/x/src/a/tests.rs"), None);
        assert_eq!(name("crates/x/src/bin/a.rs"), None);
        assert_eq!(name("crates/x/tests/it/main.rs"), None);
    }
}
