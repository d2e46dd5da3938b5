//! Requests and responses in one FIX session: ApplMessageRequest(BW), its acknowledgement (BX), the
//! messages with ApplSeqNum(1181), and ApplMessageReport(BY).

use super::{APPL_SEQ_NUM, Answer, Caller, ReplaySource, write_range};
use crate::agent;
use crate::host::{Handler, Host, HostError, Initiator, Peer, Peers, Refusal};
use crate::idle::Idle;
use crate::stop::Stop;
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, Event, SessionId};
use fanfare_fix::tag;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;

/// ApplReqID(1346), ApplReqType(1347), ApplResponseType(1348), NoApplIDs(1351), RefApplID(1355).
const APPL_REQ_ID: u32 = 1346;
const APPL_REQ_TYPE: u32 = 1347;
const APPL_RESPONSE_TYPE: u32 = 1348;
const NO_APPL_IDS: u32 = 1351;
const REF_APPL_ID: u32 = 1355;

/// The handler that sends the caller's requests and passes on the responses.
pub(super) struct Asker {
    caller: Caller,
    appl_id: Option<String>,
    timeout: u64,
    under_way: Option<Request>,
    /// The number of requests so far.
    requests: u64,
    /// Parts of a response that did not fit into the channel, at most those of one duty cycle:
    /// nothing more is read.
    kept: VecDeque<Answer>,
}

struct Request {
    range: Range<u32>,
    is_sent: bool,
    /// The time at which the request fails, unless a part arrives.
    deadline: u64,
}

/// Makes a host with the session, whose numbers restart with each Logon.
pub(super) fn host(caller: Caller, source: ReplaySource) -> io::Result<Host<Asker>> {
    let id = SessionId::new(source.version, &source.sender, &source.target);
    let mut config = Config::new(id);
    config.reset_on_logon = true;
    let fields = [
        (tag::USERNAME, source.username),
        (tag::PASSWORD, source.password),
    ];
    for (tag, value) in fields {
        if let Some(value) = value {
            config.logon_fields.push((tag, value.into_bytes().into()));
        }
    }
    let asker = Asker {
        caller,
        appl_id: source.appl_id,
        timeout: u64::try_from(source.timeout.as_nanos()).unwrap_or(u64::MAX),
        under_way: None,
        requests: 0,
        kept: VecDeque::new(),
    };
    let mut host = Host::new(asker)?.named("replay");
    let initiator = Initiator::new(config, vec![source.address]);
    host.initiate(initiator)
        .map_err(|error: HostError| io::Error::other(error))?;
    Ok(host)
}

/// Runs the session until the flag is raised.
pub(super) fn run(host: &mut Host<Asker>, stop: &Stop) {
    if let Err(error) = agent::run(host, Idle::BackOff, stop) {
        host.handler().end(Answer::Refused(error.to_string()));
    }
}

impl Asker {
    /// Passes on a part of a response, or keeps it.
    fn answer(&mut self, answer: Answer) {
        self.kept.push_back(answer);
        self.hand_over();
    }

    fn hand_over(&mut self) {
        while let Some(answer) = self.kept.pop_front() {
            if let Some(answer) = self.caller.offer(answer) {
                self.kept.push_front(answer);
                return;
            }
        }
    }

    /// Ends the request under way.
    fn end(&mut self, answer: Answer) {
        if self.under_way.take().is_some() {
            self.answer(answer);
        }
    }

    fn send(&mut self, peer: &mut Peer<'_>, range: &Range<u32>) -> bool {
        self.requests += 1;
        let (number, appl_id) = (self.requests, self.appl_id.as_deref().unwrap_or("0"));
        let sent = peer.send(b"BW", |out| {
            out.u64(APPL_REQ_ID, number).u64(APPL_REQ_TYPE, 0);
            out.u64(NO_APPL_IDS, 1).str(REF_APPL_ID, appl_id);
            write_range(out, range);
        });
        sent.is_ok()
    }

    /// Reports a refusal with its own text.
    fn refuse(&mut self, what: &str, message: &AppMessage<'_>) {
        let text = message.message.get(tag::TEXT).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        self.end(Answer::Refused(format!("the replay {what}: {text:?}")));
    }
}

impl Handler for Asker {
    fn room(&mut self) -> usize {
        self.hand_over();
        match self.kept.is_empty() {
            true => usize::MAX,
            false => 0,
        }
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let Some(request) = &mut self.under_way else {
            return;
        };
        request.deadline = peer.now().mono.saturating_add(self.timeout);
        let (first, last) = (request.range.start, request.range.end - 1);
        match message.message.msg_type() {
            b"BX" => match message.message.get(APPL_RESPONSE_TYPE) {
                None | Some(b"0") => {}
                Some(_) => self.refuse("does not have these messages", message),
            },
            b"BY" => self.end(Answer::Done),
            b"j" => self.refuse("refused the request", message),
            _ => {
                let number = message.message.get(APPL_SEQ_NUM);
                let number = number.and_then(|text| str::from_utf8(text).ok()?.parse().ok());
                let Some(number) = number.filter(|number| (first..=last).contains(number)) else {
                    return;
                };
                let message = message.message.bytes().into();
                self.answer(Answer::Fix { number, message });
                if number == last {
                    self.end(Answer::Done);
                }
            }
        }
    }

    fn on_event(&mut self, _: &mut Peer<'_>, event: &Event<'_>) {
        if let Event::RejectReceived(_) = event {
            self.end(Answer::Refused("the replay rejected the request".into()));
        }
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, reason: DisconnectReason) {
        self.end(Answer::Refused(format!(
            "the replay's session ended: {reason}"
        )));
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.end(Answer::Refused(format!(
            "cannot reach the replay at {address}: {why}"
        )));
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let now = peers.now().mono;
        if self.under_way.is_none()
            && let Some(range) = self.caller.try_next()
        {
            self.under_way = Some(Request {
                range,
                is_sent: false,
                deadline: now.saturating_add(self.timeout),
            });
        }
        let Some(request) = &self.under_way else {
            return 0;
        };
        if now >= request.deadline {
            self.end(Answer::Refused("the replay does not answer".into()));
            return 1;
        }
        if request.is_sent {
            return 0;
        }
        let range = request.range.clone();
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        let is_sent = self.send(&mut peer, &range);
        if let Some(request) = &mut self.under_way {
            request.is_sent = is_sent;
        }
        1
    }
}
