//! UDP and multicast: batches in both directions, kernel receive stamps, the kernel's drops.
//!
//! ```no_run
//! use fanfare_engine::udp::{Receiver, ReceiverConfig};
//!
//! let group = "224.1.2.133:13014".parse().expect("an address");
//! let mut line_a = Receiver::open(&ReceiverConfig::new(group))?;
//! for i in 0..line_a.receive()? {
//!     let datagram = line_a.datagram(i);
//!     println!("{} bytes at {:?}", datagram.bytes.len(), datagram.received);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::sys::udp::{self, Inbox, Outbox};
use fanfare_wire::UtcTimestamp;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The address, interface and source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineConfig {
    /// The multicast group and port, or a local address for unicast.
    pub address: SocketAddrV4,
    /// The address of the interface that joins the group.
    pub interface: Ipv4Addr,
    /// The only sender that is received (source-specific multicast); `None` receives all.
    pub source: Option<Ipv4Addr>,
}

impl LineConfig {
    /// Makes a line of a group on loopback, from any sender.
    #[must_use]
    pub const fn new(address: SocketAddrV4) -> Self {
        Self {
            address,
            interface: Ipv4Addr::LOCALHOST,
            source: None,
        }
    }
}

/// The configuration of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The line.
    pub line: LineConfig,
    /// The receive buffer requested of the kernel, in bytes.
    pub buffer: usize,
    /// The number of datagrams in one system call.
    pub batch: usize,
    /// The longest datagram taken whole, in bytes.
    pub datagram: usize,
}

impl ReceiverConfig {
    /// Makes a configuration for loopback, a buffer of 8 MiB, and 64 datagrams a call, of up to
    /// 2,048 bytes.
    #[must_use]
    pub const fn new(address: SocketAddrV4) -> Self {
        Self {
            line: LineConfig::new(address),
            buffer: 8 << 20,
            batch: 64,
            datagram: 2048,
        }
    }
}

/// A socket that receives datagrams in batches, without waiting. It allocates only when it is
/// opened.
pub struct Receiver {
    socket: UdpSocket,
    inbox: Inbox,
    small_buffer: Option<SmallBuffer>,
}

/// A receive buffer smaller than requested: `net.core.rmem_max` is small, and the process may not
/// exceed it. Its display is the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallBuffer {
    /// The bytes of receive buffer that the kernel granted.
    pub granted: usize,
    /// The bytes requested.
    pub wanted: usize,
}

impl fmt::Display for SmallBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the receive buffer has {} bytes instead of {}: raise net.core.rmem_max",
            self.granted, self.wanted
        )
    }
}

impl Receiver {
    /// Binds and joins. Several receivers may listen to one group.
    ///
    /// # Errors
    /// The address is in use by a program that does not share it, or the group cannot be joined
    /// on that interface.
    pub fn open(config: &ReceiverConfig) -> io::Result<Self> {
        let LineConfig {
            address,
            interface,
            source,
        } = config.line;
        let socket = udp::bind(address)?;
        let group = *address.ip();
        match source {
            _ if !group.is_multicast() => {}
            Some(source) => udp::join_source(socket.as_fd(), group, interface, source)?,
            None => socket.join_multicast_v4(&group, &interface)?,
        }
        let wanted = config.buffer;
        let granted = udp::enlarge_receive_buffer(socket.as_fd(), wanted)?;
        Ok(Self {
            socket,
            inbox: Inbox::new(config.batch, config.datagram, source.is_some()),
            small_buffer: (granted < wanted).then_some(SmallBuffer { granted, wanted }),
        })
    }

    /// Returns by how much the receive buffer is smaller than requested, if it is.
    #[must_use]
    pub fn small_buffer(&self) -> Option<SmallBuffer> {
        self.small_buffer
    }

    /// Returns the address the socket is bound to.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes up to one batch. Returns how many datagrams arrived, 0 if none waits.
    ///
    /// # Errors
    /// The kernel's, other than "would block".
    pub fn receive(&mut self) -> io::Result<usize> {
        self.inbox.receive(self.socket.as_fd())
    }

    /// Returns a datagram of the last [`receive`](Self::receive), by its index; an empty one
    /// beyond.
    #[must_use]
    pub fn datagram(&self, index: usize) -> Datagram<'_> {
        let (arrived, bytes) = self.inbox.get(index);
        Datagram {
            bytes,
            received: arrived.stamp.map(UtcTimestamp::from_nanos),
            truncated: arrived.truncated,
            from: arrived.from,
        }
    }

    /// Returns how many datagrams the kernel has dropped since the socket was opened, because they
    /// were not taken in time.
    ///
    /// # Errors
    /// The kernel does not report it (before Linux 4.12).
    pub fn kernel_drops(&self) -> io::Result<u64> {
        udp::drops(self.socket.as_fd())
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its bytes, until the next receive.
    pub bytes: &'a [u8],
    /// The time at which the kernel took it from the network.
    pub received: Option<UtcTimestamp>,
    /// Whether it was longer than [`ReceiverConfig::datagram`]; the rest is lost.
    pub truncated: bool,
    /// The sender, if the kernel reports it.
    pub from: Option<SocketAddrV4>,
}

/// The configuration of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderConfig {
    /// The multicast group and port, or any address for unicast.
    pub address: SocketAddrV4,
    /// The interface that it is sent from.
    pub interface: Ipv4Addr,
    /// The most hops; 0 stays on this host.
    pub ttl: u8,
    /// The most datagrams in one system call.
    pub batch: usize,
}

impl SenderConfig {
    /// Makes a configuration for loopback, TTL 0, and 64 datagrams a call.
    #[must_use]
    pub const fn new(address: SocketAddrV4) -> Self {
        Self {
            address,
            interface: Ipv4Addr::LOCALHOST,
            ttl: 0,
            batch: 64,
        }
    }
}

/// A socket that sends datagrams to one address. It allocates only when it is opened.
pub struct Sender {
    socket: UdpSocket,
    outbox: Outbox,
}

impl Sender {
    /// Opens a socket; receivers on this host receive its datagrams too.
    ///
    /// # Errors
    /// The interface does not exist, or the address cannot be reached from it.
    pub fn open(config: &SenderConfig) -> io::Result<Self> {
        let multicast = config.address.ip().is_multicast();
        let from = if multicast {
            config.interface
        } else {
            Ipv4Addr::UNSPECIFIED
        };
        let socket = UdpSocket::bind((from, 0))?;
        if multicast {
            udp::set_multicast_interface(socket.as_fd(), config.interface)?;
            socket.set_multicast_ttl_v4(u32::from(config.ttl))?;
            socket.set_multicast_loop_v4(true)?;
        }
        socket.connect(config.address)?;
        Ok(Self {
            socket,
            outbox: Outbox::new(config.batch.max(1)),
        })
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// Those of the kernel; for unicast also that no socket received the datagram before.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send(datagram)?;
        Ok(())
    }

    /// Sends the first datagrams, up to [`SenderConfig::batch`], in one system call. Returns how
    /// many the kernel took.
    ///
    /// # Errors
    /// Those of the kernel, if it took none.
    pub fn send_batch(&mut self, datagrams: &[&[u8]]) -> io::Result<usize> {
        if datagrams.is_empty() {
            return Ok(0);
        }
        self.outbox.send(self.socket.as_fd(), datagrams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, Poller, Token};
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    fn group(last: u8) -> SocketAddrV4 {
        // Any free port, so that concurrent test runs do not receive each other's datagrams.
        static PORT: OnceLock<u16> = OnceLock::new();
        let port = PORT.get_or_init(|| {
            let free = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            free.local_addr().unwrap().port()
        });
        SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, last), *port)
    }

    /// Receives `count` datagrams, waiting in the kernel for each batch.
    fn take(receiver: &mut Receiver, count: usize) -> Vec<Vec<u8>> {
        let mut poller = Poller::new(4).unwrap();
        poller.add(&*receiver, Token(1), Interest::Read).unwrap();
        let mut got = Vec::new();
        let until = Instant::now() + Duration::from_secs(60);
        while got.len() < count {
            assert!(
                Instant::now() < until,
                "{} of {count} datagrams came",
                got.len()
            );
            poller.poll(Some(Duration::from_secs(1))).unwrap();
            for i in 0..receiver.receive().unwrap() {
                let datagram = receiver.datagram(i);
                assert!(datagram.received.is_some() && !datagram.truncated);
                got.push(datagram.bytes.to_vec());
            }
        }
        got
    }

    #[test]
    fn a_group_gets_what_is_sent_to_it_in_order() {
        let mut receiver = Receiver::open(&ReceiverConfig::new(group(1))).unwrap();
        let mut other = Receiver::open(&ReceiverConfig::new(group(2))).unwrap();
        let mut sender = Sender::open(&SenderConfig::new(group(1))).unwrap();
        let sent: Vec<Vec<u8>> = (0..200u8).map(|i| vec![i; usize::from(i) + 1]).collect();
        sender.send(&sent[0]).unwrap();
        let rest: Vec<&[u8]> = sent[1..].iter().map(Vec::as_slice).collect();
        let mut at = 0;
        while at < rest.len() {
            at += sender.send_batch(&rest[at..]).unwrap();
        }
        assert_eq!(take(&mut receiver, 200), sent);
        assert_eq!(receiver.kernel_drops().unwrap(), 0);
        assert_eq!(other.receive().unwrap(), 0, "another group");
    }

    #[test]
    fn a_full_buffer_is_counted_as_drops_and_a_long_datagram_as_truncated() {
        let mut receiver = Receiver::open(&ReceiverConfig {
            buffer: 1,
            datagram: 100,
            ..ReceiverConfig::new(group(3))
        })
        .unwrap();
        let sender = Sender::open(&SenderConfig::new(group(3))).unwrap();
        for _ in 0..500 {
            sender.send(&[7; 1000]).unwrap();
        }
        let mut got = 0;
        loop {
            let count = receiver.receive().unwrap();
            if count == 0 {
                break;
            }
            assert!(receiver.datagram(0).truncated);
            assert_eq!(receiver.datagram(0).bytes.len(), 100);
            got += count as u64;
        }
        assert!(got > 0);
        assert_eq!(receiver.kernel_drops().unwrap(), 500 - got);
    }

    #[test]
    fn unicast_works_the_same_way() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut receiver = Receiver::open(&ReceiverConfig::new(any)).unwrap();
        let SocketAddr::V4(address) = receiver.local_addr().unwrap() else {
            panic!("an IPv4 socket has an IPv4 address");
        };
        let sender = Sender::open(&SenderConfig::new(address)).unwrap();
        sender.send(b"one").unwrap();
        assert_eq!(take(&mut receiver, 1), [b"one"]);
    }

    #[test]
    fn an_interface_that_is_not_ours_is_an_error() {
        let nowhere = Ipv4Addr::new(192, 0, 2, 1);
        let mut config = ReceiverConfig::new(group(4));
        config.line.interface = nowhere;
        let receiver = Receiver::open(&config);
        assert!(receiver.is_err());
        let sender = Sender::open(&SenderConfig {
            interface: nowhere,
            ..SenderConfig::new(group(4))
        });
        assert!(sender.is_err());
    }
}
