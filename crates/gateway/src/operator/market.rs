//! The commands about the market: lines, instruments, books and the log.

use super::GatewayOperator;
use super::of;
use super::pages::{AFTER, LIMIT, NEXT, TOTAL, page};
use crate::watch::{NoBook, WantedBook, WantedInstruments};
use fanfare_operator::Shape::{Count, Flag, List, Maybe, Number, Object, OneOf, Text, Time, Whole};
use fanfare_operator::{Ask, Field, Member, OperatorError, Outcome, Row, Shape};

const FEED: Field = Field::text("feed", "Only the feed of this name.");
const STATES: &[&str] = &["live", "recovering", "stale", "closed", "unheard"];

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look(
        "lines",
        "The lines of each feed: packets, losses, and the time since the last datagram.",
        &[],
        |operator: &GatewayOperator, _| Ok(operator.watch()?.lines()),
    )
    .returns(LINES),
    Row::look(
        "instruments",
        "The instruments of all feeds, with their states.",
        &[
            Field::text(
                "prefix",
                "Only instruments whose Symbol(55), or else SecurityID(48), has this prefix.",
            )
            .first(),
            Field::one_of("state", "Only instruments in this state.", STATES),
            FEED,
            AFTER,
            LIMIT,
        ],
        instruments,
    )
    .returns(INSTRUMENTS),
    Row::look(
        "books",
        "The book of an instrument, now or at an earlier moment.",
        &[
            Field::text("symbol", "Symbol(55), or SecurityID(48).")
                .first()
                .needed(),
            Field::text(
                "security_id",
                "Only the instruments with this SecurityID(48), of those with the symbol.",
            ),
            FEED,
            Field::number("depth", "Levels of a side: 1 to 1000. Default: 10."),
            Field::text(
                "at",
                "The moment, from the log: 2026-11-23T10:31:05.5Z, 10:31:05.5 (UTC, of the day on \
                 which the log begins), +5.5 (seconds behind its beginning), -5.5 (in front of its \
                 end), day (midnight UTC in front of it), or the number of an event; behind what \
                 arrived then.",
            ),
        ],
        books,
    )
    .returns(BOOKS),
    Row::look(
        "log",
        "The range of the log of market events, its size and its lag.",
        &[],
        |operator: &GatewayOperator, _| operator.watch()?.log().map_err(no_book),
    )
    .returns(LOG),
];

fn instruments(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let text = |name| ask.text(name).map(str::to_owned);
    let wanted = WantedInstruments {
        prefix: text("prefix"),
        state: text("state"),
        feed: text("feed"),
    };
    let found = operator.watch()?.instruments(&wanted, &page(ask)?);
    found.map_err(no_book)
}

fn books(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let text = |name| ask.text(name).map(str::to_owned);
    let wanted = WantedBook {
        symbol: text("symbol").unwrap_or_default(),
        security_id: text("security_id"),
        feed: text("feed"),
        depth: ask.number("depth"),
        at: text("at"),
    };
    operator.watch()?.books(&wanted).map_err(no_book)
}

fn no_book(why: NoBook) -> OperatorError {
    let text = why.to_string();
    match why {
        NoBook::Asked(_) => OperatorError::usage(text),
        NoBook::Unknown(_) => OperatorError::absent(text),
        NoBook::NotYet | NoBook::Missing(_) | NoBook::Log(_) => OperatorError::failed(text),
    }
}

const MAYBE_TEXT: Shape = Maybe(&Text);
const MAYBE_COUNT: Shape = Maybe(&Count);
const MAYBE_TIME: Shape = Maybe(&Time);
const MAYBE_NUMBER: Shape = Maybe(&Number);

pub(super) const ALL: Member = of(
    "instruments",
    Count,
    "Instruments of the feed, in all states.",
);
pub(super) const LIVE: Member = of("live", Count, "Instruments whose books are complete.");
pub(super) const RECOVERING: Member = of("recovering", Count, "Instruments that are recovering.");
pub(super) const STALE: Member = of("stale", Count, "Instruments whose lines are silent.");
pub(super) const CLOSED: Member = of("closed", Count, "Instruments that are not traded any more.");
pub(super) const UNHEARD: Member = of(
    "unheard",
    Count,
    "Instruments that are known, as from a file, and whose books the feed has not mentioned.",
);

const LINES: Shape = Object(&[of("feeds", List(&FEED_SHAPE), "All feeds.")]);

const FEED_SHAPE: Shape = Object(&[
    of("channel", Text, "The name of the feed."),
    of(
        "kind",
        OneOf(&["lines", "edge", "file", "session", "replay"]),
        "The source: lines, another gateway, a file of DBN, a session of FIX or DBN, or a log.",
    ),
    of(
        "messages",
        MAYBE_COUNT,
        "Messages decoded, each once; null unless the source is lines or a session.",
    ),
    of("events", Count, "Market events."),
    of("gaps", Count, "Sequence numbers that were on no line."),
    of("restarts", Count, "Restarts of the sequence numbers."),
    of(
        "undecodable",
        Count,
        "Packets whose rest could not be decoded.",
    ),
    of("kernel_drops", Count, "Datagrams that the kernel dropped."),
    of("recoveries", Count, "Recoveries that began."),
    of("recovered", Count, "Recoveries that were completed."),
    of(
        "replay_requests",
        Count,
        "Requests to the replay of the exchange.",
    ),
    LIVE,
    RECOVERING,
    STALE,
    CLOSED,
    UNHEARD,
    ALL,
    of(
        "lenient",
        Maybe(&Flag),
        "Whether deviations from FAST are accepted; null unless the source is lines.",
    ),
    of(
        "silence_ms",
        MAYBE_COUNT,
        "Milliseconds since the last datagram of any line, or message of the session.",
    ),
    of("lines", List(&LINE), "The lines of the feed."),
    of("session", SESSION, "The session that is the source.").optional(),
]);

const SESSION: Shape = Object(&[
    of("logged_on", Flag, "Whether the session is logged on."),
    of("logons", Count, "Logons of the session."),
    of(
        "ended",
        Count,
        "Ends of the session, of those that were logged on.",
    ),
    of("requests", Count, "Requests that were sent."),
    of("refused", Count, "Requests that the counterparty refused."),
    of(
        "losses",
        Count,
        "Losses of messages within the session, after which all is requested anew.",
    ),
]);

const LINE: Shape = Object(&[
    of("line", Text, "The letter of the line: A, B, C or D."),
    of(
        "use",
        OneOf(&["changes", "snapshots"]),
        "The content: changes, or snapshots for recovery.",
    ),
    of("group", Text, "Multicast group and port."),
    of(
        "interface",
        Text,
        "Address of the interface that receives the line.",
    ),
    of(
        "source",
        MAYBE_TEXT,
        "The only sender whose datagrams are read.",
    ),
    of("packets", Count, "Datagrams."),
    of("bytes", Count, "Bytes of the datagrams."),
    of("first", Count, "Packets with new content."),
    of(
        "duplicate",
        Count,
        "Packets that another line had delivered before.",
    ),
    of(
        "late",
        Count,
        "Packets that arrived after their content had been given up.",
    ),
    of("refused", Count, "Packets whose numbers could not be used."),
    of("lost", Count, "Sequence numbers missing on the line."),
    of("kernel_drops", Count, "Datagrams that the kernel dropped."),
    of(
        "behind",
        BEHIND,
        "The delay behind the other line, of packets that arrived second.",
    ),
    of(
        "silence_ms",
        MAYBE_COUNT,
        "Milliseconds since the last datagram of the line.",
    ),
    of(
        "packets_per_s",
        MAYBE_NUMBER,
        "Datagrams per second, recently.",
    ),
    of("bytes_per_s", MAYBE_NUMBER, "Bytes per second, recently."),
]);

const BEHIND: Shape = Object(&[
    of("count", Count, "Packets that arrived second."),
    of("mean_ns", MAYBE_COUNT, "The mean, in nanoseconds."),
    of("max_ns", Count, "The longest, in nanoseconds."),
]);

const LACKS: Shape = Maybe(&Object(&[
    of(
        "what",
        OneOf(&["snapshot", "changes", "certainty", "channel"]),
        "A snapshot, changes, the certainty that none is missing, or any channel message.",
    ),
    of("after_fault", Flag, "Whether the book was found wrong.").optional(),
    of(
        "from",
        Count,
        "The first change that is missing, by RptSeq(83).",
    )
    .optional(),
    of("to", Count, "The last change that is missing.").optional(),
    of(
        "below",
        Count,
        "Messages before this MsgSeqNum(34) may be missing.",
    )
    .optional(),
]));

const NUMBER: Member = of("number", Count, "The plant's number of the instrument.");
const SYMBOL: Member = of("symbol", Text, "Symbol(55).");
const SECURITY_ID: Member = of("security_id", Text, "SecurityID(48); empty without one.");
const OF_FEED: Member = of("feed", MAYBE_TEXT, "The name of the feed.");
const STATE: Member = of("state", OneOf(STATES), "The state of the book.");
const LACK: Member = of(
    "lacks",
    LACKS,
    "The missing part while the instrument is recovering.",
);
const RPT_SEQ: Member = of("rpt_seq", MAYBE_COUNT, "RptSeq(83) of the last change.");
const UPDATED: Member = of("updated", MAYBE_TIME, "Time of arrival of the last event.");
const TRADING: Member = of("trading", MAYBE_COUNT, "SecurityTradingStatus(326).");

const INSTRUMENTS: Shape = Object(&[
    TOTAL,
    NEXT,
    of(
        "instruments",
        List(&INSTRUMENT),
        "The instruments, in the order of their numbers.",
    ),
]);

const INSTRUMENT: Shape = Object(&[
    NUMBER,
    SYMBOL,
    SECURITY_ID,
    OF_FEED,
    STATE,
    LACK,
    RPT_SEQ,
    of(
        "event",
        MAYBE_COUNT,
        "The plant's number of the last event.",
    ),
    UPDATED,
    TRADING,
]);

const BOOKS: Shape = Object(&[
    of(
        "number",
        Count,
        "The number of the event after which the books are shown.",
    ),
    of(
        "time",
        MAYBE_TIME,
        "The latest time of arrival up to that event.",
    ),
    of("live", Flag, "Whether the books are current."),
    of(
        "books",
        List(&BOOK),
        "A book for each instrument of that name.",
    ),
]);

const BOOK: Shape = Object(&[
    NUMBER,
    SYMBOL,
    SECURITY_ID,
    OF_FEED,
    STATE,
    LACK,
    RPT_SEQ,
    UPDATED,
    TRADING,
    of(
        "kind",
        Maybe(&OneOf(&["levels", "prices", "orders"])),
        "The feed's representation of the book: numbered levels, prices, or orders.",
    ),
    of("bids", List(&LEVEL), "The levels, the best first."),
    of("offers", List(&LEVEL), "The levels, the best first."),
    of("levels", LEVELS, "The numbers of all levels."),
    of(
        "trades",
        List(&TRADE),
        "The trades, the newest first: the last 20 since the console started, or the last one \
         before the moment.",
    ),
    of("values", List(&VALUE), "The last value of each statistic."),
]);

const LEVELS: Shape = Object(&[
    of("bids", Count, "Levels of bids."),
    of("offers", Count, "Levels of offers."),
]);

const LEVEL: Shape = Object(&[
    of("price", Text, "The price, exactly."),
    of("size", Whole, "The size of the level."),
    of(
        "orders",
        Count,
        "The number of orders of the level, if the feed has it.",
    )
    .optional(),
    of(
        "ids",
        List(&ORDER),
        "Up to 100 of its orders, the first to trade first.",
    )
    .optional(),
]);

const ORDER: Shape = Object(&[
    of("id", Text, "OrderID(37)."),
    of("size", Whole, "The remaining size of the order."),
]);

const TRADE: Shape = Object(&[
    of("number", Count, "The plant's number of the event."),
    of(
        "time",
        MAYBE_TIME,
        "The exchange's time, or the time of arrival.",
    ),
    of("price", MAYBE_TEXT, "The price, exactly."),
    of("size", Maybe(&Whole), "The size."),
    of("id", MAYBE_TEXT, "TradeID(1003)."),
]);

const VALUE: Shape = Object(&[
    of("type", Text, "MDEntryType(269)."),
    of("name", MAYBE_TEXT, "The name of the type."),
    of("price", MAYBE_TEXT, "The value, if it is a price."),
    of("size", Maybe(&Whole), "The value, if it is a size."),
    of(
        "time",
        MAYBE_TIME,
        "The exchange's time, or the time of arrival.",
    ),
]);

const LOG: Shape = Object(&[
    of("folder", Text, "The folder of the log."),
    of("run", Count, "Runs of the plant so far."),
    of("first", Count, "The number of the first event."),
    of("next", Count, "The number after the last event."),
    of("from", MAYBE_TIME, "Time of arrival of the first event."),
    of("to", MAYBE_TIME, "Time of arrival of the last event."),
    of("events", Count, "Numbers from the first to the last."),
    of("bytes", Count, "Bytes of all segments."),
    of("segments", Count, "Files."),
    of("compacted", Count, "Files that are compacted."),
    of("events_per_s", MAYBE_NUMBER, "Events per second, recently."),
    of("bytes_per_s", MAYBE_NUMBER, "Bytes per second, recently."),
    of(
        "lag_events",
        Count,
        "Events in the ring that are not in the log yet.",
    ),
    of(
        "missed",
        Count,
        "Events missing from the log since the start.",
    ),
    of(
        "failures",
        Count,
        "Writes that the system refused since the start.",
    ),
    of("checkpoints", Count, "Checkpoints of all books."),
    of(
        "last_checkpoint",
        MAYBE_COUNT,
        "The number of the event of the last checkpoint.",
    ),
    of(
        "followed",
        Count,
        "The event up to which checkpoints follow the log.",
    ),
]);
