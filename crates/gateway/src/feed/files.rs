//! The files that a feed names: templates and dictionaries, and the types of its topics.

use super::FeedError;
use super::config::{Feed, FeedTopics};
use super::feed_notice::FeedNotice;
use crate::market;
use crate::notice::{self, Notice, Notices};
use fanfare_dds::fast::{Mapping, TemplateType};
use fanfare_dds::types::StructType;
use fanfare_engine::feed::OpenError;
use fanfare_engine::regular;
use fanfare_engine::settings::read_dictionary;
use fanfare_fast::Program;
use fanfare_fast::template::limits::MAX_BYTES;
use fanfare_fix::dict::{Dictionary, Version};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The longest template file, in bytes: in UTF-16, the longest document allowed.
const MOST_TEMPLATES: u64 = 2 * MAX_BYTES as u64 + 2;

/// Reads the templates and dictionaries that a feed names, and makes the types of its topics.
pub(crate) fn check(feed: &Feed) -> Result<(), FeedError> {
    // What a lenient reading ignores and dictionaries of other versions are reported at the start.
    let (notices, _) = notice::channel();
    let program = Arc::new(templates(feed, &notices)?);
    let checked = feed.receiver().channel.check(&program);
    checked.map_err(OpenError::from)?;
    dictionaries(feed, &notices)?;
    if feed.mapping.is_some() {
        market::check(feed, &program)?;
    }
    if let Some(topics) = &feed.publish {
        mapping(topics, program)?;
    }
    Ok(())
}

/// Returns the types of the templates' topics.
pub(crate) fn mapping(topics: &FeedTopics, program: Arc<Program>) -> Result<Mapping, FeedError> {
    let mapping = Mapping::new(program, &topics.types())?;
    match topics.keyed && !mapping.types().any(TemplateType::is_keyed) {
        true => Err(FeedError::Key(topics.key.clone())),
        false => {
            topics.distribution().check(&mapping)?;
            Ok(mapping)
        }
    }
}

/// Reads the templates of a feed, and returns the topics that it publishes with their types.
pub(crate) fn topics(
    feed: &Feed,
    publish: &FeedTopics,
) -> Result<Vec<(String, Arc<StructType>)>, FeedError> {
    let (notices, _) = notice::channel();
    let mapping = mapping(publish, Arc::new(templates(feed, &notices)?))?;
    let distribution = publish.distribution();
    let carried = mapping.types().filter(|t| distribution.carries(t));
    let named = |t: &TemplateType| {
        let names = distribution.topics(t).into_iter();
        let sample = Arc::clone(&t.sample);
        names.map(move |name| (name, Arc::clone(&sample)))
    };
    Ok(carried.flat_map(named).collect())
}

/// Reads templates from a file, or returns those that are built in.
pub(crate) fn templates(feed: &Feed, notices: &Notices) -> Result<Program, FeedError> {
    let name = &feed.templates;
    let cannot = |e| FeedError::Templates(name.clone(), e);
    let of_file;
    let text = match fanfare_fast::builtin::find(name) {
        Some(text) => text,
        None if name.starts_with("builtin:") => return Err(FeedError::NoBuiltin(name.clone())),
        None => {
            let bytes = regular::read(Path::new(name), MOST_TEMPLATES);
            let bytes = bytes.map_err(|e| FeedError::Read(name.clone(), e))?;
            of_file = fanfare_fast::template::decode(&bytes).map_err(cannot)?;
            &of_file
        }
    };
    if !feed.has_lenient_templates() {
        return Program::parse(text).map_err(cannot);
    }
    let (program, deviations) = Program::parse_lenient(text).map_err(cannot)?;
    if let Some(first) = deviations.first().first() {
        notices.send(Notice::LeftOutOfTemplates {
            templates: name.clone(),
            what: first.clone(),
            more: deviations.count() - 1,
        });
    }
    Ok(program)
}

/// Reads the dictionaries of the configuration, by version. One of another built-in version is
/// used, with a notice.
pub(super) fn dictionaries<'a>(
    feed: &'a Feed,
    notices: &Notices,
) -> Result<HashMap<&'a str, Arc<Dictionary>>, FeedError> {
    let mut all = HashMap::new();
    for (version, file) in &feed.dictionaries {
        let name = file.display().to_string();
        let text = regular::open(file).and_then(|_| read_dictionary(file));
        let text = text.map_err(|e| FeedError::ReadDictionary(name.clone(), e))?;
        let dictionary =
            Dictionary::from_xml(&text).map_err(|e| FeedError::Dictionary(name.clone(), e))?;
        let found = Version::from_name(dictionary.version()).map(Version::name);
        // Not every file of FIX.5.0 names its service pack.
        if let Some(found) = found.filter(|found| !version.starts_with(found)) {
            notices.send(Notice::Feed(FeedNotice::Dictionary {
                dictionary: name,
                found,
                version: version.clone(),
            }));
        }
        all.insert(version.as_str(), Arc::new(dictionary));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use fanfare_peers::Scratch;

    #[test]
    fn a_dictionary_of_another_version_is_used_and_named() {
        let file = Scratch::new("dictionary.xml");
        file.write("<fix major='4' minor='2'><fields/><messages/></fix>");
        let path = file.display();
        let text = format!(
            "[feed]\ntemplates = \"builtin:simple\"\nlines = [\"224.1.2.133:13014\"]\n\
             [feed.dictionaries]\n\"FIX.4.2\" = \"{path}\"\n\"FIX.4.4\" = \"{path}\"\n"
        );
        let config = Config::from_toml(&text).unwrap();
        let (notices, received) = notice::channel();
        let own = dictionaries(&config.feeds[0], &notices).unwrap();
        assert_eq!(own["FIX.4.4"].version(), "FIX.4.2");
        let told: Vec<_> = received.iter().map(|notice| notice.to_string()).collect();
        let expected =
            format!("feed: {path}: the dictionary is of FIX.4.2, the messages are of FIX.4.4");
        assert_eq!(told, [expected]);
    }

    #[test]
    fn two_topics_of_one_name_are_told_by_the_check() {
        let file = Scratch::new("templates.xml");
        file.write(
            "<templates><template name='Quote' id='1'><uInt32 name='MsgSeqNum' id='34'/></template>\
             <template name='DoneToken' id='2'><uInt32 name='MsgSeqNum' id='34'/></template>\
             </templates>",
        );
        let text = format!(
            "[feed]\ntemplates = \"{}\"\nlines = [\"224.1.2.133:13014\"]\n[feed.publish]\n",
            file.display()
        );
        let config = Config::from_toml(&text).unwrap();
        let why = check(&config.feeds[0]).unwrap_err().to_string();
        assert!(
            why.contains("topic \"DoneToken\" would have two uses"),
            "{why}"
        );
    }

    #[test]
    fn the_sequence_of_lines_with_snapshots_is_checked_too() {
        let text = "[feed]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.2.1:13014\"]\n\
                    mapping = \"builtin:spectra\"\n\
                    [feed.snapshot]\nlines = [\"239.1.2.3:13016\"]\nsequence = \"Numbers\"\n";
        let config = Config::from_toml(text).unwrap();
        let error = check(&config.feeds[0]).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains("`Numbers`"), "{why}");
    }
}
