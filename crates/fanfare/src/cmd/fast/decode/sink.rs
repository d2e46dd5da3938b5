//! Where messages end: written, counted; those of continuous streams decoded, too.

use super::report::Counts;
use crate::cmd::fast::output::Output;
use crate::cmd::fast::packets::Flow;
use fanfare_fast::program::{FieldId, TemplateProgram};
use fanfare_fast::{CodecError, Decoder, Ignore, Message, MessageView, Program, Record};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// An error spoils its packet, not the run.
    pub(crate) keep_going: bool,
    /// Stop after so many messages.
    pub(crate) limit: Option<u64>,
    /// Measure the decoder, which hands over nothing then.
    pub(crate) timed: bool,
    /// A message of this template says that the feed is over.
    pub(crate) last: Option<String>,
}

/// What takes messages in place of the output.
pub(crate) trait Taking {
    /// A message that came at `received`, ns since 1970-01-01 UTC, 0 if that is not known; false
    /// if it cannot be used.
    fn record(&mut self, record: &Record, received: u64) -> io::Result<bool>;

    /// A message of a recording, which has no time.
    fn message(&mut self, message: &Message) -> io::Result<bool>;

    /// Whether nothing more is wanted.
    fn is_full(&self) -> bool;

    /// Writes what is buffered.
    fn flush(&mut self) -> io::Result<()>;
}

pub(crate) struct Sink {
    decoder: Decoder,
    message: Message,
    output: Output,
    taking: Option<Box<dyn Taking>>,
    options: SinkOptions,
    /// The template that says that the feed is over.
    last: Option<u32>,
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
            last,
            output,
            taking: None,
            options,
            counts: Counts::default(),
            decoding: Duration::ZERO,
        }
    }

    /// Messages go there, not to the output.
    pub(crate) fn with_taking(mut self, taking: Box<dyn Taking>) -> Self {
        self.taking = Some(taking);
        self
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Some(taking) = &mut self.taking {
            taking.flush()?;
        }
        self.output.flush()
    }

    /// Whether this is the message of [`SinkOptions::last`].
    pub(crate) fn ends_feed(&self, record: &Record) -> bool {
        self.last.is_some() && record.template_index() == self.last
    }

    /// Writes a message that a channel has delivered.
    #[inline(always)]
    pub(crate) fn record(&mut self, record: &mut Record, received: u64) -> io::Result<Flow> {
        self.counts.messages += 1;
        if let Some(taking) = &mut self.taking {
            let is_used = taking.record(record, received)?;
            self.counts.errors += u64::from(!is_used);
        } else if !self.is_unseen() {
            self.write(record)?;
        }
        Ok(match self.is_full() {
            true => Flow::Break(()),
            false => Flow::Continue(()),
        })
    }

    #[inline(never)]
    fn write(&mut self, record: &mut Record) -> io::Result<()> {
        let view = record.view(self.decoder.program());
        show(view, &mut self.output, &mut self.counts)
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        self.decoder.program()
    }

    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Decodes one message at the front of a continuous stream. Where it is not `whole`, more
    /// bytes may come behind those.
    pub(crate) fn next(&mut self, bytes: &[u8], offset: u64, whole: bool) -> io::Result<Next> {
        let decoded = match (whole, self.is_unseen()) {
            (true, true) => self.decoder.decode(bytes, &mut Ignore).map(Some),
            (true, false) => self.decoder.decode(bytes, &mut self.message).map(Some),
            (false, true) => self.decoder.decode_partial(bytes, &mut Ignore),
            (false, false) => self.decoder.decode_partial(bytes, &mut self.message),
        };
        let next = self.decoded(decoded, offset)?;
        if let Next::Message(_) = next {
            let message = std::mem::take(&mut self.message);
            let delivered = self.deliver(&message);
            self.message = message;
            delivered?;
        }
        Ok(next)
    }

    /// Decodes one message as [`next`](Self::next), of a continuous stream that has a decoder of
    /// its own, and does not deliver it.
    pub(crate) fn take(
        &mut self,
        decoder: &mut Decoder,
        message: &mut Message,
        (bytes, offset, whole): (&[u8], u64, bool),
    ) -> io::Result<Next> {
        let clock = self.options.timed.then(Instant::now);
        let decoded = match whole {
            true => decoder.decode(bytes, message).map(Some),
            false => decoder.decode_partial(bytes, message),
        };
        if let Some(start) = clock {
            self.decoding += start.elapsed();
        }
        self.decoded(decoded, offset)
    }

    fn decoded(
        &mut self,
        decoded: Result<Option<usize>, CodecError>,
        offset: u64,
    ) -> io::Result<Next> {
        match decoded {
            Ok(Some(len)) => {
                self.counts.bytes += len as u64;
                Ok(Next::Message(len))
            }
            Ok(None) => Ok(Next::Partial),
            Err(error) => {
                let _ = self.codec_error(&error, offset)?;
                Ok(Next::Error)
            }
        }
    }

    /// Whether the run's limit of messages is reached.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.options.limit;
        let has_all = limit.is_some_and(|limit| self.counts.messages >= limit);
        has_all || self.taking.as_ref().is_some_and(|taking| taking.is_full())
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
            Flow::Continue(())
        } else {
            Flow::Break(())
        }
    }

    /// Whether nobody wants to see the messages, but for the last one.
    fn is_unseen(&self) -> bool {
        self.taking.is_none() && (self.options.timed || !self.output.wants_messages())
    }

    /// Writes a message that another decoder of the same program has in hand.
    pub(crate) fn deliver(&mut self, message: &Message) -> io::Result<()> {
        self.counts.messages += 1;
        if let Some(taking) = &mut self.taking {
            let is_used = taking.message(message)?;
            self.counts.errors += u64::from(!is_used);
            return Ok(());
        }
        if self.is_unseen() {
            return Ok(());
        }
        let view = message.view(self.decoder.program());
        show(view, &mut self.output, &mut self.counts)
    }
}

/// Writes a message; one that has no such form is an error.
fn show(view: Option<MessageView<'_>>, out: &mut Output, counts: &mut Counts) -> io::Result<()> {
    if let Some(view) = view {
        let written = out.message(view)?;
        counts.errors += u64::from(!written);
    }
    Ok(())
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
