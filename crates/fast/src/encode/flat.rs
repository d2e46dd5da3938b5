//! Messages of flat templates, of which each row is one segment for the kernel. The scalar encoder
//! takes what is not regular, from its segment on.

use fanfare_wire::lanes::{LaneKernel, Row};

use super::gather::Nodes;
use super::{Encoder, Previous};
use crate::decode::{Limits, Options, Tally, lane_kernel, most_entries};
use crate::dictionary::Dictionaries;
use crate::error::{Bound, CodecError, ErrorCode};
use crate::message::Message;
use crate::previous::PreviousValues;
use crate::program::Program;
use crate::program::lanes::Flat;
use crate::record::Record;
use crate::rows::Rows;

/// The number of entries of a message that are made rows at a time.
const BATCH: usize = 16;

/// The part of a message that is encoded in lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// No part, not even the first segment. Nothing has changed but for a reset that the message
    /// asks for.
    Nothing,
    /// The first segment, and this number of entries of the sequence.
    Entries(u32),
    All,
}

/// The state of an encoder for lanes.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    kernel: LaneKernel,
    pub(super) dictionaries: Dictionaries,
    /// The rows that messages become.
    rows: Box<[Row]>,
    /// The most entries that a message may have without coming near a limit.
    most_entries: u32,
    pub(super) tally: Tally,
}

impl Encoder {
    /// Appends one message to `out`, and returns the number of bytes.
    ///
    /// # Errors
    /// Those of [`Self::encode`], of which [`ErrorCode::Foreign`] also concerns a record from a
    /// decoder with other templates, and an input error if the record holds no whole message.
    #[inline(always)]
    pub fn encode_record(
        &mut self,
        record: &Record,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        if !record.is_of(&self.program) {
            return Err(CodecError::new(ErrorCode::Foreign, 0));
        }
        if !record.is_whole() {
            return Err(CodecError::new(ErrorCode::Input, 0));
        }
        let Some(rows) = record.all_rows() else {
            return self.encode(record.message(), out);
        };
        let start = out.len();
        match self.rows(&rows, out) {
            Done::All => {}
            done => self.rest_of_rows(&rows, done, start, out)?,
        }
        self.within_limit(start, out)
    }

    /// Returns the number of bytes after `start`, or the error that a message may not have as many.
    #[inline(always)]
    pub(super) fn within_limit(
        &self,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        let len = out.len() - start;
        if len > self.options.limits.message {
            out.truncate(start);
            return Err(CodecError::beyond(Bound::Message, len));
        }
        Ok(len)
    }

    /// Encodes rows in lanes.
    #[inline(always)]
    fn rows(&mut self, rows: &Rows<'_>, out: &mut Vec<u8>) -> Done {
        let Previous::Columns(lanes) = &mut self.previous else {
            return Done::Nothing;
        };
        lanes.tally.tried += 1;
        let flat = self.program.flat_of(rows.template);
        let (Some(flat), Some((first, entries))) = (flat, rows.rows.split_first()) else {
            return Done::Nothing;
        };
        if entries.len() > lanes.most_entries as usize {
            return Done::Nothing;
        }
        let (kernel, only, dictionaries) =
            (lanes.kernel, self.program.only(), &mut lanes.dictionaries);
        if !head((kernel, flat, only), dictionaries, first, out) {
            return Done::Nothing;
        }
        let Some(entry) = &flat.entry else {
            return Done::All;
        };
        let (plan, columns) = (&entry.at_hand.plan, &mut dictionaries.columns);
        let done = kernel.encode_entries(plan, columns, entries, out);
        match done == entries.len() {
            true => Done::All,
            false => Done::Entries(done as u32),
        }
    }

    /// Encodes, field by field, the rows that were not done in lanes.
    #[cold]
    #[inline(never)]
    fn rest_of_rows(
        &mut self,
        rows: &Rows<'_>,
        done: Done,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let mut message = std::mem::take(&mut self.message);
        rows.write(&self.program, &mut message);
        let result = self.rest(&message, done, start, out);
        self.message = message;
        result
    }
}

impl Lanes {
    /// Returns the state for the templates of a program, if any of them is flat and no limit
    /// prevents lanes.
    pub(super) fn new(program: &Program, options: &Options) -> Option<Self> {
        // An encoder does not add up the bytes of strings.
        let limits = Limits {
            texts: usize::MAX,
            ..options.limits
        };
        let kernel = lane_kernel(program, &Options { limits, ..*options })?;
        Some(Self {
            kernel,
            dictionaries: Dictionaries::new(program),
            rows: vec![Row::default(); BATCH].into(),
            most_entries: most_entries(program, &limits).unwrap_or_default(),
            tally: Tally::default(),
        })
    }

    /// Encodes a message in lanes, if its values are such as a decoder could have left in rows.
    #[inline(always)]
    pub(super) fn encode(
        &mut self,
        program: &Program,
        message: &Message,
        out: &mut Vec<u8>,
    ) -> Done {
        self.tally.tried += 1;
        let template = message.template_index();
        let Some(flat) = template.and_then(|template| program.flat_of(template)) else {
            return Done::Nothing;
        };
        let kernel = self.kernel;
        let nodes = Nodes::of(flat, message, self.most_entries);
        let (Some(mut nodes), Some(row)) = (nodes, self.rows.first_mut()) else {
            return Done::Nothing;
        };
        let (only, dictionaries) = (program.only(), &mut self.dictionaries);
        if !nodes.head(program, flat, row) || !head((kernel, flat, only), dictionaries, row, out) {
            return Done::Nothing;
        }
        let Some(entry) = &flat.entry else {
            return Done::All;
        };
        let (plan, mut done) = (&entry.at_hand.plan, 0);
        while nodes.has_entries() {
            let filled = nodes.take_entries(program, entry, &mut self.rows);
            let rows = self.rows.get(..filled).unwrap_or_default();
            let columns = &mut dictionaries.columns;
            let encoded = kernel.encode_entries(plan, columns, rows, out);
            done += encoded as u32;
            if filled == 0 || encoded < filled {
                return Done::Entries(done);
            }
        }
        Done::All
    }
}

/// Encodes the first segment of a message, with what is before it.
#[inline(always)]
fn head(
    (kernel, flat, only): (LaneKernel, &Flat, Option<u32>),
    dictionaries: &mut Dictionaries,
    row: &Row,
    out: &mut Vec<u8>,
) -> bool {
    let front = match dictionaries.template.or(only) == Some(flat.template) {
        true => 0,
        false if flat.front == 0 => return false,
        false => flat.front,
    };
    if flat.resets {
        dictionaries.reset();
    }
    let columns = &mut dictionaries.columns;
    let is_done = kernel.encode(&flat.segment.plan, columns, row, front, out);
    if is_done {
        dictionaries.template = Some(flat.template);
    }
    is_done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoder, Options};
    use crate::generate::{ComplexOptions, Generator, PACKET_SIZE};
    use crate::program::Program;

    /// Checks that lanes encode messages: if they did nothing, all other tests would pass.
    #[test]
    fn regular_messages_are_done_in_lanes() {
        let complex = ComplexOptions::default();
        for (program, mut generator) in [
            (
                Program::simple(),
                Generator::simple(Program::simple(), 300, PACKET_SIZE),
            ),
            (
                Program::complex(),
                Generator::complex(Program::complex(), 300, None, complex),
            ),
        ] {
            let mut packets = Vec::new();
            while let Some(packet) = generator.next_packet().unwrap() {
                packets.push(packet.to_vec());
            }
            for kernel in LaneKernel::all() {
                let options = Options {
                    kernel: Some(kernel),
                    ..Options::default()
                };
                let mut decoder = Decoder::with_options(program.clone(), options);
                let mut encoder = Encoder::with_options(program.clone(), options);
                let mut message = Message::new();
                for packet in &packets {
                    decoder.reset();
                    encoder.reset();
                    let (mut at, mut out) = (0, Vec::new());
                    while at < packet.len() {
                        at += decoder.decode(&packet[at..], &mut message).unwrap();
                        let is_flat = program.flat_of(message.template_index().unwrap()).is_some();
                        let Previous::Columns(lanes) = &mut encoder.previous else {
                            panic!("no lanes")
                        };
                        let done = lanes.encode(&program, &message, &mut out);
                        assert_eq!(done == Done::All, is_flat, "{kernel:?} {message:?}");
                        if !is_flat {
                            encoder.rest(&message, done, out.len(), &mut out).unwrap();
                        }
                    }
                    assert_eq!(&out, packet);
                }
            }
        }
    }

    /// Encodes values of more than four bytes, in most messages or in few. Where most are such, an
    /// encoder leaves lanes at a reset, and the bytes are the same.
    #[test]
    fn lanes_are_left_where_most_is_irregular() {
        let xml = "<template name='T' id='1'><uInt32 name='A'><copy/></uInt32>\
                   <uInt32 name='B'/><uInt32 name='C'/></template>";
        let program = std::sync::Arc::new(Program::parse(xml).unwrap());
        let small = &[0xe0, 0x81, 0x85, 0x86, 0x87][..];
        let large = &[0xe0, 0x81, 0x85, 0x86, 0x01, 0x00, 0x00, 0x00, 0x87][..];
        let mut decoder = Decoder::new(program.clone());
        let messages = [small, large].map(|bytes| {
            let mut message = Message::new();
            decoder.decode(bytes, &mut message).unwrap();
            message
        });
        for kernel in LaneKernel::all() {
            for (in_packet, share, stays) in [
                (1, 1, false),
                (1, 2, true),
                (1, 3, true),
                (20, 1, false),
                (20, 20, true),
            ] {
                let options = Options {
                    kernel: Some(kernel),
                    ..Options::default()
                };
                let mut encoder = Encoder::with_options(program.clone(), options);
                let mut out = Vec::new();
                for number in 0..10_000 {
                    let is_first = number % in_packet == 0;
                    let is_large = usize::from(number % share == 0);
                    if is_first {
                        encoder.reset();
                    }
                    out.clear();
                    encoder.encode(&messages[is_large], &mut out).unwrap();
                    assert!(!is_first || out == [small, large][is_large]);
                }
                encoder.reset();
                let case = format!("{kernel:?}, one of {share}, {in_packet} in a packet");
                assert_eq!(encoder.has_lanes(), stays, "{case}");
            }
        }
    }
}
