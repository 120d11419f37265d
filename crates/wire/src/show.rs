//! A frame for people to read: layer by layer with every field, checksums judged, then the bytes.
//!
//! This is the dump of `netdyno craft --show`. It reads the tables of [`crate::proto`], so whatever an expression
//! can build is shown under the names an expression uses. It is not meant to be parsed.

use crate::ends::Ends;
use crate::proto::sctp::{CHECKSUM, HEADER};
use crate::proto::{self, Auto, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};
use crate::{LinkType, checksum, crc};
use std::fmt::Write;
use std::net::Ipv6Addr;

/// Headers after which the rest is called payload: deeper than any sound packet.
const MAX_LAYERS: usize = 64;

/// `frame` as text, for a frame of that link type. Any bytes will do.
pub fn show(link: LinkType, frame: &[u8]) -> String {
    let mut walk = Walk {
        frame,
        at: 0,
        end: frame.len(),
        missing: 0,
        fragment: false,
        pseudo: None,
        out: String::new(),
    };
    let mut next = walk.link(link);
    for _ in 0..MAX_LAYERS {
        match next {
            Next::Layer(protocol) => next = walk.layer(protocol.spec()),
            Next::Payload => break,
        }
    }
    walk.payload();
    let mut out = walk.out;
    let _ = writeln!(
        out,
        "\n{} bytes ({} on Ethernet, with the frame check sequence)",
        frame.len(),
        frame.len() + 4
    );
    hex_dump(&mut out, frame);
    out
}

/// The addresses that a transport checksum covers.
#[derive(Clone, Copy)]
struct Pseudo {
    /// Sum of both addresses, if it is known which they are.
    addresses: Option<u64>,
}

struct Walk<'a> {
    frame: &'a [u8],
    at: usize,
    /// Where the innermost length field says that the packet ends.
    end: usize,
    /// Bytes that a length field claims beyond the frame.
    missing: usize,
    fragment: bool,
    pseudo: Option<Pseudo>,
    out: String,
}

impl Walk<'_> {
    fn bytes(&self) -> &[u8] {
        self.frame.get(self.at..self.end).unwrap_or_default()
    }

    fn title(&mut self, title: &str) {
        let _ = writeln!(self.out, "### [ {title} ]###");
    }

    fn line(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.out, "  {name:<14} = {value}");
    }

    /// The link header, where it is not Ethernet.
    fn link(&mut self, link: LinkType) -> Next {
        match link {
            LinkType::ETHERNET => Next::Layer(Protocol::Ether),
            LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => {
                numbers::by_version(self.frame)
            }
            LinkType::NULL | LinkType::LOOP => {
                self.title("Loopback");
                let family = get(self.frame, 0, 32).unwrap_or(0);
                self.line("family", &format!("0x{family:08x}"));
                self.at = self.frame.len().min(4);
                numbers::by_version(self.bytes())
            }
            LinkType::LINUX_SLL | LinkType::LINUX_SLL2 => {
                self.title(link.name().unwrap_or("Linux cooked"));
                let (length, at) = if link == LinkType::LINUX_SLL { (16, 14 * 8) } else { (20, 0) };
                let Some(protocol) = get(self.frame, at, 16).filter(|_| self.frame.len() >= length) else {
                    self.line("(cut short)", &format!("{} of {length} bytes", self.frame.len()));
                    return Next::Payload;
                };
                self.line(
                    "protocol",
                    &with_name(format!("0x{protocol:04x}"), numbers::ethertype_name(protocol)),
                );
                self.at = length;
                numbers::after_ethertype(protocol)
            }
            other => {
                self.title(&other.to_string());
                Next::Payload
            }
        }
    }

    fn layer(&mut self, spec: &Spec) -> Next {
        let all = self.bytes();
        let Some(length) = (spec.header_len)(all) else {
            let have = all.len();
            self.title(spec.title);
            let why = if have < spec.min_len {
                format!("{have} bytes are left, {} are needed", spec.min_len)
            } else {
                "its own length cannot be".into()
            };
            self.line("(malformed)", &why);
            return Next::Payload;
        };
        let Some((header, rest)) = self.frame.get(self.at..self.end).and_then(|b| b.split_at_checked(length))
        else {
            return Next::Payload;
        };
        self.bound(spec, header);
        self.title(spec.title);
        for field in spec.fields.iter().filter(|field| !field.view) {
            // The second word of ICMP has names of its own for most types.
            let other = || spec.fields.iter().any(|f| f.at.is_some() && f.place(header) == Some(32));
            if field.name == "rest" && other() {
                continue;
            }
            if let Some(value) = field.read(header) {
                let text = self.value(spec, field, header, value);
                self.line(field.name, &text);
            }
        }
        if let Variable::Message { describe, .. } = spec.variable {
            for (name, text) in describe(header) {
                self.line(name, &text);
            }
        }
        if let Some(text) = variable(spec, header) {
            self.line(spec.list_names().first().copied().unwrap_or("options"), &text);
        }
        self.context(spec.protocol, header, rest);
        self.at += length;
        (spec.next)(header, self.frame.get(self.at..self.end).unwrap_or_default())
    }

    /// Moves the end of the packet to where this header's length says.
    fn bound(&mut self, spec: &Spec, header: &[u8]) {
        let field = spec.fields.iter().find(|f| matches!(f.auto, Auto::Length | Auto::PayloadLength));
        let Some(said) = field.and_then(|f| f.read(header).map(|value| (f.auto, value as usize))) else {
            return;
        };
        let end = match said {
            // Zero: left to the interface (segmentation offload), or a jumbogram (RFC 2675).
            (_, 0) => return,
            (Auto::Length, length) => self.at + length,
            (_, length) => self.at + spec.min_len + length,
        };
        // Behind a chunk and its padding stand further chunks, not the packet's end.
        if spec.protocol == Protocol::SctpData && self.at + said.1.next_multiple_of(4) < self.end {
            return;
        }
        if end >= self.at + header.len() {
            self.missing = end.saturating_sub(self.end);
            self.end = self.end.min(end);
        }
    }

    fn value(&self, spec: &Spec, field: &Field, header: &[u8], value: u128) -> String {
        let mut text = proto::format_value(field.kind, field.bits, value);
        // Letters and the number say it.
        if let Kind::Flags(_) = field.kind {
            let _ = write!(text, " (0x{value:x})");
            return text;
        }
        match field.auto {
            Auto::Next => {
                let by_ethertype = field.bits == 16;
                let name =
                    if by_ethertype { numbers::ethertype_name(value) } else { numbers::ip_name(value) };
                with_name(text, name)
            }
            Auto::HeaderChecksum | Auto::Checksum | Auto::PseudoChecksum | Auto::UdpChecksum => {
                let _ = write!(text, " ({})", self.judge(spec, field, header, value as u16));
                text
            }
            Auto::Crc32c => {
                let _ = write!(text, " ({})", self.judge_crc(header));
                text
            }
            _ => with_name(text, field.names.iter().find(|(_, n)| *n == value).map(|(name, _)| *name)),
        }
    }

    /// Whether a checksum is right.
    fn judge(&self, spec: &Spec, field: &Field, header: &[u8], found: u16) -> String {
        let covered = match field.auto {
            Auto::HeaderChecksum => header,
            _ if self.fragment => return "not checked: a fragment".into(),
            _ if self.missing > 0 => return format!("not checked: {} bytes are missing", self.missing),
            _ => self.bytes(),
        };
        if field.auto == Auto::UdpChecksum && found == 0 {
            return "none".into();
        }
        let pseudo = match field.auto {
            Auto::PseudoChecksum | Auto::UdpChecksum => {
                let Some(pseudo) = self.pseudo else { return "not checked: no IP header above".into() };
                let Some(addresses) = pseudo.addresses else {
                    return "not checked: it covers the end of a route that cannot be read".into();
                };
                let number = numbers::ip_number_of(spec.protocol).unwrap_or(0);
                let length = covered.len() as u64;
                addresses + u64::from(number) + (length >> 16) + (length & 0xffff)
            }
            _ => 0,
        };
        // The field itself counts as zero: what it holds is taken off again, modulo 0xffff.
        let partial = checksum::sum(covered) + pseudo + u64::from(!found);
        let right = match field.auto {
            Auto::UdpChecksum => checksum::finish_udp(partial),
            _ => checksum::finish(partial),
        };
        // 0x0000 and 0xffff are the same number in one's complement (RFC 1071).
        if right == found || (right.is_multiple_of(0xffff) && found.is_multiple_of(0xffff)) {
            "correct".into()
        } else if pseudo != 0 && found == checksum::fold(pseudo) {
            // What a kernel leaves in the field for the interface to complete.
            format!(
                "bad, should be 0x{right:04x}; it is the pseudo header's alone, as before checksum offload"
            )
        } else {
            format!("bad, should be 0x{right:04x}")
        }
    }

    /// Whether SCTP's checksum is right.
    fn judge_crc(&self, header: &[u8]) -> String {
        if self.fragment {
            return "not checked: a fragment".into();
        }
        if self.missing > 0 {
            return format!("not checked: {} bytes are missing", self.missing);
        }
        match crc::sctp(self.bytes()) {
            Some(right) if header.get(CHECKSUM..HEADER) == Some(&right) => "correct".into(),
            Some(right) => format!("bad, should be 0x{:08x}", u32::from_be_bytes(right)),
            None => "not checked: the header is cut off".into(),
        }
    }

    /// What later layers need to know of this one.
    fn context(&mut self, protocol: Protocol, header: &[u8], rest: &[u8]) {
        let sum = |range: std::ops::Range<usize>| checksum::sum(header.get(range).unwrap_or_default());
        match protocol {
            Protocol::Ipv4 => {
                self.pseudo = {
                    let destination = proto::ipv4::final_destination(header);
                    Some(Pseudo { addresses: Some(sum(12..16) + sum(destination..destination + 4)) })
                };
                self.fragment = get(header, 51, 13) != Some(0) || get(header, 50, 1) == Some(1);
            }
            Protocol::Ipv6 => {
                self.fragment = false;
                let packet = [header, rest].concat();
                self.pseudo =
                    Some(Pseudo { addresses: Ends::of(&packet).and_then(|ends| ends.sum(&packet)) });
            }
            Protocol::Fragment => {
                self.fragment = get(header, 16, 13) != Some(0) || get(header, 31, 1) == Some(1)
            }
            Protocol::Ether => self.pseudo = None,
            _ => {}
        }
    }

    /// What is left: payload, then what stands after the packet's end.
    fn payload(&mut self) {
        let payload = self.bytes().to_vec();
        if !payload.is_empty() {
            self.title("Payload");
            self.line("length", &payload.len().to_string());
            self.line("data", &excerpt(&payload));
        }
        if self.missing > 0 {
            self.title("Missing");
            self.line("length", &format!("{} (the headers promise more than the frame holds)", self.missing));
        }
        let padding = self.frame.get(self.end..).unwrap_or_default().to_vec();
        if !padding.is_empty() {
            self.title("Padding");
            self.line("length", &format!("{} (after the packet's end)", padding.len()));
            self.line("data", &excerpt(&padding));
        }
    }
}

/// The header's variable part as an expression would write it.
fn variable(spec: &Spec, header: &[u8]) -> Option<String> {
    let part = header.get(spec.variable_start(header)..)?;
    if part.is_empty() {
        return None;
    }
    match spec.variable {
        Variable::None | Variable::Message { .. } => None,
        Variable::Options { table, .. } => Some(proto::options::describe(spec.protocol, table, part)),
        Variable::Segments => {
            let addresses = part.chunks_exact(16).filter_map(|a| a.try_into().ok());
            let list: Vec<String> = addresses.map(|a: [u8; 16]| Ipv6Addr::from(a).to_string()).collect();
            Some(format!("[{}]", list.join(", ")))
        }
        Variable::GtpuExtensions => {
            let mut kind = *header.get(11)?;
            let mut rest = part;
            let mut list = Vec::new();
            while kind != 0 {
                let length = usize::from(*rest.first()?) * 4;
                let content = rest.get(1..length.checked_sub(1)?)?;
                list.push(match (kind, content) {
                    (0x85, [kind, qfi]) => format!("psc({}, {})", kind >> 4, qfi & 0x3f),
                    (0xc0, [a, b]) => format!("pdcp({})", u16::from_be_bytes([*a, *b])),
                    (0x40, [a, b]) => format!("udp_port({})", u16::from_be_bytes([*a, *b])),
                    _ => format!("opt({kind}, hex=\"{}\")", crate::hex::encode(content)),
                });
                kind = *rest.get(length - 1)?;
                rest = rest.get(length..)?;
            }
            Some(format!("[{}]", list.join(", ")))
        }
    }
}

fn with_name(text: String, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{text} ({name})"),
        None => text,
    }
}

/// The first bytes, as quoted text where they are text.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 48;
    let head = bytes.get(..SHOWN).unwrap_or(bytes);
    let more = if head.len() < bytes.len() { "..." } else { "" };
    if head.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        let text: String = head.iter().map(|byte| char::from(*byte)).collect();
        return format!("{text:?}{more}");
    }
    if bytes.iter().all(|byte| Some(byte) == bytes.first()) {
        let value = bytes.first().copied().unwrap_or(0);
        return format!("0x{value:02x}, {} times", bytes.len());
    }
    let signature =
        crate::signature::Signature::at_end_of(bytes).filter(|_| bytes.len() == crate::signature::LEN);
    match signature {
        Some(s) => {
            format!("test signature: stream {}, sequence {}, time {} ns", s.stream, s.sequence, s.time)
        }
        None => format!("{}{more}", crate::hex::encode(head)),
    }
}

/// Offsets, bytes in hexadecimal, and those of them that print.
fn hex_dump(out: &mut String, bytes: &[u8]) {
    for (row, line) in bytes.chunks(16).enumerate() {
        let _ = write!(out, "{:04x} ", row * 16);
        for i in 0..16 {
            let gap = if i == 8 { " " } else { "" };
            let _ = match line.get(i) {
                Some(byte) => write!(out, "{gap} {byte:02x}"),
                None => write!(out, "{gap}   "),
            };
        }
        let text: String = line
            .iter()
            .map(|b| if b.is_ascii_graphic() || *b == b' ' { char::from(*b) } else { '.' })
            .collect();
        let _ = writeln!(out, "  {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 02:..:01 to 02:..:02, 198.18.0.1 port 1024 to 198.19.0.1 port 53, "hi"; no UDP checksum.
    fn frame() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 30, 0, 1, 0, 0, 64, 17, 0xee, 0xa6, 198, 18, 0, 1, 198, 19, 0, 1]);
        frame.extend([4, 0, 0, 53, 0, 10, 0, 0, b'h', b'i']);
        frame
    }

    #[test]
    fn sctp_is_judged_by_its_crc_and_further_chunks_are_payload() {
        let mut frame = frame();
        frame.truncate(34);
        frame[23] = 132;
        let chunk = [0, 3, 0, 18, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, b'h', b'i', 0, 0];
        let packet = |chunks: usize| {
            let mut packet = vec![4, 0, 0x0b, 0x59, 0, 0, 0, 7, 0, 0, 0, 0];
            (0..chunks).for_each(|_| packet.extend(chunk));
            crate::crc::fix_sctp(&mut packet);
            let mut frame = frame.clone();
            frame[17] = 20 + packet.len() as u8;
            frame.extend(packet);
            frame
        };
        let one = packet(1);
        let text = show(LinkType::ETHERNET, &one);
        for line in ["proto          = 132 (SCTP)", "### [ SCTP ]###", "dport          = 2905", "(correct)"] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
        for line in
            ["### [ SCTP data chunk ]###", "flags          = EB (0x3)", "data           = \"hi\"", "Padding"]
        {
            assert!(text.contains(line), "{line}:\n{text}");
        }
        let two = show(LinkType::ETHERNET, &packet(2));
        assert!(two.contains("length         = 24") && !two.contains("Padding"), "{two}");
        let mut wrong = one;
        wrong[42] ^= 1;
        assert!(
            show(LinkType::ETHERNET, &wrong).contains("(bad, should be 0x"),
            "a CRC that is off by a bit"
        );
    }

    #[test]
    fn a_dump_names_layers_fields_and_judges_checksums() {
        let mut frame = frame();
        let text = show(LinkType::ETHERNET, &frame);
        for part in [
            "### [ Ethernet ]###",
            "dst            = 02:00:00:00:00:02",
            "type           = 0x0800 (IPv4)",
            "### [ IPv4 ]###",
            "proto          = 17 (UDP)",
            "chksum         = 0x0000 (none)",
            "data           = \"hi\"",
            "0020  00 01 04 00 00 35 00 0a",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains("chksum         = 0xeea6 (correct)"), "{text}");
        frame[24] ^= 1;
        assert!(show(LinkType::ETHERNET, &frame).contains("(bad, should be 0xeea6)"));
    }

    #[test]
    fn a_checksum_left_to_the_interface_is_recognised() {
        let mut frame = frame();
        let pseudo = checksum::pseudo_v4([198, 18, 0, 1], [198, 19, 0, 1], 17, 10);
        frame[40..42].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
        assert!(show(LinkType::ETHERNET, &frame).contains("as before checksum offload"));
    }

    #[test]
    fn padding_and_missing_bytes_are_said() {
        let mut padded = frame();
        padded.resize(60, 0);
        let text = show(LinkType::ETHERNET, &padded);
        assert!(
            text.contains("### [ Padding ]###") && text.contains("16 (after the packet's end)"),
            "{text}"
        );
        let text = show(LinkType::ETHERNET, &frame()[..43]);
        assert!(text.contains("### [ Missing ]###"), "{text}");
        let text = show(LinkType::ETHERNET, &frame()[..30]);
        assert!(text.contains("(malformed)"), "{text}");
    }

    #[test]
    fn other_links_are_entered_too() {
        let ip = &frame()[14..];
        assert!(show(LinkType::RAW, ip).starts_with("### [ IPv4 ]###"));
        let mut cooked = vec![0; 14];
        cooked.extend([8, 0]);
        cooked.extend(ip);
        assert!(show(LinkType::LINUX_SLL, &cooked).contains("### [ UDP ]###"));
    }

    proptest! {
        #[test]
        fn no_bytes_upset_the_dump(bytes in proptest::collection::vec(any::<u8>(), 0..200), link in 0u16..300) {
            show(LinkType(link), &bytes);
            show(LinkType::ETHERNET, &bytes);
            show(LinkType::RAW, &bytes);
        }

        #[test]
        fn no_damage_upsets_the_dump(spots in proptest::collection::vec((0usize..80, any::<u8>()), 0..12), start in 0usize..6) {
            // Start from something deep enough that damage reaches every table.
            let kinds: [[u8; 2]; 6] = [[8, 0], [0x86, 0xdd], [0x88, 0x47], [0x81, 0], [8, 6], [0x88, 0xa8]];
            let mut bytes = frame();
            bytes[12..14].copy_from_slice(&kinds[start]);
            bytes.resize(80, 0x45);
            for (at, value) in spots {
                bytes[at] = value;
            }
            show(LinkType::ETHERNET, &bytes);
        }
    }
}
