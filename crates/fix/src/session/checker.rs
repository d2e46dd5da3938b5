//! Dictionary checks of messages that the application sends.

use std::ops::Range;
use std::sync::Arc;

use super::config::Config;
use super::event::SendError;
use super::identity::ApplVerId;
use super::validate::{Context, Fault, RejectReason, Validator};
use crate::codec::{Decoder, Encoder, FrameFinder};

/// A check of each application message between its encoding and the store.
#[derive(Debug)]
pub(super) struct Checker {
    validator: Arc<dyn Validator>,
    decoder: Decoder,
}

impl Checker {
    pub(super) fn new(validator: Arc<dyn Validator>, config: &Config) -> Self {
        // The store decides how long a message may be.
        let finder = FrameFinder::new(usize::MAX);
        Self {
            validator,
            decoder: Decoder::knowing(finder, &config.data_fields),
        }
    }

    /// Finishes a message and checks it. The application version of a message without
    /// ApplVerID(1128) is `version`. The call allocates while its arrays grow to the size of the
    /// messages at hand.
    pub(super) fn finish(
        &mut self,
        encoder: Encoder<'_>,
        version: ApplVerId,
    ) -> Result<Range<usize>, SendError> {
        let (range, bytes) = encoder.finish_with_bytes().map_err(SendError::Encode)?;
        let context = Context {
            default_appl_ver_id: Some(version),
        };
        // Bytes that the application wrote unencoded may not be fields.
        let unreadable = Fault::new(RejectReason::InvalidTagNumber, None);
        let message = self.decoder.decode(bytes).map_err(|_| unreadable);
        let checked = message.and_then(|message| self.validator.check(&message, &context));
        checked.map_err(SendError::Invalid)?;
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::dict::{self, DictionaryValidator, Switches};
    use fanfare_wire::UtcTimestamp;

    fn config(version: Version, dictionary: dict::Version, switches: Switches) -> Config {
        let mut config = Config::new(SessionId::new(version, "US", "THEM"));
        let validator = DictionaryValidator::built_in(dictionary, switches).unwrap();
        config.outgoing_validator = Some(Arc::new(validator));
        config.queue_offline = true;
        config
    }

    fn session(version: Version, dictionary: dict::Version) -> Session<MemoryStore> {
        let config = config(version, dictionary, Switches::default());
        Session::initiator(config, MemoryStore::default())
    }

    const NOW: Now = Now {
        mono: 0,
        utc: UtcTimestamp::from_nanos(1_770_000_000_000_000_000),
    };

    fn send(session: &mut Session<MemoryStore>, kind: &str, body: &str) -> Result<u64, SendError> {
        session.send(NOW, kind.as_bytes(), |out| {
            out.raw(body.replace('|', "\x01").as_bytes());
        })
    }

    #[test]
    fn a_message_that_breaks_the_dictionary_is_not_sent() {
        let mut session = session(Version::Fix44, dict::Version::Fix44);
        let time = "60=20260202-02:40:00";
        for (kind, body, fault) in [
            (
                "D",
                format!("11=1|55=X|{time}|38=1|40=1|"),
                "Required tag missing (54)",
            ),
            (
                "D",
                format!("11=1|55=X|54=x|{time}|38=1|40=1|"),
                "Value is incorrect",
            ),
            (
                "D",
                format!("11=1|55=X|54=1|{time}|38=x|40=1|"),
                "Incorrect data format for value (38)",
            ),
            ("D", format!("11=1|55=X|54=1|{time}|38=1|40=1|35=8|"), "35"),
            ("D", "x=1|".to_owned(), "tag"),
            ("D", "no field|".to_owned(), "Invalid tag number"),
            ("D1", "11=1|".to_owned(), "Invalid MsgType"),
        ] {
            let error = send(&mut session, kind, &body).unwrap_err();
            assert!(matches!(error, SendError::Invalid(_)), "{error}");
            assert!(error.to_string().contains(fault), "{error}");
            assert_eq!(session.store().next_sender(), 1, "no number is used");
        }
        let order = format!("11=1|55=X|54=1|{time}|38=1|40=1|");
        assert_eq!(send(&mut session, "D", &order), Ok(1));
    }

    #[test]
    fn a_message_longer_than_the_reserved_room_is_checked_as_others_are() {
        let mut config = config(Version::Fix44, dict::Version::Fix44, Switches::default());
        config.max_send = 512;
        let mut session = Session::initiator(config, MemoryStore::default());
        let order = "11=1|55=X|54=1|60=20260202-02:40:00|38=1|40=1|58=";
        // The first chunk of the store has twice the room.
        let order = format!("{order}{}|", "x".repeat(600));
        assert_eq!(send(&mut session, "D", &order), Ok(1));
    }

    #[test]
    fn own_data_fields_are_known() {
        let switches = Switches {
            user_defined_fields: false,
            ..Switches::default()
        };
        let mut config = config(Version::Fix44, dict::Version::Fix44, switches);
        let order = "11=1|55=X|54=1|60=20260202-02:40:00|38=1|40=1|5010=3|5011=a|b|";
        let mut plain = Session::initiator(config.clone(), MemoryStore::default());
        assert!(send(&mut plain, "D", order).is_err());
        config.data_fields = vec![(5010, 5011)];
        let mut knowing = Session::initiator(config, MemoryStore::default());
        assert_eq!(send(&mut knowing, "D", order), Ok(1));
    }

    #[test]
    fn over_the_transport_the_own_version_judges() {
        let mut session = session(Version::Fixt11, dict::Version::Fix50Sp2);
        let order = "11=1|55=X|54=1|60=20260202-02:40:00|38=1|40=1|";
        assert_eq!(send(&mut session, "D", order), Ok(1));
        let error = send(&mut session, "D", "11=1|").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the message breaks the dictionary: "),
            "{error}"
        );
    }
}
