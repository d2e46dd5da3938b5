//! Packets, decoded: their messages and the sequence numbers in them.

use super::config::{ChannelConfig, Fault, Loss, Stopwatch};
use crate::arbiter::Refusal;
use crate::line::REORDER;
use crate::numbers::{PacketNumbers, new_numbers};
use fanfare_fast::program::{FieldId, FieldKind, Place, RESET_ID, Reading, Reset, TemplateProgram};
use fanfare_fast::{Cell, CodecError, Decoder, Fields, Program, Record, Value};

/// The messages of one packet. One with more than four keeps only its numbers, unless dictionaries
/// outlive packets, and is decoded again when it is delivered. A reused packet allocates only where
/// it outgrows all before.
#[derive(Debug, Default)]
pub(super) struct Packet {
    messages: Vec<Decoded>,
    used: usize,
    numbers: PacketNumbers,
    /// The offset of the first message. Those before it are decoded for their previous values.
    from: usize,
    /// The offset at which the messages of a new run follow a SequenceReset; 0 if there are none.
    /// The packet ends there.
    rest: usize,
    fault: Option<Fault>,
    /// Whether a message has cleared the previous values.
    is_cleared: bool,
    is_decoded: bool,
    /// The number of bytes decoded, and whether none are left.
    at: usize,
    is_at_end: bool,
    has_contents: bool,
    /// The number of the last message that has one, and its index.
    last: Option<(u64, u32)>,
    /// Whether each message replaces the one before.
    is_streamed: bool,
    /// The time its decoding took in ns, and the time at which that began.
    decoding: u64,
    begin: u64,
}

/// What is learned of a packet by reading it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Learned {
    numbers: PacketNumbers,
    rest: usize,
    /// Whether it could be decoded to its end.
    pub(super) is_whole: bool,
}

/// One message of a packet.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) record: Record,
    /// The number, separate from its flag: an `Option` would be read by one load over the two
    /// stores just made, which stalls the processor.
    number: u64,
    has_number: bool,
    /// Its index among the messages with this number, from 0.
    pub(super) index: u32,
    /// The time its decoding took in ns.
    pub(super) decoding: u64,
}

impl Decoded {
    #[inline(always)]
    pub(super) const fn set_number(&mut self, number: Option<u64>) {
        self.has_number = number.is_some();
        if let Some(number) = number {
            self.number = number;
        }
    }

    #[inline(always)]
    pub(super) fn number(&self) -> Option<u64> {
        self.has_number.then_some(self.number)
    }
}

impl Packet {
    /// Returns the sequence numbers of the packet.
    pub(super) const fn numbers(&self) -> PacketNumbers {
        self.numbers
    }

    /// Returns what was learned by reading the packet.
    pub(super) const fn learned(&self) -> Learned {
        Learned {
            numbers: self.numbers,
            rest: self.rest,
            is_whole: self.fault.is_none(),
        }
    }

    /// Returns the offset of its first message, above 0 behind a SequenceReset.
    pub(super) const fn from(&self) -> usize {
        self.from
    }

    /// Returns the offset of the messages of a new run behind it; 0 if there are none.
    pub(super) const fn rest(&self) -> usize {
        self.rest
    }

    /// Returns the number of its messages that could be decoded and are kept.
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    /// Returns why the packet could not be decoded to its end, or is left out: the error of a
    /// message, whose offset counts from the first one, its number, or the loss that it builds on.
    pub(super) const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Returns whether its first message could not be decoded, and thus none of it.
    pub(super) const fn is_undecodable(&self) -> bool {
        matches!(self.fault, Some(Fault::Codec(_))) && self.at == self.from
    }

    pub(super) const fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    pub(super) const fn decoding(&self) -> u64 {
        self.decoding
    }

    pub(super) const fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    /// Returns whether the last message decoded is that at its end.
    pub(super) const fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    #[inline]
    pub(super) fn message(&mut self, index: usize) -> Option<&mut Decoded> {
        self.messages.get_mut(..self.used)?.get_mut(index)
    }

    pub(super) fn number(&self, index: usize) -> Option<u32> {
        let number = self.messages.get(..self.used)?.get(index)?.number()?;
        Some(number as u32)
    }

    /// Discards the messages and sets the numbers.
    pub(super) fn clear(&mut self, numbers: PacketNumbers) {
        self.used = 0;
        (self.from, self.rest) = (0, 0);
        (self.fault, self.is_cleared) = (None, false);
        self.decoding = 0;
        self.is_decoded = false;
        self.is_streamed = false;
        self.numbers = numbers;
        (self.at, self.is_at_end) = (0, false);
        (self.has_contents, self.last) = (false, None);
    }

    /// Discards the messages and sets what is known of a packet with the same bytes.
    #[inline]
    pub(super) fn recall(&mut self, learned: Learned) {
        self.clear(learned.numbers);
        self.rest = learned.rest;
    }

    /// Makes each message replace the one before from here on.
    pub(super) const fn stream(&mut self) {
        self.is_streamed = true;
    }

    /// Sets the number of the packet, if it has one, for all its messages, which are indexed by
    /// their order.
    pub(super) fn number_by(&mut self, number: Option<u32>) {
        let Some(number) = number else {
            return;
        };
        self.numbers.first = Some(number);
        self.numbers.count = 1;
        let messages = self.messages.get_mut(..self.used).unwrap_or_default();
        for (message, index) in messages.iter_mut().zip(0..) {
            message.set_number(Some(number.into()));
            message.index = index;
        }
    }

    /// Returns the place of the next message.
    #[inline]
    fn place(&mut self) -> &mut Decoded {
        if self.used >= self.messages.len() {
            self.messages.push(Decoded::default());
        }
        let last = self.messages.len() - 1;
        &mut self.messages[self.used.min(last)]
    }
}

/// The end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// At the end of its bytes.
    Whole,
    /// In front of the next Reset message (template 120) that follows another message, or at the
    /// end of its bytes: recordings of MOEX have no other framing.
    UpToReset,
}

/// Most messages of a packet that are kept decoded before it is known to be in order. More would be
/// in cold memory: decoding them again, each in the place of the one before, takes a third of the
/// time.
const MOST_KEPT: usize = 4;

/// Decodes packets, and finds the numbers of their messages.
#[derive(Debug)]
pub(super) struct PacketReader {
    decoder: Decoder,
    /// The fields with numbers, by template.
    fields: Vec<NumberFields>,
    /// The fields that hold sequence numbers.
    wanted: Vec<FieldId>,
    /// Whether previous values outlive the packet.
    keep_dictionary: bool,
    /// How many numbers may be left out in front of a message of a packet.
    slack: u32,
    /// The loss that has made them unknown, until a message clears them.
    lost: Option<Loss>,
    /// The number of the next packet of the line, if they do and a packet has had a number.
    next: Option<u32>,
    /// If they do: the first message of the rest of a packet, and its length in bytes.
    first_of_rest: (Decoded, usize),
    stopwatch: Option<Stopwatch>,
}

/// The fields of a template that number messages.
#[derive(Debug, Clone, Copy, Default)]
struct NumberFields {
    number: Option<NumberField>,
    /// NewSeqNo(36) of a SequenceReset.
    next: Option<NumberField>,
    is_reset: bool,
    /// Whether a message clears the previous values.
    clears: bool,
    /// Whether the number may be that of a message in a dynamic reference.
    is_dynamic: bool,
}

/// A field that is read from each message.
#[derive(Debug, Clone, Copy)]
struct NumberField {
    id: FieldId,
    /// Its lane in the first row, and whether it is signed there.
    lane: Option<(u8, bool)>,
}

impl NumberField {
    fn new(program: &Program, id: FieldId) -> Self {
        let lane = program.place(id).and_then(|place| match place.reading {
            _ if place.in_entry || place.lane == Place::NO_LANE => None,
            Reading::Unsigned => Some((place.lane, false)),
            Reading::Signed => Some((place.lane, true)),
            _ => None,
        });
        Self { id, lane }
    }

    #[inline(always)]
    fn read(&self, record: &Record, program: &Program) -> Option<u64> {
        match (self.lane, record.rows()) {
            (Some((lane, is_signed)), Some(rows)) => {
                let row = rows.head();
                let value = row.value(lane);
                let wide = match is_signed {
                    true => i64::from(value).cast_unsigned(),
                    false => u64::from(value.cast_unsigned()),
                };
                row.is_present(lane).then_some(wide)
            }
            _ => self.look_up(record, program),
        }
    }

    #[cold]
    fn look_up(&self, record: &Record, program: &Program) -> Option<u64> {
        integer(record.get(program, self.id, 0))
    }
}

impl PacketReader {
    /// Makes a reader; `number` are the fields with sequence numbers.
    pub(super) fn new(decoder: Decoder, number: &[FieldId], config: &ChannelConfig) -> Self {
        let program = decoder.program();
        let next = new_numbers(program);
        let of_template = |template: &TemplateProgram| {
            let own = |ids: &[FieldId]| {
                let mut ids = ids.iter().copied();
                let id = ids.find(|id| program.field(*id).template() == template.index());
                id.map(|id| NumberField::new(program, id))
            };
            let mut kinds = program.template_fields(template).iter();
            NumberFields {
                number: own(number),
                next: own(&next),
                is_reset: template.id() == Some(RESET_ID),
                clears: template.reset() != Reset::None,
                is_dynamic: kinds.any(|id| program.field(*id).kind() == FieldKind::TemplateRef),
            }
        };
        let fields = program.templates().iter().map(of_template).collect();
        Self {
            decoder,
            fields,
            wanted: number.to_vec(),
            keep_dictionary: config.keep_dictionary,
            slack: if config.has_slack() {
                REORDER as u32
            } else {
                0
            },
            lost: None,
            next: None,
            first_of_rest: Default::default(),
            stopwatch: config.stopwatch,
        }
    }

    pub(super) fn program(&self) -> &Program {
        self.decoder.program()
    }

    /// Decodes a packet at the front of `bytes`; returns its length. A packet of a stream with an
    /// error ends in front of the next Reset behind it, or of the message with the error: what
    /// follows is another packet. Without a whole message in front, the rest is one packet.
    pub(super) fn read(&mut self, bytes: &[u8], extent: Extent, packet: &mut Packet) -> usize {
        self.begin(packet);
        while self.advance(bytes, extent, packet) {
            self.limit(packet);
        }
        self.finish(packet);
        let (from, is_error) = match packet.fault {
            None => return packet.at,
            Some(Fault::Codec(error)) => (error.offset, true),
            Some(_) => (packet.at, false),
        };
        if extent == Extent::Whole {
            return bytes.len();
        }
        match next_reset(bytes, from) {
            Some(reset) => reset,
            // The message with the error begins the next packet, which reports it.
            None if packet.has_contents && is_error => {
                packet.fault = None;
                packet.at
            }
            None => bytes.len(),
        }
    }

    /// Keeps only the numbers of a packet with more messages than are kept.
    #[inline]
    pub(super) const fn limit(&self, packet: &mut Packet) {
        if packet.used >= MOST_KEPT && !self.keep_dictionary {
            packet.stream();
            packet.used = 0;
        }
    }

    /// Ends the decoding; messages that were not kept are to be decoded again.
    pub(super) fn finish(&self, packet: &mut Packet) {
        self.stop(packet);
        if packet.is_streamed {
            let (fault, at, decoding) = (packet.fault, packet.at, packet.decoding);
            let (from, rest) = (packet.from, packet.rest);
            packet.clear(packet.numbers);
            (packet.fault, packet.at, packet.decoding) = (fault, at, decoding);
            (packet.from, packet.rest) = (from, rest);
        }
    }

    /// Notes that the last message is decoded.
    pub(super) fn stop(&self, packet: &mut Packet) {
        if let Some(Stopwatch::Packets(clock)) = self.stopwatch {
            packet.decoding = clock().saturating_sub(packet.begin);
        }
    }

    /// Begins a packet.
    pub(super) fn begin(&mut self, packet: &mut Packet) {
        if !self.keep_dictionary {
            self.decoder.reset();
        }
        packet.clear(PacketNumbers::default());
        packet.is_decoded = true;
        if let Some(Stopwatch::Packets(clock)) = self.stopwatch {
            packet.begin = clock();
        }
    }

    /// Begins the part of a packet that has its first message at the offset `from`.
    #[inline]
    pub(super) fn begin_at(&mut self, bytes: &[u8], from: usize, packet: &mut Packet) {
        self.begin(packet);
        if from > 0 {
            self.pass(bytes, from, packet);
        }
    }

    /// Passes the messages in front of the offset `from`.
    #[cold]
    fn pass(&mut self, bytes: &[u8], from: usize, packet: &mut Packet) {
        packet.from = from;
        if self.keep_dictionary {
            // They were decoded just now, and the first message behind them as well.
            packet.at = from;
            let (first, len) = &mut self.first_of_rest;
            std::mem::swap(first, packet.place());
            let (rest, len) = (bytes.get(from..).unwrap_or_default(), *len);
            self.message(rest, Extent::Whole, packet, Some(len));
            return;
        }
        while packet.at < from && packet.fault.is_none() {
            let rest = bytes.get(packet.at..).unwrap_or_default();
            match self.decoder.decode_record(rest, &mut packet.place().record) {
                Ok(len) => packet.at += len,
                Err(error) => self.fail(error, packet),
            }
        }
    }

    /// Decodes the next message of the packet at the front of `bytes`; returns false at its end.
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: &[u8], extent: Extent, packet: &mut Packet) -> bool {
        let rest = bytes.get(packet.at..).filter(|rest| !rest.is_empty());
        let Some(rest) = rest.filter(|_| packet.fault.is_none()) else {
            return false;
        };
        let Some(Stopwatch::Messages(clock)) = self.stopwatch else {
            return self.message(rest, extent, packet, None);
        };
        let begin = clock();
        let goes_on = self.message(rest, extent, packet, None);
        let decoding = clock().saturating_sub(begin);
        packet.decoding += decoding;
        if let Some(message) = packet
            .messages
            .get_mut(..packet.used)
            .and_then(<[_]>::last_mut)
        {
            message.decoding = decoding;
        }
        goes_on
    }

    /// Decodes the next message of a packet that is delivered as it is decoded, in the place of the
    /// one before; returns false if there is none.
    #[inline(always)]
    pub(super) fn replace(&mut self, bytes: &[u8], packet: &mut Packet) -> bool {
        packet.used = 0;
        self.advance(bytes, Extent::Whole, packet)
    }

    /// Takes the next message, which is at the front of `rest`, and is decoded unless its length is
    /// known; returns false if there is none, or the packet ends in front of it.
    #[inline]
    fn message(
        &mut self,
        rest: &[u8],
        extent: Extent,
        packet: &mut Packet,
        known: Option<usize>,
    ) -> bool {
        let message = packet.place();
        let decoded = match known {
            Some(len) => Ok(len),
            None => self.decoder.decode_record(rest, &mut message.record),
        };
        let len = match decoded {
            Ok(len) => len,
            Err(error) => {
                self.fail(error, packet);
                return false;
            }
        };
        let template = message.record.template_index().unwrap_or_default() as usize;
        const NONE: NumberFields = NumberFields {
            number: None,
            next: None,
            is_reset: false,
            clears: false,
            is_dynamic: false,
        };
        let fields = self.fields.get(template).unwrap_or(&NONE);
        let (is_reset, clears) = (fields.is_reset, fields.clears);
        let program = self.decoder.program();
        let mut number = fields.number.and_then(|f| f.read(&message.record, program));
        let next = fields.next.and_then(|f| f.read(&message.record, program));
        if fields.is_dynamic && number.is_none() {
            let view = message.record.view(program);
            number = view.and_then(|view| nested(view.fields(), &self.wanted));
        }
        if extent == Extent::UpToReset && packet.has_contents && is_reset {
            return false;
        }
        let (own, announced) = (number.map(|n| n as u32), next.map(|n| n as u32));
        let is_of_rest = packet.numbers.next.is_some() && packet.is_rest(own);
        if is_of_rest && extent == Extent::Whole {
            self.leave(len, packet);
            return false;
        }
        if self.keep_dictionary {
            self.build(packet, clears, (number, next));
            if let Some(loss) = self.lost {
                self.leave_out(loss, packet);
                return false;
            }
        }
        if !is_of_rest && !packet.numbers.add(own, announced, self.slack) {
            self.refuse(packet);
            return false;
        }
        packet.took(len, is_reset, number);
        packet.is_at_end = len == rest.len();
        true
    }

    /// Leaves the message in its place for the rest of the packet. If previous values outlive the
    /// packet, it cannot be decoded again.
    #[cold]
    fn leave(&mut self, len: usize, packet: &mut Packet) {
        if self.keep_dictionary {
            std::mem::swap(&mut self.first_of_rest.0, packet.place());
            self.first_of_rest.1 = len;
        }
    }

    /// Notes that the packet that begins has this number. Another one than the next is behind a gap
    /// of its line, or was read before: previous values are unknown.
    pub(super) fn follow(&mut self, number: u32) {
        if self.next.is_some_and(|next| next != number) && self.lost.is_none() {
            self.decoder.reset();
            self.lost = Some(Loss::Gap);
        }
        self.next = Some(number.wrapping_add(1));
    }

    /// Notes that a message builds on the previous values, or clears them, which ends a loss. A
    /// message before it that is missing makes them unknown. No message is missing within a packet,
    /// so only the first number of each packet is compared.
    #[inline(never)]
    fn build(
        &mut self,
        packet: &mut Packet,
        clears: bool,
        (number, next): (Option<u64>, Option<u64>),
    ) {
        if clears {
            // Numbers in messages behind the loss may have been wrong, too.
            if self.lost.take().is_some() && !self.wanted.is_empty() {
                self.next = None;
            }
            packet.is_cleared = true;
        }
        let number = number.map(|number| number as u32);
        match number {
            Some(number) if packet.last.is_none() && !packet.is_cleared => self.follow(number),
            Some(number) => self.next = Some(number.wrapping_add(1)),
            None => {}
        }
        self.next = next.map(|next| next as u32).or(self.next);
    }

    /// Ends a packet with an error of its next message: previous values are in an unknown state.
    /// If these outlive the packet, the packets behind it are left out up to a message that clears
    /// them. An error behind a loss is one of the packets that are left out.
    #[cold]
    fn fail(&mut self, mut error: CodecError, packet: &mut Packet) {
        if let Some(loss) = self.lost {
            return self.leave_out(loss, packet);
        }
        error.offset += packet.at;
        packet.fault = Some(Fault::Codec(error));
        self.decoder.reset();
        if self.keep_dictionary {
            self.lost = Some(Loss::Error(error.code));
        }
    }

    /// Ends a packet in front of a message whose number does not follow those before it: all that
    /// the arbiter knows of a packet is a range of numbers, and one far ahead makes all numbers in
    /// front of it missing. If previous values outlive the packet, those that the message has set
    /// are not trusted.
    #[cold]
    fn refuse(&mut self, packet: &mut Packet) {
        packet.fault = Some(Fault::Refused(Refusal::Order));
        self.decoder.reset();
        if self.keep_dictionary {
            self.lost = Some(Loss::Gap);
        }
    }

    /// Ends a packet that builds on a loss; none of its messages is kept.
    #[cold]
    fn leave_out(&mut self, loss: Loss, packet: &mut Packet) {
        packet.fault = Some(Fault::Lost(loss));
        packet.used = 0;
        self.decoder.reset();
    }
}

/// Returns the place of the first Reset message from `from` on that is not at the front.
fn next_reset(bytes: &[u8], from: usize) -> Option<usize> {
    /// A presence map with the template ID alone, and the ID.
    const RESET: [u8; 2] = [0xc0, RESET_ID as u8 | 0x80];
    let from = from.max(1);
    let mut rest = bytes.get(from..)?.windows(RESET.len());
    rest.position(|window| window == RESET).map(|at| from + at)
}

impl Packet {
    /// Returns whether the next message, behind a SequenceReset, is of a new run.
    #[cold]
    fn is_rest(&mut self, number: Option<u32>) -> bool {
        if self.rest == 0 && number.is_some_and(|number| self.numbers.begins(number)) {
            self.rest = self.at;
        }
        self.rest > 0
    }

    /// Notes that a message with this number was decoded into its place.
    #[inline]
    fn took(&mut self, len: usize, is_reset: bool, number: Option<u64>) {
        self.has_contents |= !is_reset;
        let index = match self.last {
            Some((same, index)) if Some(same) == number => index + 1,
            _ => 0,
        };
        let place = self.place();
        place.set_number(number);
        place.index = index;
        if let Some(number) = number {
            self.last = Some((number, index));
        }
        self.used += 1;
        self.at += len;
    }
}

/// Returns the integer in a field.
fn integer(value: Cell<'_>) -> Option<u64> {
    match value {
        Cell::Unsigned(number) => Some(number),
        Cell::Signed(number) => Some(number.cast_unsigned()),
        _ => None,
    }
}

/// Returns the number of a message in a dynamic reference.
fn nested(fields: Fields<'_>, wanted: &[FieldId]) -> Option<u64> {
    let mut fields = fields;
    fields.find_map(|(field, value)| match value {
        Value::Unsigned(number, _) if wanted.contains(&field.id()) => Some(number),
        Value::Signed(number, _) if wanted.contains(&field.id()) => Some(number.cast_unsigned()),
        Value::Group(inner) | Value::Template(_, inner) => nested(inner, wanted),
        _ => None,
    })
}
