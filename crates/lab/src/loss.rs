//! Loses frames on arrival, every so many: one rule of nftables at an interface's ingress hook, over netlink.
//!
//! The rule counts what it lost: `ip netns exec dut nft list ruleset` inside the lab shows it.

use port::netlink::{Attributes, DUMP, Message, REQUEST, Socket};

use crate::nft::{
    BATCH_BEGIN, BATCH_END, GET_RULE, HEADER, NEW_CHAIN, NEW_RULE, NEW_TABLE, NFTABLES, counted, drop_it,
    expression, header, number, tally,
};
use crate::{Host, LabError};

const FAMILY_NETDEV: u8 = 5;
const HOOK_INGRESS: u32 = 0;
const REGISTER: u32 = 1;
const LESS_THAN: u32 = 2;
const INCREMENTAL: u32 = 0;
const TO_NETWORK_ORDER: u32 = 1;

/// Makes what arrives at `port` lose `frames` of each `of`.
pub fn lose(port: &Host, frames: u32, of: u32) -> Result<(), LabError> {
    let name = port.interface;
    let plain = libc::NLM_F_REQUEST as u16;
    let create = plain | libc::NLM_F_CREATE as u16;
    let end = |kind| Message::new(kind, plain).fixed(&header(0, NFTABLES));
    let new = |what: u16, flags| Message::new(NFTABLES << 8 | what, flags).fixed(&header(FAMILY_NETDEV, 0));
    let table = new(NEW_TABLE, create).attr_str(1, name);
    let chain = new(NEW_CHAIN, create)
        .attr_str(1, name)
        .attr_str(3, "arrives")
        .nest(4, |hook| number(number(hook, 1, HOOK_INGRESS), 2, 0).attr_str(3, name))
        .attr_str(7, "filter");
    let rule =
        new(NEW_RULE, create | REQUEST).attr_str(1, name).attr_str(2, "arrives").nest(4, |expressions| {
            let counted = expression(expressions, "numgen", |data| {
                number(number(number(data, 1, REGISTER), 2, of), 3, INCREMENTAL)
            });
            // The generator counts in the machine's byte order, comparing goes byte by byte.
            let ordered = expression(counted, "byteorder", |data| {
                [REGISTER, REGISTER, TO_NETWORK_ORDER, 4, 4]
                    .into_iter()
                    .zip(1..)
                    .fold(data, |data, (value, kind)| number(data, kind, value))
            });
            let compared = expression(ordered, "cmp", |data| {
                number(number(data, 1, REGISTER), 2, LESS_THAN).nest(3, |value| number(value, 1, frames))
            });
            drop_it(tally(compared))
        });
    let failed = |source| LabError::Netlink { doing: format!("make {name} lose frames (nftables)"), source };
    let mut socket = port.namespace.run_in(Socket::netfilter)?.map_err(failed)?;
    socket.batch(vec![end(BATCH_BEGIN), table, chain], rule, end(BATCH_END)).map_err(failed)
}

/// Frames that the rule at `port` has lost; `None` where there is none.
///
/// # Errors
/// That the kernel does not answer.
pub fn lost_by_rule(port: &Host) -> Result<Option<u64>, LabError> {
    let name = port.interface;
    let failed = |source| LabError::Netlink { doing: format!("read what {name} lost (nftables)"), source };
    let mut socket = port.namespace.run_in(Socket::netfilter)?.map_err(failed)?;
    let ask = Message::new(NFTABLES << 8 | GET_RULE, DUMP).fixed(&header(FAMILY_NETDEV, 0)).attr_str(1, name);
    let rules = socket.request(ask).map_err(failed)?;
    Ok(rules.iter().find_map(|rule| tallied(rule, name)))
}

/// What the counter of a rule of this table says.
fn tallied(rule: &[u8], table: &str) -> Option<u64> {
    let attributes = Attributes::after(rule, HEADER);
    if attributes.str(1)? != table {
        return None;
    }
    counted(attributes)
}
