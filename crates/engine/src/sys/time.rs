//! Clocks of the kernel, read through the vDSO.

/// Returns the nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn monotonic() -> u64 {
    let (seconds, nanos) = read(libc::CLOCK_MONOTONIC);
    seconds as u64 * 1_000_000_000 + nanos as u64
}

/// Returns the nanoseconds of CLOCK_REALTIME since 1970.
pub(crate) fn utc() -> i64 {
    let (seconds, nanos) = read(libc::CLOCK_REALTIME);
    seconds * 1_000_000_000 + nanos
}

fn read(clock: libc::clockid_t) -> (i64, i64) {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct passed. Both clocks exist on every Linux, so the call
    // cannot fail; if it did, the time would be 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec, time.tv_nsec)
}
