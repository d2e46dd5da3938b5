//! The names of each message's version, overridden by those of the user's dictionaries.

use anyhow::{Context, Result};
use fanfare_engine::settings;
use fanfare_fix::codec::Message;
use fanfare_fix::dict::{Dictionary, Schema, Version, names_for, schema_from_xml};
use fanfare_fix::{msg_type, tag};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(in crate::cmd::fix) struct Names {
    user: Vec<(PathBuf, Schema)>,
    /// The built-in dictionaries overridden by the user's, by the built-in one's version.
    merged: HashMap<String, Arc<Dictionary>>,
    /// DefaultApplVerID(1137) of Logons, by the CompIDs of the sender.
    defaults: HashMap<Vec<u8>, Version>,
}

/// The number of sessions whose DefaultApplVerID(1137) is remembered.
const MOST_SESSIONS: usize = 10_000;

impl Names {
    pub(in crate::cmd::fix) fn with(files: &[PathBuf]) -> Result<Self> {
        let mut user = Vec::new();
        for path in files {
            let schema = schema_from_xml(&read_dictionary(path)?);
            let schema = schema.with_context(|| path.display().to_string())?;
            user.push((path.clone(), schema));
        }
        Ok(Self {
            user,
            merged: HashMap::new(),
            defaults: HashMap::new(),
        })
    }

    /// Returns the data fields of the user's dictionaries that the standard does not have.
    pub(in crate::cmd::fix) fn data_fields(&self) -> Vec<(u32, u32)> {
        let schemas = self.user.iter().map(|(_, schema)| schema);
        schemas.flat_map(Schema::own_data_fields).collect()
    }

    /// Returns the dictionary of a message's version; messages come in the order of their sessions.
    pub(super) fn of(&mut self, message: &Message<'_>) -> Result<Arc<Dictionary>> {
        let default = self.default_of(message);
        let built_in = names_for(message, default);
        if self.user.is_empty() {
            return Ok(built_in);
        }
        if let Some(merged) = self.merged.get(built_in.version()) {
            return Ok(Arc::clone(merged));
        }
        let mut all = Arc::clone(&built_in);
        for (path, schema) in &self.user {
            let merged = all.merged(schema.clone()).with_context(|| {
                let (path, version) = (path.display(), built_in.version());
                format!("{path} does not go with {version}")
            })?;
            all = Arc::new(merged);
        }
        let version = built_in.version().to_owned();
        self.merged.insert(version, Arc::clone(&all));
        Ok(all)
    }

    /// Returns the tags that have this name in any version, ignoring case.
    pub(super) fn tags(&self, name: &str) -> Vec<u32> {
        let mut tags = Vec::new();
        self.each_schema(|schema| {
            let fields = schema.fields.iter();
            let named = fields.filter(|(_, field)| field.name.eq_ignore_ascii_case(name));
            tags.extend(named.map(|(&tag, _)| tag));
        });
        tags
    }

    /// Returns the values of these fields, message types included, that have this name in any
    /// version.
    pub(super) fn values(&self, of: &[u32], name: &str) -> Vec<Box<[u8]>> {
        let mut values: Vec<Box<[u8]>> = Vec::new();
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        self.each_schema(|schema| {
            for field in of.iter().filter_map(|tag| schema.fields.get(tag)) {
                let named = field.values.iter().filter(|value| same(&value.name));
                values.extend(named.map(|value| value.value.as_bytes().into()));
            }
            if of.contains(&tag::MSG_TYPE) {
                let named = schema.messages.iter().filter(|(_, m)| same(&m.name));
                values.extend(named.map(|(msg_type, _)| msg_type.as_bytes().into()));
            }
        });
        values.sort_unstable();
        values.dedup();
        values
    }

    fn each_schema(&self, mut look: impl FnMut(&Schema)) {
        for version in Version::ALL {
            look(Dictionary::built_in(version).schema());
        }
        self.user.iter().for_each(|(_, schema)| look(schema));
    }

    fn default_of(&mut self, message: &Message<'_>) -> Option<Version> {
        if message.begin_string() != b"FIXT.1.1" {
            return None;
        }
        let comp_id = |tag| message.get(tag).unwrap_or_default();
        let (sender, target) = (comp_id(tag::SENDER_COMP_ID), comp_id(tag::TARGET_COMP_ID));
        let session = [sender, b"\x01", target].concat();
        let named = message.get(tag::DEFAULT_APPL_VER_ID);
        if message.get(tag::MSG_TYPE) == Some(msg_type::LOGON)
            && let Some(version) = named.and_then(Version::from_appl_ver_id)
            && (self.defaults.len() < MOST_SESSIONS || self.defaults.contains_key(&session))
        {
            self.defaults.insert(session, version);
            return Some(version);
        }
        self.defaults.get(&session).copied()
    }
}

/// Reads the text of a dictionary, up to the loader's limit.
pub(in crate::cmd::fix) fn read_dictionary(path: &Path) -> Result<String> {
    settings::read_dictionary(path).with_context(|| format!("cannot read {}", path.display()))
}
