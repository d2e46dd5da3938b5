//! Addresses of network interfaces.

use std::ffi::CStr;
use std::net::Ipv4Addr;

/// Returns the first IPv4 address of the interface with this name; `None` if it has none.
pub(crate) fn interface_address(name: &str) -> Option<Ipv4Addr> {
    let mut all = std::ptr::null_mut();
    // SAFETY: on success a list is stored, owned here and freed once below.
    if unsafe { libc::getifaddrs(&mut all) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = all;
    // SAFETY: `next` is null or an entry of the list, which lives until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name of an entry is NUL-terminated; its address is null or valid.
        let (its_name, address) =
            unsafe { (CStr::from_ptr(entry.ifa_name), entry.ifa_addr.as_ref()) };
        let Some(address) = address else { continue };
        if its_name.to_bytes() == name.as_bytes()
            && libc::c_int::from(address.sa_family) == libc::AF_INET
        {
            // SAFETY: an address of the family AF_INET is a `sockaddr_in`. It may be unaligned.
            let v4 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            found = Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)));
            break;
        }
    }
    // SAFETY: made by getifaddrs above, not used any more.
    unsafe { libc::freeifaddrs(all) };
    found
}
