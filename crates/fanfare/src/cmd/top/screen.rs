//! The terminal: frames and keys.

use super::asker::Asker;
use super::source::Source;
use super::view::{Answers, View};
use super::{Args, draw};
use crate::print::say;
use crate::usage::misuse;
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// The time to wait for a key before signals are polled.
const LOOK: Duration = Duration::from_millis(100);
/// The time within which the screen ends by itself after a signal.
const GRACE: Duration = Duration::from_secs(1);
/// Columns and lines of a frame without a terminal.
const SIZE: (u16, u16) = (100, 40);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut source = match (&args.socket, &args.url) {
        (Some(path), _) => Source::socket(path),
        (None, Some(url)) => Source::url(url, args.token_file.as_deref())?,
        (None, None) => misuse!("expected --socket or --url"),
    };
    let mut view = View::new(args.interval);
    let answers = Answers::ask(view.sort, &mut source).with_context(|| source.to_string())?;
    view.show(Ok(answers));
    if args.once {
        say!("{}", frame(&view, args.size.unwrap_or(SIZE))?);
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("stdin and stdout must be a terminal; --once prints one frame as text");
    }
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    end_with_terminal(stop.clone()).context("cannot start a thread")?;
    let mut asker = Asker::start(source).context("cannot start a thread")?;
    // This also restores the terminal in a panic.
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let ended = watch(&mut terminal, &mut view, &mut asker, &stop);
    let restored = ratatui::try_restore();
    ended?;
    restored.context("the terminal")?;
    Ok(ExitCode::SUCCESS)
}

/// Starts a thread that ends the process if the screen does not end it after a signal, or after the
/// end of the terminal: without a terminal, `event::poll` reads forever.
fn end_with_terminal(stop: Stop) -> std::io::Result<()> {
    let watch = move || {
        while !stop.is_raised() && std::io::stdin().is_terminal() {
            thread::sleep(LOOK);
        }
        stop.raise();
        thread::sleep(GRACE);
        let _ = ratatui::try_restore();
        std::process::exit(0);
    };
    let name = "terminal".to_owned();
    thread::Builder::new().name(name).spawn(watch).map(drop)
}

/// Renders one frame as lines of text.
fn frame(view: &View, (columns, lines): (u16, u16)) -> Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines))?;
    terminal.draw(|frame| draw::draw(frame, view))?;
    Ok(text(terminal.backend().buffer()))
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width.max(1));
    let rows = buffer.content().chunks(width);
    let rows = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Draws until a key or a signal ends it.
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    view: &mut View,
    asker: &mut Asker,
    stop: &Stop,
) -> Result<()> {
    let mut due = Instant::now() + view.interval();
    loop {
        terminal.draw(|frame| draw::draw(frame, view))?;
        while !event::poll(LOOK)? {
            if stop.is_raised() {
                return Ok(());
            }
            if Instant::now() >= due {
                due = Instant::now() + view.interval();
                if !view.is_paused {
                    asker.want();
                }
            }
            if asker.turn(view) {
                break;
            }
        }
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && !take(key, view, asker)
            {
                return Ok(());
            }
        }
    }
}

/// Handles a key. Returns whether to continue.
fn take(key: KeyEvent, view: &mut View, asker: &mut Asker) -> bool {
    if key.kind == KeyEventKind::Release {
        return true;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if is_control => return false,
        KeyCode::Char('s') => {
            view.sort = view.sort.next();
            view.scrolled = 0;
            asker.want();
        }
        KeyCode::Char('p' | ' ') => view.is_paused = !view.is_paused,
        KeyCode::Char('+') => view.seconds = (view.seconds + 1).min(3600),
        KeyCode::Char('-') => view.seconds = view.seconds.saturating_sub(1).max(1),
        KeyCode::Down | KeyCode::Char('j') => view.scroll(1),
        KeyCode::Up | KeyCode::Char('k') => view.scroll(-1),
        KeyCode::PageDown => view.scroll(10),
        KeyCode::PageUp => view.scroll(-10),
        KeyCode::Home => view.scrolled = 0,
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::view::Sort;
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    fn view() -> View {
        let mut view = View::new(1);
        view.status = json!({
            "version": "0.1.0", "uptime_s": 93_784, "time": "2026-11-25T10:31:05.5Z",
            "ports": [
                {"name": "producers", "sessions": 1},
                {"name": "consumers", "sessions": 9000},
            ],
            "events": {"next": 5, "per_s": 12_345.6},
        });
        view.lines = json!({"feeds": [{"channel": "spectra", "gaps": 2, "live": 7, "recovering": 1,
            "stale": 0, "closed": 0, "lines": [{"line": "A", "use": "changes", "packets": 1000,
            "first": 600, "lost": 3, "behind": {"mean_ns": 37_064}, "silence_ms": 5,
            "packets_per_s": 250.0, "bytes_per_s": 1e6}]}]});
        let session = |name: &str, lag: u64| {
            json!({"sender": name, "port": "consumers", "user": "u", "lag_ms": lag,
                "queued_bytes": 123_456, "conflated": 4, "skipped": 0, "last_heard_ms": 1500,
                "next_sender": 42, "logged_on": true})
        };
        let sessions: Vec<_> = (0..50)
            .map(|at| session(&format!("S{at}"), 5_000 - at))
            .collect();
        view.sessions = json!({"total": 9001, "next": null, "sessions": sessions});
        view.stages = json!([{"stage": "arrival_to_ring", "of": "spectra", "windows": {"10s":
            {"count": 5, "p50_ns": 1_500, "p99_ns": 2_500_000, "p99_9_ns": 3, "max_ns": 4}}}]);
        view.notices = json!({"notices": [{"time": "2026-11-25T10:30:00.123456789Z",
            "trouble": true, "text": "line A of D\\\\1 is silent"},
            {"time": "2026-11-24T23:59:59.9Z", "trouble": false, "text": "a log was rolled"}]});
        view
    }

    #[test]
    fn a_frame_of_80_by_24_has_everything() {
        let text = frame(&view(), (80, 24)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 24);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        for what in [
            "fanfare 0.1.0",
            "1d 02:03",
            "12.3k events/s",
            "9000 consumers",
            "spectra",
            "S0",
            "5000",
            "arrival",
            "1.5",
            "7 live, 1 recovering, 0 stale, 2 gaps",
            r"! 10:30:00 line A of D\\1 is silent",
            "  11-24 23:59:59 a log was rolled",
            "q quit",
            "by lag",
            "9001",
        ] {
            assert!(text.contains(what), "{what} in\n{text}");
        }
    }

    #[test]
    fn it_fits_whatever_the_size_of_the_terminal_is() {
        for size in [(1, 1), (10, 3), (40, 10), (80, 24), (300, 100)] {
            frame(&view(), size).unwrap();
            frame(&View::new(1), size).unwrap();
        }
    }

    #[test]
    fn keys_scroll_within_the_list_and_end() {
        let mut view = view();
        let mut asker = Asker::start(Source::socket(&PathBuf::from("/nowhere/x"))).unwrap();
        let mut press = |code, modifiers| {
            let goes_on = take(KeyEvent::new(code, modifiers), &mut view, &mut asker);
            (goes_on, view.scrolled, view.sort)
        };
        let none = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Up, none), (true, 0, Sort::Lag));
        assert_eq!(press(KeyCode::Down, none), (true, 1, Sort::Lag));
        for _ in 0..9 {
            press(KeyCode::PageDown, none);
        }
        assert_eq!(press(KeyCode::Down, none), (true, 49, Sort::Lag));
        assert_eq!(press(KeyCode::Char('s'), none), (true, 0, Sort::Queue));
        assert!(!press(KeyCode::Char('q'), none).0);
        assert!(!press(KeyCode::Char('c'), KeyModifiers::CONTROL).0);
        while !asker.turn(&mut view) {
            thread::yield_now();
        }
        assert!(view.trouble.is_some(), "it says that nobody answers");
    }

    #[test]
    fn keys_do_not_wait_for_a_gateway_that_does_not_respond() {
        let path = std::env::temp_dir().join(format!("fanfare-top-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut asker = Asker::start(Source::socket(&path)).unwrap();
        let mut view = view();
        let key = |char| KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE);
        assert!(take(key('s'), &mut view, &mut asker));
        assert!(!asker.turn(&mut view) && asker.is_pending());
        assert!(!take(key('q'), &mut view, &mut asker));
        assert!(view.trouble.is_none() && asker.is_pending());
        std::fs::remove_file(&path).unwrap();
    }

    /// Returns a view of five feeds with a line each, of which the last is recovering, and of
    /// stages of which the last has a count.
    fn five_feeds() -> View {
        let mut view = view();
        let line = view.lines["feeds"][0]["lines"][0].clone();
        let feed = |at: u64| {
            json!({"channel": format!("F{at}"), "gaps": 0, "live": 9, "stale": 0, "closed": 3,
                "recovering": u64::from(at == 5), "unheard": 0, "lines": [line]})
        };
        view.lines = json!({"feeds": (1..=5).map(feed).collect::<Vec<_>>()});
        let last = view.stages[0].clone();
        let idle = json!({"stage": "ring", "of": "worker0", "windows": {"10s": {"count": 0}}});
        view.stages = (0..27).map(|_| idle.clone()).chain([last]).collect();
        view
    }

    #[test]
    fn what_needs_attention_is_shown_at_any_size_and_the_rest_is_counted() {
        let view = five_feeds();
        for (size, more) in [((60, 12), 8), ((80, 24), 4), ((120, 40), 0)] {
            let text = frame(&view, size).unwrap();
            let shown = "F5: 9 live, 1 recovering, 0 stale, 3 closed, 0 gaps";
            assert!(text.contains(shown), "{text}");
            match more {
                0 => assert!(
                    text.contains("F4: 9 live") && text.contains(" lines ─"),
                    "{text}"
                ),
                more => assert!(text.contains(&format!(" lines, {more} more ")), "{text}"),
            }
        }
        assert!(frame(&view, (80, 24)).unwrap().contains("arrival_to_ring"));
    }

    #[test]
    fn a_client_without_a_name_is_shown_by_its_number_and_trouble_is_told_once() {
        let mut view = view();
        let client = json!({"sender": "", "port": "dbn", "session": "7", "user": "",
            "lag_ms": null, "queued_bytes": 0, "conflated": 0, "skipped": 0,
            "last_heard_ms": null, "next_sender": null});
        view.sessions = json!({"total": 1, "next": null, "sessions": [client]});
        let text = frame(&view, (80, 24)).unwrap();
        assert!(text.contains("dbn 7"), "{text}");
        assert!(text.contains(" 1 session, by lag "), "{text}");
        view.show(Err("no answer: timed out".to_owned()));
        let text = frame(&view, (80, 24)).unwrap();
        assert!(
            text.starts_with("out of date: no answer: timed out\n"),
            "{text}"
        );
    }
}
