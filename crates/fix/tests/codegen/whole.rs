//! Generated code in crates of their own: that for all messages of whole dictionaries, in which
//! clippy and rustdoc find nothing, and uses of it that do not compile. Both take a minute or more,
//! so `make codegen` runs them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

use fanfare_fix::codegen;
use fanfare_fix::dict::{Dictionary, Version};

/// Makes a crate that depends on fanfare-fix alone, and returns its folder.
fn library(name: &str, code: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/lib.rs"), code).unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nfanfare-fix.path = {home:?}\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(home.join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

/// Runs cargo there with a target folder that all of these crates share.
fn cargo(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    let target = folder.with_file_name("codegen-target");
    command.args(args).current_dir(folder);
    command.env("CARGO_TARGET_DIR", target);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

#[test]
fn code_of_whole_dictionaries_has_no_warnings() {
    let transport = Dictionary::built_in(Version::Fixt11);
    let sp2 = Dictionary::built_in(Version::Fix50Sp2);
    let sp2 = sp2.over(&transport).unwrap();
    let versions = [Version::Fix42, Version::Fix44];
    let [fix42, fix44] = versions.map(Dictionary::built_in);
    let dictionaries = [&*transport, &*fix42, &*fix44, &sp2];
    let parts = dictionaries.map(|dictionary| (dictionary, &[][..]));
    let head = "//! All messages.\n#![deny(missing_docs, rust_2018_idioms)]\n";
    let code = format!("{head}{}", codegen::generate(&parts).unwrap());
    let folder = library("codegen-whole", &code);
    for args in [
        &["clippy", "--", "-D", "warnings"][..],
        &["doc", "--no-deps"],
    ] {
        let status = cargo(&folder, args).status();
        assert!(status.unwrap().success(), "cargo {}", args.join(" "));
    }
}

#[test]
fn messages_without_what_they_require_do_not_compile() {
    let head = include_str!("../../messages/fix44.generated");
    let uses = [
        (
            "NewOrderSingle::build(out, NewOrderSingleFields {
                 cl_ord_id: \"1\", symbol: \"A\", side: Side::Buy, ord_type: OrdType::Market,
             });",
            "missing field `transact_time`",
        ),
        (
            "MarketDataSnapshotFullRefresh::build(out, MarketDataSnapshotFullRefreshFields {
                 symbol: \"A\",
             }).md_req_id(\"1\");",
            "no method named `md_req_id`",
        ),
        (
            "MarketDataSnapshotFullRefresh::build(out, MarketDataSnapshotFullRefreshFields {
                 symbol: \"A\",
             });",
            "NoMDEntries(268) has to follow",
        ),
        (
            "MarketDataSnapshotFullRefresh::build(out, MarketDataSnapshotFullRefreshFields {
                 symbol: \"A\",
             }).md_entries([()], |entry, ()| entry);",
            "expected `MDEntriesEntryBuilder<'_, '_>`, found `MDEntriesEntryStart<'_, '_>`",
        ),
    ];
    for (code, expected) in uses {
        let code = format!(
            "#![deny(unused_must_use)]\n{head}\nuse fix44::*;\n\
             pub fn write(out: &mut fanfare_fix::codec::FieldWriter<'_>) {{ {code} }}\n"
        );
        let folder = library("codegen-uses", &code);
        let output = cargo(&folder, &["check"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{code}");
        assert!(text.contains(expected), "{text}");
    }
}
