//! Connections of initiators that cannot be made.

use super::*;

/// An address that refuses connections.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

#[test]
fn a_connection_that_cannot_be_made_names_its_session_and_its_host() {
    let mut world = World::new();
    let mut buy = initiator("A", &[NOBODY]);
    let second = Initiator::new(config("B", "SELL"), vec![NOBODY]);
    buy.initiate(second).unwrap();
    world.run(&mut [&mut buy]);
    let said = lines(&mut buy);
    for name in ["A", "B"] {
        let begin = format!("FIX.4.4:{name}->SELL to {NOBODY}: Connection refused");
        let told = said.iter().filter(|line| line.starts_with(&begin));
        assert!(told.count() > 0, "{name}: {said:?}");
    }
}

#[test]
fn a_handler_without_a_call_for_it_gets_the_refusal() {
    #[derive(Default)]
    struct Plain(Vec<String>);

    impl Handler for Plain {
        fn on_message(&mut self, _: &mut Peer<'_>, _: &AppMessage<'_>) {}

        fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
            self.0.push(format!("{address}: {why}"));
        }
    }

    let mut plain = Plain::default();
    let session = config("A", "SELL").id;
    plain.on_unconnected(&session, NOBODY, &Refusal::NoDescriptors);
    assert_eq!(plain.0, ["127.0.0.1:1: no descriptors left"]);
}
