//! Tests of messages that follow a SequenceReset in its packet.

use super::*;

/// Not among the templates of all tests: channels read every packet before its turn if a message
/// may announce the next number.
const TEMPLATE: &str = r#"<template name="SequenceReset" id="6"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="NewSeqNo" id="36"/></template>"#;

const MESSAGE: &str = r#"
[[message]]
template = 6
does = "sequence-reset"
number = 34
next = 36
"#;

#[test]
fn books_have_the_messages_behind_a_sequence_reset_in_its_packet() {
    let mut feed = Feed::with(
        (TEMPLATE, MESSAGE),
        2,
        Preamble::None,
        Numbering::Instrument,
    );
    let packets = [
        message(9, &[bid(0, FIRST, 1, 50)]),
        [
            fields(6, 10, &[1]),
            message(1, &[bid(0, FIRST, 1, 60)]),
            message(2, &[bid(0, FIRST, 2, 61)]),
        ]
        .concat(),
        message(3, &[bid(0, FIRST, 3, 62)]),
    ];
    for bytes in &packets {
        feed.bring(Line::A, bytes);
        feed.bring(Line::B, bytes);
    }
    assert_eq!(feed.bids(FIRST), [62, 61, 60]);
    assert!(feed.is_live(FIRST));
    let stats = feed.follower.stats();
    assert_eq!((stats.resets, stats.repeated), (1, 0));
    assert!(feed.missing().is_empty());
}
