//! The commands about users.

use super::GatewayOperator;
use super::of;
use crate::users::PortName;
use fanfare_operator::Shape::{Count, Flag, List, Object, Text};
use fanfare_operator::{Ask, Field, Outcome, Row, Shape};
use serde_json::{Value, json};

const USER: Field = Field::text("user", "Only this user.").first();

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look("users", "The users, without their secrets.", &[USER], users)
        .returns(List(&USER_SHAPE)),
    Row::look(
        "lists",
        "The named lists of instruments, and their sizes.",
        &[],
        lists,
    )
    .returns(List(&LIST_SHAPE)),
];

fn users(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let shared = operator.gateway.shared();
    let users = shared.users.read();
    let wanted = users
        .users()
        .filter(|user| ask.text("user").is_none_or(|name| name == &*user.name));
    let all = wanted.map(|user| {
        let ports = PortName::ALL.into_iter().filter(|&port| user.may_use(port));
        let sessions = user.sessions.iter();
        json!({
            "name": &*user.name,
            "ports": ports.map(PortName::name).collect::<Vec<_>>(),
            "comp_ids": sessions.map(|own| &*own.sender).collect::<Vec<_>>(),
            "password": user.password.is_some(),
            "certificates": user.certificates.is_some(),
            "all_instruments": user.grant.instruments.are_all(),
            "sessions": shared.roster.of_user(&user.name),
        })
    });
    Ok(Value::Array(all.collect()))
}

fn lists(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let users = operator.gateway.shared().users.read();
    let lists = users.lists();
    let all = lists.map(|(name, names)| json!({ "name": name, "names": names.len() }));
    Ok(Value::Array(all.collect()))
}

const USER_SHAPE: Shape = Object(&[
    of("name", Text, "The name of the user."),
    of("ports", List(&Text), "Ports that the user may log on to."),
    of(
        "comp_ids",
        List(&Text),
        "SenderCompIDs(49) that the user may have.",
    ),
    of("password", Flag, "Whether the user has a password."),
    of(
        "certificates",
        Flag,
        "Whether certificates identify the user.",
    ),
    of(
        "all_instruments",
        Flag,
        "Whether the user may see all instruments.",
    ),
    of("sessions", Count, "Connected sessions of the user."),
]);

const LIST_SHAPE: Shape = Object(&[
    of("name", Text, "The name of the list."),
    of("names", Count, "The number of names in the list."),
]);
