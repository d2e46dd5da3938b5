//! The limits of clients that have not started their sessions.

use super::{Dbn, ERROR, KEY, market};
use crate::stop;
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn connections_that_do_not_authenticate_keep_nobody_out() {
    let market = market(244, "max_clients = 3", "");
    let gateway = &market.gateway;
    let mut first = Dbn::authenticated(gateway, KEY, "");
    let mut silent: Vec<Dbn> = (0..5).map(|_| Dbn::connect(gateway)).collect();
    let _second = Dbn::authenticated(gateway, KEY, "");
    // Each new one has taken the place of the oldest.
    for stranger in &mut silent[..4] {
        assert_eq!(stranger.line(), "");
    }
    let _third = Dbn::authenticated(gateway, KEY, "");
    assert_eq!(silent[4].line(), "");
    // Those that have authenticated leave their places to nobody.
    let mut other = TcpStream::connect(gateway.dbn().unwrap()).unwrap();
    assert_eq!(other.read(&mut [0]).unwrap(), 0);
    first.start();
    stop(market.gateway);
}

#[test]
fn a_client_with_too_many_requests_before_the_start_is_told_the_limit() {
    let market = market(246, "", "");
    let mut client = Dbn::authenticated(&market.gateway, KEY, "");
    let many = "schema=trades|symbols=A\n".repeat(10_001);
    let stream = client.stream.get_mut();
    stream.write_all(many.as_bytes()).unwrap();
    client.metadata();
    let error = client.until(ERROR);
    let expected = "more than 10000 requests before start_session";
    assert_eq!((error.code(), error.text().as_str()), (5, expected));
    while client.record().is_some() {}
    stop(market.gateway);
}
