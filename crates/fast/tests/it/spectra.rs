//! The generated feed in the shapes of a real one: decodable as a stream and in packets, the same
//! bytes when encoded again, and a market that makes sense.

use std::collections::BTreeMap;

use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_fast::{
    Decoder, Encoder, Fields, Message, MessageView, Options, Program, Record, Value, builtin,
};

use crate::generated::{each, packets_of};
use crate::lanes::{kernels, oracle};

fn spectra(count: u64, options: SpectraOptions) -> Vec<Vec<u8>> {
    packets_of(Generator::spectra(Program::spectra(), count, None, options))
}

/// What the tests vary: increments with and without trades, and snapshots.
fn all_spectra() -> [SpectraOptions; 3] {
    let options = SpectraOptions::default();
    let trades = SpectraOptions {
        trades: 20,
        ..options
    };
    let snapshots = SpectraOptions {
        snapshots: true,
        ..options
    };
    [options, trades, snapshots]
}

/// An unsigned integer of a message or entry; `None` if it is absent.
fn number(value: Option<Value<'_>>) -> Option<u64> {
    value.and_then(|value| value.as_u64())
}

#[test]
fn spectra_has_a_reset_in_front_of_each_message() {
    let program = Program::spectra();
    for (options, bytes_each) in all_spectra().into_iter().zip([80..90, 92..100, 116..128]) {
        let packets = spectra(5_000, options);
        assert_eq!(packets.len(), 5_001);
        let bytes: usize = packets.iter().map(Vec::len).sum();
        assert!(bytes_each.contains(&(bytes / packets.len())), "{bytes}");
        assert!(
            packets
                .iter()
                .all(|packet| packet.starts_with(&[0xc0, 0xf8]))
        );
        let mut counts = BTreeMap::new();
        each(&program, &packets, false, |message| {
            *counts.entry(message.template().id().unwrap()).or_insert(0) += 1;
        });
        let expected = match options.snapshots {
            false => vec![(74, 5_000), (99, 1), (120, 5_001)],
            // Eleven securities in turn, then the two others.
            true => vec![(49, 384), (66, 384), (75, 4_232), (99, 1), (120, 5_001)],
        };
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    }
}

/// Messages, records and encoders of all kinds, without packet boundaries: the Resets do.
#[test]
fn spectra_is_the_same_with_every_kernel() {
    let program = Program::spectra();
    for options in all_spectra() {
        let stream = spectra(1_000, options).concat();
        let kernels = kernels(Options::default()).chain([oracle(Options::default())]);
        for options in kernels {
            let mut decoders = [(); 2].map(|()| Decoder::with_options(program.clone(), options));
            let mut encoders = [(); 2].map(|()| Encoder::with_options(program.clone(), options));
            let (mut message, mut record) = (Message::new(), Record::new());
            let (mut at, mut again, mut rows) = (0, Vec::new(), Vec::new());
            while at < stream.len() {
                let rest = &stream[at..];
                let len = decoders[0].decode(rest, &mut message).unwrap();
                assert_eq!(decoders[1].decode_record(rest, &mut record), Ok(len));
                encoders[0].encode(&message, &mut again).unwrap();
                encoders[1].encode_record(&record, &mut rows).unwrap();
                at += len;
            }
            assert!(again == stream && rows == stream, "{options:?}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_market() {
    for options in all_spectra() {
        let first = spectra(300, options);
        assert_eq!(first, spectra(300, options));
        // What is made of a market does not depend on how much of it.
        assert_eq!(first[..200], spectra(200, options)[..200]);
        let seed = options.seed + 1;
        assert_ne!(first, spectra(300, SpectraOptions { seed, ..options }));
        // Full packets have the same messages.
        let packed = Generator::spectra(Program::spectra(), 300, Some(1_000), options);
        let packed = packets_of(packed);
        assert!(packed.len() < 60 && packed.iter().all(|packet| packet.len() <= 1_000));
        assert_eq!(packed.concat(), first.concat());
    }
}

/// A subscriber's books: what it holds of each side, from the best price on.
#[derive(Debug, Default, Clone, PartialEq)]
struct Book {
    rpt_seq: u64,
    sides: [Vec<Level>; 2],
}

#[derive(Debug, Clone, PartialEq)]
struct Level {
    price: i64,
    size: i64,
    time: u64,
}

/// What a level's entry says of it.
fn level_of(entry: Fields<'_>) -> Level {
    let price = entry.get("MDEntryPx").unwrap().as_decimal().unwrap();
    let size = entry.get("MDEntrySize").unwrap();
    Level {
        price: price.mantissa * 10_i64.pow(u32::try_from(price.exponent).unwrap()),
        size: size.as_i64().unwrap(),
        time: number(entry.get("MDEntryTime")).unwrap(),
    }
}

/// The side that an entry is about; `None` for trades and empty books.
fn side_of(entry: Fields<'_>) -> Option<usize> {
    match entry.get("MDEntryType").unwrap().as_str().unwrap() {
        "0" => Some(0),
        "1" => Some(1),
        "2" | "J" => None,
        other => panic!("{other}"),
    }
}

impl Book {
    fn apply(&mut self, entry: Fields<'_>) {
        let rpt_seq = number(entry.get("RptSeq")).unwrap();
        assert_eq!(rpt_seq, self.rpt_seq + 1);
        self.rpt_seq = rpt_seq;
        let Some(side) = side_of(entry) else {
            return;
        };
        let level = level_of(entry);
        let index = number(entry.get("MDPriceLevel")).unwrap() as usize - 1;
        let levels = &mut self.sides[side];
        match number(entry.get("MDUpdateAction")) {
            Some(0) => {
                levels.insert(index, level);
                levels.truncate(5);
            }
            Some(1) => {
                assert_eq!(levels[index].price, level.price);
                levels[index] = level;
            }
            Some(2) => assert_eq!(levels.remove(index).price, level.price),
            other => panic!("{other:?}"),
        }
    }

    fn of(snapshot: MessageView<'_>) -> Self {
        let rpt_seq = number(snapshot.get("RptSeq")).unwrap();
        let mut sides = [Vec::new(), Vec::new()];
        for entry in snapshot.get("MDEntries").unwrap().as_sequence().unwrap() {
            let Some(side) = side_of(entry) else {
                assert_eq!(number(entry.get("MDPriceLevel")), None);
                continue;
            };
            sides[side].push(level_of(entry));
            let level = number(entry.get("MDPriceLevel"));
            assert_eq!(level, Some(sides[side].len() as u64));
        }
        Self { rpt_seq, sides }
    }

    /// Bids go down, offers up, bids are below offers.
    fn check(&self) {
        let bids = self.sides[0].iter().rev();
        let prices = bids.chain(&self.sides[1]).map(|level| level.price);
        assert!(
            prices.clone().is_sorted_by(|one, other| one < other),
            "{self:?}"
        );
        assert!(prices.clone().all(|price| price > 0), "{self:?}");
        assert!(self.sides.iter().flatten().all(|level| level.size > 0));
    }
}

/// The snapshots of a market, by LastMsgSeqNumProcessed and security.
fn snapshots(options: SpectraOptions) -> BTreeMap<(u64, u64), Book> {
    let options = SpectraOptions {
        snapshots: true,
        ..options
    };
    let mut books = BTreeMap::new();
    let mut expected = 1;
    each(
        &Program::spectra(),
        &spectra(4_000, options),
        true,
        |message| {
            if !matches!(message.template().id(), Some(75 | 66 | 49)) {
                return;
            }
            assert_eq!(number(message.tag(34)), Some(expected));
            expected = number(message.tag(36)).unwrap_or(expected + 1);
            if message.template().id() == Some(75) {
                let last = number(message.tag(369)).unwrap();
                let security = number(message.tag(48)).unwrap();
                let book = Book::of(message);
                book.check();
                books.insert((last, security), book);
            }
        },
    );
    books
}

/// Each snapshot is what the one before has become by the increments since.
#[test]
fn snapshots_agree_with_the_increments() {
    for options in &all_spectra()[..2] {
        let snapshots = snapshots(*options);
        let mut books = BTreeMap::<u64, Book>::new();
        let (mut agreed, mut empty, mut last_time) = (0, 0, 0);
        let mut next = None;
        let packets = spectra(4_000, *options);
        each(&Program::spectra(), &packets, true, |message| {
            let Some(entries) = message.get("MDEntries") else {
                return;
            };
            let this = number(message.tag(34)).unwrap();
            assert_eq!(this, next.unwrap_or(this));
            next = Some(this + 1);
            let time = number(message.tag(52)).unwrap();
            assert!(last_time < time);
            last_time = time;
            for entry in entries.as_sequence().unwrap() {
                let security = number(entry.get("SecurityID")).unwrap();
                if let Some(book) = books.get_mut(&security) {
                    book.apply(entry);
                }
            }
            for (&(_, security), book) in snapshots.range((this, 0)..(this + 1, 0)) {
                empty += usize::from(book.sides == [vec![], vec![]]);
                if let Some(before) = books.insert(security, book.clone()) {
                    assert_eq!(&before, book);
                    agreed += 1;
                }
            }
        });
        assert!(agreed > 3_000 && empty > 0, "{agreed} {empty}");
    }
}

/// The market goes on for hours, and its prices stay within bounds.
#[test]
fn a_long_market_makes_sense() {
    let options = SpectraOptions {
        trades: 10,
        ..SpectraOptions::default()
    };
    let mut generator = Generator::spectra(Program::spectra(), 200_000, None, options);
    let mut decoder = Decoder::new(Program::spectra());
    let (mut message, mut trades) = (Message::new(), 0);
    let program = Program::spectra();
    while let Some(packet) = generator.next_packet().unwrap() {
        let len = decoder.decode(packet, &mut message).unwrap();
        decoder.decode(&packet[len..], &mut message).unwrap();
        let view = message.view(&program).unwrap();
        let Some(entries) = view.get("MDEntries") else {
            continue;
        };
        let day = number(view.tag(52)).unwrap() / 1_000_000_000;
        for entry in entries.as_sequence().unwrap() {
            let level = level_of(entry);
            assert!((8_000..180_000).contains(&level.price), "{level:?}");
            if let Some(id) = number(entry.get("MDEntryID")) {
                trades += 1;
                assert_eq!(id, 712_400_000 + trades);
                assert_eq!(number(entry.get("MDEntryDate")), Some(day));
                assert!(entry.get("MDPriceLevel").unwrap().is_absent());
            }
        }
    }
    assert!(generator.is_complete() && generator.messages() == 200_001);
    assert!(trades > 30_000);
}

/// Templates of the same names do, and need no Done.
#[test]
fn other_templates_need_no_done() {
    let done = builtin::SPECTRA.find("<template name=\"Done\"").unwrap();
    let end = builtin::SPECTRA[done..].find("</template>").unwrap() + done;
    let rest = &builtin::SPECTRA[end + "</template>".len()..];
    let program = Program::parse(&[&builtin::SPECTRA[..done], rest].concat()).unwrap();
    assert!(program.by_name("Done").is_none());
    let options = SpectraOptions::default();
    let mut generator = Generator::spectra(program, 3, None, options);
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    assert!(generator.is_complete());
    assert_eq!(packets, spectra(3, options)[..3]);
    // Templates without the messages are refused.
    let mut generator = Generator::spectra(Program::simple(), 3, None, options);
    assert!(generator.next_packet().is_err());
    assert!(!generator.is_complete());
}
