//! The feed's own numbers of its messages.

use fanfare_fast::{MessageView, Program, Value};
use fanfare_feed::SequenceField;

/// Reads the number of each message, and counts messages of one number in a packet.
#[derive(Debug)]
pub(super) struct Numbers {
    /// By template: which field of the top level it is.
    places: Vec<Option<usize>>,
    /// Of the message before in this packet.
    last: Option<(u64, u32)>,
}

impl Numbers {
    pub(super) fn new(program: &Program) -> Self {
        let wanted = SequenceField::Auto.find(program);
        let place = |template| {
            let fields = program.template_fields(template);
            fields.iter().position(|field| wanted.contains(field))
        };
        Self {
            places: program.templates().iter().map(place).collect(),
            last: None,
        }
    }

    /// Another packet begins.
    pub(super) fn begin(&mut self) {
        self.last = None;
    }

    /// The number of the next message, and its index among those with this number; `None` if it
    /// has none.
    pub(super) fn of(&mut self, message: &MessageView<'_>) -> Option<(u64, u32)> {
        let template = message.template().index() as usize;
        let place = self.places.get(template).copied().flatten()?;
        let number = match message.fields().nth(place)?.1 {
            Value::Unsigned(number, _) => number,
            Value::Signed(number, _) => number.cast_unsigned(),
            _ => return None,
        };
        let index = match self.last {
            Some((last, index)) if last == number => index + 1,
            _ => 0,
        };
        self.last = Some((number, index));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fast::{Decoder, Message};
    use std::sync::Arc;

    #[test]
    fn messages_of_one_number_are_counted_in_their_packet() {
        let program = "<templates><template name=\"A\" id=\"1\"><uInt32 name=\"X\"/>\
                       <uInt32 name=\"MsgSeqNum\" id=\"34\"/></template>\
                       <template name=\"B\" id=\"2\"><uInt32 name=\"X\"/></template></templates>";
        let program = Arc::new(Program::parse(program).unwrap());
        let (mut numbers, mut message) = (Numbers::new(&program), Message::new());
        let mut decoder = Decoder::new(Arc::clone(&program));
        let mut of = |bytes: &[u8]| {
            decoder.decode(bytes, &mut message).unwrap();
            numbers.of(&message.view(&program).unwrap())
        };
        let a = |number: u8| [0xc0, 0x81, 0x85, 0x80 | number];
        assert_eq!(of(&a(7)), Some((7, 0)));
        assert_eq!(of(&a(7)), Some((7, 1)));
        assert_eq!(of(&[0xc0, 0x82, 0x85]), None);
        assert_eq!(of(&a(7)), Some((7, 2)));
        assert_eq!(of(&a(8)), Some((8, 0)));
        numbers.begin();
        assert_eq!(numbers.of(&message.view(&program).unwrap()), Some((8, 0)));
    }
}
