//! The silences of a counterparty.

use super::{fault, session};

#[test]
fn a_silent_counterparty_is_asked_and_given_up_after_parts_of_the_heartbeat_interval() {
    let of = |lines: &str| {
        let config = session("FIX.4.4", lines).config;
        (config.test_request_percent, config.gone_percent)
    };
    assert_eq!(of(""), (120, 240));
    assert_eq!(of("TestRequestDelayMultiplier=0.5\n"), (150, 240));
    assert_eq!(of("HeartBeatTimeoutMultiplier=0.25\n"), (120, 125));
    let both = "TestRequestDelayMultiplier=0\nHeartBeatTimeoutMultiplier=0.1\n";
    assert_eq!(of(both), (100, 110));
    for (line, why) in [
        (
            "TestRequestDelayMultiplier=-1\n",
            "must be between 0 and 100",
        ),
        (
            "HeartBeatTimeoutMultiplier=NaN\n",
            "must be between 0 and 100",
        ),
        ("HeartBeatTimeoutMultiplier=0.2\n", "must be more than"),
        ("TestRequestDelayMultiplier=1.4\n", "must be less than"),
    ] {
        let said = fault(&format!("BeginString=FIX.4.4\n{line}"));
        assert!(said.contains(why), "{said}");
    }
}
