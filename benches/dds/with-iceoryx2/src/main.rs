//! iceoryx2: samples on loan in shared memory; both ends poll without pause.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ends::{Args, Check, Flow, Result, Role, Trips, ready, set_number, settle};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe;

/// Samples that wait for the reader, at most.
const WAITING: usize = 1024;

type Service = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;
type Out = Publisher<ipc::Service, [u8], ()>;
type In = Subscriber<ipc::Service, [u8], ()>;

struct Ends<'a> {
    args: &'a Args,
    node: Node<ipc::Service>,
}

fn main() -> Result<()> {
    let args = Args::read()?;
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let ends = Ends { args: &args, node };
    match args.role {
        Role::Pong => ends.pong(),
        Role::Ping => ends.ping(),
        Role::Sink => ends.sink(),
        Role::Source => ends.source(),
    }
}

impl Ends<'_> {
    /// Opens a service that loses nothing.
    fn service(&self, topic: &str) -> Result<Service> {
        let name = format!("fanfare-benches/{}/{topic}", self.args.domain);
        let service = self.node.service_builder(&name.as_str().try_into()?);
        let service = service.publish_subscribe::<[u8]>();
        let service = service.max_publishers(1).max_subscribers(1);
        let service = service.enable_safe_overflow(false).history_size(0);
        Ok(service
            .subscriber_max_buffer_size(WAITING)
            .open_or_create()?)
    }

    fn publisher(&self, service: &Service) -> Result<Out> {
        let publisher = service.publisher_builder();
        let publisher = publisher.initial_max_slice_len(self.args.size);
        let waits = BackpressureStrategy::RetryUntilDelivered;
        Ok(publisher.backpressure_strategy(waits).create()?)
    }

    fn pong(&self) -> Result<()> {
        let (out, ins) = (self.service("pong")?, self.service("ping")?);
        let (out, ins) = (self.publisher(&out)?, ins.subscriber_builder().create()?);
        let stop = ends::stop_with_stdin();
        ready();
        while !stop.load(Ordering::Relaxed) {
            match ins.receive()? {
                Some(sample) => send(&out, sample.payload())?,
                None => std::hint::spin_loop(),
            }
        }
        Ok(())
    }

    fn ping(&self) -> Result<()> {
        let (out, ins) = (self.service("ping")?, self.service("pong")?);
        wait_for_subscriber(&out);
        let (out, ins) = (self.publisher(&out)?, ins.subscriber_builder().create()?);
        settle();
        let mut sample = self.args.sample();
        let mut next = Some(0);
        let (mut trips, check) = (Trips::new(self.args), Check::new(self.args));
        while let Some(number) = next {
            set_number(&mut sample, number);
            send(&out, &sample)?;
            next = trips.came(check.number_of(take(&ins)?.payload()));
        }
        Ok(())
    }

    fn sink(&self) -> Result<()> {
        let ins = self.service("flow")?.subscriber_builder().create()?;
        ready();
        let (mut flow, check) = (Flow::new(self.args), Check::new(self.args));
        while !flow.came(check.number_of(take(&ins)?.payload())) {}
        Ok(())
    }

    fn source(&self) -> Result<()> {
        let service = self.service("flow")?;
        wait_for_subscriber(&service);
        let out = self.publisher(&service)?;
        settle();
        let mut sample = self.args.sample();
        for number in 0..self.args.total() {
            set_number(&mut sample, number);
            send(&out, &sample)?;
        }
        ends::until_stdin_ends();
        Ok(())
    }
}

fn wait_for_subscriber(service: &Service) {
    while service.dynamic_config().number_of_subscribers() == 0 {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a copy, on loan from the publisher.
#[inline]
fn send(out: &Out, bytes: &[u8]) -> Result<()> {
    let loan = out.loan_slice_uninit(bytes.len())?;
    loan.write_from_slice(bytes).send()?;
    Ok(())
}

/// Waits for a sample.
#[inline]
fn take(ins: &In) -> Result<iceoryx2::sample::Sample<ipc::Service, [u8], ()>> {
    loop {
        if let Some(sample) = ins.receive()? {
            return Ok(sample);
        }
        std::hint::spin_loop();
    }
}
