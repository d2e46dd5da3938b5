//! The page: files that were bundled from `page/src`, the same for every client.

use axum::http::{Method, header};
use axum::response::Html;
use axum::routing::{MethodRouter, get};

/// The script, whose first line names the sources it was made from.
const SCRIPT: &str = include_str!("../page/dist/page.js");
const STYLE: &str = include_str!("../page/dist/page.css");
const ICON: &str = include_str!("../page/dist/icon.svg");
const SHELL: &str = include_str!("../page/dist/index.html");

/// The place in the shell that states whether a token is needed.
const PLACE: &str = "{{token}}";

/// The policy of the page, which permits its own script and style, and requests to its own gateway.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                                 img-src 'self'; connect-src 'self'; base-uri 'none'; \
                                 form-action 'none'; frame-ancestors 'none'; \
                                 require-trusted-types-for 'script'";

/// The paths of the page. They reveal nothing of the gateway, so a browser needs no token for them.
const PATHS: [&str; 4] = ["/", "/page.js", "/page.css", "/icon.svg"];

/// Returns whether every client that may connect may request this.
pub(crate) fn is_public(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && PATHS.contains(&path)
}

/// Returns a route for each file of the page. The HTML shell states whether a token is needed.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(
    needs_token: bool,
) -> impl Iterator<Item = (&'static str, MethodRouter<S>)> {
    let token = if needs_token { "needed" } else { "none" };
    let shell = SHELL.replace(PLACE, token);
    let files = [
        ("/page.js", "text/javascript; charset=utf-8", SCRIPT),
        ("/page.css", "text/css; charset=utf-8", STYLE),
        ("/icon.svg", "image/svg+xml", ICON),
    ];
    let files = files.into_iter().map(|(path, kind, text)| {
        (
            path,
            get(move || async move { ([(header::CONTENT_TYPE, kind)], text) }),
        )
    });
    let shell = ("/", get(move || async move { Html(shell) }));
    std::iter::once(shell).chain(files)
}
