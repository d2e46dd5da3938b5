//! `fanfare ctl`: queries and controls a running program over its control socket.

mod asked;
mod show;

use anyhow::{Context, Result, bail};
use asked::Asked;
use clap::Args as ClapArgs;
use fanfare_wire::text::SafeJson;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::print::{note, say};
use crate::usage::{self, misuse};

/// The longest time to a response: a reload waits for the sessions that it ends.
const PATIENCE: Duration = Duration::from_secs(90);
/// The longest response, in bytes.
const LONGEST: u64 = 16 << 20;

/// Query and control a running gateway, `fix acceptor` or `fix initiator` over its control socket.
///
/// A command that the program does not have, or a field that it does not take, is wrong usage.
///
/// Exit status: 0 done, 1 failed (one sentence on stderr states why), 2 wrong usage.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The control socket (required): `control` of a gateway's configuration, `--control` of `fix
    /// acceptor` and `fix initiator`.
    #[arg(long, short, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the response as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    asked: Asked,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(socket) = &args.socket else {
        misuse!("expected --socket PATH, the control socket of the program");
    };
    let request = args.asked.request();
    let answer = ask(socket, &request).with_context(|| socket.display().to_string())?;
    if answer["ok"] != true {
        let why = show::text(&answer["error"]);
        note!("fanfare: {}: {why}", socket.display());
        return Ok(match answer["fault"] == "usage" {
            true => ExitCode::from(usage::STATUS),
            false => ExitCode::FAILURE,
        });
    }
    let result = &answer["result"];
    match args.json {
        true => say!("{}", SafeJson(result)),
        false => show::show(result, request["command"].as_str().unwrap_or_default()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends a request, and returns the line of the response. A response may arrive before the request
/// is sent: a program with too many connections says so, and closes.
///
/// # Errors
/// Returns the error of the write, or else of the read, if there is no response, and
/// [`io::ErrorKind::UnexpectedEof`] if the connection was closed without one. A response of more
/// than 16 MiB is an error, too.
pub(in crate::cmd) fn line(
    stream: &mut BufReader<UnixStream>,
    request: &str,
) -> io::Result<String> {
    let sent = stream
        .get_mut()
        .write_all(format!("{request}\n").as_bytes());
    let mut line = String::new();
    match stream.take(LONGEST).read_line(&mut line) {
        Ok(0) => sent.and(Err(io::ErrorKind::UnexpectedEof.into())),
        Ok(_) if line.len() as u64 == LONGEST && !line.ends_with('\n') => {
            Err(io::Error::other("the response is longer than 16 MiB"))
        }
        Ok(_) => Ok(line),
        Err(error) => Err(sent.err().unwrap_or(named(error))),
    }
}

/// Returns the error of a read, with a timeout under its own name: the system calls it "temporarily
/// unavailable".
pub(in crate::cmd) fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// Sends the command and returns its result.
fn ask(socket: &Path, request: &Value) -> Result<Value> {
    let stream = UnixStream::connect(socket).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let line = line(&mut BufReader::new(stream), &request.to_string()).context("no answer")?;
    read(&line)
}

/// Parses a response.
fn read(line: &str) -> Result<Value> {
    if line.starts_with("HTTP/") {
        bail!("a server of HTTP listens there, such as the console: expected the control socket");
    }
    let answer: Value = serde_json::from_str(line).context("the answer is no JSON")?;
    match answer["ok"].is_boolean() {
        true => Ok(answer),
        false => bail!("the answer is not of a control socket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_before_the_request_is_the_response_and_none_is_an_error() {
        let (own, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"{\"ok\":false}\n").unwrap();
        drop(far);
        let mut own = BufReader::new(own);
        assert_eq!(line(&mut own, "{}").unwrap(), "{\"ok\":false}\n");
        let none = line(&mut own, "{}").unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::BrokenPipe);
        let (own, mut far) = UnixStream::pair().unwrap();
        let mut own = BufReader::new(own);
        let closing = std::thread::spawn(move || far.read(&mut [0; 3]).unwrap());
        let none = line(&mut own, "{}").unwrap_err();
        assert_eq!(closing.join().unwrap(), 3);
        assert_eq!(none.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_control_socket_is_named_so() {
        assert_eq!(read("{\"ok\":true}\n").unwrap()["ok"], true);
        for (line, why) in [
            ("HTTP/1.1 400 Bad Request\r\n", "such as the console"),
            ("8=FIX.4.4\n", "no JSON"),
            ("7\n", "not of a control socket"),
        ] {
            let told = format!("{:#}", read(line).unwrap_err());
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_program_that_does_not_respond_in_time_is_named_so() {
        let (own, _far) = UnixStream::pair().unwrap();
        own.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let none = line(&mut BufReader::new(own), "{}").unwrap_err();
        assert_eq!(none.to_string(), "timed out");
    }
}
