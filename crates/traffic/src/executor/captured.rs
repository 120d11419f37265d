//! Frames of captures: copied, with what a pass over the capture changes in them. The XDP engine does the same in bytecode
//! (`xdp::compile`), and `engine::source` while it reads a capture.

use crate::program::Stream;
use crate::templates::{Addresses, low_words};
use wire::checksum::{finish, finish_udp, sum};
use wire::layers::Layers;
use wire::numbers::protocol;
use wire::signature::{self, Signature};

/// Copies template `i` and changes what its pass demands.
pub(super) fn captured(
    stream: &Stream,
    i: usize,
    pass: u64,
    buffer: &mut [u8],
    clock: &mut dyn FnMut() -> u64,
) -> u32 {
    let templates = &stream.templates;
    let bytes = templates.get(i);
    let Some(frame) = buffer.get_mut(..bytes.len()) else { return 0 };
    frame.copy_from_slice(bytes);
    if stream.unique_addresses && pass != 0 {
        let (addresses, source_is_less) = templates.addresses(i);
        spread_addresses(frame, addresses, source_is_less, pass);
    }
    if let (Some(number), Some(rank)) = (stream.signature, templates.signed_rank(i)) {
        let sequence = pass * templates.signed_per_pass() + rank;
        sign_captured(frame, Signature { stream: number, sequence, time: clock() });
    }
    bytes.len() as u32
}

/// The addresses of pass `pass`: the lesser goes down by `pass`, the greater goes up, so that both directions of a
/// conversation stay mirror images and no two passes share a flow. The arithmetic is modulo 2^32 - 1, a multiple of
/// 0xffff: the one's complement sum of both addresses stays as it was, and with it the IPv4, TCP and UDP checksums.
/// Of IPv6 addresses the low 32 bits change.
pub fn spread_addresses(frame: &mut [u8], addresses: Addresses, source_is_less: bool, pass: u64) {
    let (at, size) = match addresses {
        Addresses::None => return,
        Addresses::V4(at) => (at, 4),
        Addresses::V6(at) => (at, 16),
    };
    let Some((source, destination)) = low_words(frame, at, size) else { return };
    const M: u64 = 0xffff_ffff;
    let by = pass % M;
    let up = |word: u32| ((u64::from(word) + by) % M) as u32;
    let down = |word: u32| ((u64::from(word) + M - by) % M) as u32;
    let (source, destination) =
        if source_is_less { (down(source), up(destination)) } else { (up(source), down(destination)) };
    frame[at + size - 4..at + size].copy_from_slice(&source.to_be_bytes());
    frame[at + 2 * size - 4..at + 2 * size].copy_from_slice(&destination.to_be_bytes());
}

/// Overwrites the last 18 bytes, which are TCP or UDP payload, and corrects the checksum for what changed (RFC 1624).
pub fn sign_captured(frame: &mut [u8], signature: Signature) {
    let layers = Layers::parse(wire::LinkType::ETHERNET, frame);
    let Some(l4) = layers.l4_offset else { return };
    let (field, udp) = match layers.ip_protocol {
        Some(protocol::TCP) => (l4 + 16, false),
        Some(protocol::UDP) => (l4 + 6, true),
        _ => return,
    };
    let Some(tail) = frame.len().checked_sub(signature::LEN) else { return };
    if field + 2 > tail {
        return;
    }
    let odd = (tail - l4) % 2 == 1;
    let words = |bytes: &[u8]| if odd { sum(bytes) << 8 } else { sum(bytes) };
    let old = words(&frame[tail..]);
    let bytes = signature.to_bytes();
    frame[tail..].copy_from_slice(&bytes);
    let before = u16::from_be_bytes([frame[field], frame[field + 1]]);
    if udp && before == 0 {
        return; // The sender chose to have no checksum.
    }
    // HC' = ~(~HC + ~m + m'): ~m is taken as 0xffff times enough minus m, which is 0 modulo 0xffff.
    let partial = u64::from(!before) + (u64::from(u32::MAX) * 0xffff - old) + words(&bytes);
    let value = if udp { finish_udp(partial) } else { finish(partial) };
    frame[field..field + 2].copy_from_slice(&value.to_be_bytes());
}
