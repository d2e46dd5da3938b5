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
    #[inline]
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

/// The messages of one packet. One with more than four keeps its numbers alone, unless
/// dictionaries outlive packets, and is decoded again when it is delivered. Filled again, it
/// allocates only where it outgrows all packets before.
#[derive(Debug, Default)]
pub struct Packet {
    messages: Vec<Decoded>,
    used: usize,
    numbers: PacketNumbers,
    error: Option<CodecError>,
    is_decoded: bool,
    /// How far it is decoded, bytes.
    at: usize,
    has_contents: bool,
    /// The number of the last message that has one, and its index.
    last: Option<(u64, u32)>,
    /// Each message takes the place of the one before.
    is_streamed: bool,
    /// How long it took to decode, ns, and how long the last message did.
    decoding: u64,
    last_decoding: u64,
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

    /// The count of its messages, as far as it could be decoded and they are kept.
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
        if self.is_streamed {
            return self.last_decoding;
        }
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

    #[inline]
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
        self.is_streamed = false;
        self.numbers = numbers;
        (self.at, self.has_contents, self.last) = (0, false, None);
    }

    /// The numbers are known before the messages are decoded.
    pub(super) const fn expect(&mut self, numbers: PacketNumbers) {
        self.numbers = numbers;
    }

    /// From here on each message takes the place of the first one.
    pub(super) const fn stream(&mut self) {
        self.is_streamed = true;
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

    /// The place of the next message.
    #[inline]
    fn place(&mut self) -> &mut Decoded {
        let place = if self.is_streamed { 0 } else { self.used };
        if place >= self.messages.len() {
            self.messages.push(Decoded::default());
        }
        let last = self.messages.len() - 1;
        &mut self.messages[place.min(last)]
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

/// Messages of a packet that are kept decoded while it waits, or before it is known that it is in
/// turn. More of them would be cold memory: decoding them again, each in the place of the one
/// before, takes a third of the time.
const MOST_KEPT: usize = 4;

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
        self.begin(packet);
        while self.advance(bytes, extent, packet) {
            if extent == Extent::OneMessage {
                break;
            }
            self.limit(packet);
        }
        self.finish(packet);
        match packet.error {
            Some(_) => bytes.len(),
            None => packet.at,
        }
    }

    /// Of a packet with more messages than are kept, the numbers alone are read on.
    #[inline]
    pub(super) const fn limit(&self, packet: &mut Packet) {
        if packet.used >= MOST_KEPT && !self.keep_dictionary {
            packet.stream();
        }
    }

    /// All is decoded; messages that were not kept are to be decoded again.
    pub(super) fn finish(&self, packet: &mut Packet) {
        if packet.is_streamed {
            let (error, at) = (packet.error, packet.at);
            packet.clear(packet.numbers);
            (packet.error, packet.at) = (error, at);
        }
    }

    /// A packet begins, of which nothing is decoded.
    pub(super) fn begin(&mut self, packet: &mut Packet) {
        if !self.keep_dictionary {
            self.decoder.reset();
        }
        packet.clear(PacketNumbers::default());
        packet.is_decoded = true;
    }

    /// Decodes the next message of the packet at the front of `bytes`; false at its end.
    #[inline]
    pub(super) fn advance(&mut self, bytes: &[u8], extent: Extent, packet: &mut Packet) -> bool {
        let rest = bytes.get(packet.at..).filter(|rest| !rest.is_empty());
        let Some(rest) = rest.filter(|_| packet.error.is_none()) else {
            return false;
        };
        let Some(stopwatch) = self.stopwatch else {
            return self.message(rest, extent, packet);
        };
        let begin = stopwatch();
        let goes_on = self.message(rest, extent, packet);
        packet.last_decoding = stopwatch().saturating_sub(begin);
        packet.decoding += packet.last_decoding;
        goes_on
    }

    fn message(&mut self, rest: &[u8], extent: Extent, packet: &mut Packet) -> bool {
        let message = packet.place();
        let len = match self.decoder.decode_record(rest, &mut message.record) {
            Ok(len) => len,
            Err(mut error) => {
                error.offset += packet.at;
                packet.error = Some(error);
                // Previous values are in an unknown state.
                self.decoder.reset();
                return false;
            }
        };
        let template = message.record.template_index().unwrap_or_default() as usize;
        const NONE: NumberFields = NumberFields {
            number: None,
            next: None,
            is_reset: false,
            is_dynamic: false,
        };
        let fields = self.fields.get(template).unwrap_or(&NONE);
        let program = self.decoder.program();
        let read = |field: Option<FieldId>| integer(message.record.get(program, field?, 0));
        let (mut number, next) = (read(fields.number), read(fields.next));
        if fields.is_dynamic && number.is_none() {
            let view = message.record.view(program);
            number = view.and_then(|view| nested(view.fields(), &self.wanted));
        }
        if extent == Extent::UpToReset && packet.has_contents && fields.is_reset {
            return false;
        }
        packet.took(len, fields.is_reset, (number, next));
        true
    }
}

impl Packet {
    /// A message was decoded into its place.
    #[inline]
    fn took(&mut self, len: usize, is_reset: bool, (number, next): (Option<u64>, Option<u64>)) {
        self.has_contents |= !is_reset;
        let index = match self.last {
            Some((same, index)) if Some(same) == number => index + 1,
            _ => 0,
        };
        let place = self.place();
        (place.number, place.index) = (number, index);
        if let Some(number) = number {
            self.last = Some((number, index));
        }
        self.used = match self.is_streamed {
            true => 1,
            false => self.used + 1,
        };
        self.numbers
            .add(number.map(|n| n as u32), next.map(|n| n as u32));
        self.at += len;
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
