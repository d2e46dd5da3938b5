//! The monitors of a gateway: Prometheus, and the page in a browser. Both send the requests of the
//! originals, and discard the responses.

use crate::scratch::Scratch;
use fanfare_console::{Console, ConsoleConfig};
use fanfare_engine::process::Process;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Gateway, GatewayOperator};
use fanfare_instruments::bench::BenchError;
use fanfare_instruments::bench::fanout::Watcher;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval of the requests of the page and of Prometheus.
const EACH: Duration = Duration::from_secs(1);
/// The page's requests of each interval (`console/page/src/plant.ts`).
const ALWAYS: [&str; 3] = ["status", "lines", "counters"];
/// The page's requests of every other interval. The page asks for the longest queue only while no
/// session lags.
const OFTEN: [&str; 4] = [
    "stages",
    "sessions?sort=lag&limit=5",
    "sessions?sort=queue&limit=1",
    "notices?limit=1000",
];
/// The connections of a page that runs: for its requests, and for the stream of changes.
const OF_PAGE: u64 = 2;
/// The time for a page that runs to draw its first charts.
const SETTLES: Duration = Duration::from_secs(2);
/// The longest time to a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// A console that is polled once a second until it ends.
pub(crate) struct Watch {
    browser: Option<Browser>,
    stop: Stop,
    asking: Option<JoinHandle<io::Result<()>>>,
    // Dropped last.
    _console: Console,
}

impl Watch {
    /// Opens a console for the gateway, and polls it: `browser` opens the page, if it is given, and
    /// otherwise the requests of a browser are sent.
    ///
    /// # Errors
    /// The console cannot be opened or does not respond, or the browser cannot be started.
    pub(crate) fn start(gateway: &Gateway, browser: Option<&str>) -> Result<Self, BenchError> {
        let config = ConsoleConfig {
            port: 0,
            ..ConsoleConfig::default()
        };
        // No request needs the functions of a running program.
        let (operator, _) = GatewayOperator::new(gateway.handle());
        let console = Console::start(&config, Arc::new(operator));
        let console = console.map_err(|error| BenchError::Missing(error.to_string()))?;
        let (address, stop) = (console.address(), Stop::new());
        let told = stop.clone();
        let browser = browser.map(|program| Browser::start(program, address, gateway));
        let browser = browser.transpose()?;
        let mut prometheus = Visitor::connect(address)?;
        let mut page = browser.is_none().then(|| Page::open(address)).transpose()?;
        let asking = std::thread::spawn(move || {
            while !told.is_raised() {
                let next = Instant::now() + EACH;
                prometheus.get("/metrics")?;
                page.as_mut().map_or(Ok(()), Page::look)?;
                while !told.is_raised() && Instant::now() < next {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            Ok(())
        });
        Ok(Self {
            browser,
            stop,
            asking: Some(asking),
            _console: console,
        })
    }
}

impl Watcher for Watch {
    /// Stops the polling. A request without a response, and a browser that has ended before, are
    /// errors: what was measured then was not watched.
    fn end(mut self) -> Result<(), BenchError> {
        self.stop.raise();
        if let Some(browser) = &mut self.browser
            && let Some(status) = browser.process.wait(Duration::ZERO)?
        {
            return Err(BenchError::Missing(format!("the browser ended: {status}")));
        }
        match self.asking.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(BenchError::Missing(format!("the console: {error}"))),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

/// A client that sends the page's requests.
struct Page {
    asks: Visitor,
    _changes: Visitor,
    turn: u32,
}

impl Page {
    /// Connects. The first responses come before the measurement.
    fn open(address: SocketAddr) -> io::Result<Self> {
        let (mut asks, mut changes) = (Visitor::connect(address)?, Visitor::connect(address)?);
        asks.get("/api/v1/openapi.json")?;
        changes.ask("/api/v1/changes")?;
        Ok(Self {
            asks,
            _changes: changes,
            turn: 0,
        })
    }

    /// Sends the requests of one interval.
    fn look(&mut self) -> io::Result<()> {
        let often = if self.turn.is_multiple_of(2) {
            &OFTEN[..]
        } else {
            &[]
        };
        self.turn = self.turn.wrapping_add(1);
        let mut all = ALWAYS.iter().chain(often);
        all.try_for_each(|what| self.asks.get(&format!("/api/v1/{what}")))
    }
}

/// The page in a headless browser, on the processors that everything else runs on.
struct Browser {
    process: Process,
    // Dropped last.
    _profile: Scratch,
}

impl Browser {
    /// Starts the browser, and waits until the page runs. Ctrl-C of a terminal does not reach the
    /// browser, which ends with this process, also if that is killed.
    fn start(program: &str, address: SocketAddr, gateway: &Gateway) -> Result<Self, BenchError> {
        let profile = Scratch::new("browser").map_err(io::Error::other)?;
        let mut command = Command::new(program);
        command
            .args(["--headless", "--no-sandbox", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.file("").display()))
            .arg(format!("http://{address}/"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start_tied(&mut command);
        let process =
            process.map_err(|error| BenchError::Missing(format!("{program}: {error}")))?;
        let browser = Self {
            process,
            _profile: profile,
        };
        let until = Instant::now() + PATIENCE;
        while gateway.count("console_connections") < OF_PAGE {
            if Instant::now() > until {
                let lack = format!("{program} has not opened the page");
                return Err(BenchError::Missing(lack));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(SETTLES);
        Ok(browser)
    }
}

/// A connection for sequential requests.
struct Visitor {
    connection: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Visitor {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_nodelay(true)?;
        Ok(Self {
            connection: BufReader::new(connection),
            body: Vec::new(),
        })
    }

    fn ask(&mut self, path: &str) -> io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.connection.get_mut().write_all(request.as_bytes())
    }

    /// Sends a request, and reads the whole response, which has to be 200.
    fn get(&mut self, path: &str) -> io::Result<()> {
        self.ask(path)?;
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if self.connection.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let header = line.trim_end().to_ascii_lowercase();
            let status = header.strip_prefix("http/1.1 ");
            if status.is_some_and(|status| !status.starts_with("200")) {
                return Err(io::Error::other(format!("{path}: {header}")));
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if header.is_empty() {
                break;
            }
        }
        self.body.resize(length, 0);
        self.connection.read_exact(&mut self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The source of the page's requests.
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../console/page/src/plant.ts");

    /// Returns the text after each `before`, up to `end`.
    fn all_after<'a>(text: &'a str, before: &str, end: &str) -> Vec<&'a str> {
        let parts = text.split(before).skip(1);
        parts
            .filter_map(|part| Some(part.split_once(end)?.0))
            .collect()
    }

    /// Returns the requests in the page's source, with their limits.
    fn of_page(source: &str) -> BTreeSet<String> {
        let sessions = all_after(source, "by(\"", ", (").into_iter().map(|by| {
            let (sort, limit) = by.split_once("\", ").unwrap();
            format!("sessions?sort={sort}&limit={limit}")
        });
        let notices = all_after(source, "const NOTICES = ", ";").into_iter();
        let notices = notices.map(|limit| format!("notices?limit={limit}"));
        let names = all_after(source, ">(\"", "\"").into_iter();
        let plain = names.filter(|name| !["sessions", "notices"].contains(name));
        plain
            .map(str::to_owned)
            .chain(sessions)
            .chain(notices)
            .collect()
    }

    #[test]
    fn the_requests_are_those_of_the_page() {
        let mut page = of_page(&std::fs::read_to_string(PAGE).unwrap());
        // It asks for the log of a gateway that has one: those of the benchmark have none.
        assert!(page.remove("log"));
        let ours = ALWAYS.iter().chain(&OFTEN);
        assert_eq!(
            ours.map(|what| (*what).to_owned()).collect::<BTreeSet<_>>(),
            page
        );
    }
}
