//! What a terminal says of itself.

/// What TERM says where it names no terminal that can move its cursor or show colours (terminfo(5)).
pub fn dumb_terminal() -> Option<String> {
    match std::env::var_os("TERM") {
        Some(term) if ["", "dumb", "unknown"].iter().any(|dumb| term == *dumb) => {
            Some(term.to_string_lossy().into_owned())
        }
        Some(_) => None,
        None => Some("not set".to_owned()),
    }
}
