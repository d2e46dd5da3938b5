//! The field index with all kernels, the decoder's short way, and every accessor of the message
//! view.
#![no_main]

use fanfare_fix::codec::{DecodeError, Decoder, FieldSet, FrameFinder, Next};
use fanfare_wire::{DataFields, FieldIndex, Kernel, byte_sum};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut oracle = FieldIndex::with(DataFields::standard(), Kernel::Scalar);
    let expected = oracle.index(bytes);
    assert_eq!(expected.sum, byte_sum(bytes));
    for kernel in Kernel::ALL {
        let mut index = FieldIndex::with(DataFields::standard(), kernel);
        let indexed = index.index(bytes);
        assert_eq!(indexed.sum, expected.sum, "{kernel:?}");
        assert_eq!(indexed.fault, expected.fault, "{kernel:?}");
        let separators = bytes.iter().filter(|&&byte| byte == 1).count();
        assert!(
            indexed.may_hold_data || separators == index.len(),
            "{kernel:?}"
        );
        assert_eq!(index.tags(), oracle.tags(), "{kernel:?}");
        assert_eq!(index.begins(), oracle.begins(), "{kernel:?}");
        assert_eq!(index.ends(), oracle.ends(), "{kernel:?}");
    }
    decoders_agree(bytes);
    let framed = framed(bytes);
    decoders_agree(&framed);
    let mut decoder = Decoder::with(FrameFinder::new(1 << 20), FieldIndex::new());
    if let Ok(message) = decoder.decode(&framed) {
        assert_eq!(message.bytes(), &framed[..]);
        assert_eq!(message.tags().last(), Some(&10));
        read_all(&message, 0);
        assert!(message.body().len() <= framed.len());
        let _ = format!("{message:?}");
    }
});

/// One that tries the vector kernels first and one that has none, and both ways to call them.
fn decoders_agree(bytes: &[u8]) {
    let finder = FrameFinder::new(1 << 20);
    let scalar = FieldIndex::with(DataFields::standard(), Kernel::Scalar);
    let mut oracle = Decoder::with(finder, scalar);
    let mut decoder = Decoder::with(finder, FieldIndex::new());
    let next = oracle.next(bytes);
    assert_eq!(format!("{:?}", decoder.next(bytes)), format!("{next:?}"));
    let whole = match next {
        Next::Message {
            skipped: 0,
            message,
            end,
        } if end == bytes.len() => Ok(message),
        Next::Malformed { error, .. } => Err(error),
        Next::Garbled { why, .. } => Err(DecodeError::Garbled(why)),
        _ => Err(DecodeError::NotOneMessage),
    };
    assert_eq!(format!("{:?}", decoder.decode(bytes)), format!("{whole:?}"));
}

/// `fields` behind a right header and in front of a right trailer.
fn framed(fields: &[u8]) -> Vec<u8> {
    let mut bytes = format!("8=FIX.4.4\x019={}\x0135=D\x01", fields.len() + 5).into_bytes();
    bytes.extend_from_slice(fields);
    let sum = byte_sum(&bytes);
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

fn read_all(fields: &FieldSet<'_>, depth: u32) {
    for field in fields.fields() {
        let tag = field.tag;
        let first = fields.find(tag).expect("a field is found by its own tag");
        assert!(first.offset <= field.offset);
        assert_eq!(fields.get(tag), Some(first.value));
        let _ = (
            fields.u64(tag),
            fields.i64(tag),
            fields.decimal(tag),
            fields.timestamp(tag),
        );
        let _ = (
            fields.bool(tag),
            fields.char(tag),
            fields.str(tag),
            fields.opt_u64(tag),
        );
        let members = [tag, 55, 269, 270];
        for group in [
            fields.group(tag),
            fields.group_with(tag, &(55, &members[..])),
        ] {
            let Ok(group) = group else { continue };
            let count = group.len();
            assert_eq!(group.clone().count(), count);
            if depth < 2 && fields.len() < 50 {
                group.for_each(|entry| read_all(&entry, depth + 1));
            }
        }
    }
}
