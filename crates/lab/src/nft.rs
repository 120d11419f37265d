//! Rules of nftables over netlink: what `loss` and `nat` share. Numbers in these messages are in network byte order.

use port::netlink::{Attributes, Message};

/// Message types of `linux/netfilter/nfnetlink.h` and `nf_tables.h`.
pub const BATCH_BEGIN: u16 = 0x10;
pub const BATCH_END: u16 = 0x11;
pub const NFTABLES: u16 = 10;
pub const NEW_TABLE: u16 = 0;
pub const NEW_CHAIN: u16 = 3;
pub const NEW_RULE: u16 = 6;
pub const GET_RULE: u16 = 7;
/// struct nfgenmsg.
pub const HEADER: usize = 4;

const LIST_ELEMENT: u16 = 1;
const VERDICT_REGISTER: u32 = 0;
const DROP: u32 = 0;

/// struct nfgenmsg: family, version, resource.
pub fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

pub fn number(message: Message, kind: u16, value: u32) -> Message {
    message.attr(kind, &value.to_be_bytes())
}

pub fn expression(list: Message, name: &str, fill: impl FnOnce(Message) -> Message) -> Message {
    list.nest(LIST_ELEMENT, |element| element.attr_str(1, name).nest(2, fill))
}

/// Counts the frames that come so far in a rule.
pub fn tally(list: Message) -> Message {
    expression(list, "counter", |data| data)
}

/// Drops them.
pub fn drop_it(list: Message) -> Message {
    expression(list, "immediate", |data| {
        number(data, 1, VERDICT_REGISTER).nest(2, |value| value.nest(2, |it| number(it, 1, DROP)))
    })
}

/// What a rule consists of: the name of each expression, and what it holds.
pub fn expressions(rule: Attributes<'_>) -> impl Iterator<Item = (String, Attributes<'_>)> {
    rule.nested(4).into_iter().filter_map(|(_, expression)| {
        let expression = Attributes(expression);
        Some((expression.str(1)?, expression.nested(2)))
    })
}

/// Frames that the first counter of a rule has.
pub fn counted(rule: Attributes<'_>) -> Option<u64> {
    expressions(rule).find_map(|(name, counter)| (name == "counter").then(|| counter.be_u64(2))?)
}
