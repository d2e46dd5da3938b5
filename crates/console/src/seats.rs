//! The limits of connections: of the port, of each network at it, and of the Unix socket.

use crate::api::Peer;
use fanfare_engine::counters::Counter;
use fanfare_engine::host::network_of;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit of connections of the Unix socket. Connections of the port do not count.
const OF_OWNER: u64 = 16;
/// The number of networks that share the limit of the port, if each uses its own limit.
const PART: u64 = 2;
/// The least limit of one network: the connections of one page.
const LEAST: u64 = 6;

/// The connections of a console, each with a permit.
pub(crate) struct Seats {
    /// The most connections of the port.
    most: u64,
    taken: Mutex<Taken>,
}

struct Taken {
    /// The number of connections.
    all: Counter,
    by_group: HashMap<Group, u64>,
}

/// The peers that share a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Group {
    /// The user of this process, at the Unix socket.
    Owner,
    /// This machine, at the port.
    Machine,
    /// One address of IPv4 or one /64 of IPv6, at the port.
    Network(IpAddr),
}

/// The permit of a connection, returned when it is dropped.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    group: Group,
}

impl Group {
    fn of(peer: Peer) -> Self {
        match peer {
            Peer::Owner => Self::Owner,
            Peer::Tcp(peer) if peer.ip().to_canonical().is_loopback() => Self::Machine,
            Peer::Tcp(peer) => Self::Network(network_of(peer)),
        }
    }
}

impl Taken {
    fn of(&self, group: Group) -> u64 {
        self.by_group.get(&group).copied().unwrap_or_default()
    }

    /// Returns whether a connection of a group has room at a port of `most` connections.
    fn has_room(&self, group: Group, most: u64) -> bool {
        let of_port = self.all.value().saturating_sub(self.of(Group::Owner));
        match group {
            Group::Owner => self.of(group) < OF_OWNER,
            Group::Machine => of_port < most,
            Group::Network(_) => of_port < most && self.of(group) < (most / PART).max(LEAST),
        }
    }
}

impl Seats {
    /// Returns the permits of a console whose port takes `most` connections, and which counts all
    /// connections with `all`.
    pub(crate) fn new(most: u64, all: Counter) -> Arc<Self> {
        let taken = Mutex::new(Taken {
            all,
            by_group: HashMap::new(),
        });
        Arc::new(Self { most, taken })
    }

    /// Returns a permit for a connection of a peer, unless a limit is reached.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Option<Seat> {
        let group = Group::of(peer);
        let mut taken = self.lock();
        if !taken.has_room(group, self.most) {
            return None;
        }
        taken.all.increment(1);
        *taken.by_group.entry(group).or_default() += 1;
        drop(taken);
        let seats = Arc::clone(self);
        Some(Seat { seats, group })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        let left = taken.of(self.group).saturating_sub(1);
        match left {
            0 => taken.by_group.remove(&self.group),
            _ => taken.by_group.insert(self.group, left),
        };
        let all = taken.all.value();
        taken.all.set(all.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::counters::{Counters, Kind};

    fn seats(most: u64) -> Arc<Seats> {
        let all = Counters::default().add_of("", "connections", Kind::Gauge, "");
        Seats::new(most, all)
    }

    /// Takes a seat for each of these addresses, until one gets none.
    fn fill<'a>(seats: &Arc<Seats>, from: impl IntoIterator<Item = &'a str>) -> Vec<Seat> {
        let taken = from.into_iter().map_while(|address| {
            let peer = format!("{address}:9").parse().unwrap();
            seats.take(Peer::Tcp(peer))
        });
        taken.collect()
    }

    fn again(address: &str) -> impl Iterator<Item = &str> {
        std::iter::repeat(address)
    }

    #[test]
    fn a_full_port_leaves_the_owner_a_way_in() {
        let seats = seats(64);
        let strangers = fill(&seats, again("127.0.0.1"));
        assert_eq!(strangers.len(), 64);
        let own = || seats.take(Peer::Owner);
        let owner: Vec<_> = std::iter::from_fn(own).collect();
        assert_eq!(owner.len() as u64, OF_OWNER);
        // And the owner's connections take no room of the port.
        drop(strangers);
        assert_eq!(fill(&seats, again("127.0.0.1")).len(), 64);
    }

    #[test]
    fn one_network_has_half_of_the_port_or_room_for_a_page() {
        let seats = seats(64);
        let one = fill(&seats, again("10.0.0.1"));
        assert_eq!(one.len(), 32);
        // A connection of IPv4 at a socket of IPv6 is of its network.
        assert!(fill(&seats, ["[::ffff:10.0.0.1]"]).is_empty());
        for this_machine in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
            assert_eq!(fill(&seats, again(this_machine)).len(), 32);
        }
        drop(one);
        let subnet = ["[2001:db8::1]", "[2001:db8::2]"];
        assert_eq!(fill(&seats, subnet.into_iter().cycle()).len(), 32);
        assert!(seats.lock().by_group.is_empty());
        assert_eq!(fill(&self::seats(8), again("10.0.0.1")).len(), 6);
    }

    #[test]
    fn the_smallest_port_has_room_for_one() {
        let seats = seats(1);
        let one = fill(&seats, again("10.0.0.1"));
        assert_eq!(one.len(), 1);
        assert!(fill(&seats, ["10.0.0.2"]).is_empty());
    }
}
