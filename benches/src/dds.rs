//! Samples from one process to another on this host: over sockets, and through shared memory.

use crate::contest::{Contest, Contestant, Figure};
use crate::dds_ends::{
    Amount, Ends, Task, WATERMARKS, aeron, configuration, cyclone, fast_dds, found, package,
};
use crate::peers::{Found, Peers, debian};

/// Bytes of a sample of a round trip.
const SIZES: [usize; 2] = [128, 8192];
/// Bytes of a sample that flows.
const SIZE: usize = 128;
/// Samples of this size that the writer of Fast DDS keeps (fastdds.cpp); the first of them are
/// written without a wait.
const FAST_DDS_KEEPS: u64 = 8192;
/// Round trips of ends that sleep in between.
const TRIPS: Amount = Amount {
    warm_up: 2_500,
    count: 10_000,
};

/// What is measured.
#[derive(Clone, Copy)]
enum Job {
    /// Round trips of samples of this many bytes.
    Trips(usize),
    Flow,
}

/// Returns an amount of samples that flow, after a tenth as many that warm up.
fn samples(count: u64) -> Amount {
    Amount {
        warm_up: count / 10,
        count,
    }
}

/// Returns an amount of round trips of ends that spin. Each takes 0.2 to 1 us with 128 bytes, and 1
/// to 3 us with 8 KiB. Those that warm up take more than a second, because the compiler of a Java
/// machine shares the processor of an end.
fn spinning_trips(size: usize) -> Amount {
    let count = if size <= SIZE { 2_000_000 } else { 500_000 };
    Amount {
        warm_up: 2 * count,
        count,
    }
}

/// Returns an amount of samples that flow between ends that spin, after as many that warm up.
fn spinning_samples(count: u64) -> Amount {
    Amount {
        warm_up: count,
        count,
    }
}

/// A way for samples.
struct Way {
    name: &'static str,
    how: String,
    ends: Found<Ends>,
    /// What a turn transmits. The measured part takes about a second.
    amount: Amount,
}

impl Way {
    fn task(&self, size: usize, domain: u32) -> Task {
        Task {
            size,
            amount: self.amount,
            domain,
        }
    }
}

/// Round trips and throughput, over sockets and through shared memory.
pub(crate) fn contests(peers: &Peers) -> Vec<Contest> {
    let domain = fanfare_peers::domain();
    let programs = Programs::build(peers, domain);
    let mut all = Vec::new();
    for (kind, by, ways) in [
        ("dds", "over loopback", over_sockets as fn(&_, _) -> _),
        ("dds_shm", "through shared memory", through_memory),
    ] {
        let trip = |size| {
            let trips = ways(&programs, Job::Trips(size));
            round_trip((kind, by), &trips, size, domain)
        };
        all.extend(SIZES.map(trip));
        let flow = ways(&programs, Job::Flow);
        all.push(throughput((kind, by), &flow, domain));
    }
    // The first three are those over sockets.
    for contest in all.iter_mut().take(SIZES.len() + 1) {
        contest.absent.push(RUSTDDS.to_owned());
    }
    all
}

fn round_trip((kind, by): (&str, &str), ways: &[Way], size: usize, domain: u32) -> Contest {
    let what = format!(
        "A sample of {size} bytes goes {by} from one process to another, which sends it back; then \
         the next, each process on a processor of its own. Delivery is reliable; the reader adds \
         up the bytes of each sample, and checks its number."
    );
    let title = format!("Samples of {size} bytes {by}: round trip");
    let mut contest = contest(format!("{kind}_round_trip_{size}"), title, what);
    contest.figures = vec![Figure::lower("p50", "us"), Figure::lower("p99", "us")];
    join(&mut contest, ways, |way, ends| {
        let task = way.task(size, domain);
        Contestant::new(way.name, &way.how, move || ends.round_trip(task))
    });
    contest
}

fn throughput((kind, by): (&str, &str), ways: &[Way], domain: u32) -> Contest {
    let what = format!(
        "One process writes samples of {SIZE} bytes as fast as it can, another takes them {by}, \
         each on a processor of its own. The writer waits where the reader is behind, so that \
         nothing is lost: the reader adds up the bytes of each sample, and checks its number."
    );
    let title = format!("Samples of {SIZE} bytes {by}: throughput");
    let mut contest = contest(format!("{kind}_throughput"), title, what);
    contest.figures = vec![Figure::higher("rate", "samples/s")];
    join(&mut contest, ways, |way, ends| {
        let task = way.task(SIZE, domain);
        Contestant::new(way.name, &way.how, move || ends.throughput(task))
    });
    contest
}

const RUSTDDS: &str = "RustDDS: a writer of 0.15.1 has no list of its readers (the call panics), \
                       and was not notified of one on loopback in 20 s";

fn contest(id: String, title: String, what: String) -> Contest {
    Contest {
        id,
        title,
        what,
        source: "benches/src/dds.rs, benches/dds, benches/peers",
        figures: Vec::new(),
        contestants: Vec::new(),
        absent: Vec::new(),
    }
}

fn join(contest: &mut Contest, ways: &[Way], each: impl Fn(&Way, Ends) -> Contestant) {
    for way in ways {
        match &way.ends {
            Ok(ends) => contest.contestants.push(each(way, ends.clone())),
            Err(absent) => contest.absent.push(absent.clone()),
        }
    }
}

/// The programs of all ends.
struct Programs {
    ours: Found<Ends>,
    cyclone: Found<Ends>,
    /// Fanfare's configurations of Cyclone DDS: for round trips, and for samples that flow.
    configurations: [String; 2],
    fast_dds: Found<Ends>,
    /// Debian's package of Fast DDS and its version.
    fast_dds_version: String,
    aeron: Found<Ends>,
    iceoryx2: Found<Ends>,
    dust: Found<Ends>,
    zenoh: Found<Ends>,
}

impl Programs {
    fn build(peers: &Peers, domain: u32) -> Self {
        let home = peers.file("");
        let ours = found("Fanfare", package(&home, "ours"));
        let cyclone = ours.clone().and_then(|ours| {
            let built = cyclone(&home, &ours, "cyclone");
            found("Cyclone DDS", built)
        });
        let configurations = ["ping", "source"].map(|role| {
            let ours = ours.as_ref().ok();
            let xml = ours.and_then(|ours| configuration(ours, role, domain).ok());
            xml.unwrap_or_default()
        });
        let one = |program| Ends::new([program]);
        let of_crates = |who, name| found(who, package(&home, name)).map(one);
        Self {
            ours: ours.map(one),
            cyclone: cyclone.map(one),
            configurations,
            fast_dds: found("Fast DDS", fast_dds(&home)).map(one),
            fast_dds_version: debian("libfastrtps-dev"),
            aeron: found("Aeron", aeron(&home, domain)),
            iceoryx2: of_crates("iceoryx2", "with-iceoryx2"),
            dust: of_crates("dust_dds", "with-dust"),
            zenoh: of_crates("Zenoh", "with-zenoh"),
        }
    }

    /// Returns the C program with the configuration that its README shows, on loopback without
    /// multicast.
    fn cyclone(&self, job: Job) -> Found<Ends> {
        let high = match job {
            Job::Trips(_) => WATERMARKS,
            Job::Flow => "<WhcHigh>4MB</WhcHigh>",
        };
        self.cyclone_with(&format!(
            "<CycloneDDS><Domain Id=\"any\"><General><Interfaces>\
             <NetworkInterface address=\"127.0.0.1\" multicast=\"false\"/></Interfaces>\
             <AllowMulticast>false</AllowMulticast><MaxMessageSize>65500B</MaxMessageSize>\
             </General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
             <Peers AddLocalhost=\"true\"/></Discovery>\
             <Internal><Watermarks>{high}</Watermarks></Internal></Domain>\
             </CycloneDDS>"
        ))
    }

    /// Returns the C program with Fanfare's configuration.
    fn cyclone_as_fanfare(&self, job: Job) -> Found<Ends> {
        let [trips, flow] = &self.configurations;
        self.cyclone_with(match job {
            Job::Trips(_) => trips,
            Job::Flow => flow,
        })
    }

    fn cyclone_with(&self, configuration: &str) -> Found<Ends> {
        let env = ["env".to_owned(), format!("CYCLONEDDS_URI={configuration}")];
        self.cyclone.clone().map(|ends| ends.after(&env))
    }
}

/// Adds the way's name to a program that has several.
fn with(program: &Found<Ends>, way: &str) -> Found<Ends> {
    program.clone().map(|ends| ends.with(way))
}

fn over_sockets(programs: &Programs, job: Job) -> Vec<Way> {
    let way = |name, how: &str, flow, ends| Way {
        name,
        how: how.to_owned(),
        ends,
        amount: match job {
            Job::Trips(_) => TRIPS,
            Job::Flow => samples(flow),
        },
    };
    let fast_dds = format!(
        "{}, UDP, listeners, heartbeats of 10 ms",
        programs.fast_dds_version
    );
    vec![
        way(
            "Fanfare",
            "fanfare-dds, UDP, listeners; batches in the throughput",
            1_000_000,
            with(&programs.ours, "dds"),
        ),
        way(
            "Cyclone DDS",
            "11.0.1 in C, UDP, listeners, datagrams as in its README; batches in the throughput",
            1_000_000,
            programs.cyclone(job),
        ),
        way(
            "Cyclone DDS, set as Fanfare",
            "the same program with Fanfare's configuration",
            1_000_000,
            programs.cyclone_as_fanfare(job),
        ),
        way(
            "Fast DDS",
            &fast_dds,
            100_000,
            with(&programs.fast_dds, "udp"),
        ),
        way(
            "dust_dds",
            "0.15.0 of crates.io, UDP, listeners",
            20_000,
            with(&programs.dust, "udp"),
        ),
        way(
            "Zenoh",
            "1.10.2 of crates.io, TCP between peers, callbacks; batches in the throughput",
            1_000_000,
            with(&programs.zenoh, "tcp"),
        ),
    ]
}

fn through_memory(programs: &Programs, job: Job) -> Vec<Way> {
    let way = |name, how: &str, amount, ends| Way {
        name,
        how: how.to_owned(),
        ends,
        amount,
    };
    let fast_dds = format!(
        "{}, {}, loans, asleep in between",
        programs.fast_dds_version,
        match job {
            Job::Trips(_) => "data sharing",
            Job::Flow => "shared-memory transport",
        }
    );
    let spins = |flow| match job {
        Job::Trips(size) => spinning_trips(size),
        Job::Flow => spinning_samples(flow),
    };
    let sleeps = |flow| match job {
        Job::Trips(_) => TRIPS,
        Job::Flow => flow,
    };
    vec![
        way(
            "Fanfare",
            "fanfare-dds, shm, both ends spin",
            spins(20_000_000),
            with(&programs.ours, "shm"),
        ),
        way(
            "iceoryx2",
            "0.10.0 of crates.io, loans, both ends spin",
            spins(4_000_000),
            with(&programs.iceoryx2, "shm"),
        ),
        way(
            "Aeron IPC",
            "1.50.0, exclusive publications, claims, both ends spin",
            spins(20_000_000),
            programs.aeron.clone(),
        ),
        way(
            "Zenoh, shared memory",
            "1.10.2, buffers in shared memory, announced over TCP, asleep in between",
            sleeps(samples(100_000)),
            with(&programs.zenoh, "shm"),
        ),
        way(
            "Fast DDS, shared memory",
            &fast_dds,
            // What fits into its history warms up; the rest takes the longest time of a sink.
            sleeps(Amount {
                warm_up: FAST_DDS_KEEPS,
                count: 9 * FAST_DDS_KEEPS,
            }),
            with(&programs.fast_dds, "shm"),
        ),
    ]
}
