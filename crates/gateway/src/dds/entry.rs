//! The record of a message in the ring to DDS: as in the other ring, preceded by its stamps.
//!
//! Layout: ingress time (8), origin (8), number (8), order (8), epoch (8), hash of the feed's time
//! (8), number in the feed (8), index (4), length of Symbol (2), all little endian; length of the
//! channel (1), 1 if messages are missing before it (1), Symbol, channel, the record of their
//! [hole](crate::fanout::hole), and the [record](crate::fanout::record) of the message.

use crate::dds::channels::Identity;
use crate::fanout::hole::{self, Hole};
use crate::fanout::record;
use crate::fanout::stamp::Stamp;
use fanfare_dds::LONGEST_KEY;
use fanfare_fix::codec::SharedBody;

const PREFIX: usize = 64;

/// The longest name of a channel.
pub(crate) const MAX_CHANNEL: usize = 96;

/// The longest Symbol in the ring, to which longer ones are truncated. It is too long for a key, so
/// the writer refuses it: Symbols that differ are never one instance.
pub(crate) const MAX_SYMBOL: usize = LONGEST_KEY as usize;

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

fn channel<'a>(entry: &Entry<'a>) -> &'a [u8] {
    let channel = entry.stamp.identity.channel;
    channel.get(..MAX_CHANNEL).unwrap_or(channel)
}

/// Returns the length of an entry's record.
pub(crate) fn len(entry: &Entry<'_>) -> usize {
    let hole = if entry.stamp.hole.is_some() {
        hole::RECORD
    } else {
        0
    };
    PREFIX + key(entry).len() + channel(entry).len() + hole + record::len(&entry.body)
}

/// Writes the entry into `room`, which has exactly `len(entry)` bytes.
pub(crate) fn write(entry: &Entry<'_>, room: &mut [u8]) {
    let (stamp, identity) = (&entry.stamp, &entry.stamp.identity);
    let (symbol, channel) = (key(entry), channel(entry));
    let mut record = [0; hole::RECORD];
    let hole = stamp.hole.as_ref().map_or(&[][..], |hole| {
        hole.write(&mut record);
        &record
    });
    let mut rest = room;
    let parts: [&[u8]; 14] = [
        &stamp.ingress_nanos.to_le_bytes(),
        &stamp.origin.to_le_bytes(),
        &stamp.number.to_le_bytes(),
        &stamp.order.to_le_bytes(),
        &identity.epoch.to_le_bytes(),
        &stamp.sent.to_le_bytes(),
        &identity.number.to_le_bytes(),
        &identity.index.to_le_bytes(),
        &(symbol.len() as u16).to_le_bytes(),
        &[channel.len() as u8],
        &[u8::from(!hole.is_empty())],
        symbol,
        channel,
        hole,
    ];
    for part in parts {
        let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else {
            return;
        };
        place.copy_from_slice(part);
        rest = behind;
    }
    record::write(&entry.body, rest);
}

/// Parses a record, or returns `None` if it is not one.
pub(crate) fn read(record: &[u8]) -> Option<Entry<'_>> {
    let (ingress, rest) = record.split_first_chunk()?;
    let (origin, rest) = rest.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (order, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (sent, rest) = rest.split_first_chunk()?;
    let (in_feed, rest) = rest.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let (symbol_len, rest) = rest.split_first_chunk()?;
    let (&[channel_len, has_hole], rest) = rest.split_first_chunk()?;
    let (symbol, rest) = rest.split_at_checked(u16::from_le_bytes(*symbol_len).into())?;
    let (channel, rest) = rest.split_at_checked(channel_len.into())?;
    let (hole, message) = match has_hole {
        0 => (None, rest),
        _ => {
            let (hole, message) = rest.split_at_checked(hole::RECORD)?;
            (Some(Hole::read(hole)?), message)
        }
    };
    Some(Entry {
        stamp: Stamp {
            ingress_nanos: i64::from_le_bytes(*ingress),
            origin: u64::from_le_bytes(*origin),
            number: u64::from_le_bytes(*number),
            order: u64::from_le_bytes(*order),
            symbol,
            identity: Identity {
                channel,
                epoch: u64::from_le_bytes(*epoch),
                number: u64::from_le_bytes(*in_feed),
                index: u32::from_le_bytes(*index),
            },
            sent: u64::from_le_bytes(*sent),
            hole,
        },
        body: record::read(message)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::hole::Missing;

    #[test]
    fn what_is_written_is_read_back() {
        let missing = Hole::new(Missing::FeedGap, 3, 7);
        for (symbol, hole) in [
            (&b""[..], None),
            (b"EURUSD", Some(missing)),
            (&[b'x'; 300], None),
            (&[b'x'; 2_000], Some(missing)),
        ] {
            let entry = Entry {
                stamp: Stamp {
                    ingress_nanos: -5,
                    origin: u64::MAX,
                    number: 7,
                    order: 11,
                    symbol,
                    identity: Identity {
                        channel: b"moex",
                        epoch: u64::MAX,
                        number: 9,
                        index: 3,
                    },
                    sent: 13,
                    hole,
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
            assert_eq!((back.stamp.order, back.stamp.sent), (11, 13));
            assert_eq!(back.stamp.identity, entry.stamp.identity);
            assert_eq!(back.stamp.hole, hole);
            assert_eq!(back.body.msg_type(), b"AE");
            assert_eq!(back.body.fields(), entry.body.fields());
            assert_eq!(back.body.sum(), entry.body.sum());
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        for short in [&b""[..], &[0; 64], &[1; 65]] {
            assert!(read(short).is_none());
        }
    }
}
