//! Lookups by tag in messages whose groups are known, against an obvious walk over the schema.

use std::collections::BTreeSet;

use fanfare_fix::codec::{Decoder, FieldErrorKind, FieldSet, Group};
use fanfare_fix::dict::Version;
use proptest::prelude::*;

use super::generate::{Random, valid};
use super::message;
use super::oracle::{Line, unfold};
use super::random::{bytes, dictionary};

/// The fields of one level by position, and the entries behind those that count a group.
#[derive(Debug)]
struct Level {
    own: Vec<(u32, usize)>,
    groups: Vec<(u32, Vec<Self>)>,
}

fn all_tags(lines: &[Line], tags: &mut BTreeSet<u32>) {
    for line in lines {
        tags.insert(line.tag);
        all_tags(line.group.as_deref().unwrap_or_default(), tags);
    }
}

/// Reads the fields from `at` to `end` as one level.
fn level(lines: &[Line], tags: &[u32], mut at: usize, end: usize) -> Level {
    let mut level = Level {
        own: Vec::new(),
        groups: Vec::new(),
    };
    while at < end {
        let tag = tags[at];
        level.own.push((tag, at));
        at += 1;
        let line = lines.iter().find(|line| line.tag == tag);
        let Some(members) = line.and_then(|line| line.group.as_ref()) else {
            continue;
        };
        let mut inside = BTreeSet::new();
        all_tags(members, &mut inside);
        let len = tags[at..end]
            .iter()
            .take_while(|tag| inside.contains(tag))
            .count();
        let mut starts: Vec<usize> = (at..at + len)
            .filter(|at| tags[*at] == members[0].tag)
            .collect();
        starts.push(at + len);
        let entries = starts
            .windows(2)
            .map(|pair| self::level(members, tags, pair[0], pair[1]));
        level.groups.push((tag, entries.collect()));
        at += len;
    }
    level
}

/// Compares all lookups in `set`, whose first field is field `base` of the message.
fn compare(set: FieldSet<'_>, expected: &Level, base: usize, pool: &BTreeSet<u32>) {
    for tag in pool {
        let found = set.position(*tag).map(|position| position + base);
        let first = expected.own.iter().find(|(own, _)| own == tag);
        assert_eq!(found, first.map(|(_, at)| *at), "{tag} in {set:?}");
    }
    let mut seen = BTreeSet::new();
    for (count_tag, entries) in &expected.groups {
        if !seen.insert(*count_tag) {
            continue;
        }
        let count = set.u64(*count_tag).unwrap();
        match set.group(*count_tag) {
            Ok(group) => {
                assert_eq!(group.len() as u64, count);
                compare_entries(group, entries, pool);
            }
            Err(error) => {
                assert_eq!(error.kind, FieldErrorKind::GroupCount);
                assert_ne!(entries.len() as u64, count, "{count_tag} in {set:?}");
            }
        }
    }
}

fn compare_entries(group: Group<'_>, expected: &[Level], pool: &BTreeSet<u32>) {
    assert_eq!(group.len(), expected.len());
    for (entry, expected) in group.zip(expected) {
        compare(entry, expected, expected.own[0].1, pool);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lookups_see_their_own_level_alone(seed in any::<u64>(), version in 0..Version::ALL.len()) {
        let dictionary = dictionary(Version::ALL[version]);
        let schema = dictionary.schema();
        let mut random = Random(fastrand::Rng::with_seed(seed));
        for _ in 0..12 {
            let fields = valid(schema, &mut random);
            let bytes = bytes(&fields);
            let mut decoder = Decoder::new();
            let message = decoder.decode(&bytes).unwrap().with_groups(&*dictionary);
            let mut lines = unfold(schema, &schema.header, true);
            lines.extend(unfold(schema, &schema.messages[&fields[0].1].items, true));
            let tags = message.tags();
            let mut pool: BTreeSet<u32> = tags.iter().copied().collect();
            pool.extend([54, 58, 448, 5001]);
            compare(*message, &level(&lines, tags, 0, tags.len()), 0, &pool);
        }
    }
}

#[test]
fn an_absent_field_is_not_answered_by_an_entry() {
    let bytes = message(
        "FIX.4.4",
        "35=E|66=L|394=0|68=1|73=1|11=A|67=1|55=X|54=1|78=1|79=Y|80=5|",
    );
    let mut decoder = Decoder::new();
    let plain = decoder.decode(&bytes).unwrap();
    assert_eq!(plain.char(54), Ok(b'1'));
    let dictionary = dictionary(Version::Fix44);
    let list = plain.with_groups(&*dictionary);
    assert_eq!(list.opt_char(54), Ok(None));
    assert_eq!(list.str(66), Ok("L"));
    let order = list.group(73).unwrap().next().unwrap();
    assert_eq!((order.char(54), order.opt_str(80)), (Ok(b'1'), Ok(None)));
    let allocation = order.group(78).unwrap().next().unwrap();
    assert_eq!((allocation.str(79), allocation.u64(80)), (Ok("Y"), Ok(5)));
    // The message of another dictionary is as it was.
    let unknown = message("FIX.4.4", "35=U9|73=1|11=A|54=1|");
    let unknown = decoder.decode(&unknown).unwrap().with_groups(&*dictionary);
    assert_eq!(unknown.char(54), Ok(b'1'));
}

/// A count that is wrong, and a group in front of the fields that are asked for.
#[test]
fn broken_groups_do_not_hide_what_stands_behind_them() {
    let dictionary = dictionary(Version::Fix44);
    for count in ["0", "3", "x"] {
        let fields = format!("35=D|453={count}|448=A|447=D|452=1|11=7|54=1|");
        let bytes = message("FIX.4.4", &fields);
        let mut decoder = Decoder::new();
        let order = decoder.decode(&bytes).unwrap().with_groups(&*dictionary);
        assert_eq!(
            (order.str(11), order.opt_str(448)),
            (Ok("7"), Ok(None)),
            "{count}"
        );
        assert!(order.group(453).is_err());
    }
}
