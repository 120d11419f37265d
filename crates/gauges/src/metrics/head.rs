//! What a request's head asks for (RFC 9112 section 3), and whether it asks this host. Whatever the bytes are.

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpRequest {
    /// It is no request.
    Nothing,
    /// Something else than to be shown something.
    ToChange,
    /// A host whose name is not ours.
    Another,
    Root,
    Metrics {
        /// In OpenMetrics' format.
        open: bool,
    },
    Elsewhere,
}

impl HttpRequest {
    /// `own` has what this host is called, in small letters.
    pub fn read(head: &[u8], own: &[String]) -> HttpRequest {
        let Ok(text) = std::str::from_utf8(head) else { return HttpRequest::Nothing };
        let mut lines = text.lines();
        let words: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
        let [method, target, version] = words[..] else { return HttpRequest::Nothing };
        if !version.starts_with("HTTP/1.") || method.is_empty() || !target.starts_with('/') {
            return HttpRequest::Nothing;
        }
        if !matches!(method, "GET" | "HEAD") {
            return HttpRequest::ToChange;
        }
        let headers = lines.filter_map(|line| line.split_once(':'));
        let of = |wanted: &'static str| {
            let named = headers.clone().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
            named.map(|(_, value)| value.trim())
        };
        if !of("host").all(|host| is_ours(host, own)) {
            return HttpRequest::Another;
        }
        match target.split('?').next().unwrap_or("") {
            "/metrics" => HttpRequest::Metrics {
                open: of("accept").any(|value| value.contains("application/openmetrics-text")),
            },
            "/" => HttpRequest::Root,
            _ => HttpRequest::Elsewhere,
        }
    }
}

/// Whether a Host header (RFC 9110 section 7.2) names this host in a way that no stranger can. A web page may make its own
/// name lead to any address (DNS rebinding), and would then be let read what is here: so an address, a name without a
/// domain, a domain that only local names have, or what this host is called.
fn is_ours(host: &str, own: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            let address = rest.split(']').next().unwrap_or("");
            return address.parse::<std::net::Ipv6Addr>().is_ok();
        }
        None => host.split(':').next().unwrap_or(""),
    };
    let name = plain(name);
    let local = |name: &str| {
        [".localhost", ".local", ".internal", ".home.arpa"].iter().any(|domain| name.ends_with(domain))
    };
    name.parse::<std::net::Ipv4Addr>().is_ok() || !name.contains('.') || local(&name) || own.contains(&name)
}

/// A name as names are compared: DNS knows no capitals, and its root may be left out.
pub fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
