//! The validation pass against the oracle, over random messages of all versions.

use std::sync::Arc;

use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Dictionary, Switches, Version};
use proptest::prelude::*;

use super::generate::{Fields, Random, spoil, valid};
use super::{oracle, whole};

pub(crate) fn dictionary(version: Version) -> Arc<Dictionary> {
    let own = Dictionary::built_in(version);
    if own.schema().header.is_empty() {
        let transport = Dictionary::built_in(Version::Fixt11);
        return Arc::new(own.over(&transport).unwrap());
    }
    own
}

pub(crate) fn bytes(fields: &Fields) -> Vec<u8> {
    let body: String = fields
        .iter()
        .map(|(tag, value)| format!("{tag}={value}\x01"))
        .collect();
    whole("FIX.4.4", body.as_bytes())
}

fn switches(random: &mut Random) -> Switches {
    let mut switches = Switches::default();
    if random.below(3) == 0 {
        switches.fields_out_of_order = random.below(2) == 0;
        switches.fields_have_values = random.below(2) == 0;
        switches.user_defined_fields = random.below(2) == 0;
        switches.allow_unknown_fields = random.below(2) == 0;
        switches.unordered_group_fields = random.below(2) == 0;
    }
    switches
}

/// Compares pass and oracle on one message; whether the message was valid. Random changes may
/// break a data field, so that there is no message: then nothing is compared.
fn compare(dictionary: &Dictionary, fields: &Fields, switches: Switches) -> Option<bool> {
    let bytes = bytes(fields);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).ok()?;
    let found = dictionary.validate(&message, switches).err();
    let found = found.map(|violation| (violation.reason, violation.tag));
    let expected = oracle::check(dictionary.schema(), &message, switches);
    let text = String::from_utf8_lossy(&bytes).replace('\x01', "|");
    assert_eq!(found, expected, "{} {text}", dictionary.version());
    Some(found.is_none())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pass_and_oracle_agree(seed in any::<u64>(), version in 0..Version::ALL.len()) {
        let dictionary = dictionary(Version::ALL[version]);
        let mut random = Random(fastrand::Rng::with_seed(seed));
        for _ in 0..12 {
            let mut fields = valid(dictionary.schema(), &mut random);
            prop_assert_eq!(compare(&dictionary, &fields, Switches::default()), Some(true));
            let switches = switches(&mut random);
            for _ in 0..4 {
                spoil(dictionary.schema(), &mut random, &mut fields);
                compare(&dictionary, &fields, switches);
            }
        }
    }
}
