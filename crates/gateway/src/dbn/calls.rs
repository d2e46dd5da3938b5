//! The ending of sessions by operators.

use super::DbnAgent;
use super::client::Phase;
use crate::users::dbn_seat::DbnEnd;
use fanfare_market::dbn::live::ErrorCode;

impl DbnAgent {
    /// Ends the sessions that operators want to end. Returns their number.
    pub(super) fn answer_calls(&mut self) -> usize {
        let mut ended = 0;
        for token in self.tokens() {
            let Some(client) = self.hub.clients.get_mut(token) else {
                continue;
            };
            let end = client.seat.as_ref().and_then(|seat| seat.seat().take_end());
            match end {
                None => continue,
                Some(DbnEnd::Disconnect) => {
                    client.dismissed = Some("disconnected by an operator");
                    client.wire.mark_broken();
                }
                Some(DbnEnd::LogOut(text)) => {
                    client.dismissed = Some("logged out by an operator");
                    if let Phase::Ready { .. } = client.phase {
                        client.begin(&self.config.dataset, self.times);
                    }
                    client.ends = Some((ErrorCode::Unset, text));
                }
            }
            ended += 1;
        }
        ended
    }
}
