//! What a client asks for, checked: the data phase that the server is to run. Sizes are bounded here.

use super::legacy::Kind;
use super::omni::{self, Request, direction, family, flag};
use std::net::IpAddr;
use std::time::Duration;

/// The longest test: what has none ends after a day.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// The largest buffer for one call, in bytes.
pub const LARGEST: u32 = 64 << 20;
/// The largest datagram.
pub const LARGEST_DATAGRAM: u32 = 65_507;

/// In which layout the client expects answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// DO_OMNI's.
    Omni,
    /// The test's own.
    Legacy(Kind),
}

/// What happens in the data phase, as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// It receives until the client ends.
    Receive,
    /// It sends for so long.
    Send,
    /// It answers requests.
    Answer,
    /// The same, with a connection for each.
    AnswerEach,
    /// It takes connections and closes them.
    AcceptEach,
}

/// TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// How long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Time.
    Time(Duration),
    /// Bytes of a stream, or transactions.
    Units(u64),
}

impl Length {
    /// How a request says it: seconds, or negative. 0 is without end.
    pub fn of(length: i32) -> Length {
        match length {
            0 => Length::Time(LONGEST),
            1.. => Length::Time(Duration::from_secs(length.unsigned_abs().into()).min(LONGEST)),
            _ => Length::Units(length.unsigned_abs().into()),
        }
    }

    /// When time is over at the latest.
    pub fn at_most(self) -> Duration {
        match self {
            Length::Time(time) => time,
            Length::Units(_) => LONGEST,
        }
    }
}

/// A data phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How answers are laid out.
    pub style: Style,
    /// What happens.
    pub shape: Shape,
    /// By what.
    pub transport: Transport,
    /// IPv6, IPv4, or as the control connection.
    pub v6: Option<bool>,
    /// How long.
    pub length: Length,
    /// SO_SNDBUF; None: the system's.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF; None: the system's.
    pub recv_buffer: Option<u32>,
    /// Bytes of each send; None: as many as SO_SNDBUF.
    pub send_size: Option<u32>,
    /// Bytes of each receive; None: as many as SO_RCVBUF.
    pub receive_size: Option<u32>,
    /// Bytes of a request.
    pub request_size: u32,
    /// Bytes of a response.
    pub response_size: u32,
    /// The port for data; 0: any.
    pub port: u16,
    /// The address for data; None: any.
    pub address: Option<IpAddr>,
    /// The client's address for data, where it says one.
    pub peer: Option<IpAddr>,
    /// The client's UDP port.
    pub peer_port: u16,
    /// The processor to run on.
    pub core: Option<u32>,
    /// Is CPU use wanted?
    pub measure_cpu: bool,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// TCP_FASTOPEN.
    pub fast_open: bool,
    /// TCP_DEFER_ACCEPT.
    pub defer_accept: bool,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// The name of the congestion control to be used.
    pub congestion: Option<String>,
    /// Its name is wanted with the results.
    pub name_congestion: bool,
    /// SO_PRIORITY.
    pub priority: Option<u32>,
    /// IP_TOS.
    pub tos: Option<u8>,
    /// The request itself: answers repeat some of it.
    pub request: Request,
}

/// What cannot be done, as an error number of Linux: the protocol has room for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing like that is known.
    #[error("the request makes no sense: {0}")]
    Invalid(&'static str),
    /// Not over TCP or UDP.
    #[error("only TCP and UDP are there")]
    Protocol,
    /// A file of the server's is to be read.
    #[error("buffers are not filled from the server's files")]
    File,
    /// Too many bytes at once.
    #[error("more bytes at once than are taken")]
    TooLarge,
}

impl Refusal {
    /// EINVAL, EPROTONOSUPPORT, EACCES, EMSGSIZE.
    pub fn errno(self) -> u32 {
        match self {
            Refusal::Invalid(_) => 22,
            Refusal::Protocol => 93,
            Refusal::File => 13,
            Refusal::TooLarge => 90,
        }
    }
}

/// A size that may be the peer's default.
fn size(of: i32, most: u32) -> Result<Option<u32>, Refusal> {
    match u32::try_from(of) {
        Err(_) | Ok(0) => Ok(None),
        Ok(size) if size <= most => Ok(Some(size)),
        Ok(_) => Err(Refusal::TooLarge),
    }
}

impl Plan {
    /// What a request comes to.
    ///
    /// # Errors
    /// It asks for what is not there, or for too much.
    pub fn of(style: Style, request: Request) -> Result<Plan, Refusal> {
        let r = &request;
        let transport = match (r.protocol, r.socket) {
            (omni::TCP, omni::socket::STREAM) => Transport::Tcp,
            (omni::UDP, omni::socket::DGRAM) => Transport::Udp,
            _ => return Err(Refusal::Protocol),
        };
        let each = r.flags & flag::CONNECT_TEST != 0;
        let shape = match (r.direction & direction::RECV != 0, r.direction & direction::XMIT != 0) {
            (true, true) if each => Shape::AnswerEach,
            (true, true) => Shape::Answer,
            (false, false) if each => Shape::AcceptEach,
            (true, false) if !each => Shape::Receive,
            (false, true) if !each => Shape::Send,
            _ => return Err(Refusal::Invalid("its direction")),
        };
        if each && transport == Transport::Udp {
            return Err(Refusal::Invalid("UDP has no connections"));
        }
        if r.length > 0 && Duration::from_secs(r.length.unsigned_abs().into()) > LONGEST {
            return Err(Refusal::Invalid("a test lasts a day at most"));
        }
        let length = Length::of(r.length);
        if transport == Transport::Udp && shape != Shape::Answer && matches!(length, Length::Units(_)) {
            return Err(Refusal::Invalid("UDP streams have a time"));
        }
        let most = if transport == Transport::Udp { LARGEST_DATAGRAM } else { LARGEST };
        let whole = |of: i32| size(of, most).map(|size| size.unwrap_or(1));
        let v6 = match r.family {
            family::UNSPECIFIED => None,
            family::INET => Some(false),
            family::INET6 => Some(true),
            _ => return Err(Refusal::Invalid("its family of addresses")),
        };
        if !r.fill_file.is_empty() {
            return Err(Refusal::File);
        }
        let port = |port: u32| u16::try_from(port).map_err(|_| Refusal::Invalid("its port"));
        // What is left out is found in the flag alone.
        let flagged = |flag| r.flags & flag != 0;
        Ok(Plan {
            style,
            shape,
            transport,
            v6,
            length,
            send_buffer: size(r.send_buffer, i32::MAX as u32)?,
            recv_buffer: size(r.recv_buffer, i32::MAX as u32)?,
            send_size: size(r.send_size, most)?,
            receive_size: size(r.receive_size, most)?,
            request_size: whole(r.request_size)?,
            response_size: whole(r.response_size)?,
            port: port(r.data_port)?,
            address: omni::address_of(r.netserver_ip, r.family),
            peer: omni::address_of(r.netperf_ip, r.family),
            peer_port: r.netperf_port as u16,
            core: u32::try_from(r.cpu).ok(),
            measure_cpu: flagged(flag::MEASURE_CPU),
            nodelay: flagged(flag::NODELAY),
            keepalive: flagged(flag::KEEPALIVE),
            fast_open: flagged(flag::FASTOPEN),
            defer_accept: flagged(flag::DEFER_ACCEPT),
            dont_fragment: flagged(flag::MTU_DISCOVER),
            congestion: Some(r.congestion.clone()).filter(|name| !name.is_empty()),
            name_congestion: flagged(flag::ROUTING_ALLOWED),
            priority: u32::try_from(r.priority).ok(),
            tos: u8::try_from(r.tos).ok(),
            request,
        })
    }
}
