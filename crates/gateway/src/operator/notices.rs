//! The command that lists recent notices.

use super::GatewayOperator;
use super::of;
use super::pages::{LIMIT, TOTAL, page};
use fanfare_operator::Shape::{Count, Flag, List, Maybe, Object, Text, Time};
use fanfare_operator::{Field, OperatorError, Row, Shape};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "notices",
    "The last 1000 notices, the newest first.",
    &[
        Field::text("after", "Only notices with numbers above this one."),
        LIMIT,
    ],
    |operator: &GatewayOperator, ask| {
        let notices = operator.watch()?.notices().list(&page(ask)?);
        notices.map_err(OperatorError::usage)
    },
)
.returns(NOTICES)];

const NOTICES: Shape = Object(&[
    TOTAL,
    of("next", Maybe(&Text), "Null: notices have one page."),
    of(
        "left_out",
        Count,
        "Notices since the start that were dropped because they could not be read in time.",
    ),
    of("notices", List(&NOTICE), "The notices, the newest first."),
]);

const NOTICE: Shape = Object(&[
    of("id", Count, "The number of the notice, in ascending order."),
    of("time", Time, "Time of the notice."),
    of("trouble", Flag, "Whether the notice needs attention."),
    of("kind", Text, "The subject of the notice, in a word."),
    of("text", Text, "The text, in one line."),
]);
