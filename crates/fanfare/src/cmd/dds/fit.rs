//! Whether the policies of a topic's writers and readers match.

use fanfare_dds::discovery::{Endpoint, EndpointKind};
use fanfare_dds::{Durability, Ownership, Policy};
use std::collections::BTreeSet;

/// The most different sets of policies of a topic's writers, and of its readers, that are compared.
const MOST: usize = 256;

/// The announced policies of the writers and readers of a topic, each set of them once.
#[derive(Debug, Default)]
pub(super) struct Policies {
    writers: BTreeSet<Offer>,
    readers: BTreeSet<Offer>,
}

/// What a writer offers, or a reader requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    reliable: bool,
    transient_local: bool,
    exclusive: bool,
    partitions: Vec<String>,
}

impl Policies {
    pub(super) fn add(&mut self, endpoint: &Endpoint) {
        let offers = match endpoint.kind {
            EndpointKind::Writer => &mut self.writers,
            EndpointKind::Reader => &mut self.readers,
        };
        if offers.len() < MOST {
            offers.insert(Offer {
                reliable: endpoint.reliable,
                transient_local: endpoint.durability == Durability::TransientLocal,
                exclusive: matches!(endpoint.ownership, Ownership::Exclusive(_)),
                partitions: endpoint.partitions.clone(),
            });
        }
    }

    /// Returns the policies in which a writer and a reader in a common partition do not match.
    pub(super) fn misfits(&self) -> Vec<Policy> {
        let mut misfits = [
            (Policy::Reliability, false),
            (Policy::Durability, false),
            (Policy::Ownership, false),
        ];
        for writer in &self.writers {
            for reader in self.readers.iter().filter(|reader| writer.meets(reader)) {
                let fits = [
                    writer.reliable || !reader.reliable,
                    writer.transient_local || !reader.transient_local,
                    writer.exclusive == reader.exclusive,
                ];
                for ((_, is_misfit), fits) in misfits.iter_mut().zip(fits) {
                    *is_misfit |= !fits;
                }
            }
        }
        let misfits = misfits.into_iter().filter(|(_, is_misfit)| *is_misfit);
        misfits.map(|(policy, _)| policy).collect()
    }
}

impl Offer {
    /// Returns whether both have a partition in common.
    fn meets(&self, other: &Self) -> bool {
        let default = [String::new()];
        let of = |offer: &Self| match offer.partitions.is_empty() {
            true => default.to_vec(),
            false => offer.partitions.clone(),
        };
        let (own, others) = (of(self), of(other));
        own.iter().any(|one| {
            let mut others = others.iter();
            others.any(|two| is_like(one.as_bytes(), two.as_bytes()))
        })
    }
}

/// Returns whether the names of two partitions match: they are equal, or one is a pattern with `*`
/// and `?` that the other, which is none, matches.
fn is_like(one: &[u8], two: &[u8]) -> bool {
    let is_pattern = |name: &[u8]| name.contains(&b'*') || name.contains(&b'?');
    match (is_pattern(one), is_pattern(two)) {
        (false, false) => one == two,
        (true, false) => matches(one, two),
        (false, true) => matches(two, one),
        (true, true) => false,
    }
}

/// Returns whether a name matches a pattern. Takes at most the product of their lengths.
fn matches(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // The rest behind the last `*`, and the name from the byte behind those that it stands for.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern, name) {
            ([b'*', rest @ ..], _) => {
                pattern = rest;
                star = name.split_first().map(|(_, behind)| (rest, behind));
            }
            ([], []) => return true,
            ([wanted, rest @ ..], [byte, behind @ ..]) if *wanted == b'?' || wanted == byte => {
                (pattern, name) = (rest, behind);
            }
            _ => match star {
                Some((rest, from)) => {
                    (pattern, name) = (rest, from);
                    star = from.split_first().map(|(_, behind)| (rest, behind));
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(reliable: bool, transient_local: bool, partition: &str) -> Offer {
        Offer {
            reliable,
            transient_local,
            exclusive: false,
            partitions: vec![partition.to_owned()],
        }
    }

    fn misfits(writer: &Offer, reader: &Offer) -> Vec<Policy> {
        let policies = Policies {
            writers: BTreeSet::from([writer.clone(), offer(true, true, "other")]),
            readers: BTreeSet::from([reader.clone()]),
        };
        policies.misfits()
    }

    #[test]
    fn a_reader_may_request_less_than_its_writer_offers_and_not_more() {
        let (least, most) = (offer(false, false, ""), offer(true, true, ""));
        assert_eq!(misfits(&most, &least), []);
        assert_eq!(misfits(&least, &least), []);
        let (reliability, durability) = (Policy::Reliability, Policy::Durability);
        assert_eq!(misfits(&least, &most), [reliability, durability]);
        assert_eq!(misfits(&offer(true, false, ""), &most), [durability]);
        let exclusive = Offer {
            exclusive: true,
            ..least.clone()
        };
        for (writer, reader) in [(&least, &exclusive), (&exclusive, &least)] {
            assert_eq!(misfits(writer, reader), [Policy::Ownership]);
        }
    }

    #[test]
    fn those_in_different_partitions_do_not_meet() {
        let reader = Offer {
            partitions: Vec::new(),
            ..offer(true, false, "")
        };
        for (partition, meets) in [("", true), ("paris", false), ("*", true)] {
            let writer = offer(false, false, partition);
            assert_eq!(!misfits(&writer, &reader).is_empty(), meets, "{partition}");
        }
    }

    #[test]
    fn partitions_match_by_patterns_of_one_side() {
        for (one, two, wanted) in [
            ("paris", "paris", true),
            ("paris", "pari", false),
            ("p*s", "paris", true),
            ("*", "", true),
            ("**", "x", true),
            ("p?ris", "paris", true),
            ("p?ris", "pris", false),
            ("*is", "paris-is", true),
            ("*is", "paris-", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("?", "", false),
            ("p*", "p*", false),
        ] {
            for (one, two) in [(one, two), (two, one)] {
                assert_eq!(
                    is_like(one.as_bytes(), two.as_bytes()),
                    wanted,
                    "{one} {two}"
                );
            }
        }
    }
}
