//! Socket calls that std does not have.

use super::{check, check_len, made};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Starts a TCP connection without waiting for it, from `local` if that is given. `prepare` sets
/// options of the socket first. The socket is non-blocking.
pub(crate) fn connect(
    to: SocketAddr,
    local: Option<SocketAddr>,
    prepare: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointer is passed; the descriptor is new.
    let socket = unsafe { made(libc::socket(family, kind, 0)) }?;
    prepare(socket.as_fd())?;
    if let Some(local) = local {
        bind(socket.as_fd(), local).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot connect from {local}: {error}"),
            )
        })?;
    }
    let (address, length) = raw_address(to);
    // SAFETY: `address` is an initialised storage of which `length` bytes are the address.
    let outcome =
        check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) });
    match outcome {
        Ok(_) => Ok(socket.into()),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error),
    }
}

/// Binds a socket to an address of this machine. A port other than 0 may have
/// belonged to a connection that has ended a moment ago.
fn bind(fd: BorrowedFd<'_>, local: SocketAddr) -> io::Result<()> {
    if local.port() != 0 {
        set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    }
    let (address, length) = raw_address(local);
    // SAFETY: `address` is an initialised storage of which `length` bytes are the address.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Receives the bytes that have arrived, without waiting.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into a slice that is ours until then.
    check_len(unsafe {
        libc::recv(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    })
}

/// Sends bytes; never raises SIGPIPE. Returns how many the kernel took.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the kernel only reads, `bytes.len()` bytes of a slice that is borrowed until then.
    check_len(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Sends the parts as one sequence of bytes; never raises SIGPIPE. Returns how many the kernel
/// took.
pub(crate) fn send_parts(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: an all-zero msghdr is valid: no name, no parts, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = parts.as_ptr().cast_mut().cast();
    header.msg_iovlen = parts.len().min(MAX_PARTS) as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: IoSlice is documented to have the layout of iovec; the kernel only reads through
    // it, at most `msg_iovlen` entries, and the borrow keeps slices and bytes alive.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &header, flags) })
}

/// The kernel's limit of parts in one call (UIO_MAXIOV).
const MAX_PARTS: usize = 1024;

pub(super) fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: an all-zero sockaddr_storage is valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is larger than and aligned for every address type.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: sockaddr_storage is larger than and aligned for every address type.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

/// Sets how many connections may wait to be accepted, as far as the system permits.
pub(crate) fn set_backlog(listener: &std::net::TcpListener, backlog: i32) -> io::Result<()> {
    // SAFETY: no pointer is passed; the result is checked.
    check(unsafe { libc::listen(listener.as_raw_fd(), backlog) })?;
    Ok(())
}

/// Limits the bytes that the kernel takes while it cannot send them, because the peer does not read
/// or the network is slow.
pub(crate) fn limit_unsent(fd: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Sets an option of a socket that is an integer.
pub(crate) fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    set_option(fd, level, name, &value)
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads a plain value of `length` bytes that lives over the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            length,
        )
    })?;
    Ok(())
}

/// Reads an option of a socket.
pub(crate) fn get_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a plain value that has as many, and of
    // which every pattern of bits is one (integers).
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(value).cast(),
            &mut length,
        )
    })?;
    Ok(())
}
