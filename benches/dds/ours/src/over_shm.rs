//! Samples through Fanfare's shared memory. Each end spins in its only thread.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ends::{Args, Check, Flow, Result, Role, Trips, ready, set_number, settle, stop_with_stdin};
use fanfare_dds::shm::{Config, Receiver, Sender, TopicSpec};

struct Ends {
    config: Config,
    topics: [TopicSpec; 1],
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // A full ring waits for its reader.
    let config = Config::new(args.domain)?.patience(Duration::from_secs(10));
    let ends = Ends {
        config,
        topics: [TopicSpec::new("Sample", &super::sample_type(args)?, false)],
    };
    match args.role {
        Role::Pong => ends.pong(),
        Role::Ping => ends.ping(args),
        Role::Sink => ends.sink(args),
        Role::Source => ends.source(args),
    }
}

impl Ends {
    fn sender(&self, channel: &str) -> Result<Sender> {
        Ok(Sender::open(&self.config, channel, &self.topics)?)
    }

    fn receiver(&self, channel: &str) -> Result<Receiver> {
        Ok(Receiver::open(&self.config, channel, &self.topics)?)
    }

    fn pong(&self) -> Result<()> {
        let (mut sender, mut receiver) = (self.sender("pong")?, self.receiver("ping")?);
        let stop = stop_with_stdin();
        ready();
        let mut failed = Ok(());
        while failed.is_ok() && !stop.load(Ordering::Relaxed) {
            receiver.poll(|sample| failed = sender.write(0, 0, sample.bytes));
            std::hint::spin_loop();
        }
        Ok(failed?)
    }

    fn ping(&self, args: &Args) -> Result<()> {
        let (mut sender, mut receiver) = (self.sender("ping")?, self.receiver("pong")?);
        let mut sample = args.sample();
        while sender.receivers() == 0 || receiver.senders() == 0 {
            receiver.refresh();
        }
        settle();
        let mut next = Some(0);
        let (mut trips, check) = (Trips::new(args), Check::new(args));
        while let Some(number) = next {
            set_number(&mut sample, number);
            sender.write(0, 0, &sample)?;
            while receiver.poll(|echo| next = trips.came(check.number_of(echo.bytes))) == 0 {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    fn sink(&self, args: &Args) -> Result<()> {
        let mut receiver = self.receiver("flow")?;
        ready();
        let (mut flow, check) = (Flow::new(args), Check::new(args));
        let mut is_over = false;
        while !is_over {
            receiver.poll(|sample| is_over = flow.came(check.number_of(sample.bytes)));
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn source(&self, args: &Args) -> Result<()> {
        let mut sender = self.sender("flow")?;
        let mut sample = args.sample();
        while sender.receivers() == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        settle();
        for number in 0..args.total() {
            set_number(&mut sample, number);
            sender.write(0, 0, &sample)?;
        }
        sender.wait_for_receivers(Duration::from_secs(10));
        ends::until_stdin_ends();
        Ok(())
    }
}
