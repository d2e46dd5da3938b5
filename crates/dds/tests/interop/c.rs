//! A peer in C, compiled here against Debian's Cyclone DDS (scripts/setup.sh installs it).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use fanfare_dds::types::{self, Case, EnumType, Extensibility, Kind, StructType, UnionType};
use fanfare_dds::{Domain, DomainConfig, Policy, Qos, Status};

use crate::{
    COMPLEX, Peer, PeerCommand, SIMPLE, complex, config, fast_dds, mapping, run, simple, wait_until,
};

#[test]
fn a_c_program_prints_and_returns_every_field_of_simple_messages() {
    let printed = simple(&peer(&SIMPLE, 200, true));
    assert_eq!(printed.len(), 200);
}

#[test]
fn a_c_program_prints_and_returns_every_field_of_complex_messages() {
    let printed = complex(&peer(&COMPLEX, 280, true));
    assert_eq!(printed.len(), 280);
}

#[test]
fn a_c_program_with_policies_that_do_not_fit_is_reported() {
    misfit(&peer(&["Quote"], 0, false));
}

/// Checks with a peer whose writers offer best effort, while our reader requests reliable delivery.
pub(crate) fn misfit(peer: &PeerCommand) {
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let mapping = mapping(Arc::new(fanfare_fast::Program::simple()));
    let t = &mapping.by_name("Quote").unwrap().sample;
    let told: Arc<Mutex<Vec<Status>>> = Arc::default();
    let events = Arc::clone(&told);
    let topic = domain.topic("Quote_back", t, &Qos::default()).unwrap();
    let _reader = topic
        .reader(&Qos::reliable())
        .on_status(move |status| events.lock().unwrap().push(status))
        .open()
        .unwrap();
    let mut peer = Peer::start(peer, &config);
    assert_eq!(peer.line(), "ready");
    wait_until("the report", || !told.lock().unwrap().is_empty());
    let expected = Status::IncompatibleQos {
        total: 1,
        policy: Policy::Reliability,
    };
    assert_eq!(*told.lock().unwrap(), [expected]);
}

/// Names that are keywords in some language, collide, or are invalid become names that compile as
/// C, with a type of its own for each template.
#[test]
fn odd_names_become_types_that_compile() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("odd-names");
    std::fs::create_dir_all(&folder).unwrap();
    let program = fanfare_fast::Program::parse(include_str!("odd.xml")).unwrap();
    let mapping = mapping(Arc::new(program));
    let text = mapping.idl();
    std::fs::write(folder.join("types.idl"), &text).unwrap();
    let names: BTreeSet<_> = mapping.types().map(|t| t.type_name()).collect();
    assert_eq!(names.len(), 10, "{text}");
    run(Command::new("idlc").arg("types.idl").current_dir(&folder));
    run(Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "types.c"])
        .current_dir(&folder));
    fast_dds::generate(&folder, &text);
}

/// No template becomes a union: types with one are of other programs, printed on demand.
#[test]
fn unions_are_printed_as_the_compilers_of_others_take_them() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unions");
    std::fs::create_dir_all(&folder).unwrap();
    let side = EnumType {
        name: "Odd::Side".to_owned(),
        bit_bound: 32,
        literals: vec![("Buy".to_owned(), 0), ("Sell".to_owned(), 5)],
    };
    let level = StructType::new("Odd::Level").member("price", Kind::Float64);
    let by_number = union_of(
        "ByNumber",
        Kind::Int16,
        vec![
            (vec![-1, 7], Kind::Struct(Arc::new(level))),
            (vec![2], Kind::String(None)),
            (vec![], Kind::Int64),
        ],
    );
    let by_side = union_of(
        "BySide",
        Kind::Enum(Arc::new(side)),
        vec![
            (vec![0], Kind::UInt32),
            (vec![5], Kind::Sequence(Box::new(Kind::Int16), None)),
        ],
    );
    let by_flag = union_of("ByFlag", Kind::Bool, vec![(vec![1], Kind::Char)]);
    let t = StructType::new("Odd::Chosen")
        .key("id", Kind::UInt32)
        .member("first", by_number.clone())
        .member("all", Kind::Sequence(Box::new(by_number), None))
        .member("second", by_side)
        .member("third", by_flag);
    let text = t.idl();
    assert_eq!(text.matches("union ").count(), 3, "{text}");
    std::fs::write(folder.join("types.idl"), &text).unwrap();
    run(Command::new("idlc").arg("types.idl").current_dir(&folder));
    run(Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "types.c"])
        .current_dir(&folder));
    fast_dds::generate(&folder, &text);
}

/// Returns a union of members `m0`, `m1` and so on, where the one without labels is the default.
fn union_of(name: &str, by: Kind, cases: Vec<(Vec<i32>, Kind)>) -> Kind {
    let one = |name: &str, kind| StructType::new("").member(name, kind).members.remove(0);
    let cases = cases
        .into_iter()
        .enumerate()
        .map(|(i, (labels, kind))| Case {
            is_default: labels.is_empty(),
            labels,
            member: one(&format!("m{i}"), kind),
        });
    Kind::Union(Arc::new(UnionType {
        name: format!("Odd::{name}"),
        extensibility: Extensibility::Final,
        discriminator: one("discriminator", by),
        cases: cases.collect(),
    }))
}

fn peer(topics: &[&str], samples: usize, reliable: bool) -> PeerCommand {
    PeerCommand {
        program: compiled(),
        args: vec![
            topics.join(","),
            samples.to_string(),
            u8::from(reliable).to_string(),
        ],
        config: old_config,
    }
}

/// Returns the configuration for version 0.10, Debian's, which does not know all current elements.
fn old_config(config: &DomainConfig) -> String {
    let id = config.id;
    format!(
        "<CycloneDDS><Domain Id=\"any\"><General><Interfaces>\
         <NetworkInterface address=\"127.0.0.1\" multicast=\"false\"/></Interfaces>\
         <AllowMulticast>false</AllowMulticast></General><Discovery>\
         <ExternalDomainId>{id}</ExternalDomainId><ParticipantIndex>auto</ParticipantIndex>\
         <Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>"
    )
}

/// Returns the program, made once in a run: IDL from our types, C from the IDL, the binary from
/// both.
fn compiled() -> PathBuf {
    static DONE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut done = DONE.lock().unwrap();
    if let Some(program) = &*done {
        return program.clone();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-peer");
    std::fs::create_dir_all(&folder).unwrap();
    write_idl(&folder);
    run(Command::new("idlc").arg("types.idl").current_dir(&folder));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peer.c");
    let program = folder.join("peer");
    run(Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .args(["types.c", "-I.", "-lddsc"])
        .current_dir(&folder));
    *done = Some(program.clone());
    program
}

/// Writes the IDL of both sets of templates to `types.idl` in `folder`; returns its text.
pub(crate) fn write_idl(folder: &Path) -> String {
    let programs = [
        fanfare_fast::Program::simple(),
        fanfare_fast::Program::complex(),
    ];
    let [simple, complex] = programs.map(|p| mapping(Arc::new(p)));
    let all = simple.types().chain(complex.types());
    let all: Vec<_> = all
        .filter(|t| t.name != "Done")
        .map(|t| &*t.sample)
        .collect();
    let text = types::idl(&all);
    std::fs::write(folder.join("types.idl"), &text).unwrap();
    text
}
