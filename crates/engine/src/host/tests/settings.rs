//! Sessions from a settings file.

use super::*;
use crate::agent::AgentError;
use crate::idle::Idle;
use crate::settings::{Endpoints, EndpointsError, Settings};
use crate::stop::Stop;

const ACCEPTORS: &str = "
[DEFAULT]
ConnectionType=acceptor
BeginString=FIX.4.4
SenderCompID=SELL
SocketAcceptPort=5001
UseDataDictionary=N
Username=me
Password=right
[SESSION]
TargetCompID=BUY
[SESSION]
TargetCompID=TRADER*
AcceptorTemplate=Y
MaxDynamicSessions=3
";

const INITIATORS: &str = "
[DEFAULT]
ConnectionType=initiator
BeginString=FIX.4.4
TargetCompID=SELL
HeartBtInt=30
ReconnectInterval=1
UseDataDictionary=N
SocketConnectHost=127.0.0.1
SocketConnectPort=5001
Username=me
";

fn endpoints(text: &str) -> Endpoints {
    Settings::parse(text).unwrap().endpoints().unwrap()
}

/// Returns a host of the acceptors, on a port that the system chose.
fn accepting(text: &str) -> (Host<Diary>, SocketAddr) {
    let mut endpoints = endpoints(text);
    endpoints.acceptors[0].listen = LOOPBACK;
    let mut host = Host::new(Diary::answering()).unwrap();
    let addresses = endpoints.host(&mut host).unwrap();
    (host, addresses[0])
}

/// Returns an initiator with these further settings.
fn connecting(address: SocketAddr, lines: &str) -> Host<Diary> {
    let mut endpoints = endpoints(&format!("{INITIATORS}{lines}"));
    for initiator in &mut endpoints.initiators {
        initiator.hosts = vec![address];
    }
    let mut host = Host::new(Diary::default()).unwrap();
    assert_eq!(endpoints.host(&mut host).unwrap(), []);
    host
}

#[test]
fn a_settings_file_makes_ports_and_initiators_that_know_their_credentials() {
    let mut world = World::new();
    let (mut sell, address) = accepting(ACCEPTORS);
    let right = "Password=right\n[SESSION]\nSenderCompID=BUY\n[SESSION]\nSenderCompID=TRADER7\n";
    let mut buy = connecting(address, right);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: logged on"; 2]);
    order(&mut buy, world.now, "one");
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: 8 one"]);

    let (mut sell, address) = accepting(ACCEPTORS);
    let wrong = "Password=wrong\n[SESSION]\nSenderCompID=BUY\n[SESSION]\nSenderCompID=TRADER7\n";
    let mut buy = connecting(address, wrong);
    world.run(&mut [&mut buy, &mut sell]);
    let said = lines(&mut buy);
    let refused = "SELL: the counterparty refused our Logon";
    assert!(
        said.iter().all(|line| line == refused) && said.len() == 2,
        "{said:?}"
    );
    let mut said = lines(&mut sell);
    said.sort();
    let expected = [
        "BUY: the application refused the Logon",
        "no session FIX.4.4:SELL->TRADER7: Username or Password is wrong",
    ];
    assert_eq!(said, expected);
    assert_eq!(sell.hosted.len(), 1, "nothing was made");
}

#[test]
fn a_program_of_ten_lines_runs_a_settings_file() -> Result<(), AgentError> {
    let stop = Stop::new();
    stop.raise();
    let text = ACCEPTORS.replace("5001", "5002");
    let mut endpoints = Settings::parse(&text)?.endpoints()?;
    endpoints.acceptors[0].listen = LOOPBACK;
    let folder = std::env::temp_dir().join(format!("fanfare-endpoints-{}", std::process::id()));
    endpoints.log = Some(folder.clone());
    endpoints.run(Diary::default(), Idle::BackOff, &stop)?;
    let log = folder.join("messages.log");
    assert!(log.exists());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[test]
fn what_the_file_names_and_is_not_there_is_told() {
    let fault = |text: &str| {
        let error = Settings::parse(text).unwrap().endpoints().unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        (error.to_string(), cause)
    };
    let nowhere = INITIATORS.replace("127.0.0.1", "no.such.host.invalid");
    let session = "Password=x\n[SESSION]\nSenderCompID=BUY\n";
    let (error, _) = fault(&format!("{nowhere}{session}"));
    let expected = "session FIX.4.4:BUY->SELL: none of its hosts resolves to an address";
    assert_eq!(error, expected);

    let spare = format!("{nowhere}SocketConnectHost1=127.0.0.1\nSocketConnectPort1=1\n{session}");
    let remarks = endpoints(&spare).remarks;
    assert!(
        remarks.len() == 1 && remarks[0].starts_with("no.such.host"),
        "{remarks:?}"
    );

    let limits = ACCEPTORS.replace("TargetCompID=BUY", "TargetCompID=BUY\nMaxLogonLength=300");
    let error = Settings::parse(&limits).unwrap().endpoints().unwrap_err();
    assert!(matches!(error, EndpointsError::LimitsDiffer(_)), "{error}");

    let dictionary = ACCEPTORS.replace(
        "TargetCompID=BUY",
        "TargetCompID=BUY\nUseDataDictionary=Y\nDataDictionary=/none.xml",
    );
    let (error, cause) = fault(&dictionary);
    assert_eq!(error, "session FIX.4.4:SELL->BUY");
    assert!(cause.unwrap().contains("/none.xml"), "{error}");
}
