//! The requests of netperf built without its omni test, and of scripts of that age: one type of message for each test.
//!
//! They say less than the omni test's, so that they are read into the same [`Request`]; answers have layouts of their own.
//! All words of these messages are converted, texts are none.

use super::message::{Message, kind};
use super::omni::{self, Request, Response, Results, direction, flag};

/// Which test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// DO_TCP_STREAM.
    TcpStream,
    /// DO_TCP_MAERTS.
    TcpMaerts,
    /// DO_TCP_RR.
    TcpRr,
    /// DO_TCP_CRR.
    TcpCrr,
    /// DO_TCP_CC.
    TcpCc,
    /// DO_UDP_STREAM.
    UdpStream,
    /// DO_UDP_RR.
    UdpRr,
}

fn flags_of_cpu(word: u32) -> u32 {
    if word != 0 { flag::MEASURE_CPU } else { 0 }
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::TcpStream,
        Kind::TcpMaerts,
        Kind::TcpRr,
        Kind::TcpCrr,
        Kind::TcpCc,
        Kind::UdpStream,
        Kind::UdpRr,
    ];

    /// The number of its request; response and results have the next two.
    pub fn number(self) -> u32 {
        match self {
            Kind::TcpStream => kind::TCP_STREAM,
            Kind::TcpMaerts => kind::TCP_MAERTS,
            Kind::TcpRr => kind::TCP_RR,
            Kind::TcpCrr => kind::TCP_CRR,
            Kind::TcpCc => kind::TCP_CC,
            Kind::UdpStream => kind::UDP_STREAM,
            Kind::UdpRr => kind::UDP_RR,
        }
    }

    /// The test that a message asks for.
    pub fn of(number: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// What a message of this kind asks for, in the words of the omni test.
    pub fn decode(self, m: &Message) -> Request {
        let given = |size: i32| if size > 0 { size } else { -1 };
        let flags = |nodelay: usize, cpu: usize| {
            let bit = |word, flag| if m.word(word) != 0 { flag } else { 0 };
            bit(nodelay, flag::NODELAY) | bit(cpu, flag::MEASURE_CPU)
        };
        let base = Request { cpu: m.second() as i32, ..Request::default() };
        match self {
            Kind::TcpStream | Kind::TcpMaerts => {
                let sends = self == Kind::TcpMaerts;
                Request {
                    send_buffer: given(m.signed(0)),
                    recv_buffer: given(m.signed(1)),
                    send_size: if sends { given(m.signed(2)) } else { -1 },
                    receive_size: if sends { -1 } else { given(m.signed(2)) },
                    flags: flags(5, 6),
                    length: m.signed(8),
                    data_port: m.word(13),
                    family: m.word(14),
                    direction: if sends { direction::XMIT } else { direction::RECV },
                    ..base
                }
            }
            Kind::TcpRr | Kind::UdpRr | Kind::TcpCrr | Kind::TcpCc => {
                let datagrams = self == Kind::UdpRr;
                let each = matches!(self, Kind::TcpCrr | Kind::TcpCc);
                Request {
                    recv_buffer: given(m.signed(0)),
                    send_buffer: given(m.signed(1)),
                    request_size: m.signed(6),
                    response_size: m.signed(7),
                    flags: flags(8, 9) | if each { flag::CONNECT_TEST } else { 0 },
                    length: m.signed(11),
                    data_port: m.word(14),
                    family: m.word(15),
                    socket: if datagrams { omni::socket::DGRAM } else { omni::socket::STREAM },
                    protocol: if datagrams { omni::UDP } else { omni::TCP },
                    direction: if self == Kind::TcpCc { 0 } else { direction::XMIT | direction::RECV },
                    ..base
                }
            }
            Kind::UdpStream => Request {
                recv_buffer: given(m.signed(0)),
                receive_size: m.signed(1),
                flags: if m.word(2) != 0 { flag::CONNECTED } else { 0 } | flags_of_cpu(m.word(6)),
                length: m.signed(8),
                data_port: m.word(11),
                family: m.word(12),
                socket: omni::socket::DGRAM,
                protocol: omni::UDP,
                direction: direction::RECV,
                ..base
            },
        }
    }

    /// The test that an omni request is, where one of these can say all of it.
    pub fn saying(r: &Request) -> Option<Kind> {
        let each = r.flags & flag::CONNECT_TEST != 0;
        let both = direction::XMIT | direction::RECV;
        let unsaid = r.priority >= 0
            || r.tos >= 0
            || !r.congestion.is_empty()
            || !r.fill_file.is_empty()
            || r.netserver_ip != [0; 4]
            || r.flags & (flag::FASTOPEN | flag::DEFER_ACCEPT | flag::MTU_DISCOVER | flag::KEEPALIVE) != 0;
        match (r.protocol, r.direction, each) {
            _ if unsaid => None,
            (omni::TCP, direction::RECV, false) => Some(Kind::TcpStream),
            (omni::TCP, direction::XMIT, false) => Some(Kind::TcpMaerts),
            (omni::TCP, ways, false) if ways == both => Some(Kind::TcpRr),
            (omni::TCP, ways, true) if ways == both => Some(Kind::TcpCrr),
            (omni::TCP, 0, true) => Some(Kind::TcpCc),
            (omni::UDP, direction::RECV, false) => Some(Kind::UdpStream),
            (omni::UDP, ways, false) if ways == both => Some(Kind::UdpRr),
            _ => None,
        }
    }

    /// The message that asks for it.
    pub fn request(self, r: &Request) -> Message {
        let mut m = Message::new(self.number(), r.cpu as u32);
        let bit = |flag| i32::from(r.flags & flag != 0);
        // Sizes of messages are 0 where they are the default's, those of buffers -1.
        let size = |size: i32| size.max(0);
        let (port, family) = (r.data_port as i32, r.family as i32);
        let (nodelay, cpu) = (bit(flag::NODELAY), bit(flag::MEASURE_CPU));
        let words: &[i32] = match self {
            Kind::TcpStream | Kind::TcpMaerts => {
                let (size_of, align, offset) = match self {
                    Kind::TcpStream => (r.receive_size, r.recv_align, r.recv_offset),
                    _ => (r.send_size, r.send_align, r.send_offset),
                };
                let [dirty, clean] = [r.dirty[0], r.dirty[2]];
                &[
                    r.send_buffer,
                    r.recv_buffer,
                    size(size_of),
                    align,
                    offset,
                    nodelay,
                    cpu,
                    0,
                    r.length,
                    r.avoid[0],
                    r.avoid[1],
                    dirty,
                    clean,
                    port,
                    family,
                ]
            }
            Kind::TcpRr | Kind::UdpRr | Kind::TcpCrr | Kind::TcpCc => &[
                r.recv_buffer,
                r.send_buffer,
                r.recv_align,
                r.recv_offset,
                r.send_align,
                r.send_offset,
                r.request_size,
                r.response_size,
                nodelay,
                cpu,
                0,
                r.length,
                r.avoid[0],
                r.avoid[1],
                port,
                family,
            ],
            Kind::UdpStream => &[
                r.recv_buffer,
                r.receive_size,
                bit(flag::CONNECTED),
                r.recv_align,
                r.recv_offset,
                0,
                cpu,
                0,
                r.length,
                r.avoid[0],
                r.avoid[1],
                port,
                family,
            ],
        };
        for (n, word) in words.iter().enumerate() {
            m.set_signed(n, *word);
        }
        m
    }

    /// What a server of these tests answered to `asked`.
    pub fn decode_response(self, m: &Message, asked: &Request) -> Response {
        let base = Response { length: asked.length, receive_size: -1, send_size: -1, ..Response::default() };
        let flags = |nodelay: u32, cpu: u32| {
            let bit = |word: u32, flag| if word != 0 { flag } else { 0 };
            bit(nodelay, flag::NODELAY) | bit(cpu, flag::MEASURE_CPU)
        };
        match self {
            Kind::TcpStream | Kind::TcpMaerts => Response {
                recv_buffer: m.signed(0),
                receive_size: if self == Kind::TcpStream { m.signed(1) } else { -1 },
                send_size: if self == Kind::TcpMaerts { m.signed(1) } else { -1 },
                flags: flags(m.word(2), m.word(3)),
                send_buffer: m.signed(5),
                data_port: m.word(6),
                cpu_rate: m.float(7),
                ..base
            },
            Kind::TcpRr | Kind::UdpRr | Kind::TcpCrr | Kind::TcpCc => Response {
                recv_buffer: m.signed(0),
                flags: flags(m.word(1), m.word(2)),
                send_buffer: m.signed(4),
                data_port: m.word(5),
                cpu_rate: m.float(6),
                ..base
            },
            Kind::UdpStream => Response {
                recv_buffer: m.signed(0),
                send_buffer: m.signed(1),
                flags: flags(0, m.word(2)),
                data_port: m.word(4),
                cpu_rate: m.float(5),
                ..base
            },
        }
    }

    /// What it counted, of a test that was asked for with `asked` and answered with `answered`.
    pub fn decode_results(self, m: &Message, asked: &Request, answered: &Response) -> Results {
        let base = Results {
            recv_buffer: answered.recv_buffer,
            send_buffer: answered.send_buffer,
            retransmits: -1,
            ..Results::default()
        };
        let cpu = |util: f32, method: i32, count: i32| omni::Cpu {
            util,
            method,
            count,
            peak_id: -1,
            peak: -1.0,
            ..Default::default()
        };
        match self {
            Kind::TcpStream | Kind::TcpMaerts => {
                let bytes = f64::from_bits(u64::from(m.word(0)) << 32 | u64::from(m.word(1)));
                // A number that is none becomes 0, one that is too large the largest.
                let (bytes, calls) = (bytes as u64, m.word(2));
                let base =
                    Results { elapsed: m.float(3), cpu: cpu(m.float(4), m.signed(6), m.signed(7)), ..base };
                match self {
                    Kind::TcpStream => Results { bytes_received: bytes, recv_calls: calls, ..base },
                    _ => Results { bytes_sent: bytes, send_calls: calls, ..base },
                }
            }
            Kind::UdpStream => Results {
                recv_calls: m.word(0),
                // The number of bytes has 32 bits and turns over; that of datagrams, all of one size, does not.
                bytes_received: u64::from(m.word(0)) * u64::from(asked.receive_size.unsigned_abs()),
                elapsed: m.float(2),
                cpu: cpu(m.float(3), m.signed(4), m.signed(5)),
                ..base
            },
            _ => {
                let count = m.word(2);
                let of = |size: i32| u64::from(count) * u64::from(size.max(0).unsigned_abs());
                Results {
                    bytes_received: of(asked.request_size),
                    bytes_sent: of(asked.response_size),
                    recv_calls: m.word(1),
                    send_calls: count,
                    transactions: count,
                    elapsed: m.float(3),
                    cpu: cpu(m.float(4), m.signed(6), m.signed(7)),
                    ..base
                }
            }
        }
    }

    /// The answer in this test's layout.
    pub fn response(self, r: &Response) -> Message {
        let mut m = Message::new(self.number() + 1, 0);
        let bit = |flag| i32::from(r.flags & flag != 0);
        let (nodelay, cpu) = (bit(flag::NODELAY), bit(flag::MEASURE_CPU));
        let port = r.data_port as i32;
        let words: &[i32] = match self {
            Kind::TcpStream => &[r.recv_buffer, r.receive_size, nodelay, cpu, r.length, r.send_buffer, port],
            Kind::TcpMaerts => &[r.recv_buffer, r.send_size, nodelay, cpu, r.length, r.send_buffer, port],
            Kind::TcpRr | Kind::UdpRr | Kind::TcpCrr | Kind::TcpCc => {
                &[r.recv_buffer, nodelay, cpu, r.length, r.send_buffer, port]
            }
            Kind::UdpStream => &[r.recv_buffer, r.send_buffer, cpu, r.length, port],
        };
        for (n, word) in words.iter().enumerate() {
            m.set_signed(n, *word);
        }
        m.set_float(words.len(), r.cpu_rate);
        m
    }

    /// The results in this test's layout.
    pub fn results(self, r: &Results) -> Message {
        let mut m = Message::new(self.number() + 2, 0);
        let (util, demand) = if r.cpu.method == 0 { (-1.0, -1.0) } else { (r.cpu.util, 0.0) };
        match self {
            Kind::TcpStream | Kind::TcpMaerts => {
                let (bytes, calls) = match self {
                    Kind::TcpStream => (r.bytes_received, r.recv_calls),
                    _ => (r.bytes_sent, r.send_calls),
                };
                let bits = (bytes as f64).to_bits();
                m.set(0, (bits >> 32) as u32);
                m.set(1, bits as u32);
                m.set(2, calls);
                m.set_float(3, r.elapsed);
                m.set_float(4, util);
                m.set_float(5, demand);
                m.set_signed(6, r.cpu.method);
                m.set_signed(7, r.cpu.count);
                m.set_signed(8, r.recv_buffer);
                m.set_signed(9, r.send_buffer);
            }
            Kind::TcpRr | Kind::UdpRr | Kind::TcpCrr | Kind::TcpCc => {
                m.set(0, r.bytes_received as u32);
                m.set(1, r.recv_calls);
                m.set(2, r.transactions);
                m.set_float(3, r.elapsed);
                m.set_float(4, util);
                m.set_float(5, demand);
                m.set_signed(6, r.cpu.method);
                m.set_signed(7, r.cpu.count);
            }
            Kind::UdpStream => {
                m.set(0, r.recv_calls);
                m.set(1, r.bytes_received as u32);
                m.set_float(2, r.elapsed);
                m.set_float(3, util);
                m.set_signed(4, r.cpu.method);
                m.set_signed(5, r.cpu.count);
            }
        }
        m
    }
}
