//! The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks, each with its length at head and tail.
//!
//! Packets come in enhanced, simple and (obsolete) packet blocks; interface descriptions say how to read their
//! times; all other blocks are stepped over without keeping them. Fed by `reader`.

use wire::LinkType;

use crate::error::{Fault, Place};
use crate::input::Input;
use crate::pcap::{u16_at, u32_at};
use crate::reader::{Notes, Raw};
use crate::{Container, Format, Interface, MAX_CAPTURED};

/// Reads the same in both byte orders.
pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
pub(crate) const INTERFACE_STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;
const JOURNAL: u32 = 9;
const DECRYPTION_SECRETS: u32 = 10;
const CUSTOM: [u32; 2] = [0x0000_0bad, 0x4000_0bad];

/// Options (section 4.2 of the draft for interfaces, 4.6 for statistics).
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_SPEED: u16 = 8;
pub(crate) const IF_TSRESOL: u16 = 9;
pub(crate) const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
pub(crate) const COMMENT: u16 = 1;
/// Of packets (section 4.3): bits 5 to 8 are the length of the frame check sequence, 0 if it is not given.
const EPB_FLAGS: u16 = 2;
pub(crate) const SHB_HARDWARE: u16 = 2;
pub(crate) const SHB_OS: u16 = 3;
pub(crate) const SHB_APPLICATION: u16 = 4;
pub(crate) const ISB_STARTTIME: u16 = 2;
pub(crate) const ISB_ENDTIME: u16 = 3;
pub(crate) const ISB_IFRECV: u16 = 4;
pub(crate) const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// The longest block that is kept whole: a packet of the largest size, and options in plenty.
const MAX_BLOCK: u32 = 1 << 20;
/// Interfaces kept; real files have a few dozen.
const MAX_INTERFACES: usize = 4096;

pub(crate) struct Pcapng {
    big_endian: bool,
    /// Of the section's interfaces: where they start in the reader's list, and how to read their times.
    first_interface: usize,
    timings: Vec<Timing>,
    /// The block being read, for errors.
    block_offset: u64,
    block: &'static str,
}

/// [`Pcapng::block`] while it is a packet's.
const PACKET_BLOCK: &str = "packet";

/// What the three kinds of packet block say.
struct Packet {
    /// The block's type.
    block: u32,
    /// Within the section.
    interface: u32,
    ticks: Option<u64>,
    captured: u32,
    wire_len: u32,
    data_at: u32,
}

/// How an interface's time stamps become nanoseconds.
struct Timing {
    unit: Unit,
    offset_seconds: i64,
    /// The latest drop count of its statistics.
    dropped: u64,
}

#[derive(Clone, Copy)]
enum Unit {
    /// Nanoseconds in a tick.
    Nanoseconds(u64),
    /// Ticks in a nanosecond.
    Ticks(u128),
    /// 2^-n seconds.
    PowerOfTwo(u32),
}

impl Unit {
    /// if_tsresol: negative power of ten, or of two with the top bit set.
    fn from_option(value: u8) -> Unit {
        let power = u32::from(value & 0x7f);
        match power {
            _ if value & 0x80 != 0 => Unit::PowerOfTwo(power),
            0..=9 => Unit::Nanoseconds(10u64.pow(9 - power)),
            // Beyond 10^38 no 64-bit count reaches a nanosecond.
            _ => Unit::Ticks(10u128.checked_pow(power - 9).unwrap_or(u128::MAX)),
        }
    }

    fn ticks_per_second(self) -> Option<u64> {
        match self {
            Unit::Nanoseconds(ns) => Some(1_000_000_000 / ns),
            Unit::Ticks(ticks) => u64::try_from(ticks.checked_mul(1_000_000_000)?).ok(),
            Unit::PowerOfTwo(power) => 1u64.checked_shl(power),
        }
    }
}

impl Timing {
    /// Nanoseconds since 1970, and whether they had to be held to the range of u64.
    #[inline]
    fn nanoseconds(&self, ticks: u64) -> (u64, bool) {
        if let (Unit::Nanoseconds(ns), 0) = (self.unit, self.offset_seconds)
            && let Some(time) = ticks.checked_mul(ns)
        {
            return (time, false);
        }
        // 64 bits of ticks and 30 of a factor leave room in 128.
        let since_offset = match self.unit {
            Unit::Nanoseconds(ns) => u128::from(ticks) * u128::from(ns),
            Unit::Ticks(per_ns) => u128::from(ticks) / per_ns,
            Unit::PowerOfTwo(power) => (u128::from(ticks) * 1_000_000_000) >> power,
        };
        let time = since_offset as i128 + i128::from(self.offset_seconds) * 1_000_000_000;
        match u64::try_from(time) {
            Ok(time) => (time, false),
            Err(_) => (if time < 0 { 0 } else { u64::MAX }, true),
        }
    }
}

/// Whether a file's first four bytes are a section header's.
pub(crate) fn recognise(magic: [u8; 4]) -> Option<Format> {
    (u32::from_be_bytes(magic) == SECTION_HEADER).then_some(Format {
        container: Container::Pcapng,
        big_endian: false,
        compression: None,
    })
}

impl Pcapng {
    pub(crate) fn open(input: &mut Input) -> Result<Pcapng, Fault> {
        let mut pcapng = Pcapng {
            big_endian: false,
            first_interface: 0,
            timings: vec![],
            block_offset: input.offset(),
            block: "section header",
        };
        pcapng.section(input)?;
        Ok(pcapng)
    }

    pub(crate) fn big_endian(&self) -> bool {
        self.big_endian
    }

    /// Where an error at this moment is, after so many records.
    pub(crate) fn place(&self, records: u64) -> Place {
        match self.block {
            PACKET_BLOCK => Place::Record(records + 1),
            name => Place::Block { name, after: records },
        }
    }

    pub(crate) fn block_offset(&self) -> u64 {
        self.block_offset
    }

    /// The next packet, on the way taking in what describes it; `Ok(None)` at the end of the stream.
    #[inline]
    pub(crate) fn next(
        &mut self,
        input: &mut Input,
        interfaces: &mut Vec<Interface>,
        notes: &mut Notes,
    ) -> Result<Option<Raw>, Fault> {
        loop {
            self.block_offset = input.offset();
            self.block = PACKET_BLOCK;
            if !input.have(8) {
                return match input.peek().len() as u64 {
                    0 => Ok(None),
                    got => Err(Fault::Truncated { wanted: 12, got }),
                };
            }
            let head = input.peek();
            let (kind, length) = (u32_at(head, 0, self.big_endian), u32_at(head, 4, self.big_endian));
            match kind {
                ENHANCED_PACKET | PACKET => {
                    self.whole(input, length, 32)?;
                    let block = input.peek();
                    let field = |at| u32_at(block, at, self.big_endian);
                    let packet = Packet {
                        block: kind,
                        interface: match kind {
                            ENHANCED_PACKET => field(8),
                            // The obsolete block has a count of drops beside a shorter number.
                            _ => u16_at(block, 8, self.big_endian).into(),
                        },
                        ticks: Some(u64::from(field(12)) << 32 | u64::from(field(16))),
                        captured: field(20),
                        wire_len: field(24),
                        data_at: 28,
                    };
                    return self.take(packet, length, input, interfaces, notes).map(Some);
                }
                SIMPLE_PACKET => {
                    self.whole(input, length, 16)?;
                    let wire_len = u32_at(input.peek(), 8, self.big_endian);
                    let captured = match interfaces.get(self.first_interface) {
                        Some(interface) if interface.snaplen > 0 => wire_len.min(interface.snaplen),
                        _ => wire_len,
                    };
                    notes.untimed += 1;
                    let packet =
                        Packet { block: kind, interface: 0, ticks: None, captured, wire_len, data_at: 12 };
                    return self.take(packet, length, input, interfaces, notes).map(Some);
                }
                SECTION_HEADER => {
                    self.block = "section header";
                    self.section(input)?;
                    self.first_interface = interfaces.len();
                    self.timings.clear();
                }
                INTERFACE_DESCRIPTION => {
                    self.block = "interface description";
                    self.whole(input, length, 20)?;
                    self.interface(input.peek(), length, interfaces)?;
                    input.consume(length as usize);
                }
                INTERFACE_STATISTICS => {
                    self.block = "interface statistics";
                    self.whole(input, length, 24)?;
                    self.statistics(input.peek(), length, notes);
                    input.consume(length as usize);
                }
                other => {
                    self.block = match other {
                        NAME_RESOLUTION => "name resolution block",
                        JOURNAL => "journal block",
                        DECRYPTION_SECRETS => "decryption secrets block",
                        _ if CUSTOM.contains(&other) => "custom block",
                        _ => {
                            notes.unknown_blocks += 1;
                            "block of unknown type"
                        }
                    };
                    self.step_over(input, length)?;
                }
            }
        }
    }

    /// Checks a packet against its block and its interface, and steps over the block.
    #[inline]
    fn take(
        &self,
        packet: Packet,
        length: u32,
        input: &mut Input,
        interfaces: &[Interface],
        notes: &mut Notes,
    ) -> Result<Raw, Fault> {
        let Packet { block, interface, ticks, captured, wire_len, data_at } = packet;
        let Some(timing) = self.timings.get(interface as usize) else {
            return Err(Fault::UnknownInterface { interface, known: self.timings.len() as u32 });
        };
        // `whole` saw to it that the block is longer than its head and tail.
        let room = length - data_at - 4;
        if captured > room {
            return Err(Fault::DataBeyondBlock { length: captured, room });
        }
        if captured > MAX_CAPTURED {
            return Err(Fault::TooLong { length: captured, limit: MAX_CAPTURED });
        }
        let interface = self.first_interface + interface as usize;
        if let Some(Interface { snaplen: snaplen @ 1.., .. }) = interfaces.get(interface) {
            notes.over_snaplen += u64::from(captured > *snaplen);
        }
        let time_ns = ticks.map(|ticks| {
            let (time, odd) = timing.nanoseconds(ticks);
            notes.odd_times += u64::from(odd);
            time
        });
        let options_at = data_at + captured.next_multiple_of(4);
        let fcs_len = match options_at + 12 <= length && block == ENHANCED_PACKET {
            true => self.fcs_of(input.peek(), options_at as usize, length),
            false => None,
        };
        let start = input.consume(length as usize).start + data_at as usize;
        Ok(Raw {
            fcs_len,
            time_ns,
            data: start..start + captured as usize,
            wire_len,
            interface: interface as u32,
        })
    }

    /// The length of a packet's frame check sequence, where its options tell it.
    #[cold]
    fn fcs_of(&self, block: &[u8], at: usize, length: u32) -> Option<u8> {
        let flags = self.options(block, at, length).find(|(code, _)| *code == EPB_FLAGS)?.1;
        let flags = u32_at(flags, 0, self.big_endian);
        Some((flags >> 5 & 15) as u8).filter(|length| *length > 0)
    }

    /// Checks a block's length, brings all of it to hand and compares its tail.
    #[inline]
    fn whole(&self, input: &mut Input, length: u32, least: u32) -> Result<(), Fault> {
        if length < least || !length.is_multiple_of(4) {
            return Err(Fault::BlockLength { length, least });
        }
        if length > MAX_BLOCK {
            return Err(Fault::BlockTooLong { length, limit: MAX_BLOCK });
        }
        if !input.have(length as usize) {
            return Err(Fault::Truncated { wanted: length.into(), got: input.peek().len() as u64 });
        }
        match u32_at(input.peek(), length as usize - 4, self.big_endian) {
            tail if tail == length => Ok(()),
            tail => Err(Fault::BlockTail { head: length, tail }),
        }
    }

    /// Section 4.1. Its byte order mark must be read before its length can be.
    fn section(&mut self, input: &mut Input) -> Result<(), Fault> {
        if !input.have(12) {
            return Err(Fault::Truncated { wanted: 28, got: input.peek().len() as u64 });
        }
        let head = input.peek();
        self.big_endian = match (u32_at(head, 8, false), u32_at(head, 8, true)) {
            (BYTE_ORDER, _) => false,
            (_, BYTE_ORDER) => true,
            (_, other) => return Err(Fault::ByteOrder(other)),
        };
        let length = u32_at(head, 4, self.big_endian);
        self.whole(input, length, 28)?;
        let block = input.peek();
        let (major, minor) = (u16_at(block, 12, self.big_endian), u16_at(block, 14, self.big_endian));
        // The draft: 1.2 was written by some and means 1.0.
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Fault::Version { major, minor });
        }
        input.consume(length as usize);
        Ok(())
    }

    /// Section 4.2.
    fn interface(&mut self, block: &[u8], length: u32, interfaces: &mut Vec<Interface>) -> Result<(), Fault> {
        if interfaces.len() >= MAX_INTERFACES {
            return Err(Fault::TooManyInterfaces(MAX_INTERFACES));
        }
        let mut interface = Interface {
            link: LinkType(u16_at(block, 8, self.big_endian)),
            snaplen: u32_at(block, 12, self.big_endian),
            ..Interface::default()
        };
        let mut timing = Timing { unit: Unit::from_option(6), offset_seconds: 0, dropped: 0 };
        for (code, value) in self.options(block, 16, length) {
            match (code, value) {
                (IF_NAME, name) => {
                    let name = String::from_utf8_lossy(name.get(..255).unwrap_or(name)).into_owned();
                    interface.name = Some(name);
                }
                // Some writers put -1 for "unknown".
                (IF_SPEED, value) => {
                    interface.speed_bps = self.u64_of(value).filter(|speed| !matches!(*speed, 0 | u64::MAX));
                }
                (IF_TSRESOL, &[value, ..]) => timing.unit = Unit::from_option(value),
                (IF_TSOFFSET, value) => {
                    timing.offset_seconds = self.u64_of(value).unwrap_or(0) as i64;
                }
                (IF_FCSLEN, &[value, ..]) => interface.fcs_len = value,
                _ => {}
            }
        }
        interface.ticks_per_second = timing.unit.ticks_per_second();
        interfaces.push(interface);
        self.timings.push(timing);
        Ok(())
    }

    /// Section 4.6: the counts go on from block to block of the same interface.
    fn statistics(&mut self, block: &[u8], length: u32, notes: &mut Notes) {
        let interface = u32_at(block, 8, self.big_endian) as usize;
        let dropped = self
            .options(block, 20, length)
            .filter(|(code, _)| matches!(*code, ISB_IFDROP | ISB_OSDROP))
            .filter_map(|(_, value)| self.u64_of(value))
            .fold(0u64, u64::saturating_add);
        if let Some(timing) = self.timings.get_mut(interface) {
            let more = dropped.saturating_sub(timing.dropped);
            notes.lost_in_capture = notes.lost_in_capture.saturating_add(more);
            timing.dropped = timing.dropped.max(dropped);
        }
    }

    /// A block's options from `at` on. A broken option ends them: nothing hangs on options alone.
    fn options<'b>(
        &self,
        block: &'b [u8],
        at: usize,
        length: u32,
    ) -> impl Iterator<Item = (u16, &'b [u8])> + use<'b> {
        let big_endian = self.big_endian;
        let mut rest = block.get(at..length as usize - 4).unwrap_or(&[]);
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_at_checked(4)?;
            let (code, length) = (u16_at(head, 0, big_endian), usize::from(u16_at(head, 2, big_endian)));
            let value = tail.get(..length)?;
            rest = tail.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            (code != 0).then_some((code, value))
        })
    }

    fn u64_of(&self, value: &[u8]) -> Option<u64> {
        let bytes = *value.first_chunk()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A block that tells us nothing: only its lengths are looked at.
    fn step_over(&self, input: &mut Input, length: u32) -> Result<(), Fault> {
        if length < 12 || !length.is_multiple_of(4) {
            return Err(Fault::BlockLength { length, least: 12 });
        }
        let body = u64::from(length) - 4;
        let passed = input.skip(body);
        if passed < body || !input.have(4) {
            let got = passed + input.peek().len() as u64;
            return Err(Fault::Truncated { wanted: length.into(), got });
        }
        let tail = u32_at(input.peek(), 0, self.big_endian);
        if tail != length {
            return Err(Fault::BlockTail { head: length, tail });
        }
        input.consume(4);
        Ok(())
    }
}
