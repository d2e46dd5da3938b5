//! The feeds by name, which tell apart the instruments that several of them have under one name.

use super::view::{Seen, View};
use fanfare_history::FeedInfo;
use fanfare_market::book::BookKind;
use fanfare_market::instruments::{Directory, Lookup, Name, SecurityId};
use fanfare_market::{Event, InstrumentId};

/// The text before the name of a feed in Text(58).
const LABEL: &str = "feed=";

/// The feeds, in the order of their instruments' numbers.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Vec<Feed>);

#[derive(Debug)]
struct Feed {
    /// The number of its first instrument.
    base: u32,
    /// The kind of its books.
    kind: BookKind,
    /// [`LABEL`], and its name.
    text: Box<[u8]>,
}

impl Feed {
    fn name(&self) -> &[u8] {
        self.text.get(LABEL.len()..).unwrap_or_default()
    }
}

/// The instruments of the feed that a request names, or of all feeds: the first number, and the one
/// after the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OfFeed(Option<(u32, u32)>);

impl OfFeed {
    /// Returns whether an instrument is one of them.
    pub(crate) fn has(self, instrument: InstrumentId) -> bool {
        let is_in = |(first, end): (u32, u32)| (first..end).contains(&instrument.0);
        self.0.is_none_or(is_in)
    }

    /// Returns whether they are of all feeds.
    pub(crate) const fn is_all(self) -> bool {
        self.0.is_none()
    }
}

impl Feeds {
    pub(crate) fn new(feeds: &[FeedInfo]) -> Self {
        let all = feeds.iter().map(|feed| Feed {
            base: feed.base,
            kind: feed.book.kind(),
            text: format!("{LABEL}{}", feed.name).into_bytes().into(),
        });
        Self(all.collect())
    }

    /// Returns the instruments of the feed with this name, or of all feeds without a name.
    ///
    /// # Errors
    /// Returns a text for the user if no feed has the name.
    pub(crate) fn of_name(&self, name: Option<&[u8]>) -> Result<OfFeed, String> {
        let Some(name) = name else {
            return Ok(OfFeed::default());
        };
        let place = self.0.iter().position(|feed| feed.name() == name);
        let rest = place.and_then(|place| self.0.get(place..));
        match rest {
            Some([feed, behind @ ..]) => {
                let end = behind.first().map_or(u32::MAX, |next| next.base);
                Ok(OfFeed(Some((feed.base, end))))
            }
            _ => Err(format!("unknown Feed(20014) {}", name.escape_ascii())),
        }
    }

    /// Returns the feeds that a request names, each with its [`Event::source`].
    fn of(&self, named: OfFeed) -> impl Iterator<Item = (u16, &Feed)> {
        let all = (1..).zip(&self.0);
        all.filter(move |(_, feed)| named.has(InstrumentId(feed.base)))
    }

    /// Returns the kinds of the books of the feeds that a request names.
    pub(crate) fn kinds(&self, named: OfFeed) -> impl Iterator<Item = BookKind> {
        self.of(named).map(|(_, feed)| feed.kind)
    }

    /// Returns the [`Event::source`] of each feed that a request names.
    pub(crate) fn sources(&self, named: OfFeed) -> impl Iterator<Item = u16> {
        self.of(named).map(|(source, _)| source)
    }

    /// Returns whether a request names the feed with this [`Event::source`].
    pub(crate) fn names(&self, named: OfFeed, source: u16) -> bool {
        named.is_all() || self.sources(named).any(|own| own == source)
    }

    /// Returns whether the feed of an instrument has books of orders.
    pub(crate) fn has_orders(&self, instrument: InstrumentId) -> bool {
        let feed = self.place(instrument).and_then(|place| self.0.get(place));
        feed.is_some_and(|feed| feed.kind == BookKind::Orders)
    }

    /// Returns the index of the feed of an instrument.
    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        self.0.iter().rposition(|feed| feed.base <= instrument.0)
    }

    /// Returns all instruments of a name, if there are several feeds.
    fn namesakes(&self, directory: &Directory, name: &Name<'_>) -> Vec<InstrumentId> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        let has_it = |id: &InstrumentId| {
            let known = directory.instrument(*id);
            known.is_some_and(|known| known.definition.name == *name)
        };
        match name.id {
            SecurityId::None => directory.of_symbol(name.symbol).filter(has_it).collect(),
            id => directory.of_id(id, name.source).filter(has_it).collect(),
        }
    }

    /// Returns the feed of an instrument whose name other feeds have, too.
    fn apart(&self, directory: &Directory, instrument: InstrumentId) -> Option<&Feed> {
        if self.0.len() < 2 {
            return None;
        }
        let known = directory.instrument(instrument)?;
        let found = self.namesakes(directory, &known.definition.name);
        let place = self.place(instrument).filter(|_| found.len() > 1)?;
        self.0.get(place)
    }

    /// Returns the name of the feed of an instrument whose name other feeds have, too.
    pub(crate) fn name(&self, directory: &Directory, instrument: InstrumentId) -> Option<&[u8]> {
        Some(self.apart(directory, instrument)?.name())
    }

    /// Returns Text(58) of an instrument whose name other feeds have, too.
    pub(crate) fn text(&self, directory: &Directory, instrument: InstrumentId) -> Option<&[u8]> {
        Some(&self.apart(directory, instrument)?.text)
    }

    /// Returns the names of all feeds that have an instrument of this one's name, if there are
    /// several.
    pub(crate) fn several(
        &self,
        directory: &Directory,
        instrument: InstrumentId,
    ) -> Option<String> {
        let known = directory.instrument(instrument)?;
        let found = self.namesakes(directory, &known.definition.name);
        let feeds = found.iter().filter_map(|id| self.0.get(self.place(*id)?));
        let names: Vec<_> = feeds
            .map(|feed| String::from_utf8_lossy(feed.name()))
            .collect();
        (names.len() > 1).then(|| names.join(", "))
    }

    /// Sets the feed of all instruments of the names of new or renamed ones that several feeds
    /// have. Messages about them have it from then on. Returns the instruments that have
    /// subscriptions and had no feed before.
    pub(crate) fn tell_apart(
        &self,
        view: &mut View,
        directory: &Directory,
        added: &[InstrumentId],
    ) -> Vec<InstrumentId> {
        let mut told = Vec::new();
        for instrument in added {
            let Some(known) = directory.instrument(*instrument) else {
                continue;
            };
            let found = self.namesakes(directory, &known.definition.name);
            for id in found.iter().filter(|_| found.len() > 1) {
                let place = self.place(*id).and_then(|place| u16::try_from(place).ok());
                let own = &mut view.open(*id).own;
                if std::mem::replace(&mut own.feed, place) != place && !own.classes.is_empty() {
                    told.push(*id);
                }
            }
        }
        told
    }

    /// Removes the feed of an instrument without subscriptions whose name no other feed has any
    /// longer. Within a subscription its messages keep the feed, because readers may take messages
    /// without it for those of another book.
    pub(crate) fn forget_alone(
        &self,
        view: &mut View,
        directory: &Directory,
        instrument: InstrumentId,
    ) {
        if let Some(seen) = view.get_mut(instrument)
            && seen.own.feed.is_some()
            && seen.own.classes.is_empty()
            && self.apart(directory, instrument).is_none()
        {
            seen.own.feed = None;
        }
    }

    /// Returns the name of the feed that messages about an instrument have, if they have one.
    #[inline]
    pub(crate) fn told(&self, seen: Option<&Seen>) -> Option<&[u8]> {
        self.told_name(seen?.own.feed)
    }

    /// Returns the name of the feed with this [`Event::source`], if there are several feeds.
    pub(crate) fn of_source(&self, source: u16) -> Option<&[u8]> {
        let place = source.checked_sub(1).filter(|_| self.0.len() > 1);
        self.told_name(place)
    }

    fn told_name(&self, place: Option<u16>) -> Option<&[u8]> {
        Some(self.0.get(usize::from(place?))?.name())
    }

    /// Returns as many of the first events as one message may have, and the name of the feed that
    /// it has.
    pub(crate) fn alike<'e>(
        &self,
        view: &View,
        events: &'e [Event],
    ) -> (&'e [Event], Option<&[u8]>) {
        let place = |event: &Event| view.get(event.instrument)?.own.feed;
        let first = events.first().and_then(place);
        let alike = events.iter().take_while(|event| place(event) == first);
        let alike = events.get(..alike.count()).unwrap_or(events);
        (alike, self.told_name(first))
    }
}
