//! Typed messages from dictionaries, as Rust code: `fanfare fix codegen`, and for build scripts:
//!
//! ```no_run
//! // build.rs
//! use fanfare_fix::codegen;
//! use fanfare_fix::dict::Dictionary;
//!
//! let xml = std::fs::read_to_string("FIX44-exchange.xml")?;
//! let dictionary = Dictionary::from_xml(&xml)?;
//! let code = codegen::generate(&[(&dictionary, &["NewOrderSingle", "8"])])?;
//! std::fs::write(format!("{}/messages.rs", std::env::var("OUT_DIR")?), code)?;
//! println!("cargo::rerun-if-changed=FIX44-exchange.xml");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate takes the code in by `include!(concat!(env!("OUT_DIR"), "/messages.rs"));`, and needs
//! `fanfare-fix` alone for it. There is a module for each dictionary (`fix44`), which holds:
//!
//! - a reader for each message, over the bytes that were received. A method for each field returns
//!   its value in the type of the dictionary, or an error with tag and offset. Components are
//!   unfolded. A lookup finds the fields of its own level: see [`Message::with_groups`];
//! - a reader for the entries of each repeating group;
//! - an enum for each field with a list of values. A list that is open has a variant `Other`;
//!   elsewhere a value that is not in the list is the error
//!   [`Unlisted`](crate::codec::FieldErrorKind::Unlisted), and `fields()` has its bytes;
//! - a builder for each message and entry, over a [`FieldWriter`]. A message begins with a struct
//!   of its required fields. Required groups are the next calls, and then the optional fields
//!   may follow in any order, each once. The fields of an entry follow in the order of the
//!   definition, and an entry without its required fields does not compile;
//! - `Messages`, an enum of the messages, and `crack`, which returns the one that was received, by
//!   MsgType(35). From several dictionaries there is `crack` by version and MsgType too.
//!
//! Neither readers nor builders allocate. Dates, times of day and time zones are text. Fields that
//! the dictionary does not have are in `fields()`, and are written to the [`FieldWriter`] in front
//! of the builder or behind it.
//!
//! [`Message::with_groups`]: crate::codec::Message::with_groups
//! [`FieldWriter`]: crate::codec::FieldWriter

mod builder;
mod enums;
mod lines;
mod model;
mod names;
mod reader;
mod tables;

use std::fmt::Write as _;

use fanfare_wire::names::{Taken, snake};

use crate::dict::{Dictionary, Version};
use lines::Lines;
use model::Model;

/// Why code cannot be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodegenError {
    /// There is no dictionary.
    #[error("no dictionary to generate code from")]
    NoDictionary,
    /// A dictionary has no messages.
    #[error("the dictionary of {version} has no messages")]
    NoMessages {
        /// The dictionary's version.
        version: String,
    },
    /// A dictionary does not have a message.
    #[error("the dictionary of {version} has no message with the name or MsgType(35) {name}")]
    UnknownMessage {
        /// The name or MsgType(35) that was asked for.
        name: String,
        /// The dictionary's version.
        version: String,
    },
    /// One of several dictionaries has a version by which messages cannot be told apart.
    #[error("messages do not name version {version}: generate its code alone")]
    UnknownVersion {
        /// The dictionary's version.
        version: String,
    },
    /// Two dictionaries have one version.
    #[error("two dictionaries describe {version}")]
    SameVersion {
        /// Their version.
        version: String,
    },
}

/// Returns the code for messages of one or more dictionaries. The messages of a dictionary are
/// named by their names or MsgTypes; without names all of them are meant.
///
/// A dictionary of application messages alone (FIX.5.0 and later) has no header, and so its
/// messages have no reader for one, unless it is put over its transport ([`Dictionary::over`]).
///
/// # Errors
/// See [`CodegenError`]. Faults of a dictionary itself are found when it is loaded.
pub fn generate(parts: &[(&Dictionary, &[&str])]) -> Result<String, CodegenError> {
    let mut models = Vec::new();
    for (dictionary, messages) in parts {
        models.push(Model::new(dictionary, messages)?);
    }
    let mut taken = Taken::default();
    let modules = models
        .iter()
        .map(|model| taken.unique(module_name(&model.version)));
    let modules: Vec<String> = modules.collect();
    let mut out = String::from("// Made by `fanfare fix codegen`; do not edit.\n");
    match models.as_slice() {
        [] => return Err(CodegenError::NoDictionary),
        [_] => {}
        several => cracker(several, &modules, &mut out)?,
    }
    for (model, name) in models.iter().zip(&modules) {
        module(model, name, &mut out);
    }
    Ok(out)
}

/// `FIX.5.0SP2` as `fix50sp2`.
fn module_name(version: &str) -> String {
    let bare = version.chars().filter(char::is_ascii_alphanumeric);
    snake(&bare.collect::<String>().to_ascii_lowercase())
}

/// Lints of a crate's own choice that the code of a dictionary cannot heed: not all of it is used,
/// and names are the dictionary's.
const ALLOWED: &str = "#[allow(dead_code, unused_imports, unreachable_pub, clippy::pedantic)]\n\
                       #[allow(clippy::enum_variant_names, clippy::wrong_self_convention)]\n\
                       #[allow(clippy::should_implement_trait)]\n";

fn module(model: &Model, name: &str, out: &mut String) {
    _ = write!(
        out,
        "\n/// Messages of {}.\n{ALLOWED}#[rustfmt::skip]\npub mod {name} {{\n    \
         use ::fanfare_fix::typed::{{self, FieldError, FieldSet, FieldWriter, Listed as _}};\n    \
         use ::fanfare_fix::typed::{{Decimal, Message, UtcTimestamp}};\n",
        model.version,
    );
    let mut lines = Lines::new(1);
    reader::messages(model, &mut lines);
    for (level, message) in model.messages.iter().enumerate() {
        reader::message(model, message, level, &mut lines);
        builder::message(model, message, &mut lines);
    }
    for entry in &model.entries {
        reader::entry(model, entry, &mut lines);
        builder::entry(model, entry, &mut lines);
    }
    reader::header(model, &mut lines);
    for item in &model.enums {
        enums::write(item, &mut lines);
    }
    tables::write(model, &mut lines);
    out.push_str(lines.text());
    out.push_str("}\n");
}

/// `Cracked` and `crack` for the messages of several versions.
fn cracker(models: &[Model], modules: &[String], out: &mut String) -> Result<(), CodegenError> {
    let mut versions = Vec::new();
    for model in models {
        let version = model.version.clone();
        match Version::from_name(&version) {
            None => return Err(CodegenError::UnknownVersion { version }),
            Some(known) if versions.contains(&known) => {
                return Err(CodegenError::SameVersion { version });
            }
            Some(known) => versions.push(known),
        }
    }
    let mut lines = Lines::new(0);
    let allowed = "#[allow(dead_code, unreachable_pub)]";
    lines.gap();
    lines.line("/// A received message of one of these versions and types.");
    lines.line(allowed);
    lines.line("#[derive(Debug, Clone, Copy)]");
    lines.open("pub enum Cracked<'a> {");
    for (version, module) in versions.iter().zip(modules) {
        lines.line(&format!("/// {}.", version.name()));
        lines.line(&format!("{version:?}({module}::Messages<'a>),"));
    }
    lines.close("}");
    lines.gap();
    lines.line(
        "/// Returns a message by its version and MsgType(35), or `None` if the dictionaries",
    );
    lines.line("/// do not have it.");
    lines.line("///");
    lines.line(
        "/// `default` is the DefaultApplVerID(1137) of the counterparty's Logon(A), for messages",
    );
    lines.line("/// over FIXT.1.1 without ApplVerID(1128).");
    lines.line(allowed);
    let version = "::fanfare_fix::typed::Version";
    lines.function(
        "pub fn crack<'a>",
        &[
            "message: &::fanfare_fix::typed::Message<'a>",
            &format!("default: Option<{version}>"),
        ],
        "Option<Cracked<'a>>",
    );
    lines.open("Some(match ::fanfare_fix::typed::version_of(message, default)? {");
    for (known, module) in versions.iter().zip(modules) {
        let value = format!("Cracked::{known:?}({module}::crack(message)?)");
        lines.arm(&format!("{version}::{known:?}"), &value);
    }
    if versions.len() < Version::ALL.len() {
        lines.line("_ => return None,");
    }
    lines.close("})");
    lines.close("}");
    out.push_str(lines.text());
    Ok(())
}
