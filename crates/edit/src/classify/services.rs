//! Which ports are those of services.

use std::fmt;

/// For TCP and UDP, which ports servers listen on.
#[derive(Clone, PartialEq, Eq)]
pub struct Services {
    tcp: Vec<bool>,
    udp: Vec<bool>,
}

/// Why a services file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadServices {
    /// Reading failed.
    #[error("{file}: {source}")]
    Read {
        /// The file's name.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no service in it.
    #[error("{file} names no service: its lines should read like `http 80/tcp`")]
    Empty {
        /// The file's name.
        file: String,
    },
}

impl Default for Services {
    /// The system ports, 0 to 1023 (RFC 6335 section 6).
    fn default() -> Services {
        let ports: Vec<bool> = (0..=u16::MAX).map(|port| port < 1024).collect();
        Services { tcp: ports.clone(), udp: ports }
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |ports: &[bool]| ports.iter().filter(|port| **port).count();
        write!(f, "Services({} TCP, {} UDP)", count(&self.tcp), count(&self.udp))
    }
}

impl Services {
    /// Those of a file like /etc/services, and no others.
    ///
    /// # Errors
    /// It cannot be read, or a line is none of such a file.
    pub fn open(path: &std::path::Path) -> Result<Services, BadServices> {
        let file = || path.display().to_string();
        let text = std::fs::read(path).map_err(|source| BadServices::Read { file: file(), source })?;
        let services = Services::parse(&String::from_utf8_lossy(&text));
        match services.tcp.iter().chain(&services.udp).any(|port| *port) {
            true => Ok(services),
            false => Err(BadServices::Empty { file: file() }),
        }
    }

    /// The first `80/tcp` of each line counts, wherever it stands.
    fn parse(text: &str) -> Services {
        let mut services = Services { tcp: vec![false; 65_536], udp: vec![false; 65_536] };
        for line in text.lines() {
            let Some((port, udp)) = service(line) else { continue };
            let ports = if udp { &mut services.udp } else { &mut services.tcp };
            ports[usize::from(port)] = true;
        }
        services
    }

    /// Whether a server listens on this TCP port.
    #[inline]
    pub fn tcp(&self, port: u16) -> bool {
        self.tcp[usize::from(port)]
    }

    /// Likewise of UDP.
    #[inline]
    pub fn udp(&self, port: u16) -> bool {
        self.udp[usize::from(port)]
    }
}

/// The first port number, a slash, and `tcp` or `udp` (true): what a line of /etc/services says.
fn service(line: &str) -> Option<(u16, bool)> {
    line.match_indices('/').find_map(|(slash, _)| {
        let before = &line[..slash];
        let digits = &before[before.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
        let udp = match line.get(slash + 1..slash + 4)? {
            "tcp" => false,
            "udp" => true,
            _ => return None,
        };
        digits.parse().ok().map(|port| (port, udp))
    })
}
