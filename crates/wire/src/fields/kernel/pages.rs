//! Tests with a page of memory between two that must not be touched. A kernel that reads before a
//! message or after it kills the test.

use super::tests::{compare, wire};
use std::ptr;

const PAGE: usize = 4096;

/// Three pages of memory, of which only the one in the middle can be read.
struct Island {
    pages: *mut u8,
}

impl Island {
    fn new() -> Self {
        // SAFETY: new memory at a place that the kernel picks, of which the outer pages become
        // unreadable; nothing else refers to it.
        let pages = unsafe {
            let pages = libc::mmap(
                ptr::null_mut(),
                3 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(pages, libc::MAP_FAILED);
            let middle = pages.cast::<u8>().add(PAGE);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(middle.cast(), PAGE, access), 0);
            pages.cast::<u8>()
        };
        Self { pages }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the middle page is readable, writable and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(PAGE), PAGE) }
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        // SAFETY: what was mapped in `new`; no borrow outlives `self`.
        unsafe { libc::munmap(self.pages.cast(), 3 * PAGE) };
    }
}

#[test]
fn no_kernel_reads_outside_of_a_message() {
    let mut island = Island::new();
    let field = "8=FIX.4.4|20001=7-1234|58=a=b|1128=9|=|";
    let text = wire(field).repeat(20);
    for len in 0..520 {
        let message = &text[..len];
        let page = island.bytes();
        page[PAGE - len..].copy_from_slice(message);
        compare(&page[PAGE - len..], 1000).unwrap();
        page[..len].copy_from_slice(message);
        compare(&page[..len], 1000).unwrap();
        // The same with a separator at its end, where the kernels do not give up at once.
        if let Some(last) = page[..len].last_mut() {
            *last = 1;
        }
        compare(&page[..len], 1000).unwrap();
        page.copy_within(..len, PAGE - len);
        compare(&page[PAGE - len..], 1000).unwrap();
    }
}
