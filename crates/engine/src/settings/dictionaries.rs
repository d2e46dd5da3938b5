//! The dictionaries that a session names, and the switches of its validation.

use super::SettingsError;
use super::file::{Entry, Section};
use super::keys::SWITCHES;
use fanfare_fix::dict::{
    Dictionary, DictionaryValidator, LoadError, MAX_TEXT, SchemaError, Switches, Version,
};
use fanfare_fix::session::{self, ApplVerId, Config};
use fanfare_fix::tag;
use fanfare_wire::xml;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The dictionaries of one session. The built-in tables of the version stand in for files that are
/// not named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryFiles {
    /// `DataDictionary`, or for FIXT.1.1 `TransportDataDictionary`.
    pub session: Option<DictionaryFile>,
    /// `AppDataDictionary`, with or without a version in its key: one for each version.
    pub applications: Vec<(Version, DictionaryFile)>,
    /// The checks to make.
    pub switches: Switches,
    /// Whether received messages are checked.
    pub incoming: bool,
    /// Whether the application's own messages are checked before they are sent.
    pub outgoing: bool,
    version: Version,
    default: Version,
    /// The fields of the session layer that the settings use.
    session_fields: Vec<u32>,
}

/// A dictionary named in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryFile {
    /// The file.
    pub path: PathBuf,
    /// The line that names it, from 1.
    pub line: usize,
    /// The key, as the settings have it.
    pub key: String,
}

impl DictionaryFile {
    fn of(entry: &Entry) -> Self {
        Self {
            path: PathBuf::from(&entry.value),
            line: entry.line,
            key: entry.key.clone(),
        }
    }

    /// Returns a remark on a dictionary of another built-in version, which may be the wrong file.
    /// Versions of a venue's own get none, and FIX.5.0 none in the place of a service pack, which
    /// not every file names.
    fn remark(&self, dictionary: &Dictionary, version: Version) -> Option<String> {
        let found = Version::from_name(dictionary.version())
            .filter(|found| !version.name().starts_with(found.name()))?;
        let Self { path, line, key } = self;
        Some(format!(
            "line {line}: {key}={}: the dictionary is of {}, the messages are of {}",
            path.display(),
            found.name(),
            version.name()
        ))
    }
}

/// The error of a dictionary.
#[derive(Debug, Error)]
pub enum DictionaryError {
    /// The file does not exist.
    #[error(
        "line {line}: {key}={}: no such file; without {key} the built-in dictionary of {version} \
         is used",
        path.display()
    )]
    Missing {
        /// The line of the settings file.
        line: usize,
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// The version that the dictionary is for.
        version: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is no dictionary.
    #[error("{}: {error}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// The error, and its place.
        error: LoadError,
    },
    /// The application's messages do not fit under the transport's header.
    #[error("the application dictionary does not fit the transport: {0}")]
    Schema(#[from] SchemaError),
}

impl DictionaryFiles {
    pub(super) fn read(
        section: &Section<'_>,
        config: &Config,
    ) -> Result<Option<Self>, SettingsError> {
        let mut switches = Switches::default();
        for name in SWITCHES {
            if section.find(name).is_some() {
                switches.set(name, section.flag(name, true)?);
            }
        }
        let used = section.flag("UseDataDictionary", true)?;
        let incoming = section.flag("ValidateIncomingMessage", true)? && used;
        let outgoing = section.flag("ValidateOutgoingMessage", false)?;
        if outgoing
            && !used
            && let Some(entry) = section.find("ValidateOutgoingMessage")
        {
            return Err(entry.wrong("must be N with UseDataDictionary=N"));
        }
        let over_transport = config.id.version == session::Version::Fixt11;
        let (version, default) = versions(config.id.version, config.default_appl_ver_id);
        let key = if over_transport {
            "TransportDataDictionary"
        } else {
            "DataDictionary"
        };
        let session = section.find(key).map(DictionaryFile::of);
        let mut applications = Vec::new();
        if over_transport {
            applications = application_files(section, default);
        }
        // Without checks, a dictionary still has its own data fields; the built-in ones have none.
        let is_named = session.is_some() || !applications.is_empty();
        let is_needed = incoming || outgoing || (used && is_named);
        if !is_needed {
            return Ok(None);
        }
        Ok(Some(Self {
            session,
            applications,
            switches,
            incoming,
            outgoing,
            version,
            default,
            session_fields: session_fields(config),
        }))
    }

    /// Returns whether `load` returns the same for both. Files are compared by their paths.
    pub(super) fn loads_as(&self, other: &Self) -> bool {
        let rest = |own: &Self| (own.switches, own.version, own.default);
        let session = |own: &Self| own.session.as_ref().map(|file| file.path.clone());
        let applications = |own: &Self| -> Vec<(Version, PathBuf)> {
            let files = own.applications.iter();
            files
                .map(|(version, file)| (*version, file.path.clone()))
                .collect()
        };
        rest(self) == rest(other)
            && session(self) == session(other)
            && applications(self) == applications(other)
            && self.session_fields == other.session_fields
    }

    /// Loads the named dictionaries, by `read`. A dictionary of another version is used, with a
    /// line in `remarks`. The fields of the session layer that the settings use are added where the
    /// session's dictionary lacks them.
    ///
    /// # Errors
    /// A file does not exist, or is no dictionary.
    pub fn load(
        &self,
        read: &dyn Fn(&Path) -> io::Result<String>,
        remarks: &mut Vec<String>,
    ) -> Result<DictionaryValidator, DictionaryError> {
        let session = match &self.session {
            None => built_in_with(self.version, &self.session_fields)?,
            Some(file) => {
                let own = one(file, self.version, read, remarks)?;
                let more = own.with_session_fields(&self.session_fields)?;
                more.map_or(own, Arc::new)
            }
        };
        let mut validator = DictionaryValidator::new(session, self.switches);
        if self.version != Version::Fixt11 {
            return Ok(validator);
        }
        let named = |version| {
            let mut files = self.applications.iter();
            files.find(|(known, _)| *known == version)
        };
        let fives = [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2];
        let others = Version::ALL.into_iter().rev();
        let others = others.filter(|version| *version != self.default);
        // The first one is the default.
        for version in std::iter::once(self.default).chain(others) {
            match named(version) {
                Some((_, file)) => {
                    let dictionary = one(file, version, read, remarks)?;
                    validator.add_application(version, &dictionary)?;
                }
                None if version == Version::Fixt11 => {}
                // As in QuickFIX, messages of other versions without a dictionary are not checked.
                None if !self.applications.is_empty()
                    && !fives.contains(&version)
                    && version != self.default =>
                {
                    validator.add_built_in_groups(version)?;
                }
                None => validator.add_built_in(version)?,
            }
        }
        Ok(validator)
    }
}

/// Reads the text of a dictionary, up to the limit of [`Dictionary::from_xml`], which reports a
/// longer one.
///
/// # Errors
/// The file cannot be read, or is in none of the encodings of [`xml::decode`].
pub fn read_dictionary(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // With one byte beyond the limit, the loader reports the excess. Text in UTF-16, with its mark,
    // may have twice as many bytes.
    let mut file = File::open(path)?.take(2 * MAX_TEXT as u64 + 3);
    file.read_to_end(&mut bytes)?;
    xml::decode(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns the built-in dictionary of a version with the fields of the session layer that it lacks.
/// Sessions with the same fields share it.
fn built_in_with(version: Version, tags: &[u32]) -> Result<Arc<Dictionary>, SchemaError> {
    type Made = Vec<(Version, Vec<u32>, Arc<Dictionary>)>;
    static MADE: Mutex<Made> = Mutex::new(Vec::new());
    let built_in = Dictionary::built_in(version);
    if tags.is_empty() {
        return Ok(built_in);
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = made.iter();
    if let Some(known) = known.find(|(of, with, _)| *of == version && *with == tags) {
        return Ok(Arc::clone(&known.2));
    }
    let more = built_in.with_session_fields(tags)?;
    let more = more.map_or(built_in, Arc::new);
    made.push((version, tags.to_vec(), Arc::clone(&more)));
    Ok(more)
}

fn one(
    file: &DictionaryFile,
    version: Version,
    read: &dyn Fn(&Path) -> io::Result<String>,
    remarks: &mut Vec<String>,
) -> Result<Arc<Dictionary>, DictionaryError> {
    let DictionaryFile { path, line, key } = file;
    match read(path) {
        Ok(text) => match Dictionary::from_xml(&text) {
            Ok(dictionary) => {
                let remark = file.remark(&dictionary, version);
                // A file in [DEFAULT] is loaded for each session.
                let new = remark.filter(|remark| !remarks.contains(remark));
                remarks.extend(new);
                Ok(Arc::new(dictionary))
            }
            Err(error) => Err(DictionaryError::Load {
                path: path.clone(),
                error,
            }),
        },
        // The built-in dictionary would differ silently.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(DictionaryError::Missing {
            line: *line,
            key: key.clone(),
            path: path.clone(),
            version: version.name(),
        }),
        Err(error) => Err(DictionaryError::Io {
            path: path.clone(),
            error,
        }),
    }
}

/// Returns the tags of the session layer's fields that these settings use, and that not every
/// version has.
fn session_fields(config: &Config) -> Vec<u32> {
    let mut tags = Vec::new();
    let sends = |wanted| config.logon_fields.iter().any(|(tag, _)| *tag == wanted);
    if config.credentials.is_some() || sends(tag::USERNAME) || sends(tag::PASSWORD) {
        tags.extend([tag::USERNAME, tag::PASSWORD]);
    }
    if config.next_expected {
        tags.push(tag::NEXT_EXPECTED_MSG_SEQ_NUM);
    }
    if config.last_processed {
        tags.push(tag::LAST_MSG_SEQ_NUM_PROCESSED);
    }
    tags
}

/// Returns the versions of the session and of its application messages.
pub(super) fn versions(version: session::Version, default: ApplVerId) -> (Version, Version) {
    let of_session = Version::from_name(version.begin_string()).unwrap_or(Version::Fixt11);
    let of_application = Version::from_appl_ver_id(&[default.wire()]).unwrap_or(Version::Fix50Sp2);
    (of_session, of_application)
}

fn application_files(section: &Section<'_>, default: Version) -> Vec<(Version, DictionaryFile)> {
    let named = Version::ALL.into_iter().filter_map(|version| {
        let entry = section.find(&format!("AppDataDictionary.{}", version.name()))?;
        Some((version, DictionaryFile::of(entry)))
    });
    let mut files: Vec<_> = named.collect();
    let is_named = files.iter().any(|(version, _)| *version == default);
    // As in QuickFIX, the key with the version takes precedence.
    if let Some(plain) = section.find("AppDataDictionary").filter(|_| !is_named) {
        files.insert(0, (default, DictionaryFile::of(plain)));
    }
    files
}
