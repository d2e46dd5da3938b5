//! Random work and reopenings, against a plain map.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Op {
    Put { len: usize, entry: Entry },
    Record { len: usize },
    NextSender { up: bool, by: u64 },
    NextTarget { seq: u64 },
    Reset,
    Send { count: usize },
    DropUnsent,
    Prepare,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let entry = prop_oneof![
        4 => Just(APP),
        2 => Just(ADMIN),
        1 => Just(Entry::New { kind: Kind::Admin, transmit: false }),
        1 => Just(Entry::New { kind: Kind::App, transmit: false }),
        1 => Just(Entry::Copy),
    ];
    prop_oneof![
        20 => (0..9000usize, entry).prop_map(|(len, entry)| Op::Put { len, entry }),
        3 => (0..9000usize).prop_map(|len| Op::Record { len }),
        2 => (any::<bool>(), 0..9u64).prop_map(|(up, by)| Op::NextSender { up, by }),
        3 => (1..u64::MAX).prop_map(|seq| Op::NextTarget { seq }),
        1 => Just(Op::Reset),
        6 => (0..20_000usize).prop_map(|count| Op::Send { count }),
        1 => Just(Op::DropUnsent),
        3 => Just(Op::Prepare),
        2 => Just(Op::Reopen),
    ]
}

/// What the journal ought to hold.
struct Oracle {
    sender: u64,
    target: u64,
    created: UtcTimestamp,
    kept: BTreeMap<u64, (Kind, Vec<u8>)>,
    unsent: Vec<u8>,
}

impl Oracle {
    fn put(&mut self, text: &[u8], entry: Entry) {
        let transmit = match entry {
            Entry::New { kind, transmit } => {
                if kind == Kind::App || !transmit {
                    self.kept.insert(self.sender, (kind, text.to_vec()));
                }
                self.sender += 1;
                transmit
            }
            Entry::Copy => true,
        };
        if transmit {
            self.unsent.extend_from_slice(text);
        }
    }

    fn compare(&self, journal: &Journal) {
        assert_eq!(journal.next_sender(), self.sender);
        assert_eq!(journal.next_target(), self.target);
        assert_eq!(journal.created(), self.created);
        assert!(self.unsent.starts_with(journal.unsent()));
        assert_eq!(journal.unsent().is_empty(), self.unsent.is_empty());
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
            journal
                .record(&[&text[..len / 3], &text[len / 3..]])
                .unwrap();
            oracle.put(
                &text,
                Entry::New {
                    kind: Kind::App,
                    transmit: false,
                },
            );
        }
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
        // As in a session's rehearsal: something is written, and nothing comes of it.
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
