//! The schemas that are encoded.

use super::SECOND;
use fanfare_market::dbn::live::LiveSchemas;

/// The time for which a schema is encoded after the last client wanted it, in nanoseconds. One that
/// is wanted again later has to be brought to all books, which delays all clients.
const KEPT: u64 = 10 * SECOND;

/// The schemas that clients want, and those that they wanted until a short time ago.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Those that clients want.
    by_clients: LiveSchemas,
    /// Those that no client wants, with the times at which they are dropped. No schema is in two.
    idle: Vec<(LiveSchemas, u64)>,
}

impl Wanted {
    /// Takes the schemas that clients want from now on. Returns those to encode.
    pub(super) fn set(&mut self, wanted: LiveSchemas, now: u64) -> LiveSchemas {
        let gone = self.by_clients.without(wanted);
        self.by_clients = wanted;
        self.idle.push((gone, now + KEPT));
        self.idle.retain_mut(|(schemas, until)| {
            *schemas = schemas.without(wanted);
            !schemas.is_empty() && now < *until
        });
        let idle = self.idle.iter();
        idle.fold(wanted, |all, (schemas, _)| all.with(*schemas))
    }

    /// Returns the time at which the next schema is dropped.
    pub(super) fn next_timer(&self) -> u64 {
        let times = self.idle.iter().map(|(_, until)| *until);
        times.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::dbn::live::LiveSchema;

    #[test]
    fn a_schema_is_kept_for_a_while_after_its_last_client() {
        let (orders, trades) = (LiveSchema::Mbo.alone(), LiveSchema::Trades.alone());
        let (none, both) = (LiveSchemas::NONE, orders.with(trades));
        let mut wanted = Wanted::default();
        assert_eq!(wanted.set(both, 0), both);
        assert_eq!(wanted.next_timer(), u64::MAX);
        assert_eq!(wanted.set(trades, 1), both);
        assert_eq!(wanted.set(none, 2), both);
        assert_eq!(wanted.next_timer(), KEPT + 1);
        // One that is wanted again is not dropped.
        assert_eq!(wanted.set(orders, 3), both);
        assert_eq!(wanted.next_timer(), KEPT + 2);
        assert_eq!(wanted.set(orders, KEPT + 1), both);
        assert_eq!(wanted.set(orders, KEPT + 2), orders);
        assert_eq!(wanted.next_timer(), u64::MAX);
    }
}
