//! The dictionaries that a session names, and the switches of its checks.

use super::SettingsError;
use super::file::Section;
use fanfare_fix::dict::{
    Dictionary, DictionaryValidator, LoadError, SchemaError, Switches, Version,
};
use fanfare_fix::session::{self, ApplVerId, Config};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The dictionaries of one session; where a file is not named, or is not there, the built-in
/// tables of the version serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryFiles {
    /// `DataDictionary`, or for FIXT.1.1 `TransportDataDictionary`.
    pub session: Option<PathBuf>,
    /// `AppDataDictionary`, the one of the default version first.
    pub applications: Vec<(Version, PathBuf)>,
    /// What is checked.
    pub switches: Switches,
    version: Version,
    default: Version,
}

/// A dictionary that is there and cannot be used.
#[derive(Debug, Error)]
pub enum DictionaryError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is no dictionary.
    #[error("{}: {error}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: LoadError,
    },
    /// An application's messages do not fit under the transport's header.
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
        if !(used && section.flag("ValidateIncomingMessage", true)?) {
            return Ok(None);
        }
        let over_transport = config.id.version == session::Version::Fixt11;
        let (version, default) = versions(config.id.version, config.default_appl_ver_id);
        let key = if over_transport {
            "TransportDataDictionary"
        } else {
            "DataDictionary"
        };
        let mut applications = Vec::new();
        if over_transport {
            applications = application_files(section, default);
        }
        Ok(Some(Self {
            session: section.text(key).map(PathBuf::from),
            applications,
            switches,
            version,
            default,
        }))
    }

    /// Loads what is named, by `read`. A file that is not there is told to `remark`, and the
    /// built-in tables take its place.
    ///
    /// # Errors
    /// A file that is there and cannot be used.
    pub fn load(
        &self,
        read: &dyn Fn(&Path) -> io::Result<String>,
        remark: &mut dyn FnMut(String),
    ) -> Result<DictionaryValidator, DictionaryError> {
        let session = self.one(self.session.as_deref(), self.version, read, remark)?;
        let mut validator = DictionaryValidator::new(session, self.switches);
        if self.version != Version::Fixt11 {
            return Ok(validator);
        }
        let named = |version| {
            let mut files = self.applications.iter();
            files.find(|(known, _)| *known == version)
        };
        let fives = [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2];
        let others = fives.into_iter().filter(|v| *v != self.default);
        let rest = self.applications.iter().map(|(version, _)| *version);
        let rest = rest.filter(|v| !fives.contains(v) && *v != self.default);
        // The first one is the default.
        for version in std::iter::once(self.default).chain(others).chain(rest) {
            let path = named(version).map(|(_, path)| path.as_path());
            let dictionary = self.one(path, version, read, remark)?;
            validator.add_application(version, &dictionary)?;
        }
        Ok(validator)
    }

    fn one(
        &self,
        path: Option<&Path>,
        version: Version,
        read: &dyn Fn(&Path) -> io::Result<String>,
        remark: &mut dyn FnMut(String),
    ) -> Result<Arc<Dictionary>, DictionaryError> {
        let Some(path) = path else {
            return Ok(Dictionary::built_in(version));
        };
        match read(path) {
            Ok(text) => match Dictionary::from_xml(&text) {
                Ok(dictionary) => Ok(Arc::new(dictionary)),
                Err(error) => Err(DictionaryError::Load {
                    path: path.to_owned(),
                    error,
                }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (path, name) = (path.display(), version.name());
                remark(format!(
                    "no dictionary {path}: the built-in one of {name} is used"
                ));
                Ok(Dictionary::built_in(version))
            }
            Err(error) => Err(DictionaryError::Io {
                path: path.to_owned(),
                error,
            }),
        }
    }
}

const SWITCHES: [&str; 5] = [
    "ValidateFieldsOutOfOrder",
    "ValidateFieldsHaveValues",
    "ValidateUserDefinedFields",
    "AllowUnknownMsgFields",
    "ValidateUnorderedGroupFields",
];

/// The dictionary of the session, and of its application messages.
fn versions(version: session::Version, default: ApplVerId) -> (Version, Version) {
    let of_session = Version::from_name(version.begin_string()).unwrap_or(Version::Fixt11);
    let of_application = Version::from_appl_ver_id(&[default.wire()]).unwrap_or(Version::Fix50Sp2);
    (of_session, of_application)
}

fn application_files(section: &Section<'_>, default: Version) -> Vec<(Version, PathBuf)> {
    let plain = section.text("AppDataDictionary");
    let plain = plain.map(|path| (default, PathBuf::from(path)));
    let named = Version::ALL.into_iter().filter_map(|version| {
        let path = section.text(&format!("AppDataDictionary.{}", version.name()))?;
        Some((version, PathBuf::from(path)))
    });
    plain.into_iter().chain(named).collect()
}
