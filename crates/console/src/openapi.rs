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
            "description": "What operators ask a running program and tell it.",
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
                        "error": { "type": "string", "description": "Why it was not done." },
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
        "responses": responses(json!({
            "description": "The result.",
            "content": { "application/json": { "schema": schema(&command.returns) } },
        })),
    });
    match command.effect {
        Effect::Look => {
            let parameters = command.takes.iter().map(parameter);
            operation["parameters"] = parameters.collect();
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
            json!({ "post": operation })
        }
    }
}

/// Returns the responses that every command may have.
fn responses(result: Value) -> Value {
    let error = |why: &str| {
        json!({
            "description": why,
            "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Error" } },
            },
        })
    };
    json!({
        "200": result,
        "400": error("The request is wrong."),
        "401": error("The token is missing or wrong."),
        "403": error("Without a token this is not done here."),
        "404": error("What it names is not there."),
        "409": error("It cannot be done now."),
    })
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
    json!({
        "get": {
            "operationId": "changes",
            "summary": "What changes from now on, as server-sent events.",
            "parameters": [
                parameter("after", "query", "The last change that was seen.", number.clone()),
                parameter("Last-Event-ID", "header", "The same, as browsers send it.", number),
                parameter("kinds", "query", "Kinds of changes, with commas between them.", text),
            ],
            "responses": responses(json!({
                "description": "Events that go on until the reader leaves.",
                "content": { "text/event-stream": { "schema": { "type": "string" } } },
            })),
        },
    })
}
