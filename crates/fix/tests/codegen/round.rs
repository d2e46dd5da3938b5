//! What builders write is valid by the dictionary, and readers return the values that were
//! written; and what neither takes.

use fanfare_fix::codec::{
    Decoder, EncodeError, Encoder, FieldErrorKind, FieldWriter, FrameFinder, Message,
};
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_fix::typed::{Decimal, Listed, UtcTimestamp};
use fanfare_wire::{DataFields, FieldIndex, Kernel};
use proptest::prelude::*;
use std::sync::LazyLock;

use super::odd::fix44::{
    self, Conditions, Everything, EverythingFields, EverythingFields2, EverythingFields2Fields,
    Fields, Header2, Header3, Messages, Nests, SubsEntry, TOption, Type,
};
use super::odd::{Cracked, crack, fix50sp2};
use super::{message, odd};

/// An entry of NoSubs(5024).
type Sub = (String, Option<i64>);

#[derive(Debug, Clone)]
struct Values {
    text: String,
    type_: Type,
    fields: Option<String>,
    order_qty: Option<Decimal>,
    at: Option<UtcTimestamp>,
    flag: Option<bool>,
    letter: Option<u8>,
    signed: Option<i64>,
    header: Option<Header3>,
    conditions: Vec<Conditions>,
    data: Vec<u8>,
    /// Things with subs.
    things: Vec<(String, Option<String>, i64, Vec<Sub>)>,
    subs: Vec<Sub>,
}

fn values() -> impl Strategy<Value = Values> {
    let text = "[a-z=|]{1,8}";
    let types = [
        Type::AB,
        Type::AB2,
        Type::TNone,
        Type::Other,
        Type::TSelf,
        Type::T,
    ];
    let conditions = [Conditions::Open, Conditions::Closed, Conditions::HalfOpen];
    let subs = || prop::collection::vec((text, any::<Option<i64>>()), 0..3);
    let thing = (text, prop::option::of(text), any::<i64>(), subs());
    let decimal = (any::<i32>(), -8_i8..3)
        .prop_map(|(mantissa, exponent)| Decimal::new(mantissa.into(), exponent));
    let at = (0_i64..4_000_000_000_000_000_000, 0_u32..3).prop_map(|(nanos, unit)| {
        let unit = 1_000_i64.pow(unit);
        UtcTimestamp::from_nanos(nanos / unit * unit)
    });
    (
        (
            text,
            prop::sample::select(types.to_vec()),
            prop::option::of("ONE|[b-z]{2,5}"),
        ),
        (
            prop::option::of(decimal),
            prop::option::of(at),
            any::<Option<bool>>(),
        ),
        (prop::option::of(b'!'..b'~'), any::<Option<i64>>()),
        prop::option::of(prop::sample::select(vec![Header3::Nothing, Header3::Ten])),
        prop::collection::vec(prop::sample::select(conditions.to_vec()), 0..4),
        (
            prop::collection::vec(any::<u8>(), 1..9),
            prop::collection::vec(thing, 0..4),
            subs(),
        ),
    )
        .prop_map(|(a, b, c, header, conditions, d)| Values {
            text: a.0,
            type_: a.1,
            fields: a.2,
            order_qty: b.0,
            at: b.1,
            flag: b.2,
            letter: c.0,
            signed: c.1,
            header,
            conditions,
            data: d.0,
            things: d.1,
            subs: d.2,
        })
}

fn fields(value: &str) -> Fields<'_> {
    Fields::parse(value.as_bytes()).unwrap()
}

/// Writes all of it, with every method of the builder.
fn write(out: &mut FieldWriter<'_>, values: &Values) {
    let required = EverythingFields {
        text: &values.text,
        type_: values.type_,
        count: values.things.len() as u64,
    };
    let builder = Everything::build(out, required)
        .things(&values.things, |entry, (thing, own, qty, subs)| {
            entry
                .thing(thing)
                .crate_(own.as_deref())
                .part_qty((*qty).into())
                .subs(subs, |entry, (sub, kind)| entry.sub(sub).sub_type(*kind))
                .far_tag("far")
        })
        .more([1, 2], |entry, number: i64| entry.part_qty(number.into()))
        .date("20261125")
        .subs(&values.subs, |entry, (sub, kind)| {
            entry.sub(sub).sub_type(*kind)
        })
        .header2(values.header)
        .fields2(values.fields.as_deref().map(fields))
        .order_qty(values.order_qty)
        .at(values.at)
        .flag(values.flag)
        .letter(values.letter)
        .signed(values.signed)
        .raw_data(&values.data)
        .loose(b"loose")
        .blob(&values.data);
    if !values.conditions.is_empty() {
        builder.conditions(&values.conditions);
    }
}

/// A message of a type with the fields that `write` writes.
fn encode(
    msg_type: &[u8],
    write: impl FnOnce(&mut FieldWriter<'_>),
) -> Result<Vec<u8>, EncodeError> {
    let mut room = vec![0; 4096];
    let mut out = Encoder::new(&mut room, b"FIX.4.4", msg_type);
    out.str(49, "A")
        .str(56, "B")
        .u64(34, 1)
        .str(52, "20261125-10:00:00");
    write(&mut out);
    let range = out.finish()?;
    Ok(room[range].to_vec())
}

/// A decoder that knows the dictionary's own data field.
fn decoder() -> Decoder {
    let data = DataFields::standard().with(5010, 5011);
    Decoder::with(
        FrameFinder::default(),
        FieldIndex::with(data, Kernel::best()),
    )
}

fn check(found: &Everything<'_>, values: &Values) {
    assert_eq!(found.text(), Ok(&*values.text));
    assert_eq!(found.type_(), Ok(values.type_));
    assert_eq!(found.count(), Ok(values.things.len() as u64));
    let required = found.required().unwrap();
    assert_eq!(
        (required.text, required.type_, required.count),
        (&*values.text, values.type_, values.things.len() as u64)
    );
    assert_eq!(found.fields2(), Ok(values.fields.as_deref().map(fields)));
    let qty = found.order_qty().unwrap();
    assert_eq!(
        qty.map(Decimal::normalise),
        values.order_qty.map(Decimal::normalise)
    );
    assert_eq!(found.at(), Ok(values.at));
    assert_eq!(found.flag(), Ok(values.flag));
    assert_eq!(found.letter(), Ok(values.letter));
    assert_eq!(found.signed(), Ok(values.signed));
    assert_eq!(found.date(), Ok(Some("20261125")));
    assert_eq!(found.header2(), Ok(values.header));
    let conditions = found.conditions().unwrap().into_iter().flatten();
    assert_eq!(
        conditions.map(Result::unwrap).collect::<Vec<_>>(),
        values.conditions
    );
    assert_eq!(found.raw_data(), Ok(Some(&*values.data)));
    assert_eq!(found.raw_data_length(), Ok(Some(values.data.len() as u64)));
    assert_eq!(
        (found.blob(), found.loose()),
        (Ok(Some(&*values.data)), Ok(Some(&b"loose"[..])))
    );
    let things = found.things().unwrap();
    assert_eq!(things.len(), values.things.len());
    for (found, (thing, own, qty, subs)) in things.zip(&values.things) {
        assert_eq!(
            (found.thing(), found.crate_()),
            (Ok(&**thing), Ok(own.as_deref()))
        );
        assert_eq!(
            found.part_qty().map(Decimal::normalise),
            Ok(Decimal::from(*qty).normalise())
        );
        assert_eq!(found.far_tag(), Ok(Some("far")));
        assert_eq!(subs_of(found.subs().unwrap()), *subs);
    }
    let more = found.more().unwrap().map(|entry| entry.part_qty().unwrap());
    assert_eq!(more.collect::<Vec<_>>(), [Some(1.into()), Some(2.into())]);
    assert_eq!(subs_of(found.subs().unwrap()), values.subs);
}

static ODD: LazyLock<Dictionary> = LazyLock::new(odd);

proptest! {
    #[test]
    fn what_is_built_is_valid_and_read_back(values in values()) {
        let bytes = encode(Everything::MSG_TYPE, |out| write(out, &values)).unwrap();
        let mut decoder = decoder();
        let received = decoder.decode(&bytes).unwrap();
        prop_assert_eq!(ODD.validate(&received, Switches::default()), Ok(()));
        check(&Everything::read(&received).unwrap(), &values);
    }
}

fn subs_of<'a>(found: impl Iterator<Item = SubsEntry<'a>>) -> Vec<Sub> {
    let sub = |sub: SubsEntry<'a>| {
        let name = sub.sub().unwrap().unwrap();
        (name.to_owned(), sub.sub_type().unwrap())
    };
    found.map(sub).collect()
}

/// Decodes a message that is written with `|`.
fn received<'a>(decoder: &'a mut Decoder, bytes: &'a [u8]) -> Message<'a> {
    decoder.decode(bytes).unwrap()
}

#[test]
fn values_that_the_dictionary_does_not_list_are_told() {
    let bytes = message(
        "FIX.4.4",
        "35=U1|58=a|5001=9|5008=010|5009=A X AB|5003=NEW|",
    );
    let mut decoder = decoder();
    let received = received(&mut decoder, &bytes);
    let found = Everything::read(&received).unwrap();
    let error = found.type_().unwrap_err();
    assert_eq!(
        error.to_string(),
        "tag 5001 has a value that is not in its list (at offset 26)"
    );
    assert_eq!(found.required().unwrap_err(), error);
    assert_eq!(found.fields().char(5001), Ok(b'9'));
    assert_eq!(found.header2().unwrap_err().kind, FieldErrorKind::Unlisted);
    assert_eq!(found.fields2(), Ok(Some(Fields::Other("NEW"))));
    let conditions: Vec<_> = found.conditions().unwrap().unwrap().collect();
    assert_eq!(conditions[0], Ok(Conditions::Open));
    assert_eq!(conditions[1].unwrap_err().kind, FieldErrorKind::Unlisted);
    assert_eq!(conditions[2], Ok(Conditions::HalfOpen));
    assert_eq!(found.count().unwrap_err().kind, FieldErrorKind::Missing);
    assert_eq!(found.things().unwrap().len(), 0);
    assert_eq!(found.blob(), Ok(None));
}

#[test]
fn headers_have_groups() {
    let bytes = message("FIX.4.4", "35=U`3|627=2|628=X|628=Y|630=7|5030=a|");
    let mut decoder = decoder();
    let received = received(&mut decoder, &bytes);
    let found = TOption::read(&received).unwrap();
    let hops = found.header().hops().unwrap();
    let hops: Vec<_> = hops
        .map(|hop| (hop.hop_comp_id().unwrap(), hop.hop_ref_id()))
        .collect();
    assert_eq!(hops, [(Some("X"), Ok(None)), (Some("Y"), Ok(Some(7)))]);
    assert_eq!(found.fields().get(628), None);
    assert_eq!(found.field_1st_b_x(), Ok(Some("a")));
    assert!(Header2::read(&received).is_none());
}

#[test]
fn a_length_that_is_required_requires_its_data() {
    let fields = EverythingFields2Fields {
        encoded_text: b"\x01",
    };
    let bytes = encode(EverythingFields2::MSG_TYPE, |out| {
        EverythingFields2::build(out, fields)
            .subs([1, 2], |entry, kind| entry.sub("S").sub_type(kind));
    });
    let bytes = bytes.unwrap();
    let mut decoder = decoder();
    let found = received(&mut decoder, &bytes);
    let found = EverythingFields2::read(&found).unwrap();
    assert_eq!(found.required().unwrap().encoded_text, b"\x01");
    let text = String::from_utf8(bytes.clone())
        .unwrap()
        .replace('\x01', "|");
    assert!(
        text.contains("354=1|355=||5024=2|5025=S|5026=1|5025=S|5026=2|"),
        "{text}"
    );
}

/// An entry begins with the group that is its delimiter, also if that has no entries: without it
/// the entry would be a part of the one in front.
#[test]
fn a_group_that_is_a_delimiter_is_written_without_entries() {
    let bytes = encode(Nests::MSG_TYPE, |out| {
        Nests::build(out).nests([1, 0, 0], |entry, subs| {
            let entry = entry.subs(vec![(); subs], |entry, ()| entry.sub("S"));
            entry.thing("T")
        });
    });
    let bytes = bytes.unwrap();
    let text = String::from_utf8_lossy(&bytes).replace('\x01', "|");
    let nests = "5028=3|5024=1|5025=S|5021=T|5024=0|5021=T|5024=0|5021=T|";
    assert!(text.contains(nests), "{text}");
    let mut decoder = decoder();
    let found = Nests::read(&received(&mut decoder, &bytes)).unwrap();
    let subs = found
        .nests()
        .unwrap()
        .map(|nest| nest.subs().unwrap().len());
    assert_eq!(subs.collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn faults_of_builders_are_those_of_the_message() {
    let fields = EverythingFields {
        text: "a",
        type_: Type::T,
        count: 0,
    };
    let fault = |write: &dyn Fn(fix44::EverythingBuilder<'_, '_>)| {
        let result = encode(Everything::MSG_TYPE, |out| {
            write(
                Everything::build(out, fields)
                    .things([(); 0], |_, ()| unreachable!())
                    .more([(); 0], |_, ()| unreachable!()),
            );
        });
        result.unwrap_err()
    };
    let in_group = encode(Everything::MSG_TYPE, |out| {
        Everything::build(out, fields)
            .things([(); 0], |_, ()| unreachable!())
            .more([()], |entry, ()| entry.part_qty(Decimal::from(1)))
            .subs([()], |entry, ()| entry.sub("read as one of the entry's"));
    });
    assert_eq!(in_group, Err(EncodeError::InGroup { tag: 5024 }));
    let twice = fault(&|builder| {
        builder.flag(true).flag(None).flag(true);
    });
    assert_eq!(twice, EncodeError::Twice { tag: 5004 });
    let order = fault(&|builder| {
        let builder = builder.flag(true);
        builder.subs([()], |entry, ()| entry.sub("a").sub_type(1).sub_type(2));
    });
    assert_eq!(order, EncodeError::Order { tag: 5026 });
    let separator = fault(&|builder| {
        builder.loose(b"a\x01b");
    });
    assert_eq!(separator, EncodeError::Separator { tag: 5012 });
    let empty = fault(&|builder| {
        builder.conditions(&[]);
    });
    assert_eq!(empty, EncodeError::Empty { tag: 5009 });
    let data = fault(&|builder| {
        builder.blob(b"");
    });
    assert_eq!(data, EncodeError::Empty { tag: 5011 });
    let missing = encode(Everything::MSG_TYPE, |out| {
        _ = Everything::build(out, fields).things([(); 0], |_, ()| unreachable!());
    });
    assert_eq!(missing, Err(EncodeError::GroupMissing { tag: 5027 }));
}

#[test]
fn groups_that_are_left_out_are_not_written() {
    let build = |subs: &[()]| {
        encode(Header2::MSG_TYPE, |out| {
            Header2::build(out)
                .things([()], |entry, ()| entry.thing("a"))
                .subs(subs, |entry, ()| entry.sub("s"))
                .thing("b");
        })
    };
    assert_eq!(build(&[]), Err(EncodeError::InGroup { tag: 5021 }));
    let bytes = build(&[()]).unwrap();
    let mut decoder = decoder();
    let found = Header2::read(&received(&mut decoder, &bytes)).unwrap();
    assert_eq!(found.thing(), Ok(Some("b")));

    let fields = EverythingFields {
        text: "a",
        type_: Type::T,
        count: 0,
    };
    let bytes = encode(Everything::MSG_TYPE, |out| {
        Everything::build(out, fields)
            .things([(); 0], |_, ()| unreachable!())
            .more([()], |entry, ()| entry.part_qty(Decimal::from(1)))
            .subs([(); 0], |_, ()| unreachable!());
    });
    let text = String::from_utf8(bytes.unwrap()).unwrap();
    let text = text.replace('\x01', "|");
    assert!(text.contains("|5020=0|5027=1|5023=1|10="), "{text}");
}

#[test]
fn messages_are_cracked_by_version_and_type() {
    let mut decoder = decoder();
    let mut name = |begin_string: &str, fields: &str, default: Option<Version>| {
        let bytes = message(begin_string, fields);
        match crack(&received(&mut decoder, &bytes), default)? {
            Cracked::Fix44(Messages::Everything(_)) => Some("everything"),
            Cracked::Fix44(_) => Some("another"),
            Cracked::Fix50Sp2(fix50sp2::Messages::Order(order)) => {
                assert_eq!(order.side(), Ok(fix50sp2::Side::Sell));
                Some("order")
            }
        }
    };
    let sp2 = Some(Version::Fix50Sp2);
    assert_eq!(name("FIX.4.4", "35=U1|", sp2), Some("everything"));
    assert_eq!(name("FIX.4.4", "35=U2|", None), Some("another"));
    assert_eq!(
        name("FIX.4.4", "35=D|", None),
        None,
        "FIX.4.4 has no such message here"
    );
    assert_eq!(name("FIXT.1.1", "35=D|1128=9|54=2|", None), Some("order"));
    assert_eq!(name("FIXT.1.1", "35=D|54=2|", sp2), Some("order"));
    assert_eq!(name("FIXT.1.1", "35=D|54=2|", None), None, "no version");
    assert_eq!(
        name("FIXT.1.1", "35=D|1128=7|54=2|", sp2),
        None,
        "FIX.5.0 is another version"
    );
    assert_eq!(
        name("FIXT.1.1", "35=A|", sp2),
        None,
        "a message of the session"
    );
    assert_eq!(name("FIX.9.9", "35=U1|", sp2), None, "an unknown version");
}
