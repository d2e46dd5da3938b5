//! A peer in C++ on another vendor's middleware: Debian's Fast DDS, with the classes that its
//! generator makes from our IDL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::c::{misfit, write_idl};
use crate::{COMPLEX, PeerCommand, SIMPLE, complex, run, same_config, simple};

#[test]
fn a_fast_dds_program_prints_and_returns_every_field_of_simple_messages() {
    let Some(peer) = peer(&SIMPLE, 200, Offer::default()) else {
        return;
    };
    assert_eq!(simple(&peer).len(), 200);
}

#[test]
fn a_fast_dds_program_prints_and_returns_every_field_of_complex_messages() {
    let Some(peer) = peer(&COMPLEX, 280, Offer::default()) else {
        return;
    };
    assert_eq!(complex(&peer).len(), 280);
}

#[test]
fn a_fast_dds_program_with_policies_that_do_not_fit_is_reported() {
    let offer = Offer {
        is_best_effort: true,
        ..Offer::default()
    };
    let Some(peer) = peer(&["Quote"], 0, offer) else {
        return;
    };
    misfit(&peer);
}

/// Fast DDS 2 describes a type in another form than Cyclone DDS reads, as a content filter needs.
#[test]
fn a_fast_dds_program_that_describes_its_types_is_matched() {
    let offer = Offer {
        is_described: true,
        ..Offer::default()
    };
    let Some(peer) = peer(&SIMPLE, 200, offer) else {
        return;
    };
    assert_eq!(simple(&peer).len(), 200);
}

/// What the program's endpoints announce beyond their topics.
#[derive(Default)]
struct Offer {
    is_best_effort: bool,
    is_described: bool,
}

fn peer(topics: &[&str], samples: usize, offer: Offer) -> Option<PeerCommand> {
    let flag = |is_set: bool| u8::from(is_set).to_string();
    let flags = [flag(!offer.is_best_effort), flag(offer.is_described)];
    let mut args = vec![topics.join(","), samples.to_string()];
    args.extend(flags);
    Some(PeerCommand {
        program: compiled()?,
        args,
        config: same_config,
    })
}

/// Returns the program, made once in a run; `None` if Fast DDS is not installed.
fn compiled() -> Option<PathBuf> {
    static DONE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut done = DONE.lock().unwrap();
    if done.is_some() {
        return done.clone();
    }
    if !Path::new("/usr/include/fastdds/dds/domain/DomainParticipant.hpp").exists() {
        return absent("libfastrtps-dev");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fast-dds");
    std::fs::create_dir_all(&folder).unwrap();
    let text = write_idl(&folder);
    generate(&folder, &text)?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/fast_dds.cpp");
    let program = folder.join("peer");
    run(Command::new("c++")
        .args(["-std=c++11", "-O0", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .args([
            "types.cxx",
            "typesPubSubTypes.cxx",
            "typesTypeObject.cxx",
            "-I.",
        ])
        .args(["-lfastrtps", "-lfastcdr"])
        .current_dir(&folder));
    *done = Some(program);
    done.clone()
}

/// Runs its generator for a class for each structure and union of `types.idl`.
pub(crate) fn generate(folder: &Path, text: &str) -> Option<()> {
    if Command::new("fastddsgen").arg("-version").output().is_err() {
        return absent("fastddsgen");
    }
    // It always exits with 0: only its output shows whether it succeeded.
    let header = folder.join("types.h");
    let _ = std::fs::remove_file(&header);
    // Without a folder of its own it writes /tmp/types.idl.cc, as concurrent runs do.
    let idl = ["-t", ".", "-typeobject", "-replace", "types.idl"];
    run(Command::new("fastddsgen").args(idl).current_dir(folder));
    let made = std::fs::read_to_string(&header).unwrap();
    for line in text.lines().map(str::trim) {
        let declared = ["struct ", "union "].map(|what| line.strip_prefix(what));
        if let Some(name) = declared.into_iter().flatten().next() {
            let class = format!("class {}", name.split(' ').next().unwrap());
            assert!(made.contains(&class), "{class}");
        }
    }
    Some(())
}

/// Reports a missing package. Fast DDS needs Java and a hundred packages: only the machine of the
/// checks must have them.
fn absent<T>(package: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{package} is missing");
    println!("skipped: {package} is not installed");
    None
}
