//! The validation as a session's hook, which selects the dictionary of each message.

use std::sync::{Arc, OnceLock};

use super::dictionary::{Dictionary, Version};
use super::schema::{Item, Schema, SchemaError};
use super::validate::Switches;
use crate::codec::{Groups, Message};
use crate::session::{Context, Fault, Validator};
use crate::tag;

/// The dictionaries of one session.
///
/// Up to FIX.4.4 there is one dictionary. Over FIXT.1.1, session messages are checked by the
/// transport's dictionary alone. Application messages are checked by the dictionary of their
/// ApplVerID(1128), or else of the DefaultApplVerID(1137) of the Logon(A), under the transport's
/// header.
#[derive(Debug, Clone)]
pub struct DictionaryValidator {
    session: Arc<Dictionary>,
    /// The dictionaries of application messages, empty up to FIX.4.4.
    applications: Vec<Application>,
    /// The version of application messages that do not name one.
    default_version: Option<Version>,
    switches: Switches,
    /// Whether the session's messages are checked, or have their groups alone.
    checks: bool,
}

/// The dictionary of an application version, under the transport's header.
#[derive(Debug, Clone)]
struct Application {
    version: Version,
    dictionary: Arc<Dictionary>,
    is_built_in: bool,
    /// Whether messages are checked by it, or have its groups alone.
    checks: bool,
}

impl DictionaryValidator {
    /// Returns a validator for a session of FIX.4.0 to FIX.4.4, or for a transport without
    /// application messages.
    pub fn new(dictionary: Arc<Dictionary>, switches: Switches) -> Self {
        Self {
            session: dictionary,
            applications: Vec::new(),
            default_version: None,
            switches,
            checks: true,
        }
    }

    /// Returns the validator of a session that accepts every message. The repeating groups of its
    /// messages are those of the dictionaries.
    #[must_use]
    pub fn without_checks(self) -> Self {
        Self {
            checks: false,
            ..self
        }
    }

    /// Returns a validator with the built-in dictionaries for a session of `version`. From FIX.4.0
    /// to FIX.4.4 it has the dictionary of that version. For other versions it has FIXT.1.1 with
    /// all application versions, and `version` as the default.
    ///
    /// # Errors
    /// Returns no error with the tables as they are.
    pub fn built_in(version: Version, switches: Switches) -> Result<Self, SchemaError> {
        let over_transport = [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2];
        if !over_transport.contains(&version) && version != Version::Fixt11 {
            return Ok(Self::new(Dictionary::built_in(version), switches));
        }
        let mut validator = Self::new(Dictionary::built_in(Version::Fixt11), switches);
        for application in Version::ALL.into_iter().rev() {
            if application != Version::Fixt11 {
                validator.add_built_in(application)?;
            }
        }
        validator.default_version = Some(version).filter(|v| *v != Version::Fixt11);
        Ok(validator)
    }

    /// Adds the dictionary of an application version. The first one added is the default.
    ///
    /// # Errors
    /// Returns an error if the header and trailer of the transport and the application's messages
    /// do not fit together.
    pub fn add_application(
        &mut self,
        version: Version,
        dictionary: &Dictionary,
    ) -> Result<(), SchemaError> {
        self.add(Application {
            version,
            dictionary: over(&self.session, dictionary)?,
            is_built_in: false,
            checks: true,
        });
        Ok(())
    }

    /// Adds the built-in dictionary of an application version. The first one added is the default.
    /// Validators with the built-in transport share one.
    ///
    /// # Errors
    /// See [`add_application`](Self::add_application).
    pub fn add_built_in(&mut self, version: Version) -> Result<(), SchemaError> {
        self.add_own(version, true)
    }

    /// Adds the built-in dictionary of an application version for the repeating groups of its
    /// messages, which are not checked, as those of a version that is not loaded.
    ///
    /// # Errors
    /// See [`add_application`](Self::add_application).
    pub fn add_built_in_groups(&mut self, version: Version) -> Result<(), SchemaError> {
        self.add_own(version, false)
    }

    fn add_own(&mut self, version: Version, checks: bool) -> Result<(), SchemaError> {
        let is_shared = Arc::ptr_eq(&self.session, &Dictionary::built_in(Version::Fixt11));
        self.add(Application {
            version,
            dictionary: match is_shared {
                true => shared(version)?,
                false => over(&self.session, &Dictionary::built_in(version))?,
            },
            is_built_in: true,
            checks,
        });
        Ok(())
    }

    fn add(&mut self, application: Application) {
        let version = application.version;
        self.applications.retain(|known| known.version != version);
        self.applications.push(application);
        self.default_version.get_or_insert(version);
    }

    /// Returns the pairs of a length and a data field that the standard does not have, of all
    /// dictionaries, for [`Config::data_fields`](crate::session::Config::data_fields).
    pub fn data_fields(&self) -> Vec<(u32, u32)> {
        let own = self.applications.iter().filter(|own| !own.is_built_in);
        let all = std::iter::once(&self.session).chain(own.map(|own| &own.dictionary));
        let mut pairs: Vec<_> = all
            .flat_map(|dictionary| dictionary.data_fields())
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Returns the dictionary that checks a message. `default_version` is the
    /// DefaultApplVerID(1137) of the counterparty's Logon(A). For a version that is not loaded, or
    /// not known, the transport's dictionary is returned.
    pub fn dictionary(
        &self,
        message: &Message<'_>,
        default_version: Option<Version>,
    ) -> &Dictionary {
        self.loaded(message, default_version)
            .map_or(&self.session, |(dictionary, _)| dictionary)
    }

    /// Returns the dictionary of a message, and whether it checks it, or `None` if its version is
    /// not loaded, or not known.
    fn loaded(
        &self,
        message: &Message<'_>,
        default_version: Option<Version>,
    ) -> Option<(&Dictionary, bool)> {
        if self.applications.is_empty() || self.session.block(message.msg_type()).is_some() {
            return Some((&self.session, true));
        }
        let version = match message.get(tag::APPL_VER_ID) {
            Some(own) => Version::from_appl_ver_id(own),
            None => default_version.or(self.default_version),
        };
        let mut applications = self.applications.iter();
        let found = applications.find(|known| Some(known.version) == version);
        found.map(|found| (&*found.dictionary, found.checks))
    }

    /// Checks a message by its dictionary. A message whose version is not loaded, or is no
    /// [`Version`], is accepted as it is after its header, as in QuickFIX. The transport's
    /// dictionary has the values of ApplVerID(1128) in the header: another one is a fault.
    ///
    /// # Errors
    /// See [`Dictionary::validate`].
    pub fn validate(
        &self,
        message: &Message<'_>,
        default_version: Option<Version>,
    ) -> Result<(), Fault> {
        if let Some((dictionary, true)) = self.loaded(message, default_version) {
            return dictionary.validate(message, self.switches);
        }
        self.session.validate_frame(message, self.switches)
    }
}

/// Returns an application's dictionary under the header and trailer of `transport`.
fn over(transport: &Dictionary, application: &Dictionary) -> Result<Arc<Dictionary>, SchemaError> {
    let mut schema = application.schema_over(transport);
    admit_version_of_reject(&mut schema);
    Ok(Arc::new(Dictionary::new(schema)?))
}

/// Returns the built-in dictionary of an application version under the built-in transport. It is
/// made once.
fn shared(version: Version) -> Result<Arc<Dictionary>, SchemaError> {
    static MADE: [OnceLock<Arc<Dictionary>>; 9] = [const { OnceLock::new() }; 9];
    let mut cells = Version::ALL.iter().zip(&MADE);
    let cell = cells
        .find(|(known, _)| **known == version)
        .map(|found| found.1);
    if let Some(made) = cell.and_then(OnceLock::get) {
        return Ok(Arc::clone(made));
    }
    let transport = Dictionary::built_in(Version::Fixt11);
    let made = over(&transport, &Dictionary::built_in(version))?;
    Ok(match cell {
        Some(cell) => Arc::clone(cell.get_or_init(|| made)),
        None => made,
    })
}

/// Admits DefaultApplVerID(1137) in BusinessMessageReject(j). Sessions over FIXT.1.1 write it
/// there, as QuickFIX does; no dictionary has it.
fn admit_version_of_reject(schema: &mut Schema) {
    let tag = tag::DEFAULT_APPL_VER_ID;
    let is_it = |item: &Item| matches!(item, Item::Field { tag: own, .. } if *own == tag);
    if let Some(reject) = schema.messages.get_mut("j")
        && schema.fields.contains_key(&tag)
        && !reject.items.iter().any(is_it)
    {
        let required = false;
        reject.items.push(Item::Field { tag, required });
    }
}

impl Validator for DictionaryValidator {
    fn check(&self, message: &Message<'_>, context: &Context) -> Result<(), Fault> {
        match self.checks {
            true => self.validate(message, default_version(context)),
            false => Ok(()),
        }
    }

    fn groups(&self, message: &Message<'_>, context: &Context) -> Option<&dyn Groups> {
        let (dictionary, _) = self.loaded(message, default_version(context))?;
        Some(dictionary)
    }
}

fn default_version(context: &Context) -> Option<Version> {
    let id = context.default_appl_ver_id?;
    Version::from_appl_ver_id(&[id.wire()])
}
