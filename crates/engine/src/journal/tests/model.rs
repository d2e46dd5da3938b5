//! Random operations and reopenings, compared with a plain map.

use super::*;
use fanfare_fix::session::OurReset;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Op {
    Put {
        len: usize,
        entry: Entry,
    },
    Record {
        len: usize,
    },
    /// Sends a kept message again, with `cut` bytes at either end replaced.
    Again {
        nth: usize,
        cut: usize,
    },
    OldCopy {
        len: usize,
    },
    NextSender {
        up: bool,
        by: u64,
    },
    NextTarget {
        seq: u64,
    },
    Reset,
    OurReset(OurReset),
    Send {
        count: usize,
    },
    DropUnsent,
    Prepare,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let entry = prop_oneof![
        4 => Just(APP),
        2 => Just(ADMIN),
        1 => Just(Entry { kind: Kind::Admin, transmit: false }),
        1 => Just(Entry { kind: Kind::App, transmit: false }),
    ];
    let our_reset = prop_oneof![
        Just(OurReset::None),
        Just(OurReset::Asked),
        Just(OurReset::Begun),
    ];
    prop_oneof![
        20 => (0..9000usize, entry).prop_map(|(len, entry)| Op::Put { len, entry }),
        3 => (0..9000usize).prop_map(|len| Op::Record { len }),
        4 => (any::<usize>(), 0..60usize).prop_map(|(nth, cut)| Op::Again { nth, cut }),
        2 => (0..300usize).prop_map(|len| Op::OldCopy { len }),
        2 => (any::<bool>(), 0..9u64).prop_map(|(up, by)| Op::NextSender { up, by }),
        3 => (1..u64::MAX).prop_map(|seq| Op::NextTarget { seq }),
        1 => Just(Op::Reset),
        1 => our_reset.prop_map(Op::OurReset),
        6 => (0..20_000usize).prop_map(|count| Op::Send { count }),
        1 => Just(Op::DropUnsent),
        3 => Just(Op::Prepare),
        2 => Just(Op::Reopen),
    ]
}

/// The expected contents of the journal.
struct Oracle {
    sender: u64,
    target: u64,
    our_reset: OurReset,
    created: UtcTimestamp,
    kept: BTreeMap<u64, (Kind, Vec<u8>)>,
    unsent: Vec<u8>,
}

impl Oracle {
    fn put(&mut self, text: &[u8], entry: Entry) {
        let Entry { kind, transmit } = entry;
        if kind == Kind::App || !transmit {
            self.kept.insert(self.sender, (kind, text.to_vec()));
        }
        self.sender += 1;
        if transmit {
            self.unsent.extend_from_slice(text);
        }
    }

    /// Transmits a kept message again, whose place the journal has to find.
    fn again(&mut self, journal: &mut Journal, nth: usize, cut: usize) {
        let Some(nth) = nth.checked_rem(self.kept.len()) else {
            let again = Again {
                head: b"",
                kept: Some((self.sender, 0..0)),
                tail: b"",
            };
            let refused = journal.transmit_again(&again);
            return assert_eq!(refused, Err(StoreError::NotKept));
        };
        let (seq, (_, text)) = self.kept.iter().nth(nth).unwrap();
        let cut = cut.min(text.len() / 2);
        let ends = vec![b'e'; cut];
        let again = Again {
            head: &ends,
            kept: Some((*seq, cut..text.len() - cut)),
            tail: &ends,
        };
        let before = (journal.current.count, journal.current.data_end);
        match journal.transmit_again(&again) {
            Ok(()) => {
                let message = [&ends, &text[cut..text.len() - cut], &ends].concat();
                self.unsent.extend_from_slice(&message);
            }
            Err(StoreError::Full) => assert!(self.unsent.len() > 32 << 10, "there is room"),
            Err(other) => panic!("{other}"),
        }
        let after = (journal.current.count, journal.current.data_end);
        assert_eq!(before, after, "nothing is written");
    }

    fn compare(&self, journal: &Journal) {
        assert_eq!(journal.next_sender(), self.sender);
        assert_eq!(journal.next_target(), self.target);
        assert_eq!(journal.our_reset(), self.our_reset);
        assert_eq!(journal.created(), self.created);
        assert!(self.unsent.starts_with(journal.unsent()));
        assert_eq!(journal.unsent().is_empty(), self.unsent.is_empty());
        assert_eq!(journal.unsent_len(), self.unsent.len());
        let expected: Vec<_> = self
            .kept
            .iter()
            .map(|(seq, (_, b))| (*seq, b.clone()))
            .collect();
        assert_eq!(kept(journal), expected);
        for (seq, (kind, _)) in &self.kept {
            assert_eq!(
                journal.first_from(*seq).map(|stored| stored.kind),
                Some(*kind)
            );
        }
    }
}

fn body(seed: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (seed as usize * 131 + i * 7) as u8)
        .collect()
}

fn step(journal: &mut Journal, oracle: &mut Oracle, op: &Op, n: u64) {
    match *op {
        Op::Put { len, entry } => {
            let text = body(n, len);
            put(journal, &text, entry).unwrap();
            oracle.put(&text, entry);
        }
        Op::Record { len } => {
            let text = body(n, len);
            journal.record(&text).unwrap();
            oracle.put(
                &text,
                Entry {
                    kind: Kind::App,
                    transmit: false,
                },
            );
        }
        Op::Again { nth, cut } => oracle.again(journal, nth, cut),
        Op::OldCopy { len } => old_copy(journal, &body(n, len)),
        Op::NextSender { up, by } => {
            let seq = if up {
                oracle.sender + by
            } else {
                oracle.sender.saturating_sub(by).max(1)
            };
            journal.set_next_sender(seq).unwrap();
            oracle.sender = seq;
            oracle.kept.split_off(&seq);
        }
        Op::NextTarget { seq } => {
            journal.set_next_target(seq).unwrap();
            oracle.target = seq;
        }
        Op::Reset => {
            oracle.created = UtcTimestamp::from_nanos(NOW.nanos() + n as i64);
            journal.reset(oracle.created).unwrap();
            (oracle.sender, oracle.target) = (1, 1);
            oracle.kept.clear();
        }
        Op::OurReset(reset) => {
            journal.set_our_reset(reset).unwrap();
            oracle.our_reset = reset;
        }
        Op::Send { count } => {
            let count = count.min(journal.unsent().len());
            assert_eq!(journal.unsent()[..count], oracle.unsent[..count]);
            journal.sent(count);
            oracle.unsent.drain(..count);
        }
        Op::DropUnsent => {
            journal.drop_unsent();
            oracle.unsent.clear();
        }
        // As in a session's rehearsal: a message is written, and discarded.
        Op::Prepare => {
            journal.reserve(300).unwrap()[..300].fill(b'x');
            journal.prepare();
        }
        Op::Reopen => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn equals_a_map_across_reopenings(ops in prop::collection::vec(op(), 0..120)) {
        let folder = Folder::new();
        let mut journal = folder.open(small());
        let mut oracle = Oracle {
            sender: 1,
            target: 1,
            our_reset: OurReset::None,
            created: NOW,
            kept: BTreeMap::new(),
            unsent: Vec::new(),
        };
        for (n, op) in (1u64..).zip(&ops) {
            step(&mut journal, &mut oracle, op, n);
            if matches!(op, Op::Reopen) {
                drop(journal);
                journal = folder.open(small());
                oracle.unsent.clear();
            }
            oracle.compare(&journal);
        }
    }
}
