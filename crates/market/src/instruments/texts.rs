//! The texts of instruments, consecutive in large pieces.

/// The bytes of a piece.
const PIECE: usize = 1 << 20;
/// Texts begin at multiples of this many bytes.
const UNIT: usize = 8;
/// The least wasted bytes at which texts are compacted.
const LEAST_WASTE: usize = 4 << 20;

/// A store of texts. A text that is replaced leaves waste ([`Texts::is_wasteful`]).
#[derive(Debug, Default)]
pub(super) struct Texts {
    pieces: Vec<Box<[u8]>>,
    /// The used bytes of the last piece.
    used: usize,
    wasted: usize,
}

/// The position of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    at: u32,
    pub(super) len: u16,
}

const fn room(len: usize) -> usize {
    len.next_multiple_of(UNIT)
}

impl Texts {
    /// Stores a text of less than 64 KiB.
    pub(super) fn push(&mut self, text: &[u8]) -> Span {
        let len = text.len().min(u16::MAX.into());
        if len == 0 {
            return Span::default();
        }
        if self.pieces.is_empty() || self.used + room(len) > PIECE {
            if !self.pieces.is_empty() {
                self.wasted += PIECE - self.used;
            }
            self.pieces.push(vec![0; PIECE].into_boxed_slice());
            self.used = 0;
        }
        let begin = self.used;
        self.used += room(len);
        let piece = self.pieces.last_mut().map(|piece| &mut piece[..]);
        let to = piece.and_then(|piece| piece.get_mut(begin..begin + len));
        if let (Some(to), Some(text)) = (to, text.get(..len)) {
            to.copy_from_slice(text);
        }
        let before = (self.pieces.len() - 1) * (PIECE / UNIT);
        Span {
            at: (before + begin / UNIT) as u32,
            len: len as u16,
        }
    }

    /// Replaces a text, in place if it fits. Returns its position.
    pub(super) fn replace(&mut self, old: Span, text: &[u8]) -> Span {
        let (have, need) = (room(old.len.into()), room(text.len()));
        if need == 0 || need > have {
            self.wasted += have;
            return self.push(text);
        }
        self.wasted += have - need;
        let (piece, begin) = Self::place(old);
        let piece = self.pieces.get_mut(piece).map(|piece| &mut piece[..]);
        if let Some(to) = piece.and_then(|piece| piece.get_mut(begin..begin + text.len())) {
            to.copy_from_slice(text);
        }
        Span {
            len: text.len() as u16,
            ..old
        }
    }

    #[inline]
    pub(super) fn get(&self, span: Span) -> &[u8] {
        let (piece, begin) = Self::place(span);
        let piece = self.pieces.get(piece);
        let text = piece.and_then(|piece| piece.get(begin..begin + usize::from(span.len)));
        text.unwrap_or_default()
    }

    const fn place(span: Span) -> (usize, usize) {
        let at = span.at as usize * UNIT;
        (at / PIECE, at % PIECE)
    }

    /// Returns whether more than half of the memory is wasted.
    pub(super) const fn is_wasteful(&self) -> bool {
        self.wasted > LEAST_WASTE && self.wasted > self.pieces.len() * PIECE / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_they_were_and_waste_is_told() {
        let mut texts = Texts::default();
        let mut spans = Vec::new();
        for i in 0..100_000_u32 {
            spans.push(texts.push(i.to_string().repeat(i as usize % 9).as_bytes()));
        }
        let longer = texts.replace(spans[1], b"longer than before, by far");
        assert_eq!(texts.get(longer), b"longer than before, by far");
        let shorter = texts.replace(longer, b"short");
        assert_eq!((texts.get(shorter), shorter.at), (&b"short"[..], longer.at));
        for (i, span) in spans.iter().enumerate().skip(2) {
            assert_eq!(texts.get(*span), i.to_string().repeat(i % 9).as_bytes());
        }
        assert!(!texts.is_wasteful());
        let mut span = shorter;
        for len in 0..60_000 {
            span = texts.replace(span, &vec![b'x'; len]);
            if texts.is_wasteful() {
                return;
            }
        }
        panic!("{} bytes wasted", texts.wasted);
    }
}
