//! The source of the data: the control socket, or the console.

use crate::cmd::ctl;
use crate::usage::misuse;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};
use std::fmt;
use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time to a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest response, in bytes.
const LONGEST: u64 = 16 << 20;

/// The connection to the gateway.
pub(super) enum Source {
    /// The control socket, with the connection if there is one.
    Socket(PathBuf, Option<BufReader<UnixStream>>),
    /// The console: host with port, and the token.
    Console(String, Option<String>),
}

impl Source {
    pub(super) fn socket(path: &Path) -> Self {
        Self::Socket(path.to_owned(), None)
    }

    pub(super) fn url(url: &str, token_file: Option<&Path>) -> Result<Self> {
        let Some(host) = url.strip_prefix("http://") else {
            misuse!("--url {url}: expected http://HOST:PORT; use --socket if the console has TLS");
        };
        let host = host.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
            misuse!("--url {url}: expected http://HOST:PORT, without a path");
        }
        let token = token_file.map(|path| {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| path.display().to_string())?;
            let token = text.trim_end().to_owned();
            match token.bytes().all(|byte| byte.is_ascii_graphic()) && !token.is_empty() {
                true => Ok(token),
                false => Err(anyhow!("{} has no token", path.display())),
            }
        });
        Ok(Self::Console(host.to_owned(), token.transpose()?))
    }

    /// Returns the result of a read-only command.
    ///
    /// # Errors
    /// There is no response, or the command is refused.
    pub(super) fn ask(&mut self, command: &str, fields: &Value) -> Result<Value> {
        match self {
            Self::Socket(path, kept) => {
                let result = ask_socket(path, kept, command, fields);
                if result.is_err() {
                    // The next request reconnects.
                    *kept = None;
                }
                result
            }
            Self::Console(host, token) => ask_console(host, token.as_deref(), command, fields),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path, _) => write!(f, "{}", path.display()),
            Self::Console(host, _) => write!(f, "http://{host}"),
        }
    }
}

fn ask_socket(
    path: &Path,
    kept: &mut Option<BufReader<UnixStream>>,
    command: &str,
    fields: &Value,
) -> Result<Value> {
    let reader = match kept {
        Some(reader) => reader,
        None => {
            let stream = UnixStream::connect(path).context("cannot connect")?;
            stream.set_read_timeout(Some(PATIENCE))?;
            kept.insert(BufReader::new(stream))
        }
    };
    let mut request = Map::new();
    request.insert("command".to_owned(), command.into());
    request.extend(fields.as_object().cloned().unwrap_or_default());
    let request = Value::Object(request).to_string();
    let line = ctl::line(reader, &request).context("no answer")?;
    let mut answer: Value = serde_json::from_str(&line).context("no answer")?;
    match answer["ok"].as_bool() {
        Some(true) => Ok(answer["result"].take()),
        _ => bail!(
            "{command}: {}",
            answer["error"].as_str().unwrap_or("refused")
        ),
    }
}

fn ask_console(host: &str, token: Option<&str>, command: &str, fields: &Value) -> Result<Value> {
    let mut path = format!("/api/v1/{}", command.replace(' ', "/"));
    for (at, (name, value)) in fields.as_object().into_iter().flatten().enumerate() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(path, "{}{name}={text}", if at == 0 { '?' } else { '&' });
    }
    let addresses = host.to_socket_addrs().context("the host has no address")?;
    let mut stream = Err(anyhow!("the host has no address"));
    for address in addresses {
        stream = TcpStream::connect_timeout(&address, PATIENCE).context("cannot connect");
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    if let Some(token) = token {
        let _ = write!(head, "Authorization: Bearer {token}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream
        .take(LONGEST)
        .read_to_end(&mut answer)
        .map_err(ctl::named)
        .context("no answer")?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer is not HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let body: Value = serde_json::from_str(body).context("the answer is not JSON")?;
    match status {
        "200" => Ok(body),
        status => bail!(
            "{command}: {status} {}",
            body["error"].as_str().unwrap_or_default()
        ),
    }
}
