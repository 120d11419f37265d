//! Writing captures: pcap in nano- or microseconds, and pcapng with any number of interfaces.
//!
//! [`Writer::create`] is for files: format and compression follow from the name, and the file appears under it only
//! when finished. [`Writer::new`] writes to anything.

use std::io::{self, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use wire::LinkType;

use crate::error::CaptureError;
use crate::{AtomicFile, Interface, MAX_CAPTURED, pcap, pcapng, zst};

/// Which format to write. All are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// pcap with microseconds: read by everything, loses the last three digits of the time.
    PcapMicroseconds,
    /// pcap with nanoseconds: read by all that is not ancient.
    PcapNanoseconds,
    /// pcapng with nanoseconds.
    Pcapng,
}

impl FileFormat {
    /// pcapng for names with `.pcapng` or `.ntar` (before `.gz` or `.zst`), else pcap with nanoseconds.
    pub fn of_name(path: &Path) -> FileFormat {
        let name = path.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        if name.ends_with(".pcapng") || name.ends_with(".ntar") {
            FileFormat::Pcapng
        } else {
            FileFormat::PcapNanoseconds
        }
    }
}

/// Where a pcapng capture is from. What is empty is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// Of whoever makes it.
    pub comment: String,
    /// Of the machine.
    pub hardware: String,
    /// Its system.
    pub system: String,
    /// What writes it.
    pub application: String,
}

/// What became of an interface's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When it began, in nanoseconds since 1970.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Packets that the interface had.
    pub received: u64,
    /// Those of them that there was no room for.
    pub dropped: u64,
}

/// An option of a pcapng block.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX) & !3).unwrap_or(value);
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Bytes gathered before they are written.
const BATCH: usize = 256 * 1024;
/// Whole pages are written, from whole pages: a few bytes beside, the processor takes what the kernel reads for what it
/// has just written (the low twelve bits of both addresses being nearly the same), and copying takes longer.
const PAGE: usize = 4096;

/// A capture being written.
pub struct Writer<W: Write> {
    output: W,
    name: String,
    format: FileFormat,
    interfaces: u32,
    records: u64,
    /// Behind the first `pad` bytes, which bring the rest to the start of a page.
    batch: Vec<u8>,
    pad: usize,
    torn: Option<Torn>,
}

/// What became of a batch of pcapng blocks that could be written in part only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Bytes that were written behind the last whole block.
    pub(crate) behind: u64,
    /// Packets that did not get into the file whole, by interface: how many, and their captured bytes.
    pub(crate) lost: Vec<(u64, u64)>,
}

impl Torn {
    /// Of blocks, the first `written` bytes of which got into the file.
    fn of(blocks: &[u8], written: usize) -> Torn {
        let mut torn = Torn::default();
        let (mut at, mut whole) = (0, 0);
        while let Some(block) = blocks.get(at..).filter(|rest| rest.len() >= 12) {
            let length = pcap::u32_at(block, 4, false) as usize;
            let end = at + length.max(12);
            if end <= written {
                whole = end;
            } else if pcap::u32_at(block, 0, false) == pcapng::ENHANCED_PACKET {
                let interface = pcap::u32_at(block, 8, false) as usize;
                if torn.lost.len() <= interface {
                    torn.lost.resize(interface + 1, (0, 0));
                }
                if let Some((packets, bytes)) = torn.lost.get_mut(interface) {
                    *packets += 1;
                    *bytes += u64::from(pcap::u32_at(block, 20, false));
                }
            }
            at = end;
        }
        torn.behind = (written - whole) as u64;
        torn
    }
}

/// A capture file being written, see [`Writer::create`].
pub type FileWriter = Writer<Output>;

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a capture of one interface with packets of type `link`. Nothing is on its way before
    /// [`finish`](Self::finish) or a full batch.
    pub fn new(output: W, format: FileFormat, link: LinkType) -> Writer<W> {
        Writer::with_fcs(output, format, link, 0)
    }

    /// The same of packets that end with a frame check sequence of so many bytes (an even number up to 14), which the file
    /// says.
    pub fn with_fcs(output: W, format: FileFormat, link: LinkType, fcs_len: u8) -> Writer<W> {
        let mut writer = Writer::without_interface(output, format);
        match format {
            FileFormat::Pcapng => {
                writer.describe(&Interface { link, fcs_len, ..Interface::default() });
            }
            _ => writer.pcap_header(link, fcs_len),
        }
        writer
    }

    /// Starts a pcapng capture that says where it is from, without interfaces as yet.
    pub fn of_section(output: W, section: &Section) -> Writer<W> {
        let mut writer = Writer::without_interface(output, FileFormat::Pcapng);
        writer.batch.truncate(writer.pad);
        let mut body = Vec::new();
        body.extend(pcapng::BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        // Length of the section: not told.
        body.extend(u64::MAX.to_le_bytes());
        let told = [
            (pcapng::COMMENT, &section.comment),
            (pcapng::SHB_HARDWARE, &section.hardware),
            (pcapng::SHB_OS, &section.system),
            (pcapng::SHB_APPLICATION, &section.application),
        ];
        for (code, text) in told.iter().filter(|(_, text)| !text.is_empty()) {
            option(&mut body, *code, text.as_bytes());
        }
        option(&mut body, 0, &[]);
        writer.block(pcapng::SECTION_HEADER, &body);
        writer
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = (12 + body.len() as u32).to_le_bytes();
        self.batch.extend(kind.to_le_bytes());
        self.batch.extend(length);
        self.batch.extend(body);
        self.batch.extend(length);
    }

    fn without_interface(output: W, format: FileFormat) -> Writer<W> {
        let mut batch: Vec<u8> = Vec::with_capacity(PAGE + BATCH + MAX_CAPTURED as usize + 4096);
        let pad = batch.as_ptr().align_offset(PAGE).min(PAGE);
        batch.resize(pad, 0);
        if format == FileFormat::Pcapng {
            batch.extend(pcapng::SECTION_HEADER.to_le_bytes());
            batch.extend(28u32.to_le_bytes());
            batch.extend(pcapng::BYTE_ORDER.to_le_bytes());
            batch.extend([1, 0, 0, 0]);
            // Length of the section: not told.
            batch.extend(u64::MAX.to_le_bytes());
            batch.extend(28u32.to_le_bytes());
        }
        Writer { output, name: "output".into(), format, interfaces: 0, records: 0, batch, pad, torn: None }
    }

    fn pcap_header(&mut self, link: LinkType, fcs_len: u8) {
        let magic = match self.format {
            FileFormat::PcapMicroseconds => pcap::MICROSECONDS,
            _ => pcap::NANOSECONDS,
        };
        self.batch.extend(magic.to_le_bytes());
        self.batch.extend([2, 0, 4, 0]);
        self.batch.extend([0; 8]);
        self.batch.extend(MAX_CAPTURED.to_le_bytes());
        let fcs = if fcs_len > 0 { pcap::HAS_FCS | u32::from((fcs_len / 2) & 15) << 28 } else { 0 };
        self.batch.extend((u32::from(link.0) | fcs).to_le_bytes());
        self.interfaces = 1;
    }

    /// States another snap length in the header of a pcap file than the greatest, which is what stands there: for
    /// files that must be another program's byte for byte. Frames are not held to it. Nothing happens once the header
    /// has left, or for pcapng.
    pub fn set_snaplen(&mut self, snaplen: u32) {
        if self.records == 0
            && self.format != FileFormat::Pcapng
            && let Some(field) = self.batch.get_mut(self.pad + 16..self.pad + 20)
        {
            field.copy_from_slice(&snaplen.to_le_bytes());
        }
    }

    /// Has the header of a pcap file say that times are microseconds, although nanoseconds are written: for files that
    /// must be byte for byte those of tcpreplay 4.5, which does so. Nothing happens once the header has left, or for
    /// pcapng.
    pub fn claim_microseconds(&mut self) {
        if self.records == 0
            && self.format == FileFormat::PcapNanoseconds
            && let Some(field) = self.batch.get_mut(self.pad..self.pad + 4)
        {
            field.copy_from_slice(&pcap::MICROSECONDS.to_le_bytes());
        }
    }

    /// Another interface, for [`write_on`](Self::write_on); its number. Name, speed, link type, snap length and
    /// length of the frame check sequence are kept; times are always nanoseconds. Only pcapng can have more than one.
    ///
    /// # Errors
    /// The format has one interface only, or it cannot be written.
    pub fn add_interface(&mut self, interface: &Interface) -> Result<u32, CaptureError> {
        if self.format != FileFormat::Pcapng {
            let what = "a pcap file has one interface; write pcapng instead".to_owned();
            return Err(CaptureError::Unwritable { file: self.name.clone(), record: self.records + 1, what });
        }
        Ok(self.describe(interface))
    }

    fn describe(&mut self, interface: &Interface) -> u32 {
        let mut body = vec![];
        body.extend(interface.link.0.to_le_bytes());
        body.extend([0; 2]);
        body.extend(interface.snaplen.to_le_bytes());
        if let Some(name) = &interface.name {
            option(&mut body, pcapng::IF_NAME, name.as_bytes().get(..255).unwrap_or(name.as_bytes()));
        }
        if let Some(speed) = interface.speed_bps {
            option(&mut body, pcapng::IF_SPEED, &speed.to_le_bytes());
        }
        option(&mut body, pcapng::IF_TSRESOL, &[9]);
        if interface.fcs_len > 0 {
            option(&mut body, pcapng::IF_FCSLEN, &[interface.fcs_len]);
        }
        option(&mut body, 0, &[]);
        self.block(pcapng::INTERFACE_DESCRIPTION, &body);
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Writes a packet of the first interface: its time since 1970, the bytes captured, its length on the wire.
    ///
    /// # Errors
    /// It cannot be written, or a packet is longer than a record may be.
    #[inline]
    pub fn write(&mut self, time_ns: u64, data: &[u8], wire_len: u32) -> Result<(), CaptureError> {
        self.write_on(0, time_ns, data, wire_len)
    }

    /// Writes a packet of the interface with that number.
    ///
    /// # Errors
    /// As of [`write`](Self::write); or there is no such interface.
    #[inline]
    pub fn write_on(
        &mut self,
        interface: u32,
        time_ns: u64,
        data: &[u8],
        wire_len: u32,
    ) -> Result<(), CaptureError> {
        self.records += 1;
        if data.len() > MAX_CAPTURED as usize {
            return Err(self.unwritable(format!(
                "it has {} bytes, and a capture may have {MAX_CAPTURED} of a packet; cut it",
                data.len()
            )));
        }
        if interface >= self.interfaces {
            return Err(self.unwritable(format!(
                "it is of interface {interface}, and {} are described; add the interface first",
                self.interfaces
            )));
        }
        let captured = data.len() as u32;
        if self.format == FileFormat::Pcapng {
            let length = 32 + captured.next_multiple_of(4);
            let words = [
                pcapng::ENHANCED_PACKET,
                length,
                interface,
                (time_ns >> 32) as u32,
                time_ns as u32,
                captured,
                wire_len,
            ];
            self.words(words);
            self.batch.extend_from_slice(data);
            self.batch.extend_from_slice([0; 3].get(..(length - 32 - captured) as usize).unwrap_or(&[]));
            self.batch.extend_from_slice(&length.to_le_bytes());
        } else {
            let Ok(seconds) = u32::try_from(time_ns / 1_000_000_000) else {
                return Err(
                    self.unwritable("its time is behind the year 2106, where pcap ends; write pcapng".into())
                );
            };
            let fraction = (time_ns % 1_000_000_000) as u32;
            let fraction =
                if self.format == FileFormat::PcapMicroseconds { fraction / 1000 } else { fraction };
            let words = [seconds, fraction, captured, wire_len];
            self.words(words);
            self.batch.extend_from_slice(data);
        }
        if self.batch.len() >= self.pad + BATCH { self.flush_batch() } else { Ok(()) }
    }

    /// Writes a packet with a comment into a pcapng capture.
    ///
    /// # Errors
    /// As of [`write`](Self::write); or the format has no comments.
    pub fn write_noted(
        &mut self,
        interface: u32,
        time_ns: u64,
        data: &[u8],
        wire_len: u32,
        comment: &str,
    ) -> Result<(), CaptureError> {
        self.records += 1;
        if self.format != FileFormat::Pcapng || interface >= self.interfaces {
            return Err(
                self.unwritable("comments are of pcapng's packets alone; write pcapng instead".into())
            );
        }
        let mut body = Vec::with_capacity(data.len() + 64);
        let captured = data.len() as u32;
        let words = [interface, (time_ns >> 32) as u32, time_ns as u32, captured, wire_len];
        words.iter().for_each(|word| body.extend(word.to_le_bytes()));
        body.extend_from_slice(data);
        body.resize(body.len().next_multiple_of(4), 0);
        option(&mut body, pcapng::COMMENT, comment.as_bytes());
        option(&mut body, 0, &[]);
        self.block(pcapng::ENHANCED_PACKET, &body);
        if self.batch.len() >= self.pad + BATCH { self.flush_batch() } else { Ok(()) }
    }

    /// Says at the end of a pcapng capture what became of an interface's packets.
    pub fn statistics(&mut self, interface: u32, told: &Statistics) {
        let high_low = |time: u64| [(time >> 32) as u32, time as u32].map(u32::to_le_bytes).concat();
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(high_low(told.ended_ns));
        option(&mut body, pcapng::ISB_STARTTIME, &high_low(told.begun_ns));
        option(&mut body, pcapng::ISB_ENDTIME, &high_low(told.ended_ns));
        option(&mut body, pcapng::ISB_IFRECV, &told.received.to_le_bytes());
        option(&mut body, pcapng::ISB_IFDROP, &told.dropped.to_le_bytes());
        option(&mut body, 0, &[]);
        self.block(pcapng::INTERFACE_STATISTICS, &body);
    }

    /// Bytes that wait for being written.
    pub fn waiting(&self) -> usize {
        self.batch.len() - self.pad
    }

    /// Writes all there is by now, whole blocks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.flush_first(usize::MAX / 2)?;
        self.output.flush().map_err(|source| CaptureError::writing(self.name.clone(), source))
    }

    /// What it is called in errors.
    pub fn named(self, name: String) -> Writer<W> {
        Writer { name, ..self }
    }

    #[inline(always)]
    fn words<const N: usize>(&mut self, words: [u32; N]) {
        let mut bytes = [[0; 4]; N];
        for (bytes, word) in bytes.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        self.batch.extend_from_slice(bytes.as_flattened());
    }

    #[cold]
    fn unwritable(&self, what: String) -> CaptureError {
        CaptureError::Unwritable { file: self.name.clone(), record: self.records, what }
    }

    #[inline(never)]
    fn flush_batch(&mut self) -> Result<(), CaptureError> {
        let pages = (self.batch.len() - self.pad) / PAGE * PAGE;
        self.flush_first(pages)
    }

    fn flush_first(&mut self, count: usize) -> Result<(), CaptureError> {
        let range = self.pad..self.batch.len().min(self.pad + count);
        let (written, result) = write_some(&mut self.output, self.batch.get(range.clone()).unwrap_or(&[]));
        if result.is_err() && self.format == FileFormat::Pcapng {
            self.torn = Some(Torn::of(self.batch.get(self.pad..).unwrap_or(&[]), written));
        }
        self.batch.drain(range);
        result.map_err(|source| CaptureError::writing(self.name.clone(), source))
    }

    /// What a failed write left half done, once, and where it goes.
    pub(crate) fn take_torn(&mut self) -> Option<(Torn, &mut W)> {
        self.torn.take().map(|torn| (torn, &mut self.output))
    }

    /// How many packets were written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes what is left and gives the output back. Without it the capture is incomplete.
    ///
    /// # Errors
    /// What is left cannot be written.
    pub fn into_inner(mut self) -> Result<W, CaptureError> {
        self.flush_first(usize::MAX / 2)?;
        self.output.flush().map_err(|source| CaptureError::writing(self.name.clone(), source))?;
        Ok(self.output)
    }
}

/// Writes bytes, and says how many were written where not all were.
fn write_some(output: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match output.write(rest) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

/// Where a capture file goes, and through what.
#[derive(Debug)]
pub struct Output(Kind);

enum Kind {
    Plain(Target),
    Gzip(GzEncoder<Target>),
    Zstd(zst::Encoder<Target>),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Plain(_) => "plain",
            Kind::Gzip(_) => "gzip",
            Kind::Zstd(_) => "zstd",
        })
    }
}

enum Target {
    File(AtomicFile),
    Stdout(io::Stdout),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(file) => file.write(bytes),
            Target::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File(file) => file.flush(),
            Target::Stdout(stdout) => stdout.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(target) => target.write(bytes),
            Kind::Gzip(encoder) => encoder.write(bytes),
            Kind::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(target) => target.flush(),
            // Flushing an encoder would end a block early; finish() does what is needed.
            Kind::Gzip(_) | Kind::Zstd(_) => Ok(()),
        }
    }
}

impl FileWriter {
    /// Starts a capture file with one interface. A name that ends in `.gz` or `.zst` is compressed; `-` is
    /// standard output.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, format: FileFormat, link: LinkType) -> Result<FileWriter, CaptureError> {
        FileWriter::create_with_fcs(path, format, link, 0)
    }

    /// The same of packets that end with a frame check sequence, see [`Writer::with_fcs`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create_with_fcs(
        path: &Path,
        format: FileFormat,
        link: LinkType,
        fcs_len: u8,
    ) -> Result<FileWriter, CaptureError> {
        let output = Output::create(path)
            .map_err(|source| CaptureError::writing(path.display().to_string(), source))?;
        let mut writer = Writer::with_fcs(output, format, link, fcs_len);
        writer.name = path.display().to_string();
        Ok(writer)
    }

    /// Writes what is left and gives the file its name. Dropping a writer instead leaves no file.
    ///
    /// # Errors
    /// What is left cannot be written. Then there is no file of that name, or the one that was there before.
    pub fn finish(self) -> Result<(), CaptureError> {
        let file = self.name.clone();
        self.into_inner()?.finish().map_err(|source| CaptureError::writing(file, source))
    }
}

impl Output {
    fn create(path: &Path) -> io::Result<Output> {
        let target = if path.as_os_str() == "-" {
            Target::Stdout(io::stdout())
        } else {
            Target::File(AtomicFile::create(path)?)
        };
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        Ok(Output(match extension.as_deref() {
            // Fast settings: a capture is written while traffic waits.
            Some("gz") => Kind::Gzip(GzEncoder::new(target, flate2::Compression::fast())),
            Some("zst") => Kind::Zstd(zst::encoder(target)?),
            _ => Kind::Plain(target),
        }))
    }

    fn finish(self) -> io::Result<()> {
        let target = match self.0 {
            Kind::Plain(target) => target,
            Kind::Gzip(encoder) => encoder.finish()?,
            Kind::Zstd(encoder) => encoder.finish()?,
        };
        match target {
            Target::File(file) => file.finish(),
            Target::Stdout(mut stdout) => stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    /// Takes so many bytes, in parts, and then is full.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(1000).min(self.1 - self.0.len());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_did_not_get_into_a_full_file_is_known_to_the_packet() {
        for room in (200..6000).step_by(37) {
            let mut writer = Writer::of_section(Full(Vec::new(), room), &Section::default());
            for _ in 0..2 {
                writer.add_interface(&Interface::default()).unwrap();
            }
            for number in 0..60 {
                writer.write_on(number % 2, u64::from(number), &[7; 61], 61).unwrap();
                writer.write_noted(1, u64::from(number), &[7; 3], 61, "noted").unwrap();
            }
            let whole = writer.waiting();
            let told = writer.flush();
            let Some((torn, file)) = writer.take_torn() else {
                assert!(told.is_ok() && room >= whole, "{room}");
                continue;
            };
            assert!(told.is_err() && room < whole, "{room}");
            let sound = file.0[..room - torn.behind as usize].to_vec();
            let mut reader = Reader::from_read(Box::new(io::Cursor::new(sound)), "full").unwrap();
            let mut there = [(0, 0); 2];
            while let Some(record) = reader.next_record().expect("whole blocks") {
                let of = &mut there[record.interface as usize];
                *of = (of.0 + 1, of.1 + record.data.len() as u64);
            }
            let lost = |at: usize| torn.lost.get(at).copied().unwrap_or_default();
            let all = [0, 1].map(|at| (there[at].0 + lost(at).0, there[at].1 + lost(at).1));
            assert_eq!(all, [(30, 30 * 61), (90, 30 * 61 + 60 * 3)], "{room}");
        }
    }
}
