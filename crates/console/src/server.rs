//! The console's thread, and what it does with each connection.

use crate::api::{self, Peer, Shared, WAITING};
use crate::error::ConsoleError;
use crate::listen::{Doors, Listeners, Visitor};
use crate::patient::Patient;
use crate::seats::Seats;
use crate::token::Token;
use fanfare_engine::counters::{Counter, Kind};
use fanfare_engine::tls::{Identity, NewCertificate, TlsError, TlsServer};
use fanfare_gateway::{ConsoleConfig, ConsoleTls};
use fanfare_operator::Operator;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// The timeout for the head of a request, and for the silence between two requests.
const HEAD: Duration = Duration::from_secs(30);
/// The timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The longest time for which a peer may not read a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest time for which the end waits for commands under way.
const ENDING: Duration = Duration::from_secs(5);
/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 << 10;
/// The pause of the listener after an error of the system, which would recur at once.
const REST: Duration = Duration::from_millis(100);

/// A running console. Dropping it closes all its connections, and waits for the commands under way,
/// 5 s at most.
pub struct Console {
    address: SocketAddr,
    /// The token, and its file.
    token: Option<(Arc<Token>, PathBuf)>,
    tls: Option<TlsServer>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The token and the certificate of a console, which have been read again and are not in use yet.
pub struct NewFiles {
    /// The token in use, and the one that it becomes, if that is another one.
    token: Option<(Arc<Token>, Token)>,
    certificate: Option<NewCertificate>,
}

impl NewFiles {
    /// Returns the keys of the files whose contents have changed. Certificates are not compared.
    #[must_use]
    pub fn changed(&self) -> Vec<&'static str> {
        let token = self.token.as_ref().map(|_| "console.token_file");
        token.into_iter().collect()
    }

    /// Uses the token for requests, and the certificate for connections, from now on. Streams of
    /// changes that another token has opened end.
    pub fn adopt(self) {
        if let Some((token, new)) = self.token {
            token.adopt(new);
        }
        if let Some(certificate) = self.certificate {
            certificate.adopt();
        }
    }
}

impl Console {
    /// Listens on the addresses and serves requests until the console is dropped.
    ///
    /// # Errors
    /// See [`ConsoleError`].
    pub fn start(
        config: &ConsoleConfig,
        operator: Arc<dyn Operator>,
    ) -> Result<Self, ConsoleError> {
        let (token, tls) = read(config)?;
        let doors = Doors::open(config, tls.clone())?;
        let address = doors.address;
        let token = token.map(Arc::new);
        let server = Server::new(config, operator, token.clone());
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WAITING)
            .thread_keep_alive(Duration::MAX)
            .thread_name("console")
            .build()
            .map_err(ConsoleError::Thread)?;
        // A command for which the system has no other thread waits for this one; without any, the
        // runtime panics, and runs the command later, though its client has no answer.
        runtime.spawn_blocking(|| ());
        let listeners = {
            let _within = runtime.enter();
            doors.listen().map_err(ConsoleError::Thread)?
        };
        let thread = std::thread::Builder::new()
            .name("console".to_owned())
            .spawn(move || serve(runtime, listeners, server, stopped))
            .map_err(ConsoleError::Thread)?;
        Ok(Self {
            address,
            token: token.zip(config.token_file.clone()),
            tls,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Reads the token and the certificate that a configuration names. Opens no socket.
    ///
    /// # Errors
    /// Returns an error for the first file that is missing or unusable.
    pub fn check(config: &ConsoleConfig) -> Result<(), ConsoleError> {
        read(config).map(drop)
    }

    /// Returns the address listened on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether its connections are encrypted.
    #[must_use]
    pub const fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads the token, and the certificate with its key, again from the files that were named at
    /// the start. They are not in use until they are adopted.
    ///
    /// # Errors
    /// Returns an error for the first file that is missing or unusable.
    pub fn read_again(&self) -> Result<NewFiles, ConsoleError> {
        let token = match &self.token {
            Some((token, path)) => {
                let new = token.read_again(path).map_err(unreadable(path))?;
                new.map(|new| (Arc::clone(token), new))
            }
            None => None,
        };
        let certificate = self.tls.as_ref().map(TlsServer::read_again);
        Ok(NewFiles {
            token,
            certificate: certificate.transpose()?,
        })
    }
}

/// Reads the files of a configuration.
fn read(config: &ConsoleConfig) -> Result<(Option<Token>, Option<TlsServer>), ConsoleError> {
    let token = config.token_file.as_deref().map(read_token);
    let tls = config.tls.as_ref().map(read_tls);
    Ok((token.transpose()?, tls.transpose()?))
}

fn read_token(path: &Path) -> Result<Token, ConsoleError> {
    Token::read(path).map_err(unreadable(path))
}

/// Returns the error of a file of the token.
fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ConsoleError {
    let path = path.to_owned();
    move |error| ConsoleError::Token(path, error)
}

fn read_tls(config: &ConsoleTls) -> Result<TlsServer, TlsError> {
    let identity = Identity {
        certificates: config.certificate.clone(),
        key: config.key.clone(),
    };
    TlsServer::new(&identity, None)
}

impl Drop for Console {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and a drop cannot report it.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Console");
        debug
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The state that the thread owns.
struct Server {
    shared: Arc<Shared>,
    seats: Arc<Seats>,
    turned_away: Counter,
}

impl Server {
    fn new(config: &ConsoleConfig, operator: Arc<dyn Operator>, token: Option<Arc<Token>>) -> Self {
        let counters = operator.counters().clone();
        let add = |name, kind, what| counters.add_of("", name, kind, what);
        let taken = add("console_connections", Kind::Gauge, "current connections");
        let away = "connections beyond the limits of the console";
        Self {
            turned_away: add("console_turned_away", Kind::Count, away),
            seats: Seats::new(config.connections as u64, taken),
            shared: Arc::new(Shared::new(operator, token, config.connections)),
        }
    }

    /// Accepts connections without end.
    async fn run(self, listeners: Listeners) {
        loop {
            let Ok(visitor) = listeners.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let peer = visitor.peer();
            let Some(seat) = self.seats.take(peer) else {
                self.turned_away.increment(1);
                continue;
            };
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                match visitor {
                    Visitor::Tcp(stream, _, tls) => welcome(&shared, stream, peer, tls).await,
                    Visitor::Unix(stream) => welcome(&shared, stream, peer, None).await,
                }
                drop(seat);
            });
        }
    }
}

/// Serves one connection until it ends, with its encryption.
async fn welcome<S>(shared: &Arc<Shared>, stream: S, peer: Peer, tls: Option<TlsAcceptor>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Below TLS, which has a buffer that takes bytes at once.
    let stream = Patient::new(stream, PATIENCE);
    let Some(tls) = tls else {
        return talk(shared, stream, peer).await;
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        talk(shared, stream, peer).await;
    }
}

/// Serves one connection as it is until it ends.
async fn talk<S>(shared: &Arc<Shared>, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(api::router(shared, peer));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // The reason why a connection ends matters only to its peer.
    let _ = connection.await;
}

fn serve(runtime: Runtime, listeners: Listeners, server: Server, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async move {
        tokio::select! {
            biased;
            _ = stopped => {}
            () = server.run(listeners) => {}
        }
    });
    // The audit file, which ends after the console, has a line of each command under way.
    runtime.shutdown_timeout(ENDING);
}

#[cfg(test)]
mod tests;
