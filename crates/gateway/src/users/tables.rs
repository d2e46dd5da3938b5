//! Users and named lists in the form of the configuration: the tables `[[user]]` and `[lists]`.

use super::error::{UsersError, cut, without_text};
use super::origin::Origin;
use super::password::Hashed;
use crate::ports::config::Pair;
use crate::service::Contract;
use fanfare_engine::regular;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The longest file of users, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// The tables `[[user]]` of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct UserTables {
    pub(super) tables: Vec<UserTable>,
    #[serde(skip)]
    pub(super) origin: Origin,
}

impl UserTables {
    /// Returns whether there are no users.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

/// The table `[lists]`: instruments by the names of lists.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Lists {
    pub(super) names: BTreeMap<String, Vec<Spanned<String>>>,
    #[serde(skip)]
    pub(super) origin: Origin,
}

/// Records the text from which users and lists were parsed, for the lines of errors.
pub(crate) fn parsed_from(text: &str, users: &mut UserTables, lists: &mut Lists) {
    let origin = Origin::of(text);
    lists.origin = origin.clone();
    users.origin = origin;
}

/// Records the file of that text.
pub(crate) fn read_from(file: &Path, users: &mut UserTables, lists: &mut Lists) {
    users.origin.in_file(file);
    lists.origin.in_file(file);
}

/// A table `[[user]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserTable {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) ports: Option<Spanned<Vec<PortName>>>,
    #[serde(default)]
    pub(super) sessions: Vec<Spanned<Pair>>,
    pub(super) dbn_key_file: Option<Spanned<PathBuf>>,
    pub(super) password: Option<Spanned<Hashed>>,
    #[serde(default)]
    pub(super) certificates: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) allow: Option<Vec<Spanned<String>>>,
    pub(super) instruments: Option<Vec<Spanned<String>>>,
    pub(super) entries: Option<Vec<Spanned<String>>>,
    pub(super) depth: Option<u16>,
    pub(super) contracts: Option<Vec<Contract>>,
    pub(super) contract: Option<Spanned<Contract>>,
    pub(super) subscriptions: Option<Spanned<usize>>,
    pub(super) requests_per_second: Option<Spanned<u32>>,
    pub(super) sessions_at_a_time: Option<Spanned<usize>>,
}

/// The ports of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortName {
    /// The port of incoming messages.
    Producers,
    /// The port of outgoing messages.
    Consumers,
}

impl PortName {
    /// Both ports, in the order of their indices in arrays.
    pub(crate) const ALL: [Self; 2] = [Self::Producers, Self::Consumers];

    /// Returns its name, as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Producers => "producers",
            Self::Consumers => "consumers",
        }
    }
}

/// A file of users with the same tables.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UsersFile {
    pub(super) user: UserTables,
    pub(super) lists: Lists,
}

impl UsersFile {
    pub(super) fn read(path: &Path) -> Result<Self, UsersError> {
        let fault = |why: String| UsersError::of_file(path, why);
        let bytes = regular::read(path, MOST_BYTES);
        let bytes = bytes.map_err(|error| fault(format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| fault("is not UTF-8".to_owned()))?;
        let mut file = toml::from_str::<Self>(&text).map_err(|error| {
            let (line, why) = without_text(&text, &error);
            UsersError {
                line,
                ..fault(cut(why))
            }
        })?;
        parsed_from(&text, &mut file.user, &mut file.lists);
        read_from(path, &mut file.user, &mut file.lists);
        Ok(file)
    }
}
