//! Any bytes as a sample of any type: reading, checking and printing agree on whether it is one,
//! and none of them takes memory that the bytes do not account for.
#![no_main]

use fanfare_dds::cdr::{CdrReader, check, to_json};
use fanfare_dds::types::{EnumType, Extensibility, Kind, StructType};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Makes a type from the bytes in front.
struct Types<'a>(std::slice::Iter<'a, u8>);

impl Types<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn structure(&mut self, depth: usize) -> StructType {
        let shape = self.next();
        let mut t = StructType::new("F::T");
        t.extensibility = match shape >> 4 & 3 {
            0 | 1 => Extensibility::Final,
            2 => Extensibility::Appendable,
            _ => Extensibility::Mutable,
        };
        for i in 0..shape % 6 + 1 {
            let kind = self.kind(depth);
            t = t.member(&format!("m{i}"), kind);
            if self.next() % 4 == 0 {
                t.members.last_mut().unwrap().optional = true;
            }
        }
        t
    }

    fn kind(&mut self, depth: usize) -> Kind {
        let choice = self.next();
        let bound = (choice & 0x80 != 0).then(|| u32::from(self.next()) + 1);
        match choice % 21 {
            0 => Kind::Bool,
            1 => Kind::Byte,
            2 => Kind::Int8,
            3 => Kind::UInt8,
            4 => Kind::Int16,
            5 => Kind::UInt16,
            6 => Kind::Int32,
            7 => Kind::UInt32,
            8 => Kind::Int64,
            9 => Kind::UInt64,
            10 => Kind::Float32,
            11 => Kind::Float64,
            12 => Kind::Char,
            13 => Kind::Enum(Arc::new(EnumType {
                name: "F::E".to_owned(),
                bit_bound: u16::from(self.next()),
                literals: vec![("a".to_owned(), 0), ("b".to_owned(), 7)],
            })),
            14 | 15 if depth < 18 => {
                let length = u32::from(self.next()) + 1;
                Kind::Array(Box::new(self.kind(depth + 1)), length)
            }
            16 | 17 if depth < 18 => Kind::Sequence(Box::new(self.kind(depth + 1)), bound),
            18 if depth < 18 => Kind::Struct(Arc::new(self.structure(depth + 1))),
            19 => Kind::Bitmask(u16::from(self.next())),
            _ => Kind::String(bound),
        }
    }
}

/// Calls the reader as the bytes say.
fn read(ops: &[u8], sample: &[u8]) {
    let Ok(mut reader) = CdrReader::new(sample) else {
        return;
    };
    for op in ops {
        let before = reader.remaining();
        let ok = match op % 10 {
            0 => reader.u8().is_ok(),
            1 => reader.u16().is_ok(),
            2 => reader.u32().is_ok(),
            3 => reader.u64().is_ok(),
            4 => reader.bool().is_ok(),
            5 => reader.f64().is_ok(),
            6 => reader.string().is_ok(),
            7 => reader.octets().is_ok(),
            8 => reader.count(usize::from(op >> 4)).is_ok(),
            _ => reader.bytes(usize::from(op >> 4)).is_ok(),
        };
        assert!(reader.remaining() <= before);
        if !ok {
            return;
        }
    }
}

fuzz_target!(|bytes: (&[u8], &[u8])| {
    let (shape, sample) = bytes;
    read(shape, sample);
    let t = Types(shape.iter()).structure(0);
    if t.check().is_err() {
        return;
    }
    let checked = check(&t, sample);
    let printed = to_json(&t, sample);
    assert_eq!(checked.is_ok(), printed.is_ok());
    if let Err(error) = checked {
        assert!(error.offset <= sample.len());
    }
});
