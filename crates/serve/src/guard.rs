//! Who may ask. A server at loopback is reached by every page that a browser of this host has open, so a request must say that it means this
//! server (`Host`, against DNS rebinding), must not come from a page of another (`Origin`), and must have a content type that no form can send.

use crate::fault::Problem;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a token at least.
const LEAST: usize = 16;

/// What a client must know. Only its digest is kept.
#[derive(Debug, Clone)]
pub struct Token([u8; 32]);

/// Why a file is no token.
#[derive(Debug, thiserror::Error)]
pub enum BadToken {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// Others may read it.
    #[error("others than its owner may read it: chmod 600 {0}")]
    Open(String),
    /// It is too short.
    #[error(
        "a token has at least {LEAST} characters without blanks: head -c 24 /dev/urandom | base64 > FILE"
    )]
    Short,
}

impl Token {
    /// Reads it from a file, of which line ends and blanks around it are no part.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it is too short.
    pub fn read(path: &Path) -> Result<Token, BadToken> {
        use std::io::Read as _;
        use std::os::unix::fs::PermissionsExt as _;
        let mut file = File::open(path)?;
        // Of the very file that is read.
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Err(BadToken::Open(path.display().to_string()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Token::of(text.trim()).ok_or(BadToken::Short)
    }

    fn of(text: &str) -> Option<Token> {
        let fits = text.len() >= LEAST && !text.contains(char::is_whitespace);
        fits.then(|| Token(Sha256::digest(text).into()))
    }

    /// How long it takes tells nothing of where two differ: digests of both are compared, all bytes of them.
    fn is(&self, text: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(text).into();
        self.0.iter().zip(other).fold(0, |differs, (own, other)| differs | (own ^ other)) == 0
    }
}

#[derive(Debug)]
pub(crate) struct Guard {
    names: Vec<String>,
    token: Option<Token>,
    /// Over a socket in the file system no browser comes.
    local: bool,
}

impl Guard {
    pub fn new(names: Vec<String>, token: Option<Token>, local: bool) -> Guard {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Guard { names, token, local }
    }

    /// Lets through to these routes what may pass.
    pub fn over(self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(Arc::new(self), check))
    }

    fn may_pass(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        if !self.local {
            self.means_this_server(headers)?;
        }
        let path = request.uri().path();
        let is_page = request.method() == Method::GET && (path == "/" || path.starts_with("/assets/"));
        if let Some(token) = self.token.as_ref().filter(|_| !is_page)
            && !given(headers).is_some_and(|text| token.is(&text))
        {
            let what = "a token is needed: `Authorization: Bearer TOKEN`, or http://user:TOKEN@host";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, what));
        }
        let writes = matches!(*request.method(), Method::POST | Method::PATCH | Method::PUT);
        let wanted = match path {
            "/api/v1/contents" => "application/octet-stream",
            _ => "application/json",
        };
        if writes && !kind(headers).eq_ignore_ascii_case(wanted) {
            let what = format!("{} {path}: send `Content-Type: {wanted}`", request.method());
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
        Ok(())
    }

    fn means_this_server(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase());
        let host = text(header::HOST).unwrap_or_default();
        let name = host_of(&host);
        // A name that leads here may be anybody's; an address is what it is.
        let is_ours = is_address(name) || name == "localhost" || self.names.iter().any(|own| own == name);
        if !is_ours {
            let what = format!(
                "`Host: {}` is no name of this server: use its address, or start it with --host-name {}",
                report::units::printable(&host),
                report::units::printable(name)
            );
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, what));
        }
        // Of what a page of another origin shows, too: a picture has no `Origin`.
        if text(header::HeaderName::from_static("sec-fetch-site")).as_deref() == Some("cross-site") {
            let what = "this request is from a page of another origin".to_owned();
            return Err(Problem::new(StatusCode::FORBIDDEN, what));
        }
        match text(header::ORIGIN) {
            Some(origin) if origin.split_once("://").map(|(_, origin)| origin) != Some(host.as_str()) => {
                let what = "this request is from a page of another origin".to_owned();
                Err(Problem::new(StatusCode::FORBIDDEN, what))
            }
            _ => Ok(()),
        }
    }
}

/// A host without its port.
fn host_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok() || name.parse::<Ipv6Addr>().is_ok()
}

fn kind(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split_once(';').map_or(value, |(kind, _)| kind).trim()
}

/// The token of a request: a bearer's, or a password (which is what `http://user:TOKEN@host` sends).
fn given(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    Some(decoded.split_once(':')?.1.to_owned())
}

/// A request that writes is answered within this.
const WHOLE: Duration = Duration::from_secs(300);

/// What every answer says to a browser.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_otg = crate::otg::owns(request.uri().path());
    let mut response = match guard.may_pass(&request) {
        Ok(()) if request.method() == Method::GET => next.run(request).await,
        // A body that does not come holds its place no longer than this.
        Ok(()) => match tokio::time::timeout(WHOLE, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::new(StatusCode::REQUEST_TIMEOUT, "it did not end in time").into_response(),
        },
        Err(problem) if is_otg => crate::otg::refused(&problem),
        Err(problem) => problem.into_response(),
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        let ask = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(header::HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn guard() -> Guard {
        let token = Token::of("correct-horse-battery");
        Guard::new(vec!["Lab.example".to_owned()], token, false)
    }

    fn status(method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        guard().may_pass(&request).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_requests_that_mean_this_server_and_know_the_token_pass() {
        let bearer = ("authorization", "Bearer correct-horse-battery");
        let basic = format!("Basic {}", STANDARD.encode("any:correct-horse-battery"));
        let json = ("content-type", "application/json; charset=utf-8");
        let host = ("host", "127.0.0.1:8443");
        for (method, path, headers, wanted) in [
            ("GET", "/config", &[host, bearer][..], 200),
            ("GET", "/config", &[host, ("authorization", basic.as_str())], 200),
            ("GET", "/config", &[host], 401),
            ("GET", "/config", &[host, ("authorization", "Bearer correct-horse-batterx")], 401),
            ("GET", "/config", &[host, ("authorization", "Bearer ")], 401),
            ("GET", "/", &[host], 200),
            ("GET", "/assets/app.js", &[host], 200),
            ("POST", "/", &[host], 401),
            ("GET", "/", &[("host", "evil.example")], 421),
            ("GET", "/", &[("host", "127.0.0.1.evil.example")], 421),
            ("GET", "/", &[("host", "localhost.evil.example")], 421),
            ("GET", "/", &[], 421),
            ("GET", "/", &[("host", "localhost:1")], 200),
            ("GET", "/", &[("host", "[::1]:8443")], 200),
            ("GET", "/", &[("host", "lab.EXAMPLE")], 200),
            ("POST", "/config", &[host, bearer, json], 200),
            ("POST", "/config", &[host, bearer, ("content-type", "text/plain")], 415),
            ("POST", "/config", &[host, bearer], 415),
            ("PATCH", "/config", &[host, bearer, ("content-type", "application/x-www-form-urlencoded")], 415),
            ("POST", "/api/v1/contents", &[host, bearer, ("content-type", "application/octet-stream")], 200),
            ("GET", "/config", &[host, bearer, ("origin", "http://127.0.0.1:8443")], 200),
            ("GET", "/config", &[host, bearer, ("origin", "http://127.0.0.1:8444")], 403),
            ("POST", "/config", &[host, bearer, json, ("origin", "https://evil.example")], 403),
            ("POST", "/config", &[host, bearer, json, ("origin", "null")], 403),
            ("GET", "/config", &[host, bearer, ("sec-fetch-site", "cross-site")], 403),
            ("GET", "/config", &[host, bearer, ("sec-fetch-site", "same-origin")], 200),
        ] {
            assert_eq!(status(method, path, headers), wanted, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn short_tokens_are_none() {
        assert!(Token::of("short").is_none());
        assert!(Token::of("with a blank inside").is_none());
    }
}
