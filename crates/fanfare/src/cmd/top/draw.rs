//! One frame.

use super::view::View;
use crate::plural::counted;
use fanfare_wire::text::Shown;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};
use serde_json::Value;

/// A title and a header are above the rows of a table, a title above the notices.
const HEAD: u16 = 2;
/// The heights of lines, sessions, stages and notices that a low screen has room for first, and
/// those that come next.
const FIRST: [u16; 4] = [5, 4, 0, 3];
const NEXT: [u16; 4] = [6, 4, 4, 4];

/// A lag, in milliseconds, that needs attention; also the silence of a line.
const LAG: u64 = 1_000;
const SILENCE: u64 = 5_000;

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let (lines, stages) = (line_rows(view), stage_rows(view));
    let height = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(HEAD);
    let notices = view.notices["notices"].as_array().map_or(0, Vec::len);
    let wanted = [lines.len(), view.rows().len(), stages.len(), notices].map(height);
    let shares = share(frame.area().height.saturating_sub(2), wanted);
    let [of_lines, of_sessions, of_stages, of_notices] = shares;
    let parts = [1, of_lines, of_sessions, of_stages, of_notices, 1].map(Constraint::Length);
    let parts = Layout::vertical(parts);
    let [top, of_lines, of_sessions, of_stages, of_notices, bottom] = parts.areas(frame.area());
    frame.render_widget(Paragraph::new(title(view)), top);
    draw_lines(frame, of_lines, lines);
    draw_sessions(frame, of_sessions, view);
    draw_stages(frame, of_stages, stages);
    draw_notices(frame, of_notices, view);
    frame.render_widget(Paragraph::new(footer(view)), bottom);
}

/// Divides the height of the screen among lines, sessions, stages and notices, one row at a time.
/// Sessions get the rest.
fn share(mut room: u16, wanted: [u16; 4]) -> [u16; 4] {
    let mut parts = [0; 4];
    for bounds in [FIRST, NEXT, wanted] {
        let mut before = 0;
        while before != room {
            before = room;
            for ((part, wanted), bound) in parts.iter_mut().zip(wanted).zip(bounds) {
                if *part < wanted.min(bound) && room > 0 {
                    *part += 1;
                    room -= 1;
                }
            }
        }
    }
    let [lines, sessions, stages, notices] = parts;
    [lines, sessions + room, stages, notices]
}

fn title(view: &View) -> Line<'static> {
    if let Some(trouble) = &view.trouble {
        let text = format!("out of date: {}", Shown(trouble));
        return Line::from(Span::styled(text, alarm()));
    }
    let status = &view.status;
    let mut parts = vec![format!("fanfare {}", text(&status["version"]))];
    parts.push(format!(
        "up {}",
        uptime(status["uptime_s"].as_u64().unwrap_or(0))
    ));
    if let Some(rate) = status["events"]["per_s"].as_f64() {
        parts.push(format!("{} events/s", short(rate)));
    }
    for port in status["ports"].as_array().into_iter().flatten() {
        parts.push(format!(
            "{} {}",
            text(&port["sessions"]),
            text(&port["name"])
        ));
    }
    let clock = text(&status["time"]);
    parts.push(clock.get(11..19).unwrap_or_default().to_owned() + "Z");
    Line::from(parts.join("  ")).bold()
}

fn footer(view: &View) -> Line<'static> {
    let paused = if view.is_paused { "PAUSED  " } else { "" };
    let keys = "q quit  s sort  up/down scroll  p pause  +/- every";
    Line::from(format!("{paused}{keys} {} s", view.seconds)).dim()
}

/// Returns the style of a value that needs attention, not by its colour alone.
fn alarm() -> Style {
    Style::new().red().add_modifier(Modifier::BOLD)
}

fn block(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).title(title)
}

fn head(names: &[&'static str]) -> Row<'static> {
    Row::new(names.iter().map(|name| Cell::from(*name))).dim()
}

fn draw_lines(frame: &mut Frame<'_>, area: Rect, rows: Vec<Row<'static>>) {
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(8),
    ];
    let names = [
        "line",
        "packets/s",
        "bytes/s",
        "first",
        "lost",
        "behind",
        "silent",
    ];
    let title = block(titled("lines", rows.len(), area));
    let table = Table::new(rows, widths).header(head(&names));
    frame.render_widget(table.block(title), area);
}

/// Returns a row for each feed, and for each of its lines. Feeds that need attention are first.
fn line_rows(view: &View) -> Vec<Row<'static>> {
    let mut rows = Vec::new();
    let feeds = view.lines["feeds"].as_array().into_iter().flatten();
    let mut feeds: Vec<&Value> = feeds.collect();
    feeds.sort_by_key(|feed| {
        let mut lines = feed["lines"].as_array().into_iter().flatten();
        let is_troubled = count(feed, "recovering") + count(feed, "stale") > 0;
        (!is_troubled, !lines.any(is_silent))
    });
    for feed in feeds {
        let [live, recovering, stale, gaps] =
            ["live", "recovering", "stale", "gaps"].map(|name| count(feed, name));
        let mut told = format!(
            "{}: {live} live, {recovering} recovering, {stale} stale",
            text(&feed["channel"])
        );
        for other in ["closed", "unheard"] {
            match count(feed, other) {
                0 => {}
                count => told += &format!(", {count} {other}"),
            }
        }
        told += &format!(", {gaps} gaps");
        let style = match recovering + stale {
            0 => Style::new(),
            _ => alarm(),
        };
        let told = Cell::from(told).column_span(u16::MAX);
        rows.push(Row::new([told]).style(style));
        for line in feed["lines"].as_array().into_iter().flatten() {
            let silence = line["silence_ms"].as_u64();
            let behind = line["behind"]["mean_ns"].as_f64();
            let row = Row::new([
                format!("  {} {}", text(&line["line"]), text(&line["use"])),
                number(&line["packets_per_s"]),
                number(&line["bytes_per_s"]),
                number(&line["first"]),
                number(&line["lost"]),
                behind.map_or_else(String::new, |nanos| micros(nanos) + " us"),
                silence.map_or_else(|| "never".to_owned(), millis),
            ]);
            rows.push(if is_silent(line) {
                row.style(alarm())
            } else {
                row
            });
        }
    }
    rows
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or(0)
}

/// Returns whether a line has received nothing for some time.
fn is_silent(line: &Value) -> bool {
    let silence = line["silence_ms"].as_u64();
    silence.is_none_or(|silence| silence >= SILENCE)
}

/// Returns the title of a table, with the number of rows that do not fit.
fn titled(name: &str, rows: usize, area: Rect) -> String {
    let fit = usize::from(area.height.saturating_sub(HEAD));
    match rows.saturating_sub(fit) {
        0 => format!(" {name} "),
        more => format!(" {name}, {more} more "),
    }
}

fn draw_sessions(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = view.rows().iter().skip(view.scrolled).map(|session| {
        // The lag of a DBN client is unknown.
        let lag = session["lag_ms"].as_u64();
        let heard = session["last_heard_ms"].as_u64();
        let row = Row::new([
            name(session),
            text(&session["user"]),
            lag.map_or_else(String::new, |lag| lag.to_string()),
            number(&session["queued_bytes"]),
            number(&session["conflated"]),
            number(&session["skipped"]),
            number(&session["next_sender"]),
            heard.map_or_else(String::new, millis),
        ]);
        if lag.is_some_and(|lag| lag >= LAG) {
            row.style(alarm())
        } else {
            row
        }
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(7),
    ];
    let names = [
        "session",
        "user",
        "lag ms",
        "queued B",
        "conflated",
        "skipped",
        "next",
        "heard",
    ];
    let total = view.sessions["total"].as_u64().unwrap_or(0);
    let total = counted(total, "session");
    let title = format!(" {total}, by {} ", view.sort.name());
    let table = Table::new(rows, widths).header(head(&names));
    frame.render_widget(table.block(block(title)), area);
}

/// Returns the sender of a session; the port and the number of a client that has none.
fn name(session: &Value) -> String {
    match session["sender"].as_str() {
        None | Some("") => format!("{} {}", text(&session["port"]), text(&session["session"])),
        Some(_) => text(&session["sender"]),
    }
}

fn draw_stages(frame: &mut Frame<'_>, area: Rect, rows: Vec<Row<'static>>) {
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    let names = ["stage, us of 10 s", "of", "count", "p50", "p99", "max"];
    let title = block(titled("stages", rows.len(), area));
    let table = Table::new(rows, widths).header(head(&names));
    frame.render_widget(table.block(title), area);
}

/// Returns a row for each stage, first for those that have a count.
fn stage_rows(view: &View) -> Vec<Row<'static>> {
    let stages = view.stages.as_array().into_iter().flatten();
    let mut stages: Vec<&Value> = stages.collect();
    stages.sort_by_key(|stage| count(&stage["windows"]["10s"], "count") == 0);
    let rows = stages.into_iter().map(|stage| {
        let window = &stage["windows"]["10s"];
        let time = |name: &str| {
            let nanos = window[name].as_f64().filter(|_| window["count"] != 0);
            nanos.map_or_else(String::new, micros)
        };
        Row::new([
            text(&stage["stage"]),
            text(&stage["of"]),
            number(&window["count"]),
            time("p50_ns"),
            time("p99_ns"),
            time("max_ns"),
        ])
    });
    rows.collect()
}

fn draw_notices(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let notices = view.notices["notices"].as_array().into_iter().flatten();
    let now = text(&view.status["time"]);
    let lines = notices.map(|notice| {
        let time = when(&text(&notice["time"]), &now);
        let line = format!("{time} {}", text(&notice["text"]));
        match notice["trouble"] == true {
            true => Line::from(Span::styled(format!("! {line}"), alarm())),
            false => Line::from(format!("  {line}")),
        }
    });
    let notices = Paragraph::new(lines.collect::<Vec<_>>());
    frame.render_widget(
        notices.block(block(" notices, the newest first ".to_owned())),
        area,
    );
}

/// Formats a time as a time of day, preceded by its month and day if it is not of the day of `now`.
fn when(time: &str, now: &str) -> String {
    let [day, clock] = [time.get(5..10), time.get(11..19)].map(Option::unwrap_or_default);
    match time.get(..10) == now.get(..10) {
        true => clock.to_owned(),
        false => format!("{day} {clock}"),
    }
}

/// Formats a value as text without control characters.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => Shown(text).to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn number(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, short)
}

/// Formats a number in up to five characters.
fn short(value: f64) -> String {
    match value {
        value if value >= 99_950_000_000.0 => format!("{:.0}G", value / 1e9),
        value if value >= 999_500_000.0 => format!("{:.1}G", value / 1e9),
        value if value >= 99_950_000.0 => format!("{:.0}M", value / 1e6),
        value if value >= 999_500.0 => format!("{:.1}M", value / 1e6),
        value if value >= 99_950.0 => format!("{:.0}k", value / 1e3),
        value if value >= 10_000.0 => format!("{:.1}k", value / 1e3),
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

fn micros(nanos: f64) -> String {
    let micros = nanos / 1e3;
    if micros < 10_000.0 {
        format!("{micros:.1}")
    } else {
        short(micros)
    }
}

/// Formats milliseconds as seconds.
fn millis(value: u64) -> String {
    match value {
        0..10_000 => format!("{:.1} s", value as f64 / 1e3),
        10_000..600_000 => format!("{} s", value / 1_000),
        _ => uptime(value / 1_000),
    }
}

/// Formats seconds as days, hours and minutes.
fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
        days => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_times_are_read() {
        let all = [
            0.0,
            7.5,
            99.94,
            123.0,
            9_999.0,
            12_345.6,
            99_999.0,
            1_234_567.0,
            2.5e9,
            1e12,
        ];
        let said = [
            "0", "7.5", "99.9", "123", "9999", "12.3k", "100k", "1.2M", "2.5G", "1000G",
        ];
        assert_eq!(all.map(short), said);
        assert_eq!(
            [1, 59_000, 3_600_000].map(millis),
            ["0.0 s", "59 s", "01:00:00"]
        );
        assert_eq!([1_500.0, 25e6].map(micros), ["1.5", "25.0k"]);
        assert_eq!(uptime(93_784), "1d 02:03");
        let now = "2026-11-25T10:31:05.5Z";
        let days = ["2026-11-25T10:30:00.1Z", "2026-11-24T23:59:59Z"];
        let said = ["10:30:00", "11-24 23:59:59"];
        assert_eq!(days.map(|time| when(time, now)), said);
    }
}
