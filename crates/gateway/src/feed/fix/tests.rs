use super::*;
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Message};
use fanfare_fix::codec;
use fanfare_fix::dict::Switches;
use proptest::prelude::*;
use std::path::Path;

const COMPLEX: &str = "templates = \"builtin:complex\"\nlines = [\"224.1.2.133:13014\"]\n";

fn feed(more: &str) -> Feed {
    let text = format!("[feed]\n{COMPLEX}{more}");
    crate::Config::from_toml(&text).unwrap().feeds.remove(0)
}

fn place(version: Version) -> usize {
    VERSIONS.iter().position(|known| *known == version).unwrap()
}

/// The messages of a program, and their conversions.
struct Bench {
    fix: Fix,
    decoder: Decoder,
    message: Message,
    notices: Notices,
    told: crate::notice::NoticeReceiver,
    left: Tally,
    /// The number of messages that lacked a field.
    lacking: usize,
    /// The fields of the last message as the template has them.
    raw: Vec<(u32, String)>,
}

impl Bench {
    fn new(program: Program, more: &str) -> Self {
        let program = Arc::new(program);
        let (notices, told) = crate::notice::channel();
        Self {
            fix: Fix::new(&feed(more), &program, Dictionary::built_in),
            decoder: Decoder::new(program),
            message: Message::new(),
            notices,
            told,
            left: Tally::default(),
            lacking: 0,
            raw: Vec::new(),
        }
    }

    /// Decodes the messages of a packet and converts each to a version. Returns kind, type and
    /// body, with `|` for SOH.
    fn packet(&mut self, packet: &[u8], version: Version) -> Vec<(Kind, Option<[String; 2]>)> {
        self.decoder.reset();
        let (mut rest, mut out) = (packet, Vec::new());
        while !rest.is_empty() {
            let len = self.decoder.decode(rest, &mut self.message).unwrap();
            rest = &rest[len..];
            let view = self.message.view(self.decoder.program()).unwrap();
            let mut raw = Vec::new();
            fanfare_fast::fix::write_body(view, &mut raw).unwrap();
            self.raw = split(&String::from_utf8(raw).unwrap().replace('\x01', "|"));
            let kind = self.fix.kind(view);
            let body = match kind {
                Kind::Data => self.fix.convert(place(version), view, &self.notices),
                _ => Made::Never,
            };
            self.lacking += usize::from(body == Made::Lacking);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let body = match body {
                Made::Body(t, body) => Some([text(t), text(body).replace('\x01', "|")]),
                _ => None,
            };
            out.push((kind, body));
            let tally = self.fix.tally();
            self.left.fields += tally.fields;
            self.left.values += tally.values;
            self.left.entries += tally.entries;
        }
        out
    }

    fn told(&self) -> Vec<String> {
        self.told.iter().map(|notice| notice.to_string()).collect()
    }
}

fn split(text: &str) -> Vec<(u32, String)> {
    let fields = text.split_terminator('|');
    fields
        .map(|field| {
            let (tag, value) = field.split_once('=').unwrap();
            (tag.parse().unwrap(), value.to_owned())
        })
        .collect()
}

/// A validator of whole messages around bodies, by the dictionary of a version.
struct Judge {
    dictionary: Arc<Dictionary>,
    begin_string: &'static str,
    decoder: codec::Decoder,
}

impl Judge {
    fn new(version: Version) -> Self {
        let dictionary = Dictionary::built_in(version);
        let is_transported = place(version) >= place(Version::Fix50);
        let transport = Dictionary::built_in(Version::Fixt11);
        Self {
            dictionary: match is_transported {
                true => Arc::new(dictionary.over(&transport).unwrap()),
                false => dictionary,
            },
            begin_string: match is_transported {
                true => Version::Fixt11.name(),
                false => version.name(),
            },
            decoder: codec::Decoder::new(),
        }
    }

    fn check(&mut self, msg_type: &str, body: &str) {
        let inner = format!("35={msg_type}|49=A|56=B|34=2|52=20261120-10:00:00.000|{body}");
        let mut whole = format!("8={}|9={}|{inner}", self.begin_string, inner.len());
        whole = whole.replace('|', "\x01");
        let sum = whole.bytes().fold(0u8, u8::wrapping_add);
        whole.push_str(&format!("10={sum:03}\x01"));
        let message = self.decoder.decode(whole.as_bytes()).unwrap();
        let valid = self.dictionary.validate(&message, Switches::default());
        assert!(valid.is_ok(), "{}: {body}", valid.unwrap_err());
    }
}

/// Returns a program with one template. A packet has the bytes after presence map and identifier 1.
fn one(fields: &str) -> Program {
    Program::parse(&format!(
        "<template name=\"T\" id=\"1\">{fields}</template>"
    ))
    .unwrap()
}

#[test]
fn a_generated_feed_is_valid_in_every_version_that_has_its_messages() {
    for version in VERSIONS {
        let mut judge = Judge::new(version);
        let mut bench = Bench::new(Program::complex(), "");
        let mut feed = Generator::complex(Program::complex(), 300, None, ComplexOptions::default());
        let (mut data, mut valid, mut done) = (0, 0, 0);
        while let Some(packet) = feed.next_packet().unwrap() {
            for (kind, body) in bench.packet(packet, version) {
                data += usize::from(kind == Kind::Data);
                done += usize::from(kind == Kind::Done);
                if let Some([msg_type, body]) = body {
                    judge.check(&msg_type, &body);
                    valid += 1;
                }
            }
        }
        assert_eq!((data, done), (300, 1));
        let expected = match version {
            Version::Fix40 | Version::Fix41 => 0,
            _ => 300,
        };
        assert_eq!(valid, expected, "{version:?}: {:?}", bench.told());
    }
}

#[test]
fn whatever_has_no_type_is_for_those_who_agreed_to_it() {
    let mut feed = Generator::simple(Program::simple(), 1, PACKET_SIZE);
    let packet = feed.next_packet().unwrap().unwrap().to_vec();
    let mut bench = Bench::new(Program::simple(), "");
    let made = bench.packet(&packet, Version::Fix44);
    assert_eq!(made, [(Kind::Data, None), (Kind::Done, None)]);
    let told = bench.told().join("\n");
    assert!(
        told.contains("FIX.4.4 sessions do not get messages of template Quote"),
        "{told}"
    );
    assert!(told.contains("MsgType(35) U"), "{told}");
    let mut bench = Bench::new(Program::simple(), "user_tags = 30000\n");
    let made = bench.packet(&packet, Version::Fix44);
    let [msg_type, body] = made[0].1.as_ref().unwrap();
    assert_eq!(msg_type, "U");
    assert!(body.starts_with("30100=11|30200=1|30300="), "{body}");
}

#[test]
fn what_has_no_place_is_left_out_and_told_or_moved() {
    let fields = "<string name=\"MessageType\" id=\"35\"><constant value=\"W\"/></string>\
        <uInt32 name=\"MsgSeqNum\" id=\"34\"/>\
        <uInt32 name=\"RptSeq\" id=\"83\"/>\
        <uInt32 name=\"Last\" id=\"369\"/>\
        <uInt32 name=\"SecurityID\" id=\"48\"/>\
        <sequence name=\"MDEntries\"><length name=\"NoMDEntries\" id=\"268\"/>\
        <uInt32 name=\"Level\" id=\"1023\"/>\
        <uInt32 name=\"MDEntryTime\" id=\"273\"/>\
        <string name=\"MDEntryType\" id=\"269\"/>\
        <uInt32 name=\"Session\" id=\"5842\"/>\
        </sequence>";
    // 34=7, 83=9, 369=5, 48=3, two entries, of which the second has an invalid type.
    let mut packet = vec![0xc0, 0x81, 0x87, 0x89, 0x85, 0x83, 0x82];
    for entry_type in [b'0', b'!'] {
        packet.extend([0x81, 0x03, 0xe8, entry_type | 0x80, 0x84]);
    }
    let made = |version, more: &str| {
        let mut bench = Bench::new(one(fields), more);
        let [(_, body)] = bench.packet(&packet, version).try_into().unwrap();
        let [_, body] = body.unwrap();
        (body, bench.left, bench.told().join("\n"))
    };
    let entries = Tally {
        fields: 4,
        values: 1,
        entries: 1,
    };
    let (body, left, told) = made(Version::Fix44, "");
    assert_eq!(body, "48=3|268=1|269=0|273=00:00:00.488|290=1|55=[N/A]|");
    assert_eq!(left, entries);
    assert!(told.contains("FIX.4.4 sessions do not get RptSeq(83), Last(369), Session(5842)"));
    assert!(told.contains("get Level(1023) as 290"), "{told}");
    assert!(
        told.contains("MDEntryType(269)") && told.contains("\"!\""),
        "{told}"
    );
    let (body, _, told) = made(Version::Fix50Sp2, "");
    assert_eq!(
        body,
        "1181=7|1350=5|48=3|268=1|269=0|273=00:00:00.488|1023=1|83=9|"
    );
    assert!(told.contains("do not get Session(5842), and get"), "{told}");
    let (body, left, _) = made(Version::Fix44, "user_tags = 30000\ntags = { 5842 = 336 }\n");
    let expected =
        "30034=7|30083=9|30369=5|48=3|268=1|269=0|273=00:00:00.488|336=4|290=1|55=[N/A]|";
    assert_eq!((body.as_str(), left.fields), (expected, 0));
}

#[test]
fn a_change_of_a_book_that_a_version_lacks_withholds_its_message() {
    let fields = "<string name=\"MessageType\" id=\"35\"><constant value=\"X\"/></string>\
        <sequence name=\"MDEntries\"><length name=\"NoMDEntries\" id=\"268\"/>\
        <uInt32 name=\"MDUpdateAction\" id=\"279\"/>\
        <string name=\"MDEntryType\" id=\"269\"/>\
        <uInt32 name=\"SecurityID\" id=\"48\"/>\
        </sequence>";
    let made = |version, entries: [[u8; 2]; 2]| {
        let mut packet = vec![0xc0, 0x81, 0x82];
        for [action, kind] in entries {
            packet.extend([0x80 | action, 0x80 | kind, 0x83]);
        }
        let mut bench = Bench::new(one(fields), "");
        let [(_, body)] = bench.packet(&packet, version).try_into().unwrap();
        (body.map(|[_, body]| body), bench.lacking)
    };
    // An overlay, and an empty book.
    for second in [[5, b'0'], [0, b'J']] {
        for first in [b'0', b'B'] {
            let entries = [[0, first], second];
            assert_eq!(made(Version::Fix42, entries), (None, 1));
            let (body, lacking) = made(Version::Fix50Sp2, entries);
            assert_eq!(lacking, 0);
            assert!(body.unwrap().starts_with("268=2|"));
        }
    }
    // Volumes and the open interest, which would have no type, are left out alone.
    let (body, lacking) = made(Version::Fix42, [[0, b'0'], [0, b'B']]);
    assert_eq!(lacking, 0);
    assert_eq!(body.unwrap(), "268=1|279=0|269=0|48=3|");
    // Of them alone nothing is left, and nobody lacks anything.
    let entries = [[0, b'B'], [1, b'C']];
    assert_eq!(made(Version::Fix42, entries), (None, 0));
    assert!(made(Version::Fix50Sp2, entries).0.is_some());
    // Prices and settlements that a version has are missed.
    assert_eq!(made(Version::Fix42, [[9, b'4'], [9, b'6']]), (None, 1));
}

#[test]
fn a_snapshot_that_would_lack_an_entry_of_a_book_is_withheld() {
    let fields = "<string name=\"MessageType\" id=\"35\"><constant value=\"W\"/></string>\
        <uInt32 name=\"SecurityID\" id=\"48\"/>\
        <sequence name=\"MDEntries\"><length name=\"NoMDEntries\" id=\"268\"/>\
        <string name=\"MDEntryType\" id=\"269\"/>\
        <uInt32 name=\"MDEntryPx\" id=\"270\" presence=\"optional\"/>\
        </sequence>";
    // FIX.4.2 requires the price, which the first entry does not have.
    let made = |types: [u8; 2]| {
        let [first, second] = types.map(|kind| 0x80 | kind);
        let packet = [0xc0, 0x81, 0x83, 0x82, first, 0x80, second, 0x86];
        let mut bench = Bench::new(one(fields), "");
        let [(_, body)] = bench.packet(&packet, Version::Fix42).try_into().unwrap();
        (body.map(|[_, body]| body), bench.lacking, bench.told())
    };
    let (body, lacking, told) = made(*b"0J");
    assert_eq!((body, lacking), (None, 1));
    assert!(told[1].contains("an entry of a book in it has no valid MDEntryPx(270)"));
    let (body, lacking, _) = made(*b"40");
    assert_eq!(lacking, 0);
    assert_eq!(body.unwrap(), "48=3|268=1|269=0|270=5|55=[N/A]|");
    assert_eq!(made(*b"BC").1, 0);
}

#[test]
fn session_messages_and_empty_ones_are_nobodys() {
    let mut text = String::from("<templates>");
    for (id, t) in ["0", "1", "2", "3", "4", "5", "A", "B"].iter().enumerate() {
        text += &format!(
            "<template name=\"T{id}\" id=\"{}\"><string name=\"t\" id=\"35\">\
             <constant value=\"{t}\"/></string><string name=\"x\" id=\"148\"/></template>",
            id + 1
        );
    }
    text += "<template name=\"Own\" id=\"9\"><string name=\"t\" id=\"35\"/>\
             <string name=\"x\" id=\"58\"/></template>\
             <template name=\"Reset\" id=\"120\" reset=\"Y\"/></templates>";
    let mut bench = Bench::new(Program::parse(&text).unwrap(), "");
    let mut kinds = Vec::new();
    for id in 1..=8 {
        kinds.push(bench.packet(&[0xc0, 0x80 | id, 0xc1], Version::Fix44)[0].0);
    }
    let session = [b'0', b'1', b'2', b'3', b'4', b'5', b'A'].map(Kind::Session);
    assert_eq!((&kinds[..7], kinds[7]), (&session[..], Kind::Data));
    // MsgType(35) is in the message.
    let own = |t: u8| [0xc0, 0x89, 0x80 | t, 0xc1];
    assert_eq!(
        bench.packet(&own(b'5'), Version::Fix44)[0].0,
        Kind::Session(b'5')
    );
    assert_eq!(bench.packet(&own(b'B'), Version::Fix44)[0].0, Kind::Data);
    assert_eq!(
        bench.packet(&[0xc0, 0xf8], Version::Fix44)[0].0,
        Kind::Empty
    );
}

/// Converts the whole recording of MOEX SPECTRA.
#[test]
fn a_recorded_feed_is_valid_in_every_version_that_has_its_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let Ok(xml) = std::fs::read_to_string(folder.join("templates.xml")) else {
        println!("skipped: there is no recording at {}", folder.display());
        return;
    };
    for (file, data, sessions) in [("increment_a.dat", 8_101, 0), ("snapshot.dat", 8_581, 733)] {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        for version in VERSIONS {
            for more in ["", "user_tags = 30000\n"] {
                let mut judge = Judge::new(version);
                let mut bench = Bench::new(Program::parse(&xml).unwrap(), more);
                let messages = bench.packet(&bytes, version);
                let count = |kind| messages.iter().filter(|m| m.0 == kind).count();
                assert_eq!(count(Kind::Data), data);
                assert_eq!(count(Kind::Session(b'4')), sessions);
                let bodies: Vec<_> = messages.iter().filter_map(|m| m.1.as_ref()).collect();
                let told = bench.told();
                match version {
                    Version::Fix40 | Version::Fix41 => assert!(bodies.is_empty()),
                    // Only an entry of the type "empty book", which came with FIX.5.0.
                    _ => {
                        let all = bodies.len() + bench.lacking;
                        assert_eq!(all, data, "{version:?} {file}: {told:?}");
                        let is_early = place(version) < place(Version::Fix50);
                        let most = if is_early { 8 } else { 0 };
                        assert!(bench.lacking <= most, "{}: {told:?}", bench.lacking);
                    }
                }
                for [msg_type, body] in bodies.into_iter().filter(|_| more.is_empty()) {
                    judge.check(msg_type, body);
                }
            }
        }
    }
}

/// Fields of market data, and some that no version has.
const POOL: [u32; 40] = [
    15, 22, 31, 34, 48, 52, 55, 58, 60, 61, 75, 83, 95, 96, 107, 131, 148, 207, 264, 269, 270, 271,
    272, 273, 278, 279, 290, 320, 336, 340, 346, 369, 541, 600, 866, 1023, 1079, 1128, 5842, 20003,
];
const GROUPS: [u32; 7] = [33, 146, 268, 453, 555, 711, 1141];
const TYPES: [&str; 8] = ["W", "X", "d", "f", "h", "B", "R", "BP"];

/// A field of a random template: its tag, its type, and whether it may be absent.
type Drawn = (usize, usize, bool);

fn declared(fields: &[Drawn], inside: Option<&str>) -> String {
    let mut text = String::new();
    for (i, (tag, kind, optional)) in fields.iter().enumerate() {
        let kind = [
            "uInt32",
            "uInt64",
            "int64",
            "decimal",
            "string",
            "byteVector",
        ][*kind];
        let presence = if *optional {
            " presence=\"optional\""
        } else {
            ""
        };
        text += &format!("<{kind} name=\"F{i}\" id=\"{}\"{presence}/>", POOL[*tag]);
    }
    text + inside.unwrap_or_default()
}

/// Values that match some of the types of fields.
fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[0-9]{1,9}".prop_map(String::into_bytes),
        Just(b"142412406".to_vec()),
        Just(b"20120301100000123".to_vec()),
        Just(b"20120301".to_vec()),
        "[A-Z0-9.=-]{0,6}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Checks that every converted message is valid, whatever the template and the values.
    #[test]
    fn what_goes_out_is_valid(
        msg_type in 0..TYPES.len(),
        groups in (0..GROUPS.len(), 0..GROUPS.len()),
        fields in prop::collection::vec((0..POOL.len(), 0..6_usize, any::<bool>()), 1..12),
        entry in prop::collection::vec((0..POOL.len(), 0..6_usize, any::<bool>()), 1..12),
        nested in prop::collection::vec((0..POOL.len(), 0..6_usize, any::<bool>()), 1..4),
        values in prop::collection::vec(values(), 40),
        counts in (0..3_usize, 0..3_usize),
        version in 2..COUNT,
    ) {
        let sequence = |tag: usize, inside: &str| {
            let tag = GROUPS[tag];
            format!(
                "<sequence name=\"S{tag}\"><length name=\"N{tag}\" id=\"{tag}\"/>\
                 {inside}</sequence>"
            )
        };
        let inner = sequence(groups.1, &declared(&nested, None));
        let outer = sequence(groups.0, &declared(&entry, Some(&inner)));
        let of_type = format!(
            "<string name=\"T\" id=\"35\"><constant value=\"{}\"/></string>", TYPES[msg_type]
        );
        let program = one(&(of_type + &declared(&fields, Some(&outer))));
        let mut wire: Vec<u8> = Vec::new();
        let mut next = values.iter().cycle();
        fast_bytes(&mut wire, &fields, &mut next);
        wire.push(0x80 | counts.0 as u8);
        for _ in 0..counts.0 {
            fast_bytes(&mut wire, &entry, &mut next);
            wire.push(0x80 | counts.1 as u8);
            (0..counts.1).for_each(|_| fast_bytes(&mut wire, &nested, &mut next));
        }
        let packet = [&[0xc0, 0x81], &wire[..]].concat();
        let mut bench = Bench::new(program, "");
        let mut judge = Judge::new(VERSIONS[version]);
        for (_, body) in bench.packet(&packet, VERSIONS[version]) {
            if let Some([msg_type, body]) = body {
                judge.check(&msg_type, &body);
                for (tag, value) in split(&body) {
                    let known = has_source(&bench.raw, &judge.dictionary, tag, &value);
                    prop_assert!(known, "{tag}={value} of {body} is not in {:?}", bench.raw);
                }
            }
        }
    }
}

/// Returns whether a field that is sent has a value of the feed, by linear search.
fn has_source(raw: &[(u32, String)], dictionary: &Dictionary, tag: u32, value: &str) -> bool {
    use fanfare_fix::dict::DataType as T;
    let has = |wanted: u32| {
        raw.iter()
            .any(|(tag, had)| (*tag, had.as_str()) == (wanted, value))
    };
    let digits = |text: &str| text.replace(|c: char| !c.is_ascii_digit(), "");
    match (tag, dictionary.data_type(tag)) {
        (290, _) if has(1023) => true,
        (1181 | 131 | 262 | 320 | 322, _) if has(34) => true,
        (1350, _) if has(369) => true,
        (55, _) if value == "[N/A]" => raw.iter().any(|(tag, _)| *tag == 48),
        (323, _) => value == "4",
        // The number of the entries that are sent. Versions before FIX.4.3 have it as an int.
        _ if GROUPS.contains(&tag) => true,
        (_, Some(T::Length)) => raw.iter().any(|(_, had)| had.len().to_string() == value),
        (
            _,
            Some(
                T::UtcTimestamp | T::UtcTimeOnly | T::UtcDateOnly | T::LocalMktDate | T::TzTimeOnly,
            ),
        ) => {
            // The digits are the same, up to leading or trailing zeros, or are those of a time
            // since 1970.
            let wanted = digits(value);
            let wanted = wanted.trim_start_matches('0').trim_end_matches('0');
            let since = |had: &str| matches!(had.len(), 10 | 13 | 16 | 19);
            raw.iter()
                .any(|(_, had)| digits(had).contains(wanted) || since(had))
        }
        _ => has(tag),
    }
}

/// Returns the fields of one level on the wire.
fn fast_bytes<'v>(
    out: &mut Vec<u8>,
    fields: &[Drawn],
    values: &mut impl Iterator<Item = &'v Vec<u8>>,
) {
    for (_, kind, optional) in fields {
        let value = values.next().unwrap();
        let number: u64 = String::from_utf8_lossy(value).parse().unwrap_or(7);
        let more = u64::from(*optional);
        match kind {
            0 => stop_bit(out, (number & 0x7fff_ffff) + more, false),
            1 => stop_bit(out, number + more, false),
            2 => stop_bit(out, number + more, true),
            3 => {
                out.push(if *optional { 0x81 } else { 0x80 });
                stop_bit(out, number, true);
            }
            4 => match value.split_last() {
                _ if value.is_empty() && *optional => out.extend([0, 0x80]),
                None => out.push(0x80),
                Some((last, rest)) => {
                    out.extend(rest);
                    out.push(last | 0x80);
                }
            },
            _ => {
                stop_bit(out, value.len() as u64 + more, false);
                out.extend(value);
            }
        }
    }
}

/// Writes a stop-bit integer. A signed one needs a bit for its sign.
fn stop_bit(out: &mut Vec<u8>, value: u64, signed: bool) {
    let bits = 64 - value.leading_zeros() + u32::from(signed);
    for i in (0..bits.div_ceil(7).max(1)).rev() {
        let bits = (value.checked_shr(7 * i).unwrap_or(0) & 0x7f) as u8;
        out.push(if i == 0 { bits | 0x80 } else { bits });
    }
}
