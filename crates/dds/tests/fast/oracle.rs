//! The obvious conversion of messages to samples.

use std::collections::BTreeMap;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::types::{Kind, Member, StructType};
use fanfare_fast::{Fields, MessageView, Value};

/// A field of a message: its name, whether it is optional, its value.
type Named<'a> = (String, bool, Value<'a>);

/// Converts in the obvious way: walks the type, looks each member up in the message by name, and
/// writes it.
pub(crate) fn oracle(view: &MessageView<'_>, t: &StructType, split: bool) -> Vec<Vec<u8>> {
    let all = named(view.fields());
    if !split {
        let mut out = CdrBuffer::with_capacity(1 << 16);
        write_struct(&mut out, t, &all);
        return vec![out.finish().unwrap().to_vec()];
    }
    let key = &t.members[0];
    let (_, _, Value::Sequence(entries)) = all.last().unwrap() else {
        return Vec::new();
    };
    let mut by_key: BTreeMap<u64, Vec<Vec<Named<'_>>>> = BTreeMap::new();
    for entry in *entries {
        let value = match entry.get(&key.name).unwrap() {
            Value::Unsigned(n, _) => n,
            Value::Signed(n, _) => n as u64,
            other => panic!("{other:?} is no key"),
        };
        by_key.entry(value).or_default().push(named(entry));
    }
    let Kind::Sequence(element, _) = &t.members.last().unwrap().kind else {
        panic!("no sequence in the type")
    };
    let Kind::Struct(element) = &**element else {
        panic!()
    };
    let write = |(value, entries): (u64, Vec<Vec<Named<'_>>>)| {
        let mut out = CdrBuffer::with_capacity(1 << 16);
        write_number(&mut out, &key.kind, value);
        let mut members = &t.members[1..t.members.len() - 1];
        if members.first().is_some_and(|m| m.name == "present") {
            out.u64(mask(&all));
            members = &members[1..];
        }
        write_members(&mut out, members, &all[..all.len() - 1]);
        out.u32(u32::try_from(entries.len()).unwrap());
        for entry in &entries {
            write_struct(&mut out, element, entry);
        }
        out.finish().unwrap().to_vec()
    };
    by_key.into_iter().map(write).collect()
}

fn named(fields: Fields<'_>) -> Vec<Named<'_>> {
    fields
        .map(|(f, v)| (f.name().to_owned(), f.optional(), v))
        .collect()
}

fn write_struct(out: &mut CdrBuffer, t: &StructType, values: &[Named<'_>]) {
    let mut members = &t.members[..];
    if members[0].name == "present" {
        out.u64(mask(values));
        members = &members[1..];
    }
    write_members(out, members, values);
}

fn write_members(out: &mut CdrBuffer, members: &[Member], values: &[Named<'_>]) {
    assert_eq!(members.len(), values.len());
    for (member, (name, _, value)) in members.iter().zip(values) {
        assert_eq!(&member.name, name);
        write_value(out, &member.kind, value);
    }
}

fn mask(values: &[Named<'_>]) -> u64 {
    let optional = values.iter().filter(|(_, optional, _)| *optional);
    let bit = |(i, (_, _, value)): (usize, &Named<'_>)| u64::from(!value.is_absent()) << i;
    optional.enumerate().map(bit).sum()
}

fn write_number(out: &mut CdrBuffer, kind: &Kind, n: u64) {
    match kind {
        Kind::Byte | Kind::Int8 => out.u8(n as u8),
        Kind::UInt16 | Kind::Int16 => out.u16(n as u16),
        Kind::UInt32 | Kind::Int32 => out.u32(n as u32),
        Kind::UInt64 | Kind::Int64 => out.u64(n),
        other => panic!("{other:?} is no number"),
    }
}

fn write_value(out: &mut CdrBuffer, kind: &Kind, value: &Value<'_>) {
    let number = || match *value {
        Value::Unsigned(n, _) => n,
        Value::Signed(n, _) => n as u64,
        Value::Absent => 0,
        _ => panic!("{value:?} is no {kind:?}"),
    };
    match kind {
        Kind::Float64 => {
            // The text of a decimal, parsed as a double, is the nearest one.
            let text = value
                .as_decimal()
                .map_or("0".to_owned(), |d| format!("{}e{}", d.mantissa, d.exponent));
            out.f64(text.parse().unwrap());
        }
        Kind::String(_) => out.string(value.as_bytes().unwrap_or_default()),
        Kind::Sequence(element, _) if **element == Kind::Byte => {
            out.octets(value.as_bytes().unwrap_or_default());
        }
        Kind::Sequence(element, _) => {
            let Kind::Struct(element) = &**element else {
                panic!()
            };
            let entries: Vec<_> = value.as_sequence().into_iter().flatten().collect();
            out.u32(u32::try_from(entries.len()).unwrap());
            for entry in entries {
                write_struct(out, element, &named(entry));
            }
        }
        Kind::Struct(t) if t.name.ends_with("::Decimal") => {
            let d = value.as_decimal().unwrap_or_default();
            out.i64(d.mantissa);
            out.i32(d.exponent.into());
        }
        Kind::Struct(t) => match value {
            Value::Group(fields) => write_struct(out, t, &named(*fields)),
            _ => write_absent_struct(out, t),
        },
        kind => write_number(out, kind, number()),
    }
}

fn write_absent_struct(out: &mut CdrBuffer, t: &StructType) {
    for member in &t.members {
        write_value(out, &member.kind, &Value::Absent);
    }
}
