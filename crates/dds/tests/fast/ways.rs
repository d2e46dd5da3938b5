//! All ways of converting, compared with the slow one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfare_dds::cdr::{CdrReader, check, to_json};
use fanfare_dds::fast::{Converted, Converter, Mapping, TypeOptions};
use fanfare_dds::types::{Kind, StructType};
use fanfare_fast::{Decoder, Message, Options, Program, Record};

use crate::oracle::oracle;

/// Converts every message of `packets` in all ways; returns the number of samples by template.
pub(crate) fn compare(
    program: Program,
    options: &TypeOptions,
    packets: &[Vec<u8>],
) -> BTreeMap<String, u32> {
    let program = Arc::new(program);
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), options).unwrap());
    // An optional field is a bit of the mask and a member, never a union.
    assert!(!mapping.idl().contains("union "), "{}", mapping.idl());
    let mut counts = BTreeMap::new();
    for packet in packets {
        let expected = expected(&program, &mapping, packet);
        let mut ways = [
            Way::rows(&mapping),
            Way::scalar(&mapping),
            Way::given(&mapping),
        ];
        for way in &mut ways {
            let samples = way.samples(packet);
            assert!(
                samples == expected,
                "{}",
                differ(&mapping, &samples, &expected)
            );
        }
        for (template, _, _) in expected {
            let name = &mapping.by_index(template).unwrap().name;
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}

/// Samples with their templates and keys.
type Samples = Vec<(u32, Option<u64>, Vec<u8>)>;

/// Returns the first difference, as text.
fn differ(mapping: &Mapping, got: &Samples, expected: &Samples) -> String {
    let text = |sample: Option<&(u32, Option<u64>, Vec<u8>)>| {
        sample.map(|(t, key, cdr)| {
            let t = mapping.by_index(*t).unwrap();
            (key.to_owned(), to_json(&t.sample, cdr), cdr.clone())
        })
    };
    let n = got.len().max(expected.len());
    let at = (0..n).find(|i| got.get(*i) != expected.get(*i)).unwrap();
    let (a, b) = (text(got.get(at)), text(expected.get(at)));
    format!("sample {at}:\n{a:?}\nexpected:\n{b:?}")
}

/// Returns the samples of a packet by the slow conversion, field by field into a message.
fn expected(program: &Arc<Program>, mapping: &Mapping, packet: &[u8]) -> Samples {
    let mut decoder = Decoder::with_options(Arc::clone(program), scalar());
    let (mut message, mut rest, mut all) = (Message::new(), packet, Vec::new());
    while !rest.is_empty() {
        let n = decoder.decode(rest, &mut message).unwrap();
        rest = &rest[n..];
        let view = message.view(program).unwrap();
        let Some(t) = mapping.by_index(view.template().index()) else {
            continue;
        };
        for cdr in oracle(&view, &t.sample, t.is_split) {
            check(&t.sample, &cdr).unwrap();
            let key = t.is_split.then(|| key_of(&t.sample, &cdr));
            all.push((t.index, key, cdr));
        }
    }
    all
}

/// Returns the key in front of a sample, sign-extended.
fn key_of(t: &StructType, cdr: &[u8]) -> u64 {
    let mut cdr = CdrReader::new(cdr).unwrap();
    match t.members[0].kind {
        Kind::Byte => cdr.u8().unwrap().into(),
        Kind::Int8 => cdr.i8().unwrap() as u64,
        Kind::UInt16 => cdr.u16().unwrap().into(),
        Kind::Int16 => cdr.i16().unwrap() as u64,
        Kind::UInt32 => cdr.u32().unwrap().into(),
        Kind::Int32 => cdr.i32().unwrap() as u64,
        _ => cdr.u64().unwrap(),
    }
}

fn scalar() -> Options {
    Options {
        kernel: None,
        ..Options::default()
    }
}

/// A converter and the way of its use.
struct Way {
    decoder: Decoder,
    converter: Converter,
    /// Whether the samples pass through a ring.
    is_given: bool,
}

impl Way {
    /// Makes a way with the lanes that the processor supports.
    fn rows(mapping: &Arc<Mapping>) -> Self {
        Self {
            decoder: Decoder::new(Arc::clone(mapping.program())),
            converter: Converter::new(Arc::clone(mapping), 1 << 16),
            is_given: false,
        }
    }

    fn scalar(mapping: &Arc<Mapping>) -> Self {
        Self {
            decoder: Decoder::with_options(Arc::clone(mapping.program()), scalar()),
            ..Self::rows(mapping)
        }
    }

    fn given(mapping: &Arc<Mapping>) -> Self {
        Self {
            is_given: true,
            ..Self::rows(mapping)
        }
    }

    fn samples(&mut self, packet: &[u8]) -> Samples {
        let (mut rest, mut all, mut room) = (packet, Vec::new(), Vec::new());
        let mut record = Record::new();
        let mapping = Arc::clone(self.converter.mapping());
        while !rest.is_empty() {
            let n = self.decoder.decode_record(rest, &mut record).unwrap();
            rest = &rest[n..];
            let take = |sample: Converted<'_>| {
                let mut sample = sample;
                if self.is_given {
                    room.resize(sample.written_len(), 0);
                    sample.write(&mut room);
                    sample = Converted::read(&mapping, &room).unwrap();
                }
                all.push((sample.template.index, sample.key, sample.cdr.to_vec()));
            };
            self.converter.samples(&record, take).unwrap();
        }
        all
    }
}
