//! A capture running on its own thread.

use fanfare_engine::private;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pcap::{Active, BreakLoop, Error, Precision};

use super::{CaptureError, CaptureOptions, CaptureStats, Reopened};
use crate::pcap::{LinkType, Writer};

/// The snap length, that of tcpdump: more than any packet, including segments that offloads have
/// not split.
const SNAP_LEN: u32 = 262_144;
/// The time that the kernel collects packets before it delivers them. A longer one wakes the
/// capture less often on machines where it shares a core with the measured programs.
const COLLECT: Duration = Duration::from_millis(20);
const FILE_BUFFER: usize = 1 << 20;
/// The longest time until a captured packet is in the file, even if the process is killed.
const FLUSH: Duration = Duration::from_secs(1);

/// A capture that writes packets to a file until it is stopped.
///
/// Its one thread sleeps while the kernel collects packets in a ring, and then writes all of them;
/// the stamps are the kernel's.
pub struct Capture {
    thread: Option<JoinHandle<Result<CaptureStats, CaptureError>>>,
    /// The handle that interrupts the wait for packets.
    waker: BreakLoop,
    file: PathBuf,
    wishes: Arc<Wishes>,
    ticker: Option<JoinHandle<()>>,
}

/// Requests to the capture's thread, and its responses.
#[derive(Debug, Default)]
struct Wishes {
    /// Whether there are packets that may not be in the file yet.
    unflushed: AtomicBool,
    /// Whether the wait for packets was interrupted because of a request.
    woken: AtomicBool,
    /// Whether the capture is to end, as distinct from a failure of libpcap.
    over: AtomicBool,
    reopen: AtomicBool,
    reopened: Mutex<Option<Result<Reopened, CaptureError>>>,
}

impl Wishes {
    fn wake(&self, waker: &BreakLoop) {
        self.woken.store(true, Ordering::Release);
        waker.breakloop();
    }
}

impl Capture {
    /// Starts a capture: every packet after the return of this call is captured.
    ///
    /// # Errors
    /// [`CaptureError`]; without the privilege, the text names the remedy.
    pub fn start(options: CaptureOptions) -> Result<Self, CaptureError> {
        let mut handle = open(&options).map_err(|error| refused(&options, &error))?;
        let unwritable = |error| CaptureError::File {
            file: options.file.clone(),
            error,
        };
        let link = LinkType(u16::try_from(handle.get_datalink().0).unwrap_or(u16::MAX));
        let output = Output::create(&options.file, link).map_err(unwritable)?;
        let file = options.file.clone();
        let wishes = Arc::<Wishes>::default();
        let (seen, asked) = (Arc::clone(&wishes), Arc::clone(&wishes));
        let (waker, ticked) = (handle.breakloop_handle(), handle.breakloop_handle());
        let device = options.device.clone();
        let unstarted = |error: io::Error| CaptureError::Library {
            device: device.clone(),
            text: error.to_string(),
        };
        let ticker = thread::Builder::new()
            .name("capture-ticker".to_owned())
            .spawn(move || tick(&ticked, &asked))
            .map_err(unstarted)?;
        let thread = thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || work(handle, output, &options, &seen))
            .map_err(unstarted)?;
        Ok(Self {
            thread: Some(thread),
            waker,
            file,
            wishes,
            ticker: Some(ticker),
        })
    }

    /// Starts a new file if the current one has been renamed or deleted. Otherwise flushes the
    /// captured packets, and continues in the same file. No packet is lost between the two files.
    ///
    /// # Errors
    /// The new file cannot be created, and the capture continues in the old one; or the capture has
    /// ended.
    pub fn reopen(&self) -> Result<Reopened, CaptureError> {
        // This is the response to a call that timed out.
        let late = self.wishes.reopened.lock();
        *late.unwrap_or_else(PoisonError::into_inner) = None;
        self.wishes.reopen.store(true, Ordering::Release);
        for _ in 0..REOPEN_LOOKS {
            // Repeated, as the thread may be about to wait for packets.
            self.wishes.wake(&self.waker);
            let done = self.wishes.reopened.lock();
            if let Some(done) = done.unwrap_or_else(PoisonError::into_inner).take() {
                return done;
            }
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            thread::sleep(COLLECT);
        }
        Err(CaptureError::File {
            file: self.file.clone(),
            error: io::Error::other("the capture has ended, or the disk does not answer"),
        })
    }

    /// Returns the error with which the capture has ended before it was stopped; only once.
    pub fn failure(&mut self) -> Option<CaptureError> {
        let ended = self.thread.take_if(|thread| thread.is_finished())?;
        joined(ended).err()
    }

    /// Waits until the packets sent so far are captured, then ends the capture and the file.
    ///
    /// # Errors
    /// The error that ended the capture before, if there was one.
    pub fn stop(mut self) -> Result<CaptureStats, CaptureError> {
        self.end().unwrap_or_else(|| Ok(CaptureStats::default()))
    }

    fn end(&mut self) -> Option<Result<CaptureStats, CaptureError>> {
        let thread = self.thread.take();
        if thread.is_some() {
            // Packets that the kernel is collecting are delivered within that time.
            thread::sleep(COLLECT * 3);
        }
        self.wishes.over.store(true, Ordering::Release);
        self.waker.breakloop();
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // The ticker has no code that panics.
            let _ = ticker.join();
        }
        thread.map(joined)
    }
}

fn joined(
    thread: JoinHandle<Result<CaptureStats, CaptureError>>,
) -> Result<CaptureStats, CaptureError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Drop for Capture {
    fn drop(&mut self) {
        // There is no caller to report to.
        let _ = self.end();
    }
}

fn open(options: &CaptureOptions) -> Result<pcap::Capture<Active>, Error> {
    let mut handle = pcap::Capture::from_device(options.device.as_str())?
        .snaplen(SNAP_LEN.cast_signed())
        .buffer_size(i32::try_from(options.ring).unwrap_or(i32::MAX))
        .timeout(COLLECT.as_millis() as i32)
        .precision(Precision::Nano)
        .open()?;
    handle.filter(&filter(&options.ports), true)?;
    Ok(handle)
}

/// Returns the filter expression for TCP traffic of these ports: with IPv4, segments that carry
/// bytes or open or close a connection. Bare acknowledgements are as many as messages, the report
/// needs none of them, and a packet that the filter rejects costs the sender no copy into the ring.
/// (libpcap cannot parse TCP over IPv6; there all are captured.)
fn filter(ports: &[u16]) -> String {
    const CARRIES_BYTES: &str = "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0";
    const OPENS_OR_ENDS: &str = "tcp[tcpflags] & (tcp-syn | tcp-fin | tcp-rst) != 0";
    let mut of_ports = "tcp".to_owned();
    for (i, port) in ports.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(
            of_ports,
            " {} port {port}",
            if i == 0 { "and (" } else { "or" }
        );
    }
    if !ports.is_empty() {
        of_ports.push(')');
    }
    format!("({of_ports}) and (ip6 or ({OPENS_OR_ENDS}) or ({CARRIES_BYTES}))")
}

fn refused(options: &CaptureOptions, error: &Error) -> CaptureError {
    let (device, text) = (options.device.clone(), error.to_string());
    let lower = text.to_lowercase();
    if lower.contains("permission") || lower.contains("permitted") {
        let program = std::env::current_exe();
        let program = program.map_or_else(|_| "fanfare".to_owned(), |p| p.display().to_string());
        return CaptureError::Privilege { device, program };
    }
    CaptureError::Library { device, text }
}

/// The number of polls of [`Capture::reopen`] for the response: two seconds.
const REOPEN_LOOKS: u32 = 100;

/// Wakes the capture's thread every [`FLUSH`] while packets are buffered: without traffic the
/// library blocks until the next packet.
fn tick(waker: &BreakLoop, wishes: &Wishes) {
    while !wishes.over.load(Ordering::Acquire) {
        thread::park_timeout(FLUSH);
        if wishes.unflushed.load(Ordering::Acquire) {
            wishes.wake(waker);
        }
    }
}

fn work(
    mut handle: pcap::Capture<Active>,
    mut output: Output,
    options: &CaptureOptions,
    wishes: &Wishes,
) -> Result<CaptureStats, CaptureError> {
    let broken = |error: Error| CaptureError::Library {
        device: options.device.clone(),
        text: error.to_string(),
    };
    let unwritable = |error| CaptureError::File {
        file: options.file.clone(),
        error,
    };
    while !output.is_broken() {
        match handle.dispatch(None, |packet| output.packet(&packet)) {
            _ if wishes.over.load(Ordering::Acquire) => break,
            Ok(_) | Err(Error::TimeoutExpired) => {}
            // The library reports a wake-up as an error. Any other error is repeated.
            Err(_) if wishes.woken.swap(false, Ordering::AcqRel) => {}
            Err(error) => return Err(broken(error)),
        }
        output.flush_now_and_then();
        wishes.unflushed.store(output.unflushed, Ordering::Release);
        if !output.is_broken() && wishes.reopen.swap(false, Ordering::Acquire) {
            let done = output.reopen(&options.file).map_err(unwritable);
            let place = wishes.reopened.lock();
            *place.unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    }
    let mut handle = handle.setnonblock().map_err(broken)?;
    // One error may be the call to stop, if the loop above ended without having seen it.
    let mut errors = 0;
    while !output.is_broken() && errors < 2 {
        match handle.dispatch(None, |packet| output.packet(&packet)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => errors += 1,
        }
    }
    let captured = output.finish().map_err(unwritable)?;
    let stats = handle.stats().map_err(broken)?;
    Ok(CaptureStats {
        captured,
        received: stats.received.into(),
        dropped: u64::from(stats.dropped) + u64::from(stats.if_dropped),
    })
}

/// The file, packets written so far, and whether writing still works.
struct Output {
    writer: Writer<BufWriter<File>>,
    link: LinkType,
    packets: u64,
    unflushed: bool,
    flushed: Instant,
    result: io::Result<()>,
}

impl Output {
    fn create(path: &Path, link: LinkType) -> io::Result<Self> {
        Ok(Self {
            writer: begin(path, link)?,
            link,
            packets: 0,
            unflushed: true,
            flushed: Instant::now(),
            result: Ok(()),
        })
    }

    fn packet(&mut self, packet: &pcap::Packet<'_>) {
        if self.is_broken() {
            return;
        }
        let stamp = packet.header.ts;
        // With nanosecond precision the field of microseconds holds nanoseconds.
        let nanos = stamp.tv_sec * 1_000_000_000 + stamp.tv_usec;
        let time = u64::try_from(nanos).unwrap_or(0);
        self.result = self.writer.packet(time, packet.data, packet.header.len);
        self.packets += u64::from(self.result.is_ok());
        self.unflushed = true;
    }

    /// Flushes if due; called after each batch of packets, and after a time without any.
    fn flush_now_and_then(&mut self) {
        if self.unflushed && !self.is_broken() && self.flushed.elapsed() >= FLUSH / 2 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.result = self.writer.flush();
        self.unflushed = false;
        self.flushed = Instant::now();
    }

    /// Continues in a new file if `path` is no longer the current one.
    fn reopen(&mut self, path: &Path) -> io::Result<Reopened> {
        self.flush();
        if let Err(error) = &self.result {
            // The error itself ends the capture.
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        let now = self.writer.output().get_ref().metadata()?;
        let of_name = std::fs::metadata(path).ok();
        if of_name.is_some_and(|there| (there.dev(), there.ino()) == (now.dev(), now.ino())) {
            return Ok(Reopened::Same);
        }
        self.writer = begin(path, self.link)?;
        self.flush();
        Ok(Reopened::New)
    }

    fn finish(self) -> io::Result<u64> {
        self.result?;
        self.writer.into_inner().flush()?;
        Ok(self.packets)
    }

    fn is_broken(&self) -> bool {
        self.result.is_err()
    }
}

/// Creates a file with its header.
fn begin(path: &Path, link: LinkType) -> io::Result<Writer<BufWriter<File>>> {
    let file = BufWriter::with_capacity(FILE_BUFFER, create(path)?);
    let mut writer = Writer::new(file, link, SNAP_LEN)?;
    writer.flush()?;
    Ok(writer)
}

/// Creates a file, or empties it, with rights for its owner alone: packets of a Logon have its
/// password. On a file system without such rights other users keep those that they have.
fn create(path: &Path) -> io::Result<File> {
    let mut options = private::file_options();
    let file = options.write(true).create(true).truncate(true).open(path)?;
    if file.metadata()?.is_file() {
        private::close_file_to_others(&file)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::pcap::Reader;
    use crate::tcp::{Piece, Stream, segment};

    #[test]
    fn filters_name_all_ports() {
        assert!(filter(&[]).starts_with("(tcp) and ("));
        let two = filter(&[3000, 3001]);
        assert!(
            two.starts_with("(tcp and ( port 3000 or port 3001)) and ("),
            "{two}"
        );
    }

    /// Sends `messages` pieces over one loopback connection, and returns its bytes.
    fn talk(listener: &TcpListener, messages: u32) -> Vec<u8> {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nodelay(true).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        for i in 0..messages {
            let piece = format!("message {i};");
            client.write_all(piece.as_bytes()).unwrap();
            sent.extend(piece.as_bytes());
            let mut received = vec![0; piece.len()];
            server.read_exact(&mut received).unwrap();
        }
        sent
    }

    /// Captures if permitted; otherwise the error must name the remedy.
    #[test]
    fn a_capture_on_loopback_holds_every_byte_once_or_the_error_helps() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("fanfare-capture-{}-{port}.pcap", std::process::id());
        let file = std::env::temp_dir().join(name);
        let capture = match Capture::start(CaptureOptions::new(&file, &[port])) {
            Ok(capture) => capture,
            Err(CaptureError::Privilege { device, program }) => {
                let text = CaptureError::Privilege { device, program }.to_string();
                assert!(text.contains("root") && text.contains("setcap"), "{text}");
                return;
            }
            // The device is missing: a container without packet sockets.
            Err(error) => {
                assert!(matches!(error, CaptureError::Library { .. }), "{error}");
                return;
            }
        };
        let sent = talk(&listener, 100);
        let stats = capture.stop().unwrap();
        let mut reader = Reader::new(File::open(&file).unwrap()).unwrap();
        let (mut packets, mut stream, mut found) = (0, Stream::default(), Vec::<u8>::new());
        while let Some(packet) = reader.next_packet().unwrap() {
            packets += 1;
            let segment = segment(&packet).unwrap();
            if segment.destination.port == port {
                stream.push(packet.time.unwrap(), &segment, &mut |piece| match piece {
                    Piece::Bytes { bytes, .. } => found.extend(bytes),
                    Piece::Hole => panic!("a hole"),
                });
            }
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found, sent);
        assert_eq!((stats.captured, stats.dropped), (packets, 0));
        assert!(stats.received >= stats.captured, "{stats:?}");
    }

    fn packets(file: &Path) -> usize {
        let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
        let mut count = 0;
        // A file that is being written may end in the middle of a packet.
        while let Ok(Some(_)) = reader.next_packet() {
            count += 1;
        }
        count
    }

    fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < until, "{what} did not happen");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The name of the file selects the packets: after a rename the first part is whole, and the
    /// rest is in a new file.
    #[test]
    fn a_running_capture_can_be_read_and_goes_on_in_a_new_file() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("fanfare-reopen-{}-{port}.pcap", std::process::id());
        let file = std::env::temp_dir().join(name);
        // Without the permission to capture there is nothing to test.
        let Ok(capture) = Capture::start(CaptureOptions::new(&file, &[port])) else {
            return;
        };
        talk(&listener, 10);
        eventually("packets in the file", || packets(&file) >= 10);
        assert_eq!(capture.reopen().unwrap(), Reopened::Same);
        let moved = file.with_extension("old");
        std::fs::rename(&file, &moved).unwrap();
        talk(&listener, 10);
        assert_eq!(capture.reopen().unwrap(), Reopened::New);
        talk(&listener, 10);
        let stats = capture.stop().unwrap();
        let (old, new) = (packets(&moved), packets(&file));
        // Packets that the kernel was still collecting belong to the new file.
        assert!(old >= 10 && new >= 10, "{old} {new}");
        assert_eq!(
            stats.captured,
            (old + new) as u64,
            "nothing lost in between"
        );
        std::fs::remove_file(&file).unwrap();
        std::fs::remove_file(&moved).unwrap();
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_not_forgotten_with_a_new_file() {
        let full = Path::new("/dev/full");
        let name = format!("fanfare-full-{}.pcap", std::process::id());
        let other = std::env::temp_dir().join(name);
        for path in [full, other.as_path()] {
            let file = BufWriter::with_capacity(FILE_BUFFER, File::create(full).unwrap());
            let mut output = Output {
                writer: Writer::new(file, LinkType::RAW, SNAP_LEN).unwrap(),
                link: LinkType::RAW,
                packets: 1,
                unflushed: true,
                flushed: Instant::now(),
                result: Ok(()),
            };
            let error = output.reopen(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(output.is_broken() && output.finish().is_err());
        }
        assert!(!other.exists());
    }

    #[test]
    fn a_file_of_packets_is_its_owners_alone() {
        let name = format!("fanfare-private-{}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        begin(&path, LinkType::RAW).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        begin(&path, LinkType::RAW).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_capture_that_has_ended_tells_why_once() {
        let failed = CaptureError::Library {
            device: "any".to_owned(),
            text: "the device went away".to_owned(),
        };
        let mut dead = pcap::Capture::dead(pcap::Linktype(1)).unwrap();
        let waker = dead.breakloop_handle();
        drop(dead);
        let mut capture = Capture {
            thread: Some(thread::spawn(move || Err(failed))),
            waker,
            file: PathBuf::new(),
            wishes: Arc::default(),
            ticker: None,
        };
        let mut told = None;
        eventually("the end", || {
            told = capture.failure();
            told.is_some()
        });
        assert!(told.unwrap().to_string().contains("the device went away"));
        assert!(capture.failure().is_none());
    }

    #[test]
    fn an_unwritable_file_or_unknown_device_is_named() {
        let mut options = CaptureOptions::new("/no/such/folder/x.pcap", &[1]);
        let text = Capture::start(options.clone()).err().unwrap().to_string();
        assert!(
            text.contains("/no/such/folder") || text.contains("on any"),
            "{text}"
        );
        options.device = "no-such-device".to_owned();
        let text = Capture::start(options).err().unwrap().to_string();
        assert!(text.contains("no-such-device"), "{text}");
    }
}
