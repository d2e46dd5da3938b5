//! MarketDataRequest(V), parsed, and its faults.

use super::contract::Contract;
use super::entry_types::EntryTypes;
use super::patterns::Pattern;
use fanfare_fix::codec::{FieldSet, GroupSpec, Message};
use fanfare_fix::dict::{DictGroup, Dictionary};
use fanfare_fix::session::{BusinessReason, RejectReason};
use fanfare_market::InstrumentId;
use fanfare_market::instruments::{Directory, IdSource, Lookup, SecurityId};
use fanfare_wire::int;

/// The longest MDReqID(262) and other IDs of requests, in bytes.
const LONGEST_ID: usize = 64;

/// The longest prefix of a Symbol(55) in a request, in bytes.
const LONGEST_PREFIX: usize = 64;

/// User-defined fields of a MarketDataRequest(V).
const DELIVERY_CONTRACT: u32 = 20010;
pub(crate) const INTERVAL: u32 = 20011;
const CHECKSUM_EVERY: u32 = 20012;
/// User-defined field of W and X.
pub(crate) const BOOK_CHECKSUM: u32 = 20013;
/// User-defined field of requests, and of messages about an instrument that several feeds have.
pub(crate) const FEED: u32 = 20014;

/// The longest interval, in milliseconds.
const LONGEST_INTERVAL: u32 = 3_600_000;

/// A MarketDataRequest(V).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MarketDataRequest<'m> {
    /// MDReqID(262).
    pub(crate) id: &'m [u8],
    pub(crate) what: What<'m>,
}

/// SubscriptionRequestType(263).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What<'m> {
    /// 0 and 1: snapshots, and with 1 their changes.
    Open(Wanted<'m>),
    /// 2: the end of a subscription.
    Stop,
}

/// The contents that a request selects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'m> {
    /// Whether updates follow: 263=1.
    pub(crate) changes: bool,
    /// MarketDepth(264), or 0 for all.
    pub(crate) depth: u16,
    /// Whether only snapshots are sent: MDUpdateType(265)=0.
    pub(crate) snapshots: bool,
    /// Whether orders are sent instead of levels: AggregatedBook(266)=N.
    pub(crate) by_order: bool,
    pub(crate) entries: EntryTypes,
    pub(crate) instruments: Vec<Named<'m>>,
    /// The name of the feed that has them, or `None` for any feed.
    pub(crate) feed: Option<&'m [u8]>,
    pub(crate) contract: Option<Contract>,
    /// The milliseconds between two updates.
    pub(crate) interval: u32,
    pub(crate) checksum_every: u32,
}

/// The name of instruments in a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'m> {
    /// By Symbol(55): one, a prefix, or all.
    Symbols(Pattern),
    /// By SecurityID(48).
    Id(NamedId<'m>),
    /// By `@NAME`: a list of the configuration.
    List(&'m [u8]),
}

/// An ID in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedId<'m> {
    /// SecurityID(48).
    pub(crate) id: SecurityId<'m>,
    /// SecurityIDSource(22).
    pub(crate) source: IdSource,
    /// The Symbol(55) beside the ID, unless it is [`NO_SYMBOL`].
    pub(crate) symbol: Option<&'m [u8]>,
}

impl NamedId<'_> {
    /// Returns the instruments with the ID and, if the request names one, the symbol. Allocates.
    pub(crate) fn find(self, directory: &Directory) -> Vec<InstrumentId> {
        let fits = |id: &InstrumentId| {
            self.symbol.is_none_or(|symbol| {
                let known = directory.instrument(*id);
                known.is_some_and(|known| known.definition.name.symbol == symbol)
            })
        };
        let found = directory.of_id(self.id, self.source);
        found.filter(fits).collect()
    }
}

/// The Symbol(55) of an instrument that has none.
const NO_SYMBOL: &[u8] = b"[N/A]";

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A Reject(3).
    Reject(RejectReason, u32),
    /// A BusinessMessageReject(j).
    Business(BusinessReason, String),
    /// A MarketDataRequestReject(Y): MDReqRejReason(281), if one fits, and Text(58).
    Refused(Option<u8>, String),
}

impl Fault {
    /// Returns the fault for a MarketDataRequestReject(Y).
    pub(crate) fn refused(reason: u8, text: impl Into<String>) -> Self {
        Self::Refused(Some(reason), text.into())
    }

    /// Formats the fault as text.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Reject(reason, tag) => format!("{} ({tag})", reason.text()),
            Self::Business(_, text) | Self::Refused(_, text) => text.clone(),
        }
    }
}

/// Text(58) of the response to a request without instruments.
pub(crate) const NONE_MATCHES: &str = "no instrument matches";

/// MDReqRejReason(281).
pub(crate) mod reason {
    pub(crate) const UNKNOWN_SYMBOL: u8 = b'0';
    pub(crate) const DUPLICATE_ID: u8 = b'1';
    pub(crate) const BANDWIDTH: u8 = b'2';
    pub(crate) const PERMISSION: u8 = b'3';
    pub(crate) const REQUEST_TYPE: u8 = b'4';
    pub(crate) const DEPTH: u8 = b'5';
    pub(crate) const UPDATE_TYPE: u8 = b'6';
    pub(crate) const AGGREGATED: u8 = b'7';
    pub(crate) const ENTRY_TYPE: u8 = b'8';
}

const MISSING: RejectReason = RejectReason::RequiredTagMissing;
const EMPTY: RejectReason = RejectReason::TagWithoutValue;
const INCORRECT: RejectReason = RejectReason::ValueIncorrect;
const FORMAT: RejectReason = RejectReason::DataFormat;
const COUNT: RejectReason = RejectReason::NumInGroup;

/// The fields of a request whose format is checked.
struct Fields<'a, 'm> {
    message: &'a Message<'m>,
    dictionary: &'a Dictionary,
}

impl<'m> MarketDataRequest<'m> {
    /// Parses a request of a version.
    ///
    /// # Errors
    /// Returns the field that is missing or invalid.
    pub(crate) fn read(message: &Message<'m>, dictionary: &Dictionary) -> Result<Self, Fault> {
        let fields = Fields {
            message,
            dictionary,
        };
        let id = fields.id(262)?;
        let kind = message.get(263).ok_or(Fault::Reject(MISSING, 263))?;
        let what = match kind {
            b"0" => What::Open(fields.wanted(false)?),
            b"1" => What::Open(fields.wanted(true)?),
            b"2" => What::Stop,
            _ => {
                let text = "SubscriptionRequestType(263) must be 0, 1 or 2";
                return Err(Fault::refused(reason::REQUEST_TYPE, text));
            }
        };
        Ok(Self { id, what })
    }
}

/// Returns the fault of a session that has ended.
pub(crate) fn gone() -> Fault {
    Fault::Business(
        BusinessReason::ApplicationNotAvailable,
        "the session has no market data service".to_owned(),
    )
}

/// Returns an ID that a response repeats.
pub(crate) fn id<'m>(message: &Message<'m>, tag: u32) -> Result<&'m [u8], Fault> {
    let id = message.get(tag).ok_or(Fault::Reject(MISSING, tag))?;
    match id.len() {
        0 => Err(Fault::Reject(EMPTY, tag)),
        1..=LONGEST_ID => Ok(id),
        _ => Err(Fault::Reject(INCORRECT, tag)),
    }
}

/// Parses the names of instruments in the fields of a request or of an entry. Returns `None` if
/// there are none.
pub(crate) fn named<'m>(fields: &FieldSet<'m>) -> Result<Option<Named<'m>>, Fault> {
    if let Some(id) = fields.get(48) {
        let source = fields.get(22).unwrap_or_default();
        let source = IdSource::parse(source).ok_or(Fault::Reject(INCORRECT, 22))?;
        return Ok(Some(Named::Id(NamedId {
            id: SecurityId::parse(id),
            source,
            symbol: fields.get(55).filter(|symbol| *symbol != NO_SYMBOL),
        })));
    }
    let Some(symbol) = fields.get(55) else {
        return Ok(None);
    };
    if let Some(list) = symbol.strip_prefix(b"@") {
        return Ok(Some(Named::List(list)));
    }
    match Pattern::parse(symbol) {
        Pattern::Prefix(prefix) if prefix.len() > LONGEST_PREFIX => {
            Err(Fault::Reject(INCORRECT, 55))
        }
        pattern => Ok(Some(Named::Symbols(pattern))),
    }
}

impl<'m> Fields<'_, 'm> {
    fn id(&self, tag: u32) -> Result<&'m [u8], Fault> {
        id(self.message, tag)
    }

    fn wanted(&self, changes: bool) -> Result<Wanted<'m>, Fault> {
        let depth = self.number(264, u32::MAX)?;
        let depth = depth.ok_or(Fault::Reject(MISSING, 264))?;
        let depth = u16::try_from(depth).map_err(|_| {
            let text = "MarketDepth(264) must be at most 65535";
            Fault::refused(reason::DEPTH, text)
        })?;
        let snapshots = match self.message.get(265) {
            None => !changes,
            Some(b"0") => true,
            Some(b"1") => !changes,
            Some(_) => {
                let text = "MDUpdateType(265) must be 0 or 1";
                return Err(Fault::refused(reason::UPDATE_TYPE, text));
            }
        };
        let by_order = match self.message.get(266) {
            None | Some(b"Y") => false,
            Some(b"N") => true,
            Some(_) => return Err(Fault::Reject(FORMAT, 266)),
        };
        let contract = self.message.get(DELIVERY_CONTRACT).map(|name| {
            let contract = Contract::of_name(name);
            contract.ok_or(Fault::Reject(INCORRECT, DELIVERY_CONTRACT))
        });
        Ok(Wanted {
            changes,
            depth,
            snapshots,
            by_order,
            entries: self.entries()?,
            instruments: self.instruments()?,
            feed: self.message.get(FEED),
            contract: contract.transpose()?,
            interval: self.number(INTERVAL, LONGEST_INTERVAL)?.unwrap_or(0),
            checksum_every: self.number(CHECKSUM_EVERY, u32::MAX)?.unwrap_or(0),
        })
    }

    fn number(&self, tag: u32, most: u32) -> Result<Option<u32>, Fault> {
        let Some(text) = self.message.get(tag) else {
            return Ok(None);
        };
        let number = int::parse_u64(text).ok_or(Fault::Reject(FORMAT, tag))?;
        match u32::try_from(number) {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(Fault::Reject(INCORRECT, tag)),
        }
    }

    fn entries(&self) -> Result<EntryTypes, Fault> {
        let mut all = EntryTypes::NONE;
        for entry in self.group(267)? {
            let value = entry.get(269).unwrap_or_default();
            let is_known = self.dictionary.fits(269, value);
            let (&[entry], true) = (value, is_known) else {
                let text = format!("unknown MDEntryType(269) {}", value.escape_ascii());
                return Err(Fault::refused(reason::ENTRY_TYPE, text));
            };
            all = all.with(entry);
        }
        match all.is_empty() {
            true => Err(Fault::Reject(COUNT, 267)),
            false => Ok(all),
        }
    }

    fn instruments(&self) -> Result<Vec<Named<'m>>, Fault> {
        let mut all = Vec::new();
        for entry in self.group(146)? {
            all.push(named(&entry)?.ok_or(Fault::Reject(MISSING, 55))?);
        }
        match all.is_empty() {
            true => Err(Fault::Reject(COUNT, 146)),
            false => Ok(all),
        }
    }

    /// Returns the entries of a group that the request must have.
    fn group(&self, count: u32) -> Result<Vec<FieldSet<'m>>, Fault> {
        let place = self.message.position(count);
        let place = place.ok_or(Fault::Reject(MISSING, count))?;
        let first = self.message.tags().get(place + 1).copied().unwrap_or(0);
        let spec = AsSent {
            group: self.dictionary.group(b"V", count),
            first,
        };
        let fields: &FieldSet<'m> = self.message;
        let group = fields.group_with(count, &spec);
        let group = group.map_err(|error| {
            match int::parse_u64(self.message.get(count).unwrap_or_default()) {
                Some(_) => Fault::Reject(COUNT, error.tag),
                None => Fault::Reject(FORMAT, error.tag),
            }
        })?;
        Ok(group.collect())
    }
}

/// A group of the dictionary whose entries begin with the field that they were sent with, because
/// clients leave out a Symbol(55) that the version does not require.
struct AsSent<'d> {
    group: Option<DictGroup<'d>>,
    first: u32,
}

impl GroupSpec for AsSent<'_> {
    fn delimiter(&self) -> u32 {
        self.first
    }

    fn contains(&self, tag: u32) -> bool {
        self.group.as_ref().is_some_and(|group| group.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::{Decoder, SendingTime, SessionHeader, SharedBody, SharedFrame};
    use fanfare_fix::dict::Version;
    use fanfare_wire::{Precision, UtcTimestamp};

    fn read(body: &str, then: impl FnOnce(Result<MarketDataRequest<'_>, Fault>)) {
        let body = body.replace('|', "\x01");
        let header = SessionHeader::new(b"FIX.4.4", b"C", b"P").unwrap();
        let time = SendingTime::new(UtcTimestamp::from_nanos(0), Precision::Millis);
        let mut frame = SharedFrame::new(4096);
        frame
            .load(&SharedBody::new(b"V", body.as_bytes()).unwrap())
            .unwrap();
        let mut decoder = Decoder::new();
        let message = decoder.decode(frame.patch(&header, 2, &time)).unwrap();
        then(MarketDataRequest::read(
            &message,
            &Dictionary::built_in(Version::Fix44),
        ));
    }

    #[test]
    fn a_request_says_what_it_wants() {
        let body = "262=r1|263=1|264=5|265=1|267=2|269=0|269=1|146=4|55=RIU3|55=SI*|55=@blue|\
                    55=[N/A]|48=17|22=8|20010=skip|20012=10|";
        read(body, |request| {
            let request = request.unwrap();
            let What::Open(wanted) = request.what else {
                panic!("{request:?}");
            };
            assert_eq!((request.id, wanted.depth), (&b"r1"[..], 5));
            assert!(wanted.changes && !wanted.snapshots && !wanted.by_order);
            assert!(wanted.entries.has(b'0') && !wanted.entries.has(b'2'));
            let named = [
                Named::Symbols(Pattern::Symbol((*b"RIU3").into())),
                Named::Symbols(Pattern::Prefix((*b"SI").into())),
                Named::List(b"blue"),
                Named::Id(NamedId {
                    id: SecurityId::Number(17),
                    source: IdSource::parse(b"8").unwrap(),
                    symbol: None,
                }),
            ];
            assert_eq!(wanted.instruments, named);
            assert_eq!(
                (wanted.contract, wanted.checksum_every),
                (Some(Contract::Skip), 10)
            );
        });
        read("262=r1|263=2|", |request| {
            assert_eq!(request.unwrap().what, What::Stop);
        });
    }

    #[test]
    fn what_is_wrong_is_named() {
        const GOOD: &str = "267=1|269=0|146=1|55=A|";
        let long = format!("262={}|263=1|264=1|{GOOD}", "r".repeat(65));
        let prefix = "A".repeat(65);
        let long_prefix = format!("262=r|263=1|264=1|267=1|269=0|146=1|55={prefix}*|");
        for (body, expected) in [
            ("263=1|264=1|", Fault::Reject(MISSING, 262)),
            ("262=|263=2|", Fault::Reject(EMPTY, 262)),
            (&*long, Fault::Reject(INCORRECT, 262)),
            ("262=r|264=1|", Fault::Reject(MISSING, 263)),
            ("262=r|263=1|265=1|", Fault::Reject(MISSING, 264)),
            ("262=r|263=1|264=x|265=1|", Fault::Reject(FORMAT, 264)),
            (
                "262=r|263=1|264=1|265=1|146=1|55=A|",
                Fault::Reject(MISSING, 267),
            ),
            (
                "262=r|263=1|264=1|265=1|267=2|269=0|146=1|55=A|",
                Fault::Reject(COUNT, 267),
            ),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|",
                Fault::Reject(MISSING, 146),
            ),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|146=x|55=A|",
                Fault::Reject(FORMAT, 146),
            ),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|146=0|",
                Fault::Reject(COUNT, 146),
            ),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|146=1|48=5|22=12345|",
                Fault::Reject(INCORRECT, 22),
            ),
            (&*long_prefix, Fault::Reject(INCORRECT, 55)),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|146=1|55=A|20010=best|",
                Fault::Reject(INCORRECT, DELIVERY_CONTRACT),
            ),
            (
                "262=r|263=1|264=1|265=1|267=1|269=0|146=1|55=A|20011=99999999|",
                Fault::Reject(INCORRECT, INTERVAL),
            ),
        ] {
            read(body, |request| assert_eq!(request, Err(expected), "{body}"));
        }
        for (body, reason) in [
            ("262=r|263=7|", reason::REQUEST_TYPE),
            ("262=r|263=1|264=70000|", reason::DEPTH),
            ("262=r|263=1|264=1|265=4|", reason::UPDATE_TYPE),
            ("262=r|263=1|264=1|265=1|267=1|269=?|", reason::ENTRY_TYPE),
            ("262=r|263=1|264=1|265=1|267=1|269=00|", reason::ENTRY_TYPE),
        ] {
            read(body, |request| match request {
                Err(Fault::Refused(Some(own), _)) => assert_eq!(own, reason, "{body}"),
                other => panic!("{body}: {other:?}"),
            });
        }
    }
}
