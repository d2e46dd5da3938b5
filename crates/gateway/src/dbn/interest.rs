//! The subscriptions, by client and by instrument.

use crate::users::grant::Grant;
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{LiveSchema, LiveSchemas, Tag};
use fanfare_market::event::entry;
use std::collections::HashMap;

/// The records that one client wants.
#[derive(Default)]
pub(super) struct Interest {
    /// The schemas of all instruments, including future ones.
    pub(super) all: LiveSchemas,
    /// The schemas of all instruments that the user may see. These are also in `some`, one by one.
    pub(super) permitted: LiveSchemas,
    /// The schemas of single instruments.
    pub(super) some: HashMap<u32, LiveSchemas>,
    /// The schemas of single instruments that subscriptions to all instruments leave out.
    left_out: HashMap<u32, LiveSchemas>,
    /// All schemas that the client requested.
    pub(super) any: LiveSchemas,
}

impl Interest {
    /// Returns whether a record is wanted.
    pub(super) fn takes(&self, tag: &Tag) -> bool {
        if tag.instrument == InstrumentId::ALL {
            return self.any.meets(tag.schemas);
        }
        if self.all.meets(tag.schemas) {
            return true;
        }
        let own = self.some.get(&tag.instrument.0);
        own.is_some_and(|own| own.meets(tag.schemas))
    }

    /// Returns the schemas of which records of an instrument are sent.
    pub(super) fn of(&self, instrument: InstrumentId) -> LiveSchemas {
        let own = self.some.get(&instrument.0).copied();
        self.all.with(own.unwrap_or_default())
    }

    /// Leaves an instrument out of subscriptions to all instruments.
    pub(super) fn leave_out(&mut self, instrument: u32, schemas: LiveSchemas) {
        let own = self.left_out.entry(instrument).or_default();
        *own = own.with(schemas);
    }

    /// Includes an instrument in subscriptions to all instruments again.
    pub(super) fn include(&mut self, instrument: u32, schemas: LiveSchemas) {
        let Some(own) = self.left_out.get_mut(&instrument) else {
            return;
        };
        *own = own.without(schemas);
        if own.is_empty() {
            self.left_out.remove(&instrument);
        }
    }

    /// Includes every instrument in subscriptions to all instruments again.
    pub(super) fn include_all(&mut self, schemas: LiveSchemas) {
        self.left_out.retain(|_, own| {
            *own = own.without(schemas);
            !own.is_empty()
        });
    }

    /// Returns the schemas with which subscriptions to all instruments leave this one out.
    pub(super) fn left_out(&self, instrument: InstrumentId) -> LiveSchemas {
        let own = self.left_out.get(&instrument.0);
        own.copied().unwrap_or_default()
    }

    /// Returns whether subscriptions to all instruments with this schema leave any out.
    pub(super) fn leaves_out(&self, schema: LiveSchema) -> bool {
        self.left_out.values().any(|own| own.has(schema))
    }

    /// Recomputes `any` from the other fields.
    pub(super) fn sum_up(&mut self) {
        let some = self.some.values();
        self.any = some.fold(self.all.with(self.permitted), |any, own| any.with(*own));
    }
}

/// One client of an instrument.
#[derive(Clone, Copy)]
pub(super) struct Want {
    pub(super) client: Token,
    pub(super) schemas: LiveSchemas,
}

/// The clients of each instrument, by the plant's number.
#[derive(Default)]
pub(super) struct Wants(Vec<Vec<Want>>);

impl Wants {
    /// Returns the clients of an instrument.
    pub(super) fn of(&self, instrument: InstrumentId) -> &[Want] {
        let own = self.0.get(instrument.0 as usize);
        own.map_or(&[], Vec::as_slice)
    }

    /// Sets the schemas that a client wants of an instrument. An empty set removes the client.
    pub(super) fn set(&mut self, instrument: u32, client: Token, schemas: LiveSchemas) {
        let place = instrument as usize;
        if place >= self.0.len() {
            if schemas.is_empty() {
                return;
            }
            self.0.resize_with(place + 1, Vec::new);
        }
        let Some(own) = self.0.get_mut(place) else {
            return;
        };
        let found = own.iter().position(|want| want.client == client);
        match (found, schemas.is_empty()) {
            (Some(at), true) => _ = own.swap_remove(at),
            (Some(at), false) => own[at].schemas = schemas,
            (None, true) => {}
            (None, false) => own.push(Want { client, schemas }),
        }
    }
}

/// Checks that a user may have a schema as a whole, because the market data entries in its records
/// are not filtered one by one.
///
/// # Errors
/// Returns the entitlement that the user lacks.
pub(super) fn permits(grant: &Grant, schema: LiveSchema) -> Result<(), String> {
    use LiveSchema as S;
    let (entries, depth): (&[u8], u16) = match schema {
        S::Mbo => (&[entry::BID, entry::OFFER, entry::TRADE], u16::MAX),
        S::Mbp10 => (&[entry::BID, entry::OFFER, entry::TRADE], 10),
        S::Mbp1 | S::Tbbo | S::Bbo1S | S::Bbo1M => (&[entry::BID, entry::OFFER, entry::TRADE], 1),
        S::Trades | S::Ohlcv1S | S::Ohlcv1M | S::Ohlcv1H | S::Ohlcv1D => (&[entry::TRADE], 0),
        S::Definition | S::Status | S::Statistics => (&[], 0),
    };
    if let Some(entry) = entries.iter().find(|entry| !grant.entries.has(**entry)) {
        let entry = char::from(*entry);
        return Err(format!("no permission for entries of type {entry}"));
    }
    if grant.depth != 0 && depth > grant.depth {
        return Err(format!(
            "no permission for more than {} levels",
            grant.depth
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::EntryTypes;

    #[test]
    fn a_schema_needs_the_right_to_all_that_it_shows() {
        let all = Grant::everything();
        assert!(
            LiveSchema::ALL
                .iter()
                .all(|schema| permits(&all, *schema).is_ok())
        );
        let trades = Grant {
            entries: EntryTypes::NONE.with(b'2'),
            ..Grant::everything()
        };
        permits(&trades, LiveSchema::Trades).unwrap();
        permits(&trades, LiveSchema::Ohlcv1D).unwrap();
        assert!(
            permits(&trades, LiveSchema::Tbbo)
                .unwrap_err()
                .contains("type 0")
        );
        let shallow = Grant {
            depth: 5,
            ..Grant::everything()
        };
        permits(&shallow, LiveSchema::Mbp1).unwrap();
        assert!(
            permits(&shallow, LiveSchema::Mbp10)
                .unwrap_err()
                .contains("5 levels")
        );
        assert!(permits(&shallow, LiveSchema::Mbo).is_err());
    }

    #[test]
    fn an_instrument_is_left_out_until_it_is_included_again() {
        let trades = LiveSchema::Trades.alone();
        let mut interest = Interest::default();
        let ways: [fn(&mut Interest, LiveSchemas); 2] =
            [Interest::include_all, |interest, schemas| {
                interest.include(3, schemas);
            }];
        for again in ways {
            interest.leave_out(3, trades);
            interest.include(4, trades);
            again(&mut interest, LiveSchema::Mbo.alone());
            assert_eq!(interest.left_out(InstrumentId(3)), trades);
            assert!(interest.left_out(InstrumentId(4)).is_empty());
            assert!(interest.leaves_out(LiveSchema::Trades));
            again(&mut interest, trades);
            assert!(!interest.leaves_out(LiveSchema::Trades));
        }
    }

    #[test]
    fn clients_of_an_instrument_come_and_go() {
        let mut wants = Wants::default();
        let of = |wants: &Wants| {
            let all = wants.of(InstrumentId(3)).iter();
            all.map(|want| want.client.0).collect::<Vec<_>>()
        };
        wants.set(3, Token(1), LiveSchema::Mbo.alone());
        wants.set(3, Token(2), LiveSchema::Mbo.alone());
        wants.set(3, Token(1), LiveSchema::Trades.alone());
        assert_eq!(of(&wants), [1, 2]);
        assert_eq!(
            wants.of(InstrumentId(3))[0].schemas,
            LiveSchema::Trades.alone()
        );
        wants.set(3, Token(1), LiveSchemas::NONE);
        wants.set(9, Token(1), LiveSchemas::NONE);
        assert_eq!(of(&wants), [2]);
        assert!(wants.of(InstrumentId(9)).is_empty());
    }
}
