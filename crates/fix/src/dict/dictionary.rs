//! The dictionary of one version.

use std::sync::{Arc, OnceLock};

use roxmltree::Document;

use super::compile::{self, GroupRules, Rule, Tables};
use super::kind::DataType;
use super::load::{Cause, LoadError, parse_xml};
use super::schema::{FieldDef, Item, MessageDef, Schema, SchemaError};
use super::{orchestra, quickfix, table};
use crate::codec::GroupSpec;
use crate::{msg_type, tag};

/// A version whose tables are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// FIX.4.0
    Fix40,
    /// FIX.4.1
    Fix41,
    /// FIX.4.2
    Fix42,
    /// FIX.4.3
    Fix43,
    /// FIX.4.4
    Fix44,
    /// FIX.5.0: application messages only, over FIXT.1.1
    Fix50,
    /// FIX.5.0SP1: application messages only, over FIXT.1.1
    Fix50Sp1,
    /// FIX.5.0SP2: application messages only, over FIXT.1.1
    Fix50Sp2,
    /// FIXT.1.1: header, trailer and session messages
    Fixt11,
}

impl Version {
    /// All built-in versions.
    pub const ALL: [Self; 9] = [
        Self::Fix40,
        Self::Fix41,
        Self::Fix42,
        Self::Fix43,
        Self::Fix44,
        Self::Fix50,
        Self::Fix50Sp1,
        Self::Fix50Sp2,
        Self::Fixt11,
    ];

    /// Returns the version's name, such as `FIX.4.4` or `FIX.5.0SP2`; up to FIX.4.4 the
    /// BeginString(8).
    pub fn name(self) -> &'static str {
        match self {
            Self::Fix40 => "FIX.4.0",
            Self::Fix41 => "FIX.4.1",
            Self::Fix42 => "FIX.4.2",
            Self::Fix43 => "FIX.4.3",
            Self::Fix44 => "FIX.4.4",
            Self::Fix50 => "FIX.5.0",
            Self::Fix50Sp1 => "FIX.5.0SP1",
            Self::Fix50Sp2 => "FIX.5.0SP2",
            Self::Fixt11 => "FIXT.1.1",
        }
    }

    /// Returns the version with this name, or `None` if it is not built in.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Returns the version of an ApplVerID(1128) or DefaultApplVerID(1137).
    pub fn from_appl_ver_id(value: &[u8]) -> Option<Self> {
        // From `2`, FIX.4.0, to `9`, FIX.5.0SP2.
        let &[digit @ b'2'..=b'9'] = value else {
            return None;
        };
        Self::ALL.get(usize::from(digit - b'2')).copied()
    }

    fn text(self) -> &'static str {
        match self {
            Self::Fix40 => include_str!("../../dict-data/FIX.4.0.txt"),
            Self::Fix41 => include_str!("../../dict-data/FIX.4.1.txt"),
            Self::Fix42 => include_str!("../../dict-data/FIX.4.2.txt"),
            Self::Fix43 => include_str!("../../dict-data/FIX.4.3.txt"),
            Self::Fix44 => include_str!("../../dict-data/FIX.4.4.txt"),
            Self::Fix50 => include_str!("../../dict-data/FIX.5.0.txt"),
            Self::Fix50Sp1 => include_str!("../../dict-data/FIX.5.0SP1.txt"),
            Self::Fix50Sp2 => include_str!("../../dict-data/FIX.5.0SP2.txt"),
            Self::Fixt11 => include_str!("../../dict-data/FIXT.1.1.txt"),
        }
    }
}

/// The fields, messages and groups of one version, compiled for validation and lookup. A dictionary
/// is immutable, and may be shared between threads.
#[derive(Debug, Clone)]
pub struct Dictionary {
    schema: Schema,
    tables: Tables,
}

impl Dictionary {
    /// Returns the built-in dictionary of `version`. The first call for a version reads its table,
    /// which takes about a millisecond. Later calls share it.
    pub fn built_in(version: Version) -> Arc<Self> {
        static LOADED: [OnceLock<Arc<Dictionary>>; 9] = [const { OnceLock::new() }; 9];
        let load = || Arc::new(Self::from_table(version.text()).unwrap_or_else(|_| Self::empty()));
        // A test reads all tables, so that none is empty.
        let at = Version::ALL.iter().position(|known| *known == version);
        match at.and_then(|at| LOADED.get(at)) {
            Some(cell) => Arc::clone(cell.get_or_init(load)),
            None => load(),
        }
    }

    /// Reads a dictionary from QuickFIX-style XML (`<fix>`) or FIX Orchestra XML (`<repository>`).
    ///
    /// # Errors
    /// Returns what is wrong with the text, and where.
    pub fn from_xml(text: &str) -> Result<Self, LoadError> {
        let document = parse_xml(text)?;
        Self::new(read(&document)?).map_err(|error| placed(&document, error))
    }

    /// Returns a dictionary of a schema, which is compiled.
    ///
    /// # Errors
    /// Returns an error if declarations do not fit together.
    pub fn new(schema: Schema) -> Result<Self, SchemaError> {
        let tables = compile::compile(&schema)?;
        Ok(Self { schema, tables })
    }

    /// Returns this dictionary with `user` merged on top of it: see [`Schema::merge`]. Groups of
    /// another version of the standard do not replace those of this one.
    ///
    /// # Errors
    /// Returns an error if declarations do not fit together.
    pub fn merged(&self, user: Schema) -> Result<Self, SchemaError> {
        let mut schema = self.schema.clone();
        // Not every file of FIX.5.0 names its service pack.
        let standard = Version::from_name(&user.version);
        match standard.is_some_and(|own| !self.version().starts_with(own.name())) {
            true => schema.merge_behind(user),
            false => schema.merge(user),
        }
        Self::new(schema)
    }

    /// Returns the application messages of this dictionary under the header and trailer of
    /// `transport` (FIXT.1.1), with the fields that these need.
    ///
    /// # Errors
    /// Returns an error if declarations do not fit together.
    pub fn over(&self, transport: &Self) -> Result<Self, SchemaError> {
        Self::new(self.schema_over(transport))
    }

    /// Returns the schema of [`over`](Self::over).
    pub(super) fn schema_over(&self, transport: &Self) -> Schema {
        let mut schema = self.schema.clone();
        schema.messages.retain(|_, message| !message.is_session);
        schema.header.clone_from(&transport.schema.header);
        schema.trailer.clone_from(&transport.schema.trailer);
        let components = transport.schema.components.iter();
        for (name, items) in components {
            schema
                .components
                .entry(name.clone())
                .or_insert_with(|| items.clone());
        }
        for (&tag, field) in &transport.schema.fields {
            if transport.rule(tag).section != compile::Section::Body {
                schema.fields.insert(tag, field.clone());
            } else {
                schema.fields.entry(tag).or_insert_with(|| field.clone());
            }
        }
        schema
    }

    /// Returns this dictionary with the fields of the session layer among `tags` that it lacks, or
    /// `None` if it lacks none. Header fields are added to the header, others to Logon(A), as
    /// FIXT.1.1 declares them; they are optional. Tags that FIXT.1.1 does not declare are skipped.
    ///
    /// # Errors
    /// Returns an error if a limit of dictionaries is exceeded.
    pub fn with_session_fields(&self, tags: &[u32]) -> Result<Option<Self>, SchemaError> {
        let mut lacking = tags.to_vec();
        lacking.retain(|tag| self.lacks_session_field(*tag));
        if lacking.is_empty() {
            return Ok(None);
        }
        let standard = Self::built_in(Version::Fixt11);
        let mut schema = self.schema.clone();
        for tag in lacking {
            let items = match tag::is_header(tag) {
                true => Some(&mut schema.header),
                false => schema.messages.get_mut("A").map(|logon| &mut logon.items),
            };
            if let (Some(items), Some(field)) = (items, standard.field(tag)) {
                let required = false;
                items.push(Item::Field { tag, required });
                schema.fields.entry(tag).or_insert_with(|| field.clone());
            }
        }
        Self::new(schema).map(Some)
    }

    /// Returns whether the header, or else the Logon(A), has no such field.
    fn lacks_session_field(&self, tag: u32) -> bool {
        let block = match tag::is_header(tag) {
            true => Some(&self.tables.header),
            false => self.block(msg_type::LOGON),
        };
        let id = self.rule(tag).id;
        let lacks = |block: &compile::Block| block.membership(id) == compile::Membership::None;
        id == 0 || block.is_none_or(lacks)
    }

    /// Returns the declarations of the dictionary.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the version: `FIX.4.4`, `FIX.5.0SP2`, `FIXT.1.1`.
    pub fn version(&self) -> &str {
        &self.schema.version
    }

    /// Returns a field's declaration.
    pub fn field(&self, tag: u32) -> Option<&FieldDef> {
        self.schema.fields.get(&tag)
    }

    /// Returns a field's name, such as `ClOrdID`.
    pub fn field_name(&self, tag: u32) -> Option<&str> {
        self.field(tag).map(|field| field.name.as_str())
    }

    /// Returns the tag of the field with this name.
    pub fn tag(&self, name: &str) -> Option<u32> {
        let mut fields = self.schema.fields.iter();
        fields
            .find(|(_, field)| field.name == name)
            .map(|(tag, _)| *tag)
    }

    /// Returns a field's data type.
    pub fn data_type(&self, tag: u32) -> Option<DataType> {
        self.field(tag).map(|field| field.kind)
    }

    /// Returns the meaning of a value of a field, such as `Buy` for Side(54) = 1.
    pub fn value_name(&self, tag: u32, value: &[u8]) -> Option<&str> {
        let mut values = self.field(tag)?.values.iter();
        let known = values.find(|known| known.value.as_bytes() == value)?;
        Some(&known.name)
    }

    /// Returns the pairs of a length and a data field whose length the standard does not have, in
    /// the order of the length fields' tags. A length field has one data field. A decoder has to
    /// know these pairs: see [`Config::data_fields`](crate::session::Config::data_fields).
    pub fn data_fields(&self) -> Vec<(u32, u32)> {
        self.schema.own_data_fields()
    }

    /// Returns a message's declaration.
    pub fn message(&self, msg_type: &[u8]) -> Option<&MessageDef> {
        self.schema
            .messages
            .get(std::str::from_utf8(msg_type).ok()?)
    }

    /// Returns a message's name, such as `NewOrderSingle`.
    pub fn message_name(&self, msg_type: &[u8]) -> Option<&str> {
        self.message(msg_type).map(|message| message.name.as_str())
    }

    /// Returns the repeating group that `count_tag` counts in a message or in the header, for
    /// [`FieldSet::group_with`](crate::codec::FieldSet::group_with).
    pub fn group(&self, msg_type: &[u8], count_tag: u32) -> Option<DictGroup<'_>> {
        let in_message = self
            .block(msg_type)
            .and_then(|block| block.group(count_tag));
        let number = in_message.or_else(|| self.tables.header.group(count_tag))?;
        DictGroup::new(self, number)
    }

    #[inline(always)]
    pub(super) fn rule(&self, tag: u32) -> &Rule {
        self.tables.rules.get(tag)
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    #[inline]
    pub(super) fn block(&self, msg_type: &[u8]) -> Option<&compile::Block> {
        self.tables.messages.get(msg_type)
    }

    fn from_table(text: &str) -> Result<Self, LoadError> {
        Ok(Self::new(table::parse(text)?)?)
    }

    fn empty() -> Self {
        let schema = Schema::default();
        let tables = compile::compile(&schema).unwrap_or_default();
        Self { schema, tables }
    }
}

/// Reads QuickFIX-style or FIX Orchestra XML without compiling it. The schema may be merged on top
/// of another dictionary.
///
/// # Errors
/// Returns what is wrong with the text, and where.
pub fn schema_from_xml(text: &str) -> Result<Schema, LoadError> {
    read(&parse_xml(text)?)
}

/// Checks what the readers tolerate, as sessions do, and a generator of code does not: types that
/// are not known; in QuickFIX-style XML numbers of the version that are none, and a `required` that
/// is neither Y nor N; and in FIX Orchestra XML a `presence` that is none, and elements of
/// messages, components and groups that are not known. Returns the values that a list has more than
/// once, each with its place: the first one counts.
///
/// # Errors
/// Returns the first fault, and where it is.
pub fn check_xml(text: &str) -> Result<Vec<LoadError>, LoadError> {
    let document = parse_xml(text)?;
    match document.root_element().tag_name().name() {
        "fix" => quickfix::check(&document),
        _ => orchestra::check(&document),
    }
}

fn read(document: &Document) -> Result<Schema, LoadError> {
    let root = document.root_element();
    match root.tag_name().name() {
        "fix" => quickfix::read(document),
        "repository" => orchestra::read(document),
        other => {
            let root_name = other.to_owned();
            Err(LoadError::at(
                root,
                Cause::NotADictionary { root: root_name },
            ))
        }
    }
}

/// Returns the error with the place of the element that declares what it is about, if there is one.
fn placed(document: &Document, error: SchemaError) -> LoadError {
    let Some(name) = error.place() else {
        return error.into();
    };
    // Declarations have content, references have none.
    let declaration = document.descendants().find(|node| {
        let element = node.tag_name().name();
        let is_block = matches!(element, "message" | "component" | "group");
        is_block && node.has_children() && node.attribute("name") == Some(name)
    });
    match declaration {
        Some(node) => LoadError::at(node, Cause::Schema(error)),
        None => error.into(),
    }
}

/// A repeating group of a dictionary.
#[derive(Debug, Clone, Copy)]
pub struct DictGroup<'a> {
    dictionary: &'a Dictionary,
    rules: &'a GroupRules,
}

impl<'a> DictGroup<'a> {
    fn new(dictionary: &'a Dictionary, number: u32) -> Option<Self> {
        let rules = dictionary.tables.groups.get(number as usize)?;
        Some(Self { dictionary, rules })
    }

    /// Returns the nested group that a member counts.
    pub fn nested(&self, count_tag: u32) -> Option<Self> {
        let at = self.rules.tags.iter().position(|tag| *tag == count_tag)?;
        Self::new(self.dictionary, self.rules.members.get(at)?.group?)
    }

    /// Returns whether the tag is a direct member.
    pub fn has_member(&self, tag: u32) -> bool {
        self.rules.tags.contains(&tag)
    }
}

impl GroupSpec for DictGroup<'_> {
    fn delimiter(&self) -> u32 {
        self.rules.tags.first().copied().unwrap_or(0)
    }

    fn contains(&self, tag: u32) -> bool {
        self.rules.all.binary_search(&tag).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_load() {
        for version in Version::ALL {
            let dictionary = Dictionary::from_table(version.text()).unwrap();
            assert_eq!(dictionary.version(), version.name());
            assert!(dictionary.schema.messages.len() > 6, "{version:?}");
            assert_eq!(Version::from_name(version.name()), Some(version));
        }
    }

    #[test]
    fn listed_values_are_of_their_fields_types() {
        for version in Version::ALL {
            let dictionary = Dictionary::built_in(version);
            for (tag, field) in &dictionary.schema().fields {
                for value in field.values.iter().map(|listed| listed.value.as_str()) {
                    let fits = field.kind.accepts(value.as_bytes());
                    assert!(
                        fits,
                        "{version:?}: {tag}={value} is no {}",
                        field.kind.name()
                    );
                }
            }
        }
    }

    #[test]
    fn names_are_found() {
        let dictionary = Dictionary::built_in(Version::Fix44);
        assert_eq!(dictionary.field_name(11), Some("ClOrdID"));
        assert_eq!(dictionary.tag("ClOrdID"), Some(11));
        assert_eq!(dictionary.data_type(60), Some(DataType::UtcTimestamp));
        assert_eq!(dictionary.value_name(40, b"2"), Some("Limit"));
        assert_eq!(dictionary.value_name(40, b"?"), None);
        assert_eq!(dictionary.message_name(b"D"), Some("NewOrderSingle"));
        assert_eq!(dictionary.message_name(b"\xff"), None);
    }

    #[test]
    fn data_fields_of_the_standard_are_not_own_ones() {
        for version in Version::ALL {
            assert_eq!(
                Dictionary::built_in(version).data_fields(),
                [],
                "{version:?}"
            );
        }
    }

    #[test]
    fn groups_are_found_with_those_in_them() {
        let dictionary = Dictionary::built_in(Version::Fix44);
        let parties = dictionary.group(b"D", 453).unwrap();
        assert_eq!(parties.delimiter(), 448);
        assert_eq!(parties.nested(802).unwrap().delimiter(), 523);
        assert!(parties.contains(523) && !parties.has_member(523));
        assert!(!parties.contains(55));
        assert_eq!(dictionary.group(b"D", 627).unwrap().delimiter(), 628);
        assert!(dictionary.group(b"0", 453).is_none());
    }

    #[test]
    fn fields_of_the_session_layer_are_added_where_a_version_lacks_them() {
        let tags = [553, 554, 789, 369];
        let added = |version| -> Vec<u32> {
            let own = Dictionary::built_in(version);
            let more = own.with_session_fields(&tags).unwrap();
            more.map_or(Vec::new(), |more| {
                let logon = &more.message(b"A").unwrap().items;
                let known = own.message(b"A").unwrap().items.len();
                let mut items = logon[known..].to_vec();
                items.extend_from_slice(&more.schema.header[own.schema.header.len()..]);
                assert_eq!(more.field_name(553), Some("Username"));
                assert_eq!(more.version(), own.version());
                let tag = |item: &Item| match item {
                    Item::Field { tag, .. } => *tag,
                    other => panic!("{other:?}"),
                };
                items.iter().map(tag).collect()
            })
        };
        assert_eq!(added(Version::Fix40), tags);
        assert_eq!(added(Version::Fix41), tags);
        assert_eq!(added(Version::Fix42), [553, 554, 789]);
        assert_eq!(added(Version::Fix43), [789]);
        assert!(added(Version::Fix44).is_empty());
        assert!(added(Version::Fixt11).is_empty());
    }

    #[test]
    fn messages_of_five_go_over_the_transport() {
        let transport = Dictionary::built_in(Version::Fixt11);
        let sp2 = Dictionary::built_in(Version::Fix50Sp2)
            .over(&transport)
            .unwrap();
        assert!(sp2.message(b"D").is_some() && sp2.message(b"A").is_none());
        assert_eq!(sp2.rule(1128).section, compile::Section::Header);
        assert_eq!(sp2.rule(52).framing, compile::Membership::Required);
    }
}
