//! Established TCP connections of this network namespace, and the interfaces that they come in by.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `TCP_ESTABLISHED` (`net/tcp_states.h`) as /proc/net/tcp prints it.
const ESTABLISHED: &str = "01";

/// The tables of both families, and where the kernel says how many sockets of each are in use, by which word.
const TABLES: [(&str, &str, &str); 2] = [("tcp", "sockstat", "TCP:"), ("tcp6", "sockstat6", "TCP6:")];

/// Own and other address of each, of both families. What cannot be read is left out: a kernel without IPv6 has no second file.
///
/// The kernel looks through the connections of the whole machine for each table, by buckets (20 ms each where they are half a million),
/// and knows without looking how many sockets this namespace has. (Connections that nobody has any more, TIME-WAIT, are not among them.)
pub(super) fn established() -> Vec<[SocketAddr; 2]> {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let there = TABLES.into_iter().filter(|(_, counts, word)| in_use(&read(counts), word) != Some(0));
    there.flat_map(|(table, ..)| parse(&read(table))).collect()
}

/// `TCP: inuse 5 orphan 0 ...`; `None` where that is not told.
fn in_use(counts: &str, word: &str) -> Option<u64> {
    let told = |line: &str| {
        let mut words = line.strip_prefix(word)?.split_whitespace();
        words.find(|word| *word == "inuse")?;
        words.next()?.parse().ok()
    };
    counts.lines().find_map(told)
}

/// The table of proc_pid_net(5): in each line a number, own and other address, the state.
fn parse(table: &str) -> Vec<[SocketAddr; 2]> {
    let ends = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let ends = [address(words.next()?)?, address(words.next()?)?];
        (words.next()? == ESTABLISHED).then_some(ends)
    };
    table.lines().skip(1).filter_map(ends).collect()
}

/// `0100007F:0016`: words of 32 bits as this host reads them, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(words.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match words.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

/// The interfaces that have the own address of each connection, with how many there are and one of them. What this host says to
/// itself goes through none of them, but through its loopback.
pub(super) fn by_interface(
    connections: &[[SocketAddr; 2]],
    owned: &[(u32, IpAddr)],
) -> BTreeMap<u32, (usize, [SocketAddr; 2])> {
    let own: BTreeSet<IpAddr> = owned.iter().map(|(_, address)| *address).collect();
    let mut found = BTreeMap::new();
    for ends in
        connections.iter().filter(|[_, other]| !own.contains(&other.ip()) && !other.ip().is_loopback())
    {
        for (index, _) in owned.iter().filter(|(_, address)| *address == ends[0].ip()) {
            found.entry(*index).or_insert((0, *ends)).0 += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn established_connections_are_read_and_no_others() {
        // Each word of 32 bits as this host reads it.
        let v4 = |text: &str, port: u16| {
            let octets = text.parse::<Ipv4Addr>().unwrap().octets();
            format!("{:08X}:{port:04X}", u32::from_ne_bytes(octets))
        };
        let v6 = |text: &str, port: u16| {
            let octets = text.parse::<Ipv6Addr>().unwrap().octets();
            let words = octets.chunks_exact(4).map(|four| u32::from_ne_bytes(four.try_into().unwrap()));
            words.map(|word| format!("{word:08X}")).collect::<String>() + &format!(":{port:04X}")
        };
        let (own, other) = ("198.18.0.1", "198.18.0.2");
        let line =
            |own: String, other: String, state| format!("   0: {own} {other} {state} 00000000:00000000\n");
        let table = [
            "  sl  local_address rem_address   st tx_queue rx_queue\n".to_owned(),
            line(v4("127.0.0.1", 8080), v4("0.0.0.0", 0), "0A"),
            line(v4(own, 22), v4(other, 50_000), "01"),
            line(v4(own, 22), v4(other, 50_001), "06"),
            line(v6("::ffff:198.18.0.1", 23), v6("::ffff:198.18.0.2", 50_002), "01"),
            line(v6("fe80::1", 22), v6("fe80::2", 1024), "01"),
            "garbage\n".to_owned(),
        ]
        .concat();
        let found: Vec<String> = parse(&table).iter().map(|[own, other]| format!("{own} {other}")).collect();
        assert_eq!(
            found,
            [
                "198.18.0.1:22 198.18.0.2:50000",
                "198.18.0.1:23 198.18.0.2:50002",
                "[fe80::1]:22 [fe80::2]:1024"
            ]
        );
    }

    #[test]
    fn whether_there_are_sockets_is_told_without_a_look_at_each() {
        let counts = "sockets: used 7\nTCP: inuse 2 orphan 0 tw 9 alloc 4 mem 0\nUDP: inuse 0 mem 0\n";
        assert_eq!([in_use(counts, "TCP:"), in_use(counts, "UDP:")], [Some(2), Some(0)]);
        // Where it is not told, the table is read.
        assert_eq!(
            [in_use(counts, "TCP6:"), in_use("", "TCP:"), in_use("TCP: alloc 4\n", "TCP:")],
            [None; 3]
        );
    }

    #[test]
    fn a_connection_of_either_family_is_among_the_established_ones() {
        use std::net::{TcpListener, TcpStream};
        for local in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let listener = TcpListener::bind(local).unwrap();
            // Over IPv4 to a socket of IPv6, too, which is in the table of the other family.
            let to = match listener.local_addr().unwrap() {
                all if all.ip().is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, all.port())),
                one => one,
            };
            let stream = TcpStream::connect(to).unwrap();
            let taken = listener.accept().unwrap();
            let found = established();
            for ends in [[stream.local_addr().unwrap(), to], [to, stream.local_addr().unwrap()]] {
                assert!(found.contains(&ends), "{local}: {ends:?} is not among {found:?}");
            }
            drop(taken);
        }
    }

    #[test]
    fn what_a_host_says_to_itself_goes_through_no_interface_of_its_addresses() {
        let ends = |own: &str, other: &str| [own.parse().unwrap(), other.parse().unwrap()];
        let owned = [
            (1, "127.0.0.1".parse().unwrap()),
            (2, "10.0.0.1".parse().unwrap()),
            (3, "10.0.1.1".parse().unwrap()),
        ];
        let all = [
            ends("10.0.0.1:22", "10.0.0.9:1000"),
            ends("10.0.0.1:22", "10.0.0.8:1000"),
            ends("10.0.0.1:5", "10.0.1.1:6"),
            ends("127.0.0.1:5", "127.0.0.1:6"),
        ];
        assert_eq!(by_interface(&all, &owned), BTreeMap::from([(2, (2, all[0]))]));
    }
}
