//! The cost of connections, in virtual time: a peer is a pipe with a small buffer.

use super::*;
use fanfare_engine::counters::Counters;
use fanfare_operator::{Ask, Changes, Command, OperatorError, Outcome};
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const TOKEN: &str = "0123456789abcdef";
/// The buffer of a pipe, in bytes.
const ROOM: usize = 4096;

/// A program without commands, whose changes are made by the test.
#[derive(Default)]
struct Program {
    counters: Counters,
    changes: Changes,
    notes: Mutex<Vec<String>>,
}

impl Operator for Program {
    fn commands(&self) -> Vec<&'static Command> {
        Vec::new()
    }

    fn run(&self, _: &Ask) -> Outcome {
        Err(OperatorError::failed("it has no commands"))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn note(&self, by: &str, asked: &str, outcome: &str) {
        let mut notes = self.notes.lock().unwrap();
        notes.push(format!("{by} {asked} {outcome}"));
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }
}

impl Program {
    /// Records `count` changes, each with a text of `bytes` bytes.
    fn change(&self, count: usize, bytes: usize) {
        for _ in 0..count {
            let text = json!("x".repeat(bytes));
            self.changes
                .push("line", Map::from_iter([("text".to_owned(), text)]));
        }
    }

    /// Returns the state shared by the connections of a console with a token.
    fn shared(self: &Arc<Self>) -> Arc<Shared> {
        let token = Token::new(TOKEN.as_bytes());
        Arc::new(Shared::new(Arc::clone(self) as Arc<dyn Operator>, token, 8))
    }
}

/// Returns the peer's end of a new connection, and the task that serves it.
fn connect(shared: &Arc<Shared>) -> (DuplexStream, JoinHandle<()>) {
    let (theirs, ours) = duplex(ROOM);
    let shared = Arc::clone(shared);
    let peer = Peer::Tcp("127.0.0.1:9".parse().unwrap());
    (
        theirs,
        tokio::spawn(async move { talk(&shared, ours, peer).await }),
    )
}

async fn ask(stream: &mut DuplexStream, path: &str, token: &str) {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_changes_who_reads_nothing_is_left() {
    let program = Arc::new(Program::default());
    let (mut stream, served) = connect(&program.shared());
    ask(&mut stream, "/api/v1/changes", TOKEN).await;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    program.change(1_000, 100);
    let stops = Instant::now();
    served.await.unwrap();
    let waited = stops.elapsed();
    assert!((PATIENCE..PATIENCE * 2).contains(&waited), "{waited:?}");
    // No more was made for it than the buffer holds, and one piece.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() <= ROOM, "{}", rest.len());
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_changes_who_is_slow_is_told_how_many_it_has_missed() {
    const ALL: usize = 60_000;
    let program = Arc::new(Program::default());
    let (mut stream, served) = connect(&program.shared());
    ask(&mut stream, "/api/v1/changes?after=0", TOKEN).await;
    let mut text = Vec::new();
    for _ in 0..ALL / 5_000 {
        program.change(5_000, 10);
        let mut part = [0; ROOM];
        let read = stream.read(&mut part).await.unwrap();
        text.extend_from_slice(&part[..read]);
        // It reads just often enough to be kept.
        sleep(PATIENCE * 9 / 10).await;
    }
    let last = format!("id: {ALL}\n");
    while !contains(&text, &last) {
        let mut part = [0; ROOM];
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "closed");
        text.extend_from_slice(&part[..read]);
    }
    let text = String::from_utf8(text).unwrap();
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    let counts = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: {\"count\":"));
    let missed: u64 = counts
        .map(|rest| rest.trim_end_matches('}').parse::<u64>().unwrap())
        .sum();
    assert!(missed > 0, "it was slow");
    assert_eq!(ids.len() as u64 + missed, ALL as u64);
    drop(stream);
    served.await.unwrap();
}

fn contains(text: &[u8], what: &str) -> bool {
    let end = text.len().saturating_sub(ROOM);
    text[end..]
        .windows(what.len())
        .any(|part| part == what.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_a_thousand_times_costs_half_a_second_each_and_ten_lines() {
    let program = Arc::new(Program::default());
    let shared = program.shared();
    let begun = Instant::now();
    let tries = (0..1_000).map(|at| {
        let (mut stream, _) = connect(&shared);
        tokio::spawn(async move {
            ask(
                &mut stream,
                "/api/v1/openapi.json",
                &format!("wrong-token-{at:08}"),
            )
            .await;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        })
    });
    let tries: Vec<_> = tries.collect();
    // A client that has the token does not wait for them.
    let (mut stream, _) = connect(&shared);
    ask(&mut stream, "/api/v1/openapi.json", TOKEN).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    for tried in tries {
        let answer = tried.await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 401") && !answer.contains("openapi"),
            "{answer}"
        );
    }
    assert!(begun.elapsed() >= Duration::from_millis(500));
    let refused = program.counters.snapshot();
    let refused = refused.iter().find(|one| one.name == "console_refused");
    assert_eq!(refused.unwrap().value, 1_000);
    let notes = program.notes.lock().unwrap();
    assert_eq!(notes.len(), 10, "{notes:?}");
    assert!(!notes.concat().contains("wrong-token"), "{notes:?}");
}
