//! The gateway as a running service: what `fanout server`, `dds bridge` and `gateway` have in
//! common.

use crate::background;
use crate::print::{counted, note, say};
use anyhow::{Context, Result};
use fanfare_engine::counters::Counters;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, descriptors_wanted, total};
use fanfare_latency::capture::{Capture, CaptureOptions};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How often the sessions that came and went are printed.
const LOOK: Duration = Duration::from_millis(100);

/// Reads a configuration file.
pub(crate) fn read(path: &Path) -> Result<Config> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Config::from_toml(&text).with_context(|| path.display().to_string())
}

/// Runs the gateway until Ctrl-C, then prints what it did. With `quiet`, only sessions that end in
/// another way than by a Logout are told.
pub(crate) fn run(config: &Config, quiet: bool) -> Result<ExitCode> {
    let wanted = descriptors_wanted(&config.producers, &config.consumers);
    let files = raise_open_files(wanted).context("cannot read the limit of open files")?;
    if files < wanted {
        note!(
            "the system allows {files} open files: about {} sessions",
            files.saturating_sub(64)
        );
    }
    background::begin()?;
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    say!(
        "Launching {} message dispatcher {}",
        config.workers,
        plural(config.workers, "worker")
    );
    let gateway = Gateway::start(config, stop.clone())?;
    announce(config, &gateway);
    let capture = start_capture(config, &gateway);
    while !stop.is_raised() {
        print_notices(quiet, &gateway);
        std::thread::sleep(LOOK);
    }
    print_notices(quiet, &gateway);
    // What is under way is counted before it is told of.
    let counters = gateway.counters().clone();
    let ended = gateway.join();
    report(config, &counters);
    ended?;
    if let Some(capture) = capture {
        stop_capture(capture)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn announce(config: &Config, gateway: &Gateway) {
    say!("Running on {}", counted(gateway.threads() as u64, "thread"));
    if let Some(feed) = &config.feed {
        for line in &feed.lines {
            say!("Receiving {line} on {}", feed.interface);
        }
        if let Some(topics) = &feed.publish {
            say!("Publishing decoded messages in domain {}", topics.domain);
        }
    }
    say!("Listening for producers on {}", gateway.producers());
    say!("Listening for consumers on {}", gateway.consumers());
    for (end, does) in [
        (&config.bus.publish, "Publishing"),
        (&config.bus.subscribe, "Subscribing"),
    ] {
        if let Some(end) = end {
            say!(
                "{does} {}_{{{}}} in domain {} on {}",
                end.topics,
                end.msg_types.join(","),
                end.domain,
                end.interface
            );
        }
    }
}

/// Without the right to capture, the gateway runs all the same.
fn start_capture(config: &Config, gateway: &Gateway) -> Option<Capture> {
    let file = config.capture.as_ref()?;
    let ports = [gateway.producers().port(), gateway.consumers().port()];
    match Capture::start(CaptureOptions::new(file, &ports)) {
        Ok(capture) => {
            say!(
                "Capturing ports {} and {} into {}",
                ports[0],
                ports[1],
                file.display()
            );
            Some(capture)
        }
        Err(e) => {
            note!("warning: {e}; running without a capture");
            None
        }
    }
}

fn stop_capture(capture: Capture) -> Result<()> {
    let stats = capture.stop()?;
    say!("{} packets captured", stats.captured);
    say!("{} packets received by filter", stats.received);
    say!("{} packets dropped by kernel", stats.dropped);
    Ok(())
}

fn print_notices(quiet: bool, gateway: &Gateway) {
    for notice in gateway.notices() {
        if !quiet || notice.is_trouble() {
            note!("{notice}");
        }
    }
}

fn report(config: &Config, counters: &Counters) {
    let count = |name: &str| total(counters, name);
    let (received, marked) = (count("received"), count("marked"));
    let (deliveries, dropped) = (count("deliveries"), count("dropped"));
    say!("{received} messages received, {marked} marked: {deliveries} deliveries");
    say!(
        "{dropped} dropped, {} slow consumers disconnected",
        count("slow_consumers")
    );
    if let Some(feed) = &config.feed {
        report_feed(counters, feed.publish.is_some());
    }
    if config.bus.publish.is_some() {
        say!(
            "bus: {} published ({} relayed), {} unsent, {} overrun, {} of other types, {} not \
             taken before the stop",
            count("published"),
            count("relayed"),
            count("unsent"),
            count("overrun"),
            count("other_types"),
            count("left_at_stop")
        );
    }
    if config.bus.subscribe.is_some() {
        say!(
            "bus: {} taken, {} missing, {} own, {} seen before, {} brought by another, {} behind, \
             {} malformed",
            count("taken"),
            count("missing"),
            count("own"),
            count("seen_before"),
            count("from_another"),
            count("behind"),
            count("malformed")
        );
    }
}

fn report_feed(counters: &Counters, topics: bool) {
    let count = |name: &str| total(counters, name);
    say!(
        "feed: {} messages in {} datagrams, {} messages missing, {} packets undecodable, {} \
         messages left out, {} datagrams dropped by kernel, {} unread at the stop",
        count("decoded"),
        count("datagrams"),
        count("gaps"),
        count("undecodable"),
        count("no_fix") + count("no_room"),
        count("kernel_drops"),
        count("unread")
    );
    if topics {
        say!(
            "feed: {} samples published, {} unsent, {} without a topic, {} not taken before the \
             stop; {} messages overwritten",
            count("samples"),
            count("samples_not_sent"),
            count("no_topic"),
            count("samples_left"),
            count("messages_overwritten")
        );
    }
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}
