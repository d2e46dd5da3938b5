//! A decoded FAST message as the body of a FIX message.

use fanfare_fast::MessageView;
use fanfare_fast::fix::{SohError, write_body};
use fanfare_fix::codec::tags;
use fanfare_wire::int;
use std::ops::Range;

/// The fields of one message after another, in room that is kept.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// As the template has them.
    all: Vec<u8>,
    /// Without those of header and trailer, which each recipient's session writes itself.
    body: Vec<u8>,
    msg_type: Range<usize>,
    key: Range<usize>,
}

/// ApplVerID(1128) stands in the header of FIXT.1.1 messages, and in none of FIX.4.4.
const APPL_VER_ID: u32 = 1128;

/// Fields that make a key, the better one first: Symbol and SecurityID.
const KEYS: [u32; 2] = [55, 48];

impl Body {
    /// Takes a message over.
    ///
    /// # Errors
    /// A value holds the separator of FIX fields.
    pub(crate) fn load(&mut self, message: MessageView<'_>) -> Result<(), SohError> {
        self.all.clear();
        self.body.clear();
        self.msg_type = 0..0;
        self.key = 0..0;
        write_body(message, &mut self.all)?;
        let mut keys = [None, None];
        let mut at = 0;
        // No value holds the separator, or `write_body` would have failed.
        for field in self.all.split_inclusive(|b| *b == 1) {
            let end = at + field.len();
            let split = field.iter().position(|b| *b == b'=').unwrap_or(0);
            let tag = int::parse_u64(field.get(..split).unwrap_or(&[]));
            let tag = tag.and_then(|tag| u32::try_from(tag).ok());
            let value = at + split + 1..end - 1;
            at = end;
            match tag {
                Some(tags::MSG_TYPE) if self.msg_type.is_empty() => self.msg_type = value,
                Some(APPL_VER_ID) => {}
                Some(tag) if tags::is_header(tag) || tags::is_trailer(tag) => {}
                Some(tag) => {
                    if let Some(place) = KEYS.iter().position(|key| *key == tag) {
                        keys[place].get_or_insert(value);
                    }
                    self.body.extend_from_slice(field);
                }
                None => {}
            }
        }
        let [symbol, security] = keys;
        // The templates of some exchanges have a Symbol that says that there is none.
        let symbol = symbol.filter(|s| self.all.get(s.clone()) != Some(b"[N/A]"));
        self.key = symbol.or(security).unwrap_or(0..0);
        Ok(())
    }

    /// MsgType(35), if the template has one.
    pub(crate) fn msg_type(&self) -> Option<&[u8]> {
        self.all
            .get(self.msg_type.clone())
            .filter(|t| !t.is_empty())
    }

    /// The fields.
    pub(crate) fn fields(&self) -> &[u8] {
        &self.body
    }

    /// Symbol(55), or SecurityID(48), or nothing.
    pub(crate) fn key(&self) -> &[u8] {
        self.all.get(self.key.clone()).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
    use fanfare_fast::{Decoder, Message, Program};
    use std::sync::Arc;

    /// Type, key and fields of the first messages of a feed, `|` for SOH.
    fn bodies(program: Program, mut feed: Generator, count: usize) -> Vec<[String; 3]> {
        let mut decoder = Decoder::new(Arc::new(program));
        let (mut message, mut body) = (Message::new(), Body::default());
        let mut out = Vec::new();
        while let Some(packet) = feed.next_packet().unwrap() {
            decoder.reset();
            let mut rest = packet;
            while !rest.is_empty() {
                rest = &rest[decoder.decode(rest, &mut message).unwrap()..];
                body.load(message.view(decoder.program()).unwrap()).unwrap();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\x01', "|");
                let msg_type = body.msg_type().unwrap_or(b"");
                out.push([text(msg_type), text(body.key()), text(body.fields())]);
            }
        }
        out.truncate(count);
        out
    }

    #[test]
    fn header_fields_are_left_to_the_session() {
        let feed = Generator::complex(Program::complex(), 2, None, ComplexOptions::default());
        let [request, data] = bodies(Program::complex(), feed, 2).try_into().unwrap();
        assert_eq!((request[0].as_str(), request[1].as_str()), ("R", "0"));
        assert_eq!(
            request[2],
            "146=1|55=[N/A]|38=1|54=1|60=58781|537=1|48=0|22=9|"
        );
        assert_eq!((data[0].as_str(), data[1].as_str()), ("X", "1"));
        assert!(data[2].starts_with("75=20100209|268=2|279=1|"), "{data:?}");
    }

    #[test]
    fn a_template_without_a_type_gives_its_fields() {
        let feed = Generator::simple(Program::simple(), 1, PACKET_SIZE);
        let [quote] = bodies(Program::simple(), feed, 1).try_into().unwrap();
        assert_eq!((quote[0].as_str(), quote[1].as_str()), ("", ""));
        assert!(quote[2].starts_with("100=11|200=1|"), "{quote:?}");
    }
}
