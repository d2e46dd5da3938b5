//! The peer of testers that do not comply with the session protocol.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::tcp::{Accepted, BindError, Inbox, Listener, Received, Stream};
use fanfare_fix::codec::{
    Decoder, Encoder, FieldWriter, Message, Next, SendingTime, SessionHeader,
};
use fanfare_fix::session::{Now, Version};
use fanfare_fix::{msg_type, tag};

use super::orders::write_report;

/// A server that responds to each NewOrderSingle(D) with an ExecutionReport(8), whatever its number
/// and fields, to a Logon(A) with a Logon, to a TestRequest(1) with a Heartbeat(0), to a Logout(5)
/// with a Logout, and to nothing else. It checks frames and CheckSum(10) but no session: numbers
/// may start at 0, be missing or repeat; its own count on from the first number received.
///
/// It serves the testers of libtrading and Falcon, which a session would disconnect. It is an agent
/// for a spinning thread of its own: it accepts connections once per millisecond and reads from
/// every connection in each duty cycle.
pub struct LenientServer {
    listener: Listener,
    testers: Vec<Tester>,
    decoder: Decoder,
    buffer: Box<[u8]>,
    next_look: u64,
    orders: u64,
    tell: Tell,
}

/// A function that is called with a line for each connection and disconnection.
pub type Tell = Box<dyn FnMut(String) + Send>;

/// The most connections; further ones are closed at once.
const MOST_TESTERS: usize = 64;
/// The bytes that may be queued for a tester that does not read, before it is disconnected.
const MOST_UNSENT: usize = 1 << 20;
/// The interval at which connections are accepted, in nanoseconds.
const LOOK: u64 = 1_000_000;
/// The buffer for one response: an echoed field may be nearly as long as a message can be.
const ANSWER_ROOM: usize = 80 << 10;

struct Tester {
    outbound: Outbound,
    inbox: Inbox,
    session: Option<Speaker>,
    /// The reason why it is to be closed.
    over: Option<String>,
}

/// A stream, and its unsent bytes.
struct Outbound {
    stream: Stream,
    unsent: Vec<u8>,
}

/// The server's side of one conversation.
struct Speaker {
    header: SessionHeader,
    version: Version,
    next_seq: u64,
    answer: Box<[u8]>,
}

impl LenientServer {
    /// Listens on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr, tell: Tell) -> Result<Self, BindError> {
        Ok(Self {
            listener: Listener::bind(address)?,
            testers: Vec::new(),
            decoder: Decoder::new(),
            buffer: vec![0; 256 << 10].into_boxed_slice(),
            next_look: 0,
            orders: 0,
            tell,
        })
    }

    /// Returns the address it listens on.
    ///
    /// # Errors
    /// The system call fails, which is not expected.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Returns the number of orders received.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    fn look_for_callers(&mut self) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.listener.accept()? {
                Accepted::Stream(stream) if self.testers.len() < MOST_TESTERS => {
                    (self.tell)(format!("{} connected", stream.peer()));
                    self.testers.push(Tester {
                        outbound: Outbound {
                            stream,
                            unsent: Vec::new(),
                        },
                        inbox: Inbox::new(),
                        session: None,
                        over: None,
                    });
                    count += 1;
                }
                Accepted::Stream(stream) => {
                    let peer = stream.peer();
                    (self.tell)(format!("{peer} turned away: {MOST_TESTERS} are connected"));
                }
                Accepted::Refused => (self.tell)("a caller turned away: no descriptor".to_owned()),
                Accepted::Nobody => return Ok(count),
            }
        }
    }
}

impl Agent for LenientServer {
    fn name(&self) -> &str {
        "lenient"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = 0;
        if now.mono >= self.next_look {
            self.next_look = now.mono + LOOK;
            work += self.look_for_callers()?;
        }
        let Self {
            testers,
            decoder,
            buffer,
            orders,
            tell,
            ..
        } = self;
        for tester in testers.iter_mut() {
            work += tester.turn(now, buffer, decoder, orders);
        }
        testers.retain(|tester| {
            if let Some(why) = &tester.over {
                tell(format!("{} gone: {why}", tester.outbound.stream.peer()));
            }
            tester.over.is_none()
        });
        Ok(work)
    }
}

impl Tester {
    fn turn(
        &mut self,
        now: Now,
        buffer: &mut [u8],
        decoder: &mut Decoder,
        orders: &mut u64,
    ) -> usize {
        let Self {
            outbound,
            inbox,
            session,
            over,
        } = self;
        let received = inbox.fill(buffer, |room| outbound.stream.receive(room));
        let work = !matches!(received, Ok((Received::Nothing, _)));
        match received {
            Ok((Received::Bytes(_), bytes)) => {
                match answer_all(now, bytes, decoder, session, outbound, orders) {
                    Ok(done) => inbox.keep(bytes.get(done..).unwrap_or_default()),
                    Err(why) => *over = Some(why),
                }
            }
            Ok((Received::Closed, _)) => *over = Some("it closed the connection".to_owned()),
            Ok((Received::Nothing, _)) => {}
            Err(error) => *over = Some(error.to_string()),
        }
        if let Err(error) = outbound.flush() {
            over.get_or_insert(error.to_string());
        }
        usize::from(work)
    }
}

impl Outbound {
    /// Queues a response for the end of the duty cycle, or returns that too much is queued.
    fn push(&mut self, answer: &[u8]) -> Result<(), String> {
        self.unsent.extend_from_slice(answer);
        if self.unsent.len() > MOST_UNSENT {
            self.flush().map_err(|error| error.to_string())?;
        }
        match self.unsent.len() {
            0..=MOST_UNSENT => Ok(()),
            more => Err(format!("{more} bytes wait: it does not read")),
        }
    }

    /// Writes queued bytes to the kernel.
    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.send(&[IoSlice::new(&self.unsent)])? {
                0 => break,
                taken => drop(self.unsent.drain(..taken)),
            }
        }
        Ok(())
    }
}

/// Responds to every whole message. Returns the number of bytes consumed, or why the connection
/// ends.
fn answer_all(
    now: Now,
    bytes: &[u8],
    decoder: &mut Decoder,
    session: &mut Option<Speaker>,
    outbound: &mut Outbound,
    orders: &mut u64,
) -> Result<usize, String> {
    let mut done = 0;
    loop {
        let rest = bytes.get(done..).unwrap_or_default();
        match decoder.next(rest) {
            Next::Message { message, end, .. } => {
                done += end;
                let speaker = match session {
                    Some(speaker) => speaker,
                    None => session.insert(Speaker::for_first(&message)?),
                };
                *orders += u64::from(message.msg_type() == msg_type::NEW_ORDER_SINGLE);
                let (answer, last) = speaker.answer(now, &message, *orders)?;
                outbound.push(answer)?;
                if last {
                    return Err("it logged out".to_owned());
                }
            }
            // Dropped, as a session would; the tester reports the missing response.
            Next::Garbled { end, .. } | Next::Malformed { end, .. } => done += end,
            Next::Partial { skipped, .. } => return Ok(done + skipped),
        }
    }
}

impl Speaker {
    fn for_first(message: &Message<'_>) -> Result<Self, String> {
        let text = |tag| message.get(tag).unwrap_or_default();
        let begin_string = message.begin_string();
        let version = Version::parse(begin_string).ok_or_else(|| {
            let shown = String::from_utf8_lossy(begin_string);
            format!("`{shown}` is no version of FIX")
        })?;
        let (sender, target) = (text(tag::TARGET_COMP_ID), text(tag::SENDER_COMP_ID));
        let header = SessionHeader::new(begin_string, sender, target)
            .map_err(|error| format!("no header for its CompIDs: {error}"))?;
        Ok(Self {
            header,
            version,
            next_seq: message.u64(tag::MSG_SEQ_NUM).unwrap_or(1),
            answer: vec![0; ANSWER_ROOM].into_boxed_slice(),
        })
    }

    /// Returns the response, empty if there is none, and whether it is the last.
    fn answer(
        &mut self,
        now: Now,
        message: &Message<'_>,
        number: u64,
    ) -> Result<(&[u8], bool), String> {
        let version = self.version;
        match message.msg_type() {
            msg_type::NEW_ORDER_SINGLE => {
                let report = |out: &mut FieldWriter<'_>| {
                    write_report(out, number, message, version);
                };
                Ok((self.encode(now, msg_type::EXECUTION_REPORT, report)?, false))
            }
            msg_type::LOGON => {
                let interval = message.get(tag::HEART_BT_INT).unwrap_or(b"30");
                let reset = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
                let logon = |out: &mut FieldWriter<'_>| {
                    out.char(tag::ENCRYPT_METHOD, b'0')
                        .field(tag::HEART_BT_INT, interval);
                    if reset {
                        out.char(tag::RESET_SEQ_NUM_FLAG, b'Y');
                    }
                };
                Ok((self.encode(now, msg_type::LOGON, logon)?, false))
            }
            msg_type::TEST_REQUEST => {
                let id = message.get(tag::TEST_REQ_ID).unwrap_or(b"TEST");
                let beat = |out: &mut FieldWriter<'_>| {
                    out.field(tag::TEST_REQ_ID, id);
                };
                Ok((self.encode(now, msg_type::HEARTBEAT, beat)?, false))
            }
            msg_type::LOGOUT => Ok((self.encode(now, msg_type::LOGOUT, |_| {})?, true)),
            _ => Ok((&[], false)),
        }
    }

    fn encode(
        &mut self,
        now: Now,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<&[u8], String> {
        let time = SendingTime::new(now.utc, self.version.precision());
        let header = &self.header;
        let mut encoder =
            Encoder::with_header(&mut self.answer, header, msg_type, self.next_seq, &time);
        body(&mut encoder);
        let range = encoder
            .finish()
            .map_err(|error| format!("cannot answer: {error}"))?;
        self.next_seq += 1;
        Ok(self.answer.get(range).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::clock::Clock;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};
    use std::sync::mpsc::{Receiver, channel};

    fn server() -> (LenientServer, Receiver<String>) {
        let (sender, told) = channel();
        let tell = Box::new(move |line| drop(sender.send(line)));
        let server = LenientServer::bind((Ipv4Addr::LOCALHOST, 0).into(), tell).unwrap();
        (server, told)
    }

    fn framed(fields: &str) -> Vec<u8> {
        let fields = fields.replace('|', "\x01");
        let mut message = format!("8=FIX.4.2\x019={}\x01{fields}", fields.len()).into_bytes();
        let sum = message
            .iter()
            .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        message
    }

    /// Runs the server until it has responded, and returns its response from the SendingTime on.
    fn answer(server: &mut LenientServer, stream: &mut TcpStream, sent: &[&[u8]]) -> String {
        let mut clock = Clock::new();
        for part in sent {
            stream.write_all(part).unwrap();
            server.do_work(clock.read()).unwrap();
        }
        stream.set_nonblocking(true).unwrap();
        let mut room = [0; 4096];
        for _ in 0..100_000 {
            server.do_work(clock.read()).unwrap();
            if let Ok(count) = stream.read(&mut room) {
                stream.set_nonblocking(false).unwrap();
                let text = String::from_utf8_lossy(&room[..count]).replace('\x01', "|");
                let (head, rest) = text.split_once("|52=").unwrap();
                let head = head.split_once("|35=").unwrap().1;
                return format!("35={head} {}", rest.split_once('|').unwrap().1);
            }
            std::thread::yield_now();
        }
        panic!("no answer");
    }

    #[test]
    fn a_tester_that_counts_from_0_and_sends_half_an_order_is_answered() {
        let (mut server, told) = server();
        let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
        let logon = framed("35=A|49=HERMES|56=INET|34=0|52=20261121-10:00:00|98=0|108=30|");
        let said = answer(&mut server, &mut stream, &[&logon]);
        assert!(
            said.starts_with("35=A|49=INET|56=HERMES|34=0 98=0|108=30|"),
            "{said}"
        );
        // The order of Falcon: without an order's fields, head and body in two writes.
        let order = framed("35=D|49=HERMES|56=INET|34=1|52=20261121-10:00:00|98=0|108=30|");
        let said = answer(&mut server, &mut stream, &[&order[..60], &order[60..]]);
        let report = "35=8|49=INET|56=HERMES|34=1 37=1|17=1|20=0|150=0|39=0|151=0|14=0|6=0|";
        assert!(said.starts_with(report), "{said}");
        let logout = framed("35=5|49=HERMES|56=INET|34=1|52=20261121-10:00:00|");
        let said = answer(&mut server, &mut stream, &[&logout]);
        assert!(
            said.starts_with("35=5|49=INET|56=HERMES|34=2 10="),
            "{said}"
        );
        assert_eq!((server.orders(), server.testers.len()), (1, 0));
        let told: Vec<String> = told.try_iter().collect();
        assert!(told[1].ends_with("gone: it logged out"), "{told:?}");
    }

    #[test]
    fn noise_is_skipped_and_what_has_no_header_is_closed() {
        let (mut server, told) = server();
        let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
        let beat = framed("35=1|49=A|56=B|34=7|52=20261121-10:00:00|112=x|");
        let mut broken = beat.clone();
        broken[30] ^= 1;
        let sent: [&[u8]; 3] = [b"GET / HTTP/1.1\r\n\r\n", &broken, &beat];
        let said = answer(&mut server, &mut stream, &sent);
        assert!(said.starts_with("35=0|49=B|56=A|34=7 112=x|"), "{said}");
        let mut other = TcpStream::connect(server.address().unwrap()).unwrap();
        other.write_all(&framed("35=A|34=1|98=0|")).unwrap();
        let mut clock = Clock::new();
        let gone = loop {
            server.do_work(clock.read()).unwrap();
            if let Some(line) = told.try_iter().find(|line| line.contains("gone")) {
                break line;
            }
            std::thread::yield_now();
        };
        assert!(gone.contains("gone: no header for its CompIDs: "), "{gone}");
        assert_eq!(server.testers.len(), 1);
    }
}
