//! The sink of messages: writes and counts them, and decodes those of continuous streams.

use super::report::Counts;
use crate::cmd::fast::output::Output;
use crate::cmd::fast::packets::Flow;
use fanfare_fast::program::{FieldId, TemplateProgram};
use fanfare_fast::{CodecError, Decoder, Ignore, Message, MessageView, Program, Record};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The content at the front of a continuous stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message of this many bytes.
    Message(usize),
    /// The beginning of a message.
    Partial,
    /// Bytes that cannot be decoded.
    Error,
}

/// The options of a sink.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkOptions {
    /// Whether an error ends its packet only, not the run.
    pub(crate) keep_going: bool,
    /// The number of messages to stop after.
    pub(crate) limit: Option<u64>,
    /// Whether to measure the decoder, without delivering messages.
    pub(crate) timed: bool,
    /// The template whose message ends the feed.
    pub(crate) last: Option<String>,
}

/// A consumer of messages in place of the output.
pub(crate) trait Taking {
    /// Takes a message that came at `received`, ns since 1970-01-01 UTC, 0 if that is not known.
    /// Returns false if it cannot be used.
    fn record(&mut self, record: &Record, received: u64) -> io::Result<bool>;

    /// Takes a message of a recording, which has no time.
    fn message(&mut self, message: &Message) -> io::Result<bool>;

    /// Returns whether no more messages are wanted.
    fn is_full(&self) -> bool;

    /// Writes buffered output.
    fn flush(&mut self) -> io::Result<()>;
}

pub(crate) struct Sink {
    decoder: Decoder,
    message: Message,
    output: Output,
    taking: Option<Box<dyn Taking>>,
    options: SinkOptions,
    /// The template of the message that ends the feed.
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

    /// Sets the consumer of messages in place of the output.
    pub(crate) fn with_taking(mut self, taking: Box<dyn Taking>) -> Self {
        self.taking = Some(taking);
        self
    }

    /// Writes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Some(taking) = &mut self.taking {
            taking.flush()?;
        }
        self.output.flush()
    }

    /// Returns whether this is the message of [`SinkOptions::last`].
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

    /// Decodes one message at the front of a continuous stream. Unless `whole`, more bytes may
    /// follow these.
    pub(crate) fn next(&mut self, bytes: &[u8], offset: u64, whole: bool) -> io::Result<Next> {
        let clock = self.options.timed.then(Instant::now);
        let decoded = match (whole, self.is_unseen()) {
            (true, true) => self.decoder.decode(bytes, &mut Ignore).map(Some),
            (true, false) => self.decoder.decode(bytes, &mut self.message).map(Some),
            (false, true) => self.decoder.decode_partial(bytes, &mut Ignore),
            (false, false) => self.decoder.decode_partial(bytes, &mut self.message),
        };
        self.count_time(clock);
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
    /// its own, without delivering it.
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
        self.count_time(clock);
        self.decoded(decoded, offset)
    }

    /// Adds the time since `start` to the decoder's, if it is measured.
    fn count_time(&mut self, start: Option<Instant>) {
        if let Some(start) = start {
            self.decoding += start.elapsed();
        }
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

    /// Returns whether the run's limit of messages is reached.
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

    /// Counts and reports an error of a captured packet, which the text names.
    pub(crate) fn packet_error(&mut self, code: &str, text: &str) -> io::Result<Flow> {
        self.counts.errors += 1;
        self.output.packet_error(code, text)?;
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

    /// Returns whether messages are not shown, except for the last one.
    fn is_unseen(&self) -> bool {
        self.taking.is_none() && (self.options.timed || !self.output.wants_messages())
    }

    /// Writes the current message of another decoder of the same program.
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

/// Returns a message's number in the first of these fields that it has.
pub(crate) fn number(message: &Message, program: &Program, fields: &[FieldId]) -> Option<u32> {
    let view = message.view(program)?;
    let mut all = view.fields();
    let (_, value) = all.find(|(field, _)| fields.contains(&field.id()))?;
    // Wider and negative numbers wrap like 32-bit ones: only distances matter.
    let signed = || value.as_i64().map(|number| number as u32);
    value.as_u64().map(|number| number as u32).or_else(signed)
}
