//! A connection's `TCP_INFO` (linux/tcp.h, `struct tcp_info`), read by offsets: kernels of other ages give more or less of it.

use crate::sys;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;

/// What the kernel knows of a connection. What it does not give is None. Times are in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u32>,
    /// Its mean deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar_us: Option<u32>,
    /// Least round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// Retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_us: Option<u32>,
    /// Congestion window, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<u32>,
    /// Slow start threshold, in segments. None while it is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// Bytes of payload in a segment that is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// Path MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u32>,
    /// Peer's receive window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_wnd: Option<u32>,
    /// Own receive window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcv_wnd: Option<u32>,
    /// Segments in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unacked: Option<u32>,
    /// Segments that were sent again, since the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_retrans: Option<u32>,
    /// Bytes that were sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retrans: Option<u64>,
    /// Bytes that were sent, again or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Bytes that the peer acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Bytes that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Bytes in the send buffer that were not sent once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u32>,
    /// Segments that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segs_out: Option<u32>,
    /// Segments that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segs_in: Option<u32>,
    /// Rate at which data arrives there, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_rate: Option<u64>,
    /// That rate was limited by the application, not by the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_limited: Option<bool>,
    /// Rate at which the kernel paces, bytes per second. None while it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
    /// Segments that may arrive out of order before one counts as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<u32>,
    /// Reordering events seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reord_seen: Option<u32>,
    /// Segments that arrived out of order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcv_ooopack: Option<u32>,
    /// Duplicates that the peer reported (DSACK).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack_dups: Option<u32>,
    /// Segments that arrived with a congestion mark (ECN).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u32>,
    /// Time with data to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_us: Option<u64>,
    /// Of it, the peer's window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_us: Option<u64>,
    /// Of it, the send buffer was too small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited_us: Option<u64>,
    /// Retransmission timeouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_rto: Option<u16>,
}

impl TcpInfo {
    /// From the kernel.
    ///
    /// # Errors
    /// It is no TCP socket.
    pub fn of(socket: &impl AsFd) -> io::Result<TcpInfo> {
        let mut bytes = [0_u8; 512];
        let length = sys::get_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo::parse(bytes.get(..length).unwrap_or_default()))
    }

    /// From bytes in this host's order, as many as the kernel gave.
    pub fn parse(bytes: &[u8]) -> TcpInfo {
        let u8_at = |at: usize| bytes.get(at).copied();
        let u16_at = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
        let u32_at = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let u64_at = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        TcpInfo {
            rto_us: u32_at(8),
            mss: u32_at(16),
            unacked: u32_at(24),
            pmtu: u32_at(60),
            rtt_us: u32_at(68),
            rttvar_us: u32_at(72),
            // TCP_INFINITE_SSTHRESH.
            ssthresh: u32_at(76).filter(|threshold| *threshold < 0x7fff_ffff),
            cwnd: u32_at(80),
            reordering: u32_at(88),
            total_retrans: u32_at(100),
            pacing_rate: u64_at(104).filter(|rate| *rate != u64::MAX),
            bytes_acked: u64_at(120),
            bytes_received: u64_at(128),
            segs_out: u32_at(136),
            segs_in: u32_at(140),
            notsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148).filter(|rtt| *rtt != u32::MAX),
            delivery_rate: u64_at(160),
            app_limited: u64_at(160).and(u8_at(7)).map(|bits| bits & 1 != 0),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            delivered_ce: u32_at(196),
            bytes_sent: u64_at(200),
            bytes_retrans: u64_at(208),
            dsack_dups: u32_at(216),
            reord_seen: u32_at(220),
            rcv_ooopack: u32_at(224),
            snd_wnd: u32_at(228),
            rcv_wnd: u32_at(232),
            total_rto: u16_at(240),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_kernel_does_not_give_is_left_out() {
        let mut bytes = [0_u8; 232];
        bytes[80..84].copy_from_slice(&10_u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        bytes[228..232].copy_from_slice(&65_535_u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!(
            (info.cwnd, info.ssthresh, info.snd_wnd, info.rcv_wnd),
            (Some(10), None, Some(65_535), None)
        );
        assert_eq!(TcpInfo::parse(&bytes[..104]).pacing_rate, None);
        assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
    }

    #[test]
    fn the_kernels_own_is_read() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
        let one = std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        let (_other, _) = listener.accept().expect("accepts");
        let info = TcpInfo::of(&one).expect("TCP_INFO");
        assert!(info.cwnd.is_some_and(|cwnd| cwnd > 0), "{info:?}");
        assert!(info.mss.is_some_and(|mss| mss >= 500), "{info:?}");
        assert_eq!(info.total_retrans, Some(0));
    }
}
