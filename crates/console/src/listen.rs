//! The listeners: a port, with TLS or without, and a Unix socket.

use crate::api::Peer;
use crate::error::ConsoleError;
use fanfare_engine::tls::TlsServer;
use fanfare_gateway::ConsoleConfig;
use fanfare_operator::Socket;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;

/// The bound sockets, before the runtime starts.
pub(crate) struct Doors {
    port: StdListener,
    pub(crate) address: SocketAddr,
    tls: Option<TlsServer>,
    socket: Option<Socket>,
}

/// The listening sockets.
pub(crate) struct Listeners {
    port: TcpListener,
    tls: Option<TlsServer>,
    /// The Unix socket, with the value that removes its file.
    socket: Option<(UnixListener, Socket)>,
}

/// An accepted connection.
pub(crate) enum Visitor {
    /// A connection of the port, with its encryption.
    Tcp(TcpStream, Peer, Option<TlsAcceptor>),
    /// A connection of the Unix socket.
    Unix(UnixStream),
}

impl Visitor {
    /// Returns who connected.
    pub(crate) const fn peer(&self) -> Peer {
        match self {
            Self::Tcp(_, peer, _) => *peer,
            Self::Unix(_) => Peer::Owner,
        }
    }
}

impl Doors {
    pub(crate) fn open(
        config: &ConsoleConfig,
        tls: Option<TlsServer>,
    ) -> Result<Self, ConsoleError> {
        let failed = |error| ConsoleError::Listen(config.address(), error);
        let port = StdListener::bind(config.address()).map_err(failed)?;
        port.set_nonblocking(true).map_err(failed)?;
        let address = port.local_addr().map_err(failed)?;
        let socket = config.socket.as_ref().map(|path| {
            let socket = Socket::listen(path);
            socket.map_err(|error| ConsoleError::Socket(path.clone(), error))
        });
        Ok(Self {
            port,
            address,
            tls,
            socket: socket.transpose()?,
        })
    }

    /// Registers the sockets with the current runtime.
    pub(crate) fn listen(self) -> io::Result<Listeners> {
        let socket = self.socket.map(|socket| {
            let listener = socket.listener().try_clone();
            listener.and_then(|own| Ok((UnixListener::from_std(own)?, socket)))
        });
        Ok(Listeners {
            port: TcpListener::from_std(self.port)?,
            tls: self.tls,
            socket: socket.transpose()?,
        })
    }
}

impl Listeners {
    /// Accepts the next connection.
    pub(crate) async fn accept(&self) -> io::Result<Visitor> {
        tokio::select! {
            accepted = self.port.accept() => {
                let (stream, peer) = accepted?;
                // Without the option, short responses are only delayed.
                let _ = stream.set_nodelay(true);
                let tls = self.tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
                Ok(Visitor::Tcp(stream, Peer::Tcp(peer), tls))
            }
            accepted = visit(self.socket.as_ref()) => Ok(Visitor::Unix(accepted?)),
        }
    }
}

/// Accepts the next connection of the Unix socket; never returns if there is none.
async fn visit(socket: Option<&(UnixListener, Socket)>) -> io::Result<UnixStream> {
    match socket {
        Some((listener, _)) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}
