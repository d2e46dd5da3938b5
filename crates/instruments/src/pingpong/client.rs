//! One measuring client: a whole session to a server anywhere.

use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Host, Initiator, StoreKind};
use fanfare_fix::session::{Config, LogonFault};

use super::plain::spin;
use super::trader::{Pace, Trader};
use super::{PERCENTILES, PingPongError};
use crate::figures::Figures;
use crate::histogram::Histogram;
use crate::plot::{PercentileChart, Unit, standalone};

/// The options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The address of the server.
    pub address: SocketAddr,
    /// The session.
    pub session: Config,
    /// The store of the session's messages.
    pub store: StoreKind,
    /// The schedule of the orders.
    pub pace: Pace,
    /// Orders that count.
    pub count: u64,
    /// Orders before those, which do not count.
    pub warm_up: u64,
    /// The longest time that a report may be outstanding with none arriving.
    pub patience: Duration,
    /// Whether the thread has a processor to itself and never yields it.
    pub spin: bool,
}

/// The results of a client.
#[derive(Debug, Clone)]
pub struct ClientReport {
    /// The times from an order sent, or due, until its report was decoded and checked; nanoseconds.
    pub round_trips: Histogram,
    /// The seconds from the first order that counts to the last report.
    pub seconds: f64,
    /// The number of orders that were to count.
    pub count: u64,
    /// The reason why there are fewer, unless the run was stopped.
    pub trouble: Option<String>,
    /// The fault in the server's Logon, if that is the reason.
    pub logon_fault: Option<LogonFault>,
    pace: Pace,
}

/// Runs one client to its end, or until `stop`, and logs out.
///
/// # Errors
/// The store or a descriptor is not available. A failure of the connection is part of the report.
pub fn measure(
    options: &ClientOptions,
    stop: impl Fn() -> bool,
) -> Result<ClientReport, PingPongError> {
    let mut host = Host::new(Trader::new(options.pace))?;
    let initiator = Initiator::new(options.session.clone(), vec![options.address]);
    host.initiate(initiator.store(options.store.clone()))?;
    let mut clock = Clock::new();
    let trouble = drive(options, &mut host, &mut clock, stop)?;
    let trader = host.handler();
    let report = ClientReport {
        round_trips: trader.round_trips().clone(),
        seconds: trader.seconds(),
        count: options.count,
        trouble,
        logon_fault: trader.logon_fault(),
        pace: options.pace,
    };
    host.on_close(clock.read());
    Ok(report)
}

/// Duty cycles between two checks of `stop` while the client is busy.
const BUSY_TURNS: u32 = 1024;

/// Runs the session. Returns the failure, if there was one.
fn drive(
    options: &ClientOptions,
    host: &mut Host<Trader>,
    clock: &mut Clock,
    stop: impl Fn() -> bool,
) -> Result<Option<String>, PingPongError> {
    let idle = if options.spin {
        spin
    } else {
        thread::yield_now
    };
    let patience = options.patience.as_nanos() as u64;
    let (mut begun, mut busy) = (false, 0);
    // The number of reports at the last check, and the time of the last one.
    let mut progress = (0, 0);
    loop {
        let now = clock.read();
        let work = host.do_work(now).map_err(PingPongError::Agent)?;
        busy = if work > 0 { busy + 1 } else { 0 };
        if work > 0 && busy % BUSY_TURNS != 0 {
            continue;
        }
        let trader = host.handler();
        if let Some(why) = trader.trouble() {
            return Ok(Some(why.to_owned()));
        }
        if stop() || (begun && trader.is_done()) {
            return Ok(None);
        }
        if trader.is_logged_on() && !begun {
            begun = true;
            trader.allow(options.warm_up + options.count, options.warm_up);
        }
        let received = trader.received();
        if received != progress.0 || !trader.is_waiting() {
            progress = (received, now.mono);
        } else if now.mono - progress.1 > patience {
            let (order, seconds) = (received + 1, options.patience.as_secs_f64());
            return Ok(Some(format!(
                "no report of order {order} within {seconds} s"
            )));
        }
        if work == 0 {
            idle();
        }
    }
}

impl ClientReport {
    /// Returns whether all orders that were to count have their reports.
    pub fn is_complete(&self) -> bool {
        self.trouble.is_none() && self.round_trips.len() == self.count
    }

    /// Returns reports per second.
    pub fn rate(&self) -> f64 {
        self.round_trips.len() as f64 / self.seconds
    }

    /// Adds all figures under their names in JSON.
    pub fn add_to(&self, figures: &mut Figures) {
        let all = &self.round_trips;
        figures.count("messages", all.len());
        figures.add("rate_per_s", self.rate());
        if let Pace::OpenLoop(rate) = self.pace {
            figures.add("asked_rate_per_s", rate);
        }
        figures.add("min_us", all.micros(0.0));
        figures.add("mean_us", all.mean_micros());
        figures.add("max_us", all.micros(100.0));
        for percent in PERCENTILES {
            let name = percent.to_string().replace('.', "_");
            figures.add(&format!("p{name}_us"), all.micros(percent));
        }
        figures.set_ok(self.is_complete());
    }

    /// Returns the percentile curve as an SVG file.
    pub fn to_svg(&self) -> String {
        let chart = PercentileChart {
            label: "Round trips of orders by percentile",
            value: "round trip",
            unit: Unit::Nanoseconds,
            series: vec![("round trip", &self.round_trips)],
        };
        standalone(&chart.to_svg())
    }
}

/// Formats the rate, the extremes and the percentiles on a line each, and a remark if the requested
/// rate was not reached.
impl fmt::Display for ClientReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.round_trips;
        let us = |ns: u64| ns as f64 / 1e3;
        let (Some(min), Some(mean), Some(max)) = (all.min(), all.mean(), all.max()) else {
            return f.write_str("nothing measured");
        };
        writeln!(f, "{:.1} messages/second", self.rate())?;
        let (min, mean, max) = (us(min), mean / 1e3, us(max));
        writeln!(f, "min/avg/max = {min:.1}/{mean:.1}/{max:.1} µs")?;
        write!(f, "Percentiles:")?;
        for percent in PERCENTILES {
            let value = us(all.percentile(percent).unwrap_or(0));
            write!(f, "\n {percent:5.2}%: {value:.2} µs")?;
        }
        if let Pace::OpenLoop(rate) = self.pace
            && self.rate() < rate * REACHED
        {
            write!(
                f,
                "\nthe rate asked for, {rate:.0} a second, was not reached"
            )?;
        }
        Ok(())
    }
}

/// The least share of a rate that counts as reached.
const REACHED: f64 = 0.98;

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pace: Pace) -> ClientReport {
        let mut round_trips = Histogram::new();
        (1..=1000).for_each(|us| round_trips.record(us * 1000));
        ClientReport {
            round_trips,
            seconds: 0.5,
            count: 1000,
            trouble: None,
            logon_fault: None,
            pace,
        }
    }

    #[test]
    fn the_text_has_the_lines_of_the_source() {
        let text = report(Pace::PingPong).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "2000.0 messages/second",
                "min/avg/max = 1.0/500.5/1000.0 µs",
                "Percentiles:",
                "  1.00%: 10.00 µs"
            ]
        );
        assert_eq!(lines.len(), 3 + PERCENTILES.len());
        let late = report(Pace::OpenLoop(3000.0)).to_string();
        assert!(late.ends_with("3000 a second, was not reached"), "{late}");
        assert!(
            !report(Pace::OpenLoop(2010.0))
                .to_string()
                .contains("asked for")
        );
    }

    #[test]
    fn figures_have_their_names() {
        let mut figures = Figures::new("latency client");
        report(Pace::OpenLoop(3000.0)).add_to(&mut figures);
        for name in [
            "p1_us",
            "p50_us",
            "p99_us",
            "p99_9_us",
            "mean_us",
            "asked_rate_per_s",
        ] {
            assert!(figures.value(name).is_some(), "{name}");
        }
        assert!(figures.is_ok());
        let mut cut = report(Pace::PingPong);
        cut.trouble = Some("connection lost".to_owned());
        cut.add_to(&mut figures);
        assert!(!figures.is_ok());
    }

    #[test]
    fn nothing_measured_is_told_so() {
        let mut none = report(Pace::PingPong);
        none.round_trips.clear();
        assert_eq!(none.to_string(), "nothing measured");
        assert!(none.to_svg().contains("<svg"));
    }
}
