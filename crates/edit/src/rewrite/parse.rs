//! Values as they are written on command lines, of tcprewrite's options and of ours.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::Mac;

use super::plan::{AddressMap, PerSide, Prefix, Ttl};
use super::ports::PortMap;

/// A value that cannot be read: which part of it, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` {why}")]
pub struct BadValue {
    part: String,
    why: &'static str,
    /// The same, as tcprewrite writes pairs.
    theirs: &'static str,
}

impl BadValue {
    /// Says how tcprewrite writes it, whose pairs have other marks between them.
    pub fn as_of_tcprewrite(&mut self) {
        self.why = self.theirs;
    }
}

fn bad(part: &str, why: &'static str) -> BadValue {
    bad_pair(part, [why, why])
}

/// `why` as we write pairs, and as tcprewrite does.
fn bad_pair(part: &str, [why, theirs]: [&'static str; 2]) -> BadValue {
    BadValue { part: part.to_owned(), why, theirs }
}

/// Reads an address or prefix: 10.0.0.0/8, 2001:db8::/32, [2001:db8::/32], [2001:db8::]/32.
fn prefix(text: &str) -> Result<Prefix, BadValue> {
    const WHY: &str = "is no address or prefix: write 10.0.0.0/8 or [2001:db8::/32]";
    let bare = text.replace(['[', ']'], "");
    let (address, bits) = match bare.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad(text, WHY))?)),
        None => (bare.as_str(), None),
    };
    if let Ok(address) = address.parse::<Ipv4Addr>() {
        let bits = bits.unwrap_or(32);
        return if bits <= 32 {
            Ok(Prefix::V4(address.to_bits(), bits))
        } else {
            Err(bad(text, "has a prefix length beyond 32"))
        };
    }
    let address: Ipv6Addr = address.parse().map_err(|_| bad(text, WHY))?;
    let bits = bits.unwrap_or(128);
    if bits <= 128 {
        Ok(Prefix::V6(address.to_bits(), bits))
    } else {
        Err(bad(text, "has a prefix length beyond 128"))
    }
}

/// Reads FROM=TO or FROM:TO, several separated by commas; IPv6 in brackets where a colon separates.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn address_map(text: &str) -> Result<AddressMap, BadValue> {
    let mut map = AddressMap::default();
    for entry in text.split(',') {
        let (from, to) = pair(entry).ok_or_else(|| {
            let whys = [
                "is no pair of prefixes: write 10.0.0.0/8=192.168.0.0/16 or 2001:db8::/32=fd00::/16",
                "is no pair of prefixes: write 10.0.0.0/8:192.168.0.0/16 or [2001:db8::/32]:[fd00::/16]",
            ];
            bad_pair(entry, whys)
        })?;
        if !map.push(prefix(from)?, prefix(to)?) {
            return Err(bad(entry, "maps one IP version to the other, which the headers do not allow"));
        }
    }
    Ok(map)
}

/// Parts FROM:TO or FROM=TO; colons within brackets do not part.
fn pair(text: &str) -> Option<(&str, &str)> {
    if let Some(pair) = text.split_once('=') {
        return Some(pair);
    }
    let mut inside = false;
    let at = text.find(|c| {
        inside = c == '[' || inside && c != ']';
        c == ':' && !inside
    })?;
    let (from, to) = text.split_at(at);
    Some((from, to.get(1..)?))
}

/// Reads ADDRESS:ADDRESS, the client's and the server's: the maps of all addresses to them.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn endpoints(text: &str) -> Result<(AddressMap, AddressMap), BadValue> {
    let whys = [
        "is no pair of addresses: write 10.0.0.1=10.0.0.2",
        "is no pair of addresses: write 10.0.0.1:10.0.0.2",
    ];
    let (client, server) = pair(text).ok_or_else(|| bad_pair(text, whys))?;
    let all = |text| -> Result<AddressMap, BadValue> {
        let mut map = AddressMap::default();
        let to = prefix(text)?;
        let from = if matches!(to, Prefix::V4(..)) { Prefix::ALL_V4 } else { Prefix::ALL_V6 };
        // Both are of one version by the line before.
        let _ = map.push(from, to);
        Ok(map)
    };
    Ok((all(client)?, all(server)?))
}

/// Reads MAC or MAC,MAC: for the client's frames and the server's. Either may be left out.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn mac_pair(text: &str) -> Result<PerSide<Mac>, BadValue> {
    let read = |part: &str| match part.trim() {
        "" => Ok(None),
        part => part.parse().map(Some).map_err(|_| mac_error(part)),
    };
    let mut parts = text.split(',');
    let pair =
        PerSide { client: read(parts.next().unwrap_or(""))?, server: read(parts.next().unwrap_or(""))? };
    if parts.next().is_some() || pair == PerSide::default() {
        return Err(bad(text, "is no Ethernet address, and no two of them: write 02:00:00:00:00:01"));
    }
    Ok(pair)
}

fn mac_error(part: &str) -> BadValue {
    bad(part, "is no Ethernet address: write six hexadecimal bytes, such as 02:00:00:00:00:01")
}

/// Reads OLD,NEW or OLD=NEW, any number of pairs separated by commas.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn mac_replacements(text: &str) -> Result<Vec<(Mac, Mac)>, BadValue> {
    let addresses = text
        .split([',', '='])
        .map(|part| part.parse().map_err(|_| mac_error(part)))
        .collect::<Result<Vec<Mac>, _>>()?;
    if addresses.len() % 2 != 0 {
        let whys = [
            "has an address without its partner: write OLD=NEW",
            "has an address without its partner: write OLD,NEW",
        ];
        return Err(bad_pair(text, whys));
    }
    Ok(addresses.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect())
}

/// Reads hexadecimal bytes separated by commas: 00,50,0xda.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn hex_bytes(text: &str) -> Result<Vec<u8>, BadValue> {
    let byte = |part: &str| {
        let digits = part.trim().trim_start_matches("0x");
        u8::from_str_radix(digits, 16).map_err(|_| bad(part, "is no hexadecimal byte: write 00,50,da"))
    };
    text.split(',').map(byte).collect()
}

/// Reads FROM:TO or FROM=TO into `map`, several separated by commas. FROM is a port, a range 8000-8999, or a list
/// 80+443.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn port_map(text: &str, map: &mut PortMap) -> Result<(), BadValue> {
    const WHYS: [&str; 2] = [
        "maps no ports: write 80=8080, 8000-8999=80 or 80+443=8080",
        "maps no ports: write 80:8080, 8000-8999:80 or 80+443:8080",
    ];
    let port = |part: &str| part.parse::<u16>().map_err(|_| bad(part, "is no port: write 0 to 65535"));
    for entry in text.split(',') {
        let (from, to) = entry.split_once([':', '=']).ok_or_else(|| bad_pair(entry, WHYS))?;
        let to = port(to)?;
        if let Some((first, last)) = from.split_once('-') {
            let (first, last) = (port(first)?, port(last)?);
            if first > last {
                return Err(bad(from, "is a range that ends before it starts"));
            }
            for from in first..=last {
                map.insert(from, to);
            }
        } else {
            for from in from.split('+') {
                map.insert(port(from)?, to);
            }
        }
    }
    Ok(())
}

/// Reads 64, +1 or -1.
///
/// # Errors
/// What of the text cannot be read, and what to write.
pub fn ttl(text: &str) -> Result<Ttl, BadValue> {
    let (kind, digits): (fn(u8) -> Ttl, &str) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(more), _) => (Ttl::Add, more),
        (_, Some(less)) => (Ttl::Subtract, less),
        _ => (Ttl::Set, text),
    };
    digits.parse().map(kind).map_err(|_| bad(text, "is no TTL: write 64, +1 or -1, up to 255"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_maps_are_read_in_both_notations() {
        for text in ["10.0.0.0/8:192.168.0.0/16", "10.0.0.0/8=192.168.0.0/16"] {
            assert_eq!(address_map(text).unwrap().map_v4(0x0a01_0203), Some(0xc0a8_0203), "{text}");
        }
        for text in ["[2001:db8::/32]:[dead::/16]", "2001:db8::/32=dead::/16", "[2001:db8::]/32=[dead::]/16"]
        {
            let map = address_map(text).unwrap();
            assert_eq!(map.map_v6(0x2001_0db8 << 96 | 7), Some(0xdead_0db8 << 96 | 7), "{text}");
        }
        let two = address_map("10.0.0.1:1.1.1.1,[::1]:[::2]").unwrap();
        assert_eq!((two.map_v4(0x0a00_0001), two.map_v6(1)), (Some(0x0101_0101), Some(2)));
        for text in ["", "10.0.0.0/8", "10.0.0.0/33:1.1.1.1", "10.0.0.0/8:[::1]", "a:b", "1.1.1.1/x:2.2.2.2"]
        {
            assert!(address_map(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_are_told_in_our_spelling_and_in_tcprewrites() {
        let mac = |text| mac_replacements(text).unwrap_err();
        let ports = |text| port_map(text, &mut PortMap::default()).unwrap_err();
        for (mut bad, ours, theirs) in [
            (
                address_map("10.0.0.0/8").unwrap_err(),
                "10.0.0.0/8=192.168.0.0/16",
                "10.0.0.0/8:192.168.0.0/16",
            ),
            (endpoints("10.0.0.1").unwrap_err(), "10.0.0.1=10.0.0.2", "10.0.0.1:10.0.0.2"),
            (ports("80"), "80=8080", "80:8080"),
            (mac("0:1:2:3:4:5"), "OLD=NEW", "OLD,NEW"),
        ] {
            let told = bad.to_string();
            assert!(told.contains(ours) && !told.contains(theirs), "{told}");
            bad.as_of_tcprewrite();
            let told = bad.to_string();
            assert!(told.contains(theirs) && !told.contains(ours), "{told}");
        }
    }

    #[test]
    fn ports_come_alone_in_ranges_and_in_lists() {
        let mut map = PortMap::default();
        port_map("80:8080,1000-1002:1,20+21:2", &mut map).unwrap();
        let got = [80, 999, 1000, 1002, 1003, 20, 21].map(|port| map.get(port));
        assert_eq!(got, [8080, 999, 1, 1, 1003, 2, 2]);
        for text in ["80", "80:", "80:65536", "9-1:2", "1+:2", "a:1"] {
            assert!(port_map(text, &mut PortMap::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn ethernet_addresses_come_alone_and_in_pairs() {
        let a = Mac([0, 1, 2, 3, 4, 5]);
        let b = Mac([6, 7, 8, 9, 10, 11]);
        let both = mac_pair("0:1:2:3:4:5,06:07:08:09:0a:0b").unwrap();
        assert_eq!(both, PerSide { client: Some(a), server: Some(b) });
        assert_eq!(mac_pair(",0:1:2:3:4:5").unwrap(), PerSide { client: None, server: Some(a) });
        assert_eq!(mac_replacements("0:1:2:3:4:5,06:07:08:09:0a:0b").unwrap(), [(a, b)]);
        assert!(mac_pair("").is_err() && mac_pair("x").is_err() && mac_replacements("0:1:2:3:4:5").is_err());
    }

    #[test]
    fn ttl_is_set_raised_or_lowered() {
        let read = ["64", "+3", "-3"].map(|text| ttl(text).unwrap());
        assert_eq!(read, [Ttl::Set(64), Ttl::Add(3), Ttl::Subtract(3)]);
        assert!(["256", "", "+", "--1", "x"].iter().all(|text| ttl(text).is_err()));
    }
}
