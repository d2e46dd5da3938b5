//! The control socket: a Unix socket that takes the commands of operators as JSON lines
//! (docs/control.md).
//!
//! The socket has threads of its own: no session waits for it.

mod commands;
mod line;
mod socket;

use crate::error::OperatorError;
use crate::fields::fields;
use crate::operator::Operator;
use commands::Commands;
use fanfare_engine::counters::Counter;
use fanfare_engine::poll::{Interest, Poller, Token, Waker};
use line::{Line, Lines};
use serde_json::{Value, json};
pub use socket::Socket;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most connections at a time; one more receives an error, is counted and closed.
const CONNECTIONS: usize = 16;
/// The interval at which a silent connection is checked for the end of the program, and the pause
/// after an error of the system.
const LOOK: Duration = Duration::from_millis(200);
/// The longest time for which a client may not read a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time for which the end waits for commands under way.
const ENDING: Duration = Duration::from_secs(5);

const LISTENER: Token = Token(0);
const STOP: Token = Token(1);

/// A control socket. Dropping it closes it, removes its path, and waits for the commands under way,
/// 5 s at most.
pub struct Control {
    state: Arc<State>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

struct State {
    operator: Arc<dyn Operator>,
    connections: AtomicUsize,
    commands: Commands,
    ends: AtomicBool,
}

impl Control {
    /// Listens at `path`, with mode 0600. A socket without a listener is replaced.
    ///
    /// # Errors
    /// The path is another file, or a process listens there, or the system reports an error.
    pub fn start(path: &Path, operator: Arc<dyn Operator>) -> io::Result<Self> {
        let socket = Socket::listen(path)?;
        let poller = Poller::new(4)?;
        poller.add(socket.listener(), LISTENER, Interest::Read)?;
        let waker = Waker::new(&poller, STOP)?;
        let what = "connections beyond the limit of the control socket";
        let turned_away = operator.counters().add("control_turned_away", what);
        let state = Arc::new(State {
            operator,
            connections: AtomicUsize::new(0),
            commands: Commands::default(),
            ends: AtomicBool::new(false),
        });
        let (of_thread, stop) = (Arc::clone(&state), waker.clone());
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&of_thread, &socket, poller, &stop, &turned_away))?;
        Ok(Self {
            state,
            waker,
            thread: Some(thread),
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and a drop cannot report it.
            let _ = thread.join();
        }
        // The audit file, which ends after the socket, has a line of each.
        self.state.commands.end(ENDING);
    }
}

/// Accepts connections until the end.
fn serve(
    state: &Arc<State>,
    socket: &Socket,
    mut poller: Poller,
    waker: &Waker,
    turned_away: &Counter,
) {
    while !state.ends.load(Ordering::Acquire) {
        waker.prepare_sleep();
        if state.ends.load(Ordering::Acquire) {
            return;
        }
        // An error of the system would recur at once.
        if poller.poll(None).is_err() {
            std::thread::sleep(LOOK);
        }
        waker.awake();
        loop {
            match socket.listener().accept() {
                Ok((stream, _)) => begin(state, stream, turned_away),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The connection stays queued, so that the next poll would return at once.
                Err(_) => {
                    std::thread::sleep(LOOK);
                    break;
                }
            }
        }
    }
}

fn begin(state: &Arc<State>, stream: UnixStream, turned_away: &Counter) {
    let set = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(LOOK)))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    if set.is_err() {
        return;
    }
    let seat = Seat::take(state);
    if seat.number > CONNECTIONS {
        turned_away.increment(1);
        return turn_away(&stream, "too many connections");
    }
    let (of_thread, stream) = (Arc::clone(state), Arc::new(stream));
    let own = Arc::clone(&stream);
    let begun = std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            let _seat = seat;
            talk(&of_thread, &own);
        });
    if let Err(error) = begun {
        turn_away(&stream, &format!("no thread can be started: {error}"));
    }
}

/// Answers a connection that is not served with the reason.
fn turn_away(mut stream: &UnixStream, why: &str) {
    let answer = refused(&OperatorError::failed(why));
    // A client that does not read it sees the end.
    let _ = stream.write_all(format!("{answer}\n").as_bytes());
}

/// Counts a connection until it is dropped.
struct Seat {
    state: Arc<State>,
    number: usize,
}

impl Seat {
    fn take(state: &Arc<State>) -> Self {
        Self {
            number: state.connections.fetch_add(1, Ordering::AcqRel) + 1,
            state: Arc::clone(state),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.state.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves one client until it leaves.
fn talk(state: &State, mut stream: &UnixStream) {
    let mut lines = Lines::new(stream);
    while !state.ends.load(Ordering::Acquire) {
        let answer = match lines.next() {
            Line::Whole(line) => {
                let Some(_running) = state.commands.begin() else {
                    return;
                };
                answer(&*state.operator, line)
            }
            Line::TooLong => refused(&OperatorError::usage("the line is longer than 65536 bytes")),
            Line::Nothing => continue,
            Line::End => return,
        };
        let is_last = lines.is_broken();
        let sent = stream.write_all(format!("{answer}\n").as_bytes());
        if sent.is_err() || is_last {
            return;
        }
    }
}

/// Returns the response to a line.
fn answer(operator: &dyn Operator, line: &[u8]) -> Value {
    let mut fields = match fields(line) {
        Ok(fields) => fields,
        Err(why) => {
            let why = format!("{why}: expected a line such as {{\"command\":\"status\"}}");
            return refused(&OperatorError::usage(why));
        }
    };
    let id = fields.remove("id");
    let outcome = match fields.remove("command") {
        Some(Value::String(name)) => operator.ask("control", &name, fields),
        Some(_) => Err(OperatorError::usage(
            "`command` must be a string, the name of a command",
        )),
        None => Err(OperatorError::usage(
            "the key `command` is missing: expected the name of a command, such as status",
        )),
    };
    let mut answer = match outcome {
        Ok(result) => json!({ "ok": true, "result": result }),
        Err(error) => refused(&error),
    };
    if let (Some(answer), Some(id)) = (answer.as_object_mut(), id) {
        answer.insert("id".to_owned(), id);
    }
    answer
}

fn refused(error: &OperatorError) -> Value {
    json!({ "ok": false, "error": error.text, "fault": error.fault.name() })
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}
