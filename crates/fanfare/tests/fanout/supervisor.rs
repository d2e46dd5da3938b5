//! What a service manager is told.

use crate::common::gateway::Gateway;
use crate::common::manager::Manager;
use crate::common::{Folder, fanfare};

#[test]
fn a_gateway_tells_a_watchdog_that_it_is_well() {
    let folder = Folder::new("watchdog");
    let config = folder.with(
        "plant.toml",
        "[producers]\nport = 0\n[consumers]\nport = 0\n",
    );
    let manager = Manager::new(&folder);
    let mut command = fanfare(&["gateway", &config]);
    let gateway = command
        .env("NOTIFY_SOCKET", manager.path())
        .env("WATCHDOG_USEC", "200000");
    let gateway = Gateway::start(gateway);
    assert!(manager.told().starts_with("READY=1\n"));
    for _ in 0..3 {
        assert_eq!(manager.told(), "WATCHDOG=1\n");
    }
    drop(gateway.stop());
}

#[test]
fn a_gateway_tells_that_it_is_ready_reloads_and_stops() {
    let folder = Folder::new("notify");
    let config = folder.with(
        "plant.toml",
        "[producers]\nport = 0\n[consumers]\nport = 0\n",
    );
    let manager = Manager::new(&folder);
    let mut command = fanfare(&["gateway", &config]);
    let gateway = Gateway::start(command.env("NOTIFY_SOCKET", manager.path()));
    let (producers, consumers) = (&gateway.producers, &gateway.consumers);
    let ready =
        format!("READY=1\nSTATUS=serving 127.0.0.1:{producers} and 127.0.0.1:{consumers}\n");
    assert_eq!(manager.told(), ready);

    gateway.signal("HUP");
    manager.is_told_of_a_reload();
    let done = "READY=1\nSTATUS=reloaded: nothing has changed\n";
    assert_eq!(manager.told(), done);

    std::fs::write(&config, "workers = none\n").unwrap();
    gateway.signal("HUP");
    manager.is_told_of_a_reload();
    let refused = manager.told();
    let begin = "READY=1\nSTATUS=not reloaded, everything stays as it was: ";
    assert!(refused.starts_with(begin), "{refused}");
    assert_eq!(refused.lines().count(), 2, "{refused}");

    drop(gateway.stop());
    assert!(manager.told().starts_with("STOPPING=1\n"));
}
