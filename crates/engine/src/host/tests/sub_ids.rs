//! Sessions with the same CompIDs, distinguished by SubIDs.

use super::*;
use fanfare_fix::session::SubIds;

/// Returns the configuration of SELL for BUY with this SubID; an empty one is left out.
fn desk(sub_id: &str) -> Config {
    let mut session = config("SELL", "BUY");
    session.id = session.id.with_sub_ids(SubIds {
        target: sub_id.into(),
        ..SubIds::default()
    });
    session
}

/// Returns the notes at SELL with these desks when clients with these SubIDs connect one after the
/// other.
fn told(desks: &[&str], callers: &[&str]) -> Vec<String> {
    let mut world = World::new();
    let port = Acceptor::new(LOOPBACK);
    let settings = desks
        .iter()
        .fold(port, |port, sub_id| port.session(desk(sub_id)));
    let (mut sell, address) = acceptor(settings);
    let mut buyers: Vec<Host<Diary>> = Vec::new();
    for sub_id in callers {
        let mut session = config("BUY", "SELL");
        if !sub_id.is_empty() {
            session.header_fields = vec![(50, sub_id.as_bytes().into())];
        }
        let mut host = initiating(Initiator::new(session, vec![address]));
        world.run(&mut [&mut host, &mut sell]);
        buyers.push(host);
    }
    lines(&mut sell)
}

#[test]
fn the_logon_says_which_session_is_meant() {
    let said = told(&["D1", "D2"], &["D2", "D1", "D3", ""]);
    let expected = [
        "BUY/D2: logged on",
        "BUY/D1: logged on",
        "no session FIX.4.4:SELL->BUY/D3",
        "no session FIX.4.4:SELL->BUY",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_session_that_names_none_is_for_everybody_else() {
    let said = told(&["", "D1"], &["D9", "D1"]);
    assert_eq!(said, ["BUY: logged on", "BUY/D1: logged on"]);
    assert_eq!(told(&["D1", ""], &["D1"]), ["BUY/D1: logged on"]);
}

#[test]
fn the_same_twice_is_refused() {
    let port = Acceptor::new(LOOPBACK)
        .session(desk("D1"))
        .session(desk("D1"));
    let mut host = Host::new(Diary::default()).unwrap();
    let error = host.listen(port).unwrap_err().to_string();
    assert!(error.contains("FIX.4.4:SELL->BUY/D1"), "{error}");
}
