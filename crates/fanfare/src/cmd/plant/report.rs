//! The report of a gateway's run, in lines.

use crate::cmd::fix::print_log_losses;
use crate::plural::counted;
use crate::print::say;
use fanfare_engine::counters::Counters;
use fanfare_gateway::{Config, total};

pub(super) fn report(config: &Config, counters: &Counters) {
    let count = |name: &str| total(counters, name);
    let (received, marked) = (count("received"), count("marked"));
    let (deliveries, dropped) = (count("deliveries"), count("dropped"));
    let received = counted(received, "message");
    let deliveries = match deliveries {
        1 => "1 delivery".to_owned(),
        n => format!("{n} deliveries"),
    };
    say!("{received} received, {marked} marked: {deliveries}");
    say!(
        "{dropped} dropped, {} disconnected, {} rejected by receivers",
        counted(count("slow_consumers"), "slow consumer"),
        counted(count("rejects"), "message")
    );
    report_left_out(counters);
    print_log_losses(counters);
    if !config.feeds.is_empty() {
        let publishes = config.feeds.iter().any(|feed| feed.publish.is_some());
        report_feed(counters, publishes);
    }
    if config.has_market() {
        report_market(counters);
    }
    if let Some(history) = &config.history {
        report_log(counters, history.raw.is_some());
    }
    if config.feeds.iter().any(|feed| feed.edges.is_some()) {
        say!(
            "edges: {} written, {}; {} overwritten before, {} that DDS did not take, {} beyond a \
             limit of their topic, {} too long",
            counted(count("edge_written"), "sample"),
            counted(count("edge_snapshots_written"), "snapshot"),
            count("edge_lapped"),
            count("edge_untaken"),
            count("edge_beyond"),
            count("edge_too_long")
        );
    }
    if !config.edges.is_empty() {
        report_edges(config, counters);
    }
    if config.dds.publish.is_some() {
        say!(
            "dds: {} published ({} relayed), {} unsent, {} overrun, {} of other types, {} of \
             symbols refused, {} not taken before the stop",
            count("published"),
            count("relayed"),
            count("unsent"),
            count("overrun"),
            count("other_types"),
            count("symbols_refused"),
            count("left_at_stop")
        );
    }
    if config.dds.subscribe.is_some() {
        say!(
            "dds: {} taken, {} missing, {} own, {} seen before, {} brought by another, {} behind, \
             {} overtaken, {} malformed",
            count("taken"),
            count("missing"),
            count("own"),
            count("seen_before"),
            count("from_another"),
            count("behind"),
            count("overtaken"),
            count("malformed")
        );
    }
}

/// Prints the updates and the messages that were left out, if there were any.
fn report_left_out(counters: &Counters) {
    let names = ["skipped", "events_lapped", "unroutable"];
    let [skipped, lapped, unroutable] = names.map(|name| total(counters, name));
    if skipped > 0 {
        say!("{} of subscriptions skipped", counted(skipped, "update"));
    }
    if lapped > 0 {
        let events = counted(lapped, "market event");
        say!("{events} overwritten before workers read them");
    }
    if unroutable > 0 {
        let messages = counted(unroutable, "marked message");
        say!("{messages} of producers found no room on the way to the consumers and left out");
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
    let left = ["unusable", "strangers", "restarts"].map(count);
    if left.iter().sum::<u64>() > 0 {
        let [unusable, strangers, restarts] = left;
        say!(
            "feed: {} of unusable numbers, {} of other senders, {}",
            counted(unusable, "packet"),
            counted(strangers, "datagram"),
            counted(restarts, "restart")
        );
    }
    say!(
        "feed: of the exchange's session {}, {}, {}, {}, {}; {}, {}",
        counted(count("exchange_heartbeat"), "Heartbeat"),
        counted(count("exchange_reset"), "SequenceReset"),
        counted(count("exchange_logon"), "Logon"),
        counted(count("exchange_logout"), "Logout"),
        counted(count("exchange_other"), "other"),
        counted(count("fast_resets"), "empty message"),
        counted(count("feed_done"), "end")
    );
    say!(
        "feed: {} messages unfit for a version; left out for a version: {} fields, {} values, {} \
         entries",
        count("unfit"),
        count("fields_left_out"),
        count("values_left_out"),
        count("entries_left_out")
    );
    if topics {
        say!(
            "feed: {} samples published, {} unsent, {} without a topic, {} of more keys than the \
             limit, {} not taken before the stop; {} samples overwritten",
            count("samples"),
            count("samples_not_sent"),
            count("no_topic"),
            count("samples_of_more_keys"),
            count("samples_left"),
            count("samples_overwritten")
        );
    }
}

/// Prints what the log has of this run, and what it lacks.
fn report_log(counters: &Counters, has_raw: bool) {
    let count = |name: &str| total(counters, name);
    say!(
        "log: {}, {} missing",
        counted(count("log_written"), "event"),
        count("log_missed")
    );
    if has_raw {
        let (written, missed) = (count("raw_written"), count("raw_missed"));
        say!("raw log: {written} datagrams and messages, {missed} missing");
    }
}

fn report_edges(config: &Config, counters: &Counters) {
    let count = |name: &str| total(counters, name);
    let channels: Vec<&str> = config.edges.iter().map(|e| e.channel.as_str()).collect();
    say!(
        "edge {}: {} read, {} lost, {} unreadable; {} that no gateway brought, {} passed over",
        channels.join(", "),
        counted(count("edge_read"), "sample"),
        count("edge_samples_lost"),
        count("edge_unreadable"),
        counted(count("edge_unbrought"), "message"),
        counted(count("edge_passed_over"), "packet")
    );
}

fn report_market(counters: &Counters) {
    let count = |name: &str| total(counters, name);
    say!(
        "market: {} of {}; {} live, {} recovering, {} stale, {} closed",
        counted(count("market_events"), "event"),
        counted(count("instruments"), "instrument"),
        count("instruments_live"),
        count("instruments_recovering"),
        count("instruments_stale"),
        count("instruments_closed")
    );
    say!(
        "market: {} began to recover, {} recovered; {} taken, {} unreadable, {} dropped by \
         kernel; {}, {} given up",
        counted(count("recoveries"), "book"),
        count("recovered"),
        counted(count("snapshots_used"), "snapshot"),
        count("snapshots_bad"),
        count("snapshot_drops"),
        counted(count("replay_requests"), "replay request"),
        counted(count("replay_given_up"), "message")
    );
    say!(
        "market: {} dropped, {}, {} refused, {} entries unmapped, \
         {} of more instruments than the limit",
        counted(count("changes_discarded"), "change"),
        counted(count("book_faults"), "fault"),
        counted(count("value_errors"), "value"),
        count("entries_unmapped"),
        count("instruments_beyond")
    );
}
