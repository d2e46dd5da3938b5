//! Requests and responses in one FIX session: ApplMessageRequest(BW), its acknowledgement (BX), the
//! messages with ApplSeqNum(1181), and ApplMessageReport(BY).

use super::{APPL_SEQ_NUM, Answer, Asked, Caller, ReplaySource, write_range};
use crate::agent;
use crate::host::{Handler, Host, HostError, Initiator, Peer, Peers, Refusal};
use crate::idle::Idle;
use crate::stop::Stop;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, Event, SendError, SessionId};
use fanfare_fix::tag;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;

/// ApplReqID(1346), ApplReqType(1347), ApplResponseType(1348), NoApplIDs(1351), RefApplID(1355),
/// ApplReportType(1426).
const APPL_REQ_ID: u32 = 1346;
const APPL_REQ_TYPE: u32 = 1347;
const APPL_RESPONSE_TYPE: u32 = 1348;
const NO_APPL_IDS: u32 = 1351;
const REF_APPL_ID: u32 = 1355;
const APPL_REPORT_TYPE: u32 = 1426;

/// The handler that sends the caller's requests and passes on the responses.
pub(super) struct Asker {
    caller: Caller,
    appl_id: Option<String>,
    timeout: u64,
    under_way: Option<Request>,
    /// The run of the channel, as it was seen last.
    run: u64,
    /// Whether the session was logged out, and the attempt to open it again has neither succeeded
    /// nor failed so far. A request that has not been sent waits for that.
    reopens: bool,
    /// The number of requests sent so far: ApplReqID(1346) of the newest.
    requests: u64,
    owed: Owed,
    /// Parts of a response that did not fit into the channel, at most those of one duty cycle:
    /// nothing more is read.
    kept: VecDeque<Answer>,
}

struct Request {
    run: u64,
    range: Range<u32>,
    /// MsgSeqNum(34) of the request, once it is sent.
    sent: Option<u64>,
    /// The time at which the request fails, unless it is sent or a message of the range arrives.
    deadline: u64,
    /// The number of messages that may still extend the deadline.
    extensions: u32,
}

/// The answers that requests of this session have not had yet, the newest included. An answer
/// without ApplReqID(1346) is to the newest request if no other is owed behind it.
#[derive(Default)]
struct Owed {
    acks: u64,
    reports: u64,
    /// Whether a request has timed out, and no answer since then was to the newest request. Its
    /// answers may be late or never come, so that the counts may be too high.
    is_doubtful: bool,
}

/// Makes a host with the session, whose numbers restart with each Logon.
pub(super) fn host(caller: Caller, source: ReplaySource) -> io::Result<Host<Asker>> {
    let id = SessionId::new(source.version, &source.sender, &source.target);
    let mut config = Config::new(id);
    config.reset_on_logon = true;
    let timeout = u64::try_from(source.timeout.as_nanos()).unwrap_or(u64::MAX);
    // Requests wait for the end of a logout.
    config.logout_timeout = config.logout_timeout.min(timeout);
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
        timeout,
        under_way: None,
        run: 0,
        reopens: false,
        requests: 0,
        owed: Owed::default(),
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

    /// Ends the request under way, because it has timed out. Its answers may be late. If the next
    /// request times out too, they may never come, and those to every later request would be taken
    /// for them: the session is logged out, as nothing is owed in the next session.
    fn time_out(&mut self, peers: &mut Peers<'_>) {
        let request = self.under_way.as_ref();
        let is_sent = request.is_some_and(|request| request.sent.is_some());
        self.end(Answer::Refused("the replay does not answer".into()));
        if is_sent && std::mem::replace(&mut self.owed.is_doubtful, true) {
            self.reopen(peers, "requests without answers");
        }
    }

    /// Logs the session out: its initiator opens it again.
    fn reopen(&mut self, peers: &mut Peers<'_>, why: &str) {
        if let Some(mut peer) = peers.logged_on().next() {
            peer.logout(why);
            self.reopens = true;
        }
    }

    /// Takes the next request, if none is under way.
    fn begin(&mut self, now: u64) {
        if self.under_way.is_none()
            && let Some(Asked { run, range }) = self.caller.try_next()
        {
            self.under_way = Some(Request {
                run,
                extensions: range.end.saturating_sub(range.start),
                range,
                sent: None,
                deadline: now.saturating_add(self.timeout),
            });
        }
    }

    /// Ends the request under way if it is of an earlier run of the channel. Answers that are owed
    /// in this session have messages of that run, whose numbers the new one has again: the session
    /// is logged out. Called after [`Self::begin`], as no request is of a later run than the one
    /// that is read after it.
    fn end_earlier_run(&mut self, peers: &mut Peers<'_>) {
        let run = self.caller.run();
        let is_new = std::mem::replace(&mut self.run, run) != run;
        if is_new && (self.owed.acks > 0 || self.owed.reports > 0) {
            self.reopen(peers, "the channel begins again");
        }
        let request = self.under_way.as_ref();
        if request.is_some_and(|request| request.run != run) {
            self.end(Answer::Refused("cancelled".into()));
        }
    }

    /// Ends the request under way with what its service says, if it has been sent.
    fn end_sent(&mut self, answer: Answer) {
        let request = self.under_way.as_ref();
        if request.is_some_and(|request| request.sent.is_some()) {
            self.end(answer);
        }
    }

    /// Sends the request of a range. Returns its MsgSeqNum(34).
    fn send(&mut self, peer: &mut Peer<'_>, range: &Range<u32>) -> Result<u64, SendError> {
        let (number, appl_id) = (self.requests + 1, self.appl_id.as_deref().unwrap_or("0"));
        let sent = peer.send(b"BW", |out| {
            out.u64(APPL_REQ_ID, number).u64(APPL_REQ_TYPE, 0);
            out.u64(NO_APPL_IDS, 1).str(REF_APPL_ID, appl_id);
            write_range(out, range);
        })?;
        self.requests = number;
        self.caller.count();
        self.owed.acks += 1;
        self.owed.reports += 1;
        Ok(sent)
    }

    /// Returns whether an answer is to the newest request; `owed` is the number of answers still to
    /// come behind it.
    fn is_to_newest(&self, message: &Message<'_>, owed: u64) -> bool {
        match message.get(APPL_REQ_ID) {
            Some(id) => id == self.requests.to_string().as_bytes(),
            None => owed == 0,
        }
    }

    /// Handles an ApplMessageRequestAck(BX).
    fn acknowledged(&mut self, message: &Message<'_>) {
        self.owed.acks = self.owed.acks.saturating_sub(1);
        if !self.is_to_newest(message, self.owed.acks) {
            return;
        }
        // Requests are answered in their order, so that no report of an earlier one follows. A
        // request that is refused may have none.
        self.owed = Owed {
            reports: 1,
            ..Owed::default()
        };
        match message.get(APPL_RESPONSE_TYPE) {
            None | Some(b"0") => {}
            Some(_) => self.end_sent(refusal("does not have these messages", message)),
        }
    }

    /// Handles an ApplMessageReport(BY) of the end of a response.
    fn reported(&mut self, message: &Message<'_>) {
        self.owed.reports = self.owed.reports.saturating_sub(1);
        if self.is_to_newest(message, self.owed.reports) {
            self.owed = Owed::default();
            self.end_sent(Answer::Done);
        }
    }

    /// Handles the rejection of a message. A request that is rejected has no other answer. A
    /// rejection without RefMsgType(372) may be of any message of the session: it is of the request
    /// if RefSeqNum(45) names that, or no message at all.
    fn rejected(&mut self, message: &Message<'_>, answer: Answer) {
        let sent = self.under_way.as_ref().and_then(|request| request.sent);
        let number = message.u64(tag::REF_SEQ_NUM).ok();
        let is_of_request = match message.get(tag::REF_MSG_TYPE) {
            Some(of) => of == b"BW",
            None => number.is_none_or(|number| sent == Some(number)),
        };
        if !is_of_request {
            return;
        }
        self.owed.acks = self.owed.acks.saturating_sub(1);
        self.owed.reports = self.owed.reports.saturating_sub(1);
        let is_to_newest = match number {
            Some(number) => sent == Some(number),
            None => self.owed.acks == 0,
        };
        if is_to_newest {
            self.owed = Owed::default();
            self.end_sent(answer);
        }
    }

    /// Passes on a message of the range under way. The last one ends the response: a service of
    /// FIX.5.0SP1 has no report for that.
    fn take(&mut self, now: u64, message: &Message<'_>) {
        // Before the request is sent, a message is of an earlier one.
        let request = self.under_way.as_mut();
        let Some(request) = request.filter(|request| request.sent.is_some()) else {
            return;
        };
        let range = request.range.clone();
        let number = message.get(APPL_SEQ_NUM);
        let number = number.and_then(|text| str::from_utf8(text).ok()?.parse::<u32>().ok());
        let Some(number) = number.filter(|number| range.contains(number)) else {
            return;
        };
        // Other messages, such as News(B), extend no deadline, nor do more than were requested.
        if request.extensions > 0 {
            request.extensions -= 1;
            request.deadline = now.saturating_add(self.timeout);
        }
        let message = message.bytes().into();
        self.answer(Answer::Fix { number, message });
        if number == range.end - 1 {
            self.end(Answer::Done);
        }
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
        let message = &message.message;
        let msg_type = message.msg_type();
        if msg_type == b"BY" && !ends_response(message) {
            return;
        }
        match msg_type {
            b"BX" => self.acknowledged(message),
            b"BY" => self.reported(message),
            b"j" => self.rejected(message, refusal("refused the request", message)),
            _ => self.take(peer.now().mono, message),
        }
    }

    fn on_event(&mut self, _: &mut Peer<'_>, event: &Event<'_>) {
        if let Event::RejectReceived(message) = event {
            let why = "the replay rejected the request".into();
            self.rejected(message, Answer::Refused(why));
        }
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        // The wait for the session counts for no request.
        if std::mem::take(&mut self.reopens)
            && let Some(request) = &mut self.under_way
        {
            request.deadline = peer.now().mono.saturating_add(self.timeout);
        }
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, reason: DisconnectReason) {
        self.owed = Owed::default();
        let answer = Answer::Refused(format!("the replay's session ended: {reason}"));
        match reason {
            // After a logout of our own, a request that has not been sent waits for the next
            // session.
            DisconnectReason::LogoutComplete | DisconnectReason::LogoutTimeout => {
                self.end_sent(answer);
            }
            _ => {
                self.reopens = false;
                self.end(answer);
            }
        }
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.reopens = false;
        self.end(Answer::Refused(format!(
            "cannot reach the replay at {address}: {why}"
        )));
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let now = peers.now().mono;
        self.begin(now);
        self.end_earlier_run(peers);
        let Some(request) = &self.under_way else {
            return 0;
        };
        let waits = self.reopens && request.sent.is_none();
        if now >= request.deadline && !waits {
            self.time_out(peers);
            return 1;
        }
        if request.sent.is_some() {
            return 0;
        }
        let range = request.range.clone();
        let Some(mut peer) = peers.logged_on().next() else {
            return 0;
        };
        match self.send(&mut peer, &range) {
            Ok(number) => {
                if let Some(request) = &mut self.under_way {
                    request.sent = Some(number);
                    request.deadline = now.saturating_add(self.timeout);
                }
                1
            }
            Err(SendError::Encode(why)) => {
                let why = format!("the request cannot be encoded: {why}");
                self.end(Answer::Refused(why));
                1
            }
            // The session may send it later.
            Err(_) => 0,
        }
    }
}

/// Returns a refusal with its own text.
fn refusal(what: &str, message: &Message<'_>) -> Answer {
    let text = message.get(tag::TEXT).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    Answer::Refused(format!("the replay {what}: {text:?}"))
}

/// Returns whether an ApplMessageReport(BY) ends a response: others say that the numbers restart,
/// or that the service is alive.
fn ends_response(report: &Message<'_>) -> bool {
    !matches!(report.get(APPL_REPORT_TYPE), Some(b"0" | b"2"))
}
