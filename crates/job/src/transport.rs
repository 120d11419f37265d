//! By what messages of flow records travel, as the names of their places say.

/// By what messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// Which it is, and what follows: `tcp://HOST:PORT`; `udp://HOST:PORT` is `HOST:PORT`.
pub fn transport(name: &str) -> (Transport, &str) {
    match name.strip_prefix(spec::TCP) {
        Some(place) => (Transport::Tcp, place),
        None => (Transport::Udp, name.strip_prefix("udp://").unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_by_what_its_messages_travel() {
        assert_eq!(transport("192.0.2.1:2055"), (Transport::Udp, "192.0.2.1:2055"));
        assert_eq!(transport("udp://[::1]:2055"), (Transport::Udp, "[::1]:2055"));
        assert_eq!(transport("tcp://host:4739"), (Transport::Tcp, "host:4739"));
    }
}
