//! The connections of the benchmark: loopback streams, and FIX sessions logged on by hand, so that
//! the measuring side does as little work as possible.

use super::{Receivers, SNAPSHOT};
use fanfare_engine::clock::Clock;
use fanfare_engine::tcp::{Received, Stream};
use fanfare_fix::codec::{EncodeError, Encoder, SendingTime, SessionHeader, SharedBody};
use fanfare_fix::tag;
use fanfare_gateway::Contract;
use fanfare_wire::Precision;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// `DeliveryContract(20010)`.
const CONTRACT: u32 = 20_010;

/// Connections that log on at a time.
const AT_A_TIME: usize = 200;

/// Connects to `address` `count` times.
///
/// # Errors
/// A connection was refused.
pub(in crate::bench) fn connect(address: SocketAddr, count: usize) -> io::Result<Vec<Stream>> {
    (0..count)
        .map(|_| Stream::new(TcpStream::connect(address)?))
        .collect()
}

/// Opens `count` loopback connections. Returns the ends that send, and those that receive.
///
/// # Errors
/// No descriptor is left.
pub(in crate::bench) fn pairs(count: usize) -> io::Result<(Vec<Stream>, Vec<Stream>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut near = Vec::with_capacity(count);
    let mut far = Vec::with_capacity(count);
    for _ in 0..count {
        far.extend(connect(address, 1)?);
        near.push(Stream::new(listener.accept()?.0)?);
    }
    Ok((near, far))
}

/// Logs each of `streams` on as `<name><number>` to the peer called `FANFARE`, without heartbeats,
/// and returns their receivers once all Logons are confirmed.
///
/// # Errors
/// A connection broke, or not all are logged on after 20 s.
pub(in crate::bench) fn log_on(streams: Vec<Stream>, name: &str) -> io::Result<Receivers> {
    log_on_from(0, streams, name)
}

/// Connects to `address` `count` times and logs each connection on as [`log_on`] does, a few at a
/// time: a gateway closes the oldest of many connections that have not logged on.
///
/// # Errors
/// Those of [`connect`] and [`log_on`].
pub(super) fn connect_and_log_on(
    address: SocketAddr,
    count: usize,
    name: &str,
) -> io::Result<Receivers> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let streams = connect(address, AT_A_TIME.min(count - all.len()))?;
        all.extend(log_on_from(all.len(), streams, name)?.into_streams());
    }
    Receivers::new(all)
}

/// Logs on as [`log_on`] does, with numbers from `first` on.
fn log_on_from(first: usize, streams: Vec<Stream>, name: &str) -> io::Result<Receivers> {
    for (i, stream) in streams.iter().enumerate() {
        let mut buf = [0; 256];
        let sender = format!("{name}{}", first + i);
        let logon = logon(&mut buf, &sender).map_err(io::Error::other)?;
        send_all(stream, logon)?;
    }
    let mut receivers = Receivers::new(streams)?;
    receivers.each_has_one(|_, _| ())?;
    Ok(receivers)
}

fn logon<'b>(buf: &'b mut [u8], sender: &str) -> Result<&'b [u8], EncodeError> {
    let mut encoder = Encoder::new(buf, b"FIX.4.4", b"A");
    encoder
        .str(tag::SENDER_COMP_ID, sender)
        .str(tag::TARGET_COMP_ID, "FANFARE");
    encoder.u64(tag::MSG_SEQ_NUM, 1);
    encoder.timestamp(
        tag::SENDING_TIME,
        Clock::new().read().utc,
        Precision::Millis,
    );
    encoder
        .u64(tag::ENCRYPT_METHOD, 0)
        .u64(tag::HEART_BT_INT, 0);
    encoder.bool(tag::RESET_SEQ_NUM_FLAG, true);
    let range = encoder.finish()?;
    Ok(buf.get(range).unwrap_or(&[]))
}

/// Sends V for bids and offers of an instrument, five levels deep, as the second message of a
/// session that was [logged on](log_on) with this name; with the contract, if one is given.
///
/// # Errors
/// The connection broke.
pub(in crate::bench) fn subscribe(
    stream: &Stream,
    sender: &str,
    symbol: &str,
    contract: Option<Contract>,
) -> io::Result<()> {
    let mut buf = [0; 512];
    let mut encoder = Encoder::new(&mut buf, b"FIX.4.4", b"V");
    encoder
        .str(tag::SENDER_COMP_ID, sender)
        .str(tag::TARGET_COMP_ID, "FANFARE");
    encoder.u64(tag::MSG_SEQ_NUM, 2);
    let now = Clock::new().read().utc;
    encoder.timestamp(tag::SENDING_TIME, now, Precision::Millis);
    encoder.str(tag::MD_REQ_ID, "r1");
    encoder.u64(tag::SUBSCRIPTION_REQUEST_TYPE, 1);
    encoder.u64(tag::MARKET_DEPTH, 5).u64(265, 1);
    encoder.u64(tag::NO_MD_ENTRY_TYPES, 2);
    encoder
        .char(tag::MD_ENTRY_TYPE, b'0')
        .char(tag::MD_ENTRY_TYPE, b'1');
    encoder.u64(tag::NO_RELATED_SYM, 1).str(tag::SYMBOL, symbol);
    if let Some(contract) = contract {
        encoder.str(CONTRACT, contract.name());
    }
    let range = encoder.finish().map_err(io::Error::other)?;
    send_all(stream, buf.get(range).unwrap_or(&[]))
}

/// A producer's session, logged on, that sends marked snapshots.
pub(in crate::bench) struct Producer {
    stream: Stream,
    header: SessionHeader,
    seq: u64,
    clock: Clock,
    fields: Vec<u8>,
    out: Box<[u8]>,
}

impl Producer {
    /// Connects and logs on.
    ///
    /// # Errors
    /// The connection was refused or broke.
    pub(in crate::bench) fn log_on(address: SocketAddr) -> io::Result<Self> {
        let stream = connect(address, 1)?.remove(0);
        let mut buf = [0; 256];
        let logon = logon(&mut buf, "PRODUCER").map_err(io::Error::other)?;
        send_all(&stream, logon)?;
        let mut answer = [0; 256];
        while stream.receive(&mut answer)? == Received::Nothing {
            std::thread::yield_now();
        }
        let header = SessionHeader::new(b"FIX.4.4", b"PRODUCER", b"FANFARE");
        Ok(Self {
            stream,
            header: header.map_err(io::Error::other)?,
            seq: 1,
            clock: Clock::new(),
            fields: Vec::new(),
            out: vec![0; 4096].into_boxed_slice(),
        })
    }

    /// Sends the next snapshot. Returns the monotonic time at which the send began.
    ///
    /// # Errors
    /// The connection broke.
    pub(in crate::bench) fn send(&mut self) -> io::Result<u64> {
        self.seq += 1;
        write_marked(&mut self.fields, self.seq);
        let now = self.clock.read();
        let time = SendingTime::new(now.utc, Precision::Millis);
        let body = SharedBody::new(b"W", &self.fields).map_err(io::Error::other)?;
        let len = self.header.write(&mut self.out, self.seq, &time, &body);
        let message = self
            .out
            .get(..len.map_err(io::Error::other)?)
            .unwrap_or(&[]);
        let began = self.clock.read().mono;
        send_all(&self.stream, message)?;
        Ok(began)
    }
}

/// Writes the fields of the snapshot that a producer sends with this MsgSeqNum(34).
fn write_marked(fields: &mut Vec<u8>, seq: u64) {
    fields.clear();
    fields.extend_from_slice(SNAPSHOT);
    fields.extend_from_slice(format!("20001=0-{seq}\x01").as_bytes());
}

/// Returns the first snapshot after the Logon as the first consumer would receive it.
///
/// # Errors
/// The message does not fit its buffer, which is not expected.
pub(in crate::bench) fn sample_message() -> io::Result<Vec<u8>> {
    let header = SessionHeader::new(b"FIX.4.4", b"FANFARE", b"CONSUMER0");
    let time = SendingTime::new(Clock::new().read().utc, Precision::Millis);
    let mut fields = Vec::new();
    write_marked(&mut fields, 2);
    let body = SharedBody::new(b"W", &fields).map_err(io::Error::other)?;
    let mut out = vec![0; 1024];
    let len = header.and_then(|header| header.write(&mut out, 2, &time, &body));
    out.truncate(len.map_err(io::Error::other)?);
    Ok(out)
}

/// Sends all of `bytes`, and retries while the kernel's buffer is full.
pub(crate) fn send_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = stream.send(&[IoSlice::new(bytes)])?;
        if taken == 0 {
            std::thread::yield_now();
        }
        bytes = bytes.get(taken..).unwrap_or(&[]);
    }
    Ok(())
}
