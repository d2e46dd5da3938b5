//! The time for which a certificate is valid.

use rustls::pki_types::CertificateDer;
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Returns why peers refuse a certificate at a time, in nanoseconds since 1970: it has expired, or
/// is not valid yet. `None` also for one that cannot be read.
pub(super) fn fault_at(certificate: &CertificateDer<'_>, utc: u64) -> Option<String> {
    let time = Duration::from_nanos(utc);
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate().validity();
    let (begin, end) = (validity.not_before, validity.not_after);
    if time > end.to_unix_duration() {
        Some(format!("the certificate has expired at {end}"))
    } else if time < begin.to_unix_duration() {
        Some(format!("the certificate is not valid before {begin}"))
    } else {
        None
    }
}
