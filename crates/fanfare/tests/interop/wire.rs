//! The connection between two engines, which can drop the messages of one of them, and be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Acceptor,
    Initiator,
}

/// A relay of connections to an acceptor.
pub(crate) struct Wire {
    /// The address that initiators connect to.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether messages are dropped, by direction.
    loses: [bool; 2],
    /// All text sent, `|` for SOH.
    passed: [String; 2],
    lost: [String; 2],
    streams: Vec<TcpStream>,
}

impl State {
    fn story(&self) -> String {
        let [acceptor, initiator] = &self.passed;
        format!("to the acceptor: {acceptor}\nto the initiator: {initiator}")
    }
}

impl Wire {
    pub(crate) fn to(acceptor: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let forwards = Arc::clone(&shared);
        thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let Ok(to) = TcpStream::connect(acceptor) else {
                    continue;
                };
                forwards.join(from, to);
            }
        });
        Self { address, shared }
    }

    /// Drops messages in this direction from now on.
    pub(crate) fn lose(&self, to: To) {
        self.shared.state.lock().unwrap().loses[to as usize] = true;
    }

    /// Cuts the connection, and stops dropping messages.
    pub(crate) fn cut(&self) {
        let mut state = self.shared.state.lock().unwrap();
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        state.loses = [false; 2];
    }

    /// Waits until `count` messages were dropped whose text contains `part`.
    pub(crate) fn wait_lost(&self, to: To, part: &str, count: usize) {
        self.wait(part, |state| {
            messages(&state.lost[to as usize], part) >= count
        });
    }

    /// Waits until `count` messages have arrived whose text contains `part`.
    pub(crate) fn wait_passed(&self, to: To, part: &str, count: usize) {
        self.wait(part, |state| {
            messages(&state.passed[to as usize], part) >= count
        });
    }

    /// Returns the number of messages that have arrived whose text contains `part`.
    pub(crate) fn passed(&self, to: To, part: &str) -> usize {
        let state = self.shared.state.lock().unwrap();
        messages(&state.passed[to as usize], part)
    }

    /// Returns the number of messages that have arrived whose text contains all these parts.
    pub(crate) fn passed_with(&self, to: To, parts: &[&str]) -> usize {
        let state = self.shared.state.lock().unwrap();
        let all = state.passed[to as usize].split("|10=");
        let fits = |message: &&str| parts.iter().all(|part| message.contains(part));
        all.filter(fits).count()
    }

    /// Returns all text that has arrived, by direction.
    pub(crate) fn story(&self) -> String {
        self.shared.state.lock().unwrap().story()
    }

    fn wait(&self, what: &str, done: impl Fn(&State) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        let mut state = self.shared.state.lock().unwrap();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} came:\n{}", state.story());
            state = self.shared.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

/// Returns the number of messages that contain this part.
fn messages(text: &str, part: &str) -> usize {
    let all = text.split_inclusive("|10=");
    all.filter(|message| message.contains(part)).count()
}

impl Shared {
    fn join(self: &Arc<Self>, initiator: TcpStream, acceptor: TcpStream) {
        let _ = (initiator.set_nodelay(true), acceptor.set_nodelay(true));
        let clone = |stream: &TcpStream| stream.try_clone().unwrap();
        let mut state = self.state.lock().unwrap();
        state.streams.extend([clone(&initiator), clone(&acceptor)]);
        drop(state);
        for (from, to, way) in [
            (clone(&initiator), clone(&acceptor), To::Acceptor),
            (acceptor, initiator, To::Initiator),
        ] {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.forward(from, to, way));
        }
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, way: To) {
        let mut room = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut room) {
            let text = String::from_utf8_lossy(&room[..count]).replace('\x01', "|");
            let mut state = self.state.lock().unwrap();
            let is_lost = state.loses[way as usize];
            let log = match is_lost {
                true => &mut state.lost,
                false => &mut state.passed,
            };
            log[way as usize] += &text;
            drop(state);
            self.changed.notify_all();
            if !is_lost && to.write_all(&room[..count]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
