//! The command that lists latencies from stage to stage.

use super::GatewayOperator;
use super::of;
use fanfare_engine::counters::{Distribution, Windowed, sentence};
use fanfare_operator::Shape::{Count, Object, Text};
use fanfare_operator::{Ask, Outcome, Row, Shape};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "stages",
    "The latency of messages by stage: the last 10 s, the last minute, since the start.",
    &[],
    stages,
)
.returns(Shape::List(&STAGE))];

fn stages(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let stages = operator.gateway.stages();
    Ok(Value::Array(stages.iter().map(described).collect()))
}

fn described(stage: &Windowed) -> Value {
    json!({
        "stage": stage.name,
        "of": stage.of,
        "help": sentence(&stage.description),
        "windows": {
            "10s": window(&stage.seconds_10),
            "1m": window(&stage.minute),
            "all": window(&stage.all),
        },
    })
}

fn window(values: &Distribution) -> Value {
    json!({
        "count": values.count(),
        "p50_ns": values.quantile(0.5),
        "p99_ns": values.quantile(0.99),
        "p99_9_ns": values.quantile(0.999),
        "max_ns": values.max(),
    })
}

const STAGE: Shape = Object(&[
    of("stage", Text, "The name of the stage."),
    of(
        "of",
        Text,
        "The agent that measures the stage: a feed, a worker, an outlet.",
    ),
    of("help", Text, "The description of the stage."),
    of("windows", WINDOWS, "The values, by window."),
]);

const WINDOWS: Shape = Object(&[
    of("10s", WINDOW, "The last 10 s."),
    of("1m", WINDOW, "The last minute."),
    of("all", WINDOW, "Since the start."),
]);

const WINDOW: Shape = Object(&[
    of("count", Count, "Messages that were measured."),
    of("p50_ns", Count, "The median, in nanoseconds."),
    of("p99_ns", Count, "The 99th percentile, in nanoseconds."),
    of("p99_9_ns", Count, "The 99.9th percentile, in nanoseconds."),
    of("max_ns", Count, "The maximum, in nanoseconds."),
]);
