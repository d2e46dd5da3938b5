//! Zenoh: two peers, over TCP on 127.0.0.1 or through buffers in shared memory, announced over TCP.
//!
//! For round trips the low-latency transport, which neither queues nor batches; for throughput the
//! default one, which batches.
#![forbid(unsafe_code)]

use std::sync::Arc;

use ends::{
    Args, Check, Flow, Result, Role, Trips, fail, ready, set_number, settle, until_stdin_ends,
    wait_for_match,
};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::shm::{
    BlockOn, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder,
};
use zenoh::{Config, Session, Wait};

/// Bytes of the shared memory of a publisher.
const MEMORY: usize = 16 << 20;

struct Ends<'a> {
    args: &'a Args,
    session: Session,
    by_memory: bool,
}

fn main() -> Result<()> {
    let args = Args::read()?;
    let by_memory = args.way == "shm";
    let session = zenoh::open(config(&args, by_memory)?).wait()?;
    let ends = Ends {
        args: &args,
        session,
        by_memory,
    };
    match args.role {
        Role::Pong => ends.pong(),
        Role::Ping => ends.ping(),
        Role::Sink => ends.sink(),
        Role::Source => ends.source(),
    }
}

/// The end that is started first listens, the other one connects. Nothing is looked for.
fn config(args: &Args, by_memory: bool) -> Result<Config> {
    let port = 7400 + 250 * args.domain;
    let is_first = matches!(args.role, Role::Pong | Role::Sink);
    let is_trip = matches!(args.role, Role::Pong | Role::Ping);
    let here = format!("[\"tcp/127.0.0.1:{port}\"]");
    let (listens, connects) = if is_first {
        (here.as_str(), "[]")
    } else {
        ("[]", here.as_str())
    };
    let mut config = Config::default();
    for (key, value) in [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        ("listen/endpoints", listens),
        ("connect/endpoints", connects),
        ("transport/unicast/lowlatency", bool(is_trip)),
        ("transport/unicast/qos/enabled", bool(!is_trip)),
        ("transport/shared_memory/enabled", bool(by_memory)),
    ] {
        config.insert_json5(key, value)?;
    }
    Ok(config)
}

const fn bool(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

impl Ends<'_> {
    fn key(&self, topic: &str) -> String {
        format!("fanfare-benches/{}/{topic}", self.args.domain)
    }

    fn out(&self, topic: &str) -> Result<Out> {
        let publisher = self.session.declare_publisher(self.key(topic));
        // A publisher waits where the network is behind.
        let publisher = publisher.congestion_control(CongestionControl::Block);
        let publisher =
            publisher.express(self.args.role == Role::Ping || self.args.role == Role::Pong);
        Ok(Out {
            publisher: publisher.wait()?,
            memory: self.by_memory.then(memory).transpose()?,
        })
    }

    fn each(&self, topic: &str, each: impl Fn(Sample) + Send + Sync + 'static) -> Result<()> {
        let subscriber = self.session.declare_subscriber(self.key(topic));
        subscriber.callback(each).background().wait()?;
        Ok(())
    }

    fn pong(&self) -> Result<()> {
        let out = self.out("pong")?;
        // As the library's own example, it sends the buffer that came. In shared memory nothing
        // else would read it; all other pongs copy the sample.
        let check = self.by_memory.then(|| Check::new(self.args));
        self.each("ping", move |sample| {
            if let Some(check) = check {
                check.number_of(&sample.payload().to_bytes());
            }
            out.put(sample.payload().clone());
        })?;
        ready();
        until_stdin_ends();
        Ok(())
    }

    fn ping(&self) -> Result<()> {
        let out = Arc::new(self.out("ping")?);
        let echo = Arc::clone(&out);
        let trips = std::sync::Mutex::new((Trips::new(self.args), self.args.sample()));
        let check = Check::new(self.args);
        self.each("pong", move |sample| {
            let Ok(mut state) = trips.lock() else { return };
            let (trips, next) = &mut *state;
            if let Some(number) = trips.came(check.number_of(&sample.payload().to_bytes())) {
                set_number(next, number);
                echo.send(next);
            }
        })?;
        wait_for_match(|| out.is_matched());
        out.send(&self.args.sample());
        until_stdin_ends();
        Ok(())
    }

    fn sink(&self) -> Result<()> {
        let flow = std::sync::Mutex::new(Flow::new(self.args));
        let check = Check::new(self.args);
        self.each("flow", move |sample| {
            if let Ok(mut flow) = flow.lock() {
                flow.came(check.number_of(&sample.payload().to_bytes()));
            }
        })?;
        ready();
        until_stdin_ends();
        Ok(())
    }

    fn source(&self) -> Result<()> {
        let out = self.out("flow")?;
        let mut sample = self.args.sample();
        wait_for_match(|| out.is_matched());
        settle();
        for number in 0..self.args.total() {
            set_number(&mut sample, number);
            out.send(&sample);
        }
        until_stdin_ends();
        Ok(())
    }
}

type Memory = ShmProvider<PosixShmProviderBackend>;

fn memory() -> Result<Memory> {
    let backend = PosixShmProviderBackend::builder(MEMORY).wait()?;
    Ok(ShmProviderBuilder::backend(backend).wait())
}

struct Out {
    publisher: Publisher<'static>,
    memory: Option<Memory>,
}

impl Out {
    fn is_matched(&self) -> bool {
        let matched = self.publisher.matching_status().wait();
        matched.is_ok_and(|status| status.matching())
    }

    /// Sends a copy, in shared memory if there is some.
    #[inline]
    fn send(&self, bytes: &[u8]) {
        let Some(memory) = &self.memory else {
            return self.put(ZBytes::from(bytes));
        };
        let buffer = memory
            .alloc(bytes.len())
            .with_policy::<BlockOn<GarbageCollect>>();
        match buffer.wait() {
            Ok(mut buffer) => {
                buffer.copy_from_slice(bytes);
                self.put(buffer.into());
            }
            Err(error) => fail(&error),
        }
    }

    #[inline]
    fn put(&self, bytes: ZBytes) {
        if let Err(error) = self.publisher.put(bytes).wait() {
            fail(&error);
        }
    }
}
