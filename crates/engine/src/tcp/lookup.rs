//! The addresses of hosts by name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

/// A host to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedHost {
    /// Its name, or its address.
    pub name: String,
    /// The port.
    pub port: u16,
    /// The addresses that it had when it was last looked up.
    pub addresses: Vec<SocketAddr>,
}

impl NamedHost {
    /// Returns whether the name is an address, which needs no lookup.
    #[must_use]
    pub fn is_address(&self) -> bool {
        self.name.parse::<IpAddr>().is_ok()
    }

    /// Replaces its addresses. Those that it had keep their order: a nameserver may turn it with
    /// each answer, and each attempt in turn could then meet the same address.
    fn adopt(&mut self, mut found: Vec<SocketAddr>) {
        let place = |address: &SocketAddr| {
            let mut known = self.addresses.iter();
            known.position(|known| known == address)
        };
        found.sort_by_key(|address| place(address).unwrap_or(usize::MAX));
        self.addresses = found;
    }
}

type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The outcome for each host.
type Found = Vec<io::Result<Vec<SocketAddr>>>;

/// Looks hosts up by name, each time in a thread of its own, as the system may take seconds. At
/// most one lookup is under way.
pub struct Lookup {
    hosts: Vec<NamedHost>,
    resolve: Arc<Resolve>,
    under_way: Option<Receiver<Found>>,
    trouble: Option<String>,
}

impl Lookup {
    /// Looks these hosts up as the system is configured to (`/etc/hosts`, DNS).
    #[must_use]
    pub fn new(hosts: Vec<NamedHost>) -> Self {
        Self::by(hosts, |name, port| {
            Ok((name, port).to_socket_addrs()?.collect())
        })
    }

    /// Looks these hosts up by a function, which may wait.
    pub fn by(
        hosts: Vec<NamedHost>,
        resolve: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            hosts,
            resolve: Arc::new(resolve),
            under_way: None,
            trouble: None,
        }
    }

    /// Begins a lookup, unless one is under way. The outcome of one that came too late for its
    /// attempt may be old, and is discarded.
    pub(super) fn begin(&mut self) {
        if !self.poll() {
            return;
        }
        self.trouble = None;
        let (sender, receiver) = sync_channel(1);
        let (hosts, resolve) = (self.hosts.clone(), Arc::clone(&self.resolve));
        let find = move || {
            let found = hosts.iter().map(|host| resolve(&host.name, host.port));
            // The receiver is gone if its session is.
            drop(sender.send(found.collect()));
        };
        let thread = thread::Builder::new().name("fanfare-lookup".to_owned());
        match thread.spawn(find) {
            Ok(_) => self.under_way = Some(receiver),
            Err(error) => self.trouble = Some(format!("no thread for a lookup: {error}")),
        }
    }

    /// Takes the outcome of a lookup. Returns whether none is under way any more. A host that is
    /// not found keeps its addresses.
    pub(super) fn poll(&mut self) -> bool {
        let Some(receiver) = &self.under_way else {
            return true;
        };
        let found = match receiver.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Empty) => return false,
            // The function has panicked.
            Err(TryRecvError::Disconnected) => Vec::new(),
        };
        self.under_way = None;
        for (host, found) in self.hosts.iter_mut().zip(found) {
            match found {
                Ok(addresses) if addresses.is_empty() => {}
                Ok(addresses) => host.adopt(addresses),
                Err(error) => self.trouble = Some(format!("{}: {error}", host.name)),
            }
        }
        true
    }

    /// Returns the addresses of all hosts, in order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let addresses = self.hosts.iter().flat_map(|host| &host.addresses);
        addresses.copied()
    }

    /// Returns the address of an attempt without addresses: an unspecified one, with the port of
    /// the first host.
    pub(super) fn nowhere(&self) -> SocketAddr {
        let port = self.hosts.first().map_or(0, |host| host.port);
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
    }

    /// Returns the name of the first host that has this address.
    pub(super) fn name_of(&self, address: SocketAddr) -> Option<&str> {
        let mut hosts = self.hosts.iter();
        let host = hosts.find(|host| host.addresses.contains(&address))?;
        Some(&host.name)
    }

    /// Returns why the last lookup did not find a host, once.
    pub(super) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 9880))
    }

    /// Returns a lookup of a host whose addresses are these, one list for each lookup.
    fn answering(mut answers: Vec<Vec<SocketAddr>>) -> Lookup {
        answers.reverse();
        let answers = Mutex::new(answers);
        let host = NamedHost {
            name: "exchange.test".to_owned(),
            port: 9880,
            addresses: Vec::new(),
        };
        Lookup::by(vec![host], move |_, _| {
            Ok(answers.lock().unwrap().pop().unwrap_or_default())
        })
    }

    /// Looks the host up. Returns its addresses.
    fn looked_up(lookup: &mut Lookup) -> Vec<SocketAddr> {
        lookup.begin();
        while !lookup.poll() {
            thread::yield_now();
        }
        lookup.addresses().collect()
    }

    #[test]
    fn known_addresses_keep_their_order_whatever_that_of_the_answer_is() {
        let [one, two, three] = [1, 2, 3].map(address);
        let answers = vec![
            vec![one, two],
            vec![two, one],
            vec![three, two, one],
            vec![three, two],
        ];
        let mut lookup = answering(answers);
        assert_eq!(looked_up(&mut lookup), [one, two]);
        assert_eq!(looked_up(&mut lookup), [one, two]);
        assert_eq!(looked_up(&mut lookup), [one, two, three]);
        assert_eq!(looked_up(&mut lookup), [two, three]);
    }

    #[test]
    fn an_outcome_that_came_too_late_is_not_that_of_the_next_lookup() {
        let [old, new] = [1, 2].map(address);
        let mut lookup = answering(vec![vec![old], vec![new]]);
        lookup.begin();
        // The thread holds the function until it has the outcome.
        while Arc::strong_count(&lookup.resolve) > 1 {
            thread::yield_now();
        }
        assert_eq!(looked_up(&mut lookup), [new]);
    }
}
