//! End-to-end tests of `fanfare fix`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod acceptor;
mod cat;
mod codegen;
#[path = "../common/mod.rs"]
mod common;
mod initiator;
mod initiators;
mod operation;
mod records;
mod resends;
mod security;
mod server;
mod steering;
mod stores;
mod templates;

/// Returns one of the certificates and keys of the TLS tests.
fn certificate(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/testdata/tls");
    format!("{folder}/{name}")
}

/// Returns settings of an acceptor that requires certificates and has one; the certificate of the
/// tests' client is valid for any CompID.
fn server_files() -> String {
    format!(
        "SERVER_CERTIFICATE_FILE={}\nSERVER_CERTIFICATE_KEY_FILE={}\n\
         CERTIFICATION_AUTHORITIES_FILE={}\nCERTIFICATE_VERIFY_LEVEL=2\n\
         SocketClientCertificateNames=dns:trader.test\n",
        certificate("server.pem"),
        certificate("server.key"),
        certificate("root.pem")
    )
}
