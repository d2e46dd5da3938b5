//! The console of a running gateway: its API, and its metrics as Debian's Prometheus reads them.

use crate::common::gateway::port;
use crate::common::{Folder, Running, eventually, fails, fanfare, nobody, run};
use fanfare_engine::tcp::{Received, Stream};
use fanfare_engine::tls::TlsClient;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TOKEN: &str = "a-token-of-24-characters";
/// The folder of the certificates of the TLS tests.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/testdata/tls");

/// A gateway with a console, a token and an audit file, and three consumers.
struct Plant {
    folder: Folder,
    server: Running,
    producers: String,
    console: String,
    consumers: Running,
}

impl Plant {
    fn start(test: &str) -> Self {
        let folder = Folder::new(test);
        let token = folder.with("token", format!("{TOKEN}\n"));
        let file = folder.with(
            "gateway.toml",
            format!(
                "audit = \"{}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
                 [console]\nport = 0\ntoken_file = \"{token}\"\nconnections = 8\n\
                 socket = \"{}\"\n",
                folder.file("audit"),
                folder.file("owner")
            ),
        );
        let mut server = Running::start(&mut fanfare(&["gateway", &file]));
        let producers = port(&server.prints("Listening for producers on 127.0.0.1:"));
        let ready = server.prints("Listening for consumers on 127.0.0.1:");
        let console = port(&server.prints("Console at http://127.0.0.1:"));
        let args = ["fanout", "consumers", "127.0.0.1", "3", "0"];
        let more = ["--messages", "1000", "--port", &port(&ready)];
        let mut consumers = Running::start(&mut fanfare(&[&args[..], &more].concat()));
        consumers.tells("3 sessions logged on");
        Self {
            folder,
            server,
            producers,
            console,
            consumers,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.console)).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Returns the status and the body of the response to a request with these headers.
    fn raw(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        self.raw(&format!("GET {path}"), &bearer, "")
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let headers =
            format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        let (status, text) = self.raw(&format!("POST {path}"), &headers, &body.to_string());
        (status, serde_json::from_str(&text).unwrap())
    }

    fn sessions(&self) -> Vec<String> {
        let (status, body) = self.get("/api/v1/sessions?port=consumers");
        assert_eq!(status, 200, "{body}");
        let all: Value = serde_json::from_str(&body).unwrap();
        let names = all["sessions"].as_array().unwrap().iter();
        names
            .map(|one| one["sender"].as_str().unwrap().to_owned())
            .collect()
    }

    fn stop(mut self) -> String {
        self.consumers.kill();
        self.server.interrupt();
        self.server.end().succeeded();
        std::fs::read_to_string(self.folder.file("audit")).unwrap()
    }
}

#[test]
fn sessions_are_seen_and_ended_by_who_has_the_token() {
    let plant = Plant::start("console");
    assert_eq!(plant.sessions(), ["C1", "C2", "C3"]);
    let (_, status) = plant.get("/api/v1/status");
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["ports"][1]["sessions"], 3, "{status}");

    let path = "/api/v1/sessions/logout";
    let told = plant.post(path, &json!({ "sender": "C1", "text": "by the API" }));
    assert_eq!(told, (200, json!({ "sessions": 1, "forced": 0 })));
    assert_eq!(
        plant.sessions(),
        ["C2", "C3"],
        "no other session is touched"
    );
    let (status, why) = plant.post(path, &json!({ "sender": "C1" }));
    assert!(
        status == 404
            && why["error"]
                == "no such session; connected: FIX.4.4:FANFARE->C2, FIX.4.4:FANFARE->C3",
        "{why}"
    );
    let (status, why) = plant.post(path, &json!({ "command": "config reload" }));
    assert!(
        status == 400 && why.to_string().contains("unknown field `command`"),
        "{why}"
    );
    let (status, why) = plant.post("/api/v1/config/reload", &json!({}));
    assert_eq!((status, why), (200, json!("reloaded: nothing has changed")));

    let audit = plant.stop();
    for line in [
        r#"logout sender=C1 text=\"by the API\""#,
        "sessions=1 forced=0",
        "console 127.0.0.1:",
    ] {
        assert!(audit.contains(line), "{line} in {audit}");
    }
}

#[test]
fn files_that_the_console_cannot_use_are_named_by_a_check_and_a_reload() {
    let folder = Folder::new("console-files");
    let pem = std::fs::read_to_string(format!("{TLS}/server.pem")).unwrap();
    let pem = folder.with("server.pem", pem);
    let (token, socket) = (folder.with("token", format!("{TOKEN}\n")), folder.file("s"));
    let file = folder.with(
        "gateway.toml",
        format!(
            "control = \"{socket}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
             [console]\nport = 0\ntoken_file = \"{token}\"\n\
             tls = {{ certificate = \"{pem}\", key = \"{TLS}/server.key\" }}\n"
        ),
    );
    run(&["gateway", "--check", &file]).succeeded();
    let mut server = Running::start(&mut fanfare(&["gateway", &file]));
    // The last line before it serves: the files have been read.
    server.prints("Console at https://127.0.0.1:");
    std::fs::write(&pem, "nothing").unwrap();
    for asked in ["reload", "check"] {
        let told = fails(&["ctl", "--socket", &socket, "config", asked]);
        assert!(told.contains("server.pem"), "{asked}: {told}");
    }
    let told = fails(&["gateway", "--check", &file]);
    assert!(told.contains("server.pem"), "{told}");
    std::fs::remove_file(&token).unwrap();
    let told = fails(&["gateway", "--check", &file]);
    assert!(told.contains(&token), "{told}");
    server.interrupt();
    server.end().succeeded();
}

/// Requests the metrics of a console over TLS, by a client that expects the tests' server.
fn encrypted(port: &str) -> io::Result<()> {
    let roots = format!("{TLS}/root.pem");
    let client = TlsClient::new(Path::new(&roots), "exchange.test", None).unwrap();
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut stream = client.connect(Stream::new(stream).unwrap()).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(
        stream.send(&[IoSlice::new(request)]).unwrap(),
        request.len()
    );
    let mut outcome = None;
    eventually("an answer over TLS", || {
        outcome = match stream.receive(&mut [0; 4096]) {
            Ok(Received::Nothing) => None,
            Ok(Received::Bytes(_)) => Some(Ok(())),
            Ok(Received::Closed) => Some(Err(ErrorKind::UnexpectedEof.into())),
            Err(error) => Some(Err(error)),
        };
        outcome.is_some()
    });
    outcome.unwrap()
}

#[test]
fn a_certificate_of_the_console_is_taken_with_all_of_a_reload_or_not_at_all() {
    let folder = Folder::new("console-renewal");
    let (socket, own) = (folder.file("s"), folder.file("own"));
    let install = |name: &str, kind: &str| {
        std::fs::copy(format!("{TLS}/{name}.{kind}"), format!("{own}.{kind}")).unwrap();
    };
    let configure = |consumers: &str| {
        let text = format!(
            "control = \"{socket}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n{consumers}\n\
             [console]\nport = 0\n\
             tls = {{ certificate = \"{own}.pem\", key = \"{own}.key\" }}\n"
        );
        folder.with("gateway.toml", text)
    };
    let asked = |what: &'static str| ["ctl", "--socket", &*socket, "config", what];
    install("server", "pem");
    install("server", "key");
    let mut server = Running::start(&mut fanfare(&["gateway", &configure("")]));
    let console = port(&server.prints("Console at https://127.0.0.1:"));
    encrypted(&console).unwrap();

    // The certificate has been replaced, and its key has not.
    install("expired", "pem");
    configure("max_sessions = 7");
    for what in ["reload", "diff"] {
        let told = fails(&asked(what));
        assert!(told.contains("`console.tls`"), "{what}: {told}");
    }
    // Both can be used, and the configuration cannot.
    install("expired", "key");
    configure("max_sessions = 0");
    let told = fails(&asked("reload"));
    assert!(told.contains("consumers.max_sessions"), "{told}");
    encrypted(&console).unwrap();

    configure("max_sessions = 7");
    let done = run(&asked("reload")).succeeded();
    assert_eq!(done.out, "reloaded: consumers.max_sessions\n");
    let why = encrypted(&console).unwrap_err().to_string();
    assert!(why.contains("expired"), "{why}");
    server.interrupt();
    server.end().succeeded();
}

#[test]
fn stages_are_measured_from_a_producers_bytes_to_the_last_consumer() {
    let plant = Plant::start("console-stages");
    let stages = || {
        let (status, body) = plant.get("/api/v1/stages");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Vec<Value>>(&body).unwrap()
    };
    let names: Vec<_> = stages()
        .iter()
        .map(|one| format!("{} {}", one["of"], one["stage"]).replace('"', ""))
        .collect();
    let expected = [
        "worker0 ring",
        "worker0 socket",
        "worker0 total",
        "ingress decode",
    ];
    assert_eq!(names, expected);
    let sending = ["fanout", "producers", "127.0.0.1", "1", "50", "500", "5"];
    run(&[&sending[..], &["--port", &plant.producers]].concat()).succeeded();
    let mut all = Vec::new();
    eventually("a message is measured to the end", || {
        all = stages();
        all[2]["windows"]["all"]["count"].as_u64() >= Some(1)
    });
    for one in &all {
        let windows = &one["windows"];
        let text = one["help"].as_str().unwrap();
        assert!(
            text.starts_with(char::is_uppercase) && text.ends_with('.'),
            "{text}"
        );
        for name in ["10s", "1m", "all"] {
            let value = |key: &str| windows[name][key].as_u64().unwrap();
            let [p50, p99, p99_9, max] = ["p50_ns", "p99_ns", "p99_9_ns", "max_ns"].map(value);
            assert!(p50 <= p99 && p99 <= p99_9 && p99_9 <= max, "{one}");
            assert!(value("count") <= windows["all"]["count"].as_u64().unwrap());
        }
        assert!(
            windows["all"]["p50_ns"].as_u64() < Some(60_000_000_000),
            "{one}"
        );
    }
    let count = all[2]["windows"]["all"]["count"].as_u64().unwrap();
    let (_, metrics) = plant.get("/metrics");
    let line = "fanfare_stage_total_seconds_count{agent=\"worker0\"} ";
    let counted = metrics.lines().find_map(|own| own.strip_prefix(line));
    assert!(
        counted.unwrap().parse::<u64>().unwrap() >= count,
        "{metrics}"
    );
    plant.stop();
}

#[test]
fn bad_requests_are_refused_and_harm_nobody() {
    let plant = Plant::start("console-bad");
    for headers in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic YTpi\r\n",
    ] {
        let (status, body) = plant.raw("GET /metrics", headers, "");
        assert!(
            status == 401 && body.contains("no valid token"),
            "{status} {body}"
        );
    }
    for (path, expected) in [
        ("/../../etc/passwd", 404),
        ("/api/v1/%2e%2e/%2e%2e", 404),
        ("/api/v2/status", 404),
        ("/api/v1/sessions?sender=C1&sender=C2", 400),
        ("/api/v1/sessions?colour=red", 400),
        ("/api/v1/sessions?port=nowhere", 400),
        ("/api/v1/sessions/logout", 405),
    ] {
        assert_eq!(plant.get(path).0, expected, "{path}");
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let line = "POST /api/v1/sessions/logout";
    assert_eq!(plant.raw(line, &bearer, "{}").0, 415, "a form of a browser");
    let with_type = format!("{bearer}Content-Type: application/json\r\n");
    for (body, expected) in [("{", 400), ("[]", 400), (&*" ".repeat(1 << 17), 413)] {
        assert_eq!(plant.raw(line, &with_type, body).0, expected);
    }
    announced_gigabyte(&plant, &with_type);
    too_many(&plant);
    assert_eq!(plant.sessions().len(), 3);
    let audit = plant.stop();
    assert!(audit.contains("refused: 1 so far"), "{audit}");
    assert!(!audit.contains("wrong"), "no token is written: {audit}");
}

/// Checks that a body of 1 GB is refused when it is announced, before it is sent.
fn announced_gigabyte(plant: &Plant, headers: &str) {
    let mut stream = plant.connect();
    let head = format!(
        "POST /api/v1/config/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\
         {headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

/// Connections beyond the limit are closed at once, and accepted again when others end. The Unix
/// socket accepts them throughout.
fn too_many(plant: &Plant) {
    let idle: Vec<TcpStream> = (0..1_000).map(|_| plant.connect()).collect();
    let is_closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]);
        !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    eventually("all but 8 are closed", || {
        idle.iter().filter(|&stream| !is_closed(stream)).count() <= 8
    });
    let mut owner = UnixStream::connect(plant.folder.file("owner")).unwrap();
    let request = b"GET /api/v1/lists HTTP/1.1\r\nHost: localhost\r\n\r\n";
    owner.write_all(request).unwrap();
    let mut answer = [0; 12];
    owner.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(idle);
    let head = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}");
    eventually("there is room again", || {
        let mut stream = plant.connect();
        let request = format!("GET /api/v1/lists HTTP/1.1\r\n{head}\r\n\r\n");
        let mut answer = [0; 12];
        let sent = stream.write_all(request.as_bytes());
        sent.is_ok() && stream.read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.1 200"
    });
}

#[test]
fn debians_prometheus_scrapes_it_and_has_nothing_to_say_against_it() {
    let plant = Plant::start("prometheus");
    let (status, metrics) = plant.get("/metrics");
    assert_eq!(status, 200);
    assert!(
        metrics.contains("fanfare_logons_total{agent=\"worker0\"} 3\n"),
        "{metrics}"
    );
    let series = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .count();
    assert!(series < 200, "sessions are no series: {series}");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which scripts/setup.sh installs");
    let mut stdin = promtool.stdin.take().unwrap();
    stdin.write_all(metrics.as_bytes()).unwrap();
    drop(stdin);
    let said = promtool.wait_with_output().unwrap();
    let said = (
        said.status.success(),
        String::from_utf8_lossy(&said.stderr).into_owned(),
    );
    assert_eq!(said, (true, String::new()));

    let own = nobody();
    let _prometheus = prometheus(&plant, &own.to_string());
    eventually("the counter is in Prometheus", || {
        let query = "/api/v1/query?query=sum(fanfare_logons_total)";
        let Ok(mut stream) = TcpStream::connect(own) else {
            return false;
        };
        let request = format!("GET {query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes());
        let read = asked.and_then(|()| stream.read_to_string(&mut answer));
        read.is_ok() && answer.contains(",\"3\"]")
    });
    plant.stop();
}

/// Starts Prometheus, which scrapes the console each second.
fn prometheus(plant: &Plant, listen: &str) -> Running {
    let config = plant.folder.with(
        "prometheus.yml",
        format!(
            "scrape_configs:\n- job_name: fanfare\n  scrape_interval: 1s\n  authorization:\n    \
             credentials_file: {}\n  static_configs:\n  - targets: ['127.0.0.1:{}']\n",
            plant.folder.file("token"),
            plant.console
        ),
    );
    let folder = plant.folder.file("tsdb");
    let mut command = crate::common::with_program(
        Command::new("prometheus"),
        &[
            &format!("--config.file={config}"),
            &format!("--storage.tsdb.path={folder}"),
            &format!("--web.listen-address={listen}"),
        ],
    );
    Running::start(&mut command)
}

/// The part of the tree that operators install for Prometheus.
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

#[test]
fn alerts_are_rules_that_fire_when_they_should() {
    let rules = format!("{PACKAGING}/prometheus/fanfare.rules.yml");
    let cases = format!("{PACKAGING}/prometheus/fanfare.rules.test.yml");
    for args in [["check", "rules", &*rules], ["test", "rules", &*cases]] {
        let said = Command::new("promtool")
            .args(args)
            .output()
            .expect("promtool");
        let text = [said.stdout, said.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(said.status.success() && text.contains("SUCCESS"), "{text}");
    }
}

/// Returns the names of counters in a text of Prometheus's queries.
fn counters_in(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_name(c));
    let names = words.filter_map(|word| word.strip_prefix("fanfare_"));
    names
        .map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned())
        .collect()
}

#[test]
fn alerts_and_dashboard_ask_for_counters_that_there_are() {
    let gateway = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/src");
    let sources = [
        format!("{gateway}/counts.rs"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../operator/src/audit.rs").to_owned(),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../console/src/api.rs").to_owned(),
    ];
    let read = |path: &String| std::fs::read_to_string(path).unwrap();
    let known: String = sources.iter().map(read).collect();
    for file in ["prometheus/fanfare.rules.yml", "grafana/fanfare.json"] {
        let text = read(&format!("{PACKAGING}/{file}"));
        let names = counters_in(&text);
        assert!(names.len() > 10, "{file}: {names:?}");
        let unknown = names
            .iter()
            .filter(|name| !known.contains(&format!("\"{name}\"")));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&String>::new(), "{file}");
    }
    let dashboard = read(&format!("{PACKAGING}/grafana/fanfare.json"));
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(
            panel["description"]
                .as_str()
                .is_some_and(|text| text.ends_with('.')),
            "{panel}"
        );
    }
}
