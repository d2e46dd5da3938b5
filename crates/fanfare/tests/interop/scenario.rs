//! The same scenario with every pair of engines, one of them Fanfare's: logon, orders and their
//! echoes, messages lost on the way to either side and to both, a gap without messages, a reset of
//! a live session and one with the Logon, a lost store, and the logout. And a wrong password.

use crate::engines::{Engine, Engines, Party, Start, VERSIONS, Version, acceptor_settings};
use crate::wire::{To, Wire};
use fanfare_peers::Program;
use std::net::SocketAddr;

#[test]
fn quickfix_connects_to_our_acceptor() {
    run(Engine::QuickFix, Engine::Ours);
}

#[test]
fn quickfix_j_connects_to_our_acceptor() {
    run(Engine::QuickFixJ, Engine::Ours);
}

#[test]
fn our_initiator_connects_to_quickfix() {
    run(Engine::Ours, Engine::QuickFix);
}

#[test]
fn our_initiator_connects_to_quickfix_j() {
    run(Engine::Ours, Engine::QuickFixJ);
}

#[test]
fn quickfix_logs_on_after_a_wrong_password() {
    after_a_wrong_password(Engine::QuickFix, "");
}

#[test]
fn quickfix_j_logs_on_after_a_wrong_password() {
    after_a_wrong_password(Engine::QuickFixJ, "");
}

#[test]
fn quickfix_j_logs_on_to_a_template_after_a_wrong_password() {
    after_a_wrong_password(Engine::QuickFixJ, "AcceptorTemplate=Y\n");
}

/// Lets an initiator without a password be refused, and then gives it one: its numbers fit those of
/// the acceptor, whose session is a template or not, with a gap at most. QuickFIX C++ counts the
/// Logouts of a template, which have no number, so it is not tried with one.
fn after_a_wrong_password(initiator: Engine, more: &str) {
    let Some(engines) = Engines::find() else {
        return;
    };
    // The first version with Password(554).
    let version = VERSIONS[3];
    let settings = acceptor_settings()
        + "Username=me\nPassword=right\n"
        + &version.settings(&engines.dictionaries, "ISLD", "TW")
        + more;
    let made = if more.is_empty() { "" } else { "-template" };
    let name = format!("password-{initiator:?}{made}");
    let mut program = engines.start(Engine::Ours, "acceptor", &name, &settings);
    let address = program.listens().unwrap();
    let mut story = Story::with(&engines, version, initiator, (program, address));
    let wrong = "|58=Username or Password is wrong|";
    story.wait(wrong, |line| {
        line.starts_with("in ") && line.contains(wrong)
    });
    story.party.tell("password right");
    story.logon();
    story.exchange(1..=3);
    for to in [To::Acceptor, To::Initiator] {
        let too_low = story.wire.passed(to, "MsgSeqNum too low");
        assert_eq!(too_low, 0, "to {to:?}: {}", story.wire.story());
    }
}

/// FIX.4.2, FIX.4.4, and FIXT.1.1 with FIX.5.0SP2.
const CHOSEN: [usize; 3] = [2, 4, 7];

fn run(initiator: Engine, acceptor: Engine) {
    let Some(engines) = Engines::find() else {
        return;
    };
    std::thread::scope(|scope| {
        for version in CHOSEN.map(|at| VERSIONS[at]) {
            let engines = &engines;
            scope.spawn(move || Story::new(engines, version, initiator, acceptor).tell());
        }
    });
}

struct Story<'a> {
    engines: &'a Engines,
    version: Version,
    initiator: Engine,
    party: Party,
    wire: Wire,
    /// Kept running.
    _acceptor: Program,
}

impl<'a> Story<'a> {
    fn new(engines: &'a Engines, version: Version, initiator: Engine, acceptor: Engine) -> Self {
        Self::with(
            engines,
            version,
            initiator,
            engines.acceptor(acceptor, version),
        )
    }

    fn with(
        engines: &'a Engines,
        version: Version,
        initiator: Engine,
        (program, address): (Program, SocketAddr),
    ) -> Self {
        let wire = Wire::to(address);
        let party = engines.initiator(initiator, version, wire.address, Start::Stored);
        Self {
            engines,
            version,
            initiator,
            party,
            wire,
            _acceptor: program,
        }
    }

    fn tell(mut self) {
        self.logon();
        self.exchange(1..=5);
        self.orders_are_lost();
        self.echoes_are_lost();
        self.both_are_lost();
        if self.initiator != Engine::Ours {
            self.numbers_jump();
        }
        if self.initiator == Engine::Ours {
            self.live_reset();
        }
        self.logout();
        // A Java machine takes seconds to start.
        if self.initiator != Engine::QuickFixJ || self.version.begin_string == "FIX.4.4" {
            self.lost_store();
            self.reset_with_the_logon();
        }
    }

    fn logon(&mut self) {
        self.wait("logon", |line| line == "logon");
    }

    fn wait(&mut self, wanted: &str, fits: impl Fn(&str) -> bool) -> String {
        let waited = self.party.wait(wanted, fits);
        waited.unwrap_or_else(|seen| panic!("{:?}, {:?}: {seen}", self.initiator, self.version))
    }

    /// Waits for the echo of an order, possibly as a duplicate.
    fn echo(&mut self, id: u32, is_again: bool) {
        let field = format!("|11=O{id}|");
        let is_echo = |line: &str| {
            line.starts_with("in ") && line.contains("|35=D|") && line.contains(&field)
        };
        let echo = self.wait(&field, is_echo);
        assert_eq!(echo.contains("|43=Y|"), is_again, "{echo}");
        assert_eq!(echo.contains("|122="), is_again, "{echo}");
    }

    fn order(&mut self, id: u32) {
        self.party.tell(&format!("order O{id}"));
    }

    fn exchange(&mut self, ids: std::ops::RangeInclusive<u32>) {
        for id in ids.clone() {
            self.order(id);
        }
        for id in ids {
            self.echo(id, false);
        }
    }

    /// Loses three orders: the acceptor requests them, and has each once.
    fn orders_are_lost(&mut self) {
        self.wire.lose(To::Acceptor);
        for id in 6..=8 {
            self.order(id);
        }
        self.wire.wait_lost(To::Acceptor, "|35=D|", 3);
        self.wire.cut();
        self.logon();
        for id in 6..=8 {
            self.echo(id, false);
            assert_eq!(self.resent(To::Acceptor, id), 1);
        }
        assert_eq!(self.wire.passed(To::Initiator, "|35=2|"), 1);
        self.exchange(9..=10);
    }

    /// Loses three echoes: the initiator requests them.
    fn echoes_are_lost(&mut self) {
        self.wire.lose(To::Initiator);
        for id in 11..=13 {
            self.order(id);
        }
        self.wire.wait_lost(To::Initiator, "|35=D|", 3);
        self.wire.cut();
        // The resend may precede the application's notification of the logon.
        for id in 11..=13 {
            self.echo(id, true);
        }
        assert_eq!(self.wire.passed(To::Acceptor, "|35=2|"), 1);
        self.exchange(14..=15);
    }

    /// Loses an echo and then an order: both sides request a resend at the same time.
    fn both_are_lost(&mut self) {
        self.wire.lose(To::Initiator);
        self.order(16);
        self.wire.wait_lost(To::Initiator, "|11=O16|", 1);
        self.wire.lose(To::Acceptor);
        self.order(17);
        self.wire.wait_lost(To::Acceptor, "|11=O17|", 1);
        self.wire.cut();
        let mut missing = vec!["|11=O16|", "|11=O17|"];
        while !missing.is_empty() {
            let line = self.wait("lost on both ways", |line| line.contains("|35=D|"));
            if line.starts_with("in ") {
                missing.retain(|id| !line.contains(id));
            }
        }
        assert_eq!(self.resent(To::Acceptor, 17), 1);
        assert_eq!(self.resent(To::Initiator, 16), 1);
        self.exchange(18..=19);
    }

    /// Skips numbers of the initiator: a gap fill is the only resend.
    fn numbers_jump(&mut self) {
        let asked = self.wire.passed(To::Initiator, "|35=2|");
        self.party.tell("next-sender 1000");
        self.order(20);
        self.echo(20, false);
        assert_eq!(self.wire.passed(To::Initiator, "|35=2|"), asked + 1);
        assert!(self.wire.passed(To::Acceptor, "|123=Y|") > 0);
        self.exchange(21..=22);
    }

    /// Resets both directions to 1 while the session is live.
    fn live_reset(&mut self) {
        self.party.tell("reset");
        self.wire.wait_passed(To::Initiator, "|141=Y|", 1);
        self.exchange(20..=22);
        assert_eq!(
            self.wire.passed(To::Initiator, "|35=D|34=2|"),
            2,
            "the first and this"
        );
    }

    fn logout(&mut self) {
        self.party.tell("logout");
        self.wait("logout", |line| line.starts_with("logout"));
        self.wire.wait_passed(To::Acceptor, "|35=5|", 1);
        self.wire.wait_passed(To::Initiator, "|35=5|", 1);
        assert_eq!(self.wire.passed(To::Acceptor, "|35=3|"), 0, "no rejects");
        assert_eq!(self.wire.passed(To::Initiator, "|35=3|"), 0, "no rejects");
        assert_eq!(self.wire.passed(To::Initiator, "|35=j|"), 0, "no rejects");
    }

    /// Checks that an initiator that has lost its numbers is logged out.
    fn lost_store(&mut self) {
        self.begin_again(Start::Forgetful);
        self.wire
            .wait_passed(To::Initiator, "|58=MsgSeqNum too low, expecting", 1);
    }

    /// Checks that both directions restart at 1 with ResetSeqNumFlag(141).
    fn reset_with_the_logon(&mut self) {
        let before = self.wire.passed(To::Initiator, "|141=Y|");
        self.begin_again(Start::Resets);
        self.logon();
        self.wire.wait_passed(To::Initiator, "|141=Y|", before + 1);
        self.exchange_within_a_session(30);
        self.party.tell("logout");
        self.wait("logout", |line| line.starts_with("logout"));
    }

    /// Exchanges three orders, from O`first` on, in one session of an initiator that resets with
    /// each Logon.
    ///
    /// QuickFIX/J may learn of the end of an earlier connection when the new one has logged on, and
    /// then closes the new one. What is on its way then is gone with the reset of the next Logon:
    /// other orders are sent after it.
    fn exchange_within_a_session(&mut self, first: u32) {
        let is_echo = |line: &str| line.starts_with("in ") && line.contains("|35=D|");
        'session: for first in (first..).step_by(3).take(3) {
            let mut missing: Vec<u32> = (first..first + 3).collect();
            for &id in &missing {
                self.order(id);
            }
            while !missing.is_empty() {
                let line = self.wait("echo", |line| line == "logon" || is_echo(line));
                if line == "logon" {
                    continue 'session;
                }
                assert!(!line.contains("|43=Y|"), "{line}");
                missing.retain(|id| !line.contains(&format!("|11=O{id}|")));
            }
            return;
        }
        panic!("no session lasts: {:?}, {:?}", self.initiator, self.version);
    }

    /// Replaces the initiator by a new one.
    fn begin_again(&mut self, start: Start) {
        self.wire.cut();
        let address = self.wire.address;
        let next = |engine| self.engines.initiator(engine, self.version, address, start);
        self.party.end();
        self.party = next(self.initiator);
    }

    /// Returns how often an order, or its echo, was sent as a possible duplicate.
    fn resent(&self, to: To, id: u32) -> usize {
        let field = format!("|11=O{id}|");
        self.wire.passed_with(to, &["|43=Y|", "|122=", &field])
    }
}
