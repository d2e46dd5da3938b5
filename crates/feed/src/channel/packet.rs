//! Packets, decoded: their messages and the sequence numbers in them.

use super::config::ChannelConfig;
use crate::numbers::new_numbers;
use fanfare_fast::program::{FieldId, FieldKind, RESET_ID, TemplateProgram};
use fanfare_fast::{Cell, CodecError, Decoder, Fields, Program, Record, Value};

/// The numbers in one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketNumbers {
    /// The first sequence number; `None` if no message has one.
    pub first: Option<u32>,
    /// The count of numbers from the first to the last, both included; 0 if there is none.
    pub count: u32,
    /// The number that comes next, if the packet says so: NewSeqNo(36) of a SequenceReset, which
    /// is the last message of its packet.
    pub next: Option<u32>,
}

impl PacketNumbers {
    fn add(&mut self, number: Option<u32>, next: Option<u32>) {
        self.next = next.or(self.next);
        let Some(number) = number else {
            return;
        };
        let first = *self.first.get_or_insert(number);
        // A number before the first does not belong to the range.
        let span = number.wrapping_sub(first).saturating_add(1);
        if span < 1 << 31 {
            self.count = self.count.max(span);
        }
    }
}

/// The messages of one packet. Filled again, it allocates only where it outgrows all packets
/// before.
#[derive(Debug, Default)]
pub struct Packet {
    messages: Vec<Decoded>,
    used: usize,
    numbers: PacketNumbers,
    error: Option<CodecError>,
    is_decoded: bool,
    /// How long it took to decode, ns.
    decoding: u64,
}

/// One message of a packet.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) record: Record,
    pub(super) number: Option<u64>,
    /// Which of the messages with this number it is, from 0.
    pub(super) index: u32,
}

impl Packet {
    /// A packet without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its sequence numbers.
    #[must_use]
    pub const fn numbers(&self) -> PacketNumbers {
        self.numbers
    }

    /// The count of its messages, as far as it could be decoded.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether it has no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Why it could not be decoded to its end; the offset counts from its first message.
    #[must_use]
    pub const fn error(&self) -> Option<&CodecError> {
        self.error.as_ref()
    }

    pub(super) const fn take_error(&mut self) -> Option<CodecError> {
        self.error.take()
    }

    /// The share of a message in the time that decoding took, ns.
    pub(super) const fn share(&self) -> u64 {
        match self.decoding.checked_div(self.used as u64) {
            Some(share) => share,
            None => 0,
        }
    }

    pub(super) const fn decoding(&self) -> u64 {
        self.decoding
    }

    pub(super) const fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    pub(super) fn message(&mut self, index: usize) -> Option<&mut Decoded> {
        self.messages.get_mut(..self.used)?.get_mut(index)
    }

    pub(super) fn number(&self, index: usize) -> Option<u32> {
        let number = self.messages.get(..self.used)?.get(index)?.number?;
        Some(number as u32)
    }

    /// Forgets the messages; the numbers are these.
    pub(super) fn clear(&mut self, numbers: PacketNumbers) {
        self.used = 0;
        self.error = None;
        self.decoding = 0;
        self.is_decoded = false;
        self.numbers = numbers;
    }

    /// The packet has this number, if there is one, whatever its messages have; they are numbered
    /// by their places in it.
    pub(super) fn number_by(&mut self, number: Option<u32>) {
        let Some(number) = number else {
            return;
        };
        self.numbers.first = Some(number);
        self.numbers.count = 1;
        let messages = self.messages.get_mut(..self.used).unwrap_or_default();
        for (message, index) in messages.iter_mut().zip(0..) {
            message.number = Some(number.into());
            message.index = index;
        }
    }

    fn next(&mut self) -> &mut Decoded {
        if self.used == self.messages.len() {
            self.messages.push(Decoded::default());
        }
        let last = self.messages.len() - 1;
        &mut self.messages[self.used.min(last)]
    }
}

/// Where a packet ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// With its bytes.
    Whole,
    /// In front of the next Reset message (template 120) that follows another message, or with its
    /// bytes: recordings of MOEX have no other framing.
    UpToReset,
    /// Behind its first message: a continuous stream.
    OneMessage,
}

/// Decodes packets, and finds the numbers of their messages.
#[derive(Debug)]
pub(super) struct PacketReader {
    decoder: Decoder,
    /// By template.
    fields: Vec<NumberFields>,
    /// The fields that hold sequence numbers.
    wanted: Vec<FieldId>,
    /// Previous values outlive the packet.
    keep_dictionary: bool,
    stopwatch: Option<fn() -> u64>,
}

/// The fields of a template that number messages.
#[derive(Debug, Clone, Copy, Default)]
struct NumberFields {
    number: Option<FieldId>,
    /// NewSeqNo(36) of a SequenceReset.
    next: Option<FieldId>,
    is_reset: bool,
    /// The number may be that of a message in a dynamic reference.
    is_dynamic: bool,
}

impl PacketReader {
    /// `number` are the fields that hold sequence numbers.
    pub(super) fn new(decoder: Decoder, number: &[FieldId], config: &ChannelConfig) -> Self {
        let program = decoder.program();
        let next = new_numbers(program);
        let of_template = |template: &TemplateProgram| {
            let own = |ids: &[FieldId]| {
                let mut ids = ids.iter().copied();
                ids.find(|id| program.field(*id).template() == template.index())
            };
            let mut kinds = program.template_fields(template).iter();
            NumberFields {
                number: own(number),
                next: own(&next),
                is_reset: template.id() == Some(RESET_ID),
                is_dynamic: kinds.any(|id| program.field(*id).kind() == FieldKind::TemplateRef),
            }
        };
        let fields = program.templates().iter().map(of_template).collect();
        Self {
            decoder,
            fields,
            wanted: number.to_vec(),
            keep_dictionary: config.keep_dictionary,
            stopwatch: config.stopwatch,
        }
    }

    pub(super) fn program(&self) -> &Program {
        self.decoder.program()
    }

    /// Decodes a packet at the front of `bytes`; returns its length.
    pub(super) fn read(&mut self, bytes: &[u8], extent: Extent, packet: &mut Packet) -> usize {
        let Some(stopwatch) = self.stopwatch else {
            return self.messages(bytes, extent, packet);
        };
        let begin = stopwatch();
        let len = self.messages(bytes, extent, packet);
        packet.decoding = stopwatch().saturating_sub(begin);
        len
    }

    fn messages(&mut self, bytes: &[u8], extent: Extent, packet: &mut Packet) -> usize {
        if !self.keep_dictionary {
            self.decoder.reset();
        }
        packet.clear(PacketNumbers::default());
        packet.is_decoded = true;
        let (mut at, mut has_contents) = (0, false);
        let mut last: Option<(u64, u32)> = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let message = packet.next();
            let len = match self.decoder.decode_record(rest, &mut message.record) {
                Ok(len) => len,
                Err(mut error) => {
                    error.offset += at;
                    packet.error = Some(error);
                    // Previous values are in an unknown state.
                    self.decoder.reset();
                    return bytes.len();
                }
            };
            let template = message.record.template_index().unwrap_or_default() as usize;
            let fields = self.fields.get(template).copied().unwrap_or_default();
            if extent == Extent::UpToReset && has_contents && fields.is_reset {
                return at;
            }
            has_contents |= !fields.is_reset;
            let program = self.decoder.program();
            let read = |field: Option<FieldId>| integer(message.record.get(program, field?, 0));
            let (mut number, next) = (read(fields.number), read(fields.next));
            if fields.is_dynamic && number.is_none() {
                let view = message.record.view(program);
                number = view.and_then(|view| nested(view.fields(), &self.wanted));
            }
            message.index = match last {
                Some((same, index)) if Some(same) == number => index + 1,
                _ => 0,
            };
            message.number = number;
            last = number.map(|number| (number, message.index)).or(last);
            packet.used += 1;
            packet
                .numbers
                .add(number.map(|n| n as u32), next.map(|n| n as u32));
            at += len;
            if extent == Extent::OneMessage {
                break;
            }
        }
        at
    }
}

/// The integer in a field.
fn integer(value: Cell<'_>) -> Option<u64> {
    match value {
        Cell::Unsigned(number) => Some(number),
        Cell::Signed(number) => Some(number.cast_unsigned()),
        _ => None,
    }
}

/// The number of a message in a dynamic reference.
fn nested(fields: Fields<'_>, wanted: &[FieldId]) -> Option<u64> {
    let mut fields = fields;
    fields.find_map(|(field, value)| match value {
        Value::Unsigned(number, _) if wanted.contains(&field.id()) => Some(number),
        Value::Signed(number, _) if wanted.contains(&field.id()) => Some(number.cast_unsigned()),
        Value::Group(inner) | Value::Template(_, inner) => nested(inner, wanted),
        _ => None,
    })
}
