//! Any bytes as operations on an arbiter, and the invariants after each, for the property test here
//! and for the fuzz target.

use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, LineStats, Start, Unit, Verdict};

const MS: u64 = 1_000_000;

/// Runs `data` as operations of eight bytes each, after three bytes of configuration.
pub(crate) fn run(data: &[u8]) {
    let Some(([hold_back, recovery, wait], data)) = data.split_first_chunk::<3>() else {
        return;
    };
    let config = ArbiterConfig {
        hold_back: usize::from(hold_back % 32) + 1,
        recovery_timeout: u64::from(recovery % 3) * 20 * MS,
        missing_ranges: 8,
        unit_bytes: 8,
        start: Start::First {
            wait: u64::from(wait % 3) * 10 * MS,
        },
        ..ArbiterConfig::default()
    };
    let mut checked = Checked {
        arbiter: Arbiter::new(config),
        hold_back: config.hold_back,
        now: 0,
        next: None,
    };
    for operation in data.chunks_exact(8) {
        if let Ok(operation) = operation.try_into() {
            checked.operate(operation);
        }
    }
    checked.arbiter.flush();
    checked.drain();
    assert_eq!(checked.arbiter.held(), 0, "flush lets everything out");
}

struct Checked {
    arbiter: Arbiter,
    hold_back: usize,
    now: u64,
    /// The number of the next unit, if that is known.
    next: Option<u32>,
}

impl Checked {
    fn operate(&mut self, [kind, line, time, count, a, b, c, d]: [u8; 8]) {
        self.now += u64::from(time) * MS / 4;
        let wild = u32::from_le_bytes([a, b, c, d]);
        let expected = self.arbiter.expected().unwrap_or(wild);
        let near = expected.wrapping_add_signed(i32::from(a as i8));
        match kind % 16 {
            0..=3 => self.receive(line, near, u32::from(count % 4) + 1),
            4..=6 => self.receive(line, expected, u32::from(count % 4) + 1),
            7..=8 => self.receive(line, u32::from(a), 1),
            9 => self.receive(line, wild, wild >> 12),
            10..=11 => self.receive(line, wild, 1),
            12 => self.arbiter.handle_timeout(self.now),
            13 => self.arbiter.flush(),
            14 if b % 2 == 0 => self.arbiter.reset(wild),
            14 => {
                let next = if b % 4 == 1 { u32::from(a) } else { wild };
                self.arbiter.announce(next);
            }
            _ => {
                self.arbiter.resume(if b % 2 == 0 { near } else { wild });
                self.next = None;
            }
        }
        self.drain();
    }

    fn receive(&mut self, line: u8, sequence: u32, count: u32) {
        let line = Line::new(usize::from(line) % Line::MAX).unwrap_or(Line::A);
        let unit = Unit {
            sequence,
            count,
            bytes: &sequence.to_le_bytes(),
        };
        if let Verdict::Deliver { skip } = self.arbiter.receive(self.now, line, unit) {
            self.came(sequence, count, skip);
        }
    }

    /// Checks a delivered unit: it must begin at or before the next number, and end after it.
    fn came(&mut self, sequence: u32, count: u32, skip: u32) {
        assert!(skip < count);
        if let Some(next) = self.next {
            assert_eq!(sequence.wrapping_add(skip), next);
        }
        self.next = Some(sequence.wrapping_add(count));
    }

    fn drain(&mut self) {
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) => {
                    assert_eq!(unit.bytes, unit.sequence.to_le_bytes());
                    let (sequence, count, skip) = (unit.sequence, unit.count, unit.skip);
                    self.came(sequence, count, skip);
                }
                Event::Gap(gap) => {
                    assert!(gap.count > 0 && self.next.is_none_or(|next| next == gap.first));
                    self.next = Some(gap.last().wrapping_add(1));
                }
                Event::Reset { expected, next } => {
                    assert!(self.next.is_none_or(|n| n == expected));
                    self.next = Some(next);
                }
                Event::Recover(gap) => {
                    assert!(self.next.is_none_or(|next| next == gap.first));
                }
            }
        }
        self.check();
    }

    /// Checks the invariants that hold when there is no event left.
    fn check(&self) {
        let held = self.arbiter.held() as u64;
        assert!(held <= self.hold_back as u64);
        let lines = (0..Line::MAX).filter_map(Line::new);
        let open = |s: &LineStats| s.received - s.first - s.duplicate - s.late - s.refused;
        let open: u64 = lines.map(|line| open(self.arbiter.line(line))).sum();
        assert!(
            open == held || open == held + 1,
            "all but a suspect is told of"
        );
        assert!(self.arbiter.missing().ranges().count() <= 8);
        assert!(held == 0 || self.arbiter.poll_timeout().is_some());
    }
}
