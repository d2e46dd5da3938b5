//! The configuration of a domain's network: interface, peers, multicast, transport.

mod peer;

use std::fmt::Write as _;
use std::time::Duration;

use crate::Error;
use peer::Peer;

/// The highest domain id whose RTPS ports (7400 + 250 × id and up) fit below 65536.
const MAX_DOMAIN_ID: u32 = 232;

/// The shortest lease: a busy machine may hold up a thread for longer than any below this.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// Cyclone's lease where none is set.
const USUAL_LEASE: Duration = Duration::from_secs(10);

/// The bounds of the interval at which a participant announces itself. A host without participants
/// is sent a datagram for each of 100 ports in each interval.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(8);

/// The longest datagram on loopback, whose packets of up to 65,535 bytes are never fragmented.
/// Batching fills it with four times as many samples as Cyclone's default of 14,720 bytes, which is
/// chosen for networks, where a datagram is sent in fragments and is lost with any of them.
const LOOPBACK_MESSAGE: usize = 65_000;

/// The most samples that are queued to be sent again, over all writers of a participant, as far as
/// they have 512 kB (Cyclone's limit in bytes). Cyclone's default is 200: where hundreds of writers
/// repair losses of one reader at once, the samples beyond it are left out, and each writer's next
/// heartbeat, which may be seconds later, has to show again that they are missing.
const SENT_AGAIN: u32 = 8_192;

/// The transport of samples between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP unicast, with discovery through the list of peers.
    #[default]
    Udp,
    /// TCP, with every peer named as `ADDRESS:PORT`.
    Tcp,
    /// UDP multicast for discovery and for data.
    Multicast,
}

/// The configuration of a domain, made in code; no file and no environment variable is read.
///
/// By default it uses UDP unicast on the loopback interface, and participants of the same domain id
/// on this host discover each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainConfig {
    /// The domain id on the network, 0 to 232.
    pub id: u32,
    /// The network interface by name (`eth0`) or by address (`10.0.0.4`).
    pub interface: String,
    /// The transport of discovery and samples.
    pub transport: Transport,
    /// Hosts on which to look for participants, `HOST` or `HOST:PORT`: an IPv4 address, a name that
    /// the system resolves when the domain is opened, or the name of the interface for its own
    /// address. With UDP unicast this host itself is always included.
    pub peers: Vec<String>,
    /// The port on which a participant accepts TCP connections. With 0 the system chooses, and then
    /// the other participants must be told the port or be connected to from here. A port that is
    /// already in use is refused when the domain is opened.
    pub tcp_port: u16,
    /// The receive buffer requested of the kernel for each socket, in bytes (it may grant less).
    pub receive_buffer: usize,
    /// Bytes that a reliable writer sends ahead of the slowest reader's acknowledgement; a write
    /// beyond waits as long as its policy permits.
    pub unacknowledged: usize,
    /// The longest sample, in bytes; 64 MiB unless set, 2 GiB at most. A longer one is dropped when
    /// it arrives, before its fragments are assembled, and refused when it is written.
    pub longest_sample: u32,
    /// The time of silence of this participant after which the others remove it, with its writers
    /// and readers, and no longer wait for it. At least 100 ms; `None` is Cyclone's default, 10 s.
    pub lease: Option<Duration>,
    /// The time for which closing a writer waits for readers that have not acknowledged everything;
    /// 1 s unless set. Writers are closed one after the other.
    pub linger: Duration,
    /// Further elements for Cyclone DDS's `<Domain>`, as XML, for options without a field here.
    /// They replace the `SPDPInterval`, and the `MaxMessageSize` and `MultipleReceiveThreads` set
    /// for loopback.
    pub extra_xml: String,
}

impl DomainConfig {
    /// Makes a configuration of the domain `id`, 0 to 232, on loopback.
    pub fn new(id: u32) -> Self {
        Self {
            id,
            interface: "127.0.0.1".to_owned(),
            transport: Transport::Udp,
            peers: Vec::new(),
            tcp_port: 0,
            receive_buffer: 4 << 20,
            unacknowledged: 4 << 20,
            longest_sample: 64 << 20,
            lease: None,
            linger: Duration::from_secs(1),
            extra_xml: String::new(),
        }
    }

    /// Returns the configuration as Cyclone DDS reads it. Resolves the names of peers.
    ///
    /// # Errors
    /// [`Error::DomainId`] above 232; [`Error::Config`] for an empty interface, a peer that is no
    /// host or not known, and for TCP peers without a port.
    pub fn to_xml(&self) -> Result<String, Error> {
        self.check()?;
        let peers = self.peers.iter();
        let peers = peers.map(|peer| Peer::new(peer, self.transport, &self.interface));
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        let multicast = self.transport == Transport::Multicast;
        let by = if self.interface.parse::<std::net::IpAddr>().is_ok() {
            "address"
        } else {
            "name"
        };
        let mut xml = String::from("<CycloneDDS><Domain Id=\"any\"><General><Interfaces>");
        // The formatter of a String cannot fail.
        let _ = write!(
            xml,
            "<NetworkInterface {by}=\"{}\" multicast=\"{multicast}\"/></Interfaces>\
             <AllowMulticast>{multicast}</AllowMulticast><Transport>{}</Transport>",
            escape(&self.interface),
            if self.transport == Transport::Tcp {
                "tcp"
            } else {
                "udp"
            },
        );
        let datagrams_on_loopback = self.transport != Transport::Tcp && self.is_loopback();
        if datagrams_on_loopback && !self.extra_xml.contains("<MaxMessageSize") {
            let _ = write!(xml, "<MaxMessageSize>{LOOPBACK_MESSAGE}B</MaxMessageSize>");
        }
        xml.push_str("</General>");
        self.write_discovery(&mut xml, multicast, &peers);
        if self.transport == Transport::Tcp {
            let _ = write!(xml, "<TCP><Port>{}</Port></TCP>", self.tcp_port);
        }
        let threads = match datagrams_on_loopback {
            true if !self.extra_xml.contains("<MultipleReceiveThreads") => {
                "<MultipleReceiveThreads>true</MultipleReceiveThreads>"
            }
            _ => "",
        };
        let _ = write!(
            xml,
            "<Internal><SocketReceiveBufferSize max=\"{0}B\"/>{threads}\
             <Watermarks><WhcHigh>{1}B</WhcHigh><WhcHighInit>{1}B</WhcHighInit></Watermarks>\
             <MaxSampleSize>{2}B</MaxSampleSize>\
             <MaxQueuedRexmitMessages>{SENT_AGAIN}</MaxQueuedRexmitMessages>\
             <WriterLingerDuration>{3}ms</WriterLingerDuration></Internal>{4}</Domain>\
             </CycloneDDS>",
            self.receive_buffer,
            self.unacknowledged,
            self.longest_sample.min(i32::MAX as u32),
            self.linger.as_millis(),
            self.extra_xml
        );
        Ok(xml)
    }

    /// Returns the port to listen on, if one was chosen.
    #[cfg(feature = "cyclone")]
    pub(crate) fn listens_on(&self) -> Option<u16> {
        (self.transport == Transport::Tcp && self.tcp_port != 0).then_some(self.tcp_port)
    }

    /// Returns whether the interface is certainly the loopback. There Cyclone is configured to use
    /// a receive thread for samples alone, which waits in `recvmsg` without `epoll_wait` before it:
    /// one system call less each way. Elsewhere its own default applies: it ends such a thread by
    /// sending itself a packet, and behind a firewall that blocks the packet, closing would hang.
    fn is_loopback(&self) -> bool {
        match self.interface.parse::<std::net::IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.interface == "lo",
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.id > MAX_DOMAIN_ID {
            return Err(Error::DomainId(self.id));
        }
        if self.interface.trim().is_empty() {
            return Err(Error::Config("no network interface is named".to_owned()));
        }
        if let Some(time) = self.lease.filter(|t| *t < SHORTEST_LEASE) {
            let why = format!("a lease of {time:?} is too short: at least {SHORTEST_LEASE:?}");
            return Err(Error::Config(why));
        }
        Ok(())
    }

    /// Returns the interval at which this participant announces itself. Cyclone's default depends
    /// on the lease, too. For lost participants, and for peers without one so far, it is 30 s:
    /// after a cut of the network that is longer than the lease, both ends would take that long to
    /// discover each other again.
    fn interval(&self) -> Duration {
        let lease = self.lease.unwrap_or(USUAL_LEASE);
        (lease / 5 * 4).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
    }

    fn write_discovery(&self, xml: &mut String, multicast: bool, peers: &[Peer]) {
        let lease = self.lease.map(|time| {
            let ms = time.as_millis();
            format!("<LeaseDuration>{ms}ms</LeaseDuration>")
        });
        let lease = lease.unwrap_or_default();
        // Over TCP Cyclone's own interval stays: an attempt to connect may block its timers.
        let interval = match self.transport {
            Transport::Udp | Transport::Multicast if !self.extra_xml.contains("<SPDPInterval") => {
                let ms = self.interval().as_millis();
                format!("<SPDPInterval>{ms}ms</SPDPInterval>")
            }
            _ => String::new(),
        };
        let _ = write!(
            xml,
            "<Discovery><ExternalDomainId>{}</ExternalDomainId>{lease}{interval}\
             <ParticipantIndex>{}</ParticipantIndex><Peers AddLocalhost=\"{}\">",
            self.id,
            if multicast { "none" } else { "auto" },
            self.transport == Transport::Udp,
        );
        for peer in peers {
            // A peer may come up hours later, so it is never pruned.
            let _ = write!(xml, "<Peer Address=\"{peer}\" PruneDelay=\"inf\"/>");
        }
        xml.push_str("</Peers></Discovery>");
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(interface: &str) -> DomainConfig {
        DomainConfig {
            interface: interface.to_owned(),
            ..DomainConfig::new(0)
        }
    }

    #[test]
    fn the_default_stays_on_loopback_without_multicast() {
        let xml = DomainConfig::new(3).to_xml().unwrap();
        assert!(
            xml.contains("address=\"127.0.0.1\" multicast=\"false\""),
            "{xml}"
        );
        assert!(xml.contains("<AllowMulticast>false<"), "{xml}");
        assert!(xml.contains("<ExternalDomainId>3<"), "{xml}");
    }

    /// With 200, 400 writers took 5 to 12 s to repair what a stop of their reader for 1.5 s lost.
    #[test]
    fn more_samples_than_there_are_writers_are_queued_to_be_sent_again() {
        let xml = DomainConfig::new(0).to_xml().unwrap();
        let queue = "<MaxQueuedRexmitMessages>8192</MaxQueuedRexmitMessages>";
        assert_eq!(xml.matches(queue).count(), 1, "{xml}");
    }

    #[test]
    fn long_datagrams_and_a_thread_for_samples_are_for_loopback_alone() {
        let has = |c: DomainConfig| {
            let xml = c.to_xml().unwrap();
            let long = xml.contains("<MaxMessageSize>65000B<");
            assert_eq!(long, xml.contains("<MultipleReceiveThreads>true<"), "{xml}");
            long
        };
        assert!(has(DomainConfig::new(0)));
        assert!(has(on("127.0.0.9")));
        assert!(has(on("lo")));
        assert!(!has(on("10.0.0.4")));
        assert!(!has(on("eth0")));
        let by = |transport| DomainConfig {
            transport,
            ..DomainConfig::new(0)
        };
        assert!(has(by(Transport::Multicast)));
        assert!(!has(by(Transport::Tcp)));
        let own = "<General><MaxMessageSize>9000B</MaxMessageSize></General>";
        let config = DomainConfig {
            extra_xml: own.to_owned(),
            ..DomainConfig::new(0)
        };
        let xml = config.to_xml().unwrap();
        assert_eq!(xml.matches("<MaxMessageSize>").count(), 1, "{xml}");
    }

    #[test]
    fn announcements_follow_the_lease_but_not_over_tcp() {
        let interval = |transport, lease: Option<u64>| {
            let config = DomainConfig {
                transport,
                lease: lease.map(Duration::from_millis),
                ..DomainConfig::new(0)
            };
            let xml = config.to_xml().unwrap();
            let (_, behind) = xml.split_once("<SPDPInterval>")?;
            behind
                .split_once("</")
                .map(|(interval, _)| interval.to_owned())
        };
        for (lease, expected) in [
            (None, "8000ms"),
            (Some(100), "1000ms"),
            (Some(500), "1000ms"),
            (Some(5_000), "4000ms"),
            (Some(60_000), "8000ms"),
            (Some(u64::MAX), "8000ms"),
        ] {
            for transport in [Transport::Udp, Transport::Multicast] {
                assert_eq!(interval(transport, lease).as_deref(), Some(expected));
            }
            assert_eq!(interval(Transport::Tcp, lease), None);
        }
    }

    #[test]
    fn an_interval_of_further_elements_is_the_only_one() {
        let own = "<Discovery><SPDPInterval>5s</SPDPInterval></Discovery>";
        let config = DomainConfig {
            extra_xml: own.to_owned(),
            ..DomainConfig::new(0)
        };
        let xml = config.to_xml().unwrap();
        assert_eq!(xml.matches("<SPDPInterval>").count(), 1, "{xml}");
    }

    #[test]
    fn a_hostile_interface_stays_inside_its_attribute() {
        let xml = on("a\"/><x y=\"").to_xml().unwrap();
        assert!(xml.contains("name=\"a&quot;/>&lt;x y=&quot;\""), "{xml}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        let text = |c: DomainConfig| c.to_xml().unwrap_err().to_string();
        assert!(text(DomainConfig::new(8_675_309)).contains("8675309 is out of range"));
        assert!(text(on(" ")).contains("no network interface"));
        let with = |peer: &str, transport| DomainConfig {
            peers: vec![peer.to_owned()],
            transport,
            ..DomainConfig::new(0)
        };
        assert!(text(with("", Transport::Udp)).contains("no address"));
        let short = DomainConfig {
            lease: Some(Duration::from_millis(99)),
            ..DomainConfig::new(0)
        };
        assert!(text(short).contains("a lease of 99ms is too short: at least 100ms"));
        let tcp = with("10.0.0.1", Transport::Tcp);
        assert!(text(tcp).contains("ADDRESS:PORT"));
    }
}
