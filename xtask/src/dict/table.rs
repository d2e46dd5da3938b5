//! Writes one version as a table. The format is described in crates/fix/src/dict/table.rs,
//! which reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::amend::{Amendment, Change};
use super::repository::{Enum, Field, Repository, Row};
use super::{TRANSPORT, VERSIONS};

const HEAD: &str = "\
# Made by `cargo xtask dict` from the FIX Repository. Copyright FIX Protocol Limited.
# Not edited by hand: see PROVENANCE.md and amendments.txt.
";

/// Returns the table of `version`; `editions` has all versions in the order of VERSIONS.
pub(super) fn render(
    editions: &[Repository],
    version: &str,
    amendments: &[&Amendment],
) -> Result<String, String> {
    let edition = editions
        .iter()
        .find(|e| e.version == version)
        .ok_or(format!("no edition of {version}"))?;
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "V {version}");
    write_fields(&mut out, editions, edition, amendments)?;
    write_blocks(&mut out, edition, amendments)?;
    for message in &edition.messages {
        // FIX.5.x repeats the session messages, which belong to the transport.
        if message.session && version.starts_with("FIX.5") {
            continue;
        }
        let class = if message.session { "session" } else { "app" };
        let items = items(edition, &message.id)?;
        let _ = writeln!(
            out,
            "M {} {} {class}{items}",
            message.msg_type, message.name
        );
    }
    Ok(out)
}

fn write_fields(
    out: &mut String,
    editions: &[Repository],
    edition: &Repository,
    amendments: &[&Amendment],
) -> Result<(), String> {
    let mut fields = known_fields(editions, edition)?;
    let mut enums = edition.enums.clone();
    let mut open = Vec::new();
    for amendment in amendments {
        match &amendment.change {
            Change::Field { tag, name, kind } => {
                let field = Field {
                    name: name.clone(),
                    kind: kind.clone(),
                    added: edition.version.clone(),
                    by_extension: false,
                    values_of: None,
                };
                fields.insert(*tag, field);
            }
            Change::Enum { tag, values } => {
                enums.entry(*tag).or_default().extend_from_slice(values);
            }
            Change::Open { tag } => open.push(*tag),
            Change::Component { .. } => {}
        }
    }
    for (tag, field) in &fields {
        let kind = data_type(&edition.version, &field.kind);
        let own = enums.get(tag);
        let values = own.or_else(|| enums.get(&field.values_of?));
        let values = values.map_or(&[][..], Vec::as_slice);
        // A "value" with blanks describes free values ("ISO Country Code"); the list of another
        // field only provides the names.
        let is_open = open.contains(tag)
            || own.is_none() && !values.is_empty()
            || values.iter().any(Enum::is_description);
        let mark = if is_open { "~" } else { "" };
        let _ = write!(out, "F {tag} {} {kind}{mark}", field.name);
        for Enum { value, name } in values.iter().filter(|e| !e.is_description()) {
            let _ = write!(out, " {value}={name}");
        }
        out.push('\n');
    }
    Ok(())
}

/// Returns the fields that a version knows: its own, and those of earlier versions, as a tag stays
/// assigned when a later version no longer uses it. A version without fields of its own takes those
/// that later versions date to it or before.
fn known_fields(
    editions: &[Repository],
    edition: &Repository,
) -> Result<BTreeMap<u32, Field>, String> {
    if edition.version == TRANSPORT {
        return Ok(edition.fields.clone());
    }
    let place = rank(&edition.version).ok_or("unknown version")?;
    let (earlier, rest) = editions.split_at(place);
    let mut fields = BTreeMap::new();
    for older in earlier.iter().filter(|e| e.own_fields) {
        fields.extend(older.fields.clone());
    }
    if edition.own_fields {
        fields.extend(edition.fields.clone());
        return Ok(fields);
    }
    // The nearest one takes precedence.
    for newer in rest
        .iter()
        .rev()
        .filter(|e| e.own_fields && e.version != TRANSPORT)
    {
        for (tag, field) in &newer.fields {
            let added = rank(&field.added).unwrap_or(0) + usize::from(field.by_extension);
            if added <= place {
                fields.insert(*tag, field.clone());
            }
        }
    }
    Ok(fields)
}

/// Returns the position of a version in time; versions before 4.0 have none.
fn rank(version: &str) -> Option<usize> {
    VERSIONS.iter().position(|v| *v == version)
}

/// Returns the name of the data type. Before 4.2, `char` was any text, and `time` and `date` were
/// the types that later versions call UTCTimestamp and LocalMktDate.
fn data_type(version: &str, kind: &str) -> String {
    let early = matches!(version, "FIX.4.0" | "FIX.4.1");
    match kind.to_ascii_uppercase().as_str() {
        "CHAR" if early => "STRING".to_owned(),
        "TIME" => "UTCTIMESTAMP".to_owned(),
        "DATE" => "LOCALMKTDATE".to_owned(),
        other => other.to_owned(),
    }
}

fn write_blocks(
    out: &mut String,
    edition: &Repository,
    amendments: &[&Amendment],
) -> Result<(), String> {
    let application_only = edition.version.starts_with("FIX.5");
    for component in &edition.components {
        let replaced = amendments.iter().find_map(|a| match &a.change {
            Change::Component { name, items } if *name == component.name => Some(items),
            _ => None,
        });
        let items = match replaced {
            Some(items) => format!(" {items}"),
            None => items(edition, &component.id)?,
        };
        match component.name.as_str() {
            "StandardHeader" | "StandardTrailer" if application_only => {}
            "StandardHeader" => {
                let _ = writeln!(out, "H{items}");
            }
            "StandardTrailer" => {
                let _ = writeln!(out, "T{items}");
            }
            name => {
                let _ = writeln!(out, "C {name}{items}");
            }
        }
    }
    Ok(())
}

fn items(edition: &Repository, id: &str) -> Result<String, String> {
    let rows = edition.contents.get(id).map_or(&[][..], Vec::as_slice);
    let mut out = String::new();
    let mut rest = rows;
    while !rest.is_empty() {
        rest = write_level(&mut out, rest, 0)
            .ok_or(format!("{}: indents of component {id}", edition.version))?;
    }
    Ok(out)
}

/// Writes the rows of one indent and, as groups, those below. Returns the remaining rows.
fn write_level<'a>(out: &mut String, mut rows: &'a [Row], indent: u32) -> Option<&'a [Row]> {
    while let Some((row, rest)) = rows.split_first().filter(|(row, _)| row.indent >= indent) {
        rows = rest;
        if matches!(row.text.as_str(), "StandardHeader" | "StandardTrailer") {
            continue;
        }
        let is_tag = row.text.bytes().all(|b| b.is_ascii_digit());
        let at = if is_tag { "" } else { "@" };
        let mark = if row.required { "!" } else { "" };
        if !out.ends_with('(') {
            out.push(' ');
        }
        let _ = write!(out, "{at}{}{mark}", row.text);
        if rows.first().is_some_and(|next| next.indent > row.indent) {
            if !is_tag {
                return None;
            }
            out.push('(');
            rows = write_level(out, rows, row.indent + 1)?;
            out.push(')');
        }
    }
    Some(rows)
}
