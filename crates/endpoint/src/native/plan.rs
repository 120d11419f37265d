//! What a test is, as both ends have to know it.

use super::message::Limits;
use serde::{Deserialize, Serialize};

/// Who sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// The client.
    #[default]
    Client,
    /// The server.
    Server,
}

/// What is done over each flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Work {
    /// Bytes, or datagrams, in one direction.
    Stream {
        /// Who sends.
        from: From,
    },
    /// Requests and responses.
    Exchange,
    /// The same, each over a connection of its own.
    Each,
    /// Connections that are opened, and closed by the server at once, or held.
    Open,
}

/// Bytes of a message, a request or a response, at most.
pub const MOST_BYTES: u64 = 64 << 20;
/// Bytes of a datagram: its key, number and time, and what UDP over IPv4 has room for.
const DATAGRAM: std::ops::RangeInclusive<u64> = 24..=65_507;
/// Datagrams of one call, at most; and where the kernel cuts a buffer into them (UDP_MAX_SEGMENTS of the oldest kernels that can).
const MOST_AT_ONCE: [u64; 2] = [256, 64];
/// What a receiving end of a stream asks for at least.
const RECEIVES: u64 = 128 << 10;
/// Up to so many connections of a test have a thread and buffers each; of more, few threads with a buffer each drive all.
pub const FEW: u32 = 64;
/// Flows of datagrams have a thread each, whatever their number: at most so many.
const MOST_OF_DATAGRAMS: u32 = 1024;
/// What the server keeps for a connection that has no thread, in bytes: some hundred, and what its allocator adds.
const SMALL: u64 = 1024;

/// What a test is. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is done over each flow.
    pub work: Work,
    /// By datagrams (UDP).
    #[serde(default)]
    pub datagrams: bool,
    /// Flows: connections.
    pub flows: u32,
    /// How long it is to last, with the warm-up, in ns. The server ends it by itself some time later.
    pub duration_ns: u64,
    /// What comes before is not measured, in ns.
    #[serde(default)]
    pub warm_up_ns: u64,
    /// What the server has to know of a stream: a message, or a datagram.
    #[serde(default)]
    pub size: u64,
    /// A request.
    #[serde(default)]
    pub request: u64,
    /// A response.
    #[serde(default)]
    pub response: u64,
    /// Of connections that are opened: so many are held open. 0: the server closes each at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hold: u64,
    /// How often the server says how it stands, in ns.
    #[serde(default)]
    pub interval_ns: u64,
    /// What the server's end is like.
    #[serde(default)]
    pub end: End,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What the server's end is like. What is left out is as the kernel has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// SO_SNDBUF.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF.
    pub receive_buffer: Option<u32>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: bool,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
    /// SO_MAX_PACING_RATE, bytes per second.
    pub pacing_rate: Option<u64>,
    /// IP_TOS.
    pub tos: Option<u8>,
    /// SO_BUSY_POLL, in us.
    pub busy_poll: Option<u32>,
    /// How it sends: `write`, `sendfile`, `splice`, `zerocopy`.
    pub send_method: Option<String>,
    /// How it receives: `read`, `trunc`, `splice`.
    pub receive_method: Option<String>,
    /// Datagrams are cut by the kernel (UDP_SEGMENT).
    pub gso: bool,
    /// Datagrams are put together by the kernel (UDP_GRO).
    pub gro: bool,
    /// Datagrams at once.
    pub batch: Option<u32>,
    /// The server sends each flow at so many bits a second.
    pub bits_per_second: Option<u64>,
    /// Receives without sleeping.
    pub spin: bool,
    /// Threads are pinned to these cores, in turn.
    pub cores: Vec<u32>,
}

/// A plan that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {asked} was asked for, and the server permits {most}")]
pub struct BadPlan {
    what: &'static str,
    asked: String,
    most: String,
}

/// Cores that are named, at most.
const MOST_CORES: usize = 1024;

impl Plan {
    /// Connections that the server has open at once, at most.
    pub fn connections(&self) -> u64 {
        u64::from(self.flows).saturating_add(self.hold)
    }

    /// Bytes of buffers that the server's end takes.
    pub fn memory(&self) -> u64 {
        // What a flow holds: a message, a request and a response. Datagrams are taken by batches.
        let one = match self.datagrams {
            true => 4 << 20,
            false => self.size.max(RECEIVES).saturating_add(self.request).saturating_add(self.response),
        };
        let flows = if self.datagrams { self.flows } else { self.flows.min(FEW) };
        one.saturating_mul(u64::from(flows)).saturating_add(SMALL.saturating_mul(self.connections()))
    }

    /// Is it within the server's limits?
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self, limits: &Limits) -> Result<(), BadPlan> {
        let bad = |what, asked: u64, most: u64| {
            if asked > most {
                Err(BadPlan { what, asked: asked.to_string(), most: most.to_string() })
            } else {
                Ok(())
            }
        };
        bad("flows", u64::from(self.flows), u64::from(limits.flows))?;
        if self.flows == 0 {
            return Err(BadPlan { what: "flows", asked: "0".into(), most: "1 or more".into() });
        }
        if self.duration_ns > limits.duration_ns {
            let seconds = |ns: u64| format!("{} s", ns as f64 / 1e9);
            return Err(BadPlan {
                what: "duration",
                asked: seconds(self.duration_ns),
                most: seconds(limits.duration_ns),
            });
        }
        // What an end would make less of without a word is refused.
        let most = if self.datagrams { *DATAGRAM.end() } else { MOST_BYTES };
        bad("bytes of a message", self.size, most)?;
        bad("bytes of a request", self.request, most)?;
        bad("bytes of a response", self.response, most)?;
        if self.datagrams {
            bad("flows of datagrams", u64::from(self.flows), u64::from(MOST_OF_DATAGRAMS))?;
            if matches!(self.work, Work::Stream { .. }) && self.size < *DATAGRAM.start() {
                let (asked, most) = (self.size.to_string(), format!("{} or more", DATAGRAM.start()));
                return Err(BadPlan { what: "bytes of a datagram", asked, most });
            }
        }
        let at_once = MOST_AT_ONCE[usize::from(self.end.gso)];
        bad("datagrams at once", u64::from(self.end.batch.unwrap_or(0)), at_once)?;
        bad("connections held", self.hold, u64::from(limits.flows))?;
        bad("memory of buffers in bytes", self.memory(), limits.memory)?;
        bad("cores", self.end.cores.len() as u64, MOST_CORES as u64)?;
        if let (Some(asked), true) = (self.end.bits_per_second, limits.bits_per_second > 0) {
            bad("bits a second", asked.saturating_mul(u64::from(self.flows)), limits.bits_per_second)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        serde_json::from_str(r#"{"work": {"is": "exchange"}, "flows": 2, "duration_ns": 1000}"#)
            .expect("a plan")
    }

    #[test]
    fn what_is_beyond_the_limits_is_named() {
        let limits = Limits::default();
        assert_eq!(plan().check(&limits), Ok(()));
        let said = |plan: Plan| plan.check(&limits).expect_err("too much").to_string();
        assert_eq!(
            said(Plan { flows: 2000, ..plan() }),
            "flows: 2000 was asked for, and the server permits 1024"
        );
        assert!(said(Plan { flows: 0, ..plan() }).contains("1 or more"));
        assert!(said(Plan { duration_ns: u64::MAX, ..plan() }).starts_with("duration: "));
        let absurd = Plan { request: u64::MAX, response: u64::MAX, size: u64::MAX, ..plan() };
        assert_eq!(absurd.memory(), u64::MAX);
        assert_eq!(
            said(absurd),
            "bytes of a message: 18446744073709551615 was asked for, and the server permits 67108864"
        );
        let large = Plan { request: MOST_BYTES, response: MOST_BYTES, flows: 16, ..plan() };
        assert!(said(large).starts_with("memory"));
        let held = Plan { work: Work::Open, hold: u64::MAX, ..plan() };
        assert_eq!(held.connections(), u64::MAX);
        assert!(said(held).starts_with("connections held: "));
    }

    /// Nothing is made smaller without a word.
    #[test]
    fn what_an_end_would_make_less_of_is_refused() {
        let limits = Limits { memory: u64::MAX, ..Limits::default() };
        let stream = Work::Stream { from: From::Client };
        let datagrams = Plan { work: stream, datagrams: true, size: 1472, ..plan() };
        assert_eq!(datagrams.check(&limits), Ok(()));
        let end = |batch, gso| End { batch: Some(batch), gso, ..End::default() };
        let too_much = [
            (Plan { size: 65_508, ..datagrams.clone() }, "bytes of a message: 65508"),
            (Plan { size: 23, ..datagrams.clone() }, "bytes of a datagram: 23"),
            (Plan { end: end(257, false), ..datagrams.clone() }, "datagrams at once: 257"),
            (Plan { end: end(65, true), ..datagrams.clone() }, "datagrams at once: 65"),
            (Plan { datagrams: true, response: 70_000, ..plan() }, "bytes of a response: 70000"),
            (Plan { request: MOST_BYTES + 1, ..plan() }, "bytes of a request: 67108865"),
        ];
        for (plan, words) in too_much {
            assert!(plan.check(&limits).is_err_and(|bad| bad.to_string().starts_with(words)), "{words}");
        }
        assert_eq!(Plan { end: end(64, true), ..datagrams }.check(&limits), Ok(()));
        assert_eq!(Plan { request: MOST_BYTES, ..plan() }.check(&limits), Ok(()));
    }

    #[test]
    fn thousands_of_connections_take_no_more_memory_for_buffers_than_some() {
        let limits = Limits { flows: 20_000, memory: 64 << 20, ..Limits::default() };
        let many = Plan { flows: 10_000, size: 131_072, ..plan() };
        assert_eq!(many.check(&limits), Ok(()));
        let said =
            Plan { datagrams: true, size: 1472, ..many }.check(&limits).expect_err("too many").to_string();
        assert_eq!(said, "flows of datagrams: 10000 was asked for, and the server permits 1024");
    }
}
