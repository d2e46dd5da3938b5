//! The report at the end.

use super::run::{Run, Times};
use super::{Args, nanos};
use crate::cmd::dds::input::Losses;
use crate::cmd::dds::statistics;
use crate::print::say;
use fanfare_dds::distribute::Publisher;
use fanfare_instruments::dds::Echoes;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::histogram::Histogram;
use std::time::Duration;

/// Prints the statistics, or the figures as JSON, with the losses of the feed and whether all
/// samples were published and echoed.
pub(super) fn report(
    args: &Args,
    run: &Run,
    echoes: &Echoes,
    times: Times,
    (losses, complete): (Losses, bool),
) {
    let round_trips = echoes.merged();
    let mut all = Histogram::new();
    round_trips.values().for_each(|s| all.merge(s));
    if args.json {
        let mut figures = figures(run, &all, &times, &losses);
        add_lines(&mut figures, &losses);
        figures.set_ok(complete);
        say!("{}", figures.to_json());
        return;
    }
    say_totals(run, &times, &losses);
    if run.maker.bad_packets > 0 {
        say!(
            "{} packets not readable to their end",
            run.maker.bad_packets
        );
    }
    if run.maker.too_long > 0 {
        say!(
            "{} messages with a sample that is too long",
            run.maker.too_long
        );
    }
    let name = |index: u32| {
        let template = run.maker.converter.mapping().by_index(index);
        template.map_or("", |t| t.name.as_str())
    };
    let mut rows = vec![("decode".to_owned(), &run.maker.decode)];
    let convert = run.maker.convert.iter();
    rows.extend(convert.map(|(t, s)| (format!("decode+convert {}", name(*t)), s)));
    let trips = round_trips.iter();
    rows.extend(trips.map(|(name, s)| (format!("round trip {name}"), s)));
    statistics::print(&rows);
    if !all.is_empty() {
        let (mean, median) = (all.mean_micros() / 2.0, all.micros(50.0) / 2.0);
        say!(
            "latency = round trip / 2, {}: mean {mean:.3} us, p50 {median:.3} us",
            window(run.writer.in_flight)
        );
    }
}

/// Returns the figures of a run whose round trips are `all`.
fn figures(run: &Run, all: &Histogram, times: &Times, losses: &Losses) -> Figures {
    let mut converted = Histogram::new();
    run.maker.convert.values().for_each(|s| converted.merge(s));
    let publisher = run.writer.publisher.as_ref();
    let mut figures = Figures::new("dds publish");
    figures.count("messages", run.maker.messages);
    figures.count("samples", publisher.map_or(0, Publisher::written));
    figures.count("echoes", all.len());
    figures.count("refused", publisher.map_or(0, Publisher::refused));
    figures.count(
        "without_topic",
        publisher.map_or(0, Publisher::without_topic),
    );
    // Counted before the token. DDS does not distinguish a closed reader from a dead process.
    figures.count("readers_left", run.writer.departures.gone.into());
    let (cut_off, died) = run.writer.lost_subscribers;
    figures.count("readers_cut_off", cut_off);
    figures.count("readers_died", died);
    figures.count("missing", losses.missing);
    figures.count("kernel_drops", losses.kernel_drops);
    figures.count("bad_packets", run.maker.bad_packets);
    figures.count("too_long", run.maker.too_long);
    figures.count("in_flight", run.writer.in_flight);
    figures.add("published_us", micros(times.published));
    figures.add("waited_us", micros(times.waited));
    figures.add("elapsed_us", micros(times.elapsed));
    figures.add("decode_ns", run.maker.decode.mean_micros() * 1e3);
    figures.add("convert_ns", converted.mean_micros() * 1e3);
    figures.percentiles("roundtrip_", all);
    figures.add("latency_mean_us", all.mean_micros() / 2.0);
    figures.add("latency_p50_us", all.micros(50.0) / 2.0);
    figures
}

/// Adds the statistics of each line, if there are two, and the losses over time.
fn add_lines(figures: &mut Figures, losses: &Losses) {
    if losses.lines.is_empty() {
        return;
    }
    let over_time = &losses.over_time;
    let lines = ["line_a", "line_b"].iter().zip(&losses.lines);
    for ((name, line), lost) in lines.zip(&over_time.lines) {
        figures.count(&format!("{name}_first"), line.first);
        figures.count(&format!("{name}_duplicate"), line.duplicate);
        figures.count(&format!("{name}_lost"), line.lost);
        let late = line.lateness;
        figures.add(&format!("{name}_late_mean_us"), late.mean() as f64 / 1e3);
        figures.add(&format!("{name}_late_max_us"), late.max as f64 / 1e3);
        figures.list(&format!("{name}_lost_by_100_ms"), lost.clone());
    }
    figures.list("missing_by_100_ms", over_time.missing.clone());
}

/// Prints the lines before the table.
fn say_totals(run: &Run, times: &Times, losses: &Losses) {
    let (messages, published) = (run.maker.messages, micros(times.published));
    let is_empty = run.writer.publisher.is_none();
    match run.writer.in_flight {
        _ if is_empty => say!("{messages} messages decoded in {published:.0} us"),
        0 => say!("{messages} messages decoded and published in {published:.0} us"),
        _ => say!(
            "{messages} messages decoded and published in {published:.0} us, of it {:.0} us \
             waiting for echoes",
            micros(times.waited)
        ),
    }
    let elapsed = micros(times.elapsed);
    say!("Elapsed time from first start time to last end time: {elapsed:.0} us");
    let written = run.writer.publisher.as_ref().map_or(0, Publisher::written);
    say!(
        "{messages} messages, {written} samples; {} messages missing, {} datagrams dropped by the \
         kernel",
        losses.missing,
        losses.kernel_drops
    );
}

fn micros(time: Duration) -> f64 {
    nanos(time) as f64 / 1e3
}

/// Describes what the latency includes.
fn window(in_flight: u64) -> String {
    match in_flight {
        0 => "any number of samples under way at once, time in queues included".to_owned(),
        1 => "one sample under way at a time".to_owned(),
        n => format!("up to {n} samples under way at once, time in queues included"),
    }
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn a_latency_says_how_many_samples_were_under_way() {
        assert_eq!(window(1), "one sample under way at a time");
        assert!(window(0).contains("queues") && window(64).starts_with("up to 64 samples"));
    }
}
