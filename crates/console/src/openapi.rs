//! `/api/v1/openapi.json`: the commands as an OpenAPI document, made from their table.

use fanfare_operator::{Command, Effect, Field, Form, Member, Shape};
use serde_json::{Map, Value, json};

/// Returns the path of a command.
pub(crate) fn path(command: &Command) -> String {
    format!("/api/v1/{}", command.name.replace(' ', "/"))
}

/// Returns the document of these commands.
pub(crate) fn document(commands: &[&Command], needs_token: bool) -> Value {
    let mut paths = Map::new();
    for command in commands {
        paths.insert(path(command), item(command));
    }
    paths.insert("/api/v1/changes".to_owned(), changes());
    let security = match needs_token {
        true => json!([{ "token": [] }]),
        false => json!([]),
    };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fanfare",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Queries and commands of a running program.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": security,
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": { "type": "string", "description": "The reason for the error." },
                    },
                },
            },
        },
    })
}

fn item(command: &Command) -> Value {
    let mut operation = json!({
        "operationId": command.name.replace([' ', '-'], "_"),
        "summary": command.about,
    });
    let result = json!({
        "description": "The result.",
        "content": { "application/json": { "schema": schema(&command.returns) } },
    });
    match command.effect {
        Effect::Look => {
            let parameters = command.takes.iter().map(parameter);
            operation["parameters"] = parameters.collect();
            operation["responses"] = responses(result, &[]);
            json!({ "get": operation })
        }
        Effect::Act => {
            let takes = command.takes.iter();
            let properties = takes.clone().map(|field| {
                let mut own = form(field.form);
                own["description"] = field.about.into();
                (field.name.to_owned(), own)
            });
            let needed = takes.filter(|field| field.is_needed);
            let body = json!({
                "type": "object",
                "additionalProperties": false,
                "properties": properties.collect::<Map<_, _>>(),
                "required": needed.map(|field| field.name).collect::<Vec<_>>(),
            });
            let content = json!({ "application/json": { "schema": body } });
            operation["requestBody"] = json!({ "content": content });
            operation["responses"] = responses(result, &[NOT_JSON]);
            json!({ "post": operation })
        }
    }
}

/// The errors of all requests, by status.
const ERRORS: &[(&str, &str)] = &[
    ("400", "The request is invalid."),
    ("401", "The token is missing or wrong."),
    ("403", "The request needs a token."),
    ("404", "The named object does not exist."),
    (
        "408",
        "The command took too long. It may still be carried out.",
    ),
    ("409", "The command cannot be carried out now."),
    ("413", "The body is too long."),
];
/// The error of requests whose body is not JSON.
const NOT_JSON: (&str, &str) = ("415", "Content-Type is not application/json.");
/// The error of requests for changes beyond the limit.
const TOO_MANY: (&str, &str) = ("503", "Too many clients follow the changes.");

/// Returns the responses that a request may have, with errors that not every request has.
fn responses(result: Value, more: &[(&str, &str)]) -> Value {
    let mut all = Map::from_iter([("200".to_owned(), result)]);
    for (status, why) in ERRORS.iter().chain(more) {
        let error = json!({
            "description": why,
            "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Error" } },
            },
        });
        all.insert((*status).to_owned(), error);
    }
    all.into()
}

fn parameter(field: &Field) -> Value {
    json!({
        "name": field.name,
        "in": "query",
        "description": field.about,
        "required": field.is_needed,
        "schema": form(field.form),
    })
}

/// Returns the schema of a field's form.
fn form(form: Form) -> Value {
    match form {
        Form::Text(most) => json!({ "type": "string", "maxLength": most }),
        Form::Number => json!({ "type": "integer", "minimum": 0 }),
        Form::OneOf(words) => json!({ "type": "string", "enum": words }),
        Form::Flag => json!({ "type": "boolean" }),
    }
}

/// Returns the schema of a result's shape.
fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Text => json!({ "type": "string" }),
        Shape::Time => json!({ "type": "string", "format": "date-time" }),
        Shape::Count => json!({ "type": "integer", "minimum": 0 }),
        Shape::Whole => json!({ "type": "integer" }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::OneOf(words) => json!({ "type": "string", "enum": words }),
        Shape::List(of) => json!({ "type": "array", "items": schema(of) }),
        Shape::Map(of) => json!({ "type": "object", "additionalProperties": schema(of) }),
        Shape::Maybe(of) => json!({ "anyOf": [schema(of), { "type": "null" }] }),
        Shape::Either(all) => json!({ "anyOf": all.iter().map(schema).collect::<Vec<_>>() }),
        Shape::Object(members) => object(members),
    }
}

fn object(members: &[Member]) -> Value {
    let properties = members.iter().map(|member| {
        let mut own = schema(&member.shape);
        own["description"] = member.about.into();
        (member.name.to_owned(), own)
    });
    let required = members.iter().filter(|member| !member.is_optional);
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties.collect::<Map<_, _>>(),
        "required": required.map(|member| member.name).collect::<Vec<_>>(),
    })
}

/// Returns the path of the stream of changes, which is no command.
fn changes() -> Value {
    let parameter = |name: &str, place: &str, about: &str, of: Value| {
        let mut all = json!({ "name": name, "in": place, "description": about });
        all["schema"] = of;
        all
    };
    let number = json!({ "type": "integer", "minimum": 0 });
    let text = json!({ "type": "string" });
    let events = json!({
        "description": "Events that go on until the reader leaves.",
        "content": { "text/event-stream": { "schema": { "type": "string" } } },
    });
    json!({
        "get": {
            "operationId": "changes",
            "summary": "Changes of the state, as server-sent events.",
            "parameters": [
                parameter("after", "query", "The last change that was seen.", number.clone()),
                parameter("Last-Event-ID", "header", "The same, as browsers send it.", number),
                parameter("kinds", "query", "Kinds of changes, with commas between them.", text),
            ],
            "responses": responses(events, &[TOO_MANY]),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_every_status_that_a_request_may_have() {
        const LOOK: Command = Command {
            name: "look",
            about: "Looks.",
            effect: Effect::Look,
            takes: &[],
            returns: Shape::Any,
        };
        const ACT: Command = Command {
            name: "act",
            effect: Effect::Act,
            ..LOOK
        };
        let document = document(&[&LOOK, &ACT], true);
        let statuses = |path: &str, method: &str| -> Vec<String> {
            let all = &document["paths"][path][method]["responses"];
            all.as_object().unwrap().keys().cloned().collect()
        };
        let all = ["200", "400", "401", "403", "404", "408", "409", "413"];
        assert_eq!(statuses("/api/v1/look", "get"), all);
        let with = |more| [&all[..], &[more]].concat();
        assert_eq!(statuses("/api/v1/act", "post"), with("415"));
        assert_eq!(statuses("/api/v1/changes", "get"), with("503"));
    }
}
