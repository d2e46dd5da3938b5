//! The check that each DDS topic of a gateway has one type.

use super::Config;
use super::error::{ConfigError, range};
use crate::dds::endpoint::Participant;
use crate::dds::sample;
use crate::edges::sample::{snapshots_type, steps_type};
use crate::feed;
use crate::gateway::start_error::StartError;
use fanfare_dds::types::StructType;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The types of topics, with the first table that names each of them. Tables with one domain and
/// one interface share their topics, whatever their partitions.
#[derive(Default)]
struct TopicTypes<'a> {
    first: HashMap<(u32, &'a str, String), (String, Arc<StructType>)>,
}

impl<'a> TopicTypes<'a> {
    /// Adds a topic of a table.
    fn add(
        &mut self,
        table: &str,
        at: Participant<'a>,
        topic: String,
        of: &Arc<StructType>,
    ) -> Result<(), ConfigError> {
        match self.first.entry((at.domain, at.interface, topic)) {
            Entry::Vacant(free) => {
                free.insert((table.to_owned(), Arc::clone(of)));
                Ok(())
            }
            Entry::Occupied(used) => {
                let (first, its) = used.get();
                let rule = format!(
                    "is a topic of {first} too, with another type, in domain {}",
                    at.domain
                );
                range(table, &used.key().2, its == of, &rule)
            }
        }
    }
}

impl Config {
    /// Checks that the topics whose names are in the tables have one type each.
    pub(super) fn check_topic_prefixes(&self) -> Result<(), ConfigError> {
        self.prefixed().map(|_| ())
    }

    /// Checks that all topics have one type each. Those of `[feed.publish]` are made from the
    /// templates, which are read for this.
    pub(crate) fn check_topics(&self) -> Result<(), StartError> {
        let mut all = self.prefixed()?;
        for feed in &self.feeds {
            let Some(publish) = &feed.publish else {
                continue;
            };
            let table = format!("feed.publish of {}", feed.channel());
            for (topic, of) in feed::topics(feed, publish)? {
                all.add(&table, publish.participant(), topic, &of)?;
            }
        }
        Ok(())
    }

    fn prefixed(&self) -> Result<TopicTypes<'_>, ConfigError> {
        let mut all = TopicTypes::default();
        let message = Arc::new(sample::sample_type());
        let ends = [
            ("dds.publish", &self.dds.publish),
            ("dds.subscribe", &self.dds.subscribe),
        ];
        for (table, end) in ends {
            let Some(end) = end else {
                continue;
            };
            for msg_type in &end.msg_types {
                let topic = sample::topic_name(&end.topics, msg_type);
                all.add(table, end.participant(), topic, &message)?;
            }
        }
        let market = [
            ("Steps", Arc::new(steps_type())),
            ("Snapshots", Arc::new(snapshots_type())),
        ];
        let of_feeds = self.feeds.iter().filter_map(|feed| {
            let edges = feed.edges.as_ref()?;
            let table = format!("feed.edges of {}", feed.channel());
            Some((table, edges.participant(), &edges.topics))
        });
        let of_edges = self.edges.iter().map(|edge| {
            let table = format!("edge of {}", edge.channel);
            (table, edge.participant(), &edge.topics)
        });
        for (table, at, prefix) in of_feeds.chain(of_edges) {
            for (name, of) in &market {
                all.add(&table, at, format!("{prefix}_{name}"), of)?;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: &str = "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.2.1:13014\"]\n\
                        channel = \"forts\"\nmapping = \"builtin:spectra\"\n[feed.edges]\n";

    fn told(text: &str) -> Option<String> {
        Config::from_toml(text).err().map(|error| error.to_string())
    }

    #[test]
    fn a_topic_of_messages_and_of_edges_is_refused_with_both_tables() {
        let dds = |more: &str| {
            format!("{FEED}[dds.publish]\ntopics = \"Market\"\nmsg_types = [\"Steps\"]\n{more}")
        };
        let why = "`feed.edges of forts` = Market_Steps: is a topic of dds.publish too, with \
                   another type, in domain 0";
        assert_eq!(told(&dds("")).as_deref(), Some(why));
        assert_eq!(told(&dds("domain = 1\n")), None);
        assert_eq!(told(&dds("interface = \"10.0.0.1\"\n")), None);
        let edge = "[[edge]]\nchannel = \"other\"\n[dds.subscribe]\ntopics = \"Market\"\n\
                    msg_types = [\"W\", \"Steps\"]\n";
        let why = "`edge of other` = Market_Steps: is a topic of dds.subscribe too, with \
                   another type, in domain 0";
        assert_eq!(told(edge).as_deref(), Some(why));
    }

    #[test]
    fn tables_may_share_topics_of_one_type() {
        let both = "[dds.publish]\n[dds.subscribe]\n[[edge]]\nchannel = \"other\"\n";
        assert_eq!(told(&format!("{FEED}{both}")), None);
    }

    /// Returns why two feeds with `[feed.publish]` are refused, the second with these keys.
    fn told_of_feeds(templates: &str, keys: &str) -> Option<String> {
        let feed = |name: &str, templates: &str, keys: &str| {
            format!(
                "[[feed]]\ntemplates = \"builtin:{templates}\"\nlines = [\"239.1.2.1:1{name}\"]\n\
                 channel = \"c{name}\"\n[feed.publish]\n{keys}"
            )
        };
        let text = feed("1", "simple", "") + &feed("2", templates, keys);
        let config = Config::from_toml(&text).unwrap();
        let error = config.check_files().err()?;
        let why = std::error::Error::source(&error);
        Some(why.map_or_else(|| error.to_string(), ToString::to_string))
    }

    #[test]
    fn topics_of_two_feeds_have_one_type() {
        assert_eq!(told_of_feeds("simple", ""), None);
        assert_eq!(
            told_of_feeds("simple", "module = \"Own\"\ndomain = 3\n"),
            None
        );
        let why = "`feed.publish of c2` = Quote: is a topic of feed.publish of c1 too, with \
                   another type, in domain 0";
        let told = told_of_feeds("simple", "module = \"Own\"\n");
        assert_eq!(told.as_deref(), Some(why));
    }

    #[test]
    fn a_topic_of_templates_and_of_messages_is_refused() {
        let text = "[feed]\ntemplates = \"builtin:complex\"\nlines = [\"239.1.2.1:13014\"]\n\
                    channel = \"c\"\n[feed.publish]\n[dds.publish]\ntopics = \"MarketData\"\n\
                    msg_types = [\"7\"]\n";
        let config = Config::from_toml(text).unwrap();
        let error = config.check_files().unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        let expected = "`feed.publish of c` = MarketData_7: is a topic of dds.publish too, with \
                        another type, in domain 0";
        assert_eq!(why, expected);
        let apart = text.replace("[dds.publish]\n", "[dds.publish]\ndomain = 1\n");
        Config::from_toml(&apart).unwrap().check_files().unwrap();
    }
}
