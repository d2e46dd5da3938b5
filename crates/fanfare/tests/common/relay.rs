//! A relay to a server of the test's own, which counts the bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The longest wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A relay of connections; when one side closes, it closes the other.
pub(crate) struct Relay {
    /// The port it listens on.
    pub(crate) port: String,
    passed: Arc<Passed>,
}

/// The bytes to the server, and back.
#[derive(Default)]
struct Passed {
    bytes: Mutex<[u64; 2]>,
    more: Condvar,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let passed = Arc::new(Passed::default());
        let counts = Arc::clone(&passed);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The server may be gone, which its clients should notice.
                if let Ok(server) = TcpStream::connect(server) {
                    join(&client, &server, &counts);
                }
            }
        });
        Self { port, passed }
    }

    /// Waits until this many bytes have gone to the server.
    pub(crate) fn wait_sent(&self, bytes: u64) {
        self.wait(0, bytes);
    }

    /// Waits until this many bytes have come back.
    pub(crate) fn wait_answered(&self, bytes: u64) {
        self.wait(1, bytes);
    }

    fn wait(&self, way: usize, bytes: u64) {
        let passed = self.passed.bytes.lock().unwrap();
        let too_few = |passed: &mut [u64; 2]| passed[way] < bytes;
        let waited = self
            .passed
            .more
            .wait_timeout_while(passed, PATIENCE, too_few);
        let (passed, _) = waited.unwrap();
        assert!(passed[way] >= bytes, "only {passed:?} bytes in a minute");
    }
}

fn join(client: &TcpStream, server: &TcpStream, passed: &Arc<Passed>) {
    for (way, from, to) in [(0, client, server), (1, server, client)] {
        let clone = |stream: &TcpStream| stream.try_clone().unwrap();
        let _ = to.set_nodelay(true);
        let (mut from, mut to, passed) = (clone(from), clone(to), Arc::clone(passed));
        thread::spawn(move || {
            let mut room = [0; 65_536];
            while let Ok(count @ 1..) = from.read(&mut room) {
                if to.write_all(&room[..count]).is_err() {
                    break;
                }
                passed.bytes.lock().unwrap()[way] += count as u64;
                passed.more.notify_all();
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}
