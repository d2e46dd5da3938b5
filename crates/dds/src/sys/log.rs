//! The log of Cyclone DDS, kept for error texts instead of being written to the terminal; only why
//! it ends the process is written there.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::io::{self, Write};
use std::sync::Once;

use cyclors as c;

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
    // A thread that is about to end keeps nothing.
    let _ = NEWEST.try_with(|newest| newest.replace(Some(text)));
}
