//! Sockets with options. Each option that the kernel refuses is an error that names it and the mend.

use crate::sys;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket,
};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a socket is to be like. Default: as the kernel makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// SO_SNDBUF in bytes, as asked: the kernel doubles it for its own use, and has a most (net.core.wmem_max).
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes.
    pub receive_buffer: Option<u32>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: bool,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
    /// SO_MAX_PACING_RATE, bytes per second.
    pub pacing_rate: Option<u64>,
    /// IP_TOS or IPV6_TCLASS: DSCP in the upper six bits.
    pub tos: Option<u8>,
    /// IPv6's flow label of a socket that connects, 1 to 0xfffff.
    pub flow_label: Option<u32>,
    /// SO_PRIORITY.
    pub priority: Option<u32>,
    /// TCP_MAXSEG.
    pub mss: Option<u32>,
    /// Multipath TCP. Where the peer has none, the kernel goes on with TCP ([`Actual::mptcp`]).
    pub mptcp: bool,
    /// SO_BUSY_POLL: receiving polls the device for so many microseconds.
    pub busy_poll: Option<u32>,
    /// Own address.
    pub bind: Option<IpAddr>,
    /// Own port.
    pub port: Option<u16>,
    /// SO_BINDTODEVICE.
    pub device: Option<String>,
    /// IP_MTU_DISCOVER: packets are never fragmented.
    pub dont_fragment: bool,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// TCP_FASTOPEN (listening) and TCP_FASTOPEN_CONNECT (connecting).
    pub fast_open: bool,
    /// TCP_DEFER_ACCEPT (listening): a connection is accepted when its first data is there.
    pub defer_accept: bool,
    /// SO_REUSEPORT.
    pub reuse_port: bool,
    /// IPV6_V6ONLY (listening, and UDP).
    pub v6_only: bool,
}

/// What went wrong with a socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// An option was refused.
    #[error("{option} {value}: {error}{mend}")]
    Option {
        /// Its name (SO_SNDBUF).
        option: &'static str,
        /// What it was to be.
        value: String,
        /// What the kernel said.
        error: io::Error,
        /// The mend, with "; " before it; or nothing.
        mend: String,
    },
    /// No socket of that kind.
    #[error("making a socket: {error}{mend}")]
    Socket {
        /// What the kernel said.
        error: io::Error,
        /// The mend.
        mend: String,
    },
    /// Not bound.
    #[error("binding to {at}: {error}{mend}")]
    Bind {
        /// To what.
        at: String,
        /// What the kernel said.
        error: io::Error,
        /// The mend.
        mend: String,
    },
    /// Not connected.
    #[error("connecting to {to}: {error}{mend}")]
    Connect {
        /// To whom.
        to: String,
        /// What the kernel said.
        error: io::Error,
        /// The mend.
        mend: String,
    },
    /// Another call.
    #[error("{what}: {error}")]
    Call {
        /// Which.
        what: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
}

impl SocketError {
    /// What the kernel said.
    pub fn io(&self) -> &io::Error {
        match self {
            SocketError::Option { error, .. }
            | SocketError::Socket { error, .. }
            | SocketError::Bind { error, .. }
            | SocketError::Connect { error, .. }
            | SocketError::Call { error, .. } => error,
        }
    }

    /// The same alone.
    pub fn into_io(self) -> io::Error {
        match self {
            SocketError::Option { error, .. }
            | SocketError::Socket { error, .. }
            | SocketError::Bind { error, .. }
            | SocketError::Connect { error, .. }
            | SocketError::Call { error, .. } => error,
        }
    }

    /// Of a connection that was refused: the error names the command that starts the server, too.
    #[must_use]
    pub fn served_by(mut self, command: &str) -> SocketError {
        if let SocketError::Connect { error, mend, .. } = &mut self
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            mend.push_str(&format!(" Start it there: {command}"));
        }
        self
    }
}

type Result<T> = std::result::Result<T, SocketError>;

/// What the kernel made of a socket's options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actual {
    /// SO_SNDBUF in bytes: twice what was asked, or what the kernel tunes by itself now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u32>,
    /// TCP_CONGESTION.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// TCP_MAXSEG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// TCP_NODELAY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// Multipath TCP is spoken on this connection. None: it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<bool>,
}

impl Actual {
    /// Of `socket`, now. What does not apply to it is None.
    pub fn of(socket: &impl AsFd) -> Actual {
        let number =
            |level, name| sys::get_int(socket, level, name).ok().and_then(|value| u32::try_from(value).ok());
        let mut name = [0_u8; 16];
        let congestion = sys::get_bytes(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name);
        let congestion = congestion.ok().map(|length| {
            let name = name.get(..length).unwrap_or_default();
            String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        });
        // The kernel says EOPNOTSUPP where a connection fell back to TCP (MPTCP_INFO, level SOL_MPTCP).
        let is_mptcp = number(libc::SOL_SOCKET, libc::SO_PROTOCOL) == Some(libc::IPPROTO_MPTCP as u32);
        let mut info = [0_u8; 256];
        let mptcp = is_mptcp.then(|| sys::get_bytes(socket, SOL_MPTCP, MPTCP_INFO, &mut info).is_ok());
        Actual {
            send_buffer: number(libc::SOL_SOCKET, libc::SO_SNDBUF),
            receive_buffer: number(libc::SOL_SOCKET, libc::SO_RCVBUF),
            congestion,
            mss: number(libc::IPPROTO_TCP, libc::TCP_MAXSEG),
            nodelay: number(libc::IPPROTO_TCP, libc::TCP_NODELAY).map(|on| on != 0),
            mptcp,
        }
    }
}

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const SO_MAX_PACING_RATE: i32 = 47;
const TCP_FASTOPEN_CONNECT: i32 = 30;

impl Options {
    /// Sets them on `socket` as far as they can be set on one that may be connected already (an accepted one). `of` is an address of
    /// its family.
    ///
    /// # Errors
    /// The first one that the kernel refused.
    pub fn apply(&self, socket: &impl AsFd, of: IpAddr) -> Result<()> {
        let v6 = of.is_ipv6();
        if let Some(bytes) = self.send_buffer {
            buffer(socket, "SO_SNDBUF", libc::SO_SNDBUF, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer {
            buffer(socket, "SO_RCVBUF", libc::SO_RCVBUF, bytes)?;
        }
        if let Some(tos) = self.tos {
            let option = if v6 {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS")
            } else {
                (libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS")
            };
            number(socket, option, u32::from(tos), "")?;
        }
        if let Some(priority) = self.priority {
            let mend = "priorities above 6 need CAP_NET_ADMIN";
            number(socket, (libc::SOL_SOCKET, libc::SO_PRIORITY, "SO_PRIORITY"), priority, mend)?;
        }
        if let Some(us) = self.busy_poll {
            let mend = "more than net.core.busy_read needs CAP_NET_ADMIN, which a server that left root does not have";
            number(socket, (libc::SOL_SOCKET, libc::SO_BUSY_POLL, "SO_BUSY_POLL"), us, mend)?;
        }
        if let Some(rate) = self.pacing_rate {
            sys::set_u64(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, rate)
                .map_err(|error| option("SO_MAX_PACING_RATE", rate.to_string(), error, ""))?;
        }
        if self.dont_fragment {
            let option = if v6 {
                (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER")
            } else {
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER")
            };
            number(socket, option, libc::IP_PMTUDISC_DO as u32, "")?;
        }
        if self.keepalive {
            number(socket, (libc::SOL_SOCKET, libc::SO_KEEPALIVE, "SO_KEEPALIVE"), 1, "")?;
        }
        self.tcp(socket)
    }

    fn tcp(&self, socket: &impl AsFd) -> Result<()> {
        const TCP: i32 = libc::IPPROTO_TCP;
        if self.nodelay {
            number(socket, (TCP, libc::TCP_NODELAY, "TCP_NODELAY"), 1, "")?;
        }
        if self.cork {
            number(socket, (TCP, libc::TCP_CORK, "TCP_CORK"), 1, "")?;
        }
        if let Some(mss) = self.mss {
            number(socket, (TCP, libc::TCP_MAXSEG, "TCP_MAXSEG"), mss, "88 to 32767 bytes are possible")?;
        }
        if let Some(name) = &self.congestion {
            sys::set_name(socket, TCP, libc::TCP_CONGESTION, name).map_err(|error| {
                let mend = congestions(&error);
                option("TCP_CONGESTION", name.clone(), error, &mend)
            })?;
        }
        Ok(())
    }

    fn before_bind(&self, socket: &OwnedFd, of: IpAddr) -> Result<()> {
        self.apply(socket, of)?;
        if let Some(device) = &self.device {
            sys::set_name(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device).map_err(|error| {
                option("SO_BINDTODEVICE", device.clone(), error, "`ip link` lists the interfaces")
            })?;
        }
        if self.reuse_port {
            number(socket, (libc::SOL_SOCKET, libc::SO_REUSEPORT, "SO_REUSEPORT"), 1, "")?;
        }
        if self.v6_only && of.is_ipv6() {
            number(socket, (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, "IPV6_V6ONLY"), 1, "")?;
        }
        Ok(())
    }

    /// Where a socket connects to: with the flow label, if it is to have one.
    fn labelled(&self, socket: &OwnedFd, to: SocketAddr) -> Result<SocketAddr> {
        let (Some(label), SocketAddr::V6(mut to)) = (self.flow_label, to) else { return Ok(to) };
        sys::lease_flow_label(socket, *to.ip(), label).map_err(|error| {
            option("IPV6_FLOWLABEL_MGR", format!("{label:#x}"), error, "1 to 0xfffff are possible")
        })?;
        to.set_flowinfo(label);
        Ok(to.into())
    }

    /// The address that a socket which connects to `of` is bound to, if it is.
    fn own(&self, of: IpAddr) -> Option<SocketAddr> {
        let any = if of.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        (self.bind.is_some() || self.port.is_some())
            .then(|| SocketAddr::new(self.bind.unwrap_or(any), self.port.unwrap_or(0)))
    }
}

fn option(option: &'static str, value: String, error: io::Error, mend: &str) -> SocketError {
    SocketError::Option { option, value, error, mend: said(mend) }
}

fn said(mend: &str) -> String {
    if mend.is_empty() { String::new() } else { format!("; {mend}") }
}

fn number(
    socket: &impl AsFd,
    (level, name, word): (i32, i32, &'static str),
    value: u32,
    mend: &str,
) -> Result<()> {
    let given = i32::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    given
        .and_then(|given| sys::set_int(socket, level, name, given))
        .map_err(|error| option(word, value.to_string(), error, mend))
}

/// By force where that is permitted: then the sysctl's most does not count.
fn buffer(socket: &impl AsFd, word: &'static str, name: i32, bytes: u32) -> Result<()> {
    let force = if name == libc::SO_SNDBUF { libc::SO_SNDBUFFORCE } else { libc::SO_RCVBUFFORCE };
    let given = i32::try_from(bytes).unwrap_or(i32::MAX);
    if sys::set_int(socket, libc::SOL_SOCKET, force, given).is_ok() {
        return Ok(());
    }
    number(socket, (libc::SOL_SOCKET, name, word), bytes, "")
}

fn congestions(error: &io::Error) -> String {
    let names =
        |which: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control"));
    match (error.raw_os_error(), names("allowed"), names("available")) {
        (Some(libc::EPERM), Ok(names), _) => format!(
            "others than {} (net.ipv4.tcp_allowed_congestion_control) need CAP_NET_ADMIN, which a server that left root does not have",
            names.split_whitespace().collect::<Vec<_>>().join(", ")
        ),
        (_, _, Ok(names)) => format!("this host has {}; `modprobe tcp_NAME` adds others", names.trim()),
        _ => String::new(),
    }
}

fn make(of: IpAddr, kind: SocketType, mptcp: bool) -> Result<OwnedFd> {
    let family = if of.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let protocol = mptcp.then_some(ipproto::MPTCP);
    socket_with(family, kind, SocketFlags::CLOEXEC, protocol).map_err(|error| SocketError::Socket {
        error: error.into(),
        mend: said(match error {
            rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => NO_FILE,
            _ if mptcp => "Multipath TCP needs net.mptcp.enabled=1 and a kernel that has it",
            _ => "",
        }),
    })
}

/// The same host's other port. A link-local address of IPv6 keeps its scope, without which the kernel knows no way there.
pub fn at_port(mut host: SocketAddr, port: u16) -> SocketAddr {
    host.set_port(port);
    host
}

/// As IPv4 what a socket of IPv6 says of an address of IPv4; others stay as they are, with their scope.
pub fn canonical(at: SocketAddr) -> SocketAddr {
    match at.ip().to_canonical() {
        four @ IpAddr::V4(_) => SocketAddr::new(four, at.port()),
        IpAddr::V6(_) => at,
    }
}

/// Who binds to an address of IPv6 with a zone (fe80::1%eth0) or connects to one writes it in brackets, which `getaddrinfo` does not know.
///
/// # Errors
/// There is no such host.
pub fn lookup(place: &str) -> io::Result<Vec<SocketAddr>> {
    let zoned = place.strip_prefix('[').and_then(|rest| rest.rsplit_once("]:"));
    match zoned
        .and_then(|(host, port)| Some((host.contains('%').then_some(host)?, port.parse::<u16>().ok()?)))
    {
        Some(at) => Ok(at.to_socket_addrs()?.collect()),
        None => Ok(place.to_socket_addrs()?.collect()),
    }
}

fn bind(socket: &OwnedFd, at: SocketAddr) -> Result<()> {
    rustix::net::bind(socket, &at).map_err(|error| {
        let error = io::Error::from(error);
        let mend = match error.raw_os_error() {
            Some(libc::EADDRINUSE) => "another program has that port: `ss -ltnup` names it",
            Some(libc::EADDRNOTAVAIL) => "this host does not have that address, or has no port left",
            Some(libc::EACCES) => "ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE",
            _ => "",
        };
        SocketError::Bind { at: at.to_string(), error, mend: said(mend) }
    })
}

/// Connects over TCP; a handshake that takes longer than `deadline` fails.
///
/// # Errors
/// An option was refused, there is no way there, nobody answered, or the host is out of ports.
pub fn connect(to: SocketAddr, options: &Options, deadline: Duration) -> Result<TcpStream> {
    let stream = dial(to, options, deadline)?;
    sys::set_timeout(&stream, libc::SO_SNDTIMEO, Duration::ZERO)
        .map_err(|error| SocketError::Call { what: "SO_SNDTIMEO", error })?;
    Ok(stream)
}

/// A socket that is connecting, and does not wait: it can be written to once it is connected, and [`error_of`] says if it is not.
///
/// # Errors
/// An option was refused, there is no way there, or the host is out of ports.
pub(crate) fn begin(to: SocketAddr, options: &Options) -> Result<OwnedFd> {
    let socket = prepared(to, options)?;
    let call = |error: rustix::io::Errno| not_connected(to.to_string(), error.into(), Duration::ZERO);
    rustix::io::ioctl_fionbio(&socket, true).map_err(call)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => Ok(socket),
        Err(error) => Err(call(error)),
    }
}

/// What went wrong with a connection (SO_ERROR). None: nothing.
pub(crate) fn error_of(socket: &impl AsFd) -> io::Result<Option<io::Error>> {
    let error = sys::get_int(socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
    Ok((error != 0).then(|| io::Error::from_raw_os_error(error)))
}

/// A socket with all its options, bound if it is to be, that may connect to `to`.
fn prepared(to: SocketAddr, options: &Options) -> Result<OwnedFd> {
    let socket = make(to.ip(), SocketType::STREAM, options.mptcp)?;
    options.before_bind(&socket, to.ip())?;
    if options.fast_open {
        number(&socket, (libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, "TCP_FASTOPEN_CONNECT"), 1, "")?;
    }
    if let Some(own) = options.own(to.ip()) {
        number(&socket, (libc::SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR"), 1, "")?;
        if own.port() == 0 {
            // The port is chosen when it connects: then it may be in use towards another peer.
            let name = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, "IP_BIND_ADDRESS_NO_PORT");
            number(&socket, name, 1, "")?;
        }
        bind(&socket, own)?;
    }
    Ok(socket)
}

/// Connects as [`connect`] does. The deadline stays the limit of sending (SO_SNDTIMEO).
pub(crate) fn dial(to: SocketAddr, options: &Options, deadline: Duration) -> Result<TcpStream> {
    let socket = prepared(to, options)?;
    // The send timeout limits connecting, too (socket(7)).
    let set = |after| sys::set_timeout(&socket, libc::SO_SNDTIMEO, after);
    set(deadline.max(Duration::from_millis(1)))
        .map_err(|error| SocketError::Call { what: "SO_SNDTIMEO", error })?;
    let began = Instant::now();
    let labelled = options.labelled(&socket, to)?;
    loop {
        match rustix::net::connect(&socket, &labelled) {
            Ok(()) | Err(rustix::io::Errno::ISCONN) => break,
            Err(rustix::io::Errno::INTR) if began.elapsed() < deadline => {}
            Err(error) => return Err(not_connected(to.to_string(), error.into(), deadline)),
        }
    }
    let stream = TcpStream::from(socket);
    // Where nobody listens, a port of this host can connect to itself.
    if stream.local_addr().is_ok_and(|own| own == to) {
        return Err(not_connected(to.to_string(), io::ErrorKind::ConnectionRefused.into(), deadline));
    }
    Ok(stream)
}

pub(crate) fn not_connected(to: String, error: io::Error, deadline: Duration) -> SocketError {
    let (error, mend) = match error.raw_os_error() {
        Some(libc::EINPROGRESS | libc::EALREADY | libc::EAGAIN) => (
            io::Error::from(io::ErrorKind::TimedOut),
            format!("no answer within {:.1} s: is there a firewall between?", deadline.as_secs_f64()),
        ),
        Some(libc::ECONNREFUSED) => (error, "is the server running there?".to_owned()),
        Some(libc::EADDRNOTAVAIL) => (error, no_port()),
        Some(libc::EMFILE | libc::ENFILE) => (error, NO_FILE.to_owned()),
        _ => (error, String::new()),
    };
    SocketError::Connect { to, error, mend: said(&mend) }
}

const NO_FILE: &str = "this process may open no more files: raise its limit (ulimit -n, RLIMIT_NOFILE)";

/// What to do about a host without a free port.
fn no_port() -> String {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u32>().ok());
    let has = match (ends.next(), ends.next()) {
        (Some(first), Some(last)) => {
            format!("of its {} ports ({first} to {last})", last.saturating_sub(first).saturating_add(1))
        }
        _ => "of its ports".to_owned(),
    };
    format!(
        "this host has none left {has} for connections from one address to one port of another: widen \
         net.ipv4.ip_local_port_range, let the server close first, or test from further addresses or to further ports"
    )
}

/// Listens for TCP connections. What listens on `[::]` takes IPv4 too, unless [`Options::v6_only`].
///
/// # Errors
/// An option was refused, or the address is not to be had.
pub fn listen(on: SocketAddr, options: &Options, backlog: u32) -> Result<TcpListener> {
    let socket = make(on.ip(), SocketType::STREAM, options.mptcp)?;
    options.before_bind(&socket, on.ip())?;
    number(&socket, (libc::SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR"), 1, "")?;
    if options.defer_accept {
        number(&socket, (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT"), 5, "")?;
    }
    if options.fast_open {
        number(&socket, (libc::IPPROTO_TCP, libc::TCP_FASTOPEN, "TCP_FASTOPEN"), 4096, "")?;
    }
    bind(&socket, on)?;
    rustix::net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))
        .map_err(|error| SocketError::Call { what: "listening", error: error.into() })?;
    Ok(TcpListener::from(socket))
}

/// A UDP socket bound to `on`.
///
/// # Errors
/// An option was refused, or the address is not to be had.
pub fn udp(on: SocketAddr, options: &Options) -> Result<UdpSocket> {
    let socket = make(on.ip(), SocketType::DGRAM, false)?;
    options.before_bind(&socket, on.ip())?;
    bind(&socket, on)?;
    Ok(UdpSocket::from(socket))
}

/// A UDP socket towards `to`, bound as the options say.
///
/// # Errors
/// An option was refused, the address is not to be had, or there is no way there.
pub fn udp_towards(to: SocketAddr, options: &Options) -> Result<UdpSocket> {
    let socket = make(to.ip(), SocketType::DGRAM, false)?;
    options.before_bind(&socket, to.ip())?;
    if let Some(own) = options.own(to.ip()) {
        bind(&socket, own)?;
    }
    rustix::net::connect(&socket, &options.labelled(&socket, to)?)
        .map_err(|error| not_connected(to.to_string(), error.into(), Duration::ZERO))?;
    Ok(UdpSocket::from(socket))
}

/// Connects to a Unix socket (a stream). Of the options only buffers apply.
///
/// # Errors
/// Nobody listens there.
pub fn unix_connect(to: &Path, options: &Options) -> Result<UnixStream> {
    let stream = UnixStream::connect(to)
        .map_err(|error| not_connected(to.display().to_string(), error, Duration::ZERO))?;
    buffers(&stream, options)?;
    Ok(stream)
}

/// Listens on a Unix socket. One that nobody listens on any more is replaced.
///
/// # Errors
/// Somebody listens there, or it cannot be made.
pub fn unix_listen(on: &Path, options: &Options) -> Result<UnixListener> {
    let left_over = std::fs::symlink_metadata(on)
        .is_ok_and(|file| std::os::unix::fs::FileTypeExt::is_socket(&file.file_type()))
        && UnixStream::connect(on).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if left_over {
        let _ = std::fs::remove_file(on);
    }
    let listener = UnixListener::bind(on).map_err(|error| {
        let mend = if error.kind() == io::ErrorKind::AddrInUse { "there is a file of that name" } else { "" };
        SocketError::Bind { at: on.display().to_string(), error, mend: said(mend) }
    })?;
    buffers(&listener, options)?;
    Ok(listener)
}

fn buffers(socket: &impl AsFd, options: &Options) -> Result<()> {
    let only = Options {
        send_buffer: options.send_buffer,
        receive_buffer: options.receive_buffer,
        ..Options::default()
    };
    only.apply(socket, Ipv4Addr::UNSPECIFIED.into())
}

/// Waits for a connection on a listener, for so long.
///
/// # Errors
/// Accepting failed. None: nobody came.
pub fn accept(listener: &TcpListener, patience: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    if !readable(listener, patience)? {
        return Ok(None);
    }
    listener.set_nonblocking(true)?;
    match listener.accept() {
        Ok((stream, peer)) => {
            stream.set_nonblocking(false)?;
            Ok(Some((stream, peer)))
        }
        // It was reset before it was accepted, or the wait was interrupted.
        Err(error) if crate::phase::is_again(&error) || error.kind() == io::ErrorKind::ConnectionAborted => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Bytes of packets that were sent through `socket` and that this host still holds (SO_MEMINFO, SK_MEMINFO_WMEM_ALLOC).
pub(crate) fn queued(socket: &impl AsFd) -> Option<u64> {
    memory(socket, 2).map(u64::from)
}

/// Datagrams that `socket` had no room for since its beginning (SO_MEMINFO, SK_MEMINFO_DROPS): what SO_RXQ_OVFL says of them beside the next
/// datagram, without waiting for one, and of those behind the last one. `None`: the kernel does not say (before Linux 4.12).
pub fn drops(socket: &impl AsFd) -> Option<u32> {
    memory(socket, 8)
}

/// One of the numbers of SO_MEMINFO (linux/sock_diag.h).
fn memory(socket: &impl AsFd, at: usize) -> Option<u32> {
    const SO_MEMINFO: i32 = 55;
    let mut info = [0_u8; 64];
    let length = sys::get_bytes(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut info).ok()?;
    info.get(..length)?.chunks_exact(4).nth(at)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Waits until there is something to read, for so long.
///
/// # Errors
/// Polling failed.
pub fn readable(socket: &impl AsFd, patience: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = Instant::now() + patience.min(Duration::from_secs(86_400));
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_link_keeps_its_scope() {
        let at = std::net::SocketAddrV6::new("fe80::1".parse().expect("one"), 1, 0, 7).into();
        assert_eq!(at_port(at, 9).to_string(), "[fe80::1%7]:9");
        assert_eq!(canonical(at), at);
        assert_eq!(canonical("[::ffff:10.0.0.1]:5".parse().expect("one")).to_string(), "10.0.0.1:5");
        assert_eq!(lookup("[fe80::1%lo]:9").expect("an address"), lookup("[fe80::1%1]:9").expect("the same"));
        assert_eq!(lookup("[::1]:9").expect("an address")[0].to_string(), "[::1]:9");
        assert!(lookup("[fe80::1%nosuch]:9").is_err());
    }

    fn local() -> SocketAddr {
        "127.0.0.1:0".parse().expect("an address")
    }

    #[test]
    fn options_are_what_the_kernel_says_they_are() {
        let options = Options {
            send_buffer: Some(100_000),
            receive_buffer: Some(50_000),
            nodelay: true,
            congestion: Some("reno".to_owned()),
            tos: Some(0xb8),
            pacing_rate: Some(1_000_000),
            ..Options::default()
        };
        let listener = listen(local(), &options, 16).expect("listens");
        let to = listener.local_addr().expect("an address");
        let ours = connect(to, &options, Duration::from_secs(5)).expect("connects");
        let (theirs, _) = accept(&listener, Duration::from_secs(5)).expect("accepts").expect("a connection");
        for actual in [Actual::of(&ours), Actual::of(&theirs)] {
            assert_eq!(actual.send_buffer, Some(200_000));
            assert_eq!(actual.receive_buffer, Some(100_000));
            assert_eq!(actual.congestion.as_deref(), Some("reno"));
            assert_eq!(actual.nodelay, Some(true));
        }
        assert_eq!(sys::get_int(&ours, libc::IPPROTO_IP, libc::IP_TOS).expect("TOS"), 0xb8);
    }

    #[test]
    fn a_refused_option_is_named_with_the_mend() {
        let options = Options { congestion: Some("nosuch".to_owned()), ..Options::default() };
        let said = listen(local(), &options, 1).expect_err("no such").to_string();
        assert!(said.starts_with("TCP_CONGESTION nosuch: ") && said.contains("this host has "), "{said}");
        let options = Options { device: Some("nosuch0".to_owned()), ..Options::default() };
        assert!(
            udp(local(), &options).expect_err("no such").to_string().starts_with("SO_BINDTODEVICE nosuch0")
        );
    }

    #[test]
    fn who_does_not_listen_refuses_and_who_does_not_answer_is_given_up() {
        let free = TcpListener::bind(local()).expect("listens").local_addr().expect("an address");
        let said =
            connect(free, &Options::default(), Duration::from_secs(5)).expect_err("refused").to_string();
        assert!(said.contains("is the server running there?"), "{said}");
        // A listener whose queue is full does not answer.
        let full = listen(local(), &Options::default(), 0).expect("listens");
        let to = full.local_addr().expect("an address");
        let mut held = Vec::new();
        let error = loop {
            match connect(to, &Options::default(), Duration::from_millis(300)) {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
            assert!(held.len() < 100, "its queue is never full");
        };
        assert!(error.to_string().contains("no answer within 0.3 s"), "{error}");
    }

    #[test]
    fn a_flow_label_is_what_the_kernel_sends_with() {
        let listener = TcpListener::bind("[::1]:0").expect("listens");
        let to = listener.local_addr().expect("an address");
        let options = Options { flow_label: Some(0x12345), ..Options::default() };
        let stream = connect(to, &options, Duration::from_secs(5)).expect("connects");
        let socket = udp_towards(to, &options).expect("a socket");
        const IPV6_FLOWLABEL_MGR: i32 = 32;
        let label = |fd: &dyn Fn(&mut [u8]) -> io::Result<usize>| {
            let mut bytes = [0; 32];
            assert_eq!(fd(&mut bytes).expect("asked"), 32);
            u32::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19]])
        };
        let get = |bytes: &mut [u8]| sys::get_bytes(&stream, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, bytes);
        assert_eq!(label(&get), 0x12345);
        let get = |bytes: &mut [u8]| sys::get_bytes(&socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, bytes);
        assert_eq!(label(&get), 0x12345);
        // Of IPv4 there is none.
        let four = TcpListener::bind("127.0.0.1:0").expect("listens");
        connect(four.local_addr().expect("an address"), &options, Duration::from_secs(5)).expect("connects");
    }
}
