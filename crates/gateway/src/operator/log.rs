//! The commands about the log of market events.

use super::GatewayOperator;
use fanfare_operator::{Member, OperatorError, Outcome, Row, Shape};
use serde_json::json;

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::act(
    "roll",
    "End the segments of the log of market events, and of the raw one, and begin new ones.",
    &[],
    |operator, _| roll(operator),
)
.returns(Shape::Object(&[Member::new(
    "logs",
    Shape::Count,
    "The number of logs whose segments ended.",
)]))];

fn roll(operator: &GatewayOperator) -> Outcome {
    match operator.gateway.roll() {
        Some(0) => Err(OperatorError::absent(
            "the gateway has no log: its configuration has no [history]",
        )),
        Some(logs) => Ok(json!({ "logs": logs })),
        None => Err(OperatorError::failed(
            "the log cannot be written now: its segments end with the next write that succeeds",
        )),
    }
}
