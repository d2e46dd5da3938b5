//! `fanfare fix` from outside: the real binary, started as a user starts it.
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

/// One of the certificates and keys that the tests of TLS have.
fn certificate(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/testdata/tls");
    format!("{folder}/{name}")
}

/// Settings of an acceptor that asks for certificates and has one; that of the tests' client is
/// for any CompID.
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
