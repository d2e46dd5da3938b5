//! The plant's numbers of the feeds that are markets: of the feeds, and of their instruments.

use crate::config::Config;
use crate::feed::FeedError;
use crate::gateway::start_error::StartError;
use crate::market::config::FeedBook;
use crate::market::error::MarketError;
use crate::market::place::Place;
use fanfare_history::FeedInfo;
use fanfare_market::book::BookConfig;

/// The feeds of a configuration that are markets, with their numbers.
pub(crate) struct Numbering {
    /// The feeds in the order of their numbers.
    pub(crate) infos: Vec<FeedInfo>,
    /// The places of `[[feed]]`, with `None` for each that is no market.
    pub(crate) feeds: Vec<Option<Place>>,
    /// The places of `[[edge]]`.
    pub(crate) edges: Vec<Place>,
    /// The places of the feeds that are files.
    pub(crate) files: Vec<Place>,
    /// The places of the feeds that are received from a gateway of DBN's live protocol.
    pub(crate) live: Vec<Place>,
    /// The places of the feeds that are FIX sessions.
    pub(crate) sessions: Vec<Place>,
}

impl Numbering {
    /// Numbers the feeds of a configuration: first those that it receives, then edges, then files,
    /// of which the beginnings are read, then FIX sessions, then gateways of DBN's live protocol.
    ///
    /// # Errors
    /// Returns an error if a book is not possible, a file cannot be read, or no numbers are left.
    pub(crate) fn new(config: &Config) -> Result<Self, StartError> {
        let mut all = Numbered::default();
        let mut feeds = Vec::new();
        for feed in &config.feeds {
            let own = feed.book.clone().unwrap_or_default();
            feeds.push(match feed.mapping.is_some() {
                true => Some(all.add_feed(feed.channel(), &own)?),
                false => None,
            });
        }
        let mut edges = Vec::new();
        for edge in &config.edges {
            edges.push(all.add_feed(edge.channel.clone(), &edge.book)?);
        }
        let mut files = Vec::new();
        for (file, book) in config.files.iter().zip(config.file_books()?) {
            let most = file.source.most_instruments;
            files.push(all.add(file.channel.clone(), most, book)?);
        }
        let mut sessions = Vec::new();
        for session in &config.sessions {
            sessions.push(all.add_feed(session.channel.clone(), &session.book)?);
        }
        let mut live = Vec::new();
        for feed in &config.live {
            let book = feed.source.book().map_err(MarketError::from);
            let book = book.map_err(FeedError::from)?;
            let most = feed.source.most_instruments;
            live.push(all.add(feed.channel.clone(), most, book)?);
        }
        Ok(Self {
            infos: all.infos,
            feeds,
            edges,
            files,
            live,
            sessions,
        })
    }
}

/// The feeds numbered so far.
#[derive(Default)]
struct Numbered {
    infos: Vec<FeedInfo>,
    /// The number of the next instrument.
    instruments: u64,
}

impl Numbered {
    fn add_feed(&mut self, name: String, own: &FeedBook) -> Result<Place, FeedError> {
        let book = own.book().map_err(MarketError::from)?;
        self.add(name, own.most_instruments, book)
    }

    /// Adds a feed that has at most `most` instruments.
    fn add(&mut self, name: String, most: u32, book: BookConfig) -> Result<Place, FeedError> {
        let base = self.instruments;
        self.instruments += u64::from(most);
        // `InstrumentId::ALL` is `u32::MAX`, and never the number of one instrument.
        if u32::try_from(self.instruments).is_err() {
            return Err(FeedError::Instruments(self.instruments));
        }
        let base = base as u32;
        self.infos.push(FeedInfo { name, base, book });
        let source = u16::try_from(self.infos.len()).unwrap_or(u16::MAX);
        Ok(Place { source, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markets_and_edges_are_numbered_and_other_feeds_are_not() {
        let feed = |channel: &str, rest: &str| {
            format!(
                "[[feed]]\nchannel = \"{channel}\"\ntemplates = \"builtin:spectra\"\n\
                 lines = [\"239.1.1.1:5000\"]\n{rest}"
            )
        };
        let market = |most: u32| {
            format!("mapping = \"builtin:spectra\"\n[feed.book]\nmost_instruments = {most}\n")
        };
        let text = [
            feed("one", &market(7)),
            feed("messages", ""),
            feed("two", &market(5)),
            "[[edge]]\nchannel = \"three\"\n".to_owned(),
        ];
        let all = Numbering::new(&Config::from_toml(&text.concat()).unwrap()).unwrap();
        let place = |source, base| Place { source, base };
        assert_eq!(all.feeds, [Some(place(1, 0)), None, Some(place(2, 7))]);
        assert_eq!((all.edges, all.files), (vec![place(3, 12)], vec![]));
        let infos = all.infos.iter().map(|info| (&*info.name, info.base));
        let expected = [("one", 0), ("two", 7), ("three", 12)];
        assert_eq!(infos.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn more_instruments_than_there_are_numbers_are_refused() {
        let mut all = Numbered::default();
        let book = FeedBook::default().book().unwrap();
        let place = all.add("one".to_owned(), u32::MAX, book).unwrap();
        assert_eq!(place, Place { source: 1, base: 0 });
        let refused = all.add("two".to_owned(), 1, book).unwrap_err();
        assert!(matches!(refused, FeedError::Instruments(0x1_0000_0000)));
    }
}
