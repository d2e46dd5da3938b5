//! Options of a connection's socket.

use crate::sys::socket;
use std::io;
use std::os::fd::BorrowedFd;

/// Options of a connection's socket. By default all are the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketOptions {
    /// The bytes that the kernel takes for the peer (SO_SNDBUF), up to `net.core.wmem_max`. By
    /// default it adapts them to the connection.
    pub send_buffer: Option<i32>,
    /// The bytes that the kernel receives ahead (SO_RCVBUF), up to `net.core.rmem_max`. By default
    /// it adapts them to the connection.
    pub receive_buffer: Option<i32>,
    /// The octet in the IP header of each packet by which networks tell kinds of traffic apart: a
    /// DSCP in its upper six bits (IP_TOS, IPV6_TCLASS).
    pub traffic_class: Option<u8>,
    /// Whether the kernel checks a connection that is idle for long (SO_KEEPALIVE).
    pub keep_alive: bool,
}

impl SocketOptions {
    /// Makes options that are all the system's.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            send_buffer: None,
            receive_buffer: None,
            traffic_class: None,
            keep_alive: false,
        }
    }

    /// Sets these options of a socket before it connects, or of a listener, whose connections have
    /// them as well.
    pub(crate) fn set(&self, fd: BorrowedFd<'_>, is_ipv6: bool) -> io::Result<()> {
        if let Some(bytes) = self.send_buffer {
            socket::set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket::set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
        }
        if let Some(class) = self.traffic_class {
            // A listener of IPv6 may also have connections of IPv4.
            socket::set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, class.into())?;
            if is_ipv6 {
                socket::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class.into())?;
            }
        }
        if self.keep_alive {
            socket::set_int(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        }
        Ok(())
    }
}
