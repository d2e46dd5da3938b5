//! `fanfare dds ls`: the participants of a domain, their writers and their readers.

use super::fit::Policies;
use super::options::{DomainArgs, Role};
use crate::print::{note, say};
use crate::range::seconds;
use anyhow::Result;
use fanfare_dds::discovery::{Discovery, Endpoint, EndpointKind, Participant};
use fanfare_dds::{Durability, Ownership};
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_wire::text::{SafeJson, Shown};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// List the participants of a domain, their topics with types, and their writers and readers, of
/// any vendor.
///
/// Participants on one host discover each other within a second; those that start later, or are far
/// away, may need a longer --wait. A topic is marked if it has two types, of two names, or of one
/// name and different members. It is also marked if a writer and a reader in a common partition do
/// not match in reliability, durability or ownership. Other policies, such as deadlines, are not
/// compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    domain: DomainArgs,
    /// Seconds to listen before the list is printed.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds(86_400.0))]
    wait: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Subscriber)?;
    let mut discovery = domain.discovery()?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(args.wait);
    while Instant::now() < end && !stop.is_raised() {
        discovery.update()?;
        let left = end.saturating_duration_since(Instant::now());
        thread::sleep(left.min(Duration::from_millis(20)));
    }
    discovery.update()?;
    if discovery.ignored() > 0 {
        note!("fanfare: {} more are not shown", discovery.ignored());
    }
    if args.json {
        say!("{}", SafeJson(as_json(&discovery)));
    } else {
        print(args, begin.elapsed(), &discovery);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known of each topic.
type Topics<'a> = BTreeMap<&'a str, Known<'a>>;

#[derive(Default)]
struct Known<'a> {
    types: BTreeSet<&'a str>,
    /// The hashes of the types that endpoints describe.
    hashes: BTreeSet<[u8; 14]>,
    writers: u64,
    readers: u64,
    policies: Policies,
}

impl<'a> Known<'a> {
    fn types(&self) -> Vec<&'a str> {
        self.types.iter().copied().collect()
    }

    /// Returns whether there are two types. One that is not described is known by its name alone.
    fn types_differ(&self) -> bool {
        self.types.len() > 1 || self.hashes.len() > 1
    }

    /// Returns the names of the policies that do not match.
    fn misfits(&self) -> Vec<String> {
        let misfits = self.policies.misfits();
        misfits.iter().map(ToString::to_string).collect()
    }
}

fn topics(discovery: &Discovery) -> Topics<'_> {
    let mut topics = Topics::new();
    for e in discovery.endpoints() {
        let topic = topics.entry(&e.topic).or_default();
        topic.types.insert(&e.type_name);
        topic.hashes.extend(e.type_hash());
        topic.policies.add(e);
        match e.kind {
            EndpointKind::Writer => topic.writers += 1,
            EndpointKind::Reader => topic.readers += 1,
        }
    }
    topics
}

fn print(args: &Args, time: Duration, discovery: &Discovery) {
    let topics = topics(discovery);
    let count = |kind| discovery.endpoints().filter(|e| e.kind == kind).count();
    say!(
        "domain {}, seen in {:.1} s: participants {}, topics {}, writers {}, readers {}",
        args.domain.domain,
        time.as_secs_f64(),
        discovery.participants().count(),
        topics.len(),
        count(EndpointKind::Writer),
        count(EndpointKind::Reader)
    );
    for (topic, known) in &topics {
        let (types, misfits) = (known.types(), known.misfits());
        let mut odd = match known.types_differ() {
            true => " (types differ)".to_owned(),
            false => String::new(),
        };
        if !misfits.is_empty() {
            odd.push_str(&format!(" (no match in {})", misfits.join(", ")));
        }
        say!(
            "topic {}: {}{odd}, {} writing, {} reading",
            Shown(topic),
            Shown(&types.join(" and ")),
            known.writers,
            known.readers
        );
    }
    for participant in discovery.participants() {
        say!("participant {}", describe(participant));
        let own = |e: &&Endpoint| e.participant == participant.guid;
        for e in discovery.endpoints().filter(own) {
            let does = match e.kind {
                EndpointKind::Writer => "writes",
                EndpointKind::Reader => "reads ",
            };
            let (topic, t) = (Shown(&e.topic), Shown(&e.type_name));
            say!("  {does} {topic}: {t}, {}", policies(e));
        }
    }
}

fn describe(p: &Participant) -> String {
    let mut text = p.guid.to_string();
    let mut add = |before: &str, what: &Option<String>| {
        if let Some(what) = what {
            text.push_str(before);
            text.push_str(&Shown(what).to_string());
        }
    };
    add(" ", &p.name);
    add(" of ", &p.process);
    add(" pid ", &p.pid);
    add(" on ", &p.host);
    text
}

fn policies(e: &Endpoint) -> String {
    let mut text = if e.reliable {
        "reliable"
    } else {
        "best effort"
    }
    .to_owned();
    if e.durability == Durability::TransientLocal {
        text.push_str(", transient local");
    }
    if let Ownership::Exclusive(strength) = e.ownership {
        text.push_str(&format!(", exclusive at {strength}"));
    }
    if !e.partitions.is_empty() {
        text.push_str(&format!(", partition {}", Shown(&e.partitions.join(" "))));
    }
    if !e.has_type() {
        text.push_str(", type not described");
    }
    text
}

fn as_json(discovery: &Discovery) -> Value {
    let topics = topics(discovery);
    let count = |kind| discovery.endpoints().filter(|e| e.kind == kind).count() as u64;
    let mut figures = Figures::new("dds ls");
    figures.count("participants", discovery.participants().count() as u64);
    figures.count("topics", topics.len() as u64);
    figures.count("writers", count(EndpointKind::Writer));
    figures.count("readers", count(EndpointKind::Reader));
    let mut all = figures.to_json();
    let participant = |p: &Participant| {
        json!({
            "guid": p.guid.to_string(), "name": p.name, "process": p.process, "pid": p.pid,
            "host": p.host,
        })
    };
    let endpoint = |e: &Endpoint| {
        let strength = match e.ownership {
            Ownership::Exclusive(strength) => Some(strength),
            Ownership::Shared => None,
        };
        json!({
            "side": if e.kind == EndpointKind::Writer { "writer" } else { "reader" },
            "guid": e.guid.to_string(), "participant": e.participant.to_string(),
            "topic": e.topic, "type": e.type_name, "type_described": e.has_type(),
            "reliable": e.reliable,
            "transient_local": e.durability == Durability::TransientLocal,
            "exclusive_strength": strength, "partitions": e.partitions,
        })
    };
    let topic = |(name, known): (&&str, &Known<'_>)| {
        json!({
            "topic": name, "types": known.types(), "types_differ": known.types_differ(),
            "writers": known.writers, "readers": known.readers, "misfits": known.misfits(),
        })
    };
    all["participants"] = discovery.participants().map(participant).collect();
    all["topics"] = topics.iter().map(topic).collect();
    all["endpoints"] = discovery.endpoints().map(endpoint).collect();
    all
}
