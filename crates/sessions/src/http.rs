//! The request and the answer, byte for byte.

/// A GET of `path`, after whose answer the server closes, if it is to. A header fills it up to `size` bytes, if it is shorter.
pub fn request(host: &str, path: &str, size: Option<usize>, server_closes: bool) -> Vec<u8> {
    let close = if server_closes { "Connection: close\r\n" } else { "" };
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: netdyno\r\n{close}");
    filled(head, "X-Fill: ", size, "\r\n\r\n").unwrap_or_else(|head| (head + "\r\n").into_bytes())
}

/// The head with one more header that brings it to `size`, or the head as it was where there is no room for that.
fn filled(head: String, name: &str, size: Option<usize>, end: &str) -> Result<Vec<u8>, String> {
    let with = head.len() + name.len() + end.len();
    match size {
        Some(size) if size >= with => Ok((head + name + &"x".repeat(size - with) + end).into_bytes()),
        _ => Err(head),
    }
}

/// An answer whose body has `size` bytes, after which the connection is closed, or not.
pub fn answer(size: usize, closes: bool) -> Vec<u8> {
    let close = if closes { "Connection: close\r\n" } else { "" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n{close}\r\n");
    let mut whole = head.into_bytes();
    whole.extend(b"netdyno\n".iter().cycle().take(size));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_size_that_was_asked_for() {
        let least = request("10.0.0.1", "/", None, true);
        assert!(least.ends_with(b"Connection: close\r\n\r\n"));
        for size in [least.len() + 10, 200, 1460] {
            let filled = request("10.0.0.1", "/", Some(size), true);
            assert_eq!(filled.len(), size);
            assert!(
                filled.starts_with(b"GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n") && filled.ends_with(b"\r\n\r\n")
            );
        }
        assert_eq!(request("10.0.0.1", "/", Some(3), true), least);
        assert!(!request("10.0.0.1", "/", None, false).windows(5).any(|part| part == b"close"));
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let whole = answer(1000, true);
        let text = String::from_utf8(whole).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("two parts");
        assert!(head.contains("Content-Length: 1000"));
        assert_eq!(body.len(), 1000);
    }
}
