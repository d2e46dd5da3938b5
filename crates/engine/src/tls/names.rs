//! The names that a certificate has for its subject.

use crate::host::{CertificateNames, ClientName, NameKind};
use rustls::pki_types::CertificateDer;
use std::io;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};

/// Returns the common names of the subject, and its alternative names that are DNS names, URIs or
/// e-mail addresses. A name in an encoding that is no text is left out.
///
/// # Errors
/// The certificate cannot be read.
pub(super) fn of(certificate: &CertificateDer<'_>) -> io::Result<CertificateNames> {
    let wrong = |error: x509_cert::der::Error| {
        let text = format!("the client's certificate cannot be read: {error}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let certificate = Certificate::from_der(certificate).map_err(wrong)?;
    let certificate = certificate.tbs_certificate();
    let attributes = certificate.subject().iter();
    let common = attributes.filter(|attribute| attribute.oid == COMMON_NAME);
    let common = common.filter_map(|attribute| {
        let text = DirectoryString::try_from(&attribute.value).ok()?;
        Some(name(NameKind::CommonName, &text.value()))
    });
    let mut names: Vec<ClientName> = common.collect();
    let alternative = certificate.get_extension::<SubjectAltName>();
    if let Some((_, SubjectAltName(others))) = alternative.map_err(wrong)? {
        names.extend(others.iter().filter_map(|other| match other {
            GeneralName::DnsName(text) => Some(name(NameKind::Dns, text.as_str())),
            GeneralName::UniformResourceIdentifier(text) => {
                Some(name(NameKind::Uri, text.as_str()))
            }
            GeneralName::Rfc822Name(text) => Some(name(NameKind::Email, text.as_str())),
            _ => None,
        }));
    }
    Ok(CertificateNames(names))
}

fn name(kind: NameKind, text: &str) -> ClientName {
    ClientName {
        kind: Some(kind),
        name: text.into(),
    }
}
