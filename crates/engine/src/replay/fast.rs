//! Responses in FAST: Logon(A), MarketDataRequest(V) and Logout(5) are sent in FIX, on a connection
//! for each request; Logon(A), the messages and Logout(5) are received in FAST.

use super::copies::Copies;
use super::{
    APPL_ID, Answer, Asked, Caller, FastReplay, MOST_OF_A_NUMBER, ReplaySource, write_range,
};
use crate::clock;
use fanfare_fast::program::{FieldId, Op};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::{Cell, Decoder, Program, Record};
use fanfare_feed::{Deframer, Header, SequenceField};
use fanfare_fix::codec::{EncodeError, Encoder, FieldWriter};
use fanfare_fix::session::{ApplVerId, Version};
use fanfare_fix::tag;
use fanfare_wire::{Precision, UtcTimestamp};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The interval at which a waiting thread checks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The decoder of responses.
pub(super) struct Reader {
    deframer: Deframer,
    header: Header,
    longest: usize,
    messages: Messages,
    copies: Copies,
}

struct Messages {
    decoder: Decoder,
    numbers: Vec<FieldId>,
}

/// The role of a message in a response.
enum Part {
    Logon,
    Logout(String),
    Numbered(u32),
    Other,
}

impl Reader {
    pub(super) fn new(replay: FastReplay) -> io::Result<Self> {
        let FastReplay {
            program,
            options,
            header,
            number,
            longest,
        } = replay;
        let numbers = numbers(&program, &number)?;
        Ok(Self {
            deframer: Deframer::new(header, longest),
            header,
            longest,
            messages: Messages {
                decoder: Decoder::with_options(program, options),
                numbers,
            },
            copies: Copies::default(),
        })
    }

    /// Begins a new connection, without any bytes of the last one.
    fn begin(&mut self) {
        self.deframer = Deframer::new(self.header, self.longest);
        self.copies = Copies::default();
    }
}

impl Messages {
    fn part(&self, record: &mut Record) -> Part {
        let program = self.decoder.program();
        if let Some(view) = record.view(program) {
            let text = |tag: u32| view.fields().tag(tag)?.as_str();
            match text(tag::MSG_TYPE) {
                Some("A") => return Part::Logon,
                Some("5") => return Part::Logout(text(tag::TEXT).unwrap_or_default().to_owned()),
                _ => {}
            }
        }
        let number = self
            .numbers
            .iter()
            .find_map(|id| match record.get(program, *id, 0) {
                Cell::Unsigned(number) => u32::try_from(number).ok(),
                _ => None,
            });
        number.map_or(Part::Other, Part::Numbered)
    }
}

/// Returns the fields with the numbers of messages.
///
/// # Errors
///
/// No template has such a field, or none can be a Logon(A), or a Logout(5).
pub(super) fn numbers(program: &Program, number: &SequenceField) -> io::Result<Vec<FieldId>> {
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let numbers = number.find(program);
    if numbers.is_empty() {
        return wrong(format!(
            "no template has a field `{number}` for the numbers of messages"
        ));
    }
    for (name, msg_type) in [("Logon(A)", "A"), ("Logout(5)", "5")] {
        if !may_be(program, msg_type) {
            return wrong(format!(
                "no template can have MsgType(35) `{msg_type}`: the {name} of a replay is in FAST"
            ));
        }
    }
    Ok(numbers)
}

/// Returns whether a message of some template can have this MsgType(35).
fn may_be(program: &Program, msg_type: &str) -> bool {
    program.templates().iter().any(|template| {
        let mut fields = program.template_fields(template).iter();
        let field = fields.find(|id| program.field(**id).tag() == Some(tag::MSG_TYPE));
        match field.map(|id| program.op(*id)) {
            Some(Op::Text(op)) if op.operator == OperatorKind::Constant => op
                .initial
                .is_some_and(|text| program.text(text) == msg_type.as_bytes()),
            Some(Op::Text(_)) => true,
            _ => false,
        }
    })
}

/// Executes requests until the caller ends.
pub(super) fn run(caller: &Caller, source: &ReplaySource, mut reader: Reader) {
    while let Some(asked) = caller.next() {
        let outcome = Request::open(caller, source, asked).and_then(|mut request| {
            reader.begin();
            request.run(&mut reader)
        });
        let end = match outcome {
            Ok(()) => Answer::Done,
            Err(why) => Answer::Refused(why),
        };
        if !caller.answer(end) {
            return;
        }
    }
}

/// A request on its connection.
struct Request<'a> {
    caller: &'a Caller,
    source: &'a ReplaySource,
    run: u64,
    range: Range<u32>,
    stream: TcpStream,
    /// MsgSeqNum(34) of the next message to be sent.
    next: u64,
    is_logged_on: bool,
    /// The start of the timeout: the time of the logon, or of the last message of the range. Other
    /// messages, such as Heartbeat(0), do not extend the timeout, and messages of the range extend
    /// it at most as often as messages were requested.
    since: Instant,
    /// The number of messages that may still extend the timeout.
    extensions: u32,
    /// Whether Logout(5) was sent.
    is_logged_out: bool,
    /// The messages received last, which have this number. The next number, or the end of the
    /// response, shows that they are all.
    number: u32,
    records: Vec<Record>,
    /// The last number that had too many messages, all of which are left out.
    excessive: Option<u32>,
}

impl<'a> Request<'a> {
    fn open(caller: &'a Caller, source: &'a ReplaySource, asked: Asked) -> Result<Self, String> {
        let (address, Asked { run, range }) = (source.address, asked);
        if run != caller.run() {
            return Err("cancelled".into());
        }
        let connect = || {
            let stream = TcpStream::connect_timeout(&address, source.timeout)?;
            stream.set_read_timeout(Some(LOOK))?;
            stream.set_write_timeout(Some(source.timeout))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: io::Error| {
            format!("cannot connect to the replay at {address}: {error}")
        })?;
        Ok(Self {
            caller,
            source,
            since: Instant::now(),
            extensions: range.end.saturating_sub(range.start),
            run,
            range,
            stream,
            next: 1,
            is_logged_on: false,
            is_logged_out: false,
            number: 0,
            records: Vec::new(),
            excessive: None,
        })
    }

    /// Logs on, requests the range, takes the response and logs out, whatever ends it.
    fn run(&mut self, reader: &mut Reader) -> Result<(), String> {
        let outcome = self.logon().and_then(|()| self.receive(reader));
        self.logout();
        outcome
    }

    fn receive(&mut self, reader: &mut Reader) -> Result<(), String> {
        loop {
            while let Some(packet) = reader.deframer.next_packet().map_err(text)? {
                if reader.copies.is_copy(packet.bytes) {
                    continue;
                }
                let mut rest = packet.bytes;
                // As for a packet of the lines.
                reader.messages.decoder.reset();
                while !rest.is_empty() {
                    let mut record = Record::new();
                    let len = reader.messages.decoder.decode_record(rest, &mut record);
                    let len = len.map_err(|error| {
                        format!("the answer of the replay cannot be decoded: {error}")
                    })?;
                    rest = rest.get(len..).unwrap_or_default();
                    let part = reader.messages.part(&mut record);
                    if self.is_over(part, record)? {
                        return Ok(());
                    }
                }
            }
            match self.stream.read(reader.deframer.space()) {
                Ok(0) => return Err("the replay closed the connection".into()),
                Ok(len) => reader.deframer.filled(len),
                Err(error) if is_a_pause(&error) => {}
                Err(error) => return Err(format!("the replay's connection: {error}")),
            }
            if self.caller.stop.is_raised() {
                return Err("stopped".into());
            }
            if self.run != self.caller.run() {
                return Err("cancelled".into());
            }
            if self.since.elapsed() >= self.source.timeout {
                return Err("the replay does not answer".into());
            }
        }
    }

    /// Handles a message; returns true if it ends the response.
    fn is_over(&mut self, part: Part, record: Record) -> Result<bool, String> {
        match part {
            Part::Logon if !self.is_logged_on => {
                (self.is_logged_on, self.since) = (true, Instant::now());
                self.ask()?;
            }
            Part::Logon | Part::Other => {}
            Part::Logout(text) => {
                // The exchange waits for it.
                self.logout();
                return match (self.is_logged_on, text.as_str()) {
                    (true, _) => self.pass_on().map(|()| true),
                    (false, "") => Err("the replay refused the Logon".into()),
                    (false, text) => Err(format!("the replay refused the Logon: {text:?}")),
                };
            }
            Part::Numbered(number) => self.take(number, record)?,
        }
        Ok(false)
    }

    /// Takes a message, and passes on those before it if they have another number.
    fn take(&mut self, number: u32, record: Record) -> Result<(), String> {
        if number != self.number {
            self.pass_on()?;
        }
        if !self.range.contains(&number) || self.excessive == Some(number) {
            return Ok(());
        }
        if self.records.len() >= MOST_OF_A_NUMBER {
            // It stays missing, as a part of it would be taken for all; the numbers behind it come.
            self.excessive = Some(number);
            self.records = Vec::new();
            return Ok(());
        }
        if number != self.number && self.extensions > 0 {
            (self.extensions, self.since) = (self.extensions - 1, Instant::now());
        }
        self.number = number;
        self.records.push(record);
        Ok(())
    }

    /// Passes on the messages that have the last number.
    fn pass_on(&mut self) -> Result<(), String> {
        let (number, records) = (self.number, std::mem::take(&mut self.records));
        match records.is_empty() || self.caller.answer(Answer::Fast { number, records }) {
            true => Ok(()),
            false => Err("stopped".into()),
        }
    }

    fn logon(&mut self) -> Result<(), String> {
        let source = self.source;
        self.send(b"A", |out| {
            out.u64(tag::ENCRYPT_METHOD, 0).u64(tag::HEART_BT_INT, 30);
            out.bool(tag::RESET_SEQ_NUM_FLAG, true);
            if let Some(username) = &source.username {
                out.str(tag::USERNAME, username);
            }
            if let Some(password) = &source.password {
                out.str(tag::PASSWORD, password);
            }
            if source.version == Version::Fixt11 {
                out.u64(tag::DEFAULT_APPL_VER_ID, ApplVerId::Fix50Sp2 as u64);
            }
        })
    }

    /// Sends Logout(5), once. Whether it arrives does not matter for the response.
    fn logout(&mut self) {
        if !std::mem::replace(&mut self.is_logged_out, true) {
            let _ = self.send(b"5", |_| {});
        }
    }

    fn ask(&mut self) -> Result<(), String> {
        let (source, range) = (self.source, self.range.clone());
        self.send(b"V", |out| {
            if let Some(id) = &source.appl_id {
                out.str(APPL_ID, id);
            }
            write_range(out, &range);
        })?;
        self.caller.count();
        Ok(())
    }

    fn send(
        &mut self,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<(), String> {
        let mut buffer = [0; 1_024];
        let place = self.encode(&mut buffer, msg_type, body).map_err(text)?;
        let message = buffer.get(place).unwrap_or_default();
        self.next += 1;
        let sent = self.stream.write_all(message);
        sent.map_err(|error| format!("cannot write to the replay: {error}"))
    }

    fn encode(
        &self,
        buffer: &mut [u8],
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<Range<usize>, EncodeError> {
        let version = self.source.version.begin_string();
        let mut out = Encoder::new(buffer, version.as_bytes(), msg_type);
        out.u64(tag::MSG_SEQ_NUM, self.next);
        out.str(tag::SENDER_COMP_ID, &self.source.sender);
        out.str(tag::TARGET_COMP_ID, &self.source.target);
        let now = UtcTimestamp::from_nanos(clock::utc().cast_signed());
        out.timestamp(tag::SENDING_TIME, now, Precision::Millis);
        body(&mut out);
        out.finish()
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns whether the read only timed out or was interrupted.
fn is_a_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
