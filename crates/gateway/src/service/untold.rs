//! The items about instruments that sessions are still to be sent.

use super::Core;
use super::bodies::BodyId;
use super::client::Untold;
use super::share::Share;
use fanfare_market::InstrumentId;
use fanfare_market::instruments::Directory;

impl Core {
    /// Takes the next item of a session, encoded unless it refuses a subscription. An item that the
    /// session may no longer have is dropped, and takes a look of the share. Returns `None` if
    /// there are no items, or if the share has nothing left for the rest.
    pub(super) fn next_untold(
        &mut self,
        session: u32,
        directory: &Directory,
        share: &mut Share,
    ) -> Option<(Untold, Option<BodyId>)> {
        loop {
            let untold = self.client_mut(session)?.untold.pop_first()?;
            if let Untold::TooMany(_) | Untold::NoneFound(_) = untold {
                return Some((untold, None));
            }
            if let Some(body) = self.untold(session, untold, directory) {
                return Some((untold, Some(body)));
            }
            share.looks = share.looks.saturating_sub(1);
            if share.looks == 0 {
                return None;
            }
        }
    }

    /// Returns whether items of a session are pending.
    pub(super) fn has_untold(&self, session: u32) -> bool {
        let client = self.client(session);
        client.is_some_and(|client| !client.untold.is_empty())
    }

    /// Encodes an item of a session, unless the session may no longer have it: the instrument may
    /// have been renamed, or its last subscription may have ended.
    pub(super) fn untold(
        &mut self,
        session: u32,
        untold: Untold,
        directory: &Directory,
    ) -> Option<BodyId> {
        let client = self.client(session)?;
        let version = client.version;
        let is_wanted = match untold {
            Untold::State(instrument) | Untold::Status(instrument) => {
                self.has_link(session, instrument)
            }
            _ => true,
        };
        let is_seen = is_wanted && untold.is_seen(&client.grant, directory);
        is_seen.then(|| self.news(untold, version, directory))?
    }

    /// Returns whether a session has a subscription to an instrument.
    pub(super) fn has_link(&self, session: u32, instrument: InstrumentId) -> bool {
        let seen = self.view.get(instrument);
        let classes = seen.into_iter().flat_map(|seen| seen.own.classes.iter());
        let mut links = classes
            .filter_map(|number| self.classes.get(number))
            .flat_map(|class| &class.links);
        links.any(|link| link.session == session && !self.has_ended(link))
    }
}
