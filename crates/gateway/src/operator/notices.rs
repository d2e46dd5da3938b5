//! The command that lists recent notices.

use super::GatewayOperator;
use super::of;
use super::pages::{LIMIT, NEXT, TOTAL, page};
use fanfare_operator::Shape::{Count, Flag, List, Object, Text, Time};
use fanfare_operator::{Field, OperatorError, Row, Shape};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "notices",
    "The last 1000 notices, the newest first.",
    &[
        Field::text("after", "Those with numbers above this one."),
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
    NEXT,
    of(
        "left_out",
        Count,
        "Notices that nobody could take in time since the start.",
    ),
    of("notices", List(&NOTICE), "The newest first."),
]);

const NOTICE: Shape = Object(&[
    of("id", Count, "Its number; they count up."),
    of("time", Time, "When it was taken."),
    of("trouble", Flag, "Whether somebody should look."),
    of("kind", Text, "What it is about, in a word."),
    of("text", Text, "One line."),
]);
