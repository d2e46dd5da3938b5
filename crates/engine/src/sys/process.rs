//! Properties of the whole process or thread: CPU affinity, limits, signals.

use super::check;
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of SIGINT and SIGTERM received since the handler was installed; the end of the terminal
/// counts as one, if it comes first.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// Counts SIGINT and SIGTERM from now on. The third one ends the process as without a handler, so
/// that a user can end a shutdown that hangs. SIGHUP is an interrupt, too, unless it is ignored, as
/// by nohup, or [caught](catch_hangups) as a request.
pub(crate) fn catch_interrupts() -> io::Result<()> {
    if is_default(libc::SIGHUP)? {
        handle(libc::SIGHUP, on_end_of_terminal, 0)?;
    }
    [libc::SIGINT, libc::SIGTERM]
        .into_iter()
        .try_for_each(|signal| handle(signal, on_interrupt, 0))
}

/// Number of SIGHUP received since the handler was installed.
static HANGUPS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn hangups() -> u32 {
    HANGUPS.load(Ordering::Relaxed)
}

/// Counts SIGHUP from now on, instead of any other effect of it.
pub(crate) fn catch_hangups() -> io::Result<()> {
    handle(libc::SIGHUP, on_hangup, libc::SA_RESTART)
}

/// Signals that end a process by default and indicate no fault in it. All real-time signals that
/// the C library leaves belong to them too.
const HARMLESS: [libc::c_int; 11] = [
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
];

/// Keeps signals from ending the process, except those for faults, SIGKILL, and those that are
/// caught to end it.
pub(crate) fn outlive_signals() -> io::Result<()> {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    HARMLESS
        .into_iter()
        .chain(real_time)
        .try_for_each(|signal| handle(signal, on_harmless, libc::SA_RESTART))
}

/// Makes a write beyond the limit of a file's size fail with EFBIG, instead of ending the process.
pub(crate) fn outlive_file_limit() -> io::Result<()> {
    handle(libc::SIGXFSZ, on_harmless, libc::SA_RESTART)
}

/// Installs a handler. Handlers, unlike ignored signals, are not inherited by programs that this
/// one starts.
fn handle(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    flags: libc::c_int,
) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: `action` is initialised and outlives the call; the handlers of this module only
    // use async-signal-safe operations.
    check(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) })?;
    Ok(())
}

/// Returns whether a signal has neither a handler nor is ignored.
fn is_default(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: an all-zero sigaction is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the kernel only writes the old one to `action`, which outlives
    // the call.
    check(unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) })?;
    Ok(action.sa_sigaction == libc::SIG_DFL)
}

/// A shell and the kernel both send SIGHUP: any number of them is one interrupt, so that none ends
/// the process before its shutdown.
extern "C" fn on_end_of_terminal(_: libc::c_int) {
    INTERRUPTS.fetch_max(1, Ordering::Relaxed);
}

extern "C" fn on_hangup(_: libc::c_int) {
    HANGUPS.fetch_add(1, Ordering::Relaxed);
}

const extern "C" fn on_harmless(_: libc::c_int) {}

extern "C" fn on_interrupt(signal: libc::c_int) {
    if INTERRUPTS.fetch_add(1, Ordering::Relaxed) >= 2 {
        // SAFETY: _exit is async-signal-safe and takes no pointer.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, signal: libc::c_int) -> io::Result<()> {
    // 0 and negative numbers denote groups of processes.
    let Some(pid) = libc::pid_t::try_from(process).ok().filter(|&pid| pid > 0) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "invalid process id",
        ));
    };
    // SAFETY: no pointer is passed; the result is checked.
    check(unsafe { libc::kill(pid, signal) })?;
    Ok(())
}

/// Returns whether a process with this number exists.
pub(crate) fn exists(process: u32) -> bool {
    // Signal 0 is not sent.
    match signal(process, 0) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(libc::EPERM),
    }
}

/// Makes the kernel send SIGTERM when the thread that started this process ends.
pub(crate) fn end_with_parent() -> io::Result<()> {
    // SAFETY: this option takes a signal by value and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })?;
    Ok(())
}

/// Makes the kernel send SIGTERM to each process that `command` starts when the thread that started
/// it ends.
pub(crate) fn tie(command: &mut Command) {
    let parent = std::process::id();
    let tied = move || {
        end_with_parent()?;
        // The parent may have died before the request reached the kernel.
        match parent_id() == parent {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    };
    // SAFETY: between fork and exec, `tied` makes two async-signal-safe system calls and allocates
    // nothing.
    unsafe { command.pre_exec(tied) };
}

/// Restricts the calling thread to one CPU.
pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "CPU number out of range",
        ));
    }
    // SAFETY: `cpu` was checked against the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the size passed is that of the set; 0 means the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Returns the CPUs that the calling thread may run on, ascending.
pub(crate) fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size passed, which is that of the set.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    let limit = 8 * size_of::<libc::cpu_set_t>();
    // SAFETY: `cpu` stays below the number of bits in the set.
    Ok((0..limit)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

/// Returns the soft and the hard limit of open descriptors.
pub(crate) fn open_files() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the struct passed, which outlives the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

pub(crate) fn limit_open_files(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: the kernel only reads the struct, which outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    Ok(())
}
