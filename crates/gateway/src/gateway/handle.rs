//! The operators' handle of a running gateway.

use crate::config::Config;
use crate::feed::FeedError;
use crate::gateway::descriptors::spare;
use crate::gateway::reloaded::Reloaded;
use crate::gateway::start_error::StartError;
use crate::history::Rolling;
use crate::market::mappings::{Mappings, NewMapping};
use crate::notice::audit::Audit;
use crate::ports::config::PortConfig;
use crate::ports::handle::PortHandle;
use crate::stages::Stages;
use crate::users::dbn_seat::{DbnEnd, DbnSeat};
use crate::users::roster::{Roster, Seat};
use crate::users::{PortName, UserBook, UserSet, UsersError};
use crate::watch::Watch;
use fanfare_engine::counters::{Counters, Windowed};
use fanfare_engine::host::{HostHandle, Permits};
use fanfare_engine::stop::Reload;
use fanfare_engine::tls::TlsServer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A handle of a running gateway, for any thread, which lists and ends sessions and changes the
/// configuration. Clones refer to the same gateway.
#[derive(Clone)]
pub struct GatewayHandle(Arc<Shared>);

pub(crate) struct Shared {
    /// The configuration at the start, and the one in force.
    pub(crate) started: Config,
    pub(crate) config: Mutex<Config>,
    /// The producers' port, and the consumers'.
    pub(crate) ports: [PortHandle; 2],
    /// The permits of their connections.
    pub(crate) permits: Permits,
    /// The address of the port of DBN, if there is one, and how many clients it accepts at a time.
    pub(crate) dbn: Option<(SocketAddr, usize)>,
    pub(crate) users: UserBook,
    pub(crate) mappings: Mappings,
    pub(crate) roster: Roster,
    pub(crate) audit: Audit,
    pub(crate) counters: Counters,
    pub(crate) stages: Stages,
    pub(crate) watch: Watch,
    pub(crate) reload_logs: Reload,
    pub(crate) rolling: Rolling,
    pub(crate) begun: Instant,
}

/// A configuration that is valid, with the files that it names.
struct Planned {
    wanted: Config,
    users: UserSet,
    certificates: [Option<TlsServer>; 2],
    mappings: Vec<NewMapping>,
    reloaded: Reloaded,
}

/// The time that sessions have to end before they are disconnected.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time that logs have to end their segments.
const ROLLING: Duration = Duration::from_secs(10);
/// The interval at which their end is polled.
const LOOK: Duration = Duration::from_millis(2);
/// The capacity for the requests of one handle, in bytes.
const REQUESTS: usize = 4 << 10;
/// Text(58) of the Logout of a session that is no longer permitted.
const REVOKED: &str = "no longer permitted";

impl GatewayHandle {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Returns the configuration in force.
    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.0.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the latencies from stage to stage in the last 10 s, in the last minute and in total.
    /// Empty if stages are not measured. The first call starts the thread that takes a reading each
    /// second, so earlier messages count in `all` and in the first reading.
    #[must_use]
    pub fn stages(&self) -> Vec<Windowed> {
        self.0.stages.read()
    }

    /// Reopens the message logs and the audit file.
    pub fn reopen_logs(&self) {
        self.0.reload_logs.request();
    }

    /// Adopts a new configuration: see [`Gateway::reload`](crate::Gateway::reload).
    ///
    /// # Errors
    /// Returns the errors of [`Gateway::reload`](crate::Gateway::reload).
    pub fn reload(&self, config: &Config) -> Result<Reloaded, StartError> {
        self.reload_with(config, &[])
    }

    /// Adopts a new configuration as [`reload`](Self::reload) does, and adds `keys` to the changes:
    /// keys of the program whose files have other contents.
    ///
    /// # Errors
    /// Returns the errors of [`Gateway::reload`](crate::Gateway::reload).
    pub fn reload_with(
        &self,
        config: &Config,
        keys: &[&'static str],
    ) -> Result<Reloaded, StartError> {
        let mut reloaded = self.exchange(config);
        if let Ok(reloaded) = &mut reloaded {
            reloaded.add_keys(keys.to_vec());
        }
        self.recorded(reloaded)
    }

    /// Adopts the users and lists of a configuration, and nothing else: mappings and certificates
    /// are not read again, and the sessions that operators have listed stay.
    ///
    /// # Errors
    /// Returns an error if the users or the lists cannot be used. Nothing is changed then.
    pub fn reload_users(&self, config: &Config) -> Result<Reloaded, StartError> {
        self.recorded(self.exchange_users(config))
    }

    /// Records the outcome of a reload in the audit file.
    fn recorded(&self, reloaded: Result<Reloaded, StartError>) -> Result<Reloaded, StartError> {
        match &reloaded {
            Ok(reloaded) => self.0.audit.reloaded(reloaded),
            Err(error) => self.reload_failed(error),
        }
        reloaded
    }

    /// Returns what a [reload](Self::reload) would change, without changing anything.
    ///
    /// # Errors
    /// Returns the errors of the reload.
    pub fn differences(&self, config: &Config) -> Result<Reloaded, StartError> {
        Ok(self.planned(&self.config(), config)?.reloaded)
    }

    /// Ends the segments of the logs. Returns the number of logs, or `None` if one of them could
    /// not be written within ten seconds. Its segment ends once the log can be written.
    pub(crate) fn roll(&self) -> Option<usize> {
        let wish = self.0.rolling.ask();
        let until = Instant::now() + ROLLING;
        loop {
            match self.0.rolling.have_followed(wish) {
                (logs, true) => return Some(logs),
                _ if Instant::now() >= until => return None,
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Records in the audit file that a configuration was refused.
    pub fn reload_failed(&self, why: &dyn std::error::Error) {
        let mut text = format!("refused: {why}");
        let mut source = why.source();
        while let Some(inner) = source {
            text += &format!(": {inner}");
            source = inner.source();
        }
        self.0.audit.reloaded(&text);
    }

    /// Reads every file that a configuration names, without changing anything.
    fn planned(&self, in_force: &Config, config: &Config) -> Result<Planned, StartError> {
        config.check()?;
        let wanted = in_force.with_changes_of(config);
        wanted.check_with_changes_of(config)?;
        let users = self.users_of(&wanted)?;
        let certificates = self.certificates_of(&wanted, config)?;
        let mappings = self.0.mappings.read(&wanted.feeds);
        let mappings = mappings.map_err(FeedError::from)?;
        let mut reloaded = Reloaded::between(in_force, &wanted, &self.0.users.read(), &users);
        reloaded.add_keys(self.with_listed(in_force).keys_changed(&wanted));
        reloaded.fixed = self.0.started.fixed_keys_changed(config);
        reloaded.mappings = mappings.iter().map(NewMapping::channel).collect();
        Ok(Planned {
            wanted,
            users,
            certificates,
            mappings,
            reloaded,
        })
    }

    /// Reads the certificates of both ports. Those of a port for which `config` names other files
    /// stay in force until a new start, and their own files may be gone by now.
    fn certificates_of(
        &self,
        wanted: &Config,
        config: &Config,
    ) -> Result<[Option<TlsServer>; 2], StartError> {
        let [producers, consumers] = &self.0.ports;
        let read = |name, port: &PortHandle, own: &PortConfig, other: &PortConfig| {
            if !own.has_certificates_of(other) {
                return Ok(port.rules.read().tls.clone());
            }
            let server = own.tls_server();
            server.map_err(|error| StartError::Tls(name, error))
        };
        Ok([
            read("producers", producers, &wanted.producers, &config.producers)?,
            read("consumers", consumers, &wanted.consumers, &config.consumers)?,
        ])
    }

    /// Reads the users of a configuration. A file of users that leaves none is refused: it is more
    /// likely to be half written than meant, and would end all their sessions.
    fn users_of(&self, wanted: &Config) -> Result<UserSet, StartError> {
        let users = UserSet::load(&wanted.user_source())?;
        match &wanted.users_file {
            Some(file) if users.is_empty() && !self.0.users.read().is_empty() => {
                let why = "has no user: a reload does not remove all users";
                Err(UsersError::of_file(file, why).into())
            }
            _ => Ok(users),
        }
    }

    /// Returns the configuration in force with the sessions that operators have listed.
    fn with_listed(&self, in_force: &Config) -> Config {
        let mut config = in_force.clone();
        let sides = [&mut config.producers, &mut config.consumers];
        for (side, port) in sides.into_iter().zip(&self.0.ports) {
            side.sessions.clone_from(&port.rules.read().config.sessions);
        }
        config
    }

    fn exchange(&self, config: &Config) -> Result<Reloaded, StartError> {
        // Held until the reload is complete, so that reloads are sequential.
        let mut in_force = self.config();
        let Planned {
            wanted,
            users,
            certificates: [producers, consumers],
            mappings,
            mut reloaded,
        } = self.planned(&in_force, config)?;
        let sides = [
            (&wanted.producers, producers),
            (&wanted.consumers, consumers),
        ];
        self.0.permits.follow_limit(spare(&wanted));
        for (port, (side, tls)) in self.0.ports.iter().zip(sides) {
            port.rules.reload(&wanted, side, tls);
        }
        reloaded.mappings = self.0.mappings.exchange(mappings);
        reloaded.logged_out = self.adopt(users);
        *in_force = wanted;
        drop(in_force);
        Ok(reloaded)
    }

    fn exchange_users(&self, config: &Config) -> Result<Reloaded, StartError> {
        // Held until the reload is complete, so that reloads are sequential.
        let mut in_force = self.config();
        let wanted = in_force.with_users_of(config);
        wanted.check_with_changes_of(config)?;
        let users = self.users_of(&wanted)?;
        let mut reloaded = Reloaded::between(&in_force, &wanted, &self.0.users.read(), &users);
        reloaded.logged_out = self.adopt(users);
        *in_force = wanted;
        drop(in_force);
        Ok(reloaded)
    }

    /// Replaces the users, and logs out the sessions that are no longer permitted. Returns their
    /// number.
    fn adopt(&self, users: UserSet) -> usize {
        let dbn = self.0.started.dbn.as_ref();
        let is_open = dbn.is_some_and(|dbn| dbn.takes_strangers(users.has_users()));
        // Before the exchange, upon which their thread ends them.
        let mut of_dbn = self.dbn_sessions(|seat| !users.admits_dbn(seat, is_open));
        if *self.0.users.read() != users {
            self.0.users.replace(Arc::new(users));
        }
        let users = self.0.users.read();
        // Those that have authenticated between the two.
        let later = self.dbn_sessions(|seat| {
            let is_known = of_dbn
                .iter()
                .any(|own| own.logon.session == seat.logon.session);
            !is_known && !users.admits_dbn(seat, is_open)
        });
        of_dbn.extend(later);
        let seats = self.sessions(|seat| !users.admits(seat));
        self.await_ends(&seats, &of_dbn, Some(REVOKED));
        seats.len() + of_dbn.len()
    }

    /// Returns the sessions that `wanted` accepts.
    pub(crate) fn sessions(&self, wanted: impl Fn(&Seat) -> bool) -> Vec<Arc<Seat>> {
        self.0.roster.seats(wanted)
    }

    /// Returns the clients of DBN that `wanted` accepts.
    pub(crate) fn dbn_sessions(&self, wanted: impl Fn(&DbnSeat) -> bool) -> Vec<Arc<DbnSeat>> {
        self.0.roster.dbn_seats(wanted)
    }

    /// Ends sessions: with a Logout that has this Text(58), with an error record, or without
    /// either. Waits until they have ended, and disconnects those that have not in time. Returns
    /// the number of these, and of those that did not answer the Logout.
    pub(crate) fn end(
        &self,
        seats: &[Arc<Seat>],
        of_dbn: &[Arc<DbnSeat>],
        text: Option<&str>,
    ) -> usize {
        for seat in of_dbn {
            seat.end(match text {
                Some(text) => DbnEnd::LogOut(text.to_owned()),
                None => DbnEnd::Disconnect,
            });
        }
        self.await_ends(seats, of_dbn, text)
    }

    /// Ends sessions of FIX as [`end`](Self::end) does. Waits for them, and for clients of DBN that
    /// are ending.
    fn await_ends(
        &self,
        seats: &[Arc<Seat>],
        of_dbn: &[Arc<DbnSeat>],
        text: Option<&str>,
    ) -> usize {
        let until = Instant::now() + PATIENCE;
        let mut left: Vec<(&Arc<Seat>, bool)> = seats.iter().map(|seat| (seat, false)).collect();
        loop {
            left.retain(|(seat, _)| self.0.roster.has(seat));
            let is_there = |seat: &Arc<DbnSeat>| self.0.roster.has_dbn(seat);
            let is_over = left.is_empty() && !of_dbn.iter().any(is_there);
            if is_over || Instant::now() >= until {
                break;
            }
            // A session without a host is hosted soon.
            for (seat, is_asked) in left.iter_mut().filter(|(_, is_asked)| !is_asked) {
                *is_asked = self.ask_to_end(seat, text);
            }
            std::thread::sleep(LOOK);
        }
        let is_forced = |seat: &&Arc<Seat>| self.0.roster.has(seat) || seat.has_not_answered();
        let forced = seats.iter().filter(is_forced).count();
        for (seat, _) in &left {
            self.ask_to_end(seat, None);
        }
        let of_dbn = of_dbn.iter().filter(|seat| self.0.roster.has_dbn(seat));
        let of_dbn = of_dbn.inspect(|seat| seat.end(DbnEnd::Disconnect)).count();
        forced + of_dbn
    }

    /// Asks the host of a session to end it. Returns whether the session has a host.
    fn ask_to_end(&self, seat: &Arc<Seat>, text: Option<&str>) -> bool {
        let port = self.0.ports.get(seat.port as usize);
        port.is_some_and(|port| ask_to_end(&port.hosts, &self.0.roster, seat, text))
    }

    /// Returns the name and the handle of each port.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (PortName, &PortHandle)> {
        PortName::ALL.into_iter().zip(&self.0.ports)
    }
}

/// Asks the session of a place to end, but none that has logged on with its identity since. Returns
/// whether one of the hosts has it.
fn ask_to_end(hosts: &[HostHandle], roster: &Roster, seat: &Arc<Seat>, text: Option<&str>) -> bool {
    hosts.iter().any(|host| {
        let Ok(mut session) = host.session_with_ring(&seat.id, REQUESTS) else {
            return false;
        };
        // Another session takes its place only after this one, so the handle is of neither or this.
        if !roster.has(seat) {
            return false;
        }
        let asked = match text {
            Some(text) => session.log_out(text),
            None => session.disconnect(),
        };
        asked.is_ok()
    })
}

impl std::fmt::Debug for GatewayHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayHandle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::host::{Handler, Host, Initiator, Peer};
    use fanfare_fix::session::{self, AppMessage, SessionId, Version};
    use fanfare_wire::UtcTimestamp;

    struct Nobody;

    impl Handler for Nobody {
        fn on_message(&mut self, _: &mut Peer<'_>, _: &AppMessage<'_>) {}
    }

    #[test]
    fn a_session_that_logged_on_after_the_one_to_be_ended_stays() {
        let id = SessionId::new(Version::Fix44, "PLANT", "A");
        let mut host = Host::new(Nobody).unwrap();
        let initiator = Initiator::new(session::Config::new(id.clone()), Vec::new());
        host.initiate(initiator).unwrap();
        let (hosts, roster) = ([host.handle()], Roster::default());
        let take = || {
            let (peer, since) = ("127.0.0.1:1".parse().unwrap(), UtcTimestamp::from_nanos(0));
            let seat = Seat::new(PortName::Consumers, id.clone(), "desk".into(), peer, since);
            let seated = roster.take(seat, 1).ok().unwrap();
            (seated, roster.seat(PortName::Consumers, &id).unwrap())
        };
        let (seated, ended) = take();
        drop(seated);
        let (_seated, live) = take();
        let asked = |seat| ask_to_end(&hosts, &roster, seat, Some("no longer permitted"));
        assert!(!asked(&ended) && asked(&live));
    }
}
