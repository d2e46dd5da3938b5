//! Sessions from a settings file.

use super::*;
use crate::agent::AgentError;
use crate::idle::Idle;
use crate::settings::{Endpoints, EndpointsError, Settings};
use crate::stop::Stop;
use fanfare_fix::codec::Encoder;
use fanfare_fix::session::AdminHook;

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
    let mut said = lines(&mut buy);
    said.sort();
    let expected = [
        "SELL: connection lost",
        "SELL: the counterparty refused our Logon",
    ];
    assert_eq!(said, expected);
    let said = lines(&mut sell);
    let is_wrong = said[0].ends_with(": Username or Password is wrong");
    // The second one comes from the same user and address.
    let slowed = ": after wrong passwords from this address none is checked for another ";
    assert!(is_wrong && said[1].contains(slowed), "{said:?}");
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(sell.hosted.len(), 1, "nothing was made");
}

#[test]
fn sessions_that_share_a_port_have_networks_of_their_own() {
    let mut world = World::new();
    for (of_buy, of_traders, admitted) in [
        ("10.0.0.0/8", "", "TRADER7"),
        ("10.0.0.0/8", "127.0.0.0/8", "TRADER7"),
        ("127.0.0.1", "10.0.0.0/8", "BUY"),
    ] {
        let listed = |id: &str, networks: &str| match networks {
            "" => id.to_owned(),
            networks => format!("{id}\nAllowedRemoteAddresses={networks}"),
        };
        let text = ACCEPTORS
            .replace("TargetCompID=BUY", &listed("TargetCompID=BUY", of_buy))
            .replace("TRADER*", &listed("TRADER*", of_traders));
        let (mut sell, address) = accepting(&text);
        let both = "Password=right\n[SESSION]\nSenderCompID=BUY\n[SESSION]\nSenderCompID=TRADER7\n";
        let mut buy = connecting(address, both);
        world.run(&mut [&mut buy, &mut sell]);
        let mut said = lines(&mut sell);
        said.sort();
        let logged_on = format!("{admitted}: logged on");
        assert_eq!(said, [&*logged_on, "address not on the allow list"]);
        let made = usize::from(admitted != "BUY");
        assert_eq!(sell.hosted.len(), 1 + made);
    }
}

/// A dictionary with a data field of its own.
const OWN_DATA: &str = "<fix major='4' minor='4'>
 <header>
  <field name='BeginString' required='Y'/><field name='BodyLength' required='Y'/>
  <field name='MsgType' required='Y'/><field name='MsgSeqNum' required='Y'/>
  <field name='SenderCompID' required='Y'/><field name='SendingTime' required='Y'/>
  <field name='TargetCompID' required='Y'/>
 </header>
 <trailer><field name='CheckSum' required='Y'/></trailer>
 <messages>
  <message name='Logon' msgtype='A' msgcat='admin'>
   <field name='EncryptMethod' required='Y'/><field name='HeartBtInt' required='Y'/>
   <field name='BlobSize' required='N'/><field name='Blob' required='N'/>
  </message>
  <message name='Order' msgtype='D' msgcat='app'>
   <field name='BlobSize' required='Y'/><field name='Blob' required='Y'/>
   <field name='ClOrdID' required='Y'/>
  </message>
 </messages>
 <fields>
  <field number='8' name='BeginString' type='STRING'/>
  <field number='9' name='BodyLength' type='LENGTH'/>
  <field number='10' name='CheckSum' type='STRING'/>
  <field number='11' name='ClOrdID' type='STRING'/>
  <field number='34' name='MsgSeqNum' type='SEQNUM'/>
  <field number='35' name='MsgType' type='STRING'/>
  <field number='49' name='SenderCompID' type='STRING'/>
  <field number='52' name='SendingTime' type='UTCTIMESTAMP'/>
  <field number='56' name='TargetCompID' type='STRING'/>
  <field number='98' name='EncryptMethod' type='INT'/>
  <field number='108' name='HeartBtInt' type='INT'/>
  <field number='5010' name='BlobSize' type='LENGTH'/>
  <field number='5011' name='Blob' type='DATA'/>
 </fields>
</fix>";

/// Returns an acceptor whose session has the dictionary and these further settings. `test` names
/// the file.
fn with_own_data(test: &str, settings: &str) -> (Host<Diary>, SocketAddr) {
    let file = format!("fanfare-own-data-{test}-{}.xml", std::process::id());
    let path = std::env::temp_dir().join(file);
    std::fs::write(&path, OWN_DATA).unwrap();
    let text = format!(
        "[SESSION]\nConnectionType=acceptor\nBeginString=FIX.4.4\nSenderCompID=SELL\n\
         SocketAcceptPort=5001\nDataDictionary={}\n{settings}",
        path.display()
    );
    let accepting = accepting(&text);
    std::fs::remove_file(&path).unwrap();
    accepting
}

#[test]
fn data_fields_of_a_dictionary_have_any_bytes() {
    for checks in ["", "ValidateIncomingMessage=N\n"] {
        let settings = format!("TargetCompID=BUY\n{checks}");
        let (mut sell, address) = with_own_data("orders", &settings);
        let mut world = World::new();
        let mut buy = initiator("BUY", &[address]);
        world.run(&mut [&mut buy, &mut sell]);
        for (id, data) in [("one", &b"a\x01b"[..]), ("two", b"a\x0111=forged")] {
            let mut peers = handler_peers(&mut buy, world.now);
            let mut peer = peers.get(SessionKey(0)).unwrap();
            let sent = peer.send(b"D", |body| {
                body.data(5010, 5011, data).str(11, id);
            });
            sent.unwrap();
            buy.flush_touched(world.now);
            world.run(&mut [&mut buy, &mut sell]);
        }
        let expected = ["BUY: logged on", "BUY: D one", "BUY: D two"];
        assert_eq!(lines(&mut sell), expected, "{checks}");
    }
}

#[test]
fn data_fields_of_a_dictionary_have_any_bytes_in_a_logon_too() {
    let template = "TargetCompID=B*\nAcceptorTemplate=Y\n";
    let unknown = format!("{template}UseDataDictionary=N\n");
    for (settings, expected) in [
        ("TargetCompID=BUY\n", "BUY: logged on"),
        (template, "BUY: logged on"),
        (&*unknown, "first bytes are not a FIX message"),
    ] {
        let (mut sell, address) = with_own_data("logon", settings);
        let mut session = config("BUY", "SELL");
        session.admin_hook = Some(AdminHook::new(|message, out| {
            if message.msg_type == b"A" {
                out.data(5010, 5011, b"a\x01b\x0150=forged");
            }
        }));
        let mut buy = initiating(Initiator::new(session, vec![address]));
        World::new().run(&mut [&mut buy, &mut sell]);
        assert_eq!(lines(&mut sell), [expected], "{settings}");
    }
}

#[test]
fn data_fields_of_a_dictionary_may_be_the_first_of_a_logon() {
    for settings in [
        "TargetCompID=BUY\n",
        "TargetCompID=B*\nAcceptorTemplate=Y\n",
    ] {
        let (mut sell, address) = with_own_data("first", settings);
        let mut room = [0; 512];
        let mut logon = Encoder::new(&mut room, b"FIX.4.4", b"A");
        logon.str(49, "BUY");
        logon.str(56, "SELL");
        logon.u64(34, 1);
        logon.str(52, "20260202-02:40:00");
        // What seems to be a SubID is too long for one.
        logon.data(5010, 5011, &[&b"a\x0150="[..], &[b'x'; 70]].concat());
        logon.u64(98, 0);
        logon.u64(108, 30);
        let range = logon.finish().unwrap();
        let mut buy = TcpStream::connect(address).unwrap();
        buy.write_all(&room[range]).unwrap();
        World::new().run(&mut [&mut sell]);
        assert_eq!(lines(&mut sell), ["BUY: logged on"], "{settings}");
    }
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

    let from = format!("{INITIATORS}SocketLocalHost=::1\n{session}");
    let (error, _) = fault(&from);
    let expected = "session FIX.4.4:BUY->SELL: none of its hosts has an address that can be \
                    reached from SocketLocalHost=::1: one is of IPv4, the other of IPv6";
    assert_eq!(error, expected);

    let limits = ACCEPTORS.replace("TargetCompID=BUY", "TargetCompID=BUY\nMaxLogonLength=300");
    let error = Settings::parse(&limits).unwrap().endpoints().unwrap_err();
    assert!(matches!(error, EndpointsError::LimitsDiffer(_)), "{error}");

    let sockets = "TargetCompID=BUY\nSocketSendBufferSize=9000";
    let sockets = ACCEPTORS.replace("TargetCompID=BUY", sockets);
    let error = Settings::parse(&sockets).unwrap().endpoints().unwrap_err();
    assert!(matches!(error, EndpointsError::SocketsDiffer(_)), "{error}");

    let dictionary = ACCEPTORS.replace(
        "TargetCompID=BUY",
        "TargetCompID=BUY\nUseDataDictionary=Y\nDataDictionary=/none.xml",
    );
    let (error, cause) = fault(&dictionary);
    assert_eq!(error, "session FIX.4.4:SELL->BUY");
    assert!(cause.unwrap().contains("/none.xml"), "{error}");

    let endless = dictionary.replace("/none.xml", "/dev/zero");
    let (_, cause) = fault(&endless);
    let expected = "/dev/zero: the text has more than 67108864 bytes";
    assert_eq!(cause.as_deref(), Some(expected));
}
