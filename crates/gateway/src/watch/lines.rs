//! The lines of the feeds: the traffic of each, and since when it has been silent.

use super::samples::{Sample, Samples, sample, value};
use super::{Watch, render, tell};
use crate::config::Config;
use crate::feed::config::Feed;
use crate::feed::lines::FeedLine;
use crate::feed::meters::{Use, owner};
use fanfare_engine::clock;
use fanfare_feed::Line;
use fanfare_operator::Changes;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// The time after which a silent line is reported, in milliseconds, while another line of the same
/// feed is heard. Without another line, it is reported when books become stale.
const SILENT: u64 = 5_000;
const SILENT_ALL: u64 = 30_000;

/// A line in the configuration.
struct Known<'a> {
    channel: String,
    what: Use,
    index: usize,
    line: &'a FeedLine,
    interface: Ipv4Addr,
}

impl Known<'_> {
    fn owner(&self) -> String {
        owner(&self.channel, self.what, self.index)
    }
}

/// Returns all lines of a feed.
fn lines(feed: &Feed) -> Vec<Known<'_>> {
    let of_changes = (Use::Changes, &feed.lines, feed.interface);
    let of_snapshots = feed.snapshot.iter().enumerate().map(|(place, own)| {
        let interface = own.interface.unwrap_or(feed.interface);
        (Use::Snapshots(place), &own.lines, interface)
    });
    let all = std::iter::once(of_changes).chain(of_snapshots);
    let all = all.flat_map(|(what, lines, interface)| {
        lines.iter().enumerate().map(move |(index, line)| Known {
            channel: feed.channel(),
            what,
            index,
            line,
            interface: line.interface.unwrap_or(interface),
        })
    });
    all.collect()
}

const fn use_name(of: Use) -> &'static str {
    match of {
        Use::Changes => "changes",
        Use::Snapshots(_) => "snapshots",
    }
}

impl Watch {
    /// Returns all feeds, with their lines.
    pub(crate) fn lines(&self) -> Value {
        let now_ms = clock::utc() / 1_000_000;
        let sample = sample(&self.0.counters);
        let rates = self.0.samples();
        let config = &self.0.config;
        let of_lines = config.feeds.iter().map(|feed| {
            let (channel, lines) = (feed.channel(), lines(feed));
            let heard = lines
                .iter()
                .map(|line| value(&sample, &line.owner(), "line_heard_ms"));
            let heard = heard.max().filter(|heard| *heard != 0);
            let mut object = feed_object(&sample, &channel, "lines");
            let silence = heard.map(|heard| now_ms.saturating_sub(heard));
            object.insert("lenient".to_owned(), json!(feed.lenient));
            object.insert("silence_ms".to_owned(), json!(silence));
            let lines = lines
                .iter()
                .map(|line| line_object(&sample, &rates, line, now_ms));
            object.insert("lines".to_owned(), lines.collect());
            Value::Object(object)
        });
        let edges = config
            .edges
            .iter()
            .map(|edge| (edge.channel.clone(), "edge"));
        let files = config.files.iter();
        let files = files.map(|file| (file.channel.clone(), "file"));
        let sessions = config.sessions.iter().map(|own| &own.channel);
        let sessions = sessions.chain(config.live.iter().map(|own| &own.channel));
        let sessions = sessions.map(|channel| {
            let mut object = feed_object(&sample, channel, "session");
            object.extend(session_fields(&sample, channel, now_ms));
            Value::Object(object)
        });
        let replay = config.replay.as_ref();
        let replay = replay.map(|own| (own.path().display().to_string(), "replay"));
        let others = edges.chain(files).chain(replay).map(|(channel, kind)| {
            let mut object = feed_object(&sample, &channel, kind);
            object.insert("lenient".to_owned(), Value::Null);
            object.insert("silence_ms".to_owned(), Value::Null);
            object.insert("lines".to_owned(), json!([]));
            Value::Object(object)
        });
        json!({ "feeds": of_lines.chain(others).chain(sessions).collect::<Vec<_>>() })
    }

    /// Returns the number of instruments of each feed by state.
    pub(crate) fn states(&self) -> Value {
        let sample = sample(&self.0.counters);
        let config = &self.0.config;
        let feeds = config.feeds.iter().filter(|feed| feed.mapping.is_some());
        let feeds = feeds.map(Feed::channel);
        let edges = config.edges.iter().map(|edge| edge.channel.clone());
        let replay = config.replay.as_ref();
        let replay = replay.map(|own| own.path().display().to_string());
        let files = config.files.iter().map(|file| file.channel.clone());
        let sessions = config.sessions.iter().map(|own| own.channel.clone());
        let live = config.live.iter().map(|live| live.channel.clone());
        let all = feeds
            .chain(edges)
            .chain(files)
            .chain(sessions)
            .chain(live)
            .chain(replay)
            .map(|channel| {
                let mut object = render::object([("channel", json!(channel))]);
                object.extend(state_counts(&sample, &channel));
                Value::Object(object)
            });
        all.collect()
    }
}

type Fields = serde_json::Map<String, Value>;

/// Returns the number of a feed's instruments in each state, of which all are the sum.
fn state_counts(sample: &Sample, channel: &str) -> Fields {
    let count = |name: &str| value(sample, channel, name);
    let states = [
        ("live", count("instruments_live")),
        ("recovering", count("instruments_recovering")),
        ("stale", count("instruments_stale")),
        ("closed", count("instruments_closed")),
    ];
    let heard: u64 = states.iter().map(|(_, count)| count).sum();
    // The counters are not set at the same moment.
    let all = count("instruments").max(heard);
    let unheard = (render::UNHEARD, all - heard);
    let own = states.into_iter().chain([unheard, ("instruments", all)]);
    own.map(|(name, count)| (name.to_owned(), json!(count)))
        .collect()
}

/// Formats the state of a session of FIX or DBN that is a feed, beside the counters of its market.
fn session_fields(sample: &Sample, channel: &str, now_ms: u64) -> Fields {
    let count = |name: &str| value(sample, channel, name);
    let heard = count("source_heard_ms");
    let silence = (heard != 0).then(|| now_ms.saturating_sub(heard));
    render::object([
        ("lenient", Value::Null),
        ("silence_ms", json!(silence)),
        ("lines", json!([])),
        (
            "session",
            json!({
                "logged_on": count("source_logged_on") == 1,
                "logons": count("source_logons"),
                "ended": count("source_ended"),
                "requests": count("source_requests"),
                "refused": count("source_refused"),
                "losses": count("source_losses"),
            }),
        ),
    ])
}

/// Formats the counters of a feed. Lines have packets to decode, and sessions messages.
fn feed_object(sample: &Sample, channel: &str, kind: &str) -> Fields {
    let count = |name: &str| json!(value(sample, channel, name));
    let messages = match kind {
        "lines" => count("decoded"),
        "session" => count("source_messages"),
        _ => Value::Null,
    };
    let gaps = if kind == "edge" {
        "edge_unbrought"
    } else {
        "gaps"
    };
    let mut object = render::object([
        ("channel", json!(channel)),
        ("kind", json!(kind)),
        ("messages", messages),
        ("events", count("market_events")),
        ("gaps", count(gaps)),
        ("restarts", count("restarts")),
        ("undecodable", count("undecodable")),
        ("kernel_drops", count("kernel_drops")),
        ("recoveries", count("recoveries")),
        ("recovered", count("recovered")),
        ("replay_requests", count("replay_requests")),
    ]);
    object.extend(state_counts(sample, channel));
    object
}

fn line_object(sample: &Sample, rates: &Samples, line: &Known<'_>, now_ms: u64) -> Value {
    let owner = line.owner();
    let count = |name: &str| value(sample, &owner, name);
    let (heard, behind) = (count("line_heard_ms"), count("line_behind"));
    let mean = count("line_behind_ns").checked_div(behind);
    json!({
        "line": Line::new(line.index).map(|line| line.to_string()),
        "use": use_name(line.what),
        "group": line.line.group.to_string(),
        "interface": line.interface.to_string(),
        "source": line.line.source.map(|source| source.to_string()),
        "packets": count("line_packets"),
        "bytes": count("line_bytes"),
        "first": count("line_first"),
        "duplicate": count("line_duplicate"),
        "late": count("line_late"),
        "refused": count("line_refused"),
        "lost": count("line_lost"),
        "kernel_drops": count("line_drops"),
        "behind": {
            "count": behind,
            "mean_ns": mean,
            "max_ns": count("line_behind_max_ns"),
        },
        "silence_ms": (heard != 0).then(|| now_ms.saturating_sub(heard)),
        "packets_per_s": rates.rate(&owner, "line_packets"),
        "bytes_per_s": rates.rate(&owner, "line_bytes"),
    })
}

/// A detector of lines that fall silent or are heard again, and of gaps.
pub(super) struct LineWatch {
    lines: Vec<Watched>,
}

struct Watched {
    channel: String,
    what: Use,
    index: usize,
    owner: String,
    /// The time that all lines may be silent, in milliseconds.
    silence: u64,
    is_silent: bool,
}

impl LineWatch {
    pub(super) fn new(config: &Config) -> Self {
        let watched = config.feeds.iter().flat_map(|feed| {
            let silence = feed
                .book
                .as_ref()
                .map_or(SILENT_ALL, |book| book.silence_ms);
            lines(feed).into_iter().map(move |line| Watched {
                owner: line.owner(),
                channel: line.channel,
                what: line.what,
                index: line.index,
                silence: if silence == 0 { u64::MAX } else { silence },
                is_silent: false,
            })
        });
        Self {
            lines: watched.collect(),
        }
    }

    /// Compares two samples, at a time in nanoseconds since 1970, and reports the changes.
    pub(super) fn look(&mut self, now: u64, samples: [&Sample; 2], changes: &Changes) {
        let [before, latest] = samples;
        let now = now / 1_000_000;
        let heard = |line: &Watched| value(latest, &line.owner, "line_heard_ms");
        let all: Vec<u64> = self.lines.iter().map(heard).collect();
        let others: Vec<u64> = self
            .lines
            .iter()
            .map(|line| {
                let same = self.lines.iter().zip(&all);
                let same = same.filter(|(own, _)| {
                    own.channel == line.channel && own.what == line.what && own.index != line.index
                });
                same.map(|(_, heard)| *heard).max().unwrap_or(0)
            })
            .collect();
        for (line, (heard, other)) in self.lines.iter_mut().zip(all.into_iter().zip(others)) {
            let silence = now.saturating_sub(heard);
            let other_speaks = other > heard && other - heard >= SILENT;
            let is_silent = heard != 0 && (other_speaks || silence >= line.silence);
            if is_silent != line.is_silent {
                line.is_silent = is_silent;
                let what = if is_silent { "silent" } else { "heard" };
                line.tell(what, Some(silence), None, changes);
            }
            let grown = |name: &str| {
                value(latest, &line.channel, name).saturating_sub(value(
                    before,
                    &line.channel,
                    name,
                ))
            };
            if line.index > 0 || line.what != Use::Changes {
                continue;
            }
            for (what, name) in [("gap", "gaps"), ("restart", "restarts")] {
                let count = grown(name);
                if count > 0 {
                    line.tell(what, None, Some(count), changes);
                }
            }
        }
    }
}

impl Watched {
    fn tell(&self, what: &str, silence: Option<u64>, count: Option<u64>, changes: &Changes) {
        // A gap is on all lines of the feed.
        let line = Line::new(self.index).filter(|_| count.is_none());
        tell(
            changes,
            "line",
            render::object([
                ("channel", json!(self.channel)),
                ("line", json!(line.map(|line| line.to_string()))),
                ("use", json!(use_name(self.what))),
                ("what", json!(what)),
                ("silence_ms", json!(silence)),
                ("count", json!(count)),
            ]),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sample in which lines A and B were heard at these times.
    fn heard(a: u64, b: u64, gaps: u64) -> Sample {
        let key = |of: &str, name: &str| (of.to_owned(), name.to_owned());
        Sample::from([
            (key("F A", "line_heard_ms"), a),
            (key("F B", "line_heard_ms"), b),
            (key("F", "gaps"), gaps),
        ])
    }

    #[test]
    fn a_session_shows_whether_it_is_logged_on_and_since_when_it_is_silent() {
        let key = |name: &str| ("F".to_owned(), name.to_owned());
        let never = session_fields(&Sample::new(), "F", 9_000);
        assert_eq!(never["silence_ms"], Value::Null);
        assert_eq!(never["session"]["logged_on"], json!(false));
        let sample = Sample::from([
            (key("source_logged_on"), 1),
            (key("source_heard_ms"), 8_500),
            (key("source_refused"), 2),
        ]);
        let shown = session_fields(&sample, "F", 9_000);
        assert_eq!(shown["silence_ms"], json!(500));
        assert_eq!(shown["session"]["logged_on"], json!(true));
        assert_eq!(shown["session"]["refused"], json!(2));
    }

    #[test]
    fn lines_and_sessions_have_messages_and_all_feeds_have_events() {
        let key = |name: &str| ("F".to_owned(), name.to_owned());
        let counts = [("decoded", 3), ("source_messages", 5), ("market_events", 7)];
        let sample = Sample::from(counts.map(|(name, count)| (key(name), count)));
        for (kind, messages) in [
            ("lines", json!(3)),
            ("session", json!(5)),
            ("edge", Value::Null),
            ("file", Value::Null),
            ("replay", Value::Null),
        ] {
            let object = feed_object(&sample, "F", kind);
            let counts = (&object["messages"], &object["events"]);
            assert_eq!(counts, (&messages, &json!(7)), "{kind}");
        }
    }

    #[test]
    fn the_states_of_a_feed_add_up_to_its_instruments() {
        let key = |name: &str| ("F".to_owned(), name.to_owned());
        let sample = Sample::from([
            (key("instruments"), 9),
            (key("instruments_live"), 4),
            (key("instruments_stale"), 2),
        ]);
        let expected = json!({
            "live": 4, "recovering": 0, "stale": 2, "closed": 0, "unheard": 3, "instruments": 9,
        });
        assert_eq!(Value::Object(state_counts(&sample, "F")), expected);
        let ahead = Sample::from([(key("instruments"), 1), (key("instruments_live"), 2)]);
        let counts = state_counts(&ahead, "F");
        assert_eq!(
            (&counts["unheard"], &counts["instruments"]),
            (&json!(0), &json!(2))
        );
    }

    #[test]
    fn a_line_is_silent_behind_the_other_or_when_all_are() {
        let watched = |index| Watched {
            channel: "F".to_owned(),
            what: Use::Changes,
            index,
            owner: owner("F", Use::Changes, index),
            silence: 30_000,
            is_silent: false,
        };
        let mut lines = LineWatch {
            lines: vec![watched(0), watched(1)],
        };
        let changes = Changes::default();
        let mut last = heard(0, 0, 0);
        // Returns the changes between two samples, one per line.
        let mut look = |now: u64, latest: Sample| {
            let (_, next) = changes.range();
            lines.look(now * 1_000_000, [&last, &latest], &changes);
            last = latest;
            let told = changes.since(next - 1, 100).changes;
            let told: Vec<_> = told.iter().map(|own| own.data.to_string()).collect();
            told.join("\n")
        };
        let line = |line: &str, what: &str| {
            format!(r#""channel":"F","line":{line},"use":"changes","what":"{what}""#)
        };
        assert_eq!(
            look(100_000, heard(0, 0, 0)),
            "",
            "never heard is not silent"
        );
        assert_eq!(look(101_000, heard(101_000, 101_000, 0)), "");
        assert_eq!(look(104_000, heard(101_000, 104_000, 0)), "");
        let told = look(106_000, heard(101_000, 106_000, 0));
        assert!(told.contains(&line(r#""A""#, "silent")), "{told}");
        assert!(told.contains(r#""silence_ms":5000"#), "{told}");
        assert_eq!(look(106_500, heard(101_000, 106_500, 0)), "", "told once");
        let told = look(107_000, heard(107_000, 107_000, 0));
        assert!(told.contains(&line(r#""A""#, "heard")), "{told}");
        let told = look(137_000, heard(107_000, 107_000, 0));
        assert!(told.contains(&line(r#""A""#, "silent")), "{told}");
        assert!(told.contains(&line(r#""B""#, "silent")), "{told}");
        let told = look(138_000, heard(138_000, 138_000, 3));
        assert!(told.contains(&line("null", "gap")), "{told}");
        assert!(told.contains(r#""count":3"#), "{told}");
        assert_eq!(told.lines().count(), 3, "{told}");
    }
}
