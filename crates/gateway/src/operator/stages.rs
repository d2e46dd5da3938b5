//! The command that lists latencies from stage to stage.

use super::GatewayOperator;
use super::of;
use fanfare_engine::counters::{Distribution, Windowed};
use fanfare_operator::Shape::{Count, Object, Text};
use fanfare_operator::{Ask, Outcome, Row, Shape};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "stages",
    "How long messages took from stage to stage: the last 10 s, the last minute, all the time.",
    &[],
    stages,
)
.returns(Shape::List(&STAGE))];

fn stages(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let stages = operator.gateway.stages();
    Ok(Value::Array(stages.iter().map(described).collect()))
}

fn described(stage: &Windowed) -> Value {
    let mut letters = stage.description.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    json!({
        "stage": stage.name,
        "of": stage.of,
        "help": format!("{}{}.", first.unwrap_or_default(), letters.as_str()),
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
    of("stage", Text, "From where to where."),
    of("of", Text, "What counts it: a feed, a worker, an outlet."),
    of("help", Text, "What it is, in a sentence."),
    of("windows", WINDOWS, "The times of which the values are."),
]);

const WINDOWS: Shape = Object(&[
    of("10s", WINDOW, "The last 10 s."),
    of("1m", WINDOW, "The last minute."),
    of("all", WINDOW, "Since the start."),
]);

const WINDOW: Shape = Object(&[
    of("count", Count, "Messages, or messages that were measured."),
    of("p50_ns", Count, "The median, in nanoseconds."),
    of(
        "p99_ns",
        Count,
        "What 99 of 100 took at most, in nanoseconds.",
    ),
    of(
        "p99_9_ns",
        Count,
        "What 999 of 1,000 took at most, in nanoseconds.",
    ),
    of("max_ns", Count, "The longest, in nanoseconds."),
]);
