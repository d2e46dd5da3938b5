//! RustDDS: UDP on loopback, with streams of samples, as its own `ddsperf`.
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr};

use ends::{Args, Flow, NUMBER, Result, Role, Trips, ready, settle, wait_for_match};
use futures::StreamExt;
use futures::executor::block_on;
use rustdds::no_key::{DataReader, DataWriter};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, Duration, Publisher, QosPolicies,
    QosPolicyBuilder, Subscriber, TopicKind,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sample {
    number: u64,
    #[serde(with = "serde_bytes")]
    payload: Vec<u8>,
}

type Out = DataWriter<Sample>;
type In = DataReader<Sample>;

struct Ends<'a> {
    args: &'a Args,
    participant: DomainParticipant,
    publisher: Publisher,
    subscriber: Subscriber,
    qos: QosPolicies,
}

fn main() -> Result<()> {
    let args = Args::read()?;
    let qos = QosPolicyBuilder::new()
        .reliability(Reliability::Reliable {
            max_blocking_time: Duration::from_secs(10),
        })
        .durability(Durability::Volatile)
        .history(History::KeepAll)
        .build();
    let participant = DomainParticipantBuilder::new(u16::try_from(args.domain)?)
        .with_only_networks([IpAddr::V4(Ipv4Addr::LOCALHOST)])
        .build()?;
    let ends = Ends {
        args: &args,
        publisher: participant.create_publisher(&qos)?,
        subscriber: participant.create_subscriber(&qos)?,
        participant,
        qos,
    };
    match args.role {
        Role::Pong => ends.pong(),
        Role::Ping => ends.ping(),
        Role::Sink => ends.sink(),
        Role::Source => ends.source(),
    }
}

impl Ends<'_> {
    fn topic(&self, name: &str) -> Result<rustdds::Topic> {
        let (name, sample) = (name.to_owned(), "Bench::Sample".to_owned());
        let topic = self
            .participant
            .create_topic(name, sample, &self.qos, TopicKind::NoKey);
        Ok(topic?)
    }

    fn out(&self, name: &str) -> Result<Out> {
        let topic = self.topic(name)?;
        let writer = self.publisher.create_datawriter_no_key_cdr(&topic, None);
        Ok(writer?)
    }

    fn reader(&self, name: &str) -> Result<In> {
        let topic = self.topic(name)?;
        let reader = self.subscriber.create_datareader_no_key_cdr(&topic, None);
        Ok(reader?)
    }

    fn sample(&self) -> Sample {
        Sample {
            number: 0,
            payload: self.args.sample().split_off(NUMBER),
        }
    }

    fn pong(&self) -> Result<()> {
        let (out, reader) = (self.out("Pong")?, self.reader("Ping")?);
        let mut samples = reader.async_bare_sample_stream();
        ready();
        std::thread::spawn(|| {
            ends::until_stdin_ends();
            std::process::exit(0);
        });
        block_on(async {
            while let Some(sample) = samples.next().await {
                out.async_write(sample?, None).await?;
            }
            Ok(())
        })
    }

    fn ping(&self) -> Result<()> {
        let (out, reader) = (self.out("Ping")?, self.reader("Pong")?);
        let mut samples = reader.async_bare_sample_stream();
        wait_for_match(|| !out.get_matched_subscriptions().is_empty());
        settle();
        let first = self.sample();
        block_on(async {
            out.async_write(first.clone(), None).await?;
            let mut trips = Trips::new(self.args.count);
            while let Some(sample) = samples.next().await {
                let mut sample = sample?;
                let Some(number) = trips.came(sample.number) else {
                    break;
                };
                sample.number = number;
                out.async_write(sample, None).await?;
            }
            Ok(())
        })
    }

    fn sink(&self) -> Result<()> {
        let mut samples = self.reader("Flow")?.async_bare_sample_stream();
        ready();
        let mut flow = Flow::new(self.args.count);
        block_on(async {
            while let Some(sample) = samples.next().await {
                if flow.came(sample?.number) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn source(&self) -> Result<()> {
        let out = self.out("Flow")?;
        let mut sample = self.sample();
        wait_for_match(|| !out.get_matched_subscriptions().is_empty());
        settle();
        block_on(async {
            for number in 0..self.args.count {
                sample.number = number;
                out.async_write(sample.clone(), None).await?;
            }
            Result::Ok(())
        })?;
        ends::until_stdin_ends();
        Ok(())
    }
}
