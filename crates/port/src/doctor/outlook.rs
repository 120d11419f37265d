//! The rates to expect from each engine, and why.
//!
//! The figures are those of the reference machine (README, "Figures"): 64-byte frames from one core over a veth
//! pair whose receiver drops in native XDP. Where live frames can be tried, this machine's time for one, which
//! was just measured, scales them; a link's line rate caps them.

use rustix::io::Errno;
use serde::Serialize;

use super::device::Device;
use super::machine::Machine;

/// Million frames a second on the reference machine.
const XDP: f64 = 21.0;
const AF_XDP_COPY: f64 = 2.3;
const PACKET: f64 = 1.7;
/// Nanoseconds to make and drop a live frame there.
const REFERENCE_FRAME_NS: f64 = 20.0;

/// What to expect of one engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// Its name: `xdp`, `afxdp`, ...
    pub engine: &'static str,
    /// 64-byte frames a second from one core; `None` if the engine cannot run here.
    pub frames_per_second: Option<f64>,
    /// Why so fast, or why not at all.
    pub why: String,
}

pub fn outlook(machine: &Machine, device: &Device) -> Vec<Outlook> {
    let scale = match machine.live_frame_ns {
        Ok(ns) if ns > 0 => (REFERENCE_FRAME_NS / f64::from(ns)).clamp(0.05, 2.0),
        _ => 1.0,
    };
    let line = device.line_rate();
    let outlook = |engine, frames_per_second, why: String| Outlook { engine, frames_per_second, why };
    let expect = |engine, mpps: f64, why: &str| {
        let frames = mpps * 1e6 * scale;
        match line {
            Some(line) if line < frames => {
                outlook(engine, Some(line), format!("{why}; the link is the limit"))
            }
            _ => outlook(engine, Some(frames), why.to_owned()),
        }
    };
    let cannot = |engine, why: String| outlook(engine, None, why);
    let down = (!device.interface.up || !device.interface.carrier)
        .then_some("the interface is down or has no carrier");

    let xdp = match (down, machine.live_frame_ns, device.features) {
        (Some(down), ..) => cannot("xdp", down.to_owned()),
        (_, Err(Errno::INVAL), _) => {
            cannot("xdp", "this kernel knows no XDP live frames (5.18 and newer do)".to_owned())
        }
        (_, Err(errno), _) => cannot("xdp", format!("no XDP live frames: {}", reason(errno))),
        (.., Some(features)) if !features.native => cannot("xdp", "the driver has no native XDP".to_owned()),
        (.., Some(features)) if !features.transmit && device.is_veth() => {
            expect("xdp", XDP, "live frames, once the peer has an XDP program (see XDP transmit)")
        }
        (.., Some(features)) if features.transmit => {
            expect("xdp", XDP, "live frames, made in the driver's own context")
        }
        _ => expect("xdp", XDP, "live frames, if the driver sends XDP frames once a program is attached"),
    };
    let afxdp = match (down, machine.xdp_socket, device.features) {
        (Some(down), ..) => cannot("afxdp", down.to_owned()),
        (_, Err(errno), _) => cannot("afxdp", format!("no AF_XDP sockets: {}", reason(errno))),
        (.., Some(features)) if features.zero_copy => {
            expect("afxdp", AF_XDP_COPY, "at least; the driver's zero-copy mode is several times as fast")
        }
        _ => expect("afxdp", AF_XDP_COPY, "copies each frame into a socket buffer"),
    };
    let packet = match (down, machine.packet_socket) {
        (Some(down), _) => cannot("packet", down.to_owned()),
        (_, Err(errno)) => cannot("packet", format!("no packet sockets: {}", reason(errno))),
        _ => expect("packet", PACKET, "a socket buffer and a copy for each frame; works everywhere"),
    };
    vec![xdp, afxdp, packet]
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::PERM | Errno::ACCESS => "not permitted, try sudo".to_owned(),
        errno => errno.to_string(),
    }
}
