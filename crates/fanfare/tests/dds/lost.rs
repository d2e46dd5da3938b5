//! Two counts of lost samples: by numbers, and by contents.

use crate::common::{Running, done, fanfare, groups, sending};
use crate::{domain, feed};

/// `lost` is the number in the Done token minus the count of samples. `--check` is independent of
/// both: it searches for each sample that came, byte for byte, among those of the file.
#[test]
fn what_is_counted_as_lost_is_what_is_missing_of_the_file() {
    let file = feed("complex", 20_000);
    let ([group, _], domain) = (groups(), domain(44));
    let both = ["--keyed", "--no-echo", "--json", "--domain", &domain];
    // The process is stopped for as long as the messages take on a busy machine, and is not
    // dropped.
    let both = [&both[..], &["--qos", "best-effort", "--lease", "120000"]].concat();
    let mut subscribe = fanfare(&["dds", "subscribe", "complex"]);
    let mut subscriber = Running::start(subscribe.args(&both).arg("--check").arg(&file));
    subscriber.tells("Finished subscribing");
    let mut publish = fanfare(&["dds", "publish", "complex"]);
    let mut publisher = Running::start(publish.args(&both).args(["--multicast", &group]));
    publisher.tells("receiving");
    // The system keeps the first samples, up to the size of a socket's buffer, and drops the rest.
    subscriber.signal("STOP");
    done(sending(&file, &group).args(["-s", "200"]));
    publisher.tells("Writing Done token");
    subscriber.signal("CONT");
    let published = publisher.end().succeeded().figures();
    assert_eq!(published["samples"], 28_000, "{published}");
    let said = subscriber.end();
    let received = said.figures();
    assert_eq!(said.code, 1, "{received}");
    let count = |name: &str| received[name].as_u64().unwrap();
    assert!(count("lost") > 0 && count("equal") > 0, "{received}");
    assert_eq!(count("lost"), count("not_received"), "{received}");
    let came = (count("samples"), 0);
    assert_eq!(came, (count("equal"), count("wrong")), "{received}");
    assert_eq!(count("samples") + count("lost"), 28_000, "{received}");
}
