//! Where packets end: decoded, written, counted.

use super::output::Output;
use super::report::Counts;
use fanfare_fast::program::{FieldId, TemplateProgram};
use fanfare_fast::{CodecError, Decoder, Message, Program, Visitor};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to do after a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// What stands at the front of a continuous stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message of so many bytes.
    Message(usize),
    /// The beginning of one.
    Partial,
    /// Something that cannot be decoded.
    Error,
}

/// How a sink behaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkOptions {
    /// Previous values outlive the packet.
    pub(crate) keep_dictionary: bool,
    /// An error spoils its packet, not the run.
    pub(crate) keep_going: bool,
    /// Stop after so many messages.
    pub(crate) limit: Option<u64>,
    /// Measure the decoder, which hands over nothing then.
    pub(crate) timed: bool,
    /// A message of this template says that the feed is over.
    pub(crate) last: Option<String>,
}

/// Messages at the front of a packet that were delivered before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skip<'a> {
    /// The packet's first sequence number.
    pub(crate) first: u32,
    /// How many numbers to leave out.
    pub(crate) count: u32,
    /// The fields that hold sequence numbers.
    pub(crate) fields: &'a [FieldId],
}

pub(crate) struct Sink {
    decoder: Decoder,
    message: Message,
    output: Output,
    options: SinkOptions,
    empty: Empty,
    pub(crate) counts: Counts,
    pub(crate) decoding: Duration,
}

impl Sink {
    pub(crate) fn new(decoder: Decoder, output: Output, options: SinkOptions) -> Self {
        let last = options.last.as_deref();
        let last = last.and_then(|name| decoder.program().by_name(name));
        let last = last.map(TemplateProgram::index);
        Self {
            decoder,
            message: Message::new(),
            empty: Empty {
                last,
                is_over: false,
            },
            output,
            options,
            counts: Counts::default(),
            decoding: Duration::ZERO,
        }
    }

    /// Whether the message of [`SinkOptions::last`] has come.
    pub(crate) fn is_over(&self) -> bool {
        self.empty.is_over
    }

    /// Whether a packet outside the sequence is the one that says the feed is over.
    pub(crate) fn ends_feed(&mut self, packet: &[u8]) -> bool {
        let mut probe = Empty {
            last: self.empty.last,
            is_over: false,
        };
        self.decoder.reset();
        self.decoder.decode(packet, &mut probe).is_ok() && probe.is_over
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        self.decoder.program()
    }

    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Decodes a packet whose first byte stands at `offset`.
    pub(crate) fn packet(
        &mut self,
        bytes: &[u8],
        offset: u64,
        skip: Option<Skip<'_>>,
    ) -> io::Result<Flow> {
        self.counts.packets += 1;
        self.counts.bytes += bytes.len() as u64;
        if !self.options.keep_dictionary {
            self.decoder.reset();
        }
        let clock = self.options.timed.then(Instant::now);
        let flow = self.messages(bytes, offset, skip);
        if let Some(start) = clock {
            self.decoding += start.elapsed();
        }
        flow
    }

    /// Decodes one message at the front of a continuous stream. Where it is not `whole`, more
    /// bytes may come behind those.
    pub(crate) fn next(&mut self, bytes: &[u8], offset: u64, whole: bool) -> io::Result<Next> {
        let next = self.read(bytes, offset, whole, self.is_unseen())?;
        if let Next::Message(_) = next {
            self.deliver()?;
        }
        Ok(next)
    }

    /// Decodes one message as [`next`](Self::next), and keeps it in hand for
    /// [`number`](Self::number) and [`deliver`](Self::deliver).
    pub(crate) fn take(&mut self, bytes: &[u8], offset: u64, whole: bool) -> io::Result<Next> {
        let clock = self.options.timed.then(Instant::now);
        let next = self.read(bytes, offset, whole, false);
        if let Some(start) = clock {
            self.decoding += start.elapsed();
        }
        next
    }

    /// Decodes one message of a continuous stream that has a decoder of its own.
    pub(crate) fn take_with(
        &mut self,
        decoder: &mut Decoder,
        message: &mut Message,
        (bytes, offset): (&[u8], u64),
    ) -> io::Result<Next> {
        let clock = self.options.timed.then(Instant::now);
        let decoded = decoder.decode(bytes, message);
        if let Some(start) = clock {
            self.decoding += start.elapsed();
        }
        match decoded {
            Ok(len) => {
                self.counts.bytes += len as u64;
                Ok(Next::Message(len))
            }
            Err(error) => {
                self.codec_error(&error, offset)?;
                Ok(Next::Error)
            }
        }
    }

    /// The number of the message in hand in the first of these fields that it has.
    pub(crate) fn number(&self, fields: &[FieldId]) -> Option<u32> {
        number(&self.message, self.decoder.program(), fields)
    }

    fn read(&mut self, bytes: &[u8], offset: u64, whole: bool, empty: bool) -> io::Result<Next> {
        let decoded = match (whole, empty) {
            (true, _) => self.decode(bytes, empty).map(Some),
            (false, true) => self.decoder.decode_partial(bytes, &mut self.empty),
            (false, false) => self.decoder.decode_partial(bytes, &mut self.message),
        };
        match decoded {
            Ok(Some(len)) => {
                self.counts.bytes += len as u64;
                Ok(Next::Message(len))
            }
            Ok(None) => Ok(Next::Partial),
            Err(error) => {
                self.codec_error(&error, offset)?;
                Ok(Next::Error)
            }
        }
    }

    /// Whether the run's limit of messages is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.options
            .limit
            .is_some_and(|limit| self.counts.messages >= limit)
    }

    /// Counts and reports an error that is not the decoder's.
    pub(crate) fn error(&mut self, code: &str, offset: u64, text: &str) -> io::Result<Flow> {
        self.counts.errors += 1;
        self.output.error(code, offset, text)?;
        Ok(self.after_error())
    }

    pub(crate) fn codec_error(&mut self, error: &CodecError, base: u64) -> io::Result<Flow> {
        self.counts.errors += 1;
        let program = self.decoder.program();
        self.output.codec_error(error, program, base)?;
        self.decoder.reset();
        Ok(self.after_error())
    }

    pub(crate) fn after_error(&self) -> Flow {
        if self.options.keep_going {
            Flow::Continue
        } else {
            Flow::Stop
        }
    }

    fn messages(&mut self, bytes: &[u8], offset: u64, skip: Option<Skip<'_>>) -> io::Result<Flow> {
        let mut at = 0;
        let mut skip = skip.filter(|skip| skip.count > 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let empty = self.is_unseen() && skip.is_none();
            match self.decode(rest, empty) {
                Ok(len) => {
                    if skip.is_none_or(|s| !self.is_before(s)) {
                        skip = None;
                        self.deliver()?;
                        if self.is_full() {
                            return Ok(Flow::Stop);
                        }
                    }
                    at += len;
                }
                Err(error) => return self.codec_error(&error, offset + at as u64),
            }
        }
        Ok(Flow::Continue)
    }

    /// Whether nobody wants to see the messages, but for the last one.
    fn is_unseen(&self) -> bool {
        self.options.timed || !self.output.wants_messages()
    }

    /// Whether the message in hand was delivered before; one without a number goes with the
    /// numbers around it.
    fn is_before(&self, skip: Skip<'_>) -> bool {
        let Some(view) = self.message.view(self.decoder.program()) else {
            return true;
        };
        let mut fields = view.fields();
        let number = fields.find(|(field, _)| skip.fields.contains(&field.id()));
        let number = number.and_then(|(_, value)| value.as_u64());
        number.is_none_or(|n| (n as u32).wrapping_sub(skip.first) < skip.count)
    }

    fn decode(&mut self, bytes: &[u8], empty: bool) -> Result<usize, CodecError> {
        if empty {
            return self.decoder.decode(bytes, &mut self.empty);
        }
        let len = self.decoder.decode(bytes, &mut self.message)?;
        self.empty.is_over |=
            self.message.template_index() == self.empty.last && self.empty.last.is_some();
        Ok(len)
    }

    /// Writes the message in hand.
    pub(crate) fn deliver(&mut self) -> io::Result<()> {
        if self.is_unseen() {
            self.counts.messages += 1;
            return Ok(());
        }
        let message = std::mem::take(&mut self.message);
        let delivered = self.deliver_other(&message);
        self.message = message;
        delivered
    }

    /// Writes a message that another decoder of the same program has in hand.
    pub(crate) fn deliver_other(&mut self, message: &Message) -> io::Result<()> {
        self.counts.messages += 1;
        if self.is_unseen() {
            return Ok(());
        }
        let written = self.output.message(message, self.decoder.program())?;
        self.counts.errors += u64::from(!written);
        Ok(())
    }
}

/// A message's number in the first of these fields that it has.
pub(crate) fn number(message: &Message, program: &Program, fields: &[FieldId]) -> Option<u32> {
    let view = message.view(program)?;
    let mut all = view.fields();
    let (_, value) = all.find(|(field, _)| fields.contains(&field.id()))?;
    // Wider and negative numbers wrap like 32-bit ones: only distances matter.
    let signed = || value.as_i64().map(|number| number as u32);
    value.as_u64().map(|number| number as u32).or_else(signed)
}

/// The visitor that keeps nothing but whether the feed is over.
struct Empty {
    last: Option<u32>,
    is_over: bool,
}

impl Visitor for Empty {
    #[inline]
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.is_over |= self.last == Some(template.index());
    }
}
