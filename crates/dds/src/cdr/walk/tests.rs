//! Tests of walks over members without bytes, lists, enumerations and samples of older types.

use std::sync::Arc;

use super::super::tables::WORK;
use super::super::to_json;
use super::*;

#[test]
fn an_integer_is_found_behind_other_members() {
    let entry = StructType::new("E").member("x", Kind::Int8);
    let t = StructType::new("M")
        .member("name", Kind::String(None))
        .member("number", Kind::UInt32)
        .member("signed", Kind::Int16)
        .member("entries", Kind::sequence_of(entry));
    let mut sample = vec![
        0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 7, 0, 0, 0, 0xff, 0xff,
    ];
    assert_eq!(
        integer_member(&t, &sample, 1),
        Some(7),
        "nothing behind it is read"
    );
    assert_eq!(integer_member(&t, &sample, 2), Some(u64::MAX));
    sample.extend([0, 0, 1, 0, 0, 0, 5]);
    for place in [0, 3, 4] {
        assert_eq!(integer_member(&t, &sample, place), None);
    }
    assert_eq!(integer_member(&t, &sample[..12], 1), None);
}

/// A type of another participant with more elements than can be counted.
#[test]
fn arrays_beyond_all_sizes_fit_into_no_sample() {
    let huge = || (0..9).fold(Kind::Int8, |of, _| Kind::Array(Box::new(of), u32::MAX));
    let entry = StructType::new("E").member("a", huge()).member("b", huge());
    let t = StructType::new("M").member("entries", Kind::sequence_of(entry));
    let of = |mut looks| min_size(&Kind::Struct(t.clone().into()), 8, &mut looks);
    assert_eq!((of(usize::MAX), of(5)), (4, 4));
    let little_endian = [0, 1, 0, 0];
    let one = [&little_endian[..], &[1, 0, 0, 0], &[0; 64]].concat();
    let fault = check(&t, &one).unwrap_err();
    assert!(matches!(fault.why, CdrFault::BadLength(1)), "{fault}");
    let none = [&little_endian[..], &[0; 4]].concat();
    assert!(check(&t, &none).is_ok());
}

/// Returns a structure without members.
fn nothing(extensibility: Extensibility) -> StructType {
    let mut t = StructType::new("Nothing");
    t.extensibility = extensibility;
    t
}

/// They are bases of other structures, for example, or cases of unions.
#[test]
fn structures_without_members_are_read() {
    let entry = StructType::new("E")
        .member("head", Kind::Struct(nothing(Extensibility::Final).into()))
        .member("x", Kind::Int8);
    let t = StructType::new("M").member("entries", Kind::sequence_of(entry));
    let json = to_json(&t, &[0, 1, 0, 0, 2, 0, 0, 0, 5, 6]).unwrap();
    let expected = "{\"entries\": [{\"head\": {}, \"x\": 5}, {\"head\": {}, \"x\": 6}]}";
    assert_eq!(json, expected);
    // In version 2 each has a length, in version 1 no bytes would bound their number.
    let all = Kind::sequence_of(nothing(Extensibility::Appendable));
    let t = StructType::new("M").member("all", all);
    let lengths = [12_u32, 2, 0, 0].map(u32::to_le_bytes).concat();
    let json = to_json(&t, &[&[0_u8, 7, 0, 0][..], &lengths].concat()).unwrap();
    assert_eq!(json, "{\"all\": [{}, {}]}");
    let fault = check(&t, &[0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(fault.why, CdrFault::BadLength(2));
}

#[test]
fn elements_without_bytes_are_refused_however_many_are_stated() {
    let one = Box::new(Kind::Struct(nothing(Extensibility::Final).into()));
    let array = Kind::Array(one.clone(), u32::MAX);
    for list in [array, Kind::Sequence(one, None)] {
        let t = StructType::new("T").member("all", list);
        let sample = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let before = WORK.get();
        let fault = check(&t, &sample).unwrap_err();
        assert_eq!(fault.why, CdrFault::BadLength(u32::MAX));
        assert!(WORK.get() - before < 10);
    }
}

/// One byte of each element would otherwise pay for thousands of members.
#[test]
fn members_without_bytes_are_limited_by_the_length_of_the_sample() {
    let part = Kind::Struct(nothing(Extensibility::Final).into());
    let empty = |t: StructType, n: u32| t.member(&format!("m{n}"), part.clone());
    let wide = (0..4_095).fold(StructType::new("Wide"), empty);
    let wide = wide.member("x", Kind::Int8);
    let mut absent = (0..4_096).fold(StructType::new("Absent"), empty);
    absent.extensibility = Extensibility::Mutable;
    for member in &mut absent.members {
        member.optional = true;
    }
    // Version 2 puts lengths in front of the sequence and of each element.
    for (head, element, bytes) in [
        (&[0_u8, 1, 0, 0][..], wide, 1_usize),
        (&[0, 7, 0, 0, 0, 0, 0, 0], absent, 4),
    ] {
        let t = StructType::new("T").member("all", Kind::sequence_of(element));
        let of = |elements: u32| {
            let bytes = vec![0; elements as usize * bytes];
            [head, &elements.to_le_bytes(), &bytes].concat()
        };
        assert_eq!(check(&t, &of(10)), Ok(()));
        let (sample, before) = (of(5_000), WORK.get());
        let fault = check(&t, &sample).unwrap_err();
        assert_eq!(fault.why, CdrFault::TooManyEmpty, "{fault}");
        let most = 2 * EMPTY + EMPTY_FOR_EACH_BYTE * sample.len();
        assert!(WORK.get() - before < most);
    }
}

/// Tables are made once, and no more members are looked at than the bytes could hold.
#[test]
fn the_work_for_each_element_does_not_grow_with_its_type() {
    const ELEMENTS: u32 = 5_000;
    let wide = StructType::new("Wide");
    let wide = (0..4_096).fold(wide, |t, n| t.member(&format!("m{n}"), Kind::Int8));
    let literals = (0..65_536).map(|n| (format!("L{n}"), n)).collect();
    let named = Kind::Enum(Arc::new(EnumType {
        name: "Named".to_owned(),
        bit_bound: 32,
        literals,
    }));
    let lists = StructType::new("Lists").member("none", Kind::sequence_of(wide.clone()));
    let mut absent = wide;
    absent.extensibility = Extensibility::Mutable;
    // The sequences themselves have a length in front in version 2.
    for (head, element, bytes) in [
        (&[0_u8, 1, 0, 0][..], named, [0xff_u8; 4]),
        (&[0, 1, 0, 0], Kind::Struct(Arc::new(lists)), [0; 4]),
        (
            &[0, 7, 0, 0, 0, 0, 0, 0],
            Kind::Struct(Arc::new(absent)),
            [0; 4],
        ),
    ] {
        let t = StructType::new("T").member("all", Kind::Sequence(Box::new(element), None));
        let count = ELEMENTS.to_le_bytes();
        let elements = bytes.repeat(ELEMENTS as usize);
        let before = WORK.get();
        assert_eq!(check(&t, &[head, &count, &elements].concat()), Ok(()));
        let work = WORK.get() - before;
        assert!(work < 65_536 + 3 * ELEMENTS as usize, "{work}");
    }
}

/// As PyPI's `cyclonedds` 11.0.1 writes it.
#[test]
fn lists_of_short_enumerations_and_bitmasks_have_a_length_in_front_in_version_2() {
    let tick = Kind::Enum(Arc::new(EnumType {
        name: "Tick".to_owned(),
        bit_bound: 8,
        literals: vec![("Down".to_owned(), 0), ("Up".to_owned(), 1)],
    }));
    let list = |of: &Kind| Kind::Sequence(Box::new(of.clone()), None);
    let flags = Kind::Bitmask(8);
    let mut t = StructType::new("Short")
        .member("tick", tick.clone())
        .member("ticks", list(&tick))
        .member("flags", flags.clone())
        .member("all", list(&flags))
        .member("pair", Kind::Array(Box::new(Kind::Bitmask(16)), 2))
        .member("last", Kind::UInt64);
    t.extensibility = Extensibility::Appendable;
    let sample = [
        &[0, 9, 0, 0, 44, 0, 0, 0][..],
        &[1, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 1, 0, 1],
        &[2, 6, 0, 0, 0, 2, 0, 0, 0, 1, 3, 0, 0],
        &[4, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
    ];
    let json = to_json(&t, &sample.concat()).unwrap();
    let expected = "{\"tick\": \"Up\", \"ticks\": [\"Up\", \"Down\", \"Up\"], \"flags\": 2, \
                    \"all\": [1, 3], \"pair\": [1, 0], \"last\": 9}";
    assert_eq!(json, expected);
}

#[test]
fn a_short_enumeration_is_named_whether_its_values_have_a_sign_or_not() {
    let side = EnumType {
        name: "Side".to_owned(),
        bit_bound: 8,
        literals: vec![("Low".to_owned(), -2), ("High".to_owned(), 200)],
    };
    let t = StructType::new("T").member("a", Kind::Enum(Arc::new(side)));
    for (byte, expected) in [(254, "\"Low\""), (200, "\"High\""), (255, "-1")] {
        let json = to_json(&t, &[0, 1, 0, 0, byte]).unwrap();
        assert_eq!(json, format!("{{\"a\": {expected}}}"));
    }
}

/// The type has grown since the writer was built.
#[test]
fn elements_of_an_older_writer_may_be_shorter_than_the_type() {
    let mut level = StructType::new("Level")
        .member("a", Kind::Float64)
        .member("b", Kind::Float64)
        .member("c", Kind::Float64);
    level.extensibility = Extensibility::Appendable;
    let t = StructType::new("M").member("levels", Kind::sequence_of(level));
    let lengths = [0, 7, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0];
    let sample = [&lengths[..], &1.5_f64.to_le_bytes(), &2.5_f64.to_le_bytes()].concat();
    let json = to_json(&t, &sample).unwrap();
    assert_eq!(json, "{\"levels\": [{\"a\": 1.5, \"b\": 2.5}]}");
}
