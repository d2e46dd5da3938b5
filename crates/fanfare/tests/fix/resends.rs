//! Tests of counterparties that request resends repeatedly, or of more than the disk should write.

use crate::common::{Folder, fanfare, said};
use crate::server::{Peer, Server};
use fanfare_peers::fix::framed;

const ORDERS: u64 = 60;

/// Returns a settings file of an acceptor that keeps its messages in `base`.
fn settings(base: &Folder, lines: &str) -> String {
    format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SenderCompID=ISLD\nTargetCompID=TW\nCheckLatency=N\nUseDataDictionary=N\n\
         FileStorePath={}\n{lines}[SESSION]\nBeginString=FIX.4.4\n",
        base.path().display()
    )
}

/// A counterparty that counts messages.
struct Counting {
    peer: Peer,
    seq: u64,
}

impl Counting {
    fn log_on(server: &Server) -> Self {
        let peer = Peer::connect(server.address);
        let mut counting = Self { peer, seq: 0 };
        counting.send("A", "98=0|108=0|");
        assert!(counting.receive().contains("|35=A|"));
        counting
    }

    fn send(&mut self, msg_type: &str, fields: &str) {
        self.seq += 1;
        let seq = self.seq;
        let fields = format!("35={msg_type}|34={seq}|49=TW|52=20261121-10:00:00|56=ISLD|{fields}");
        self.peer.send(&framed("FIX.4.4", &fields)).unwrap();
    }

    fn receive(&mut self) -> String {
        self.peer.receive().unwrap().unwrap()
    }
}

fn exported(base: &Folder) -> Vec<String> {
    let store = base.path().to_string_lossy().into_owned();
    let said = said(&mut fanfare(&["store", "export", "--all", &store]));
    assert_eq!(said.code, 0, "{}", said.err);
    said.out.lines().map(str::to_owned).collect()
}

#[test]
fn a_resend_asked_for_again_and_again_writes_nothing_and_has_an_end() {
    let base = Folder::new("resends");
    let server = Server::start("resends", &settings(&base, "RepeatedResendLimit=2\n"));
    let mut client = Counting::log_on(&server);
    for order in 0..ORDERS {
        let fields = format!("11=id{order}|21=1|55=X|54=1|60=20261121-10:00:00|38=1|40=1|");
        client.send("D", &fields);
        assert!(client.receive().contains("|35=D|"));
    }
    let before = exported(&base);
    assert_eq!(before.len() as u64, ORDERS + 1);
    let mut answers = 0;
    let logout = 'asking: loop {
        client.send("2", "7=1|16=0|");
        // The Logon becomes a gap fill.
        for seq in 1..=ORDERS + 1 {
            let message = client.receive();
            if message.contains("|35=5|") {
                break 'asking message;
            }
            let is_it = message.contains(&format!("|34={seq}|43=Y|"));
            assert!(is_it, "answer {answers}: {message}");
        }
        answers += 1;
    };
    assert!(logout.contains("|58=Too many ResendRequests|"), "{logout}");
    assert!(answers > 2, "{answers}: those within a second count once");
    assert_eq!(client.peer.receive().unwrap(), None);
    let after = exported(&base);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1, "the Logout");
}

#[test]
fn messages_of_types_that_are_not_repeated_are_one_gap_fill() {
    let base = Folder::new("filled");
    let lines = "GapfillOnReplayMessageTypes=D\n";
    let server = Server::start("filled", &settings(&base, lines));
    let mut client = Counting::log_on(&server);
    for order in 0..3 {
        let fields = format!("11=id{order}|21=1|55=X|54=1|60=20261121-10:00:00|38=1|40=1|");
        client.send("D", &fields);
        assert!(client.receive().contains("|35=D|"));
    }
    client.send("C", "164=1|94=0|33=1|58=x|");
    assert!(client.receive().contains("|35=C|"));
    client.send("2", "7=1|16=0|");
    // The Logon and three orders.
    let fill = client.receive();
    let is_fill = fill.contains("|35=4|34=1|43=Y|") && fill.contains("|36=5|123=Y|");
    assert!(is_fill, "{fill}");
    let email = client.receive();
    assert!(email.contains("|35=C|34=5|43=Y|"), "{email}");
}

#[test]
fn an_order_that_cannot_be_answered_yet_is_requested_again() {
    let base = Folder::new("unanswered");
    let lines = "SendRateMessages=1\nSendRateInterval=60000\nSendRateQueue=1\n";
    let server = Server::start("unanswered", &settings(&base, lines));
    let mut client = Counting::log_on(&server);
    for order in 0..3 {
        let fields = format!("11=id{order}|21=1|55=X|54=1|60=20261121-10:00:00|38=1|40=1|");
        client.send("D", &fields);
    }
    assert!(client.receive().contains("|35=D|"));
    let logout = client.receive();
    let why = "|58=message 4 has no answer: the queue of messages to send is full|";
    assert!(
        logout.contains("|35=5|") && logout.contains(why),
        "{logout}"
    );
    assert_eq!(client.peer.receive().unwrap(), None);
    client.peer = Peer::connect(server.address);
    client.send("A", "98=0|108=0|");
    assert!(client.receive().contains("|35=A|"));
    let request = client.receive();
    let asks = request.contains("|35=2|") && request.contains("|7=4|");
    assert!(asks, "{request}");
}

#[test]
fn what_is_sent_back_and_kept_has_limits() {
    let base = Folder::new("answers");
    let lines = "MaxTestReqIDLength=1000\nAnswerRateBytes=1000\n";
    let server = Server::start("answers", &settings(&base, lines));
    let mut client = Counting::log_on(&server);
    client.send("1", &format!("112={}|", "x".repeat(1001)));
    let reject = client.receive();
    assert!(
        reject.contains("|35=3|") && reject.contains("|371=112|"),
        "{reject}"
    );
    let id = format!("112={}|", "x".repeat(1000));
    for _ in 0..200 {
        client.send("1", &id);
        let answer = client.receive();
        if answer.contains("|35=5|") {
            let why = "|58=more than 10000 answers or 1000 bytes of them a second|";
            assert!(answer.contains(why), "{answer}");
            let kept: usize = exported(&base).iter().map(String::len).sum();
            assert!(kept > 10_000, "{kept}");
            return;
        }
        assert!(answer.contains(&id), "{answer}");
    }
    panic!("it goes on");
}
