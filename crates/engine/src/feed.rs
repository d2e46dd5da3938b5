//! Reception of a feed from multicast: the sockets of its lines, and the decoded messages.
//!
//! ```no_run
//! use fanfare_engine::clock::Clock;
//! use fanfare_engine::feed::{LineConfig, Receiver, ReceiverConfig};
//! use fanfare_fast::{Decoder, Program};
//! use fanfare_feed::channel::Event;
//! use std::ops::ControlFlow;
//! use std::time::Duration;
//!
//! let program = Program::parse(&std::fs::read_to_string("templates.xml")?)?;
//! let lines = ["224.1.2.133:13014", "224.1.2.134:13014"];
//! let lines = lines.map(|group| group.parse().map(LineConfig::new));
//! let lines = lines.into_iter().collect::<Result<_, _>>()?;
//! let mut receiver = Receiver::open(ReceiverConfig::new(lines), Decoder::new(program))?;
//! let mut clock = Clock::new();
//! loop {
//!     receiver.turn(clock.read().mono, |event| {
//!         match event {
//!             Event::Message(message) => {
//!                 let (program, number) = (message.program, message.number);
//!                 if let Some(view) = message.record.view(program) {
//!                     println!("{number:?} {}", view.template().name());
//!                 }
//!             }
//!             Event::Gap(gap) => println!("{} to {} are missing", gap.first, gap.last()),
//!             _ => {}
//!         }
//!         Ok::<_, std::io::Error>(ControlFlow::Continue(()))
//!     })?;
//!     receiver.wait(Duration::from_millis(100))?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::poll::{Interest, Poller, Token};
pub use crate::udp::LineConfig;
use crate::udp::{self, SmallBuffer};
use fanfare_fast::Decoder;
use fanfare_feed::channel::{Channel, ChannelConfig, ChannelError, Datagram, Event};
use fanfare_feed::{Line, Pace};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use thiserror::Error;

/// Datagrams taken from a line in one duty cycle.
const BATCH: usize = 64;
/// Longest possible datagram, in bytes.
const DATAGRAM: usize = 65_536;
/// Datagrams of one line that are counted at the end.
const MOST_UNREAD: u64 = 1 << 20;

/// The configuration of a [`Receiver`].
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    /// The lines, which all carry the same feed.
    pub lines: Vec<LineConfig>,
    /// The receive buffer requested of the kernel for each line, in bytes.
    pub buffer: usize,
    /// The framing, numbering and arbitration of the feed. [`ChannelConfig::lines`] is ignored: the
    /// length of `lines` counts.
    pub channel: ChannelConfig,
}

impl ReceiverConfig {
    /// Makes a configuration of these lines, each with a receive buffer of 32 MiB, framed as
    /// [`ChannelConfig::new`] defines.
    #[must_use]
    pub fn new(lines: Vec<LineConfig>) -> Self {
        Self {
            channel: ChannelConfig::new(lines.len()),
            lines,
            buffer: 32 << 20,
        }
    }
}

/// The reason why a feed cannot be received.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The socket of a line cannot be opened.
    #[error("cannot receive {} on {}", .line.address, .line.interface)]
    Line {
        /// The line.
        line: LineConfig,
        /// The reason.
        source: io::Error,
    },
    /// The lines cannot be arbitrated.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// No descriptor is left.
    #[error(transparent)]
    Poller(#[from] io::Error),
}

/// The result of a duty cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The number of datagrams received.
    pub datagrams: usize,
    /// Whether the caller's function continues or breaks.
    pub flow: ControlFlow<()>,
}

/// The counts of one line, without datagrams of foreign senders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// The number of datagrams.
    pub datagrams: u64,
    /// The bytes in them.
    pub bytes: u64,
    /// The time at which the last one was taken, monotonic, in nanoseconds; 0 before the first.
    pub last: u64,
}

/// A function that sees each datagram, with its line, before it is decoded.
pub type Tap = Box<dyn FnMut(&LineConfig, &Datagram<'_>) + Send>;

/// The lines of one feed: sockets, their arbitration and decoding.
///
/// The time to wait for a missing packet runs slowly while datagrams wait in the sockets
/// ([`Pace`]), so that a packet which this process was too slow to take is not missing. Datagrams
/// carry the kernel's time of arrival. Nothing is allocated after the first duty cycles, as for a
/// [`Channel`].
pub struct Receiver {
    sockets: Vec<udp::Receiver>,
    lines: Vec<LineConfig>,
    counts: Vec<LineCounts>,
    poller: Poller,
    channel: Channel,
    pace: Pace,
    tap: Option<Tap>,
    last: u64,
    datagrams: u64,
    strangers: u64,
}

impl Receiver {
    /// Joins the groups of all lines.
    ///
    /// # Errors
    /// A group cannot be joined on its interface, or the lines cannot be arbitrated.
    pub fn open(config: ReceiverConfig, decoder: Decoder) -> Result<Self, OpenError> {
        let ReceiverConfig {
            lines,
            buffer,
            mut channel,
        } = config;
        channel.lines = lines.len();
        let gap_timeout = channel.arbiter.gap_timeout;
        let channel = Channel::new(decoder, channel)?;
        let poller = Poller::new(lines.len())?;
        let mut sockets = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            let config = udp::ReceiverConfig {
                line: *line,
                buffer,
                batch: BATCH,
                datagram: DATAGRAM,
            };
            let error = |source| OpenError::Line {
                line: *line,
                source,
            };
            let socket = udp::Receiver::open(&config).map_err(error)?;
            poller.add(&socket, Token(index as u64), Interest::Read)?;
            sockets.push(socket);
        }
        Ok(Self {
            sockets,
            counts: vec![LineCounts::default(); lines.len()],
            lines,
            poller,
            channel,
            pace: Pace::new(gap_timeout),
            tap: None,
            last: 0,
            datagrams: 0,
            strangers: 0,
        })
    }

    /// Shows all datagrams to `tap` from now on, except those of foreign senders.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Takes the datagrams that have arrived, at most 64 from each line, without waiting. `now` is
    /// monotonic, in nanoseconds; [`Datagram::now`] is of another clock. After
    /// [`ControlFlow::Break`] or an error, the remaining events are lost.
    ///
    /// # Errors
    /// Errors of a socket, or those of `take`.
    pub fn turn<E: From<io::Error>>(
        &mut self,
        now: u64,
        mut take: impl FnMut(Event<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<Turn, E> {
        let time = self.pace.time(now);
        let (mut datagrams, mut is_behind) = (0, false);
        let lines = self.lines.iter().zip(&mut self.counts);
        for (index, (socket, (line, counts))) in self.sockets.iter_mut().zip(lines).enumerate() {
            let count = socket.receive()?;
            datagrams += count;
            is_behind |= count >= BATCH;
            for i in 0..count {
                let datagram = socket.datagram(i);
                let from = datagram.from.map(|from| *from.ip());
                if line.source.is_some() && line.source != from {
                    self.strangers += 1;
                    continue;
                }
                counts.datagrams += 1;
                counts.bytes += datagram.bytes.len() as u64;
                counts.last = now;
                let received = datagram.received.map_or(now, |t| t.nanos().unsigned_abs());
                let datagram = Datagram {
                    line: Line::new(index).unwrap_or(Line::A),
                    now: time,
                    received,
                    offset: 0,
                    bytes: datagram.bytes,
                };
                if let Some(tap) = &mut self.tap {
                    tap(line, &datagram);
                }
                let events = self.channel.receive(datagram);
                if events.try_for_each(&mut take)?.is_break() {
                    return Ok(self.end_of_turn(now, datagrams, ControlFlow::Break(())));
                }
            }
        }
        self.pace.took(datagrams, is_behind);
        let flow = self.channel.handle_timeout(time).try_for_each(&mut take)?;
        Ok(self.end_of_turn(now, datagrams, flow))
    }

    fn end_of_turn(&mut self, now: u64, datagrams: usize, flow: ControlFlow<()>) -> Turn {
        if datagrams > 0 || self.last == 0 {
            self.last = now;
        }
        self.datagrams += datagrams as u64;
        Turn { datagrams, flow }
    }

    /// Ends the feed: releases all messages that wait for earlier ones.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn finish<E>(
        &mut self,
        take: impl FnMut(Event<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        self.channel.finish().try_for_each(take)
    }

    /// Returns whether more messages may follow that had arrived before the last duty cycle: in
    /// the sockets, or behind a gap.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.pace.is_behind() || self.channel.poll_timeout().is_some()
    }

    /// Waits for a datagram, at most as long as `timeout`.
    ///
    /// # Errors
    /// Those of [`Poller::poll`].
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.poller.poll(Some(timeout)).map(|_| ())
    }

    /// Returns a descriptor that is readable when a datagram has arrived.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// Returns when work is due without a datagram, monotonic, in nanoseconds.
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        self.channel.poll_timeout().map(|time| self.pace.real(time))
    }

    /// Returns when the last datagram arrived, or before that the first duty cycle began,
    /// monotonic, in nanoseconds.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of datagrams received, including those of foreign senders.
    #[must_use]
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Returns the number of datagrams dropped because their sender is not [`LineConfig::source`].
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Returns the counts of each line so far, in the order of [`ReceiverConfig::lines`].
    #[must_use]
    pub fn line_counts(&self) -> &[LineCounts] {
        &self.counts
    }

    /// Returns the arbitration and decoding.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns the arbitration and decoding, and closes the sockets.
    #[must_use]
    pub fn into_channel(self) -> Channel {
        self.channel
    }

    /// Returns by how much the receive buffer of a line is smaller than requested, if one is.
    #[must_use]
    pub fn small_buffer(&self) -> Option<SmallBuffer> {
        self.sockets.iter().find_map(udp::Receiver::small_buffer)
    }

    /// Takes the datagrams left in the kernel and returns their number, at the end of a feed. A
    /// line that arrives faster than it can be counted is left after 1,048,576.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn unread(&mut self) -> io::Result<u64> {
        let mut unread = 0;
        for socket in &mut self.sockets {
            let mut of_line = 0;
            loop {
                let count = socket.receive()?;
                of_line += count as u64;
                if count == 0 || of_line >= MOST_UNREAD {
                    break;
                }
            }
            unread += of_line;
        }
        Ok(unread)
    }

    /// Returns how many datagrams of one line the kernel dropped because they were not taken in
    /// time; 0 where the kernel does not report it. Makes a system call.
    #[must_use]
    pub fn kernel_drops_of(&self, line: usize) -> u64 {
        let socket = self.sockets.get(line);
        let drops = socket.map(|socket| socket.kernel_drops().unwrap_or(0));
        drops.unwrap_or(0)
    }

    /// Returns how many datagrams the kernel dropped because they were not taken in time.
    #[must_use]
    pub fn kernel_drops(&self) -> u64 {
        let drops = self.sockets.iter().map(udp::Receiver::kernel_drops);
        drops.filter_map(Result::ok).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Sender, SenderConfig};
    use fanfare_fast::Program;
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

    #[derive(Default)]
    struct Taken {
        numbers: Vec<u64>,
        missing: u64,
    }

    impl Taken {
        fn turn(&mut self, receiver: &mut Receiver, now: u64) -> Turn {
            let taken = receiver.turn(now, |event| {
                match event {
                    Event::Message(message) => self.numbers.extend(message.number),
                    Event::Gap(gap) => self.missing += u64::from(gap.count),
                    other => panic!("{other:?}"),
                }
                Ok::<_, io::Error>(ControlFlow::Continue(()))
            });
            taken.unwrap()
        }
    }

    fn groups(last: u8) -> [SocketAddrV4; 2] {
        [last, last + 1].map(|last| {
            let port = UdpSocket::bind("127.0.0.1:0").unwrap();
            let port = port.local_addr().unwrap().port();
            SocketAddrV4::new(Ipv4Addr::new(239, 255, 82, last), port)
        })
    }

    fn open(lines: Vec<LineConfig>) -> Receiver {
        let program =
            "<template name=\"T\" id=\"1\"><uInt32 name=\"MsgSeqNum\" id=\"34\"/></template>";
        let decoder = Decoder::new(Program::parse(program).unwrap());
        let mut config = ReceiverConfig::new(lines);
        config.channel.arbiter.gap_timeout = 100 * MS;
        config.channel.arbiter.start = fanfare_feed::Start::First { wait: 100 * MS };
        Receiver::open(config, decoder).unwrap()
    }

    fn lines(last: u8) -> (Receiver, [Sender; 2]) {
        let groups = groups(last);
        let senders = groups.map(|group| Sender::open(&SenderConfig::new(group)).unwrap());
        (open(groups.map(LineConfig::new).to_vec()), senders)
    }

    /// Returns a message of template 1 with MsgSeqNum(34).
    fn message(sequence: u8) -> [u8; 3] {
        [0xc0, 0x81, 0x80 | sequence]
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn what_waits_in_a_socket_is_not_missing() {
        let (mut receiver, [mut a, mut b]) = lines(1);
        let mut taken = Taken::default();
        for n in [1, 2] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        // The first packet waits for earlier ones.
        for now in [1_000, 1_100, 1_200] {
            taken.turn(&mut receiver, now * MS);
        }
        assert_eq!(taken.numbers, [1, 2]);
        // A has lost 3. Taking 4 takes us half a second, and B has it in its socket.
        a.send_batch(&[&message(4)]).unwrap();
        taken.turn(&mut receiver, 1_201 * MS);
        for n in [1, 2, 3] {
            b.send_batch(&[&message(n)]).unwrap();
        }
        taken.turn(&mut receiver, 1_701 * MS);
        assert_eq!((taken.numbers, taken.missing), (vec![1, 2, 3, 4], 0));
    }

    #[test]
    fn what_nobody_read_is_counted_at_the_end() {
        let (mut receiver, [mut a, mut b]) = lines(21);
        a.send_batch(&[&message(1)]).unwrap();
        Taken::default().turn(&mut receiver, 1_000 * MS);
        assert_eq!(receiver.unread().unwrap(), 0);
        for n in [2, 3, 4] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        b.send_batch(&[&message(2)]).unwrap();
        assert_eq!(receiver.unread().unwrap(), 4);
        assert_eq!(receiver.unread().unwrap(), 0);
    }

    #[test]
    fn what_does_not_come_is_missing_after_its_time() {
        let (mut receiver, [mut a, _]) = lines(11);
        let mut taken = Taken::default();
        for n in [1, 2, 4] {
            a.send_batch(&[&message(n)]).unwrap();
        }
        taken.turn(&mut receiver, 1_000 * MS);
        let mut now = 1_000 * MS;
        while taken.missing == 0 {
            let timer = receiver.next_timer().unwrap();
            assert!(timer > now && timer <= 1_300 * MS, "{timer}");
            now = timer;
            taken.turn(&mut receiver, now);
        }
        assert_eq!((taken.numbers, taken.missing), (vec![1, 2, 4], 1));
    }

    #[test]
    fn only_the_source_of_a_line_is_heard() {
        let [group, other] = groups(31);
        let ours = LineConfig {
            source: Some(Ipv4Addr::LOCALHOST),
            ..LineConfig::new(group)
        };
        let foreign = LineConfig {
            source: Some(Ipv4Addr::new(127, 0, 0, 2)),
            ..LineConfig::new(other)
        };
        // Another program that joins the group for every source must not open it for ours.
        let _everybody = open(vec![LineConfig::new(other)]);
        let (mut heard, mut deaf) = (open(vec![ours]), open(vec![foreign]));
        for group in [group, other] {
            let sender = Sender::open(&SenderConfig::new(group)).unwrap();
            sender.send(&message(1)).unwrap();
        }
        let (mut taken, mut nothing) = (Taken::default(), Taken::default());
        for now in [1_000, 1_100, 1_200, 1_300] {
            taken.turn(&mut heard, now * MS);
            nothing.turn(&mut deaf, now * MS);
        }
        assert_eq!((taken.numbers, nothing.numbers), (vec![1], vec![]));
        let [heard, deaf] = [heard, deaf].map(|own| own.line_counts()[0]);
        assert_eq!((heard.datagrams, heard.bytes), (1, 3));
        assert!(heard.last >= 1_000 * MS);
        assert_eq!(deaf, LineCounts::default());
    }

    #[test]
    fn a_line_on_an_interface_that_is_not_ours_is_an_error_with_its_name() {
        let [group, _] = groups(41);
        let line = LineConfig {
            interface: Ipv4Addr::new(192, 0, 2, 1),
            ..LineConfig::new(group)
        };
        let program = Program::parse("<template name=\"T\" id=\"1\"/>").unwrap();
        let error = Receiver::open(ReceiverConfig::new(vec![line]), Decoder::new(program));
        let text = error.err().unwrap().to_string();
        assert!(text.contains(&format!("{group} on 192.0.2.1")), "{text}");
    }
}
