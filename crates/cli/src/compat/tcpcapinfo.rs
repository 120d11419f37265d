//! `netdyno tcpcapinfo`: what a classic pcap file holds, record by record, laid out as tcpcapinfo does.
//!
//! A look at the bytes of a perhaps broken file: so it reads the format itself rather than through `capture`, which
//! makes sense of what it reads and refuses the rest. Exit status 1 if the file is damaged.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;

const HELP: &str = "\
Lists what classic pcap files hold, record by record, as tcpcapinfo does: lengths, time stamps (hexadecimal), sums of
16-bit words, and what is wrong. `netdyno info` says more, and reads pcapng, too.

Usage: netdyno tcpcapinfo FILE...
";

/// The most that a record of a sound file holds.
const MAX_CAPTURED: u32 = 262_144;
/// Of a record that cannot be, tcpcapinfo sums up this much.
const DAMAGED: u64 = 65_535;

/// Runs `netdyno tcpcapinfo` with the words that follow its name; returns the exit status.
pub fn run(words: &[OsString]) -> Result<u8> {
    let mut files = Vec::new();
    for word in words {
        match word.to_str() {
            Some("-h" | "-H" | "-!" | "--help" | "--less-help" | "--more-help") => {
                crate::output::print(HELP)?;
                return Ok(0);
            }
            Some("-V" | "--version") => {
                let version = env!("CARGO_PKG_VERSION");
                crate::output::print(&format!("netdyno {version}, for tcpcapinfo 4.4.3 to 4.5.5\n"))?;
                return Ok(0);
            }
            Some(other) if other.len() > 1 && other.starts_with('-') => {
                bail!("there is no option {other}: tcpcapinfo takes files only")
            }
            _ => files.push(Path::new(word)),
        }
    }
    if files.is_empty() {
        bail!("which files? netdyno tcpcapinfo FILE...");
    }
    let mut out = crate::output::printer();
    let mut sound = true;
    for path in files {
        let listed = File::open(path).map_err(anyhow::Error::from).and_then(|file| {
            let size = file.metadata()?.len();
            list(BufReader::with_capacity(1 << 16, file), size, &mut out)
        });
        match listed {
            Ok(whole) => sound &= whole,
            Err(error) => {
                // What came before belongs to the answer, and should stand before the error.
                out.flush()?;
                return Err(error).with_context(|| path.display().to_string());
            }
        }
    }
    out.flush()?;
    Ok(u8::from(!sound))
}

/// Names of the formats by their first four bytes.
const MAGICS: [(u32, &str); 5] = [
    (0xa1b2_c3d4, "tcpdump"),
    (KUZNETZOV, "Kuznetzov"),
    (0xa1b2_34cd, "Fmesquita"),
    (0xa12b_3c4d, "Navtel"),
    (0xa1b2_3c4d, "Nsec"),
];
const KUZNETZOV: u32 = 0xa1b2_cd34;

/// Lists one file; true if it is sound.
fn list(mut file: impl Read, size: u64, out: &mut impl Write) -> Result<bool> {
    writeln!(out, "file size   = {size} bytes")?;
    let Some(form) = header(&mut file, out)? else { return Ok(false) };
    let Form { order, patched, snaplen } = form;
    let mut record = [0; 24];
    let head = &mut record[..if patched { 24 } else { 16 }];
    let mut last = (0, 0);
    for number in 1u64.. {
        let got = fill(&mut file, head)?;
        if got < head.len() {
            // A head that is cut off is not listed.
            return Ok(got == 0);
        }
        let [seconds, fraction, captured, length] = [0, 4, 8, 12].map(|at| order.u32(head, at));
        write!(out, "{number}\t{length:4}\t\t{captured:4}\t\t{seconds:x}.{fraction:x}")?;
        if patched {
            let (index, protocol, kind) = (order.u32(head, 16), order.u16(head, 20), head[22]);
            write!(out, "\t\t{index:4}\t{protocol:4}\t{kind:4}")?;
        }
        let too_big = captured > snaplen || (!patched && captured > MAX_CAPTURED);
        // Signed, as tcpcapinfo keeps them: of times beyond 2038 it says nothing.
        let time = (seconds as i32, fraction as i32);
        let backwards = last.0 > 0 && last.1 > 0 && time < last;
        last = time;
        let wanted = if too_big { u64::from(captured).min(DAMAGED) } else { u64::from(captured) };
        let Some(sum) = sum(&mut file, wanted)? else {
            writeln!(out, "File truncated!  Unable to jump to next packet.")?;
            return Ok(false);
        };
        let note = match (backwards, too_big) {
            (false, false) => "OK",
            (true, false) => "BAD_TS",
            (false, true) => "TOOBIG",
            (true, true) => "BAD_TS|TOOBIG",
        };
        writeln!(out, "\t{sum:x}\t{note}")?;
        if too_big {
            writeln!(
                out,
                "\n\nCapture file appears to be damaged or corrupt.\n\
                 Contains packet of size {}, bigger than snap length {snaplen}",
                captured as i32
            )?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the head of the file says of its records.
struct Form {
    order: Order,
    /// Kuznetzov's: records have six members more.
    patched: bool,
    snaplen: u32,
}

/// Prints the head of the file. `None`: its records cannot be read.
fn header(file: &mut impl Read, out: &mut impl Write) -> Result<Option<Form>> {
    let mut header = [0; 24];
    if fill(file, &mut header)? < header.len() {
        bail!("too short for the 24 bytes of a pcap header");
    }
    let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let known = MAGICS.iter().find_map(|(value, name)| match magic {
        magic if magic == *value => Some((*value, *name, false)),
        magic if magic == value.swap_bytes() => Some((*value, *name, true)),
        _ => None,
    });
    let Some((format, name, big_endian)) = known else {
        writeln!(out, "magic       = 0x{magic:08x} (unknown)")?;
        bail!("not a classic pcap file: `netdyno info` knows pcapng and compressed captures, too");
    };
    match big_endian {
        false => writeln!(out, "magic       = 0x{magic:08x} ({name}) (little-endian)")?,
        // Of this one format it says so by the byte order only.
        true if name == "Fmesquita" => writeln!(out, "magic       = 0x{magic:08x} ({name}) (big-endian)")?,
        true => writeln!(out, "magic       = 0x{magic:08x} ({name}/swapped) (big-endian)")?,
    }
    let order = Order { big_endian };
    let (major, minor) = (order.u16(&header, 4), order.u16(&header, 6));
    let snaplen = order.u32(&header, 16);
    writeln!(out, "version     = {major}.{minor}")?;
    writeln!(out, "thiszone    = 0x{:08x}", order.u32(&header, 8))?;
    writeln!(out, "sigfigs     = 0x{:08x}", order.u32(&header, 12))?;
    writeln!(out, "snaplen     = {snaplen}")?;
    writeln!(out, "linktype    = 0x{:08x}", order.u32(&header, 20))?;
    if major != 2 && minor != 4 {
        writeln!(out, "Sorry, we only support file format version 2.4")?;
        return Ok(None);
    }
    let patched = format == KUZNETZOV;
    match patched {
        true => {
            writeln!(out, "Packet\tOrigLen\t\tCaplen\t\tTimestamp\t\tIndex\tProto\tPktType\tPktCsum\tNote")?
        }
        false => writeln!(out, "Packet\tOrigLen\t\tCaplen\t\tTimestamp\tCsum\tNote")?,
    }
    Ok(Some(Form { order, patched, snaplen }))
}

#[derive(Clone, Copy)]
struct Order {
    big_endian: bool,
}

impl Order {
    /// Of a header whose length is known; zero beyond its end.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(word) if self.big_endian => u32::from_be_bytes(*word),
            Some(word) => u32::from_le_bytes(*word),
            None => 0,
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(word) if self.big_endian => u16::from_be_bytes(*word),
            Some(word) => u16::from_le_bytes(*word),
            None => 0,
        }
    }
}

/// Reads as much as there is; how much that was.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}

/// The sum of the next bytes as little-endian 16-bit words, carries and all; `None` if there are fewer.
fn sum(file: &mut impl Read, wanted: u64) -> Result<Option<u32>> {
    let mut sum = 0u32;
    let mut left = wanted;
    let mut buffer = [0; 8192];
    while left > 0 {
        let part = left.min(buffer.len() as u64) as usize;
        if fill(file, &mut buffer[..part])? < part {
            return Ok(None);
        }
        let (words, rest) = buffer[..part].as_chunks::<2>();
        for word in words {
            sum = sum.wrapping_add(u32::from(u16::from_le_bytes(*word)));
        }
        sum = sum.wrapping_add(rest.first().map_or(0, |byte| u32::from(*byte)));
        left -= part as u64;
    }
    Ok(Some(sum))
}
