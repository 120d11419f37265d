//! The page: files that are part of the program.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

macro_rules! assets {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../assets/", $name)))),+]
    };
}

/// All that the page loads. (A test holds the list to the folder.)
const ASSETS: &[(&str, &str)] = assets![
    "api.js",
    "app.js",
    "chart.js",
    "command.js",
    "compare.js",
    "dom.js",
    "drawing.js",
    "figures.js",
    "form.js",
    "history.js",
    "host.js",
    "icon.svg",
    "index.html",
    "plots.js",
    "run.js",
    "style.css",
    "units.js"
];

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { file("index.html") }))
        .route("/assets/{name}", get(|Path(name): Path<String>| async move { file(&name) }))
}

fn file(name: &str) -> Response {
    let Some((name, text)) = ASSETS.iter().find(|(own, _)| *own == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, kind)], *text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_file_of_the_page_is_served_and_all_are_less_than_150_kb() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let found: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        let listed: BTreeSet<String> = ASSETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, listed);
        let bytes: usize = ASSETS.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes < 150_000, "{bytes}");
    }
}
