use super::*;
use fanfare_wire::UtcTimestamp;

fn check(kind: DataType, good: &[&str], bad: &[&str]) {
    for value in good {
        assert!(kind.accepts(value.as_bytes()), "{kind:?} refuses {value}");
    }
    for value in bad {
        assert!(!kind.accepts(value.as_bytes()), "{kind:?} takes {value}");
    }
}

#[test]
fn integers() {
    let bad = ["", "-", "+1", "1.0", "a", " 1", "99999999999999999999"];
    check(
        DataType::Int,
        &["0", "-1", "00023", "9223372036854775807"],
        &bad,
    );
    check(DataType::SeqNum, &["0", "007"], &["-1", "", "+1", "1 "]);
    check(
        DataType::DayOfMonth,
        &["1", "09", "31"],
        &["0", "00", "32", "1a", ""],
    );
}

#[test]
fn decimals() {
    check(
        DataType::Qty,
        &["002000.00", "-5", ".5", "5.", "23.23", "0"],
        &["", "+200.00", "1e5", ".", "-", "-.", "1.2.3", "1,5", "--1"],
    );
}

#[test]
fn letters() {
    check(DataType::Char, &["A", "="], &["", "AB"]);
    check(DataType::Boolean, &["Y", "N"], &["y", "", "YES", "0"]);
    check(DataType::Currency, &["EUR"], &["EU", "EURO", "E R"]);
    check(DataType::Country, &["DE"], &["D", "DEU", "12"]);
    check(DataType::Language, &["en"], &["e", "eng"]);
    check(
        DataType::MultipleCharValue,
        &["A", "A B"],
        &["AB", "A  B", "A ", ""],
    );
    check(
        DataType::MultipleStringValue,
        &["AV AN A"],
        &["A  B", " A", ""],
    );
}

#[test]
fn times() {
    check(
        DataType::UtcTimestamp,
        &[
            "20240229-23:59:60",
            "20240101-00:00:00.123",
            "20240101-00:00:00.123456789",
        ],
        &[
            "20230229-00:00:00",
            "20240101-24:00:00",
            "20240101-00:60:00",
            "20240101 00:00:00",
            "20240101-00:00:00.",
            "20240101-00:00:00.1234",
            "20240101-00-00-00",
            "2024010a-00:00:00",
            "20241301-00:00:00",
            "20240100-00:00:00",
            "20240101",
            "",
        ],
    );
    check(
        DataType::UtcTimeOnly,
        &["12:34:56", "12:34:56.789"],
        &["12:34", "1:2:3", "12:34:5x"],
    );
    check(
        DataType::LocalMktDate,
        &["20000229"],
        &["19000229", "20240431", "2024", "202401011"],
    );
    check(
        DataType::MonthYear,
        &["202401", "20240131", "202401w5"],
        &["202400", "202413", "202401w6", "20240132", "2024"],
    );
}

#[test]
fn a_timestamp_that_is_valid_can_be_read() {
    for digits in 0..=15 {
        let fraction = &".123456789012345"[..digits + usize::from(digits > 0)];
        let text = format!("20261125-10:00:00{fraction}");
        let accepted = DataType::UtcTimestamp.accepts(text.as_bytes());
        let read = UtcTimestamp::parse(text.as_bytes());
        assert_eq!(accepted, matches!(digits, 0 | 3 | 6 | 9 | 12), "{text}");
        assert_eq!(read.is_some(), accepted, "{text}");
    }
}

#[test]
fn times_with_zone() {
    check(
        DataType::TzTimeOnly,
        &[
            "07:39Z",
            "02:39-05",
            "15:39+08:30",
            "13:09:10.123+05:30",
            "07:39",
        ],
        &["7:39", "07:39+5", "07:39+24", "07:39ZZ", "", "07:39-05:60"],
    );
    check(
        DataType::TzTimestamp,
        &["20060901-07:39Z", "20060901-13:09:10.123+05:30"],
        &["20060901", "20060901T07:39Z", "20061301-07:39Z"],
    );
}

#[test]
fn names_and_aliases() {
    for (name, kind) in NAMES {
        assert_eq!(DataType::from_name(&name.to_ascii_lowercase()), *kind);
        assert_eq!(DataType::from_name(kind.name()), *kind);
    }
    assert_eq!(DataType::from_name("Tenor"), DataType::Other);
}
