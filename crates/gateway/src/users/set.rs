//! The users of a gateway, checked as a whole.

use super::dbn_key::DbnKey;
use super::dbn_seat::DbnSeat;
use super::error::{Fault, Quoted, UsersError};
use super::grant::{Grant, MOST_REQUESTS_PER_SECOND, MOST_SUBSCRIPTIONS};
use super::names::{Instruments, Names};
use super::origin::Origin;
use super::password::Hashed;
use super::roster::Seat;
use super::tables::{Lists, PortName, UserTable, UserTables, UsersFile};
use crate::ports::config::{COMP_IDS, Pair, PortConfig};
use crate::service::{Contract, EntryTypes, Pattern};
use fanfare_engine::host::{AllowList, ClientName, ClientNames};
use fanfare_fix::session::SessionId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;

/// The limits of a configuration.
const MOST_USERS: usize = 100_000;
const MOST_SESSIONS: usize = 1_000_000;
const MOST_NAMES: usize = 4_000_000;
/// The longest names, in bytes.
const LONGEST_NAME: usize = 64;
const LONGEST_SYMBOL: usize = 64;

/// A user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct User {
    pub(crate) name: Arc<str>,
    ports: [bool; 2],
    pub(crate) sessions: Vec<Pair>,
    pub(crate) password: Option<Hashed>,
    /// The certificates that admit it, or `None` for those of the port.
    pub(crate) certificates: Option<ClientNames>,
    pub(crate) allow: AllowList,
    pub(crate) sessions_at_a_time: usize,
    /// The file with the key for DBN.
    dbn_key_file: Option<PathBuf>,
    pub(crate) grant: Arc<Grant>,
}

impl User {
    /// Returns whether the user's sessions may log on to a port.
    pub(crate) const fn may_use(&self, port: PortName) -> bool {
        self.ports[port as usize]
    }
}

/// The source of the users.
pub(crate) struct Source<'a> {
    pub(crate) users: &'a UserTables,
    pub(crate) lists: &'a Lists,
    /// A file with further users and lists.
    pub(crate) file: Option<&'a Path>,
    /// The ports in the order of [`PortName::ALL`].
    pub(crate) ports: [&'a PortConfig; 2],
}

impl Source<'_> {
    /// Returns whether only users may log on to a port that is not open.
    pub(crate) const fn has_users(&self) -> bool {
        !self.users.is_empty() || self.file.is_some()
    }
}

/// All users and named lists.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct UserSet {
    users: Vec<Arc<User>>,
    /// The users by the counterparty's CompID, then the gateway's.
    by_comp_id: HashMap<String, Vec<(String, Arc<User>)>>,
    lists: BTreeMap<String, Arc<Names>>,
    /// Whether sessions without a user may log on to a port.
    strangers: [bool; 2],
    /// Whether there are any users, so that every client must be one of them.
    has_users: bool,
    /// The keys for DBN, in the order of the users.
    keys: Vec<(DbnKey, Arc<User>)>,
}

impl UserSet {
    /// Reads the file of the users, if there is one, and checks everything.
    ///
    /// # Errors
    /// Returns the first fault.
    pub(crate) fn load(source: &Source<'_>) -> Result<Self, UsersError> {
        let file = source.file.map(UsersFile::read).transpose()?;
        let mut users = Self::of(source, file.as_ref())?;
        users.read_keys()?;
        Ok(users)
    }

    /// Reads the files with the users' keys.
    fn read_keys(&mut self) -> Result<(), UsersError> {
        let mut owners = HashMap::new();
        for user in &self.users {
            let Some(file) = &user.dbn_key_file else {
                continue;
            };
            let fault = |why: String| {
                let (name, file) = (Quoted(&user.name), file.display());
                let why = format!("user {name}: `dbn_key_file`: {file} {why}");
                Fault::new(None, why).error(&Origin::default())
            };
            let key = DbnKey::read(file).map_err(fault)?;
            if let Some(other) = owners.insert(key.clone(), user) {
                let other = Quoted(&other.name);
                return Err(fault(format!("has the same key as user {other}")));
            }
            self.keys.push((key, Arc::clone(user)));
        }
        Ok(())
    }

    /// Returns the user whose key yields this response to a challenge, and the key.
    pub(crate) fn of_answer(&self, challenge: &str, answer: &[u8]) -> Option<(DbnKey, Arc<User>)> {
        let mut keys = self.keys.iter();
        keys.find(|(key, _)| key.answers(challenge, answer))
            .cloned()
    }

    /// Returns the current user with this name and key, if it may still connect from this address.
    pub(crate) fn of_key(&self, key: &DbnKey, name: &str, address: IpAddr) -> Option<&Arc<User>> {
        let (_, user) = self.keys.iter().find(|(own, _)| own == key)?;
        (&*user.name == name && user.allow.allows(address)).then_some(user)
    }

    /// Returns whether a connected session of DBN is still permitted, at a port that takes clients
    /// without a user or does not.
    pub(crate) fn admits_dbn(&self, seat: &DbnSeat, takes_strangers: bool) -> bool {
        let logon = &seat.logon;
        match &logon.key {
            Some(key) => self.of_key(key, &logon.user, logon.peer.ip()).is_some(),
            None => takes_strangers,
        }
    }

    /// Returns whether there is no user, although there may be a file for them.
    pub(crate) const fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns whether there are users, in which case other clients receive no market data unless a
    /// port is open.
    pub(crate) const fn has_users(&self) -> bool {
        self.has_users
    }

    /// Checks the tables as `load` does, without the file.
    pub(crate) fn check_tables(source: &Source<'_>) -> Result<(), UsersError> {
        // The lists may be in the file.
        match source.file {
            None => Self::of(source, None).map(drop),
            Some(_) => Ok(()),
        }
    }

    fn of(source: &Source<'_>, file: Option<&UsersFile>) -> Result<Self, UsersError> {
        let mut builder = Builder::new(source);
        builder.lists(source.lists)?;
        if let Some(file) = file {
            builder.lists(&file.lists)?;
            builder.users(&file.user)?;
        }
        builder.users(source.users)?;
        Ok(builder.set)
    }

    /// Returns the user of a session at one port.
    pub(crate) fn find(&self, id: &SessionId, port: PortName) -> Option<&Arc<User>> {
        let of_target = self.by_comp_id.get(&*id.target)?;
        let mut own = of_target.iter().filter(|(our, _)| *our == *id.sender);
        let user = own.next().map(|(_, user)| user);
        user.filter(|user| user.may_use(port))
    }

    /// Returns whether the CompIDs belong to a user, at either port.
    pub(crate) fn knows(&self, id: &SessionId) -> bool {
        PortName::ALL
            .iter()
            .any(|&port| self.find(id, port).is_some())
    }

    /// Returns whether sessions without a user may log on to a port.
    pub(crate) const fn takes_strangers(&self, port: PortName) -> bool {
        self.strangers[port as usize]
    }

    /// Returns the entitlements of a session, or `None` if it is not permitted.
    pub(crate) fn grant(&self, id: &SessionId, port: PortName) -> Option<Arc<Grant>> {
        match self.find(id, port) {
            Some(user) => Some(Arc::clone(&user.grant)),
            None if self.takes_strangers(port) && !self.knows(id) => {
                Some(Arc::new(Grant::everything()))
            }
            None => None,
        }
    }

    /// Returns whether a connected session is still permitted.
    pub(crate) fn admits(&self, seat: &Seat) -> bool {
        match self.find(&seat.id, seat.port) {
            Some(user) => user.name == seat.user && user.allow.allows(seat.peer.ip()),
            None => {
                let is_strangers = seat.user.is_empty() && self.takes_strangers(seat.port);
                is_strangers && !self.knows(&seat.id)
            }
        }
    }

    /// Returns a named list.
    pub(crate) fn list(&self, name: &[u8]) -> Option<&Arc<Names>> {
        self.lists.get(std::str::from_utf8(name).ok()?)
    }

    /// Returns all named lists.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&str, &Arc<Names>)> {
        self.lists
            .iter()
            .map(|(name, names)| (name.as_str(), names))
    }

    /// Returns all users, in the order of the configuration.
    pub(crate) fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.iter()
    }

    /// Returns all users with their keys for DBN, in the order of the configuration.
    pub(crate) fn with_keys(&self) -> impl Iterator<Item = (&User, Option<&DbnKey>)> {
        let mut keys = self.keys.iter().peekable();
        self.users.iter().map(move |user| {
            let own = keys.next_if(|(_, owner)| Arc::ptr_eq(owner, user));
            (&**user, own.map(|(key, _)| key))
        })
    }
}

struct Builder {
    set: UserSet,
    sessions: usize,
    names: usize,
    seen: HashSet<Arc<str>>,
    /// Whether each port asks clients for certificates.
    ask_certificates: [bool; 2],
}

type Built<T> = Result<T, Fault>;

impl Builder {
    fn new(source: &Source<'_>) -> Self {
        let (ports, has_users) = (source.ports, source.has_users());
        Self {
            set: UserSet {
                strangers: ports.map(|port| port.takes_strangers(has_users)),
                has_users,
                ..UserSet::default()
            },
            sessions: 0,
            names: 0,
            seen: HashSet::new(),
            ask_certificates: ports
                .map(|port| port.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())),
        }
    }

    fn lists(&mut self, lists: &Lists) -> Result<(), UsersError> {
        let mut all = lists.names.iter();
        all.try_for_each(|(name, names)| self.list(name, names))
            .map_err(|fault| fault.error(&lists.origin))
    }

    fn list(&mut self, name: &str, names: &[Spanned<String>]) -> Built<()> {
        let at = names.first().map(|name| name.span().start);
        let of = format!("list {}", Quoted(name));
        let fault = |why: &str| Fault::new(at, format!("{of}: {why}"));
        if name.is_empty() || name.len() > LONGEST_NAME || has_odd(name) {
            return Err(fault(
                "the name of a list must have 1 to 64 printable characters",
            ));
        }
        let names = Arc::new(self.names(&of, names)?);
        if self.set.lists.insert(name.to_owned(), names).is_some() {
            return Err(fault("another list has this name"));
        }
        Ok(())
    }

    /// Parses the symbols and prefixes of `of`, by which errors name it.
    fn names<'a>(
        &mut self,
        of: &str,
        texts: impl IntoIterator<Item = &'a Spanned<String>>,
    ) -> Built<Names> {
        let patterns = texts.into_iter().map(|text| {
            self.names += 1;
            if self.names > MOST_NAMES {
                let why = format!("{of}: all lists together have more than {MOST_NAMES} names");
                return Err(Fault::new(text.span().start, why));
            }
            pattern(of, text)
        });
        patterns.collect()
    }

    fn users(&mut self, users: &UserTables) -> Result<(), UsersError> {
        let mut tables = users.tables.iter();
        tables
            .try_for_each(|table| self.table(table))
            .map_err(|fault| fault.error(&users.origin))
    }

    fn table(&mut self, table: &UserTable) -> Built<()> {
        let user = Arc::new(self.user(table)?);
        for session in &table.sessions {
            self.session(session, &user)?;
        }
        self.set.users.push(user);
        Ok(())
    }

    fn session(&mut self, session: &Spanned<Pair>, user: &Arc<User>) -> Built<()> {
        let pair = session.get_ref();
        let fault = |why: String| {
            let (sender, target) = (Quoted(&pair.sender), Quoted(&pair.target));
            let name = Quoted(&user.name);
            let why = format!("user {name}: session {sender}->{target}: {why}");
            Err(Fault::new(session.span().start, why))
        };
        self.sessions += 1;
        if self.sessions > MOST_SESSIONS {
            return fault(format!(
                "all users together have more than {MOST_SESSIONS} sessions"
            ));
        }
        if !pair.is_possible() {
            return fault(COMP_IDS.to_owned());
        }
        let of_sender = self.set.by_comp_id.entry(pair.sender.clone()).or_default();
        if let Some((_, other)) = of_sender.iter().find(|(our, _)| *our == pair.target) {
            return fault(format!("belongs to user {}", Quoted(&other.name)));
        }
        of_sender.push((pair.target.clone(), Arc::clone(user)));
        Ok(())
    }

    fn user(&mut self, table: &UserTable) -> Built<User> {
        let own_name = self.name(table)?;
        let (name, at) = (Quoted(&own_name), table.name.span().start);
        let ports = ports(table, name)?;
        let fault = |why: &str| Err(Fault::new(at, format!("user {name}: {why}")));
        let dbn_key_file = table.dbn_key_file.as_ref();
        if table.sessions.is_empty() && dbn_key_file.is_none() {
            return fault("needs one or more `sessions`, or `dbn_key_file`");
        }
        if let Some(password) = &table.password {
            let why = |why| {
                Fault::new(
                    password.span().start,
                    format!("user {name}: `password`: {why}"),
                )
            };
            password.get_ref().check().map_err(why)?;
        }
        let certificates = self.certificates(table, name, ports)?;
        let allow = networks(table, name)?;
        let has_proof = table.password.is_some() || certificates.is_some() || !allow.0.is_empty();
        if !table.sessions.is_empty() && !has_proof {
            return fault(
                "must have `password`, `certificates` or `allow`: CompIDs are not secret",
            );
        }
        let at_a_time = &table.sessions_at_a_time;
        Ok(User {
            ports,
            sessions: table
                .sessions
                .iter()
                .map(|own| own.get_ref().clone())
                .collect(),
            password: table.password.as_ref().map(|own| own.get_ref().clone()),
            certificates,
            allow,
            sessions_at_a_time: within(name, "sessions_at_a_time", at_a_time, 100_000)?
                .unwrap_or(usize::MAX),
            dbn_key_file: dbn_key_file.map(|own| own.get_ref().clone()),
            grant: Arc::new(self.grant(table, name, ports)?),
            name: own_name,
        })
    }

    fn name(&mut self, table: &UserTable) -> Built<Arc<str>> {
        let name: Arc<str> = table.name.get_ref().as_str().into();
        let fault = |why: &str| {
            let why = format!("user {}: {why}", Quoted(table.name.get_ref()));
            Err(Fault::new(table.name.span().start, why))
        };
        if name.is_empty() || name.len() > LONGEST_NAME || has_odd(&name) {
            return fault("the name must have 1 to 64 printable characters");
        }
        if !self.seen.insert(Arc::clone(&name)) {
            return fault("another user has this name");
        }
        if self.seen.len() > MOST_USERS {
            return fault("the configuration has more than 100000 users");
        }
        Ok(name)
    }

    fn certificates(
        &self,
        table: &UserTable,
        name: Quoted<'_>,
        ports: [bool; 2],
    ) -> Built<Option<ClientNames>> {
        let Some(texts) = &table.certificates else {
            return Ok(None);
        };
        let mut names = Vec::new();
        for text in texts {
            let fault = |why: &str| {
                let why = format!("user {name}: `certificates`: {why}");
                Fault::new(text.span().start, why)
            };
            let asked = ports.into_iter().zip(self.ask_certificates);
            if asked.into_iter().any(|(uses, asks)| uses && !asks) {
                return Err(fault("the port has no `tls` with `client_ca`"));
            }
            let parsed = text.get_ref().parse::<ClientName>();
            names.push(parsed.map_err(|error| fault(&error.to_string()))?);
        }
        Ok((!names.is_empty()).then_some(ClientNames::Listed(names)))
    }

    fn grant(&mut self, table: &UserTable, name: Quoted<'_>, ports: [bool; 2]) -> Built<Grant> {
        let everything = Grant::everything();
        let contracts = table.contracts.clone().unwrap_or(everything.contracts);
        let contract = contract(table, name, &contracts)?;
        let requests = &table.requests_per_second;
        Ok(Grant {
            user: name.0.into(),
            instruments: self.instruments(table, name, ports)?,
            entries: entries(table, name)?,
            depth: table.depth.unwrap_or(0),
            contracts,
            contract,
            subscriptions: within(
                name,
                "subscriptions",
                &table.subscriptions,
                MOST_SUBSCRIPTIONS,
            )?
            .unwrap_or(MOST_SUBSCRIPTIONS),
            requests_per_second: within(name, "requests_per_second", requests, 1_000_000)?
                .unwrap_or(MOST_REQUESTS_PER_SECOND),
        })
    }

    fn instruments(
        &mut self,
        table: &UserTable,
        name: Quoted<'_>,
        ports: [bool; 2],
    ) -> Built<Instruments> {
        let Some(texts) = &table.instruments else {
            if !ports[PortName::Consumers as usize] {
                return Ok(Instruments::default());
            }
            let why = format!("user {name}: `instruments` is missing; [\"*\"] permits all");
            return Err(Fault::new(table.name.span().start, why));
        };
        let (lists, own): (Vec<_>, Vec<_>) = texts
            .iter()
            .partition(|text| text.get_ref().starts_with('@'));
        let mut sets = Vec::with_capacity(lists.len() + 1);
        for list in lists {
            let found = list.get_ref().strip_prefix('@');
            let Some(names) = found.and_then(|name| self.set.lists.get(name)) else {
                let list_name = Quoted(list.get_ref());
                let why = format!("user {name}: `instruments`: `lists` has no list {list_name}");
                return Err(Fault::new(list.span().start, why));
            };
            sets.push(Arc::clone(names));
        }
        if !own.is_empty() {
            let own = self.names(&format!("user {name}: `instruments`"), own)?;
            sets.push(Arc::new(own));
        }
        Ok(Instruments::of(sets))
    }
}

/// Returns whether a text has characters that no name should have.
fn has_odd(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn pattern(of: &str, text: &Spanned<String>) -> Built<Pattern> {
    let name = text.get_ref();
    let fault = |why: &str| {
        let why = format!("{of}: {}: {why}", Quoted(name));
        Err(Fault::new(text.span().start, why))
    };
    if name.is_empty() || name.len() > LONGEST_SYMBOL || has_odd(name) {
        return fault("the symbol must have 1 to 64 printable characters");
    }
    if name.starts_with('@') {
        return fault("a list cannot contain another list");
    }
    if name.strip_suffix('*').unwrap_or(name).contains('*') {
        return fault("`*` can only be the last character");
    }
    Ok(Pattern::parse(name.as_bytes()))
}

fn ports(table: &UserTable, name: Quoted<'_>) -> Built<[bool; 2]> {
    let Some(names) = &table.ports else {
        return Ok(PortName::ALL.map(|port| port == PortName::Consumers));
    };
    if names.get_ref().is_empty() {
        let why = format!("user {name}: `ports`: must have at least one port");
        return Err(Fault::new(names.span().start, why));
    }
    Ok(PortName::ALL.map(|port| names.get_ref().contains(&port)))
}

fn networks(table: &UserTable, name: Quoted<'_>) -> Built<AllowList> {
    let networks = table.allow.iter().flatten().map(|text| {
        let parsed = text.get_ref().parse();
        parsed.map_err(|error| {
            let why = match Quoted(text.get_ref()).is_shown() {
                true => format!("user {name}: `allow`: {error}"),
                false => format!("user {name}: `allow`: must be an address or a network"),
            };
            Fault::new(text.span().start, why)
        })
    });
    networks.collect::<Built<Vec<_>>>().map(AllowList)
}

fn entries(table: &UserTable, name: Quoted<'_>) -> Built<EntryTypes> {
    let Some(texts) = &table.entries else {
        return Ok(EntryTypes::ALL);
    };
    let types = texts.iter().map(|text| match text.get_ref().as_bytes() {
        &[entry] if entry.is_ascii_alphanumeric() => Ok(entry),
        _ => {
            let why = format!(
                "user {name}: `entries`: {} must be an MDEntryType(269), one digit or letter",
                Quoted(text.get_ref())
            );
            Err(Fault::new(text.span().start, why))
        }
    });
    types.collect()
}

/// Returns the contract of requests that name none: `contract`, or the first of `contracts`.
fn contract(table: &UserTable, name: Quoted<'_>, contracts: &[Contract]) -> Built<Contract> {
    let fault = |at: usize, why: &str| Err(Fault::new(at, format!("user {name}: {why}")));
    let Some(&first) = contracts.first() else {
        return fault(
            table.name.span().start,
            "`contracts` must have at least one contract",
        );
    };
    match &table.contract {
        None => Ok(first),
        Some(own) if contracts.contains(own.get_ref()) => Ok(*own.get_ref()),
        Some(own) => fault(own.span().start, "`contract` must be one of `contracts`"),
    }
}

/// Returns a number from 1 to `most`, if the table has it.
fn within<T>(name: Quoted<'_>, key: &str, value: &Option<Spanned<T>>, most: T) -> Built<Option<T>>
where
    T: Copy + PartialOrd + std::fmt::Display + From<u8>,
{
    let Some(value) = value else {
        return Ok(None);
    };
    let (own, at) = (*value.get_ref(), value.span().start);
    match own >= T::from(1) && own <= most {
        true => Ok(Some(own)),
        false => {
            let why = format!("user {name}: `{key}` = {own}: must be between 1 and {most}");
            Err(Fault::new(at, why))
        }
    }
}
