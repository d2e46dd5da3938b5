//! The routes: `/metrics`, health, and the commands of the control socket as `/api/v1/…`.

use crate::changes::{ChangeStream, Wanted};
use crate::health::{self, Readiness};
use crate::metrics::{self, Format};
use crate::openapi;
use crate::page;
use crate::refusals::Refusals;
use crate::token::{Pass, Token};
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, RawQuery, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use fanfare_engine::counters::{Counter, Kind};
use fanfare_operator::{Command, Effect, Fault, Operator, OperatorError, fields};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The longest body of a request, in bytes.
const BODY: usize = 64 << 10;
/// The timeout of a request with its body, longer than a reload takes.
const PATIENCE: Duration = Duration::from_secs(90);
/// Threads for commands that wait, such as a reload.
pub(crate) const WAITING: usize = 8;
/// The delay of the response to a wrong token.
const WRONG: Duration = Duration::from_millis(500);

/// The state that the handlers share.
pub(crate) struct Shared {
    operator: Arc<dyn Operator>,
    token: Option<Arc<Token>>,
    refused: Mutex<Counter>,
    /// Refused requests by address.
    refusals: Mutex<Refusals>,
    /// Permits for streams of changes, fewer than the connections.
    streams: Arc<Semaphore>,
    /// Permits for commands, one for each thread that runs them: a command that waits for one is
    /// forgotten with its connection.
    commands: Arc<Semaphore>,
}

impl Shared {
    /// Makes the state that up to `connections` concurrent connections share.
    pub(crate) fn new(
        operator: Arc<dyn Operator>,
        token: Option<Arc<Token>>,
        connections: usize,
    ) -> Self {
        let what = "requests without the token, or with a wrong one";
        let counters = operator.counters();
        let refused = counters.add_of("", "console_refused", Kind::Count, what);
        Self {
            operator,
            token,
            refused: Mutex::new(refused),
            refusals: Mutex::default(),
            streams: Arc::new(Semaphore::new(connections.div_ceil(2))),
            commands: Arc::new(Semaphore::new(WAITING)),
        }
    }
}

/// The state of one connection.
#[derive(Clone)]
struct Caller {
    shared: Arc<Shared>,
    peer: Peer,
}

/// The peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    /// A client of the port.
    Tcp(SocketAddr),
    /// The user of this process, at the Unix socket, whose file admits no other user.
    Owner,
}

/// Returns the routes for the connection of a peer.
pub(crate) fn router(shared: &Arc<Shared>, peer: Peer) -> Router {
    let caller = Caller {
        shared: Arc::clone(shared),
        peer,
    };
    let mut router = Router::new()
        .route("/metrics", get(scrape))
        .route(health::ALIVE, get(alive))
        .route(health::READY, get(ready))
        .route("/api/v1/openapi.json", get(describe))
        .route("/api/v1/changes", get(follow));
    for command in shared.operator.commands() {
        let method = match command.effect {
            Effect::Look => get(move |caller, query| look(command, caller, query)),
            Effect::Act => {
                post(move |caller, query, headers, body| act(command, caller, query, headers, body))
            }
        };
        router = router.route(&openapi::path(command), method);
    }
    for (path, file) in page::routes(shared.token.is_some()) {
        router = router.route(path, file);
    }
    router
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn_with_state(caller.clone(), guard))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(caller)
}

/// Refuses requests that are not permitted.
async fn guard(State(caller): State<Caller>, mut request: Request, next: Next) -> Response {
    let shared = &caller.shared;
    let refused = match (&shared.token, caller.peer) {
        _ if !has_one_host(&request) => None,
        _ if page::is_public(request.method(), request.uri().path()) => None,
        (_, Peer::Owner) => None,
        (Some(_), _) if health::is_public(request.method(), request.uri().path()) => None,
        (Some(token), Peer::Tcp(_)) => {
            let given = request.headers().get(header::AUTHORIZATION);
            match given.and_then(|given| token.admit(given.as_bytes())) {
                Some(pass) => {
                    request.extensions_mut().insert(pass);
                    None
                }
                None => Some((
                    StatusCode::UNAUTHORIZED,
                    "the request has no valid token (`Authorization: Bearer TOKEN`)",
                )),
            }
        }
        (None, Peer::Tcp(_)) => {
            let why = why_refused(&request);
            why.map(|why| (StatusCode::FORBIDDEN, why))
        }
    };
    let mut response = match refused {
        None if !has_one_host(&request) => error(
            StatusCode::BAD_REQUEST,
            "a request of HTTP/1.1 needs the header Host once",
        ),
        None if is_too_long(request.headers()) => error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is longer than 65536 bytes",
        ),
        None => match tokio::time::timeout(PATIENCE, next.run(request)).await {
            Ok(response) => response,
            Err(_) => error(
                StatusCode::REQUEST_TIMEOUT,
                "the command took too long; it may still be carried out",
            ),
        },
        Some((status, why)) => {
            caller.refuse().await;
            error(status, why)
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, page::POLICY),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Returns whether the request has exactly one Host header, as HTTP/1.1 requires. An HTTP/1.0
/// request may have none.
fn has_one_host(request: &Request) -> bool {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    hosts == 1 || (hosts == 0 && request.version() < Version::HTTP_11)
}

/// Returns whether Content-Length announces a body that is too long. A body without it is limited
/// while it is read.
fn is_too_long(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    length.is_some_and(|length| length > BODY as u64)
}

/// Returns the reason why a request of the port is refused where no token is configured.
fn why_refused(request: &Request) -> Option<&'static str> {
    let headers = request.headers();
    // A path may have a host of its own, as to a proxy.
    let named = request.uri().authority();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        Some("only GET and HEAD are permitted without a token: [console] has no `token_file`")
    } else if !has_local_host(headers) || named.is_some_and(|named| !is_local(named)) {
        Some("without a token, Host must be a name of this machine")
    } else if is_foreign(headers) {
        Some("without a token, no request of a web page of another origin is permitted")
    } else {
        None
    }
}

/// Returns whether a web page of another origin sends the request through a browser, which states
/// this in `Sec-Fetch-Site`. Other clients do not have the header.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(b"cross-site" | b"same-site"))
}

/// Returns whether `Host` names this machine. A foreign web page whose domain resolves to loopback
/// (DNS rebinding) sends its own name.
fn has_local_host(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| is_local(&host))
}

fn is_local(authority: &Authority) -> bool {
    let name = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl Caller {
    /// Counts and logs a refused request, and delays its response.
    async fn refuse(&self) {
        let refused = self.shared.refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner).increment(1);
        let address = match self.peer {
            Peer::Tcp(peer) => Some(peer.ip()),
            Peer::Owner => None,
        };
        let refusals = self.shared.refusals.lock();
        let noted = refusals
            .unwrap_or_else(PoisonError::into_inner)
            .count(address, Instant::now());
        if let Some(so_far) = noted {
            let outcome = format!("refused: {so_far} so far");
            self.shared.operator.note(&self.name(), "request", &outcome);
        }
        tokio::time::sleep(WRONG).await;
    }

    /// Returns the name for the audit file.
    fn name(&self) -> String {
        match self.peer {
            Peer::Tcp(peer) => format!("console {peer}"),
            Peer::Owner => "console socket".to_owned(),
        }
    }

    /// Runs the command on a thread that may wait.
    async fn ask(self, command: &'static Command, fields: Map<String, Value>) -> Response {
        let by = self.name();
        let permit = Arc::clone(&self.shared.commands).acquire_owned().await;
        let ask = move || {
            let _permit = permit;
            self.shared.operator.ask(&by, command.name, fields)
        };
        match tokio::task::spawn_blocking(ask).await {
            Ok(Ok(result)) => answer(StatusCode::OK, &result),
            Ok(Err(why)) => refusal(&why),
            Err(_) => error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the command failed: internal error",
            ),
        }
    }
}

async fn scrape(State(caller): State<Caller>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    match metrics::render(caller.shared.operator.counters(), format) {
        Ok(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(_) => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the counters cannot be written: internal error",
        ),
    }
}

/// Answers that the program runs.
async fn alive() -> Response {
    answer(StatusCode::OK, &json!({ "ok": true }))
}

/// Answers whether the program has live books for clients: 200, or 503.
async fn ready(State(caller): State<Caller>) -> Response {
    let readiness = Readiness::of(caller.shared.operator.counters().snapshot());
    let status = match readiness.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    answer(status, &readiness.json())
}

/// Returns the commands as an OpenAPI document.
async fn describe(State(caller): State<Caller>) -> Response {
    let shared = &caller.shared;
    let needs_token = shared.token.is_some() && matches!(caller.peer, Peer::Tcp(_));
    let document = openapi::document(&shared.operator.commands(), needs_token);
    answer(StatusCode::OK, &document)
}

/// Streams the changes from now on, or from the reader's last position, until the token becomes
/// another one.
async fn follow(
    State(caller): State<Caller>,
    pass: Option<Extension<Pass>>,
    headers: HeaderMap,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response {
    let query = match query {
        Ok(Query(query)) => query,
        Err(why) => return error(why.status(), &why.body_text()),
    };
    let shared = &caller.shared;
    let Some(changes) = shared.operator.changes() else {
        return error(StatusCode::NOT_FOUND, "this program publishes no changes");
    };
    let wanted = match Wanted::read(headers.get("last-event-id"), query, changes.kinds()) {
        Ok(wanted) => wanted,
        Err(why) => return error(StatusCode::BAD_REQUEST, &why),
    };
    let Ok(permit) = Arc::clone(&shared.streams).try_acquire_owned() else {
        let why = "too many clients follow the changes: at most half of all connections may";
        return error(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    let pass = pass.map(|Extension(pass)| pass);
    let stream = ChangeStream::new(changes.clone(), wanted, pass, permit);
    (kind, Body::new(stream)).into_response()
}

/// Runs a command that changes nothing, with the fields of the query.
async fn look(
    command: &'static Command,
    State(caller): State<Caller>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response {
    let query = match query {
        Ok(Query(query)) => query,
        Err(why) => return error(why.status(), &why.body_text()),
    };
    let mut fields = Map::new();
    for (name, text) in query {
        let field = command.takes.iter().find(|field| field.name == name);
        // A field that the command does not take is refused by name.
        let value = field.map_or_else(|| Ok(text.as_str().into()), |field| field.read(&text));
        let before = match value {
            Ok(value) => fields.insert(name.clone(), value),
            Err(why) => return refusal(&why),
        };
        if before.is_some() {
            return error(
                StatusCode::BAD_REQUEST,
                &format!("parameter `{name}` occurs twice"),
            );
        }
    }
    caller.ask(command, fields).await
}

/// Runs a command that changes something, with the fields of the body.
async fn act(
    command: &'static Command,
    State(caller): State<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    // A field that is ignored may widen the command to more sessions than are meant.
    if query.is_some_and(|query| !query.is_empty()) {
        let why = "the path takes no query: the fields of the command belong in the body";
        return error(StatusCode::BAD_REQUEST, why);
    }
    let body = match body {
        Ok(body) => body,
        Err(why) => return error(why.status(), &why.body_text()),
    };
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let why = "the body must be JSON, with `Content-Type: application/json`";
        return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    let fields = match body.is_empty() {
        true => Ok(Map::new()),
        false => fields(&body),
    };
    match fields {
        Ok(fields) => caller.ask(command, fields).await,
        Err(why) => error(StatusCode::BAD_REQUEST, &format!("the body: {why}")),
    }
}

async fn nothing_here() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "no such path: /api/v1/openapi.json lists the paths",
    )
}

async fn other_method() -> Response {
    let why = "the path does not allow this method: /api/v1/openapi.json lists the methods";
    error(StatusCode::METHOD_NOT_ALLOWED, why)
}

fn refusal(why: &OperatorError) -> Response {
    let status = match why.fault {
        Fault::Usage => StatusCode::BAD_REQUEST,
        Fault::Absent => StatusCode::NOT_FOUND,
        Fault::Failed => StatusCode::CONFLICT,
    };
    error(status, &why.text)
}

fn error(status: StatusCode, why: &str) -> Response {
    answer(status, &json!({ "error": why }))
}

fn answer(status: StatusCode, value: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, format!("{value}\n")).into_response()
}
