//! Untrusted bytes: reading them ends with an error or a value, never otherwise.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use fanfare_dds::cdr::{CdrBuffer, CdrFault, CdrReader, CdrType, check, to_json};
use fanfare_dds::cdr_struct;
use fanfare_dds::types::{Case, Extensibility, Kind, Member, StructType, UnionType};
use proptest::prelude::*;

cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    struct Leg: "T::Leg" {
        price: f64,
        name: String,
        ratio: i16,
    }
}

cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    struct Order: "T::Order" {
        #[key] id: u64,
        side: u8,
        open: bool,
        legs: Vec<Leg>,
        account: String,
        raw: Vec<u8>,
    }
}

fn leg() -> impl Strategy<Value = Leg> {
    (any::<i32>(), "[a-z]{0,9}", any::<i16>()).prop_map(|(price, name, ratio)| Leg {
        price: price.into(),
        name,
        ratio,
    })
}

fn order() -> impl Strategy<Value = Order> {
    let legs = prop::collection::vec(leg(), 0..5);
    let raw = prop::collection::vec(any::<u8>(), 0..20);
    let fields = (
        any::<u64>(),
        any::<u8>(),
        any::<bool>(),
        legs,
        "[ -~]{0,12}",
        raw,
    );
    fields.prop_map(|(id, side, open, legs, account, raw)| Order {
        id,
        side,
        open,
        legs,
        account,
        raw,
    })
}

/// Returns a type with one of every kind that the walk knows.
fn everything(extensibility: Extensibility) -> StructType {
    let mut inner = Order::structure().unwrap();
    inner.extensibility = extensibility;
    let mut t = StructType::new("T::All")
        .member("text", Kind::String(Some(5)))
        .member("wide", Kind::WString(Some(4)))
        .member("unit", Kind::WChar)
        .member("orders", Kind::sequence_of(inner.clone()))
        .member("pair", Kind::Array(Box::new(Kind::Int16), 2))
        .member("one", Kind::Struct(Arc::new(inner)))
        .member(
            "names",
            Kind::Sequence(Box::new(Kind::String(None)), Some(4)),
        )
        .member("which", Kind::Union(Arc::new(union_of(extensibility))))
        .member("last", Kind::Float32);
    for member in &mut t.members[5..] {
        member.optional = true;
    }
    t.extensibility = extensibility;
    t
}

/// Returns a union of a string and a number, selected by a byte.
fn union_of(extensibility: Extensibility) -> UnionType {
    let member = |name: &str, kind| StructType::new("").member(name, kind).members.remove(0);
    let case = |labels: &[i32], member: Member| Case {
        labels: labels.to_vec(),
        is_default: labels.is_empty(),
        member,
    };
    UnionType {
        name: "T::Which".to_owned(),
        extensibility,
        discriminator: member("discriminator", Kind::UInt8),
        cases: vec![
            case(&[0, 2], member("text", Kind::String(None))),
            case(&[], member("number", Kind::Int64)),
        ],
    }
}

proptest! {
    #[test]
    fn a_value_written_is_read_as_it_was(value in order()) {
        let mut buffer = CdrBuffer::with_capacity(1 << 12);
        value.write_cdr(&mut buffer);
        let bytes = buffer.finish().unwrap();
        prop_assert_eq!(check(&Order::structure().unwrap(), bytes), Ok(()));
        let mut reader = CdrReader::new(bytes).unwrap();
        prop_assert_eq!(Order::read_cdr(&mut reader).unwrap(), value);
    }

    #[test]
    fn a_cut_or_damaged_sample_is_an_error_or_a_value(
        value in order(), cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let mut buffer = CdrBuffer::with_capacity(1 << 12);
        value.write_cdr(&mut buffer);
        let t = Order::structure().unwrap();
        let mut bytes = buffer.finish().unwrap().to_vec();
        let end = cut.index(bytes.len().saturating_sub(4));
        prop_assert!(check(&t, &bytes[..end]).is_err());
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let _ = to_json(&t, &bytes);
        let _ = CdrReader::new(&bytes).and_then(|mut r| Order::read_cdr(&mut r));
    }

    #[test]
    fn any_bytes_end_the_walk(
        id in prop::sample::select(vec![0_u8, 1, 2, 3, 6, 7, 8, 9, 10, 11, 99]),
        options in any::<u8>(),
        body in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..200),
    ) {
        let mut bytes = vec![0, id, 0, options];
        bytes.extend(body);
        for extensibility in [Extensibility::Final, Extensibility::Appendable] {
            let t = everything(extensibility);
            let walked = check(&t, &bytes);
            prop_assert_eq!(to_json(&t, &bytes).map(|_| ()), walked);
        }
    }
}

#[test]
fn a_length_that_the_bytes_cannot_hold_costs_nothing() {
    let t = StructType::new("T").member("all", Kind::sequence_of(Leg::structure().unwrap()));
    let bytes = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0];
    let error = check(&t, &bytes).unwrap_err().to_string();
    assert_eq!(error, "length 2147483647 at byte 4 is too large");
}

/// Returns a structure of as many members as it may have.
fn wide() -> StructType {
    let wide = StructType::new("T::Wide");
    (0..4_096).fold(wide, |t, n| t.member(&format!("member_{n}"), Kind::Int8))
}

/// Returns a sample of a sequence, as version 2 has it, of `count` elements of four bytes.
fn sequence(count: u32, element: [u8; 4]) -> Vec<u8> {
    let head = [0, 7, 0, 0, 0, 0, 0, 0];
    let elements = element.repeat(count as usize);
    [&head[..], &count.to_le_bytes(), &elements].concat()
}

#[test]
fn elements_without_bytes_are_refused() {
    let mut all = Kind::Struct(Arc::new(StructType::new("T::Nothing")));
    for _ in 0..9 {
        all = Kind::Array(Box::new(all), u32::MAX);
    }
    let t = StructType::new("T")
        .member("n", Kind::UInt8)
        .member("all", all);
    let error = check(&t, &[0, 1, 0, 0, 7]).unwrap_err().to_string();
    assert_eq!(error, "length 4294967295 at byte 5 is too large");
}

/// Each element says that all of its members are absent, and would be printed as 90 KB.
#[test]
fn a_sample_that_would_print_without_end_is_too_long() {
    let mut element = wide();
    element.extensibility = Extensibility::Mutable;
    for member in &mut element.members {
        member.optional = true;
    }
    let t = StructType::new("T").member("all", Kind::sequence_of(element));
    let error = to_json(&t, &sequence(100_000, [0; 4])).unwrap_err();
    assert_eq!(error.why, CdrFault::TooLong);
    assert!(
        error.to_string().starts_with("too long to print"),
        "{error}"
    );
}
