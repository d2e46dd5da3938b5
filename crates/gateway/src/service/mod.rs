//! Market data as a service: requests, subscriptions, pictures and increments.

mod contract;
mod entry_types;
mod patterns;

pub use contract::Contract;
pub use entry_types::EntryTypes;
pub use patterns::Pattern;
