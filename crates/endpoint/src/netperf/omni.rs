//! The omni test's messages: what DO_OMNI asks for, what is answered, and the results.
//!
//! Decoding takes any message; whether what it says makes sense is [`super::plan`]'s question.

use super::message::{Message, kind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of the word of flags.
pub mod flag {
    /// TCP_NODELAY.
    pub const NODELAY: u32 = 1;
    /// sendfile(2) instead of send(2).
    pub const SENDFILE: u32 = 2;
    /// A connection for each transaction.
    pub const CONNECT_TEST: u32 = 4;
    /// Measure CPU use.
    pub const MEASURE_CPU: u32 = 8;
    /// Routers may be crossed; and the name of the congestion control is wanted with the results.
    pub const ROUTING_ALLOWED: u32 = 0x20;
    /// TCP Fast Open.
    pub const FASTOPEN: u32 = 0x800;
    /// The UDP socket is to be connected.
    pub const CONNECTED: u32 = 0x4000;
    /// TCP_DEFER_ACCEPT.
    pub const DEFER_ACCEPT: u32 = 0x8000;
    /// Datagrams may not be fragmented.
    pub const MTU_DISCOVER: u32 = 0x1_0000;
    /// SO_KEEPALIVE.
    pub const KEEPALIVE: u32 = 0x8000_0000;
}

/// Bits of the direction, as the server sees it.
pub mod direction {
    /// It sends.
    pub const XMIT: u32 = 2;
    /// It receives.
    pub const RECV: u32 = 4;
}

/// Families of addresses, by numbers of the protocol's own.
pub mod family {
    /// Any.
    pub const UNSPECIFIED: u32 = 0;
    /// IPv4.
    pub const INET: u32 = 4;
    /// IPv6.
    pub const INET6: u32 = 6;
}

/// Types of sockets, by numbers of the protocol's own.
pub mod socket {
    /// SOCK_STREAM.
    pub const STREAM: u32 = 1;
    /// SOCK_DGRAM.
    pub const DGRAM: u32 = 2;
}

/// IPPROTO_TCP.
pub const TCP: u32 = 6;
/// IPPROTO_UDP.
pub const UDP: u32 = 17;

/// DO_OMNI: sizes are -1 where the peer's default is to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The CPU that the server is to run on (-1: any).
    pub cpu: i32,
    /// SO_SNDBUF.
    pub send_buffer: i32,
    /// Bytes of each send.
    pub send_size: i32,
    /// Alignment of buffers.
    pub send_align: i32,
    /// From there.
    pub send_offset: i32,
    /// Buffers in turn.
    pub send_width: i32,
    /// Bytes of a request; -1 without any.
    pub request_size: i32,
    /// SO_RCVBUF.
    pub recv_buffer: i32,
    /// Bytes of each receive, of a datagram.
    pub receive_size: i32,
    /// As above.
    pub recv_align: i32,
    /// As above.
    pub recv_offset: i32,
    /// As above.
    pub recv_width: i32,
    /// Bytes of a response; -1 without any.
    pub response_size: i32,
    /// [`flag`].
    pub flags: u32,
    /// The looper's rate; no matter here.
    pub cpu_rate: f32,
    /// Seconds, or, if negative, bytes or transactions.
    pub length: i32,
    /// Copy avoidance on receive, on send.
    pub avoid: [i32; 2],
    /// Dirty and clean counts of buffers.
    pub dirty: [i32; 3],
    /// The port for data; 0: any.
    pub data_port: u32,
    /// [`family`].
    pub family: u32,
    /// [`socket`].
    pub socket: u32,
    /// IP protocol number.
    pub protocol: u32,
    /// [`direction`].
    pub direction: u32,
    /// The port of the client's UDP socket.
    pub netperf_port: u32,
    /// Sends in a burst, and µs between bursts.
    pub interval: [i32; 2],
    /// The client's address for data; zeros: none is given.
    pub netperf_ip: [u32; 4],
    /// The server's address for data; zeros: any.
    pub netserver_ip: [u32; 4],
    /// SO_PRIORITY, -1: as it is.
    pub priority: i32,
    /// IP_TOS, -1: as it is.
    pub tos: i32,
    /// The name of the congestion control; empty: as it is.
    pub congestion: String,
    /// The file that buffers are filled from; empty: none.
    pub fill_file: String,
}

const CONGESTION: (usize, usize) = (38 * 4, 16);
const FILL: (usize, usize) = (42 * 4, 32);

impl Default for Request {
    fn default() -> Request {
        Request {
            cpu: -1,
            send_buffer: -1,
            send_size: -1,
            send_align: 8,
            send_offset: 0,
            send_width: 0,
            request_size: -1,
            recv_buffer: -1,
            receive_size: -1,
            recv_align: 8,
            recv_offset: 0,
            recv_width: 0,
            response_size: -1,
            flags: 0,
            cpu_rate: 0.0,
            length: 10,
            avoid: [0; 2],
            dirty: [-1; 3],
            data_port: 0,
            family: family::INET,
            socket: socket::STREAM,
            protocol: TCP,
            direction: direction::RECV,
            netperf_port: 0,
            interval: [0; 2],
            netperf_ip: [0; 4],
            netserver_ip: [0; 4],
            priority: -1,
            tos: -1,
            congestion: String::new(),
            fill_file: String::new(),
        }
    }
}

impl Request {
    /// What a message asks for; its kind is not looked at.
    pub fn decode(m: &Message) -> Request {
        Request {
            cpu: m.second() as i32,
            send_buffer: m.signed(0),
            send_size: m.signed(1),
            send_align: m.signed(2),
            send_offset: m.signed(3),
            send_width: m.signed(4),
            request_size: m.signed(5),
            recv_buffer: m.signed(6),
            receive_size: m.signed(7),
            recv_align: m.signed(8),
            recv_offset: m.signed(9),
            recv_width: m.signed(10),
            response_size: m.signed(11),
            flags: m.word(12),
            cpu_rate: m.float(13),
            length: m.signed(14),
            avoid: [m.signed(15), m.signed(16)],
            dirty: [m.signed(17), m.signed(18), m.signed(19)],
            data_port: m.word(20),
            family: m.word(21),
            socket: m.word(22),
            protocol: m.word(23),
            direction: m.word(24),
            netperf_port: m.word(25),
            interval: [m.signed(26), m.signed(27)],
            netperf_ip: [28, 29, 30, 31].map(|n| m.word(n)),
            netserver_ip: [32, 33, 34, 35].map(|n| m.word(n)),
            priority: m.signed(36),
            tos: m.signed(37),
            congestion: m.text(CONGESTION.0, CONGESTION.1),
            fill_file: m.text(FILL.0, FILL.1),
        }
    }

    /// The message that asks for it.
    pub fn encode(&self) -> Message {
        let mut m = Message::new(kind::OMNI, self.cpu as u32);
        let words = [
            self.send_buffer,
            self.send_size,
            self.send_align,
            self.send_offset,
            self.send_width,
            self.request_size,
            self.recv_buffer,
            self.receive_size,
            self.recv_align,
            self.recv_offset,
            self.recv_width,
            self.response_size,
            self.flags as i32,
            self.cpu_rate.to_bits() as i32,
            self.length,
            self.avoid[0],
            self.avoid[1],
            self.dirty[0],
            self.dirty[1],
            self.dirty[2],
            self.data_port as i32,
            self.family as i32,
            self.socket as i32,
            self.protocol as i32,
            self.direction as i32,
            self.netperf_port as i32,
            self.interval[0],
            self.interval[1],
        ];
        for (n, word) in words.into_iter().enumerate() {
            m.set_signed(n, word);
        }
        for n in 0..4 {
            m.set(28 + n, self.netperf_ip[n]);
            m.set(32 + n, self.netserver_ip[n]);
        }
        m.set_signed(36, self.priority);
        m.set_signed(37, self.tos);
        m.set_text(CONGESTION.0, CONGESTION.1, &self.congestion);
        m.set_text(FILL.0, FILL.1, &self.fill_file);
        m
    }
}

/// An address in four words. IPv4 is in network order in the first. IPv6's words are turned round, as a little-endian host leaves
/// them: netperf converts each of them as if it was a number.
pub fn address_words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(v4) => [u32::from(v4), 0, 0, 0],
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            [96, 64, 32, 0].map(|shift| ((bits >> shift) as u32).swap_bytes())
        }
    }
}

/// The address in four words, if one is given.
pub fn address_of(words: [u32; 4], of: u32) -> Option<IpAddr> {
    if words == [0; 4] {
        return None;
    }
    let [a, b, c, d] = words;
    Some(match of {
        family::INET6 => {
            let bits =
                [a, b, c, d].iter().fold(0u128, |bits, word| bits << 32 | u128::from(word.swap_bytes()));
            Ipv6Addr::from(bits).into()
        }
        _ => Ipv4Addr::from(a).into(),
    })
}

/// OMNI_RESPONSE: what sizes became, and where data is expected.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Response {
    /// SO_RCVBUF.
    pub recv_buffer: i32,
    /// Bytes of each receive.
    pub receive_size: i32,
    /// Buffers in turn.
    pub recv_width: i32,
    /// SO_SNDBUF.
    pub send_buffer: i32,
    /// Bytes of each send.
    pub send_size: i32,
    /// Buffers in turn.
    pub send_width: i32,
    /// [`flag::NODELAY`], [`flag::MEASURE_CPU`].
    pub flags: u32,
    /// Not 0 if CPU use is measured.
    pub cpu_rate: f32,
    /// The length asked for.
    pub length: i32,
    /// The port for data.
    pub data_port: u32,
    /// SO_PRIORITY.
    pub priority: i32,
    /// IP_TOS.
    pub tos: i32,
}

impl Response {
    /// From a message.
    pub fn decode(m: &Message) -> Response {
        Response {
            recv_buffer: m.signed(0),
            receive_size: m.signed(1),
            recv_width: m.signed(2),
            send_buffer: m.signed(3),
            send_size: m.signed(4),
            send_width: m.signed(5),
            flags: m.word(6),
            cpu_rate: m.float(7),
            length: m.signed(8),
            data_port: m.word(11),
            priority: m.signed(16),
            tos: m.signed(17),
        }
    }

    /// Into a message.
    pub fn encode(&self) -> Message {
        let mut m = Message::new(kind::OMNI_RESPONSE, 0);
        let sizes = [
            self.recv_buffer,
            self.receive_size,
            self.recv_width,
            self.send_buffer,
            self.send_size,
            self.send_width,
        ];
        for (n, size) in sizes.into_iter().enumerate() {
            m.set_signed(n, size);
        }
        m.set(6, self.flags);
        m.set_float(7, self.cpu_rate);
        m.set_signed(8, self.length);
        m.set(11, self.data_port);
        m.set_signed(16, self.priority);
        m.set_signed(17, self.tos);
        m
    }
}

/// How CPU use was measured: netperf's number for /proc/stat, and for not at all.
pub const PROC_STAT: i32 = 8;

/// Letters of the methods, by number: U unknown, L looper, N Windows NT, S /proc/stat, and those of other systems.
const METHODS: &[u8] = b"UIPTLRNKSCEMO";

/// A side's CPU use, in percent of all its processors.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cpu {
    /// Not idle.
    pub util: f32,
    /// User space.
    pub user: f32,
    /// The kernel.
    pub system: f32,
    /// Waiting for disks.
    pub iowait: f32,
    /// Hard interrupts.
    pub irq: f32,
    /// Soft interrupts.
    pub softirq: f32,
    /// How many processors.
    pub count: i32,
    /// The busiest.
    pub peak_id: i32,
    /// Its use.
    pub peak: f32,
    /// How it was measured: [`PROC_STAT`], 0: not.
    pub method: i32,
}

impl Cpu {
    /// The letter of the method.
    pub fn letter(&self) -> char {
        usize::try_from(self.method)
            .ok()
            .and_then(|n| METHODS.get(n))
            .map_or('?', |letter| char::from(*letter))
    }
}

/// The results of the server's side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// Bytes received.
    pub bytes_received: u64,
    /// Calls that received.
    pub recv_calls: u32,
    /// SO_RCVBUF at the end.
    pub recv_buffer: i32,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Calls that sent.
    pub send_calls: u32,
    /// SO_SNDBUF at the end.
    pub send_buffer: i32,
    /// Sends that failed.
    pub failed_sends: u32,
    /// Transactions.
    pub transactions: u32,
    /// s.
    pub elapsed: f32,
    /// CPU use; the client computes service demand itself.
    pub cpu: Cpu,
    /// Segments sent again; -1: not known.
    pub retransmits: i32,
    /// The congestion control, if it was asked for.
    pub congestion: String,
}

/// Behind the 27 words lie six names of interface and driver, which are not used any more.
const CONGESTION_USED: (usize, usize) = (27 * 4 + 160, 16);

impl Results {
    /// From a message. Its kind is not to be looked at: servers send it in their own byte order.
    pub fn decode(m: &Message) -> Results {
        let wide = |high: usize| u64::from(m.word(high)) << 32 | u64::from(m.word(high + 1));
        Results {
            bytes_received: wide(0),
            recv_calls: m.word(2),
            recv_buffer: m.signed(3),
            bytes_sent: wide(4),
            send_calls: m.word(6),
            send_buffer: m.signed(7),
            failed_sends: m.word(8),
            transactions: m.word(9),
            elapsed: m.float(10),
            cpu: Cpu {
                util: m.float(11),
                user: m.float(12),
                system: m.float(13),
                iowait: m.float(14),
                irq: m.float(15),
                softirq: m.float(16),
                method: m.signed(18),
                count: m.signed(19),
                peak_id: m.signed(20),
                peak: m.float(21),
            },
            retransmits: m.signed(26),
            congestion: m.text(CONGESTION_USED.0, CONGESTION_USED.1),
        }
    }

    /// Into a message, with the header as netserver on a little-endian host has it.
    pub fn encode(&self) -> Message {
        let mut m = Message::new(kind::OMNI_RESPONSE.swap_bytes(), 0);
        m.set(0, (self.bytes_received >> 32) as u32);
        m.set(1, self.bytes_received as u32);
        m.set(2, self.recv_calls);
        m.set_signed(3, self.recv_buffer);
        m.set(4, (self.bytes_sent >> 32) as u32);
        m.set(5, self.bytes_sent as u32);
        m.set(6, self.send_calls);
        m.set_signed(7, self.send_buffer);
        m.set(8, self.failed_sends);
        m.set(9, self.transactions);
        m.set_float(10, self.elapsed);
        let cpu = &self.cpu;
        for (n, share) in
            [cpu.util, cpu.user, cpu.system, cpu.iowait, cpu.irq, cpu.softirq].into_iter().enumerate()
        {
            m.set_float(11 + n, share);
        }
        m.set_signed(18, cpu.method);
        m.set_signed(19, cpu.count);
        m.set_signed(20, cpu.peak_id);
        m.set_float(21, cpu.peak);
        m.set_signed(26, self.retransmits);
        m.set_text(CONGESTION_USED.0, CONGESTION_USED.1, &self.congestion);
        m
    }
}
