//! TLS for TCP streams: certificates from PEM files, and a stream that encrypts.
//!
//! The protocol is TLS 1.2 or 1.3, by rustls with ring; nothing else is supported.

mod names;
mod validity;

use crate::host::CertificateNames;
use crate::regular;
use crate::tcp::{Received, Stream};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Most bytes of ciphertext that wait for the peer to read, and of plaintext during the handshake.
const BUFFER: usize = 256 << 10;

/// The same where little is to wait: what a turn of the host writes still fits at once.
const SMALL_BUFFER: usize = 64 << 10;

/// TLS of an initiator: the roots that it trusts, the name that it expects, and its own
/// certificate. Clones share the certificates, also when these are reloaded.
#[derive(Debug, Clone)]
pub struct TlsClient {
    certificates: Arc<Certificates<ClientConfig>>,
    name: ServerName<'static>,
    /// Servers whose certificates must have other names.
    others: Vec<(SocketAddr, ServerName<'static>)>,
    /// Whether the name of a host counts where it is known.
    is_by_host: bool,
}

/// TLS of an acceptor: its certificate, and the roots of its clients' certificates. Clones share
/// the certificates, also when these are reloaded.
#[derive(Debug, Clone)]
pub struct TlsServer {
    certificates: Arc<Certificates<ServerConfig>>,
}

/// A server's certificate and key that have been read again, and are not in use yet.
#[derive(Debug)]
pub struct NewCertificate {
    server: TlsServer,
    config: ServerConfig,
}

/// Certificates loaded from files, with the function that loads them.
struct Certificates<C> {
    read: Box<ReadFiles<C>>,
    config: RwLock<Arc<C>>,
}

type ReadFiles<C> = dyn Fn() -> Result<C, TlsError> + Send + Sync;

impl<C> Certificates<C> {
    /// Loads the files, by `read`.
    fn new(
        read: impl Fn() -> Result<C, TlsError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        let config = RwLock::new(Arc::new(read()?));
        let read = Box::new(read);
        Ok(Arc::new(Self { read, config }))
    }

    fn current(&self) -> Arc<C> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn reload(&self) -> Result<(), TlsError> {
        self.adopt((self.read)()?);
        Ok(())
    }

    fn adopt(&self, config: C) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }
}

impl<C> fmt::Debug for Certificates<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// A certificate with its private key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, followed by those that lead to the root.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The reason why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read or has other contents.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The server's name is neither a host name nor an address.
    #[error("`{name}` is not a host name: {error}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        error: InvalidDnsNameError,
    },
    /// The protocol cannot be set up.
    #[error("TLS: {0}")]
    Setup(rustls::Error),
}

/// The error is in the text and is no source: a chain of errors would print it twice.
impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Setup(error)
    }
}

impl TlsClient {
    /// Trusts the certificates in the PEM file `roots`, expects a server with a certificate for
    /// `name`, and shows `identity` to servers that request one.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(roots: &Path, name: &str, identity: Option<&Identity>) -> Result<Self, TlsError> {
        let (roots, identity) = (roots.to_owned(), identity.cloned());
        let read = move || client_config(&roots, identity.as_ref());
        Ok(Self {
            certificates: Certificates::new(read)?,
            name: server_name(name)?,
            others: Vec::new(),
            is_by_host: false,
        })
    }

    /// Reloads the files for new connections. Reading files takes time, so a thread that serves
    /// sessions must not call this; its clone takes what was loaded without waiting.
    ///
    /// # Errors
    /// See [`TlsError`]; what was loaded before remains in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.certificates.reload()
    }

    /// Expects the server at this address, one of several hosts for fail-over, to have a
    /// certificate for another name.
    ///
    /// # Errors
    /// [`TlsError::Name`].
    pub fn expect_at(&mut self, address: SocketAddr, name: &str) -> Result<(), TlsError> {
        self.others.push((address, server_name(name)?));
        self.expect_each_host();
        Ok(())
    }

    /// Expects each host that is [looked up](crate::tcp::Connector::looking_up) to have a
    /// certificate for its own name, also one whose addresses are not known yet.
    pub const fn expect_each_host(&mut self) {
        self.is_by_host = true;
    }

    /// Begins TLS on a stream that has just been connected.
    ///
    /// # Errors
    /// The library refuses the configuration.
    pub fn connect(&self, stream: Stream) -> io::Result<TlsStream> {
        self.connect_to(stream, None)
    }

    /// Begins TLS on a stream to the host of this name. The name counts where [each
    /// host](Self::expect_each_host) has its own, as its address may be another one by now.
    pub(crate) fn connect_to(&self, stream: Stream, host: Option<&str>) -> io::Result<TlsStream> {
        let mut others = self.others.iter();
        let other = others.find(|(address, _)| *address == stream.peer());
        let name = match host {
            Some(host) if self.is_by_host => server_name(host).map_err(io::Error::other)?,
            _ => other.map_or(&self.name, |(_, name)| name).clone(),
        };
        let connection = ClientConnection::new(self.certificates.current(), name);
        let connection = connection.map_err(io::Error::other)?;
        Ok(TlsStream::new(stream, connection.into()))
    }
}

impl TlsServer {
    /// Shows `identity`; with `client_roots` (a PEM file) only clients are admitted whose
    /// certificate leads to one of those.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(identity: &Identity, client_roots: Option<&Path>) -> Result<Self, TlsError> {
        let (identity, roots) = (identity.clone(), client_roots.map(Path::to_owned));
        let read = move || server_config(&identity, roots.as_deref());
        let certificates = Certificates::new(read)?;
        Ok(Self { certificates })
    }

    /// Reloads the files for new connections. Reading files takes time, so a thread that serves
    /// sessions must not call this; its clone takes what was loaded without waiting.
    ///
    /// # Errors
    /// See [`TlsError`]; what was loaded before remains in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.certificates.reload()
    }

    /// Reads the files as [`reload`](Self::reload) does, without using them.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn read_again(&self) -> Result<NewCertificate, TlsError> {
        let config = (self.certificates.read)()?;
        let server = self.clone();
        Ok(NewCertificate { server, config })
    }

    /// Returns the configuration loaded last, for streams of another kind.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        self.certificates.current()
    }

    /// Begins TLS on a stream that has just been accepted.
    ///
    /// # Errors
    /// The library refuses the configuration.
    pub fn accept(&self, stream: Stream) -> io::Result<TlsStream> {
        let connection = ServerConnection::new(self.certificates.current());
        let connection = connection.map_err(io::Error::other)?;
        Ok(TlsStream::new(stream, connection.into()))
    }
}

impl NewCertificate {
    /// Uses the certificate for new connections.
    pub fn adopt(self) {
        self.server.certificates.adopt(self.config);
    }
}

fn client_config(roots: &Path, identity: Option<&Identity>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(trusted(roots)?, provider.clone());
    let verifier = verifier.build().map_err(|error| file(roots, &error))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_webpki_verifier(verifier);
    Ok(match identity {
        Some(identity) => {
            let (certificates, key) = identity.load()?;
            let config = builder.with_client_auth_cert(certificates, key);
            config.map_err(|error| identity.refused(&error))?
        }
        None => builder.with_no_client_auth(),
    })
}

fn server_config(
    identity: &Identity,
    client_roots: Option<&Path>,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = match client_roots {
        Some(roots) => {
            let trusted = trusted(roots)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(trusted, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| file(roots, &error))?)
        }
        None => builder.with_no_client_auth(),
    };
    let (certificates, key) = identity.load()?;
    let config = builder.with_single_cert(certificates, key);
    config.map_err(|error| identity.refused(&error))
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    let parsed = ServerName::try_from(name.to_owned());
    parsed.map_err(|error| TlsError::Name {
        name: name.to_owned(),
        error,
    })
}

impl Identity {
    fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let text = pem(&self.key, "private key")?;
        let key = PrivateKeyDer::from_pem_slice(&text);
        let key = key.map_err(|error| match is_encrypted(&text) {
            true => file(&self.key, &ENCRYPTED),
            false => pem_error(&self.key, "private key", &error),
        })?;
        Ok((certificates(&self.certificates)?, key))
    }

    /// Returns the error of a certificate and a key that do not match, or are not accepted.
    fn refused(&self, error: &rustls::Error) -> TlsError {
        match error {
            // The library has no other error for a key of an unknown kind.
            rustls::Error::General(_) => file(&self.key, &OTHER_KEY),
            error => {
                let key = self.key.display();
                let why = format_args!("with the key {key}: {error}");
                file(&self.certificates, &why)
            }
        }
    }
}

const OTHER_KEY: &str = "holds a private key that cannot be used: expected RSA of 2048 to 4096 \
    bits, ECDSA on P-256 or P-384, or Ed25519";

const ENCRYPTED: &str = "holds an encrypted private key, and passwords are not supported: decrypt \
    it (`openssl pkey -in FILE -out NEW`), readable by the owner only";

/// The longest file of keys or certificates, in bytes.
const LONGEST_PEM: u64 = 16 << 20;

fn pem(path: &Path, what: &str) -> Result<Vec<u8>, TlsError> {
    regular::read(path, LONGEST_PEM).map_err(|error| pem_error(path, what, &PemError::Io(error)))
}

/// Returns whether a text holds an encrypted key, in PKCS #8 or OpenSSL's older format.
fn is_encrypted(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.any(|line| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----" || line == b"Proc-Type: 4,ENCRYPTED"
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |error: PemError| pem_error(path, "certificate", &error);
    let text = pem(path, "certificate")?;
    let all = CertificateDer::pem_slice_iter(&text);
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(wrong)?;
    if all.is_empty() {
        Err(wrong(PemError::NoItemsFound))
    } else {
        Ok(all)
    }
}

/// Returns why peers refuse the first certificate of a PEM file at a time, in nanoseconds since
/// 1970: it has expired, or is not valid yet. `None` also for a file that cannot be read.
#[must_use]
pub fn out_of_time(path: &Path, utc: u64) -> Option<String> {
    let all = certificates(path).ok()?;
    let why = validity::fault_at(all.first()?, utc)?;
    Some(format!("{}: {why}", path.display()))
}

fn trusted(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| file(path, &error))?;
    }
    Ok(Arc::new(roots))
}

fn pem_error(path: &Path, what: &str, error: &PemError) -> TlsError {
    match error {
        PemError::NoItemsFound => file(path, &format_args!("holds no {what} in PEM form")),
        other => file(path, other),
    }
}

fn file(path: &Path, why: &dyn fmt::Display) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// A TCP stream inside TLS. It never waits; the handshake advances whenever it is read or flushed.
pub struct TlsStream {
    stream: Stream,
    connection: rustls::Connection,
    /// See [`Self::has_computed`].
    has_computed: bool,
    /// The number of bytes of plaintext received and not returned yet.
    pending: usize,
    /// The failure that follows the plaintext.
    failure: Option<io::Error>,
}

impl TlsStream {
    fn new(stream: Stream, mut connection: rustls::Connection) -> Self {
        connection.set_buffer_limit(Some(BUFFER));
        Self {
            stream,
            connection,
            has_computed: false,
            pending: 0,
            failure: None,
        }
    }

    /// Returns whether the last [`receive`](Self::receive) responded to a step of a handshake,
    /// which computes for up to a millisecond.
    #[must_use]
    pub const fn has_computed(&self) -> bool {
        self.has_computed
    }

    /// Returns whether plaintext is left that the last [`receive`](Self::receive) had no room for,
    /// or a failure behind it. The socket is not readable because of it.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        self.pending > 0 || self.failure.is_some()
    }

    /// Returns the names of the peer's certificate. `None` if the peer has sent none, because none
    /// is required or the handshake is not complete.
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn peer_names(&self) -> io::Result<Option<CertificateNames>> {
        let shown = self.connection.peer_certificates();
        let own = shown.and_then(|certificates| certificates.first());
        own.map(names::of).transpose()
    }

    /// Returns the TCP stream.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the plaintext that earlier calls have left, or else reads once from the socket and
    /// returns the plaintext received. Of a record (16 KiB) that `room` does not hold, the rest
    /// [is left](Self::has_pending).
    ///
    /// # Errors
    /// The connection failed, or (`InvalidData`) TLS failed, for instance because a certificate is
    /// expired, has another name, or is not trusted. The plaintext in front of that comes first, as
    /// the last bytes of a connection without TLS do.
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<Received> {
        self.has_computed = false;
        if !self.has_pending()
            && let Err(error) = self.read_records()
        {
            self.failure = Some(error);
        }
        let end = match self.connection.reader().read(room) {
            Ok(0) => Received::Closed,
            Ok(count) => {
                self.pending = self.pending.saturating_sub(count);
                return Ok(Received::Bytes(count));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            // The peer closed without a closure alert of TLS: FIX has its own Logout.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Received::Closed,
            Err(error) => return Err(error),
        };
        self.failure.take().map_or(Ok(end), Err)
    }

    /// Reads once from the socket, and decrypts the records that are complete.
    fn read_records(&mut self) -> io::Result<()> {
        let read = match self.connection.read_tls(&mut Socket(&self.stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read?),
        };
        if read.is_some() {
            match self.connection.process_new_packets() {
                Ok(state) => self.pending = state.plaintext_bytes_to_read(),
                Err(error) => {
                    // The alert, which contains the reason, is sent if the socket still accepts it.
                    let _ = self.flush();
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("TLS: {error}"),
                    ));
                }
            }
        }
        self.has_computed = read.is_some() && self.connection.wants_write();
        self.flush().map(drop)
    }

    /// Encrypts bytes, given in parts, and offers them to the kernel. Returns how many were taken:
    /// 0 at the limit of waiting bytes.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.connection.writer().write_vectored(parts)?;
        self.flush()?;
        Ok(taken)
    }

    /// Offers the ciphertext to the kernel. Returns whether none waits any more.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Socket(&self.stream)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                written => written?,
            };
        }
        Ok(true)
    }

    /// Limits the ciphertext that the kernel takes while it cannot send it, see
    /// [`Stream::limit_unsent`], and that which waits for the kernel here, to 64 KiB.
    ///
    /// # Errors
    /// Those of the system call; none is expected.
    pub fn limit_unsent(&mut self, bytes: i32) -> io::Result<()> {
        self.connection.set_buffer_limit(Some(SMALL_BUFFER));
        self.stream.limit_unsent(bytes)
    }

    /// Returns whether ciphertext waits for space in the kernel.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Shuts down the sending direction once the kernel has taken all ciphertext. Returns whether
    /// that is done; otherwise it is to be called again when the kernel has space.
    ///
    /// # Errors
    /// The connection is gone already.
    pub fn finish(&mut self) -> io::Result<bool> {
        // Within a handshake nothing is to be closed, and rustls (by a debug assertion) accepts no
        // failure of a handshake, which would be a second alert, after the closure.
        if !self.connection.is_handshaking() {
            self.connection.send_close_notify();
        }
        let all = self.flush()?;
        if all {
            self.stream.finish()?;
        }
        Ok(all)
    }
}

/// A stream with the traits of `std::io`.
struct Socket<'a>(&'a Stream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.receive(buffer)? {
            Received::Bytes(count) => Ok(count),
            Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
            Received::Closed => Ok(0),
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.send(parts)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
