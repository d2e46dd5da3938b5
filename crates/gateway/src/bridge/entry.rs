//! A message as it stands in the ring to the bus: as in the other ring, with its stamps in front.
//!
//! Layout: ingress time (8), origin (8), number (8), all little endian; length of Symbol (1), of
//! MsgType (1), byte sum of the fields (1), Symbol, MsgType, fields.

use crate::inlet::Stamp;
use fanfare_fix::codec::SharedBody;

const PREFIX: usize = 27;

/// The longest key; longer ones are cut.
pub(crate) const MAX_SYMBOL: usize = 255;

/// A message with its stamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) stamp: Stamp<'a>,
    pub(crate) body: SharedBody<'a>,
}

fn key<'a>(entry: &Entry<'a>) -> &'a [u8] {
    let symbol = entry.stamp.symbol;
    symbol.get(..MAX_SYMBOL).unwrap_or(symbol)
}

/// Length of an entry's record.
pub(crate) fn len(entry: &Entry<'_>) -> usize {
    PREFIX + key(entry).len() + entry.body.msg_type().len() + entry.body.fields().len()
}

/// Writes it into `room`, which has exactly `len(entry)` bytes.
pub(crate) fn write(entry: &Entry<'_>, room: &mut [u8]) {
    let (stamp, body, symbol) = (&entry.stamp, &entry.body, key(entry));
    let (symbol_len, type_len) = (symbol.len() as u8, body.msg_type().len() as u8);
    let mut rest = room;
    let parts: [&[u8]; 7] = [
        &stamp.ingress_nanos.to_le_bytes(),
        &stamp.origin.to_le_bytes(),
        &stamp.number.to_le_bytes(),
        &[symbol_len, type_len, body.sum()],
        symbol,
        body.msg_type(),
        body.fields(),
    ];
    for part in parts {
        let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else {
            return;
        };
        place.copy_from_slice(part);
        rest = behind;
    }
}

/// What a record holds; `None` if it is no record.
pub(crate) fn read(record: &[u8]) -> Option<Entry<'_>> {
    let (ingress, rest) = record.split_first_chunk()?;
    let (origin, rest) = rest.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (&[symbol_len, type_len, sum], rest) = rest.split_first_chunk()?;
    let (symbol, rest) = rest.split_at_checked(symbol_len.into())?;
    let (msg_type, fields) = rest.split_at_checked(type_len.into())?;
    Some(Entry {
        stamp: Stamp {
            ingress_nanos: i64::from_le_bytes(*ingress),
            origin: u64::from_le_bytes(*origin),
            number: u64::from_le_bytes(*number),
            symbol,
        },
        body: SharedBody::with_sum(msg_type, fields, sum).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for symbol in [&b""[..], b"EURUSD", &[b'x'; 300]] {
            let entry = Entry {
                stamp: Stamp {
                    ingress_nanos: -5,
                    origin: u64::MAX,
                    number: 7,
                    symbol,
                },
                body: SharedBody::new(b"AE", b"55=EURUSD\x0158=text\x01").unwrap(),
            };
            let mut room = vec![0; len(&entry)];
            write(&entry, &mut room);
            let back = read(&room).unwrap();
            assert_eq!(back.stamp.symbol, &symbol[..symbol.len().min(MAX_SYMBOL)]);
            assert_eq!(
                (
                    back.stamp.ingress_nanos,
                    back.stamp.origin,
                    back.stamp.number
                ),
                (-5, u64::MAX, 7)
            );
            assert_eq!(back.body.msg_type(), b"AE");
            assert_eq!(back.body.fields(), entry.body.fields());
            assert_eq!(back.body.sum(), entry.body.sum());
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        for short in [&b""[..], &[0; 26], &[1; 27]] {
            assert!(read(short).is_none());
        }
    }
}
