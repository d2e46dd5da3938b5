//! What the servers speak: how a connection begins, how a message is sent, where one ends.

use anyhow::{Context, Result, ensure};
use fanfare_engine::clock::Clock;
use fanfare_fix::codec::{Encoder, Frame, FrameFinder, SendingTime, SessionHeader, SharedBody};
use fanfare_fix::tag;
use fanfare_wire::Precision;
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) const SERVER: &str = "FANFARE";
pub(crate) const PRODUCER: &str = "PRODUCER";

/// The body of each message, to which FIX adds a number.
pub(crate) const SNAPSHOT: &[u8] = b"55=EURUSD\x01262=REQ1\x01268=1\x01\
269=0\x01270=1.23450\x01271=1000000\x01290=1\x0158=a snapshot of the best bid\x01";

const MAX_MESSAGE: usize = 4096;

/// The name of a consumer.
pub(crate) fn consumer(number: usize) -> String {
    format!("CONSUMER{number}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// FIX messages, forwarded unchanged after one byte that confirms the connection.
    Plain,
    /// FIX.4.4 with sessions.
    Fix,
    /// The text protocol of NATS, whose payload is a FIX message.
    Nats,
}

impl Dialect {
    /// Begins a connection, which blocks, as `name`.
    ///
    /// # Errors
    /// The connection breaks, or the server does not answer.
    pub(crate) fn begin(self, stream: &mut TcpStream, name: &str) -> Result<()> {
        let (hello, answer) = match self {
            Self::Plain => (Vec::new(), "+"),
            Self::Fix => (logon(name)?, "\x0110="),
            Self::Nats => (nats_hello(name), "PONG\r\n"),
        };
        stream.write_all(&hello)?;
        let mut came = Vec::new();
        let mut byte = [0];
        // Byte by byte, so that nothing behind the answer is taken.
        while !came.ends_with(answer.as_bytes()) {
            ensure!(
                came.len() < MAX_MESSAGE,
                "no answer to a client's first words"
            );
            stream.read_exact(&mut byte).context("a first answer")?;
            came.extend_from_slice(&byte);
        }
        if self == Self::Fix {
            // The digits of CheckSum(10) and the separator.
            stream.read_exact(&mut [0; 4])?;
        }
        Ok(())
    }

    /// Writes the producer's message with this MsgSeqNum(34) to `out`.
    ///
    /// # Errors
    /// Not expected: the message cannot be encoded.
    pub(crate) fn message(self, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut fields = SNAPSHOT.to_vec();
        fields.extend_from_slice(format!("20001=0-{number}\x01").as_bytes());
        let header = SessionHeader::new(b"FIX.4.4", PRODUCER.as_bytes(), SERVER.as_bytes())?;
        let now = SendingTime::new(Clock::new().read().utc, Precision::Millis);
        let body = SharedBody::new(b"W", &fields)?;
        let mut buffer = [0; MAX_MESSAGE];
        let len = header.write(&mut buffer, number, &now, &body)?;
        let message = buffer.get(..len).context("the message's own length")?;
        out.clear();
        if self == Self::Nats {
            out.extend_from_slice(format!("PUB md {len}\r\n").as_bytes());
        }
        out.extend_from_slice(message);
        if self == Self::Nats {
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Returns the number of whole snapshots at the front of `bytes`, and where they end.
    ///
    /// # Errors
    /// The bytes are something else.
    pub(crate) fn count(self, bytes: &[u8]) -> Result<(u64, usize)> {
        let (mut count, mut done) = (0, 0);
        while let Some((is_snapshot, len)) = match self {
            Self::Nats => nats_message(rest(bytes, done))?,
            Self::Plain | Self::Fix => fix_message(rest(bytes, done))?,
        } {
            count += u64::from(is_snapshot);
            done += len;
        }
        Ok((count, done))
    }
}

fn rest(bytes: &[u8], done: usize) -> &[u8] {
    bytes.get(done..).unwrap_or_default()
}

fn logon(name: &str) -> Result<Vec<u8>> {
    let mut buffer = [0; 256];
    let mut encoder = Encoder::new(&mut buffer, b"FIX.4.4", b"A");
    encoder.str(tag::SENDER_COMP_ID, name);
    encoder.str(tag::TARGET_COMP_ID, SERVER);
    encoder.u64(tag::MSG_SEQ_NUM, 1);
    let now = Clock::new().read().utc;
    encoder.timestamp(tag::SENDING_TIME, now, Precision::Millis);
    encoder
        .u64(tag::ENCRYPT_METHOD, 0)
        .u64(tag::HEART_BT_INT, 60);
    encoder.bool(tag::RESET_SEQ_NUM_FLAG, true);
    let range = encoder.finish()?;
    Ok(buffer.get(range).unwrap_or_default().to_vec())
}

fn nats_hello(name: &str) -> Vec<u8> {
    let subscription = if name == PRODUCER { "" } else { "SUB md 1\r\n" };
    let options = r#"{"verbose":false,"pedantic":false,"lang":"rust","version":"1"}"#;
    format!("CONNECT {options}\r\n{subscription}PING\r\n").into_bytes()
}

/// Whether the message at the front is a snapshot, and its length; `None` if it is not whole.
fn fix_message(bytes: &[u8]) -> Result<Option<(bool, usize)>> {
    match FrameFinder::new(MAX_MESSAGE).find(bytes) {
        Frame::Message { start, end } => {
            let message = bytes.get(start..end).unwrap_or_default();
            let is_snapshot = message.windows(6).any(|part| part == b"\x0135=W\x01");
            Ok(Some((is_snapshot, end)))
        }
        Frame::Partial { .. } => Ok(None),
        Frame::Garbled { why, .. } => anyhow::bail!("{why}"),
    }
}

/// The same for `MSG subject sid length`, the payload behind that line, and an empty line.
fn nats_message(bytes: &[u8]) -> Result<Option<(bool, usize)>> {
    let Some(line) = bytes.iter().position(|&byte| byte == b'\n') else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes.get(..line).unwrap_or_default())?.trim_end();
    if !text.starts_with("MSG ") {
        return Ok(Some((false, line + 1)));
    }
    let len: usize = text.rsplit(' ').next().unwrap_or_default().parse()?;
    let end = line + 1 + len + 2;
    Ok((end <= bytes.len()).then_some((true, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_counted() {
        for dialect in [Dialect::Plain, Dialect::Fix] {
            let (mut two, mut other) = (Vec::new(), Vec::new());
            dialect.message(2, &mut two).unwrap();
            dialect.message(10, &mut other).unwrap();
            let len = two.len();
            two.extend(&other);
            assert_eq!(dialect.count(&two).unwrap(), (2, two.len()));
            assert_eq!(dialect.count(&two[..two.len() - 1]).unwrap(), (1, len));
            assert_eq!(dialect.count(&logon("C").unwrap()).unwrap().0, 0);
        }
        let came = b"MSG md 1 3\r\nabc\r\nPING\r\nMSG md 1 3\r\nab";
        assert_eq!(Dialect::Nats.count(came).unwrap(), (1, 23));
    }
}
