//! The lines of a feed, received and arbitrated: datagrams in, each packet once and in order.

use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::udp::{Receiver, ReceiverConfig, SmallBuffer};
use fanfare_fast::{Decoder, Program};
use fanfare_feed::{
    Arbiter, ArbiterConfig, Event, Gap, Line, MessageNumbers, Pace, SequenceField, Start, Unit,
    Verdict,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Packets without numbers that wait for the lines to fall silent.
const MOST_HELD: usize = 16;
/// Datagrams taken from a line in one turn.
const BATCH: usize = 64;
/// The longest datagram there is.
const DATAGRAM: usize = 65_536;
/// Datagrams that are counted of one line at the end.
const MOST_UNREAD: u64 = 1 << 20;
/// The receive buffer that the kernel is asked for on each line, bytes.
const BUFFER: usize = 32 << 20;

/// Takes packets.
pub trait Packets {
    /// Why it cannot go on.
    type Error: From<io::Error>;

    /// Takes one, of which the first `skip` messages were delivered before; whether to go on.
    ///
    /// # Errors
    /// Ends the turn.
    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool, Self::Error>;

    /// These sequence numbers were on no line.
    fn gap(&mut self, gap: Gap);
}

/// Where a feed comes from.
#[derive(Debug, Clone)]
pub struct LinesConfig {
    /// One group, or up to four with the same feed.
    pub groups: Vec<SocketAddrV4>,
    /// Address of the interface.
    pub interface: Ipv4Addr,
    /// How long a missing packet is waited for.
    pub gap_timeout: Duration,
}

/// One line, or several with the same feed, arbitrated by the sequence numbers of their messages;
/// packets without any wait until the lines have been silent for the gap's time, as the end of a
/// feed does. With one line packets pass as they come.
pub struct Lines {
    receivers: Vec<Receiver>,
    poller: Poller,
    numbers: Option<MessageNumbers>,
    arbiter: Arbiter,
    held: Vec<Vec<u8>>,
    gap_timeout: u64,
    last: u64,
    pace: Pace,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Datagrams received.
    pub datagrams: usize,
    /// Whether whoever takes the packets wants more.
    pub go_on: bool,
}

impl Lines {
    /// Joins the groups.
    ///
    /// # Errors
    /// A group cannot be joined on this interface; its text says which. Several lines whose
    /// templates have no sequence number cannot be arbitrated.
    pub fn open(config: &LinesConfig, program: &Arc<Program>) -> io::Result<Self> {
        check(config.groups.len(), program)?;
        let poller = Poller::new(config.groups.len())?;
        let mut receivers = Vec::new();
        for (i, group) in config.groups.iter().enumerate() {
            let receiver = ReceiverConfig {
                batch: BATCH,
                datagram: DATAGRAM,
                buffer: BUFFER,
                interface: config.interface,
                ..ReceiverConfig::new(*group)
            };
            let receiver = Receiver::open(&receiver).map_err(|e| {
                let text = format!("cannot receive {group} on {}: {e}", config.interface);
                io::Error::new(e.kind(), text)
            })?;
            poller.add(&receiver, Token(i as u64), Interest::Read)?;
            receivers.push(receiver);
        }
        let gap_timeout = u64::try_from(config.gap_timeout.as_nanos()).unwrap_or(u64::MAX);
        let decoder = Decoder::new(Arc::clone(program));
        let several = receivers.len() > 1;
        let numbers = MessageNumbers::new(decoder, &SequenceField::Auto).filter(|_| several);
        Ok(Self {
            numbers,
            receivers,
            poller,
            arbiter: Arbiter::new(ArbiterConfig {
                gap_timeout,
                start: Start::First { wait: gap_timeout },
                ..ArbiterConfig::default()
            }),
            held: Vec::new(),
            gap_timeout,
            last: 0,
            pace: Pace::new(gap_timeout),
        })
    }

    /// Takes what has come, at most one batch from each line, without waiting. `now` is monotonic,
    /// in nanoseconds.
    ///
    /// # Errors
    /// The socket's, or those of `to`.
    pub fn turn<P: Packets>(&mut self, now: u64, to: &mut P) -> Result<Turn, P::Error> {
        let Self {
            receivers,
            numbers,
            arbiter,
            held,
            ..
        } = self;
        let (mut datagrams, mut go_on, mut is_behind) = (0, true, false);
        let time = self.pace.time(now);
        for (index, receiver) in receivers.iter_mut().enumerate() {
            let count = receiver.receive()?;
            datagrams += count;
            is_behind |= count >= BATCH;
            for i in 0..count {
                let bytes = receiver.datagram(i).bytes;
                let mut desk = Desk {
                    numbers: numbers.as_mut(),
                    arbiter,
                    held,
                };
                go_on &= desk.receive(index, time, bytes, to)?;
            }
        }
        if datagrams > 0 || self.last == 0 {
            self.last = now;
        }
        self.pace.took(datagrams, is_behind);
        self.arbiter.handle_timeout(time);
        go_on &= drain(&mut self.arbiter, to)? && self.release(now, to)?;
        Ok(Turn { datagrams, go_on })
    }

    /// Once the other line has had its time: what waits.
    fn release<P: Packets>(&mut self, now: u64, to: &mut P) -> Result<bool, P::Error> {
        if self.held.is_empty() || now.saturating_sub(self.last) < self.gap_timeout {
            return Ok(true);
        }
        self.arbiter.flush();
        if !drain(&mut self.arbiter, to)? {
            return Ok(false);
        }
        for packet in std::mem::take(&mut self.held) {
            if !to.packet(&packet, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for a datagram.
    ///
    /// # Errors
    /// As [`Poller::poll`].
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.poller.poll(Some(timeout)).map(|_| ())
    }

    /// Readable when a datagram has come.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// When there is something to do without a datagram, monotonic, in nanoseconds.
    pub fn next_timer(&self) -> Option<u64> {
        let held = (!self.held.is_empty()).then(|| self.last.saturating_add(self.gap_timeout));
        let gap = self.arbiter.poll_timeout().map(|t| self.pace.real(t));
        [held, gap].into_iter().flatten().min()
    }

    /// When the last datagram came, monotonic, in nanoseconds; before the first, the first turn.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Whether the kernel has given a line less receive buffer than it was asked for.
    pub fn small_buffer(&self) -> Option<SmallBuffer> {
        self.receivers.iter().find_map(Receiver::small_buffer)
    }

    /// Sequence numbers that were on no line.
    pub fn missing(&self) -> u64 {
        self.arbiter.stats().missing
    }

    /// Takes and counts the datagrams that still wait with the kernel, up to 1,048,576 of a line.
    /// To be called at the end: they are lost.
    ///
    /// # Errors
    /// The socket's.
    pub fn unread(&mut self) -> io::Result<u64> {
        let mut unread = 0;
        for receiver in &mut self.receivers {
            let mut of_line = 0;
            loop {
                let count = receiver.receive()?;
                of_line += count as u64;
                if count == 0 || of_line >= MOST_UNREAD {
                    break;
                }
            }
            unread += of_line;
        }
        Ok(unread)
    }

    /// Datagrams that the kernel dropped because nobody took them in time.
    pub fn kernel_drops(&self) -> u64 {
        let drops = self.receivers.iter().map(Receiver::kernel_drops);
        drops.filter_map(Result::ok).sum()
    }
}

/// Checks that a number of lines can be arbitrated.
///
/// # Errors
/// There are several, and no template has a sequence number.
pub(crate) fn check(lines: usize, program: &Program) -> io::Result<()> {
    if lines < 2 || !SequenceField::Auto.find(program).is_empty() {
        return Ok(());
    }
    let text = "several lines need sequence numbers, and no template has a field for them";
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

struct Desk<'a> {
    numbers: Option<&'a mut MessageNumbers>,
    arbiter: &'a mut Arbiter,
    held: &'a mut Vec<Vec<u8>>,
}

impl Desk<'_> {
    fn receive<P: Packets>(
        &mut self,
        line: usize,
        now: u64,
        bytes: &[u8],
        to: &mut P,
    ) -> Result<bool, P::Error> {
        let (Some(numbers), Some(line)) = (&mut self.numbers, Line::new(line)) else {
            return to.packet(bytes, 0);
        };
        let read = numbers.read(bytes);
        let Some(sequence) = read.first else {
            if self.held.len() < MOST_HELD && !self.held.iter().any(|h| h == bytes) {
                self.held.push(bytes.to_vec());
            }
            return Ok(true);
        };
        let unit = Unit {
            sequence,
            count: read.count,
            bytes,
        };
        let verdict = self.arbiter.receive(now, line, unit);
        if let Some(next) = read.next {
            self.arbiter.announce(next);
        }
        match verdict {
            Verdict::Deliver { skip } => Ok(to.packet(bytes, skip)? && drain(self.arbiter, to)?),
            _ => drain(self.arbiter, to),
        }
    }
}

fn drain<P: Packets>(arbiter: &mut Arbiter, to: &mut P) -> Result<bool, P::Error> {
    while let Some(event) = arbiter.poll_event() {
        match event {
            Event::Unit(unit) if !to.packet(unit.bytes, unit.skip)? => return Ok(false),
            Event::Gap(gap) => to.gap(gap),
            _ => {}
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::udp::{Sender, SenderConfig};
    use std::net::UdpSocket;

    #[derive(Default)]
    struct Taken {
        packets: u64,
        missing: u64,
    }

    impl Packets for Taken {
        type Error = io::Error;

        fn packet(&mut self, _: &[u8], _: u32) -> io::Result<bool> {
            self.packets += 1;
            Ok(true)
        }

        fn gap(&mut self, gap: Gap) {
            self.missing += u64::from(gap.count);
        }
    }

    fn lines(last: u8) -> (Lines, [Sender; 2]) {
        let program =
            "<template name=\"T\" id=\"1\"><uInt32 name=\"MsgSeqNum\" id=\"34\"/></template>";
        let program = Arc::new(Program::parse(program).unwrap());
        let groups = [last, last + 1].map(|last| {
            let port = UdpSocket::bind("127.0.0.1:0").unwrap();
            let port = port.local_addr().unwrap().port();
            SocketAddrV4::new(Ipv4Addr::new(239, 255, 81, last), port)
        });
        let config = LinesConfig {
            groups: groups.to_vec(),
            interface: Ipv4Addr::LOCALHOST,
            gap_timeout: Duration::from_millis(100),
        };
        let senders = groups.map(|group| Sender::open(&SenderConfig::new(group)).unwrap());
        (Lines::open(&config, &program).unwrap(), senders)
    }

    /// Template 1, MsgSeqNum(34).
    fn message(sequence: u8) -> [u8; 3] {
        [0xc0, 0x81, 0x80 | sequence]
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn what_waits_in_a_socket_is_not_missing() {
        let (mut lines, [mut a, mut b]) = lines(1);
        let mut taken = Taken::default();
        for n in [1, 2] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        // The first packet waits for earlier ones.
        for now in [1_000, 1_100, 1_200] {
            lines.turn(now * MS, &mut taken).unwrap();
        }
        assert_eq!(taken.packets, 2);
        // A has lost 3. Taking 4 takes us half a second, and B has it in its socket.
        a.send_batch(&[&message(4)]).unwrap();
        lines.turn(1_201 * MS, &mut taken).unwrap();
        for n in [1, 2, 3] {
            b.send_batch(&[&message(n)]).unwrap();
        }
        lines.turn(1_701 * MS, &mut taken).unwrap();
        assert_eq!((taken.packets, taken.missing), (4, 0));
    }

    #[test]
    fn what_nobody_read_is_counted_at_the_end() {
        let (mut lines, [mut a, mut b]) = lines(21);
        let mut taken = Taken::default();
        a.send_batch(&[&message(1)]).unwrap();
        lines.turn(1_000 * MS, &mut taken).unwrap();
        assert_eq!(lines.unread().unwrap(), 0);
        for n in [2, 3, 4] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        b.send_batch(&[&message(2)]).unwrap();
        assert_eq!(lines.unread().unwrap(), 4);
        assert_eq!(lines.unread().unwrap(), 0);
    }

    #[test]
    fn what_does_not_come_is_missing_after_its_time() {
        let (mut lines, [mut a, _]) = lines(11);
        let mut taken = Taken::default();
        for n in [1, 2, 4] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        lines.turn(1_000 * MS, &mut taken).unwrap();
        let mut now = 1_000 * MS;
        while taken.missing == 0 {
            let timer = lines.next_timer().unwrap();
            assert!(timer > now && timer <= 1_300 * MS, "{timer}");
            now = timer;
            lines.turn(now, &mut taken).unwrap();
        }
        assert_eq!((taken.packets, taken.missing), (3, 1));
    }
}
