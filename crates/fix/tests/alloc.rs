//! Decoding and encoding do not allocate once their arrays have grown: counted, in a binary of its
//! own, as the allocator counts for the whole process.

#![allow(clippy::unwrap_used)]

use fanfare_counting::allocations;
use fanfare_fix::codec::{
    Decoder, Encoder, Next, SendingTime, SessionHeader, SharedBody, SharedFrame,
};
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_wire::{DataFields, Decimal, FieldIndex, Kernel, Precision, UtcTimestamp};

include!("../messages/fix44.generated");

fn order(buf: &mut [u8], seq: u64) -> &[u8] {
    let time = UtcTimestamp::from_nanos(1_795_178_096_123_456_789 + seq as i64);
    let mut encoder = Encoder::new(buf, b"FIX.4.4", b"D");
    encoder.str(49, "BUYSIDE").str(56, "SELLSIDE").u64(34, seq);
    encoder
        .timestamp(52, time, Precision::Millis)
        .str(11, "ORDER1")
        .char(54, b'1');
    encoder
        .decimal(44, Decimal::new(123_456, -5))
        .data(95, 96, b"a\x01b=c")
        .bool(43, true);
    encoder.u64(453, 1).str(448, "A").i64(6, -7);
    let range = encoder.finish().unwrap();
    &buf[range]
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(7)))), 1);
}

#[test]
fn encoding_and_decoding_do_not_allocate() {
    let mut buf = [0; 512];
    for kernel in Kernel::ALL {
        let mut decoder = Decoder::with(
            Default::default(),
            FieldIndex::with(DataFields::standard(), kernel),
        );
        let work = || {
            for seq in 0..1000 {
                let bytes = order(&mut buf, seq);
                let Next::Message { message, .. } = decoder.next(bytes) else {
                    panic!("not decoded");
                };
                assert_eq!(message.u64(34), Ok(seq));
                assert_eq!(message.get(96), Some(&b"a\x01b=c"[..]));
                assert_eq!(message.group(453).unwrap().len(), 1);
                assert!(message.timestamp(52).is_ok() && message.decimal(44).is_ok());
            }
        };
        assert_eq!(allocations(work), 0, "{kernel:?}");
    }
}

/// An order that a generated builder writes, of an account with two parties.
fn typed_order(buf: &mut [u8], seq: i64) -> &[u8] {
    use fix44::{NewOrderSingle, NewOrderSingleFields, OrdType, PartyRole, Side};

    let fields = NewOrderSingleFields {
        cl_ord_id: "ORDER1",
        symbol: "EUR/USD",
        side: Side::Sell,
        transact_time: UtcTimestamp::from_nanos(1_795_178_096_123_456_789 + seq),
        ord_type: OrdType::Limit,
    };
    let parties = [
        ("A", PartyRole::ExecutingFirm),
        ("B", PartyRole::ClearingFirm),
    ];
    let mut encoder = Encoder::new(buf, b"FIX.4.4", NewOrderSingle::MSG_TYPE);
    encoder.str(49, "BUYSIDE").str(56, "SELLSIDE").i64(34, seq);
    NewOrderSingle::build(&mut encoder, fields)
        .price(Decimal::new(123_456, -5))
        .encoded_text(b"a\x01b=c")
        .party_ids(parties, |entry, (id, role)| {
            entry
                .party_id(id)
                .party_role(role)
                .party_sub_ids(["X"], |sub, id| sub.party_sub_id(id))
        });
    let range = encoder.finish().unwrap();
    &buf[range]
}

#[test]
fn typed_messages_do_not_allocate() {
    let mut buf = [0; 512];
    let mut decoder = Decoder::new();
    let mut work = || {
        for seq in 0..1000 {
            let bytes = typed_order(&mut buf, seq);
            let Next::Message { message, .. } = decoder.next(bytes) else {
                panic!("not decoded");
            };
            let Some(fix44::Messages::NewOrderSingle(order)) = fix44::crack(&message) else {
                panic!("not cracked");
            };
            assert_eq!(order.header().msg_seq_num(), Ok(seq as u64));
            assert_eq!(order.side(), Ok(fix44::Side::Sell));
            assert_eq!(order.encoded_text(), Ok(Some(&b"a\x01b=c"[..])));
            assert!(order.price().is_ok() && order.allocs().unwrap().len() == 0);
            for party in order.party_ids().unwrap() {
                assert!(party.party_role().unwrap().is_some());
                let sub = party.party_sub_ids().unwrap().next().unwrap();
                assert_eq!(sub.party_sub_id(), Ok(Some("X")));
            }
        }
    };
    work();
    assert_eq!(allocations(work), 0);
}

#[test]
fn patching_a_shared_body_does_not_allocate() {
    let fields = b"55=EURUSD\x01268=0\x01";
    let header = SessionHeader::new(b"FIX.4.4", b"PLANT", b"ANN").unwrap();
    let mut frame = SharedFrame::new(4096);
    let mut out = [0; 512];
    let work = || {
        for seq in 0..1000 {
            let body = SharedBody::new(b"W", fields).unwrap();
            let nanos = seq as i64 * 1_000_000_007;
            let time = SendingTime::new(UtcTimestamp::from_nanos(nanos), Precision::Millis);
            frame.load(&body).unwrap();
            assert!(frame.patch(&header, seq, &time).ends_with(b"\x01"));
            assert!(header.write(&mut out, seq, &time, &body).is_ok());
        }
    };
    assert_eq!(allocations(work), 0);
}

#[test]
fn validation_does_not_allocate() {
    let mut buf = [0; 512];
    let mut valid = Encoder::new(&mut buf, b"FIX.4.4", b"D");
    let time = UtcTimestamp::from_nanos(1_795_178_096_123_456_789);
    valid.str(49, "A").str(56, "B").u64(34, 1);
    valid
        .timestamp(52, time, Precision::Millis)
        .str(11, "1")
        .str(55, "X");
    valid.u64(453, 1).str(448, "P").char(447, b'D').u64(452, 1);
    valid.char(54, b'1').u64(38, 100).char(40, b'1');
    valid.timestamp(60, time, Precision::Millis);
    let valid = valid.finish().unwrap();
    let mut other = [0; 512];
    let invalid = order(&mut other, 1);

    let dictionary = Dictionary::built_in(Version::Fix44);
    let mut decoder = Decoder::new();
    let mut work = || {
        let message = decoder.decode(&buf[valid.clone()]).unwrap();
        assert_eq!(dictionary.validate(&message, Switches::default()), Ok(()));
        let message = message.with_groups(&*dictionary);
        assert_eq!((message.get(448), message.u64(38)), (None, Ok(100)));
        assert_eq!(
            message.group(453).unwrap().next().unwrap().char(447),
            Ok(b'D')
        );
        let message = decoder.decode(invalid).unwrap();
        assert!(dictionary.validate(&message, Switches::default()).is_err());
    };
    work();
    assert_eq!(allocations(work), 0);
}
