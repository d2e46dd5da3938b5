//! Finds the members, cases and literals of a type by their numbers. A type of another participant
//! may have 65,536 of them, and a sample may name one in each of its bytes.

use std::collections::BTreeMap;

use crate::types::{EnumType, StructType, UnionType};

/// The most numbers that are compared one by one; for more of them a table is made.
const FEW: usize = 32;
/// The number of the default case of a union. Labels have 32 bits.
const DEFAULT: i64 = i64::MIN;

/// The tables of one walk, each made when its type is first met. Types are told apart by their
/// addresses, which are constant during a walk.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The numbers of a type in order, each with its place.
    numbers: BTreeMap<usize, Vec<(i64, usize)>>,
    /// The places of the optional members of a structure.
    optional: BTreeMap<usize, Vec<usize>>,
    /// Whether all numbers are compared one by one, however many they are.
    one_by_one: bool,
}

impl Tables {
    /// Makes tables for a walk that does not allocate: it compares all numbers one by one, which is
    /// fast enough for types of this program.
    pub(super) fn one_by_one() -> Self {
        Self {
            one_by_one: true,
            ..Self::default()
        }
    }

    /// Returns the place of the literal with this value; only the bits of `mask` count, always the
    /// same for one type.
    pub(super) fn literal(&mut self, t: &EnumType, value: i32, mask: i32) -> Option<usize> {
        let literals = t.literals.iter().enumerate();
        let all = literals.map(|(place, (_, value))| (i64::from(value & mask), place));
        let number = i64::from(value & mask);
        self.find(address(t), t.literals.len(), number, all)
    }

    /// Returns the place of the member with this identifier.
    pub(super) fn member(&mut self, t: &StructType, id: u32) -> Option<usize> {
        let members = t.members.iter().enumerate();
        let all = members.map(|(place, member)| (i64::from(member.id), place));
        self.find(address(t), t.members.len(), id.into(), all)
    }

    /// Returns the places of all optional members, in order.
    pub(super) fn optional(&mut self, t: &StructType) -> &[usize] {
        self.optional.entry(address(t)).or_insert_with(|| {
            worked(t.members.len());
            let members = t.members.iter().enumerate();
            let optional = members.filter(|(_, member)| member.optional);
            optional.map(|(place, _)| place).collect()
        })
    }

    /// Returns the place of the case that a value of the discriminator selects: the first one with
    /// this label, or else the first default one.
    pub(super) fn case(&mut self, t: &UnionType, label: i64) -> Option<usize> {
        let some = t.cases.iter().take(FEW + 1);
        let count = some.map(|case| case.labels.len() + 1).sum();
        let found = self.find(address(t), count, label, labels(t));
        found.or_else(|| self.find(address(t), count, DEFAULT, labels(t)))
    }

    /// Returns the place of a number, the first of several, among `all` of a type. `count` is their
    /// number, or any above [`FEW`] if they are more.
    fn find(
        &mut self,
        of: usize,
        count: usize,
        number: i64,
        mut all: impl Iterator<Item = (i64, usize)>,
    ) -> Option<usize> {
        if count <= FEW || self.one_by_one {
            let is_it = |(n, _): &(i64, usize)| {
                worked(1);
                *n == number
            };
            return all.find(is_it).map(|(_, place)| place);
        }
        let table = self.numbers.entry(of).or_insert_with(|| {
            let mut table: Vec<_> = all.collect();
            worked(table.len());
            table.sort_by_key(|(n, _)| *n);
            table
        });
        let at = table.partition_point(|(n, _)| *n < number);
        let (found, place) = table.get(at)?;
        (*found == number).then_some(*place)
    }
}

/// Returns the labels of a union, each with the place of its case.
fn labels(t: &UnionType) -> impl Iterator<Item = (i64, usize)> {
    t.cases.iter().enumerate().flat_map(|(place, case)| {
        let labels = case.labels.iter();
        let labels = labels.map(move |label| (i64::from(*label), place));
        labels.chain(case.is_default.then_some((DEFAULT, place)))
    })
}

fn address<T>(t: &T) -> usize {
    std::ptr::from_ref(t).addr()
}

#[cfg(test)]
thread_local! {
    /// The work of this thread so far.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts work for the tests: numbers that are compared one by one or put into a table, and members
/// that are looked at.
#[inline(always)]
pub(super) fn worked(amount: usize) {
    #[cfg(test)]
    WORK.set(WORK.get() + amount);
    #[cfg(not(test))]
    let _ = amount;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Case, Extensibility, Kind, Member};

    fn member(id: u32) -> Member {
        Member {
            name: format!("m{id}"),
            kind: Kind::Byte,
            id,
            key: false,
            optional: id.is_multiple_of(3),
        }
    }

    /// Returns the member that a label selects.
    fn selected(t: &UnionType, label: i64) -> Option<&Member> {
        let has = |case: &&Case| case.labels.iter().any(|l| i64::from(*l) == label);
        let case = t.cases.iter().find(has);
        let case = case.or_else(|| t.cases.iter().find(|case| case.is_default));
        case.map(|case| &case.member)
    }

    #[test]
    fn a_case_is_found_as_one_by_one() {
        let mut random = fastrand::Rng::with_seed(1);
        for count in [0, 1, 5, 31, 33, 400] {
            let mut cases = Vec::new();
            for place in 0..count {
                let labels = (0..random.usize(..4)).map(|_| random.i32(-9..500));
                cases.push(Case {
                    labels: labels.collect(),
                    is_default: place % 17 == 4,
                    member: member(place),
                });
            }
            let t = UnionType {
                name: "U".to_owned(),
                extensibility: Extensibility::Final,
                discriminator: member(0),
                cases,
            };
            for mut tables in [Tables::default(), Tables::one_by_one()] {
                for label in (-20..510).chain([i64::MIN, i64::MAX]) {
                    let found = tables.case(&t, label).map(|place| &t.cases[place].member);
                    assert_eq!(found, selected(&t, label), "{label} of {count}");
                }
            }
        }
    }

    #[test]
    fn literals_and_members_are_found_as_one_by_one() {
        let mut random = fastrand::Rng::with_seed(2);
        for count in [0_usize, 3, 32, 33, 1_000] {
            let values: Vec<i32> = (0..count).map(|_| random.i32(-300..300)).collect();
            let e = EnumType {
                name: "E".to_owned(),
                bit_bound: 8,
                literals: values.iter().map(|v| (format!("l{v}"), *v)).collect(),
            };
            let mut t = StructType::new("S");
            t.members = values.iter().map(|v| member(v.unsigned_abs())).collect();
            let (mut tables, mut none) = (Tables::default(), Tables::one_by_one());
            for value in -310..310 {
                let same = |v: &i32| (v ^ value) & 0xff == 0;
                let expected = values.iter().position(same);
                assert_eq!(tables.literal(&e, value, 0xff), expected);
                assert_eq!(none.literal(&e, value, 0xff), expected);
                let id = i32::unsigned_abs(value);
                let expected = t.members.iter().position(|m| m.id == id);
                assert_eq!(tables.member(&t, id), expected);
                assert_eq!(none.member(&t, id), expected);
            }
            assert!(none.numbers.is_empty());
            let optional = tables.optional(&t).to_vec();
            let expected = |place: &usize| t.members[*place].optional;
            assert_eq!(optional, (0..count).filter(expected).collect::<Vec<_>>());
        }
    }
}
