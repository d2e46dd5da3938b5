//! Settings files of QuickFIX's engines, which share their keys.

use std::path::Path;

/// The keys of both sides: no dictionary, no delay of small writes, numbers from 1.
const COMMON: &str = "StartTime=00:00:00\nEndTime=00:00:00\nUseDataDictionary=N\n\
                      ResetOnLogon=Y\nSocketNodelay=Y\nSocketTcpNoDelay=Y\nHeartBtInt=30\n";

/// An acceptor of the session from `us` to `them`. Port 0 lets the kernel choose.
pub(crate) fn acceptor(port: u16, store: Option<&Path>, ids: (&str, &str)) -> String {
    settings(&accepting(port), store, ids)
}

/// An acceptor of the sessions from `us` to each of `them`, on a port that the kernel chooses.
pub(crate) fn acceptor_of_many(us: &str, them: &[&str]) -> String {
    let sessions = them.iter().map(|them| session(us, them));
    let first = default(&accepting(0), None);
    [first].into_iter().chain(sessions).collect()
}

/// An initiator of the session from `us` to `them`.
pub(crate) fn initiator(port: u16, store: Option<&Path>, ids: (&str, &str)) -> String {
    let own = format!(
        "ConnectionType=initiator\nSocketConnectHost=127.0.0.1\nSocketConnectPort={port}\n\
         ReconnectInterval=1\n"
    );
    settings(&own, store, ids)
}

fn accepting(port: u16) -> String {
    format!(
        "ConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort={port}\n\
         SocketReuseAddress=Y\n"
    )
}

fn settings(own: &str, store: Option<&Path>, (us, them): (&str, &str)) -> String {
    [default(own, store), session(us, them)].concat()
}

fn default(own: &str, store: Option<&Path>) -> String {
    let store = store.map(|folder| format!("FileStorePath={}\n", folder.display()));
    let store = store.unwrap_or_default();
    format!("[DEFAULT]\n{own}{COMMON}{store}")
}

fn session(us: &str, them: &str) -> String {
    format!("[SESSION]\nBeginString=FIX.4.4\nSenderCompID={us}\nTargetCompID={them}\n")
}
