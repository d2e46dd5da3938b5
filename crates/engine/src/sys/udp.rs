//! UDP calls that std does not have: options before bind, batches, the kernel's drop count.

use super::socket::{get_option, raw_address, set_int, set_option};
use super::{check, made};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Bytes for one control message with a timespec.
const CONTROL: usize = 64;
/// Index of the drop count in the values of SO_MEMINFO (SK_MEMINFO_DROPS), and their number.
const MEMINFO_DROPS: usize = 8;
const MEMINFO_VARS: usize = 9;

/// Makes a non-blocking UDP socket bound to `address` (a multicast group or a local address), which
/// other sockets may share. It timestamps what it receives.
pub(crate) fn bind(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointer is passed; the descriptor is new.
    let socket = unsafe { made(libc::socket(libc::AF_INET, kind, 0)) }?;
    let borrowed = std::os::fd::AsFd::as_fd(&socket);
    set_int(borrowed, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    set_int(borrowed, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    let (raw, length) = raw_address(address.into());
    // SAFETY: `raw` is an initialised storage of which `length` bytes are the address.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const raw).cast(), length) })?;
    Ok(socket.into())
}

/// Requests a receive buffer of `bytes`, beyond the system's limit if the process may. Returns what
/// the kernel granted, in the same unit.
pub(crate) fn enlarge_receive_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
    if set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted).is_err() {
        set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, wanted)?;
    }
    let mut granted: libc::c_int = 0;
    get_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &mut granted)?;
    // The kernel doubles the size requested, for its own book-keeping.
    Ok(usize::try_from(granted).unwrap_or(0) / 2)
}

/// Returns how many datagrams the kernel dropped because the socket's buffer was full.
pub(crate) fn drops(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0u32; MEMINFO_VARS];
    get_option(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut info)?;
    Ok(u64::from(info[MEMINFO_DROPS]))
}

/// Sends multicast out of the interface with this address.
pub(crate) fn set_multicast_interface(fd: BorrowedFd<'_>, interface: Ipv4Addr) -> io::Result<()> {
    let address = in_addr(interface);
    set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &address)
}

fn in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(address.octets()),
    }
}

/// Joins a group for the datagrams of one source, on the interface with this address.
pub(crate) fn join_source(
    fd: BorrowedFd<'_>,
    group: Ipv4Addr,
    interface: Ipv4Addr,
    source: Ipv4Addr,
) -> io::Result<()> {
    let request = libc::ip_mreq_source {
        imr_multiaddr: in_addr(group),
        imr_interface: in_addr(interface),
        imr_sourceaddr: in_addr(source),
    };
    // Without this the socket also receives groups that other sockets of this host have joined.
    set_int(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
    let name = libc::IP_ADD_SOURCE_MEMBERSHIP;
    set_option(fd, libc::IPPROTO_IP, name, &request)
}

/// The kernel's information on one datagram.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrived {
    pub(crate) len: usize,
    pub(crate) truncated: bool,
    /// UTC in nanoseconds, as the kernel stamped it.
    pub(crate) stamp: Option<i64>,
    /// The sender; `None` if the kernel does not report it.
    pub(crate) from: Option<SocketAddrV4>,
}

/// Memory for one recvmmsg, allocated once.
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    slot: usize,
    parts: Box<[libc::iovec]>,
    controls: Box<[[u64; CONTROL / 8]]>,
    /// The senders that the kernel writes; empty where they are not requested.
    names: Box<[libc::sockaddr_in]>,
    headers: Box<[libc::mmsghdr]>,
    arrived: Box<[Arrived]>,
}

// SAFETY: the raw pointers in `parts` and `headers` point into the boxes of the same value, and
// are rewritten before each use; nothing else sees them.
unsafe impl Send for Inbox {}

impl Inbox {
    /// Makes an inbox for `count` datagrams of `slot` bytes. The kernel adds their senders on
    /// request, which takes it about 30 ns for each.
    pub(crate) fn new(count: usize, slot: usize, wants_senders: bool) -> Self {
        let count = count.max(1);
        let slot = slot.max(1);
        let names = if wants_senders { count } else { 0 };
        // SAFETY: all-zero iovec, mmsghdr and sockaddr_in are valid: null pointers with lengths of
        // zero, and an address of no family.
        let (part, header, name) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            bytes: vec![0; count * slot].into_boxed_slice(),
            slot,
            parts: vec![part; count].into_boxed_slice(),
            controls: vec![[0; CONTROL / 8]; count].into_boxed_slice(),
            names: vec![name; names].into_boxed_slice(),
            headers: vec![header; count].into_boxed_slice(),
            arrived: vec![Arrived::default(); count].into_boxed_slice(),
        }
    }

    /// Takes the datagrams that have arrived, without waiting. Returns their number, 0 if none.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        let slots = self.bytes.chunks_exact_mut(self.slot);
        let places = self.parts.iter_mut().zip(slots).zip(&mut self.controls);
        for (header, name) in self.headers.iter_mut().zip(&mut self.names) {
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        for (header, ((part, slot), control)) in self.headers.iter_mut().zip(places) {
            part.iov_base = slot.as_mut_ptr().cast();
            part.iov_len = slot.len();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _;
            header.msg_hdr.msg_flags = 0;
        }
        // SAFETY: each header has just been pointed at one part, one control buffer and, if
        // at all, one name of this value, which nothing else touches during the call.
        let outcome = check(unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        });
        let count = match outcome {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            Err(e) => return Err(e),
        };
        let names = self.names.iter().map(Some).chain(std::iter::repeat(None));
        let named = self.headers.iter().zip(names);
        for ((header, name), arrived) in named.zip(&mut self.arrived).take(count) {
            *arrived = Arrived {
                len: (header.msg_len as usize).min(self.slot),
                truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                stamp: stamp(&header.msg_hdr),
                from: name.and_then(|name| sender(&header.msg_hdr, name)),
            };
        }
        Ok(count)
    }

    /// Returns the datagram at `index` of the last receive.
    pub(crate) fn get(&self, index: usize) -> (Arrived, &[u8]) {
        let arrived = self.arrived.get(index).copied().unwrap_or_default();
        let from = index.saturating_mul(self.slot);
        let bytes = self.bytes.get(from..from.saturating_add(arrived.len));
        (arrived, bytes.unwrap_or_default())
    }
}

/// Returns the sender that the kernel has written to `name`.
fn sender(header: &libc::msghdr, name: &libc::sockaddr_in) -> Option<SocketAddrV4> {
    let is_there = header.msg_namelen as usize == size_of::<libc::sockaddr_in>();
    let address = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
    is_there.then(|| SocketAddrV4::new(address, u16::from_be(name.sin_port)))
}

/// Returns the kernel's receive timestamp from the control messages.
fn stamp(header: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel has filled control messages of `msg_controllen` bytes into the buffer
    // that `msg_control` points at, which is aligned for cmsghdr.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: `at` is not null, so it points at a whole cmsghdr inside the buffer.
        let control = unsafe { &*at };
        if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: the data of this type of message is a timespec; it may be unaligned.
            let time: libc::timespec = unsafe {
                libc::CMSG_DATA(at)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            return time
                .tv_sec
                .checked_mul(1_000_000_000)?
                .checked_add(time.tv_nsec);
        }
        // SAFETY: `at` is a control message of this header.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    None
}

/// Memory for one sendmmsg, allocated once.
pub(crate) struct Outbox {
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers are rewritten before each use; nothing else sees them.
unsafe impl Send for Outbox {}

impl Outbox {
    /// Makes an outbox for `count` datagrams.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            parts: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
        }
    }

    /// Sends datagrams over a connected socket. Returns how many the kernel took, which may be
    /// fewer.
    pub(crate) fn send(&mut self, fd: BorrowedFd<'_>, datagrams: &[&[u8]]) -> io::Result<usize> {
        let datagrams = datagrams.get(..self.parts.capacity()).unwrap_or(datagrams);
        self.parts.clear();
        self.headers.clear();
        self.parts.extend(datagrams.iter().map(|d| libc::iovec {
            iov_base: d.as_ptr().cast_mut().cast(),
            iov_len: d.len(),
        }));
        for part in &mut self.parts {
            // SAFETY: an all-zero mmsghdr is valid: no name, no parts, no control data.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            self.headers.push(header);
        }
        // SAFETY: each header points at one part, each part at bytes that `datagrams` borrows;
        // the kernel only reads them.
        let sent = check(unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as _,
                libc::MSG_NOSIGNAL as _,
            )
        })?;
        Ok(usize::try_from(sent).unwrap_or(0))
    }
}
