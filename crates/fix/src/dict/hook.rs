//! The validation as a session's hook, which selects the dictionary of each message.

use std::sync::Arc;

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
    /// The dictionaries of application messages by version, empty up to FIX.4.4.
    applications: Vec<(Version, Arc<Dictionary>)>,
    /// The version of application messages that do not name one.
    default_version: Option<Version>,
    switches: Switches,
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
        }
    }

    /// Returns a validator with the built-in dictionaries for a session of `version`. From FIX.4.0
    /// to FIX.4.4 it has the dictionary of that version. For other versions it has FIXT.1.1 with
    /// all application versions from 5.0 on, and `version` as the default.
    ///
    /// # Errors
    /// Returns no error with the tables as they are.
    pub fn built_in(version: Version, switches: Switches) -> Result<Self, SchemaError> {
        let over_transport = [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2];
        if !over_transport.contains(&version) && version != Version::Fixt11 {
            return Ok(Self::new(Dictionary::built_in(version), switches));
        }
        let mut validator = Self::new(Dictionary::built_in(Version::Fixt11), switches);
        for application in over_transport {
            validator.add_application(application, &Dictionary::built_in(application))?;
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
        let mut schema = dictionary.schema_over(&self.session);
        admit_version_of_reject(&mut schema);
        let whole = Arc::new(Dictionary::new(schema)?);
        self.applications.retain(|(known, _)| *known != version);
        self.applications.push((version, whole));
        self.default_version.get_or_insert(version);
        Ok(())
    }

    /// Returns the pairs of a length and a data field that the standard does not have, of all
    /// dictionaries, for [`Config::data_fields`](crate::session::Config::data_fields).
    pub fn data_fields(&self) -> Vec<(u32, u32)> {
        let applications = self.applications.iter().map(|(_, dictionary)| dictionary);
        let all = std::iter::once(&self.session).chain(applications);
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
            .unwrap_or(&self.session)
    }

    /// Returns the dictionary of a message, or `None` if its version is not loaded, or not known.
    fn loaded(
        &self,
        message: &Message<'_>,
        default_version: Option<Version>,
    ) -> Option<&Dictionary> {
        if self.applications.is_empty() || self.session.block(message.msg_type()).is_some() {
            return Some(&self.session);
        }
        let version = match message.get(tag::APPL_VER_ID) {
            Some(own) => Version::from_appl_ver_id(own),
            None => default_version.or(self.default_version),
        };
        let found = self
            .applications
            .iter()
            .find(|(known, _)| Some(*known) == version);
        found.map(|(_, dictionary)| &**dictionary)
    }

    /// Checks a message by its dictionary. A message whose version is not loaded is accepted as it
    /// is after its header, as in QuickFIX.
    ///
    /// # Errors
    /// See [`Dictionary::validate`].
    pub fn validate(
        &self,
        message: &Message<'_>,
        default_version: Option<Version>,
    ) -> Result<(), Fault> {
        match self.loaded(message, default_version) {
            Some(dictionary) => dictionary.validate(message, self.switches),
            None => self.session.validate_frame(message, self.switches),
        }
    }
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
        self.validate(message, default_version(context))
    }

    fn groups(&self, message: &Message<'_>, context: &Context) -> Option<&dyn Groups> {
        let dictionary = self.loaded(message, default_version(context))?;
        Some(dictionary)
    }
}

fn default_version(context: &Context) -> Option<Version> {
    let id = context.default_appl_ver_id?;
    Version::from_appl_ver_id(&[id.wire()])
}
