//! The client's side of DBN's live protocol: greeting, authentication, requests. It has no socket.

use super::config::LiveRequest;
use crate::users::DbnKey;
use fanfare_wire::text::{Escaped, beginning};

/// The longest line of a gateway in bytes.
const LINE: usize = 4_096;
/// The most bytes of an incomplete record, or of incomplete metadata.
const INCOMPLETE: usize = 16 << 20;

/// A connection, from its greeting on.
pub(super) struct Client {
    phase: Phase,
    inbox: Vec<u8>,
    /// The bytes of `inbox` that are processed.
    at: usize,
    /// The bytes to be sent.
    out: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No challenge has arrived.
    Greeted,
    /// The response to the challenge was sent.
    Answered,
    /// The session was started, and records follow.
    Started,
}

/// The session that a client requests.
pub(super) struct Terms<'a> {
    pub(super) key: &'a DbnKey,
    pub(super) dataset: &'a str,
    /// The interval of heartbeats in seconds.
    pub(super) heartbeat_s: u64,
    pub(super) requests: &'a [LiveRequest],
    /// The start of each request in nanoseconds since 1970, or `None` for now.
    pub(super) starts: &'a [Option<u64>],
}

impl Client {
    /// Begins with a connection.
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Greeted,
            inbox: Vec::new(),
            at: 0,
            out: Vec::new(),
        }
    }

    /// Takes bytes that were received.
    ///
    /// # Errors
    /// Returns the reason why the connection cannot go on.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.inbox.drain(..self.at);
        self.at = 0;
        self.inbox.extend_from_slice(bytes);
        match self.inbox.len() > INCOMPLETE {
            true => Err(format!("no record ends within {INCOMPLETE} bytes")),
            false => Ok(()),
        }
    }

    /// Processes the lines that have arrived. Returns true once the session is started.
    ///
    /// # Errors
    /// Returns the reason why the connection cannot go on.
    pub(super) fn lines(&mut self, terms: &Terms<'_>) -> Result<bool, String> {
        while self.phase != Phase::Started {
            let rest = self.rest();
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                return match rest.len() > LINE {
                    true => Err(format!("a line of the greeting has more than {LINE} bytes")),
                    false => Ok(false),
                };
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = String::from_utf8_lossy(line).trim_end().to_owned();
            self.skip(end + 1);
            self.line(&line, terms)?;
        }
        Ok(true)
    }

    fn line(&mut self, line: &str, terms: &Terms<'_>) -> Result<(), String> {
        match self.phase {
            Phase::Greeted => {
                // The version of the gateway precedes it.
                let mut fields = line.split('|');
                if let Some(challenge) = fields.find_map(|field| field.strip_prefix("cram=")) {
                    self.out
                        .extend_from_slice(auth(challenge, terms).as_bytes());
                    self.phase = Phase::Answered;
                }
            }
            Phase::Answered => {
                let mut fields = line.split('|');
                if !fields.any(|field| field == "success=1") {
                    let why = line
                        .split('|')
                        .find_map(|field| field.strip_prefix("error="));
                    let why = Escaped::text(beginning(why.unwrap_or(line), 300)).to_string();
                    return Err(format!("the gateway refuses the session: {why}"));
                }
                for (request, start) in terms.requests.iter().zip(terms.starts) {
                    let line = subscription(request, *start);
                    self.out.extend_from_slice(line.as_bytes());
                }
                self.out.extend_from_slice(b"start_session\n");
                self.phase = Phase::Started;
            }
            Phase::Started => {}
        }
        Ok(())
    }

    /// Takes the bytes to be sent.
    pub(super) fn out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Returns the bytes that were received and not processed.
    pub(super) fn rest(&self) -> &[u8] {
        self.inbox.get(self.at..).unwrap_or_default()
    }

    /// Marks this many further bytes as processed.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.inbox.len().min(self.at + bytes);
    }
}

/// Returns the response to a challenge. A client that is slow is disconnected, so that it receives
/// what it lacks by another connection, instead of having records left out.
fn auth(challenge: &str, terms: &Terms<'_>) -> String {
    let Terms {
        key,
        dataset,
        heartbeat_s,
        ..
    } = terms;
    let version = env!("CARGO_PKG_VERSION");
    let answer = key.answer(challenge);
    format!(
        "auth={answer}|dataset={dataset}|encoding=dbn|ts_out=0|heartbeat_interval_s={heartbeat_s}|\
         slow_reader_behavior=warn|client=Fanfare {version}\n"
    )
}

fn subscription(request: &LiveRequest, start: Option<u64>) -> String {
    let LiveRequest {
        schema,
        symbols,
        stype_in,
        ..
    } = request;
    let symbols = match symbols.is_empty() {
        true => "ALL_SYMBOLS".to_owned(),
        false => symbols.join(","),
    };
    let more = match start {
        Some(start) => format!("|start={start}"),
        None if schema == "mbo" => "|snapshot=1".to_owned(),
        None => String::new(),
    };
    format!("schema={schema}|stype_in={stype_in}|symbols={symbols}{more}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(schema: &str, symbols: &[&str]) -> LiveRequest {
        LiveRequest {
            schema: schema.to_owned(),
            symbols: symbols.iter().map(|symbol| (*symbol).to_owned()).collect(),
            stype_in: "raw_symbol".to_owned(),
            past_s: 0,
        }
    }

    /// Calls `with` with the terms of two subscriptions.
    fn terms<R>(with: impl FnOnce(&Terms<'_>) -> R) -> R {
        let key = DbnKey::of_a_test();
        with(&Terms {
            key: &key,
            dataset: "XNAS.ITCH",
            heartbeat_s: 30,
            requests: &[request("mbo", &["A", "B C"]), request("trades", &[])],
            starts: &[None, Some(17)],
        })
    }

    #[test]
    fn a_session_is_started_line_by_line() {
        terms(|terms| {
            let mut client = Client::new();
            let greeting = b"lsg_version=1.2\ncram=CHALLENGE\n";
            for byte in greeting {
                assert!(client.out().is_empty());
                client.take(&[*byte]).unwrap();
                assert_eq!(client.lines(terms), Ok(false));
            }
            let sent = String::from_utf8(client.out()).unwrap();
            let hash = "08300ed269c10e9742eefde8c3f3baffc3072d500ddc2a1c5aceb34ab2403a58";
            let auth = format!(
                "auth={hash}-abcde|dataset=XNAS.ITCH|encoding=dbn|ts_out=0|\
                 heartbeat_interval_s=30|slow_reader_behavior=warn|client=Fanfare "
            );
            assert!(sent.starts_with(&auth) && sent.ends_with('\n'), "{sent}");
            assert!(!sent.contains("db-AAAA"), "{sent}");
            client.take(b"success=1|session_id=7|\nDBN").unwrap();
            assert_eq!(client.lines(terms), Ok(true));
            assert_eq!(client.rest(), b"DBN");
            let sent = String::from_utf8(client.out()).unwrap();
            let expected = "schema=mbo|stype_in=raw_symbol|symbols=A,B C|snapshot=1\n\
                            schema=trades|stype_in=raw_symbol|symbols=ALL_SYMBOLS|start=17\n\
                            start_session\n";
            assert_eq!(sent, expected);
            client.skip(2);
            client.take(b"\x03").unwrap();
            assert_eq!(client.rest(), b"N\x03");
        });
    }

    #[test]
    fn a_refusal_is_told_without_control_characters() {
        terms(|terms| {
            let mut client = Client::new();
            client
                .take(b"cram=X\nsuccess=0|error=no\x1b key\n")
                .unwrap();
            let why = client.lines(terms).unwrap_err();
            assert_eq!(why, r"the gateway refuses the session: no\u{1b} key");
        });
    }

    #[test]
    fn what_has_no_end_is_refused() {
        terms(|terms| {
            let mut client = Client::new();
            client.take(&[b'x'; LINE + 1]).unwrap();
            assert!(client.lines(terms).unwrap_err().contains("4096 bytes"));
            assert!(client.take(&vec![0; INCOMPLETE]).is_err());
        });
    }
}
