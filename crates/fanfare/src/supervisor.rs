//! What a service manager is told of a service: that it is ready, reloads, stops, or is well.
//!
//! The protocol is that of `sd_notify(3)`: lines in a datagram to the Unix socket that the variable
//! NOTIFY_SOCKET names. Without the variable nothing is sent.

use fanfare_engine::clock::Clock;
use fanfare_wire::text::beginning;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// How long a service manager that does not read delays the service.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest status in bytes: systemd discards datagrams of more than 4096 bytes, also if they
/// say that a reload has ended, for which it waits.
const LONGEST_STATUS: usize = 1024;

/// Reports that the service serves, after its start and after each reload. `status` is what
/// `systemctl status` shows.
pub(crate) fn ready(status: &str) {
    tell(|| ready_text(status));
}

fn ready_text(status: &str) -> String {
    // A line feed would end the field.
    let status = beginning(status, LONGEST_STATUS).replace(['\n', '\r'], " ");
    format!("READY=1\nSTATUS={status}\n")
}

/// Reports that the configuration is read again; [`ready`] reports the end of that.
pub(crate) fn reloading() {
    tell(|| {
        let micros = Clock::new().read().mono / 1_000;
        format!("RELOADING=1\nMONOTONIC_USEC={micros}\n")
    });
}

/// Returns how often the service manager wants to know that the service is well: half of the time
/// after which it ends the service (`WatchdogSec=`).
pub(crate) fn watchdog() -> Option<Duration> {
    let variable = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let is_ours = |pid: u64| pid == u64::from(std::process::id());
    interval(
        variable("WATCHDOG_USEC"),
        variable("WATCHDOG_PID").is_none_or(is_ours),
    )
}

fn interval(micros: Option<u64>, is_ours: bool) -> Option<Duration> {
    let micros = micros.filter(|micros| is_ours && *micros > 0)?;
    Some(Duration::from_micros(micros / 2))
}

/// Reports that the service is well.
pub(crate) fn alive() {
    tell(|| "WATCHDOG=1\n".to_owned());
}

/// Reports that the service ends. `status` is what it does until then.
pub(crate) fn stopping(status: &str) {
    tell(|| format!("STOPPING=1\nSTATUS={status}\n"));
}

fn tell(text: impl FnOnce() -> String) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, &text()) {
        let socket = socket.to_string_lossy();
        tracing::warn!(target: "program", "the service manager at {socket} is not told: {error}");
    }
}

fn send(to: &OsStr, text: &str) -> io::Result<()> {
    let address = match to.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(to),
    }?;
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send_to_addr(text.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn received(socket: &UnixDatagram) -> String {
        let mut room = [0; 256];
        let length = socket.recv(&mut room).unwrap();
        String::from_utf8(room[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = Scratch::new("supervisor").unwrap();
        let path = folder.file("notify");
        let at_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1\n").unwrap();
        assert_eq!(received(&at_path), "READY=1\n");

        let name = format!("fanfare-supervisor-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(format!("@{name}").as_ref(), "STOPPING=1\n").unwrap();
        assert_eq!(received(&by_name), "STOPPING=1\n");
    }

    #[test]
    fn a_status_is_one_line_that_a_manager_takes() {
        let told = ready_text("line 1\nline 2");
        assert_eq!(told, "READY=1\nSTATUS=line 1 line 2\n");
        let told = ready_text(&"\u{e9}".repeat(5000));
        let expected = format!("READY=1\nSTATUS={}\n", "\u{e9}".repeat(512));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_watchdog_wants_to_know_twice_in_its_time() {
        assert_eq!(
            interval(Some(30_000_000), true),
            Some(Duration::from_secs(15))
        );
        assert_eq!(interval(Some(30_000_000), false), None);
        assert_eq!(interval(Some(0), true), None);
        assert_eq!(interval(None, true), None);
    }

    #[test]
    fn a_manager_that_is_gone_is_an_error() {
        let folder = Scratch::new("supervisor-gone").unwrap();
        let error = send(folder.file("nobody").as_os_str(), "READY=1\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
