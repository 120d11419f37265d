//! The text of files in /proc/net as names and numbers. No I/O.
//!
//! What cannot be read is left out: a kernel that prints another line more is no reason to know nothing.

use crate::kind::{Kind, kind};
use std::collections::BTreeMap;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub counters: BTreeMap<String, u64>,
    pub gauges: BTreeMap<String, i64>,
}

impl Read {
    /// A number by its name.
    pub fn put(&mut self, name: String, number: &str) {
        match kind(&name) {
            Kind::Counter => {
                if let Ok(value) = number.parse() {
                    self.counters.insert(name, value);
                }
            }
            Kind::Gauge => {
                if let Ok(value) = number.parse() {
                    self.gauges.insert(name, value);
                }
            }
        }
    }

    /// `snmp` and `netstat`: a line of names, and one of numbers, that begin with the same word.
    pub fn pairs(&mut self, text: &str) {
        let mut lines = text.lines();
        while let Some(names) = lines.next() {
            let Some((group, names)) = names.split_once(':') else { continue };
            let Some(numbers) = lines.next().and_then(|line| line.strip_prefix(group)?.strip_prefix(':'))
            else {
                continue;
            };
            for (name, number) in names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace()) {
                self.put(format!("{group}.{name}"), number);
            }
        }
    }

    /// `snmp6`: a name and a number on each line.
    pub fn names(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
            let group =
                ["Ip6", "Icmp6", "UdpLite6", "Udp6"].into_iter().find(|group| name.starts_with(group));
            let Some(group) = group else { continue };
            self.put(format!("{group}.{}", &name[group.len()..]), number);
        }
    }

    /// `dev`: a line for each interface.
    pub fn interfaces(&mut self, text: &str) {
        const COLUMNS: [&str; 16] = [
            "rx_bytes",
            "rx_packets",
            "rx_errors",
            "rx_dropped",
            "rx_fifo_errors",
            "rx_frame_errors",
            "rx_compressed",
            "rx_multicast",
            "tx_bytes",
            "tx_packets",
            "tx_errors",
            "tx_dropped",
            "tx_fifo_errors",
            "tx_collisions",
            "tx_carrier_errors",
            "tx_compressed",
        ];
        for line in text.lines().skip(2) {
            // A name may have colons (old aliases); the numbers have none.
            let Some((name, numbers)) = line.rsplit_once(':') else { continue };
            for (column, number) in COLUMNS.iter().zip(numbers.split_ascii_whitespace()) {
                self.put(format!("if.{}.{column}", name.trim()), number);
            }
        }
    }

    /// `sockstat` and `sockstat6`: `TCP: inuse 5 orphan 0`.
    pub fn sockets(&mut self, text: &str) {
        for line in text.lines() {
            let Some((group, rest)) = line.split_once(':') else { continue };
            let mut words = rest.split_ascii_whitespace();
            while let (Some(name), Some(number)) = (words.next(), words.next()) {
                self.put(format!("sockstat.{group}.{name}"), number);
            }
        }
    }

    /// `softnet_stat`: a line of hexadecimal numbers for each CPU (net/core/net-procfs.c). Since Linux 5.10 a column names the
    /// CPU; before, those that are offline are not counted.
    pub fn softnet(&mut self, text: &str) {
        const COLUMNS: [(usize, &str); 8] = [
            (0, "processed"),
            (1, "dropped"),
            (2, "time_squeeze"),
            (9, "rps"),
            (10, "flow_limit"),
            (11, "backlog"),
            (13, "input_queue"),
            (14, "process_queue"),
        ];
        for (line, text) in text.lines().enumerate() {
            let numbers: Vec<Option<u32>> =
                text.split_ascii_whitespace().map(|word| u32::from_str_radix(word, 16).ok()).collect();
            let number = |column: usize| numbers.get(column).copied().flatten();
            let cpu = number(12).map_or(line, |cpu| cpu as usize);
            for (column, name) in COLUMNS {
                if let Some(number) = number(column) {
                    self.put(format!("softnet.cpu{cpu}.{name}"), &number.to_string());
                }
            }
        }
    }

    /// `udp` and `udp6`: what each socket dropped. Those that dropped nothing are left out, so that a host with many sockets
    /// has no long list; of more than `MOST` none is told.
    pub fn udp_sockets(&mut self, text: &str) {
        const MOST: usize = 1000;
        let dropping = text.lines().skip(1).filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (local, inode, drops) = (words.get(1)?, words.get(9)?, *words.last()?);
            (drops != "0").then_some((format!("udp_socket.{}#{inode}.drops", address(local)?), drops))
        });
        let found: Vec<(String, &str)> = dropping.take(MOST + 1).collect();
        if found.len() <= MOST {
            found.into_iter().for_each(|(name, drops)| self.put(name, drops));
        }
    }
}

/// `0100007F:1F90` as `127.0.0.1:8080`: words in this host's order.
fn address(text: &str) -> Option<String> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    if address.len() == 8 {
        return Some(format!("{}:{port}", std::net::Ipv4Addr::from(word(0)?)));
    }
    let mut bytes = [0; 16];
    for (n, four) in bytes.chunks_exact_mut(4).enumerate() {
        four.copy_from_slice(&word(n * 8)?);
    }
    Some(format!("[{}]:{port}", std::net::Ipv6Addr::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_by_name_and_gauges_keep_their_sign() {
        let mut read = Read::default();
        read.pairs(
            "Tcp: RtoMin MaxConn CurrEstab OutSegs\nTcp: 200 -1 7 18446744073709551615\nUdp: NoPorts\nUdp: 3\nodd line\n",
        );
        assert_eq!(read.counters["Tcp.OutSegs"], u64::MAX);
        assert_eq!(read.counters["Udp.NoPorts"], 3);
        assert_eq!(read.gauges["Tcp.MaxConn"], -1);
        assert_eq!(read.gauges["Tcp.CurrEstab"], 7);
        assert_eq!(read.counters.len() + read.gauges.len(), 5);
    }

    #[test]
    fn names_of_ip6_are_cut_at_their_group() {
        let mut read = Read::default();
        read.names("Ip6InReceives                   \t12\nUdpLite6NoPorts 1\nUdp6NoPorts 2\nodd\n");
        let all: Vec<_> = read.counters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(all, [("Ip6.InReceives", 12), ("Udp6.NoPorts", 2), ("UdpLite6.NoPorts", 1)]);
    }

    #[test]
    fn interfaces_have_sixteen_counters_each() {
        let mut read = Read::default();
        read.interfaces(
            "Inter-|   Receive  |  Transmit\n face |bytes    packets errs\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n    lo:0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        );
        assert_eq!(
            (read.counters["if.eth0.rx_dropped"], read.counters["if.eth0.tx_carrier_errors"]),
            (4, 15)
        );
        assert_eq!(read.counters.len(), 32);
    }

    #[test]
    fn a_cpus_line_is_hexadecimal_and_names_its_cpu() {
        let mut read = Read::default();
        read.softnet(
            "0000000a 00000001 000000ff 0 0 0 0 0 0 00000002 00000003 00000004 00000005 00000006 00000007\n",
        );
        assert_eq!(read.counters["softnet.cpu5.time_squeeze"], 255);
        assert_eq!(read.gauges["softnet.cpu5.process_queue"], 7);
        let mut older = Read::default();
        older.softnet("1 2 3 0 0 0 0 0 0\n1 4 3 0 0 0 0 0 0\n");
        assert_eq!(older.counters["softnet.cpu1.dropped"], 4);
    }

    #[test]
    fn a_udp_socket_that_dropped_datagrams_is_named_by_its_address() {
        let mut read = Read::default();
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
        let line = |local: &str, drops: u32| {
            format!(
                "  1: {local} 00000000:0000 07 00000000:00000000 00:00000000 00000000  0  0 4711 2 0 {drops}\n"
            )
        };
        let v6 = "00000000000000000000000001000000:0035";
        read.udp_sockets(
            &(head.to_owned() + &line("0100007F:1F90", 9) + &line("0100007F:1F91", 0) + &line(v6, 2)),
        );
        let names: Vec<_> = read.counters.keys().collect();
        assert_eq!(names, ["udp_socket.127.0.0.1:8080#4711.drops", "udp_socket.[::1]:53#4711.drops"]);
    }
}
