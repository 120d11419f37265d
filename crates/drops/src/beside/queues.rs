//! Queueing disciplines and what they dropped: the numbers of `tc -s qdisc show`.

use port::netlink::{Attributes, DUMP, Message, NetlinkError, Socket, read_u32};
use std::collections::BTreeMap;

/// `struct tcmsg`: family, padding, interface, handle, parent, info.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
const ROOT: u32 = 0xffff_ffff;
/// Of `ingress` and `clsact`, which are no queues: filters drop there.
const INGRESS: u32 = 0xffff_fff1;

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    /// Its interface's number.
    pub ifindex: u32,
    /// `tbf`, `fq_codel`.
    pub kind: String,
    handle: u32,
    parent: u32,
}

impl Queue {
    /// `8001:`, as tc has it.
    pub fn handle(&self) -> String {
        format!("{:x}:", self.handle >> 16)
    }

    /// `root`, or the class that it is in: `1:10`.
    pub fn parent(&self) -> String {
        match self.parent {
            ROOT => "root".to_owned(),
            INGRESS => "ingress".to_owned(),
            class => format!("{:x}:{:x}", class >> 16, class & 0xffff),
        }
    }
}

/// What each has dropped, modulo 2^32.
pub type Queues = BTreeMap<Queue, u32>;

/// Reads all of a network namespace, by a socket that was opened there.
///
/// # Errors
/// That the kernel does not answer.
pub fn read(socket: &mut Socket) -> Result<Queues, NetlinkError> {
    let all = socket.request(Message::new(libc::RTM_GETQDISC, DUMP).fixed(&[0; TCMSG]))?;
    Ok(all.iter().filter_map(|message| parse(message)).collect())
}

fn parse(message: &[u8]) -> Option<(Queue, u32)> {
    let attributes = Attributes::after(message, TCMSG);
    let queue = attributes.nested(TCA_STATS2).get(TCA_STATS_QUEUE)?;
    let [ifindex, handle, parent] = [4, 8, 12].map(|at| read_u32(message, at));
    let found =
        Queue { ifindex: ifindex?, kind: attributes.str(TCA_KIND)?, handle: handle?, parent: parent? };
    // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
    Some((found, read_u32(queue, 8)?))
}

/// Those that dropped anything since.
pub fn since(now: &Queues, earlier: &Queues) -> Vec<(Queue, u64)> {
    let rise = |(queue, dropped): (&Queue, &u32)| {
        let rise = dropped.wrapping_sub(earlier.get(queue).copied().unwrap_or(0));
        (rise > 0).then(|| (queue.clone(), u64::from(rise)))
    };
    now.iter().filter_map(rise).collect()
}
