//! Random messages of a dictionary, right ones and slightly wrong ones.

use fanfare_fix::dict::{DataType, Schema};
use fastrand::Rng;

use super::oracle::{Line, unfold};

/// Random numbers: the same seed gives the same ones.
pub(crate) struct Random(pub(crate) Rng);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit.max(1))
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub(crate) type Fields = Vec<(String, String)>;

/// A valid message from MsgType(35) on; CheckSum(10) is left to the frame.
pub(crate) fn valid(schema: &Schema, random: &mut Random) -> Fields {
    let types: Vec<&String> = schema.messages.keys().collect();
    let msg_type = *random.pick(&types);
    let mut fields = vec![("35".to_owned(), msg_type.clone())];
    let header = unfold(schema, &schema.header, true);
    let body = unfold(schema, &schema.messages[msg_type].items, true);
    let framed: Vec<Line> = header
        .into_iter()
        .filter(|l| ![8, 9, 35].contains(&l.tag))
        .collect();
    add(schema, random, &framed, 8, &mut fields);
    add(schema, random, &body, 12, &mut fields);
    fields
}

/// One optional line in `odds` is there.
fn add(schema: &Schema, random: &mut Random, lines: &[Line], odds: usize, fields: &mut Fields) {
    for line in lines {
        // Data fields come with their lengths, which the decoder looks at: left out.
        let kind = schema.fields[&line.tag].kind;
        let is_data = matches!(kind, DataType::Data | DataType::XmlData | DataType::Length);
        if is_data || !line.required && random.below(odds) != 0 {
            continue;
        }
        match &line.group {
            None => fields.push((line.tag.to_string(), value(schema, random, line.tag))),
            Some(members) => {
                // Some counts have a list of values.
                let listed = &schema.fields[&line.tag].values;
                let count = match listed.is_empty() {
                    true => random.below(3),
                    false => random.pick(listed).value.parse().unwrap(),
                };
                fields.push((line.tag.to_string(), count.to_string()));
                for _ in 0..count {
                    let mut entry = members.clone();
                    entry[0].required = true;
                    add(schema, random, &entry, 4, fields);
                }
            }
        }
    }
}

fn value(schema: &Schema, random: &mut Random, tag: u32) -> String {
    let field = &schema.fields[&tag];
    // MiscFeeType(139) of FIX.4.4 is a char with values of two.
    let fits = |value: &&str| field.kind != DataType::Char || value.len() == 1;
    let listed = field.values.iter().map(|listed| &*listed.value);
    let listed: Vec<&str> = listed.filter(fits).collect();
    if !listed.is_empty() {
        return (*random.pick(&listed)).to_owned();
    }
    let choices: &[&str] = match field.kind {
        DataType::Char => &["A", "7"],
        DataType::Boolean => &["Y", "N"],
        DataType::Int => &["-17", "0", "12345678901"],
        DataType::SeqNum | DataType::NumInGroup => &["1", "0012"],
        DataType::DayOfMonth => &["31", "7"],
        DataType::Float
        | DataType::Qty
        | DataType::Price
        | DataType::PriceOffset
        | DataType::Amt
        | DataType::Percentage => &["1.25", "-0.00001", "100", "123456789.25"],
        DataType::Currency => &["EUR"],
        DataType::Country => &["DE"],
        DataType::Language => &["en"],
        DataType::MultipleCharValue => &["A B"],
        DataType::MonthYear => &["202611"],
        DataType::UtcTimestamp => &["20261121-09:30:00", "20261121-09:30:00.123456"],
        DataType::UtcTimeOnly | DataType::LocalMktTime => &["09:30:00"],
        DataType::UtcDateOnly | DataType::LocalMktDate => &["20261121"],
        DataType::TzTimeOnly => &["09:30Z"],
        DataType::TzTimestamp => &["20261121-09:30:00+01"],
        _ => &["text", "X"],
    };
    (*random.pick(choices)).to_owned()
}

/// Makes one thing wrong, or harmlessly different.
pub(crate) fn spoil(schema: &Schema, random: &mut Random, fields: &mut Fields) {
    const VALUES: [&str; 10] = ["", "0", "1", "2", "X", "+1", "Y", "1.5", "A B", "20261121"];
    const TAGS: [&str; 8] = ["0", "-1", "4999", "5000", "9999", "20001", "144", "93"];
    // MsgType(35) stays in front, or there is no message.
    let at = 1 + random.below(fields.len() - 1);
    match random.below(7) {
        _ if fields.len() < 3 => fields.push(("58".to_owned(), String::new())),
        0 => drop(fields.remove(at)),
        1 => {
            let again = fields[at].clone();
            fields.insert(1 + random.below(fields.len()), again);
        }
        2 => {
            let other = 1 + random.below(fields.len() - 1);
            fields.swap(at, other);
        }
        3 | 4 => fields[at].1 = (*random.pick(&VALUES)).to_owned(),
        5 => {
            let tags: Vec<&u32> = schema.fields.keys().collect();
            let tag = **random.pick(&tags);
            let value = value(schema, random, tag);
            fields.insert(at, (tag.to_string(), value));
        }
        _ => fields.insert(at, ((*random.pick(&TAGS)).to_owned(), "1".to_owned())),
    }
}
