//! Finds FIX messages in one direction of a captured TCP connection.

use fanfare_fix::codec::{Decoder, Message, Next};

use crate::tcp::{Piece, Segment, Stream};

/// The first bytes of a message, where a capture that begins within a connection starts.
const START: &[u8] = b"8=FIX";

/// A finder of the messages of one stream, and of the time at which each was complete: the latest
/// capture time of the packets that hold its bytes, which is that of the last of them unless the
/// packets were captured out of order.
///
/// At the start of the stream and behind each hole it continues at the next `8=FIX`. Memory: that
/// of [`Stream`], and less than one message of the decoder's maximum length.
#[derive(Debug, Default)]
pub struct MessageStream {
    stream: Stream,
    assembly: Assembly,
}

#[derive(Debug, Default)]
struct Assembly {
    /// The beginning of a message whose end has not come yet.
    partial: Vec<u8>,
    /// The latest time of the packets that hold `partial`.
    partial_time: u64,
    /// Whether a message starts at the front of the next bytes.
    in_step: bool,
    garbled: u64,
}

impl MessageStream {
    /// Takes a segment captured at `time`, and passes on the messages that it completes, with the
    /// time of each.
    pub fn push(
        &mut self,
        decoder: &mut Decoder,
        time: u64,
        segment: &Segment<'_>,
        sink: &mut impl FnMut(u64, &Message<'_>),
    ) {
        let Self { stream, assembly } = self;
        stream.push(time, segment, &mut |piece| {
            assembly.take(decoder, piece, sink);
        });
    }

    /// Passes on the messages that are held behind a hole: the capture has ended.
    pub fn finish(&mut self, decoder: &mut Decoder, sink: &mut impl FnMut(u64, &Message<'_>)) {
        let Self { stream, assembly } = self;
        stream.flush(&mut |piece| assembly.take(decoder, piece, sink));
    }

    /// Returns the number of gaps in the stream that the capture does not hold.
    pub fn holes(&self) -> u64 {
        self.stream.holes()
    }

    /// Returns the number of stretches that start like a message and are none.
    pub fn garbled(&self) -> u64 {
        self.assembly.garbled
    }
}

impl Assembly {
    fn take(
        &mut self,
        decoder: &mut Decoder,
        piece: Piece<'_>,
        sink: &mut impl FnMut(u64, &Message<'_>),
    ) {
        let Piece::Bytes { time, bytes } = piece else {
            self.partial.clear();
            self.in_step = false;
            return;
        };
        if self.partial.is_empty() {
            let rest = self.messages(decoder, bytes, |_| time, sink);
            self.partial.extend(bytes.get(rest..).unwrap_or_default());
            self.partial_time = time;
            return;
        }
        let mut joined = std::mem::take(&mut self.partial);
        let before = joined.len();
        joined.extend(bytes);
        let late = self.partial_time.max(time);
        let rest = self.messages(
            decoder,
            &joined,
            |at| if at < before { late } else { time },
            sink,
        );
        self.partial_time = if rest < before { late } else { time };
        joined.drain(..rest);
        self.partial = joined;
    }

    /// Passes on all whole messages in `bytes`, each with the time of its start. Returns the start
    /// of the rest.
    fn messages(
        &mut self,
        decoder: &mut Decoder,
        bytes: &[u8],
        time_at: impl Fn(usize) -> u64,
        sink: &mut impl FnMut(u64, &Message<'_>),
    ) -> usize {
        let mut at = 0;
        if !self.in_step {
            match bytes.windows(START.len()).position(|w| w == START) {
                Some(start) => at = start,
                // The last bytes may be the beginning of a message.
                None => return bytes.len().saturating_sub(START.len() - 1),
            }
            self.in_step = true;
        }
        loop {
            match decoder.next(bytes.get(at..).unwrap_or_default()) {
                Next::Message {
                    skipped,
                    message,
                    end,
                } => {
                    sink(time_at(at + skipped), &message);
                    at += end;
                }
                Next::Malformed { end, .. } | Next::Garbled { end, .. } => {
                    self.garbled += 1;
                    at += end;
                }
                Next::Partial { skipped, .. } => return at + skipped,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{fix, segment};

    /// Returns the ClOrdIDs of the messages found, with their times.
    fn run(segments: &[(u64, u32, &[u8])]) -> Vec<(u64, String)> {
        let (mut stream, mut decoder) = (MessageStream::default(), Decoder::new());
        let mut found = Vec::new();
        let mut sink = |time, message: &Message<'_>| {
            found.push((
                time,
                String::from_utf8_lossy(message.get(11).unwrap()).into_owned(),
            ));
        };
        for (time, sequence, bytes) in segments {
            stream.push(&mut decoder, *time, &segment(*sequence, bytes), &mut sink);
        }
        stream.finish(&mut decoder, &mut sink);
        found
    }

    fn pairs(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
        expected
            .iter()
            .map(|(time, id)| (*time, (*id).to_owned()))
            .collect()
    }

    #[test]
    fn several_messages_in_a_packet_and_one_over_several() {
        let bytes = [fix("D", "11=a|"), fix("D", "11=b|"), fix("D", "11=c|")].concat();
        assert_eq!(
            run(&[(1, 0, &bytes)]),
            pairs(&[(1, "a"), (1, "b"), (1, "c")])
        );
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let n = first.len() as u32;
        let segments = [(1, 0, first), (2, n, &rest[..3]), (3, n + 3, &rest[3..])];
        assert_eq!(run(&segments), pairs(&[(1, "a"), (3, "b"), (3, "c")]));
    }

    #[test]
    fn a_message_out_of_order_has_the_time_of_its_latest_packet() {
        let (one, two) = (fix("D", "11=a|"), fix("D", "11=b|"));
        let n = one.len() as u32;
        let (head, tail) = one.split_at(20);
        let segments = [(1, 0, head), (2, n, &two[..]), (5, 20, tail)];
        assert_eq!(run(&segments), pairs(&[(5, "a"), (2, "b")]));
    }

    #[test]
    fn starts_within_a_message_and_goes_on_behind_a_hole() {
        let (one, two, three) = (
            fix("D", "58=8=1|11=a|"),
            fix("D", "11=b|"),
            fix("D", "11=c|"),
        );
        let mut stream = one[12..].to_vec();
        stream.extend(&two);
        let hole = stream.len() as u32;
        let segments = [
            (1, 0, &stream[..]),
            (2, hole + 9, &three[9..]),
            (3, hole + 900, &three),
        ];
        assert_eq!(run(&segments), pairs(&[(1, "b"), (3, "c")]));
    }

    #[test]
    fn garbled_messages_are_counted_and_passed_over() {
        let mut bad = fix("D", "11=a|");
        let n = bad.len();
        bad[n - 2] ^= 1;
        let (mut stream, mut decoder) = (MessageStream::default(), Decoder::new());
        let (mut found, bytes) = (0, [bad, fix("D", "11=b|")].concat());
        stream.push(&mut decoder, 1, &segment(0, &bytes), &mut |_, _| found += 1);
        assert_eq!((found, stream.garbled()), (1, 1));
    }

    proptest! {
        #[test]
        fn any_cutting_order_and_repetition_gives_the_same_messages(
            count in 1_usize..20,
            start in any::<u32>(),
            // Not so short that more than 512 of them may be held behind a hole.
            cut in 5_usize..200,
            extra in prop::collection::vec((0_usize..2_000, 1_usize..300), 0..30),
            keys in prop::collection::vec(any::<u32>(), 64),
        ) {
            let messages: Vec<_> = (0..count).map(|i| fix("D", &format!("11={i}|"))).collect();
            let bytes = messages.concat();
            let cover = (0..bytes.len()).step_by(cut).map(|at| (at, cut));
            let mut parts: Vec<_> = cover.chain(extra).enumerate().collect();
            // The first stays in front: without the opening, the stream starts with the first
            // segment seen.
            parts[1..].sort_by_key(|(i, _)| keys[i % keys.len()]);
            let segments: Vec<(u64, u32, &[u8])> = parts.into_iter().map(|(i, (at, n))| {
                let (from, to) = (at.min(bytes.len()), (at + n).min(bytes.len()));
                (i as u64, start.wrapping_add(from as u32), &bytes[from..to])
            }).collect();
            let found: Vec<_> = run(&segments).into_iter().map(|(_, id)| id).collect();
            let expected: Vec<_> = (0..count).map(|i| i.to_string()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
