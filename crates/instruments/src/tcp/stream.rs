//! Reassembles one direction of one TCP connection.

use std::collections::VecDeque;
use std::ops::Range;

use super::Segment;

/// The most bytes held behind a hole; beyond, the hole is skipped. Streams are reordered by a few
/// packets only, so bytes that are missing for longer were lost by the capture.
const MAX_WAITING: usize = 256 << 10;
/// The most segments held behind a hole.
const MAX_WAITING_SEGMENTS: usize = 512;
/// The range around the expected number in which a segment belongs to this connection; one outside
/// belongs to another connection of the same ports whose opening was not captured: retransmissions
/// reach no further back than a window, and no window reaches further ahead.
const THIS_CONNECTION: Range<i64> = -(64 << 20)..1 << 30;

/// A part of a stream, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next bytes, with the capture time of the packet that carried them.
    Bytes {
        /// Nanoseconds since 1970.
        time: u64,
        /// At least one byte.
        bytes: &'a [u8],
    },
    /// Bytes are missing here: what follows does not continue what came before.
    Hole,
}

/// A reassembler of the segments of one direction: each byte once, as first captured, whether
/// segments were retransmitted, captured twice, overlapping or out of order. Sequence numbers may
/// wrap. A capture that starts within the connection starts the stream at the first byte seen.
///
/// Memory: the segments behind a hole, at most 256 KiB and 512 segments; then the hole is reported
/// and the stream continues after it.
#[derive(Debug, Default)]
pub struct Stream {
    /// The sequence number expected next; `None` before the first segment.
    next: Option<u32>,
    /// The sequence number of the first byte of the connection, if its opening was captured.
    first: Option<u32>,
    /// Segments behind a hole, ordered by distance from `next`.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    holes: u64,
}

#[derive(Debug)]
struct Waiting {
    sequence: u32,
    time: u64,
    bytes: Vec<u8>,
    cut: u32,
}

impl Stream {
    /// Takes a segment captured at `time` and passes on the bytes that are now in order.
    pub fn push(&mut self, time: u64, segment: &Segment<'_>, sink: &mut impl FnMut(Piece<'_>)) {
        let mut sequence = segment.sequence;
        if segment.syn {
            sequence = sequence.wrapping_add(1);
            self.open(sequence, sink);
        }
        if segment.payload.is_empty() && segment.cut == 0 {
            return;
        }
        let next = *self.next.get_or_insert(sequence);
        let mut ahead = distance(next, sequence);
        if !THIS_CONNECTION.contains(&ahead) {
            self.flush(sink);
            self.hole(sink);
            self.next = Some(sequence);
            ahead = 0;
        }
        if ahead > 0 {
            self.wait(sequence, time, segment);
            while self.waiting_bytes > MAX_WAITING || self.waiting.len() > MAX_WAITING_SEGMENTS {
                self.give_up_hole(sink);
            }
            return;
        }
        self.deliver(sequence, time, segment.payload, segment.cut, sink);
        self.deliver_waiting(sink);
    }

    /// Passes on all held segments, with the holes before them: the capture has ended.
    pub fn flush(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        while !self.waiting.is_empty() {
            self.give_up_hole(sink);
        }
    }

    /// Returns the number of holes reported so far.
    pub fn holes(&self) -> u64 {
        self.holes
    }

    /// Handles a SYN: captured again it changes nothing, otherwise a new connection starts.
    fn open(&mut self, first: u32, sink: &mut impl FnMut(Piece<'_>)) {
        if self.first == Some(first) {
            return;
        }
        if self.next.is_some() {
            self.flush(sink);
            sink(Piece::Hole);
        }
        (self.first, self.next) = (Some(first), Some(first));
    }

    /// Passes on the new part of a segment at or before `next`, and a hole for bytes that the snap
    /// length cut.
    fn deliver(
        &mut self,
        sequence: u32,
        time: u64,
        payload: &[u8],
        cut: u32,
        sink: &mut impl FnMut(Piece<'_>),
    ) {
        let next = self.next.unwrap_or(sequence);
        let old = usize::try_from(distance(sequence, next)).unwrap_or(0);
        let bytes = payload.get(old..).unwrap_or_default();
        if !bytes.is_empty() {
            sink(Piece::Bytes { time, bytes });
        }
        let end = sequence
            .wrapping_add(payload.len() as u32)
            .wrapping_add(cut);
        if distance(next, end) > 0 {
            self.next = Some(end);
            if cut > 0 {
                self.hole(sink);
            }
        }
    }

    fn wait(&mut self, sequence: u32, time: u64, segment: &Segment<'_>) {
        let Some(next) = self.next else { return };
        let ahead = distance(next, sequence);
        let at = self
            .waiting
            .partition_point(|w| distance(next, w.sequence) <= ahead);
        let known = at
            .checked_sub(1)
            .and_then(|before| self.waiting.get(before));
        if known.is_some_and(|w| w.sequence == sequence && w.bytes.len() >= segment.payload.len()) {
            return;
        }
        self.waiting_bytes += segment.payload.len();
        let (bytes, cut) = (segment.payload.to_vec(), segment.cut);
        self.waiting.insert(
            at,
            Waiting {
                sequence,
                time,
                bytes,
                cut,
            },
        );
    }

    fn deliver_waiting(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        while let (Some(next), Some(front)) = (self.next, self.waiting.front()) {
            if distance(next, front.sequence) > 0 {
                return;
            }
            if let Some(w) = self.waiting.pop_front() {
                self.waiting_bytes -= w.bytes.len();
                self.deliver(w.sequence, w.time, &w.bytes, w.cut, sink);
            }
        }
    }

    fn give_up_hole(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        if let Some(front) = self.waiting.front() {
            self.next = Some(front.sequence);
            self.hole(sink);
            self.deliver_waiting(sink);
        }
    }

    fn hole(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        self.holes += 1;
        sink(Piece::Hole);
    }
}

/// Returns the distance of `to` ahead of `from`, the shorter way around.
fn distance(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from).cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::segment;

    /// Returns all pieces as text, a hole as `_`, with the times.
    fn run(segments: &[(u64, Segment<'_>)]) -> (String, Vec<u64>) {
        let (mut stream, mut text, mut times) = (Stream::default(), String::new(), Vec::new());
        let mut sink = |piece: Piece<'_>| match piece {
            Piece::Bytes { time, bytes } => {
                text.push_str(std::str::from_utf8(bytes).unwrap());
                times.push(time);
            }
            Piece::Hole => text.push('_'),
        };
        for (time, segment) in segments {
            stream.push(*time, segment, &mut sink);
        }
        stream.flush(&mut sink);
        (text, times)
    }

    #[test]
    fn retransmissions_overlaps_and_duplicates_count_once() {
        let segments = [
            (1, segment(10, b"abc")),
            (2, segment(10, b"abc")),
            (3, segment(11, b"bcde")),
            (4, segment(9, b"-")),
            (5, segment(15, b"f")),
        ];
        assert_eq!(run(&segments), ("abcdef".to_owned(), vec![1, 3, 5]));
    }

    #[test]
    fn bytes_out_of_order_keep_the_time_of_their_packet() {
        let segments = [
            (1, segment(10, b"a")),
            (2, segment(13, b"def")),
            (3, segment(12, b"cd")),
            (4, segment(11, b"b")),
        ];
        assert_eq!(run(&segments), ("abcdef".to_owned(), vec![1, 4, 3, 2]));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let near = u32::MAX - 1;
        let segments = [
            (1, segment(near, b"ab")),
            (2, segment(2, b"ef")),
            (3, segment(0, b"cd")),
        ];
        assert_eq!(run(&segments).0, "abcdef");
    }

    #[test]
    fn what_never_comes_is_a_hole_at_the_end_or_at_the_limit() {
        let segments = [(1, segment(10, b"ab")), (2, segment(20, b"xy"))];
        assert_eq!(run(&segments).0, "ab_xy");

        let mut stream = Stream::default();
        let (mut bytes, mut holes) = (0, 0);
        let mut sink = |piece: Piece<'_>| match piece {
            Piece::Bytes { bytes: b, .. } => bytes += b.len(),
            Piece::Hole => holes += 1,
        };
        stream.push(0, &segment(0, b"a"), &mut sink);
        let block = vec![7; 1_000];
        for i in 0..300_u32 {
            stream.push(1, &segment(2 + i * 1_000, &block), &mut sink);
        }
        assert_eq!((bytes, holes), (300_001, 1));
        assert!(stream.waiting.is_empty());
    }

    #[test]
    fn a_new_connection_on_the_same_ports() {
        let syn = |sequence| Segment {
            syn: true,
            ..segment(sequence, b"")
        };
        let segments = [
            (1, syn(99)),
            (1, syn(99)),
            (2, segment(100, b"one")),
            (2, syn(99)),
            (3, syn(5)),
            (4, segment(6, b"two")),
            (5, segment(2_000_000_006, b"three")),
        ];
        assert_eq!(run(&segments).0, "one_two_three");
    }

    #[test]
    fn what_the_snap_length_cut_is_a_hole() {
        let cut = Segment {
            cut: 4,
            ..segment(10, b"ab")
        };
        let segments = [(1, cut), (2, segment(16, b"xy")), (3, cut)];
        assert_eq!(run(&segments).0, "ab_xy");
    }

    proptest! {
        #[test]
        fn any_cutting_order_and_repetition_gives_the_same_bytes(
            len in 1_usize..400,
            start in any::<u32>(),
            cuts in prop::collection::vec((0_usize..400, 1_usize..60), 0..60),
            keys in prop::collection::vec(any::<u32>(), 120),
        ) {
            let data: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
            // Segments that cover all bytes, and extra ones that overlap them at random.
            let cover = (0..len).step_by(7).map(|at| (at, 7));
            let mut parts: Vec<(usize, usize)> = cover.chain(cuts).collect();
            let order = |i: usize| keys[i % keys.len()];
            let mut index: Vec<usize> = (0..parts.len()).collect();
            index.sort_by_key(|&i| order(i));
            parts = index.into_iter().map(|i| parts[i]).collect();
            let syn = Segment { syn: true, ..segment(start.wrapping_sub(1), b"") };
            let mut segments = vec![(0, syn)];
            for (at, n) in parts {
                let from = at.min(len);
                let bytes = &data[from..(from + n).min(len)];
                segments.push((0, segment(start.wrapping_add(from as u32), bytes)));
            }
            let (text, _) = run(&segments);
            prop_assert_eq!(text.as_bytes(), &data[..]);
        }
    }
}
