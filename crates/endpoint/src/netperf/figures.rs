//! What a test came to, as netperf has it: both sides' counts, rates in the unit asked for, service demand.
//!
//! A number that is not known is -1, as netperf prints it.

use super::omni::Cpu;
use super::plan::Transport;

/// What a side's sockets and buffers were, and what it counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// SO_SNDBUF: asked for (-1: the default), at the beginning, at the end.
    pub send_buffer: [i32; 3],
    /// SO_RCVBUF, the same.
    pub recv_buffer: [i32; 3],
    /// Bytes of each send.
    pub send_size: i32,
    /// Bytes of each receive.
    pub recv_size: i32,
    /// Buffers in turn: for sends, for receives.
    pub width: [i32; 2],
    /// Alignment of buffers: for sends, for receives.
    pub align: [i32; 2],
    /// Offset from it.
    pub offset: [i32; 2],
    /// Calls that sent.
    pub send_calls: u64,
    /// Calls that received.
    pub recv_calls: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// CPU use, if it was measured.
    pub cpu: Option<Cpu>,
    /// CPU time for each KB or transaction, in µs; -1: not measured.
    pub service_demand: f64,
    /// The processor asked for, -1: any.
    pub cpu_bind: i32,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: bool,
    /// Segments sent again, -1: not known.
    pub retransmits: i32,
    /// The congestion control.
    pub congestion: String,
    /// SO_PRIORITY, -1: as it was.
    pub priority: i32,
    /// IP_TOS, -1: as it was.
    pub tos: i32,
    /// The file that buffers were filled from.
    pub fill_file: String,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            send_buffer: [-1; 3],
            recv_buffer: [-1; 3],
            send_size: -1,
            recv_size: -1,
            width: [0; 2],
            align: [8; 2],
            offset: [0; 2],
            send_calls: 0,
            recv_calls: 0,
            bytes_sent: 0,
            bytes_received: 0,
            cpu: None,
            service_demand: -1.0,
            cpu_bind: -1,
            nodelay: false,
            cork: false,
            retransmits: -1,
            congestion: String::new(),
            priority: -1,
            tos: -1,
            fill_file: String::new(),
        }
    }
}

impl Side {
    /// CPU use in percent, -1: not measured.
    pub fn util(&self) -> f64 {
        self.cpu.map_or(-1.0, |cpu| cpu.util.into())
    }

    /// The letter of how it was measured.
    pub fn method(&self) -> char {
        self.cpu.map_or('U', |cpu| cpu.letter())
    }
}

/// What is done, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It sends.
    Send,
    /// It receives.
    Receive,
    /// Requests and responses.
    Transact,
    /// The same, with a connection for each.
    TransactEach,
    /// Connections opened and closed.
    ConnectEach,
}

impl Flow {
    /// Are transactions counted?
    pub fn is_transactions(self) -> bool {
        !matches!(self, Flow::Send | Flow::Receive)
    }

    /// Is there a connection for each?
    pub fn is_each(self) -> bool {
        matches!(self, Flow::TransactEach | Flow::ConnectEach)
    }

    /// netperf's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Flow::Send => "Send",
            Flow::Receive => "Receive",
            Flow::Transact => "Send|Recv",
            Flow::TransactEach => "Connect|Send|Recv",
            Flow::ConnectEach => "Connection",
        }
    }
}

/// The unit of rates, by netperf's letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 2^30 bytes.
    GBytes,
    /// 2^20 bytes.
    MBytes,
    /// 2^10 bytes.
    KBytes,
    /// 10^9 bits.
    Gigabits,
    /// 10^6 bits.
    Megabits,
    /// 10^3 bits.
    Kilobits,
    /// Transactions.
    Transactions,
}

impl Unit {
    /// By its letter.
    pub fn of(letter: char) -> Option<Unit> {
        Some(match letter {
            'G' => Unit::GBytes,
            'M' => Unit::MBytes,
            'K' => Unit::KBytes,
            'g' => Unit::Gigabits,
            'm' => Unit::Megabits,
            'k' => Unit::Kilobits,
            'x' => Unit::Transactions,
            _ => return None,
        })
    }

    /// netperf's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Unit::GBytes => "GBytes",
            Unit::MBytes => "MBytes",
            Unit::KBytes => "KBytes",
            Unit::Gigabits => "10^9bits",
            Unit::Megabits => "10^6bits",
            Unit::Kilobits => "10^3bits",
            Unit::Transactions => "Trans",
        }
    }

    /// `amount` (bytes, or transactions) in `seconds`.
    pub fn rate(self, amount: f64, seconds: f64) -> f64 {
        let divisor = match self {
            Unit::GBytes => 1_073_741_824.0,
            Unit::MBytes => 1_048_576.0,
            Unit::KBytes => 1024.0,
            Unit::Gigabits => 1e9 / 8.0,
            Unit::Megabits => 1e6 / 8.0,
            Unit::Kilobits => 1e3 / 8.0,
            Unit::Transactions => 1.0,
        };
        if seconds > 0.0 { amount / divisor / seconds } else { 0.0 }
    }
}

/// How long transactions took, in µs; -1: none was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// The shortest.
    pub min: i64,
    /// The longest.
    pub max: i64,
    /// Median, 90th and 99th percentile.
    pub percentiles: [i64; 3],
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { min: -1, max: -1, percentiles: [-1; 3], mean: -1.0, stddev: -1.0 }
    }
}

/// What confidence was asked for and reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// In percent; 0: none was asked for.
    pub level: u32,
    /// The whole width asked for, as a fraction; negative: none was.
    pub interval: f64,
    /// Iterations run.
    pub iterations: u32,
    /// Width reached in percent: result, local and remote CPU use; -1: not computed.
    pub reached: [f64; 3],
}

impl Default for Confidence {
    fn default() -> Confidence {
        Confidence { level: 0, interval: -1.0, iterations: 1, reached: [-1.0; 3] }
    }
}

/// A test and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// What was done.
    pub flow: Flow,
    /// Over what.
    pub transport: Transport,
    /// The unit of `throughput`.
    pub unit: Unit,
    /// s.
    pub elapsed: f64,
    /// In `unit`.
    pub throughput: f64,
    /// Transactions a second.
    pub transaction_rate: f64,
    /// µs a transaction, from the rate; -1: none.
    pub rt_latency: f64,
    /// Requests in flight beside the first.
    pub burst: u32,
    /// Bytes of a request, -1: none.
    pub request_size: i32,
    /// Bytes of a response, -1: none.
    pub response_size: i32,
    /// The connection's, -1: not known.
    pub mss: i32,
    /// Sends that failed on this side.
    pub failed_sends: u64,
    /// This side.
    pub local: Side,
    /// The server's.
    pub remote: Side,
    /// If transactions were timed.
    pub latency: Latency,
    /// Of repeated tests.
    pub confidence: Confidence,
    /// Where from and to, as typed or resolved.
    pub source: Place,
    /// As above.
    pub destination: Place,
    /// The result's name.
    pub uuid: String,
    /// The user's mark.
    pub brand: String,
    /// What was typed.
    pub command_line: String,
}

/// An address for data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A port, 0: any.
    pub port: String,
    /// A name or an address.
    pub host: String,
    /// AF_INET or AF_INET6, or 0 if none was given.
    pub family: u32,
}

impl Figures {
    /// What a rate of bytes is given in where `unit` is transactions.
    pub fn byte_unit(&self) -> Unit {
        if self.unit == Unit::Transactions { Unit::Megabits } else { self.unit }
    }

    /// A rate of bytes.
    pub fn byte_rate(&self, bytes: u64) -> f64 {
        self.byte_unit().rate(bytes as f64, self.elapsed)
    }
}

/// CPU time in µs for each KB (or transaction): of `util` percent of `cpus` processors, at `amount` bytes (or transactions) in
/// `seconds`.
pub fn service_demand(util: f64, cpus: i32, amount: f64, seconds: f64, unit: Unit) -> f64 {
    let amount = if unit == Unit::Transactions { amount } else { amount / 1024.0 };
    if amount > 0.0 { util / 100.0 * f64::from(cpus) * seconds * 1e6 / amount } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_demand_is_cpu_time_for_each_kilobyte_or_transaction() {
        // Half of two processors for 2 s, that is 2 s of CPU time, for 1 MiB; and for 1000 transactions.
        let bytes = service_demand(50.0, 2, 1_048_576.0, 2.0, Unit::Megabits);
        assert!((bytes - 2e6 / 1024.0).abs() < 1e-6, "{bytes}");
        assert!((service_demand(50.0, 2, 1000.0, 2.0, Unit::Transactions) - 2000.0).abs() < 1e-6);
        assert!(service_demand(50.0, 2, 0.0, 2.0, Unit::Megabits) < 0.0);
    }

    #[test]
    fn small_letters_are_bits_of_ten_and_large_ones_bytes_of_two() {
        let of = |letter| Unit::of(letter).expect("a unit").rate(1_073_741_824.0, 1.0);
        assert_eq!([of('G'), of('M'), of('K'), of('x')], [1.0, 1024.0, 1_048_576.0, 1_073_741_824.0]);
        assert_eq!((of('m') * 1e6).round(), 1_073_741_824.0 * 8.0);
        assert!(Unit::of('q').is_none());
    }
}
