//! The log of Cyclone DDS, kept for error texts and passed to listeners instead of being written to
//! the terminal; only why it ends the process is written there.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, Once, Weak};

use cyclors as c;

use super::OnWarning;

/// The functions that are called with each warning.
static LISTENERS: Mutex<Vec<Weak<OnWarning>>> = Mutex::new(Vec::new());

thread_local! {
    /// The newest line. The library logs why a call fails in the calling thread; lines of other
    /// threads are of other calls.
    static NEWEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Redirects errors and warnings of the library here from now on.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function has the required signature and lives as long as the program; it
        // needs no argument.
        unsafe { c::dds_set_log_sink(Some(keep), std::ptr::null_mut()) };
    });
}

/// Calls `listener` with each warning from now on, until it is dropped.
pub(crate) fn listen(listener: &Arc<OnWarning>) {
    if let Ok(mut all) = LISTENERS.lock() {
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(listener));
    }
}

fn warn(text: &str) {
    if let Ok(all) = LISTENERS.lock() {
        for listener in all.iter().filter_map(Weak::upgrade) {
            listener(text);
        }
    }
}

/// Returns the newest line of this thread, if any was logged since the last call.
pub(super) fn last() -> Option<String> {
    NEWEST.take()
}

unsafe extern "C" fn keep(_: *mut c_void, data: *const c::dds_log_data_t) {
    // SAFETY: Cyclone DDS calls this with a valid record whose message is NUL-terminated, both
    // alive during the call.
    let (priority, message) = unsafe {
        let Some(data) = data.as_ref() else { return };
        if data.message.is_null() {
            return;
        }
        (data.priority, CStr::from_ptr(data.message))
    };
    let text = message.to_string_lossy().trim().to_owned();
    // The library ends the process after such a line.
    if priority & c::DDS_LC_FATAL != 0 {
        let _ = writeln!(io::stderr(), "Cyclone DDS: {text}");
    }
    if priority & (c::DDS_LC_ERROR | c::DDS_LC_WARNING) != 0 {
        warn(&text);
    }
    // A thread that is about to end keeps nothing.
    let _ = NEWEST.try_with(|newest| newest.replace(Some(text)));
}
