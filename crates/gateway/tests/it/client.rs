//! A FIX counterparty that is a plain socket. Its messages are written out in the tests.

use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_peers::fix::{framed, wire};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A time longer than any step takes, and shorter than any time-out of a test runner.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    name: String,
    /// BeginString(8).
    version: &'static str,
    /// Additional fields of the header.
    pub(crate) header: String,
    seq: u64,
    bytes: Vec<u8>,
}

impl Client {
    /// Connects without sending anything.
    pub(crate) fn connect(to: SocketAddr, name: &str) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            name: name.to_owned(),
            version: "FIX.4.4",
            header: String::new(),
            seq: 1,
            bytes: Vec::new(),
        }
    }

    /// Accepts a connection and answers its Logon, as the counterparty of a session that connects,
    /// which names this side `name` and itself `PLANT`. Returns the Logon, too.
    pub(crate) fn accept(listener: &TcpListener, name: &str) -> (Self, String) {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self {
            stream,
            name: name.to_owned(),
            version: "FIX.4.4",
            header: String::new(),
            seq: 1,
            bytes: Vec::new(),
        };
        let logon = client.receive().expect("a Logon");
        assert!(logon.contains("|35=A|"), "{logon}");
        client.send("A", "98=0|108=30|141=Y|");
        (client, logon)
    }

    /// Connects and logs on without heartbeats, which would be interleaved on a slow machine.
    pub(crate) fn log_on(to: SocketAddr, name: &str) -> Self {
        Self::log_on_in(to, name, "FIX.4.4", "")
    }

    /// Logs on as `log_on` does, in this version and with additional fields in the Logon.
    pub(crate) fn log_on_in(to: SocketAddr, name: &str, version: &'static str, more: &str) -> Self {
        let mut client = Self::connect(to, name);
        client.version = version;
        client.send("A", &format!("98=0|108=0|141=Y|{more}"));
        let answer = client.receive().expect("an answer to the Logon");
        assert!(answer.contains("|35=A|"), "{answer}");
        client
    }

    /// Sends a message with the next number. `body` follows SendingTime(52).
    pub(crate) fn send(&mut self, msg_type: &str, body: &str) {
        self.send_numbered(self.seq, msg_type, body);
        self.seq += 1;
    }

    /// Returns the MsgSeqNum(34) of the next message.
    pub(crate) const fn next_number(&self) -> u64 {
        self.seq
    }

    /// Sets the MsgSeqNum(34) of the next message.
    pub(crate) const fn skip_to(&mut self, number: u64) {
        self.seq = number;
    }

    pub(crate) fn send_numbered(&mut self, seq: u64, msg_type: &str, body: &str) {
        let body = format!("{}{body}", self.header);
        let inner = inner(&self.name, seq, msg_type, &body);
        let bytes = wire(&framed(self.version, &inner));
        self.stream.write_all(&bytes).unwrap();
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        // The gateway may have closed already, and the test checks what it reads.
        let _ = self.stream.write_all(bytes);
    }

    /// Returns the next message with `|` for SOH, or `None` when the connection was closed.
    pub(crate) fn receive(&mut self) -> Option<String> {
        let finder = FrameFinder::new(1 << 20);
        loop {
            if let Frame::Message { start, end } = finder.find(&self.bytes) {
                let text = String::from_utf8_lossy(&self.bytes[start..end]).replace('\x01', "|");
                self.bytes.drain(..end);
                return Some(text);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.bytes.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                // With a time-out, a read that was stopped and continued is not restarted.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => panic!("{}: {e}", self.name),
            }
        }
    }

    /// Checks that the connection is closed without a byte.
    pub(crate) fn assert_closed_silently(mut self) {
        assert_eq!(self.receive(), None, "an answer where none may be");
        assert!(self.bytes.is_empty(), "{:?}", self.bytes);
    }
}

/// Returns a whole message with correct BodyLength(9) and CheckSum(10).
pub(crate) fn message(sender: &str, seq: u64, msg_type: &str, body: &str) -> Vec<u8> {
    frame(&inner(sender, seq, msg_type, body))
}

fn inner(sender: &str, seq: u64, msg_type: &str, body: &str) -> String {
    let time = fanfare_engine::clock::Clock::new().read().utc;
    let time = time.text(fanfare_wire::Precision::Millis);
    format!("35={msg_type}|49={sender}|56=PLANT|34={seq}|52={time}|{body}")
}

/// Puts `inner` between header and trailer, with `|` for SOH.
pub(crate) fn frame(inner: &str) -> Vec<u8> {
    wire(&framed("FIX.4.4", inner))
}

/// Returns the value of a field of a message with `|`.
pub(crate) fn value(message: &str, tag: u32) -> Option<&str> {
    message
        .split('|')
        .find_map(|field| field.strip_prefix(&format!("{tag}=")))
}
