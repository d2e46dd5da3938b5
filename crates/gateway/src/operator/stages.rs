//! How long messages take from stage to stage.

use super::GatewayOperator;
use fanfare_engine::counters::{Distribution, Windowed};
use fanfare_operator::{Ask, Outcome, Row};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "stages",
    "How long messages took from stage to stage: the last 10 s, the last minute, all the time.",
    &[],
    stages,
)];

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
