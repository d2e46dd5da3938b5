//! The cost of connections, in virtual time: a peer is a pipe with a small buffer.

use super::*;
use fanfare_engine::counters::Counters;
use fanfare_operator::{Ask, Changes, Command, Effect, Outcome, Shape};
use fanfare_peers::Scratch;
use serde_json::{Map, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

const TOKEN: &str = "0123456789abcdef";
/// The buffer of a pipe, in bytes.
const ROOM: usize = 4096;

/// The command of the program, which waits until the test lets it end.
const WAIT: Command = Command {
    name: "wait",
    about: "Waits.",
    effect: Effect::Look,
    takes: &[],
    returns: Shape::Object(&[]),
};

/// A command of the program that changes something.
const END: Command = Command {
    name: "end",
    about: "Ends.",
    effect: Effect::Act,
    takes: &[],
    returns: Shape::Object(&[]),
};

/// A program whose changes are made by the test.
#[derive(Default)]
struct Program {
    counters: Counters,
    changes: Changes,
    notes: Mutex<Vec<String>>,
    /// Commands that were begun.
    begun: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Operator for Program {
    fn commands(&self) -> Vec<&'static Command> {
        vec![&WAIT, &END]
    }

    fn run(&self, _: &Ask) -> Outcome {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open));
        Ok(json!({}))
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
        self.shared_with(&Arc::new(Token::new(TOKEN.as_bytes()).unwrap()))
    }

    /// Returns the same with this token.
    fn shared_with(self: &Arc<Self>, token: &Arc<Token>) -> Arc<Shared> {
        let token = Some(Arc::clone(token));
        Arc::new(Shared::new(Arc::clone(self) as Arc<dyn Operator>, token, 8))
    }
}

/// Returns the peer's end of a new connection, and the task that serves it.
fn connect(shared: &Arc<Shared>) -> (DuplexStream, JoinHandle<()>) {
    connect_to(shared, None)
}

fn connect_to(shared: &Arc<Shared>, tls: Option<TlsAcceptor>) -> (DuplexStream, JoinHandle<()>) {
    connect_as(Peer::Tcp("127.0.0.1:9".parse().unwrap()), shared, tls)
}

fn connect_as(
    peer: Peer,
    shared: &Arc<Shared>,
    tls: Option<TlsAcceptor>,
) -> (DuplexStream, JoinHandle<()>) {
    let (theirs, ours) = duplex(ROOM);
    let shared = Arc::clone(shared);
    let served = tokio::spawn(async move { welcome(&shared, ours, peer, tls).await });
    (theirs, served)
}

/// Returns TLS with the certificate of tests, and a client that trusts it.
fn encryption() -> (TlsAcceptor, TlsConnector) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/testdata/tls");
    let tls = ConsoleTls {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
    };
    let server = read_tls(&tls).unwrap();
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(folder.join("root.pem")).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (
        TlsAcceptor::from(server.config()),
        TlsConnector::from(Arc::new(client)),
    )
}

async fn ask(stream: &mut (impl AsyncWrite + Unpin), path: &str, token: &str) {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
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
async fn a_reader_who_reads_nothing_is_left_though_tls_has_taken_all_bytes() {
    let program = Arc::new(Program::default());
    // More than the pipe holds, and less than the buffer of TLS.
    program.change(100, 100);
    let (acceptor, connector) = encryption();
    let (stream, served) = connect_to(&program.shared(), Some(acceptor));
    let name = ServerName::try_from("exchange.test").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let stops = Instant::now();
    ask(&mut stream, "/api/v1/changes?after=0", TOKEN).await;
    timeout(PATIENCE * 2, served).await.unwrap().unwrap();
    assert!(stops.elapsed() >= PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_client_leaves_before_it_begins_is_not_run() {
    let program = Arc::new(Program::default());
    let shared = program.shared();
    let mut all = Vec::new();
    for _ in 0..WAITING {
        let (mut stream, served) = connect(&shared);
        ask(&mut stream, "/api/v1/wait", TOKEN).await;
        all.push((stream, served));
    }
    while program.begun.load(Ordering::Relaxed) < WAITING {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        let (mut stream, served) = connect(&shared);
        ask(&mut stream, "/api/v1/wait", TOKEN).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(stream);
        served.await.unwrap();
    }
    *program.is_open.lock().unwrap() = true;
    program.opened.notify_all();
    // What waits is run in order: the last one is behind all others.
    let (mut stream, served) = connect(&shared);
    ask(&mut stream, "/api/v1/wait", TOKEN).await;
    all.push((stream, served));
    for (mut stream, served) in all {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        served.await.unwrap();
    }
    assert_eq!(program.begun.load(Ordering::Relaxed), WAITING + 1);
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
    let lines = text
        .split("\n\n")
        .filter(|event| event.contains("event: line"));
    let ids = lines.filter_map(|event| event.lines().find_map(|line| line.strip_prefix("id: ")));
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

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_may_still_be_carried_out() {
    let program = Arc::new(Program::default());
    let (mut stream, served) = connect(&program.shared());
    ask(&mut stream, "/api/v1/wait", TOKEN).await;
    while program.begun.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(91)).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    *program.is_open.lock().unwrap() = true;
    program.opened.notify_all();
    served.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("may still be carried out"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_with_a_key_twice_is_refused() {
    let program = Arc::new(Program::default());
    *program.is_open.lock().unwrap() = true;
    let (mut stream, served) = connect(&program.shared());
    let body = r#"{"sender":"A","sender":"B"}"#;
    let head = format!(
        "POST /api/v1/end HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    served.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(
        answer.contains("the body: the key `sender` occurs twice"),
        "{answer}"
    );
    assert_eq!(program.begun.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_changes_something_takes_no_field_from_a_query() {
    let program = Arc::new(Program::default());
    *program.is_open.lock().unwrap() = true;
    let shared = program.shared();
    for (path, status) in [("end?sender=A", 400), ("end?", 200), ("end", 200)] {
        let (mut stream, served) = connect(&shared);
        let head = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        served.await.unwrap();
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{path}: {answer}");
    }
    assert_eq!(program.begun.load(Ordering::Relaxed), 2);
}

/// Returns the answer of a console without a token to a request with these headers.
async fn unprotected(shared: &Arc<Shared>, line: &str, headers: &str) -> String {
    let (mut stream, served) = connect(shared);
    let head = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    served.await.unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn without_a_token_only_this_machine_reads_and_no_foreign_page() {
    let program = Arc::new(Program::default());
    let shared = Arc::new(Shared::new(program as Arc<dyn Operator>, None, 8));
    let site = |site: &str| format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n");
    let [cross, same, own, typed] = ["cross-site", "same-site", "same-origin", "none"].map(site);
    let path = "/api/v1/openapi.json";
    let [get, head] = ["GET", "HEAD"].map(|method| format!("{method} {path}"));
    let [at_local, at_other] =
        ["localhost", "evil.test"].map(|of| format!("GET http://{of}{path}"));
    let (local, other) = ("Host: localhost\r\n", "Host: evil.test\r\n");
    for (line, headers, status) in [
        (&*get, local, 200),
        (&*head, local, 200),
        (&*get, &*own, 200),
        (&*get, &*typed, 200),
        ("GET /", &*cross, 200),
        (&*get, &*cross, 403),
        (&*get, &*same, 403),
        (&*get, other, 403),
        (&*at_local, local, 200),
        (&*at_other, local, 403),
        (&*at_local, other, 403),
        (&*get, "", 400),
        (&*get, &*[local, local].concat(), 400),
        ("GET /", &*[local, other].concat(), 400),
    ] {
        let answer = unprotected(&shared, line, headers).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{line} {headers}: {answer}");
    }
    for method in ["POST", "OPTIONS"] {
        let line = format!("{method} /api/v1/wait");
        let answer = unprotected(&shared, &line, local).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(
            answer.contains("only GET and HEAD are permitted"),
            "{answer}"
        );
    }
}

#[test]
fn a_token_that_is_read_again_takes_the_place_of_the_former_one() {
    let file = Scratch::new("token");
    let other = TOKEN.replace('0', "1");
    file.write(format!("{TOKEN}\n"));
    let config = ConsoleConfig {
        port: 0,
        token_file: Some(file.to_path_buf()),
        ..ConsoleConfig::default()
    };
    let console = Console::start(&config, Arc::new(Program::default())).unwrap();
    let is_taken = |token: &str| {
        let mut stream = TcpStream::connect(console.address()).unwrap();
        let head = format!(
            "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200")
    };
    file.write("short\n");
    assert!(console.read_again().is_err());
    file.write(format!("{other}\n"));
    let files = console.read_again().unwrap();
    assert_eq!(files.changed(), ["console.token_file"]);
    assert!(is_taken(TOKEN) && !is_taken(&other));
    files.adopt();
    assert!(is_taken(&other) && !is_taken(TOKEN));
    assert!(console.read_again().unwrap().changed().is_empty());
}

#[test]
fn a_token_that_is_read_again_and_is_the_same_takes_no_place() {
    let file = Scratch::new("same-token");
    file.write(format!("{TOKEN}\n"));
    let token = Token::read(&file).unwrap();
    assert!(token.read_again(&file).unwrap().is_none());
    file.write(TOKEN.replace('0', "1"));
    assert!(token.read_again(&file).unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn another_token_ends_the_streams_that_the_former_one_has_opened() {
    let program = Arc::new(Program::default());
    let token = Arc::new(Token::new(TOKEN.as_bytes()).unwrap());
    let shared = program.shared_with(&token);
    let (mut stream, served) = connect(&shared);
    let (mut of_owner, _) = connect_as(Peer::Owner, &shared, None);
    for stream in [&mut stream, &mut of_owner] {
        ask(stream, "/api/v1/changes", TOKEN).await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    // No change comes meanwhile.
    sleep(Duration::from_secs(60)).await;
    assert!(!served.is_finished());
    token.adopt(Token::new(TOKEN.replace('0', "1").as_bytes()).unwrap());
    program.change(1, 10);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    served.await.unwrap();
    assert!(
        rest.contains("event: hello") && !rest.contains("event: line"),
        "{rest}"
    );
    let mut rest = Vec::new();
    while !contains(&rest, "event: line") {
        let mut part = [0; ROOM];
        let read = of_owner.read(&mut part).await.unwrap();
        assert!(read > 0, "closed");
        rest.extend_from_slice(&part[..read]);
    }
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

#[tokio::test(start_paused = true)]
async fn health_is_told_without_the_token_and_nothing_else() {
    let program = Arc::new(Program::default());
    let counters = &program.counters;
    let of_feed = |name| counters.add_of("feed", name, Kind::Gauge, "instruments");
    let live = of_feed("instruments_live");
    let stale = of_feed("instruments_stale");
    live.set(2);
    let shared = program.shared();
    for (line, status) in [
        ("GET /healthz", 200),
        ("HEAD /healthz", 200),
        ("GET /readyz", 200),
        ("POST /readyz", 401),
        ("GET /metrics", 401),
    ] {
        let answer = unprotected(&shared, line, "Host: 10.1.0.7:9464\r\n").await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{line}: {answer}");
        assert!(!answer.contains("\"feed\""), "{answer}");
    }
    stale.set(3);
    let answer = unprotected(&shared, "GET /readyz", "Host: lb\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let body = answer.lines().last().unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = json!({ "ready": false, "feeds": 1, "not_ready": 1 });
    assert_eq!(body, expected);
}
