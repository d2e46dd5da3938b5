//! The outcome of a reload.

use crate::config::Config;
use crate::users::UserSet;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;

/// The changes of a reload. Displayed on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The names of users that were added, removed or changed.
    pub users: Changes,
    /// The names of lists that were added, removed or changed.
    pub lists: Changes,
    /// The channels of the feeds whose mappings have changed.
    pub mappings: Vec<String>,
    /// The other keys that changed.
    pub keys: Vec<&'static str>,
    /// The sessions that were logged out because they are no longer permitted.
    pub logged_out: usize,
    /// The keys that differ from the start and that only a restart changes.
    pub fixed: Vec<&'static str>,
}

/// The differences of names between two configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names in the second only.
    pub added: Vec<String>,
    /// Names in the first only.
    pub removed: Vec<String>,
    /// Names in both, with different contents.
    pub changed: Vec<String>,
}

impl Changes {
    fn between<'a, T: PartialEq>(
        before: impl Iterator<Item = (&'a str, T)>,
        after: impl Iterator<Item = (&'a str, T)>,
    ) -> Self {
        let mut changes = Self::default();
        let mut before: HashMap<&str, T> = before.collect();
        for (name, now) in after {
            match before.remove(name) {
                None => changes.added.push(name.to_owned()),
                Some(then) if then != now => changes.changed.push(name.to_owned()),
                Some(_) => {}
            }
        }
        changes.removed = before.into_keys().map(str::to_owned).collect();
        changes.removed.sort_unstable();
        changes
    }
}

impl Reloaded {
    /// Compares the configuration and users in force with new ones.
    pub(crate) fn between(
        config: &Config,
        new: &Config,
        users: &UserSet,
        new_users: &UserSet,
    ) -> Self {
        let [before, after] = [users, new_users].map(|users| {
            // A user's key may change in its file, with the same table.
            let named = users.with_keys();
            named.map(|(user, key)| (&*user.name, (user, key)))
        });
        Self {
            users: Changes::between(before, after),
            lists: Changes::between(users.lists(), new_users.lists()),
            keys: config.keys_changed(new),
            ..Self::default()
        }
    }

    /// Adds keys that change and are not named yet.
    pub(crate) fn add_keys(&mut self, keys: Vec<&'static str>) {
        for key in keys {
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }
}

/// Formats the changes that a reload would make for an operator.
impl From<&Reloaded> for Value {
    fn from(reloaded: &Reloaded) -> Self {
        let named = |changes: &Changes| {
            json!({
                "added": changes.added,
                "removed": changes.removed,
                "changed": changes.changed,
            })
        };
        json!({
            "users": named(&reloaded.users),
            "lists": named(&reloaded.lists),
            "mappings": reloaded.mappings,
            "keys": reloaded.keys,
            "needs_start": reloaded.fixed,
        })
    }
}

/// The most names of one kind that are listed. Of the others, only the number is.
const SHOWN: usize = 3;

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (thing, changes) in [("user", &self.users), ("list", &self.lists)] {
            for (what, names) in [
                ("new", &changes.added),
                ("removed", &changes.removed),
                ("changed", &changes.changed),
            ] {
                match names.len() {
                    0 => {}
                    n if n <= SHOWN => {
                        let plural = if n == 1 { "" } else { "s" };
                        parts.push(format!("{what} {thing}{plural} {}", names.join(", ")));
                    }
                    n => parts.push(format!("{n} {what} {thing}s")),
                }
            }
        }
        match self.mappings.len() {
            0 => {}
            n if n <= SHOWN => {
                parts.push(format!("changed mapping of {}", self.mappings.join(", ")));
            }
            n => parts.push(format!("changed mappings of {n} feeds")),
        }
        parts.extend(self.keys.iter().map(|key| (*key).to_owned()));
        match parts.is_empty() {
            true => f.write_str("reloaded: nothing has changed")?,
            false => write!(f, "reloaded: {}", parts.join(", "))?,
        }
        match self.logged_out {
            0 => {}
            1 => f.write_str("; 1 session was logged out")?,
            n => write!(f, "; {n} sessions were logged out")?,
        }
        match self.fixed.is_empty() {
            true => Ok(()),
            false => write!(f, "; only a new start changes {}", self.fixed.join(", ")),
        }
    }
}
