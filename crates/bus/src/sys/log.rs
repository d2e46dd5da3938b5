//! What Cyclone DDS logs: kept for error texts instead of going to the terminal.

use std::collections::VecDeque;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, Once};

use cyclors as c;

/// Lines kept; older ones are forgotten.
const KEPT: usize = 16;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Sends errors and warnings of the library here from now on.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function has the signature asked for and lives as long as the program; it
        // needs no argument.
        unsafe { c::dds_set_log_sink(Some(keep), std::ptr::null_mut()) };
    });
}

/// The newest line, if any came since the last call.
pub(super) fn last() -> Option<String> {
    let mut lines = LINES.lock().ok()?;
    let newest = lines.pop_back();
    lines.clear();
    newest
}

unsafe extern "C" fn keep(_: *mut c_void, data: *const c::dds_log_data_t) {
    // SAFETY: Cyclone DDS calls this with a valid record whose message is NUL-terminated, both
    // alive during the call.
    let message = unsafe {
        let Some(data) = data.as_ref() else { return };
        if data.message.is_null() {
            return;
        }
        CStr::from_ptr(data.message)
    };
    let text = message.to_string_lossy().trim().to_owned();
    if let Ok(mut lines) = LINES.lock() {
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}
