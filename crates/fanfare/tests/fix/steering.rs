//! Tests of sessions of `fix acceptor` and `fix initiator` controlled by `fanfare ctl`.

use crate::common::{Folder, Said, eventually, fanfare, said};
use crate::initiator::{finish, settings, start_with};
use crate::server::Server;
use serde_json::Value;

/// A program with a control socket and an audit file.
struct Steered {
    socket: String,
    audit: String,
}

impl Steered {
    fn new(folder: &Folder, name: &str) -> Self {
        Self {
            socket: folder.file(name),
            audit: folder.file(&format!("{name}.jsonl")),
        }
    }

    fn options(&self) -> [&str; 4] {
        ["--control", &self.socket, "--audit", &self.audit]
    }

    fn ctl(&self, args: &[&str]) -> Said {
        said(&mut fanfare(
            &[&["ctl", "--json", "--socket", &self.socket], args].concat(),
        ))
    }

    fn does(&self, args: &[&str]) -> Value {
        self.ctl(args).succeeded().json()
    }

    /// Returns a session, as the program lists it.
    fn session(&self, name: &str) -> Value {
        self.does(&["sessions", name])[0].clone()
    }

    fn is(&self, name: &str, state: &str) -> bool {
        self.session(name)["state"] == state
    }

    /// Returns the audited commands, with their outcomes.
    fn audited(&self) -> String {
        std::fs::read_to_string(&self.audit).unwrap_or_default()
    }
}

/// Sets numbers at both ends while the session is disabled, and resets them to 1.
fn the_numbers_are_set(ours: &Steered, theirs: &Steered) {
    theirs.does(&["sessions", "stop", "ISLD"]);
    eventually("it is stopped", || {
        theirs.is("ISLD", "stopped") && ours.is("TW", "not connected")
    });
    theirs.does(&["sessions", "set-seq", "ISLD", "--next-sender", "500"]);
    ours.does(&["sessions", "set-seq", "TW", "--next-target", "500"]);
    theirs.does(&["sessions", "start", "ISLD"]);
    eventually("it is on with the new numbers", || {
        let session = ours.session("TW");
        session["state"] == "logged on" && session["next_target"].as_u64() > Some(500)
    });
    ours.does(&["sessions", "reset", "TW"]);
    eventually("both directions begin again", || {
        let session = ours.session("TW");
        let next = |name: &str| session[name].as_u64().unwrap();
        session["state"] == "logged on" && next("next_sender") < 10 && next("next_target") < 10
    });
}

fn everything_is_audited(ours: &Steered, theirs: &Steered) {
    for (program, command) in [
        (ours, "sessions logout"),
        (ours, "sessions disconnect"),
        (ours, "sessions test-request"),
        (ours, "sessions set-seq"),
        (ours, "sessions reset"),
        (ours, "log set-level"),
        (ours, "config reload"),
        (theirs, "sessions stop"),
        (theirs, "sessions start"),
    ] {
        let line = format!("\"command\":\"{command}");
        eventually(&line, || program.audited().contains(&line));
    }
}

#[test]
fn sessions_are_steered_at_both_ends_and_no_other_is_touched() {
    let folder = Folder::new("steering");
    let (ours, theirs) = (Steered::new(&folder, "a"), Steered::new(&folder, "i"));
    let text = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
                SocketAcceptPort=0\nSenderCompID=ISLD\nBeginString=FIX.4.4\n\
                [SESSION]\nTargetCompID=TW\n[SESSION]\nTargetCompID=OTHER\n";
    let options = [&["--echo", "--quiet"], &ours.options()[..]].concat();
    let server = Server::with("steering", text, &options);
    let of = |sender: &str| {
        let text = settings(&[server.address], "").replace("SenderCompID=TW", sender);
        text + "[SESSION]\nBeginString=FIX.4.4\n"
    };
    let options = [&["--stay"], &theirs.options()[..]].concat();
    let first = start_with("steering", &of("SenderCompID=TW"), &options);
    let other = start_with("steering-other", &of("SenderCompID=OTHER"), &["--stay"]);
    let both_are_on = || ours.is("TW", "logged on") && ours.is("OTHER", "logged on");
    eventually("both are logged on", both_are_on);
    let untouched = ours.session("OTHER")["peer"].clone();

    // The session reconnects by itself.
    let before = ours.session("TW");
    ours.does(&["sessions", "logout", "TW", "--text", "for a moment"]);
    let is_back = || ours.is("TW", "logged on") && ours.session("TW")["peer"] != before["peer"];
    eventually("the session is back", is_back);
    let before = ours.session("TW");
    ours.does(&["sessions", "disconnect", "TW"]);
    eventually("the session is back again", || {
        ours.is("TW", "logged on") && ours.session("TW")["peer"] != before["peer"]
    });

    ours.does(&["sessions", "test-request", "TW"]);
    eventually("the answer is measured", || {
        ours.session("TW")["round_trip_us"].is_u64()
    });
    the_numbers_are_set(&ours, &theirs);
    let levels = ours.does(&["log", "set-level", "session=debug"]);
    assert!(
        levels
            .to_string()
            .contains(r#""target":"session","level":"debug""#)
    );
    ours.does(&["config", "reload"]);
    let nobody = ours.ctl(&["sessions", "logout", "NOBODY"]);
    assert_eq!(nobody.code, 1, "{}", nobody.err);
    assert!(
        nobody.err.contains("unknown session NOBODY"),
        "{}",
        nobody.err
    );
    let unnamed = ours.ctl(&["sessions", "logout"]);
    assert_eq!(unnamed.code, 2, "{}", unnamed.err);
    assert_eq!(
        ours.session("OTHER")["peer"],
        untouched,
        "it was left alone"
    );

    everything_is_audited(&ours, &theirs);
    drop((first, other));
}

#[test]
fn a_run_ends_after_its_session_is_stopped() {
    let folder = Folder::new("stopped-run");
    let (ours, theirs) = (Steered::new(&folder, "a"), Steered::new(&folder, "i"));
    let text = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
                SocketAcceptPort=0\nSenderCompID=ISLD\nBeginString=FIX.4.4\n\
                [SESSION]\nTargetCompID=TW\n";
    let options = [&["--echo", "--quiet"], &ours.options()[..]].concat();
    let server = Server::with("stopped-run", text, &options);
    let text = settings(&[server.address], "") + "[SESSION]\nBeginString=FIX.4.4\n";
    let options = [&["--wait", "8"], &theirs.options()[..]].concat();
    let run = start_with("stopped-run", &text, &options);
    let order = "35=D|11=one|55=IBM|54=1|38=100|40=1|60=20261121-10:00:00|21=1|\n";
    let said = std::thread::scope(|scope| {
        let run = scope.spawn(move || finish(run, order));
        eventually("the order has arrived", || {
            let sessions = ours.ctl(&["sessions", "TW"]);
            sessions.code == 0 && sessions.json()[0]["next_target"].as_u64() > Some(2)
        });
        theirs.does(&["sessions", "stop", "ISLD"]);
        run.join().unwrap()
    });
    assert_eq!(said.code, 0, "{}", said.err);
}
