//! A running program over HTTP: `/metrics` for Prometheus, and the operators' commands as JSON
//! (docs/console.md).
//!
//! The console has a thread of its own, which reads counters and calls the program's
//! [`Operator`](fanfare_operator::Operator); no session waits for it.
//!
//! The console of a gateway:
//!
//! ```no_run
//! use fanfare_console::{Console, ConsoleConfig};
//! use fanfare_engine::stop::Stop;
//! use fanfare_gateway::{Config, Gateway, GatewayOperator};
//! use std::sync::Arc;
//!
//! let gateway = Gateway::start(&Config::default(), Stop::on_interrupt()?)?;
//! let (operator, _asks) = GatewayOperator::new(gateway.handle());
//! let console = Console::start(&ConsoleConfig::default(), Arc::new(operator))?;
//! println!("metrics at http://{}/metrics", console.address());
//! gateway.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod api;
mod changes;
mod error;
mod health;
mod listen;
mod metrics;
mod openapi;
mod page;
mod patient;
mod refusals;
mod seats;
mod server;
mod token;

pub use error::ConsoleError;
pub use fanfare_gateway::ConsoleConfig;
pub use server::{Console, NewFiles};
