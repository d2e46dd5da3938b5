//! Tests of stores of `fanfare fix`: truncated, readable by others, with passwords, five hundred of
//! them.

use crate::common::{Folder, Running, Said, fanfare, run, said};
use crate::initiator;
use crate::server::{Peer, Server};
use fanfare_engine::journal::{Journal, Options, folder_for, holder};
use fanfare_fix::session::MessageStore;
use fanfare_peers::fix::framed;
use fanfare_wire::UtcTimestamp;
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const IDENTITY: &str = "FIX.4.4:ISLD->TW";
const MESSAGES: u64 = 100;

fn settings(base: &Path, sessions: &[&str]) -> String {
    let mut text = format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SenderCompID=ISLD\nBeginString=FIX.4.4\nCheckLatency=N\nFileStorePath={}\n",
        base.display()
    );
    for session in sessions {
        text += &format!("[SESSION]\nTargetCompID={session}\n");
    }
    text
}

/// Writes a store with messages of a hundred bytes. Returns its file.
fn written(base: &Path) -> PathBuf {
    let folder = folder_for(base, IDENTITY);
    let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
    let (mut journal, _) = Journal::open(&folder, IDENTITY, Options::default(), now).unwrap();
    for _ in 0..MESSAGES {
        journal.record(&[b'x'; 100]).unwrap();
    }
    // The state after a kill: no write is noted as durable.
    drop(journal);
    folder.join("0000000001.journal")
}

/// Returns everything under a folder, and the folder.
fn all_under(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    let mut at = 0;
    while at < all.len() {
        if all[at].is_dir() {
            let entries = std::fs::read_dir(&all[at]).unwrap();
            all.extend(entries.map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    all
}

fn shorten(file: &Path, len: u64) {
    let file = File::options().write(true).open(file).unwrap();
    file.set_len(len).unwrap();
}

fn start(config: &str, more: &[&str]) -> Running {
    let args = [&["fix", "acceptor", "--config", config], more].concat();
    Running::start(&mut fanfare(&args))
}

/// Returns the output of an acceptor that does not start.
fn refused(config: &str) -> Said {
    said(&mut fanfare(&["fix", "acceptor", "--config", config]))
}

#[test]
fn a_store_cut_short_anywhere_says_what_is_lost_and_does_not_start() {
    let folder = Folder::new("cut-short");
    let file = written(folder.path());
    let config = folder.with("settings.cfg", settings(folder.path(), &["TW"]));
    let image = std::fs::read(&file).unwrap();
    let end = 8192 + 100 * MESSAGES as usize;
    for step in 0..21 {
        let len = step * end / 21;
        std::fs::write(&file, &image[..len]).unwrap();
        let told = refused(&config);
        assert_eq!(
            (told.code, told.out.as_str()),
            (1, ""),
            "{len}: {}",
            told.err
        );
        assert_eq!(told.err.lines().count(), 1, "{}", told.err);
        let whole = (len.saturating_sub(8192) / 100) as u64;
        let from = format!("MsgSeqNum {}", whole + 1);
        for what in [&from, "lost", "`fanfare store repair ", "--accept-loss"] {
            assert!(told.err.contains(what), "{len}: {what}: {}", told.err);
        }
    }
    let mut running = start(&config, &["--accept-loss"]);
    let line = running.tells("the loss was accepted");
    assert!(line.contains("; the next MsgSeqNum is 101"), "{line}");
    running.prints("listening on ");
    running.interrupt();
    running.end().succeeded();
    let listed = run(&["store", "list", "--json", folder.path().to_str().unwrap()]);
    assert_eq!(listed.json_lines()[0]["next_sender"], 101);
    // The store is intact now.
    let mut running = start(&config, &[]);
    running.prints("listening on ");
    running.interrupt();
    assert_eq!(running.end().succeeded().err, "");
}

#[test]
fn the_record_that_a_kill_tore_is_cut_off_and_told() {
    let folder = Folder::new("torn-end");
    let file = written(folder.path());
    let config = folder.with("settings.cfg", settings(folder.path(), &["TW"]));
    let mut image = std::fs::read(&file).unwrap();
    // The second half of the last entry was not written yet.
    let entry = 4096 + 32 * (MESSAGES as usize - 1);
    image[entry + 16..entry + 32].fill(0);
    std::fs::write(&file, image).unwrap();
    let mut running = start(&config, &["--quiet"]);
    let line = running.tells("cut off");
    let expected = "FIX.4.4:ISLD->TW: 1 record that was being written was cut off; \
                    the next MsgSeqNum is 100";
    assert!(line.contains(expected), "{line}");
    running.prints("listening on ");
    running.interrupt();
    running.end().succeeded();
}

fn logon(session: &str) -> String {
    let fields = format!("35=A|34=1|49={session}|52=20261121-10:00:00|56=ISLD|98=0|108=30|");
    framed("FIX.4.4", &fields)
}

#[test]
fn a_store_cut_short_while_it_is_in_use_ends_its_own_session_alone() {
    let folder = Folder::new("cut-in-use");
    let config = folder.with("settings.cfg", settings(folder.path(), &["TW", "OTHER"]));
    let mut running = start(&config, &[]);
    let line = running.prints("listening on ");
    let address = line.split([' ', ',']).nth(2).unwrap().parse().unwrap();
    let mut peers = ["TW", "OTHER"].map(|session| {
        let mut peer = Peer::connect(address);
        peer.send(&logon(session)).unwrap();
        assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
        peer
    });
    let file = folder_for(folder.path(), IDENTITY).join("0000000001.journal");
    shorten(&file, 0);
    let ask = |session: &str| {
        let fields = format!("35=1|34=2|49={session}|52=20261121-10:00:00|56=ISLD|112=there?|");
        framed("FIX.4.4", &fields)
    };
    peers[0].send(&ask("TW")).unwrap();
    assert_eq!(peers[0].receive().unwrap(), None, "it has ended");
    let line = running.tells("ISLD->TW: store");
    assert!(
        line.contains("cut short or became unreadable while in use"),
        "{line}"
    );
    peers[1].send(&ask("OTHER")).unwrap();
    let beat = peers[1].receive().unwrap().unwrap();
    assert!(
        beat.contains("|35=0|") && beat.contains("|112=there?|"),
        "{beat}"
    );
    running.interrupt();
    drop(peers);
    running.end().succeeded();
    assert!(refused(&config).err.contains("its header is unreadable"));
}

#[test]
fn passwords_leave_with_the_logon_and_stay_nowhere() {
    let theirs = Folder::new("secrets-theirs");
    let secret = "Open-Sesame-77";
    let access = format!("Username=me\nPassword={secret}\n");
    let lines = format!(
        "{access}UseDataDictionary=N\nFileLogPath={}\n",
        theirs.path().display()
    );
    let text = settings(theirs.path(), &["TW"]).replace("CheckLatency=N\n", &lines);
    let log = ["--log-level", "debug", "--log-format", "json", "--log-to"];
    let their_log = theirs.file("run.log");
    let server = Server::with(
        "secrets",
        &text,
        &[&["--echo"], &log[..], &[&their_log]].concat(),
    );
    let ours = Folder::new("secrets-ours");
    let path = ours.path().display();
    let lines = format!(
        "{access}LogonTag=5555={secret}\nLogonTag1=925={secret}\n\
         FileStorePath={path}/store\nFileLogPath={path}/log\n"
    );
    let text = initiator::settings(&[server.address], &lines);
    let text = text + "[SESSION]\nBeginString=FIX.4.4\n";
    let our_log = ours.file("run.log");
    let options = [&initiator::ANSWERED[..], &log, &[&our_log]].concat();
    let started = initiator::start_with("secrets", &text, &options);
    let order = "35=D|11=one|55=IBM|54=1|38=100|40=1|60=20261121-10:00:00|21=1|\n";
    let (answers, told) = initiator::answered(started, order, 1);
    assert_eq!(answers.len(), 1, "it got in: {told}");
    server.running.interrupt();
    let said = server.running.end();
    for text in [&said.out, &said.err, &told] {
        assert!(!text.contains(secret), "{text}");
    }
    for folder in [&theirs, &ours] {
        let text = String::from_utf8(folder.read("run.log")).unwrap();
        assert!(text.contains("logged on"), "{text}");
    }

    let all = [all_under(ours.path()), all_under(theirs.path())].concat();
    for path in &all {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert!(
            mode & 0o077 == 0 || path == ours.path() || path == theirs.path(),
            "{path:?}"
        );
        if path.is_file() {
            let bytes = std::fs::read(path).unwrap();
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{path:?}");
        }
    }
    let exported = run(&["store", "export", &format!("{path}/store")])
        .succeeded()
        .out;
    let masked = "*".repeat(secret.len());
    assert!(
        exported.contains(&format!("|553=me|554={masked}|")),
        "{exported}"
    );
    assert!(exported.contains(&format!("|5555={masked}|")), "{exported}");
    // A masked message is still a message.
    let shown = run(&["fix", "cat", &ours.with("exported", exported)]).succeeded();
    assert!(!shown.out.contains('!'), "{}", shown.out);
}

#[test]
fn a_store_of_an_earlier_version_that_was_open_to_others_is_closed_and_that_is_told() {
    let folder = Folder::new("open-store");
    let store = written(folder.path()).parent().unwrap().to_owned();
    for path in all_under(&store) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let config = folder.with("settings.cfg", settings(folder.path(), &["TW"]));
    let mut running = start(&config, &[]);
    running.tells("its files were accessible to other users; the permissions are corrected");
    running.prints("listening on ");
    for path in all_under(&store) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?}");
    }
    running.interrupt();
    running.end().succeeded();
}

#[test]
fn five_hundred_idle_sessions_cost_little() {
    let folder = Folder::new("five-hundred");
    let names: Vec<String> = (0..500).map(|n| format!("S{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = folder.with("settings.cfg", settings(folder.path(), &names));
    let mut running = start(&config, &[]);
    running.prints("listening on ");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let resident: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
    assert!(resident < 64 << 10, "{resident} KiB");
    let blocks = all_under(folder.path());
    let blocks = blocks
        .iter()
        .map(|path| std::fs::metadata(path).unwrap().blocks());
    let disk = blocks.sum::<u64>() / 2;
    assert!(disk < 32 << 10, "{disk} KiB");
    running.interrupt();
    running.end().succeeded();
}

#[test]
fn a_stranger_who_holds_the_lock_of_an_earlier_version_keeps_nobody_out() {
    let folder = Folder::for_others("stranger");
    let store = written(folder.path()).parent().unwrap().to_owned();
    let lock = store.join("lock");
    for path in [folder.path(), &store] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
    let mut stranger = Command::new("flock");
    stranger
        .args(["--shared", lock.to_str().unwrap(), "sleep", "60"])
        .uid(65_534);
    let Ok(mut stranger) = stranger.spawn() else {
        return fanfare_peers::skipped(&"nobody can be somebody else here");
    };
    let until = Instant::now() + Duration::from_secs(60);
    while holder(&store).is_none() {
        if stranger.try_wait().unwrap().is_some() {
            return fanfare_peers::skipped(&"other users cannot reach the temporary folder");
        }
        assert!(Instant::now() < until, "it does not lock");
        std::thread::sleep(Duration::from_millis(5));
    }
    let config = folder.with("settings.cfg", settings(folder.path(), &["TW"]));
    let mut running = start(&config, &[]);
    running.prints("listening on ");
    assert_eq!(
        std::fs::metadata(&lock).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A store of this acceptor's own sessions is accepted.
    let told = refused(&config);
    assert!(
        told.err.contains(" is in use by another process"),
        "{}",
        told.err
    );
    running.interrupt();
    running.end().succeeded();
    let _ = stranger.kill();
    let _ = stranger.wait();
}
