//! The book that `make book` makes of docs: it has all files, and its links lead to its chapters.

use super::guide;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

fn docs() -> PathBuf {
    guide().join("..").canonicalize().unwrap()
}

/// Returns the text of a file in the tree's top folder.
fn text(name: &str) -> String {
    std::fs::read_to_string(docs().join("..").join(name)).unwrap()
}

/// Returns the files that a text links to, relative to the folder of the text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.map(|target| target.split_once('#').map_or(target, |(file, _)| file));
    files.filter(|file| !file.is_empty() && !file.contains("://"))
}

/// Resolves `..` by the names alone: a chapter that is absent has no path in the file system.
fn resolve(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn chapters() -> BTreeSet<PathBuf> {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    links(&summary).map(|file| docs().join(file)).collect()
}

#[test]
fn the_book_has_all_files() {
    let folders = ["", "guide", "adr"].map(|name| docs().join(name));
    let files = folders.iter().flat_map(|folder| {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        files.map(|file| folder.join(file.file_name()))
    });
    let is_chapter = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md")
    };
    let files: BTreeSet<PathBuf> = files
        .map(|path| resolve(&path))
        .filter(is_chapter)
        .collect();
    assert_eq!(chapters(), files);
}

#[test]
fn links_of_chapters_lead_to_chapters_and_pictures() {
    let chapters = chapters();
    for chapter in &chapters {
        let text = std::fs::read_to_string(chapter).unwrap();
        for link in links(&text) {
            let target = resolve(&chapter.parent().unwrap().join(link));
            let is_picture =
                target.starts_with(docs()) && target.extension() != Some("md".as_ref());
            assert!(
                chapters.contains(&target) || is_picture && target.is_file(),
                "{}: {link}",
                chapter.display()
            );
        }
    }
}

/// The package has its documents in the folders of the tree.
#[test]
fn links_of_the_readme_lead_to_files_of_the_package() {
    let manifest = text("crates/fanfare/Cargo.toml");
    let is_shipped = |source: &str, folder: &str| {
        let asset = format!("[\"../../{source}\", \"usr/share/doc/fanfare/{folder}\", \"644\"]");
        manifest.contains(&asset)
    };
    let readme = text("README.md");
    for link in links(&readme) {
        let path = docs().join("..").join(link);
        assert!(path.exists(), "{link}");
        let (folder, name) = match path.is_dir() {
            true => (link.to_owned() + "/", "README.md"),
            false => link.rsplit_once('/').map_or_else(
                || (String::new(), link),
                |(folder, name)| (folder.to_owned() + "/", name),
            ),
        };
        let (_, ending) = name.rsplit_once('.').unwrap();
        assert!(
            is_shipped(&format!("{folder}*.{ending}"), &folder)
                || is_shipped(&format!("{folder}{name}"), &folder),
            "{link}"
        );
    }
}
