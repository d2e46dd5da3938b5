//! Who watches a gateway: Prometheus, and the page in a browser. Both ask as the originals do,
//! and nothing is made of the answers.

use crate::scratch::Scratch;
use fanfare_console::{Console, ConsoleConfig};
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Gateway, GatewayOperator};
use fanfare_instruments::bench::BenchError;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the page and Prometheus ask.
const EACH: Duration = Duration::from_secs(1);
/// What the page asks for each time, and every other time (`console/page/src/plant.ts`).
const ALWAYS: [&str; 3] = ["status", "lines", "counters"];
const OFTEN: [&str; 4] = [
    "stages",
    "sessions?sort=lag&limit=5",
    "notices?limit=1000",
    "log",
];
/// How long a browser has to load the page.
const BEGINS: Duration = Duration::from_secs(5);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A console that is asked once a second until it is dropped.
pub(crate) struct Watch {
    browser: Option<Browser>,
    stop: Stop,
    asking: Option<JoinHandle<io::Result<()>>>,
    // The last to end.
    _console: Console,
}

impl Watch {
    /// Opens a console for the gateway, and watches it: the page is asked for by `browser`, if
    /// there is one, and otherwise as a browser does.
    ///
    /// # Errors
    /// The console cannot be opened or does not answer, or the browser cannot be started.
    pub(crate) fn start(gateway: &Gateway, browser: Option<&str>) -> Result<Self, BenchError> {
        let config = ConsoleConfig {
            port: 0,
            ..ConsoleConfig::default()
        };
        // Nobody asks for what only a running program can do.
        let (operator, _) = GatewayOperator::new(gateway.handle());
        let console = Console::start(&config, Arc::new(operator));
        let console = console.map_err(|error| BenchError::Missing(error.to_string()))?;
        let (address, stop) = (console.address(), Stop::new());
        let told = stop.clone();
        let browser = browser.map(|program| Browser::start(program, address));
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

    /// Ends the watching.
    ///
    /// # Errors
    /// A question was not answered.
    fn end(&mut self) -> io::Result<()> {
        self.stop.raise();
        drop(self.browser.take());
        match self.asking.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => Err(io::Error::other("the thread that asks has panicked")),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            crate::print::note!("the console was not watched to the end: {error}");
        }
    }
}

/// Asks for what the page asks for.
struct Page {
    asks: Visitor,
    _changes: Visitor,
    turn: u32,
}

impl Page {
    /// The first answers come before anything is measured.
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

    /// What is asked for in one second.
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

/// The page in a browser without a window, on the processors that everything else is on.
struct Browser {
    process: Child,
    _profile: Scratch,
}

impl Browser {
    /// Returns after five seconds, when the page is there.
    fn start(program: &str, address: SocketAddr) -> Result<Self, BenchError> {
        let profile = Scratch::new("browser").map_err(io::Error::other)?;
        let process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.file("").display()))
            .arg(format!("http://{address}/"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process =
            process.map_err(|error| BenchError::Missing(format!("{program}: {error}")))?;
        std::thread::sleep(BEGINS);
        Ok(Self {
            process,
            _profile: profile,
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It has ended by itself, or ends now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection that asks for one thing after the other.
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

    /// Asks, and reads the whole answer. That there is nothing of the kind is an answer.
    fn get(&mut self, path: &str) -> io::Result<()> {
        self.ask(path)?;
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if self.connection.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let header = line.trim_end().to_ascii_lowercase();
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
