use super::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The samples that a writer sends ahead of acknowledgements.
const AHEAD: usize = 1_024;

/// A topic with readers that keep up, and one that may hang.
struct World {
    now: Cell<Instant>,
    hangs: Cell<bool>,
    readers: Cell<u32>,
    /// The readers that know the writers opened later.
    know: Cell<u32>,
    /// The depths of the writers opened later.
    opened: RefCell<Vec<u32>>,
    /// Whether samples of those that keep up are on the way.
    on_the_way: Cell<bool>,
}

/// A writer: the first one keeps all samples, the others as many of each instance as their depth.
#[derive(Clone)]
struct Fake {
    world: Rc<World>,
    number: usize,
    depth: usize,
    unacknowledged: Rc<RefCell<BTreeMap<u16, usize>>>,
}

impl Fake {
    fn new(world: &Rc<World>, number: usize, depth: u32) -> Self {
        Self {
            world: Rc::clone(world),
            number,
            depth: depth as usize,
            unacknowledged: Rc::default(),
        }
    }

    fn ahead(&self) -> usize {
        self.unacknowledged.borrow().values().sum()
    }
}

impl Outlet for Fake {
    fn write(&self, cdr: &[u8]) -> Result<(), Error> {
        if self.ahead() >= AHEAD {
            return Err(timeout());
        }
        if self.world.hangs.get() {
            let mut all = self.unacknowledged.borrow_mut();
            let kept = all.entry(u16::from_le_bytes([cdr[0], cdr[1]])).or_default();
            *kept = (*kept + 1).min(self.depth);
        }
        Ok(())
    }

    fn wait_for_acks(&self, _: Duration) -> Result<bool, Error> {
        let is_on_the_way = self.number > 0 && self.world.on_the_way.get();
        Ok(self.ahead() == 0 && !is_on_the_way)
    }

    fn readers(&self) -> u32 {
        match self.number {
            0 => self.world.readers.get(),
            _ => self.world.know.get().min(self.world.readers.get()),
        }
    }
}

fn timeout() -> Error {
    Error::Dds {
        action: "write".to_owned(),
        code: ReturnCode::Timeout,
        detail: String::new(),
    }
}

/// A relief and its world.
struct Bench {
    world: Rc<World>,
    own: Fake,
    relief: Relief<Fake>,
}

impl Bench {
    /// Two readers, of which one hangs.
    fn new(patience: Option<Duration>) -> Self {
        let world = Rc::new(World {
            now: Cell::new(Instant::now()),
            hangs: Cell::new(true),
            readers: Cell::new(2),
            know: Cell::new(2),
            opened: RefCell::default(),
            on_the_way: Cell::new(false),
        });
        let own = Fake::new(&world, 0, u32::MAX);
        Self {
            relief: Relief::new(own.clone(), patience),
            own,
            world,
        }
    }

    /// A bench whose first writer is full.
    fn full() -> Self {
        let mut bench = Self::new(Some(PATIENCE));
        (0..AHEAD).for_each(|_| assert!(bench.write(0)));
        assert!(!bench.write(0));
        bench
    }

    /// A bench whose writer is relieved.
    fn relieved() -> Self {
        let mut bench = Self::full();
        bench.pass(5);
        assert!(!bench.write(0));
        bench.pass(5);
        assert!(bench.write(0) && bench.relief.is_relieved());
        bench
    }

    fn pass(&self, seconds: u64) {
        let now = self.world.now.get();
        self.world.now.set(now + Duration::from_secs(seconds));
    }

    /// Writes a sample of an instance. Returns whether it was written.
    fn write(&mut self, instance: u16) -> bool {
        let Self { world, relief, .. } = self;
        let world = &*world;
        let written = relief.write(
            &instance.to_le_bytes(),
            || world.now.get(),
            |_, d| Ok(open(world, d)),
        );
        assert!(!written.as_ref().is_err_and(|error| !is_vain(error)));
        written.is_ok()
    }

    /// Returns the number of the writer in use.
    fn number(&self) -> usize {
        self.relief.current().number
    }

    fn look(&mut self) {
        let Self { world, relief, .. } = self;
        let world = &*world;
        let looked = relief.look(world.now.get(), |_, d| Ok(open(world, d)));
        looked.unwrap();
    }

    /// Makes the reader that hangs take everything, or go.
    fn take_all(&self) {
        self.world.hangs.set(false);
        self.own.unacknowledged.borrow_mut().clear();
        let current = self.relief.current();
        current.unacknowledged.borrow_mut().clear();
    }
}

fn open(world: &Rc<World>, depth: u32) -> Fake {
    world.opened.borrow_mut().push(depth);
    Fake::new(world, world.opened.borrow().len(), depth)
}

#[test]
fn a_writer_is_relieved_after_ten_seconds_and_waits_for_nobody() {
    let mut bench = Bench::full();
    bench.pass(4);
    assert!(!bench.write(0));
    assert!(bench.world.opened.borrow().is_empty());
    bench.pass(1);
    assert!(!bench.write(0));
    assert_eq!(*bench.world.opened.borrow(), [DEPTH]);
    bench.pass(4);
    assert!(!bench.write(0) && !bench.relief.is_relieved());
    bench.pass(1);
    for i in 0..1_000 {
        assert!(bench.write(i % 3));
    }
    assert_eq!((bench.number(), bench.relief.is_relieved()), (1, true));
    assert_eq!(bench.own.ahead(), AHEAD);
}

#[test]
fn it_returns_at_once_when_the_reader_is_gone_and_the_others_have_all() {
    let mut bench = Bench::relieved();
    bench.world.readers.set(1);
    bench.pass(1);
    bench.look();
    // The reader that is gone is another one.
    assert!(bench.relief.is_relieved());
    bench.take_all();
    bench.world.on_the_way.set(true);
    bench.pass(1);
    bench.look();
    assert!(bench.relief.is_relieved());
    bench.world.on_the_way.set(false);
    bench.look();
    assert!(bench.relief.is_relieved(), "it asks once a second");
    bench.pass(1);
    bench.look();
    assert!(!bench.relief.is_relieved() && bench.relief.is_whole());
    assert!(bench.write(0));
    assert_eq!(bench.number(), 0);
}

#[test]
fn it_returns_after_a_minute_when_the_reader_has_taken_all_and_not_while_it_hangs() {
    let mut bench = Bench::relieved();
    bench.pass(59);
    bench.take_all();
    bench.look();
    assert!(bench.relief.is_relieved());
    bench.pass(1);
    bench.look();
    assert!(!bench.relief.is_relieved());
    let mut bench = Bench::relieved();
    bench.pass(3_600);
    bench.look();
    assert!(bench.relief.is_relieved());
}

#[test]
fn a_relief_begins_when_the_readers_know_the_writer() {
    let mut bench = Bench::full();
    bench.world.know.set(1);
    bench.pass(9);
    assert!(!bench.write(0));
    bench.pass(1);
    assert!(!bench.write(0));
    bench.world.know.set(2);
    assert!(bench.write(0) && bench.relief.is_relieved());
    // One that never knows it is not waited for without end.
    let mut bench = Bench::full();
    bench.world.know.set(1);
    bench.pass(9);
    assert!(!bench.write(0));
    bench.pass(10);
    assert!(bench.write(0) && bench.relief.is_relieved());
}

#[test]
fn a_reader_that_takes_in_between_ends_the_patience() {
    let mut bench = Bench::full();
    bench.pass(9);
    assert!(!bench.write(0));
    bench.own.unacknowledged.borrow_mut().clear();
    bench.look();
    assert!(bench.relief.is_whole());
    (0..AHEAD).for_each(|_| assert!(bench.write(0)));
    assert!(!bench.write(0));
    bench.own.unacknowledged.borrow_mut().clear();
    assert!(bench.write(0) && bench.relief.is_whole());
    assert_eq!(bench.number(), 0);
}

/// So many instances that the last samples of each are more than a writer sends ahead.
#[test]
fn a_full_relief_is_replaced_by_one_that_keeps_less() {
    for (instances, depths, last) in [
        (200, vec![256, 16, 1, 1], 3),
        (2_000, vec![256, 16, 1, 1, 1, 1], 5),
    ] {
        let mut bench = Bench::relieved();
        // A second for each thousand.
        for i in 0..4_500 {
            assert!(bench.write(i % instances), "{i}");
            if i % 1_000 == 0 {
                bench.pass(1);
            }
        }
        assert_eq!(*bench.world.opened.borrow(), depths);
        assert_eq!(bench.number(), last);
    }
}

/// One that is full before the next one is known.
#[test]
fn readers_do_not_miss_the_first_samples_of_a_replacement() {
    let mut bench = Bench::relieved();
    let written = (0..2_000).take_while(|i| bench.write(*i)).count();
    // One sample is from before.
    assert_eq!((written, bench.number()), (AHEAD - 1, 1));
    bench.pass(1);
    assert!(bench.write(0));
    assert_eq!(bench.number(), 2);
}

#[test]
fn without_patience_a_write_is_in_vain_as_long_as_the_reader_hangs() {
    let mut bench = Bench::new(None);
    (0..AHEAD).for_each(|_| assert!(bench.write(0)));
    bench.pass(3_600);
    assert!(!bench.write(0));
    bench.look();
    assert!(bench.world.opened.borrow().is_empty() && bench.relief.is_whole());
}
