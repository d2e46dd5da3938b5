//! dust_dds: UDP on loopback, with listeners.
//!
//! Its own transport announces participants on every interface; here it is told to do so on
//! loopback alone.
#![forbid(unsafe_code)]

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::pin::Pin;
use std::process;
use std::sync::Arc;

use dust_dds::dcps::channels::mpsc::MpscSender;
use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::dds_async::data_reader_listener::DataReaderListener;
use dust_dds::dds_async::data_writer::DataWriterAsync;
use dust_dds::dds_async::domain_participant::DomainParticipantAsync;
use dust_dds::dds_async::domain_participant_factory::DomainParticipantFactoryAsync;
use dust_dds::dds_async::topic_description::TopicDescriptionAsync;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    HistoryQosPolicy, HistoryQosPolicyKind, ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::{Duration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::listener::NO_LISTENER;
use dust_dds::rtps_udp_transport::udp_transport::{
    RtpsUdpTransportParticipantFactory, RtpsUdpTransportParticipantFactoryBuilder,
};
use dust_dds::std_runtime::StdRuntime;
use dust_dds::std_runtime::executor::{Executor, block_on};
use dust_dds::std_runtime::timer::TimerDriver;
use dust_dds::transport::interface::{
    RtpsTransportParticipant, TransportParticipantFactory, WriteMessage,
};
use dust_dds::transport::types::Locator;
use dust_dds::xtypes::bytes::ByteBuf;
use ends::{
    Args, Check, Flow, NUMBER, Result, Role, Trips, fail, ready, until_stdin_ends, wait_for_match,
};
use socket2::{Domain, Protocol, Socket, Type};

#[derive(Debug, Clone, DdsType)]
struct Sample {
    number: u64,
    payload: ByteBuf,
}

type Out = DataWriterAsync<Sample>;
type In = DataReaderAsync<Sample>;

/// Samples that are taken at a time.
const BATCH: i32 = 64;

struct Ends<'a> {
    args: &'a Args,
    participant: DomainParticipantAsync,
}

fn main() -> Result<()> {
    let args = Args::read()?;
    let runtime = StdRuntime::new(Executor::new(), TimerDriver::new());
    let host = Ipv4Addr::LOCALHOST.octets();
    let transport = Loopback::new()?;
    let app = process::id().to_ne_bytes();
    let factory = DomainParticipantFactoryAsync::new(runtime, app, host, transport);
    block_on(async {
        let domain = i32::try_from(args.domain)?;
        let participant =
            factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS);
        let participant = participant.await.map_err(told)?;
        let ends = Ends {
            args: &args,
            participant,
        };
        match args.role {
            Role::Pong => ends.pong().await,
            Role::Ping => ends.ping().await,
            Role::Sink => ends.sink().await,
            Role::Source => ends.source().await,
        }
    })
}

fn told(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

impl Ends<'_> {
    async fn topic(&self, name: &str) -> Result<TopicDescriptionAsync> {
        let qos = QosKind::Default;
        let topic = self.participant.create_topic::<Sample>(
            name,
            "Bench::Sample",
            qos,
            NO_LISTENER,
            NO_STATUS,
        );
        Ok(topic.await.map_err(told)?)
    }

    async fn out(&self, name: &str) -> Result<Out> {
        let qos = DataWriterQos {
            reliability: reliable(),
            history: keep_all(),
            ..Default::default()
        };
        let publisher = self
            .participant
            .create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS);
        let publisher = publisher.await.map_err(told)?;
        let topic = self.topic(name).await?;
        let qos = QosKind::Specific(qos);
        let writer = publisher.create_datawriter(&topic, qos, NO_LISTENER, NO_STATUS);
        Ok(writer.await.map_err(told)?)
    }

    async fn each<E: Each>(&self, name: &str, each: E) -> Result<In> {
        let qos = DataReaderQos {
            reliability: reliable(),
            history: keep_all(),
            ..Default::default()
        };
        let subscriber =
            self.participant
                .create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS);
        let subscriber = subscriber.await.map_err(told)?;
        let topic = self.topic(name).await?;
        let qos = QosKind::Specific(qos);
        let listens = &[StatusKind::DataAvailable];
        let reader = subscriber.create_datareader(&topic, qos, Some(Listener(each)), listens);
        Ok(reader.await.map_err(told)?)
    }

    fn sample(&self) -> Sample {
        Sample {
            number: 0,
            payload: ByteBuf(self.args.sample().split_off(NUMBER)),
        }
    }

    async fn pong(&self) -> Result<()> {
        let out = self.out("Pong").await?;
        let _reader = self.each("Ping", Echo { out }).await?;
        ready();
        until_stdin_ends();
        Ok(())
    }

    async fn ping(&self) -> Result<()> {
        let out = self.out("Ping").await?;
        let trips = Trips::new(self.args);
        let next = Next {
            out: out.clone(),
            trips,
            check: Check::new(self.args),
        };
        let reader = self.each("Pong", next).await?;
        wait_for_match(|| {
            let matched = block_on(async {
                let out = out.get_matched_subscriptions().await;
                (out, reader.get_matched_publications().await)
            });
            matches!(matched, (Ok(out), Ok(ins)) if !out.is_empty() && !ins.is_empty())
        });
        write(&out, self.sample()).await;
        until_stdin_ends();
        Ok(())
    }

    async fn sink(&self) -> Result<()> {
        let (flow, check) = (Flow::new(self.args), Check::new(self.args));
        let _reader = self.each("Flow", Count { flow, check }).await?;
        ready();
        until_stdin_ends();
        Ok(())
    }

    async fn source(&self) -> Result<()> {
        let out = self.out("Flow").await?;
        let mut sample = self.sample();
        wait_for_match(|| {
            let matched = block_on(out.get_matched_subscriptions());
            matched.is_ok_and(|matched| !matched.is_empty())
        });
        for number in 0..self.args.total() {
            sample.number = number;
            write(&out, sample.clone()).await;
        }
        until_stdin_ends();
        Ok(())
    }
}

fn reliable() -> ReliabilityQosPolicy {
    ReliabilityQosPolicy {
        kind: ReliabilityQosPolicyKind::Reliable,
        max_blocking_time: DurationKind::Finite(Duration::new(10, 0)),
    }
}

fn keep_all() -> HistoryQosPolicy {
    HistoryQosPolicy {
        kind: HistoryQosPolicyKind::KeepAll,
    }
}

async fn write(out: &Out, sample: Sample) {
    if let Err(error) = out.write(sample, None).await {
        fail(&told(error));
    }
}

/// What is done with each sample.
trait Each: Send + 'static {
    fn sample(&mut self, sample: Sample) -> impl Future<Output = ()> + Send;
}

struct Listener<E>(E);

impl<E: Each> DataReaderListener<Sample> for Listener<E> {
    async fn on_data_available(&mut self, reader: In) {
        let (states, views) = (ANY_SAMPLE_STATE, ANY_VIEW_STATE);
        while let Ok(samples) = reader.take(BATCH, states, views, ANY_INSTANCE_STATE).await {
            for sample in samples.into_iter().filter_map(|sample| sample.data) {
                self.0.sample(sample).await;
            }
        }
    }
}

struct Echo {
    out: Out,
}

impl Each for Echo {
    async fn sample(&mut self, sample: Sample) {
        write(&self.out, sample).await;
    }
}

struct Next {
    out: Out,
    trips: Trips,
    check: Check,
}

impl Each for Next {
    async fn sample(&mut self, mut sample: Sample) {
        let number = self.check.parts(sample.number, &sample.payload.0);
        if let Some(number) = self.trips.came(number) {
            sample.number = number;
            write(&self.out, sample).await;
        }
    }
}

struct Count {
    flow: Flow,
    check: Check,
}

impl Each for Count {
    async fn sample(&mut self, sample: Sample) {
        let number = self.check.parts(sample.number, &sample.payload.0);
        self.flow.came(number);
    }
}

/// Its transport on loopback, whose multicast leaves by loopback alone.
struct Loopback(RtpsUdpTransportParticipantFactory);

impl Loopback {
    fn new() -> Result<Self> {
        let builder = RtpsUdpTransportParticipantFactoryBuilder::new();
        let builder = builder.interface_name(Some("lo".to_owned()));
        let builder = builder.udp_receive_buffer_size(Some(4 << 20));
        Ok(Self(builder.build()?))
    }
}

impl TransportParticipantFactory for Loopback {
    async fn create_participant(
        &self,
        domain: i32,
        sender: MpscSender<Arc<[u8]>>,
    ) -> RtpsTransportParticipant {
        let mut participant = self.0.create_participant(domain, sender).await;
        let multicast = multicast().unwrap_or_else(|error| fail(&error));
        participant.message_writer = Box::new(OnLoopback {
            unicast: participant.message_writer,
            multicast,
        });
        participant
    }
}

fn multicast() -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
    socket.set_multicast_ttl_v4(0)?;
    Ok(socket)
}

struct OnLoopback {
    unicast: Box<dyn WriteMessage + Send + Sync>,
    multicast: Socket,
}

impl WriteMessage for OnLoopback {
    fn write_message(
        &self,
        message: &[u8],
        locators: &[Locator],
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut unicast = Vec::new();
        for locator in locators {
            let [.., a, b, c, d] = locator.address();
            let address = Ipv4Addr::new(a, b, c, d);
            if !address.is_multicast() {
                unicast.push(*locator);
                continue;
            }
            let port = u16::try_from(locator.port()).unwrap_or_default();
            let to = SocketAddrV4::new(address, port).into();
            // What is lost is announced again.
            let _ = self.multicast.send_to(message, &to);
        }
        self.unicast.write_message(message, &unicast)
    }
}
