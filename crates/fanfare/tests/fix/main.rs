//! `fanfare fix` from outside: the real binary, started as a user starts it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod acceptor;
mod cat;
mod initiator;
mod initiators;
mod operation;
mod server;
