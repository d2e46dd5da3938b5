//! Logons with passwords: a wrong one costs a number of the session, and a pause.

use super::greetings::of_buy;
use super::*;
use fanfare_fix::session::Credentials;

fn guarded() -> (World, Host<Diary>, SocketAddr) {
    let session = Config {
        credentials: Some(Credentials {
            username: "me".into(),
            password: "right".into(),
        }),
        ..config("SELL", "BUY")
    };
    let (sell, address) = acceptor(Acceptor::new(LOOPBACK).session(session));
    (World::new(), sell, address)
}

/// A counterparty that counts its own Logons, as QuickFIX does.
struct Caller {
    next: u32,
}

impl Caller {
    /// Sends a Logon with these fields, and returns the connection.
    fn call(
        &mut self,
        world: &mut World,
        sell: &mut Host<Diary>,
        address: SocketAddr,
        with: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        let logon = of_buy("A", self.next, &format!("98=0|108=30|553=me|{with}"));
        self.next += 1;
        stream.write_all(logon.as_bytes()).unwrap();
        world.run(&mut [sell]);
        stream
    }

    /// Sends a Logon that is refused, and returns all that is received.
    fn refused(
        &mut self,
        world: &mut World,
        sell: &mut Host<Diary>,
        address: SocketAddr,
        with: &str,
    ) -> String {
        let stream = self.call(world, sell, address, with);
        text(&rest(stream))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\x01', "|")
}

fn numbers(sell: &Host<Diary>) -> (u64, u64) {
    let store = sell.hosted[0].session.store();
    (store.next_sender(), store.next_target())
}

#[test]
fn a_logout_to_a_wrong_password_has_the_next_number_of_the_session() {
    let (mut world, mut sell, address) = guarded();
    let mut caller = Caller { next: 1 };
    for (number, with) in [(1, "554=wrong|"), (2, "")] {
        world.wait(10);
        let said = caller.refused(&mut world, &mut sell, address, with);
        let is_told = said.contains("|58=Username or Password is wrong|");
        let is_next = said.contains(&format!("|35=5|34={number}|"));
        assert!(is_told && is_next, "{said}");
    }
    world.wait(10);
    let said = caller.refused(&mut world, &mut sell, address, "554=right|925=new|");
    let is_told = said.contains("|58=NewPassword(925) is not supported");
    assert!(is_told && said.contains("|35=5|34=3|"), "{said}");
    let noted = lines(&mut sell);
    let wrong = "BUY: Username or Password is wrong";
    assert_eq!(noted[..2], [wrong, wrong]);
    assert!(noted[2].starts_with("BUY: "), "{noted:?}");
    assert_eq!(noted.len(), 3);
    // Strangers send such Logons as well: if they moved the expected number, the next Logon of the
    // counterparty would be too low.
    assert_eq!(numbers(&sell), (4, 1));
    let mut stream = caller.call(&mut world, &mut sell, address, "554=right|");
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    let mut room = [0; 4096];
    let count = stream.read(&mut room).unwrap();
    let said = text(&room[..count]);
    let asks = said.contains("|35=2|34=5|") && said.contains("|7=1|");
    assert!(said.contains("|35=A|34=4|") && asks, "{said}");
    let fill = of_buy("4", 1, "43=Y|122=20260202-02:40:00|123=Y|36=5|");
    stream.write_all(fill.as_bytes()).unwrap();
    world.run(&mut [&mut sell]);
    assert_eq!(numbers(&sell), (6, 5));
}

#[test]
fn after_a_wrong_password_none_is_checked_for_a_growing_time() {
    let (mut world, mut sell, address) = guarded();
    let mut caller = Caller { next: 1 };
    let wrong = "|58=Username or Password is wrong|";
    for is_told in [true, false, true, false] {
        let said = caller.refused(&mut world, &mut sell, address, "554=guess|");
        assert_eq!(said.contains(wrong), is_told, "{said}");
        // Without a Logout, as a counterparty could count it.
        assert_eq!(said.is_empty(), !is_told, "{said}");
        if !is_told {
            world.wait(1);
        }
    }
    let said = caller.refused(&mut world, &mut sell, address, "554=guess|");
    assert!(said.contains(wrong), "{said}");
    // The right one is not checked either.
    let said = caller.refused(&mut world, &mut sell, address, "554=right|");
    assert_eq!(said, "");
    let noted = lines(&mut sell);
    let slowed = "FIX.4.4:SELL->BUY: after wrong passwords from this address none is checked for ";
    let is_slowed = |line: &&String| line.starts_with(slowed);
    assert_eq!(noted.iter().filter(is_slowed).count(), 3, "{noted:?}");
    assert_eq!(numbers(&sell), (4, 1));
    world.wait(1);
    let stream = caller.call(&mut world, &mut sell, address, "554=right|");
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    drop(stream);
    world.run(&mut [&mut sell]);
    lines(&mut sell);
    // The wrong ones are forgotten with the right one.
    let said = caller.refused(&mut world, &mut sell, address, "554=guess|");
    assert!(said.contains(wrong), "{said}");
    world.wait(1);
    let _stream = caller.call(&mut world, &mut sell, address, "554=right|");
    assert_eq!(lines(&mut sell)[1..], ["BUY: logged on"]);
}

#[test]
fn a_guess_beside_a_session_that_is_logged_on_does_nothing_to_it() {
    let (mut world, mut sell, address) = guarded();
    let mut caller = Caller { next: 1 };
    let _stream = caller.call(&mut world, &mut sell, address, "554=right|");
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    for with in ["554=guess|", "554=right|"] {
        let said = caller.refused(&mut world, &mut sell, address, with);
        assert_eq!(said, "");
        let busy = "session FIX.4.4:SELL->BUY has a connection";
        assert_eq!(lines(&mut sell), [busy]);
    }
    assert_eq!(numbers(&sell), (2, 2));
}

#[test]
fn a_connection_has_one_guess() {
    let (mut world, mut sell, address) = guarded();
    let logon = |password: &str| {
        let fields = format!("98=0|108=30|553=me|554={password}|");
        of_buy("A", 1, &fields)
    };
    let mut stream = TcpStream::connect(address).unwrap();
    let both = logon("guess") + &logon("right");
    stream.write_all(both.as_bytes()).unwrap();
    world.run(&mut [&mut sell]);
    let said = text(&rest(stream));
    assert_eq!(said.matches("|35=").count(), 1, "{said}");
    let wrong = "BUY: Username or Password is wrong";
    assert_eq!(lines(&mut sell), [wrong]);
    assert_eq!(numbers(&sell), (2, 1));
}
