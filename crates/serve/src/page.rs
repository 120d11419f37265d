//! The page: three files that are part of the program.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const HTML: &str = include_str!("../assets/index.html");
const SCRIPT: &str = include_str!("../assets/app.js");
const STYLE: &str = include_str!("../assets/style.css");

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", HTML) }))
        .route("/assets/app.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/assets/style.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
