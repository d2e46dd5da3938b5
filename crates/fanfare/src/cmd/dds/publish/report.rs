//! What is said at the end.

use super::echoes::Echoes;
use super::run::Run;
use super::{Args, nanos};
use crate::cmd::dds::input::Losses;
use crate::cmd::dds::statistics::{self, Series};
use crate::print::say;
use fanfare_bus::distribute::Publisher;
use fanfare_latency::figures::Figures;
use std::time::Duration;

/// Prints the statistics, or the figures as JSON; of the feed what did not come, and whether all
/// that did was published and came back.
pub(super) fn report(
    args: &Args,
    run: &Run,
    echoes: &Echoes,
    elapsed: Duration,
    (losses, complete): (Losses, bool),
) {
    let round_trips = echoes.merged();
    let mut all = Series::default();
    round_trips.values().for_each(|s| all.merge(s));
    let mut converted = Series::default();
    run.convert.values().for_each(|s| converted.merge(s));
    let written = run.publisher.as_ref().map_or(0, Publisher::written);
    let elapsed_us = nanos(elapsed) as f64 / 1e3;
    if args.json {
        let mut figures = Figures::new("dds publish");
        figures.count("messages", run.messages);
        figures.count("samples", written);
        figures.count("echoes", all.count());
        let refused = run.publisher.as_ref().map_or(0, Publisher::refused);
        figures.count("refused", refused);
        let departures = run.publisher.as_ref().map(Publisher::departures);
        let departures = departures.unwrap_or_default();
        figures.count(
            "readers_lost",
            departures.gone.max(departures.silent).into(),
        );
        figures.count("missing", losses.missing);
        figures.count("kernel_drops", losses.kernel_drops);
        figures.count("bad_packets", run.bad_packets);
        figures.add("elapsed_us", elapsed_us);
        figures.add("decode_ns", run.decode.mean());
        figures.add("convert_ns", converted.mean());
        figures.percentiles("roundtrip_", |percent| all.percentile(percent));
        figures.add("latency_mean_us", all.mean() / 2e3);
        figures.add("latency_p50_us", all.percentile(50.0) / 2e3);
        figures.set_ok(complete);
        say!("{}", figures.to_json());
        return;
    }
    say!("Elapsed time from first start time to last end time: {elapsed_us:.0} us");
    say!(
        "{} messages, {written} samples, {} missing, {} dropped by the kernel",
        run.messages,
        losses.missing,
        losses.kernel_drops
    );
    if run.bad_packets > 0 {
        say!("{} packets not readable to their end", run.bad_packets);
    }
    let name = |index: u32| {
        let template = run.converter.mapping().by_index(index);
        template.map_or("", |t| t.name.as_str())
    };
    let mut rows = vec![("decode".to_owned(), &run.decode)];
    let convert = run.convert.iter();
    rows.extend(convert.map(|(t, s)| (format!("decode+convert {}", name(*t)), s)));
    let trips = round_trips.iter();
    rows.extend(trips.map(|(name, s)| (format!("round trip {name}"), s)));
    statistics::print(&rows);
    if all.count() > 0 {
        let (mean, median) = (all.mean() / 2e3, all.percentile(50.0) / 2e3);
        say!("latency = round trip / 2: mean {mean:.3} us, p50 {median:.3} us");
    }
}
