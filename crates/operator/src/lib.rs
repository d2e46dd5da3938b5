//! Commands of operators: tables of them, the control socket, the audit file.
//!
//! A program lists its commands as [`Row`]s and implements [`Operator`]; the control socket
//! ([`Control`]), `fanfare ctl` and the console (HTTP) take names, fields and help texts from the
//! rows.
//!
//! ```
//! use fanfare_operator::{Ask, Row, Outcome, Rows};
//! use serde_json::json;
//!
//! struct Plant { users: usize }
//!
//! const COMMANDS: Rows<Plant> = &[&[Row::look("users", "How many there are.", &[], users)]];
//!
//! fn users(plant: &Plant, _ask: &Ask) -> Outcome {
//!     Ok(json!(plant.users))
//! }
//!
//! let ask = Ask::new("console", &COMMANDS[0][0].command, Default::default())?;
//! assert_eq!(fanfare_operator::run(COMMANDS, &Plant { users: 2 }, &ask)?, json!(2));
//! # Ok::<(), fanfare_operator::OperatorError>(())
//! ```
#![forbid(unsafe_code)]

mod ask;
mod audit;
mod changes;
mod command;
mod control;
mod error;
mod fields;
mod host;
mod levels;
mod operator;
mod row;
mod shape;

pub use ask::Ask;
pub use audit::{AuditFile, AuditLine, AuditWriter, iso, iso_of};
pub use changes::{Change, Changes, Since};
pub use command::{Command, Effect, Field, Form};
pub use control::{Control, Socket};
pub use error::{Fault, OperatorError, Outcome};
pub use fields::fields;
pub use host::HostOperator;
pub use levels::{HasLevels, level_rows};
pub use operator::Operator;
pub use row::{Row, Rows, commands, run};
pub use shape::{Member, Shape};
