//! One pass over a capture: reads a frame, edits it, writes it, in memory that no capture makes grow.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::{FileFormat, FileWriter, Reader};
use wire::LinkType;

use crate::fragment::Rules;

use super::frame::{Verdict, edit};
use super::link;
use super::plan::{NewHeader, Plan, Side};
use super::uses::{Ends, Uses};
use super::{EditError, Frame, Lacking, fcs};

/// What a pass did, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Read.
    pub read: u64,
    /// Written, edited or not.
    pub written: u64,
    /// Of those written: without headers that could be edited.
    pub unsupported: u64,
    /// Left out: they could not be given the link header of the others.
    pub foreign: u64,
    /// Read, and left out.
    pub left: u64,
    /// Of those written: their link header has no source address, and one was to be set.
    pub no_source: u64,
    /// The same of the destination address.
    pub no_destination: u64,
    /// The same of any address, to be replaced or scrambled.
    pub no_addresses: u64,
    /// Of those written: no VLAN tag can follow their link header, and one was to be put there or taken off.
    pub no_tag: u64,
}

impl Totals {
    fn lack(&mut self, lacking: Lacking) {
        self.no_source += u64::from(lacking.source);
        self.no_destination += u64::from(lacking.destination);
        self.no_addresses += u64::from(lacking.addresses);
        self.no_tag += u64::from(lacking.tag);
    }
}

/// What comes out.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file; it appears under its name only when the pass is done.
    pub path: &'a Path,
    /// Its format.
    pub format: FileFormat,
    /// The link type of frames afterwards: Ethernet, what [`Plan::header`] is, or `None` to leave it.
    pub link: Option<LinkType>,
    /// The snap length to write into the header of a pcap file; `None` for the greatest.
    pub snaplen: Option<u32>,
    /// How many frames there must be, and who says so: a cache file that knows more or fewer is another capture's.
    pub known: Option<(u64, &'a Path)>,
    /// What each edited frame becomes.
    pub fragment: Option<Fragmenting<'a>>,
    /// Where it is counted what maps found.
    pub uses: Option<&'a RefCell<Uses>>,
}

/// Rules that make several frames of one, and whose frames they are for.
#[derive(Debug, Clone, Copy)]
pub struct Fragmenting<'a> {
    /// The rules.
    pub rules: &'a Rules,
    /// Whether they are for frames of the client.
    pub client: bool,
    /// Whether they are for frames of the server.
    pub server: bool,
}

impl Target<'_> {
    /// That as many frames were read as there must be; fewer may come of a capture that is cut short.
    fn has_them_all(&self, read: u64, input: &Reader) -> Result<(), EditError> {
        match self.known {
            Some((frames, cache)) if read > frames || read < frames && input.notes().cut_short.is_none() => {
                let (cache, file) = (cache.display().to_string(), input.name().to_owned());
                Err(EditError::OtherCache { cache, frames, file, read })
            }
            _ => Ok(()),
        }
    }
}

impl Fragmenting<'_> {
    fn is_for(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// Edits the frames of `input` into `target`. `side` says which side sent the frame with a number from 1, or `None`
/// for a frame to be written as it is. `stop` ends the pass early, with an error and without a file.
///
/// # Errors
/// The capture cannot be read or edited, the target cannot be written, or `stop` was set.
pub fn run(
    input: &mut Reader,
    target: Target<'_>,
    plan: &Plan,
    mut side: impl FnMut(u64) -> Option<Side>,
    stop: &AtomicBool,
) -> Result<Totals, EditError> {
    let mut totals = Totals::default();
    let mut output: Option<Output> = None;
    let mut frame = Frame::default();
    let mut stripped = None;
    let name = input.name().to_owned();
    if let Some(interface) = input.interfaces().first() {
        check(interface.link, target.link, plan, &name)?;
    }
    let mut checked = None;
    let known = target.known.map_or(u64::MAX, |(frames, _)| frames);
    while let Some(record) = input.next_record()? {
        if totals.read >= known {
            // Too many; how many is told.
            totals.read += 1;
            continue;
        }
        if record.number % 1024 == 1 && stop.load(Ordering::Relaxed) {
            return Err(EditError::Stopped { file: target.path.display().to_string() });
        }
        let link = record.link;
        if checked != Some(link) {
            check(link, target.link, plan, &name)?;
            checked = Some(link);
        }
        let out = match &mut output {
            Some(open) => open,
            None => {
                let to = target.link.unwrap_or(link);
                // One that another header does not have, or that was to be stripped, ends with it.
                let keeps_fcs =
                    record.fcs_len == fcs::LEN && to == link && plan.header.is_none() && !plan.strip_fcs;
                output.insert(Output::create(target, to, keeps_fcs)?)
            }
        };
        if target.link.is_none() && link != out.link {
            let (record, first) = (record.number, out.link);
            return Err(EditError::MixedLinks { file: name, record, link, first });
        }
        let is_whole = record.data.len() == record.wire_len as usize;
        let fcs_error = if is_whole { fcs::error(record.data, record.fcs) } else { [0; fcs::LEN] };
        frame.data.clear();
        frame.data.extend_from_slice(record.data);
        frame.wire_len = record.wire_len;
        totals.read += 1;
        let side = side(record.number);
        let before = target.uses.and_then(|_| Ends::of(link, &frame.data));
        let verdict = match side {
            Some(side) if record.fcs_len > 0 && plan.strip_fcs => {
                // The reader has taken it off.
                let plan = stripped.get_or_insert_with(|| Plan { strip_fcs: false, ..plan.clone() });
                edit(&mut frame, plan, link, out.link, side)
            }
            Some(side) => edit(&mut frame, plan, link, out.link, side),
            None => Verdict::Edited,
        };
        if let (Some(uses), Some(before), Some(side), Verdict::Edited) = (target.uses, before, side, verdict)
        {
            let output = out.link;
            uses.borrow_mut().count(plan, side, before, || Ends::of(output, &frame.data));
        }
        // A file of Ethernet frames must hold nothing else.
        let foreign = verdict == Verdict::Unsupported
            && link != out.link
            && !(plan.keep_foreign && link == LinkType::ETHERNET);
        totals.foreign += u64::from(foreign);
        totals.unsupported += u64::from(verdict == Verdict::Unsupported && !foreign);
        if verdict == Verdict::Left || foreign {
            totals.left += 1;
            continue;
        }
        if let (Some(fragment), Some(side), Verdict::Edited) = (&target.fragment, side, verdict)
            && fragment.is_for(side)
            && let Some(network) = link::network(out.link, &frame.data)
        {
            let pieces = fragment.rules.apply(&frame.data, network, record.number);
            let pieces =
                pieces.map_err(|why| EditError::Pieces { file: name.clone(), record: record.number, why })?;
            totals.left += u64::from(pieces.is_empty());
            totals.written += out.write_pieces(record.time_ns, pieces, &frame, fcs_error)?;
            continue;
        }
        if side.is_some() {
            totals.lack(frame.lacking);
        }
        out.write(record.time_ns, &mut frame.data, frame.wire_len, fcs_error)?;
        totals.written += 1;
    }
    target.has_them_all(totals.read, input)?;
    output.map_or_else(|| Output::empty(target, input), Ok)?.writer.finish()?;
    Ok(totals)
}

/// The file that is written.
struct Output {
    writer: FileWriter,
    link: LinkType,
    /// Frames end with their frame check sequence, as those that are read.
    keeps_fcs: bool,
}

impl Output {
    fn create(target: Target<'_>, link: LinkType, keeps_fcs: bool) -> Result<Output, EditError> {
        let fcs_len = if keeps_fcs { fcs::LEN as u8 } else { 0 };
        let mut writer = FileWriter::create_with_fcs(target.path, target.format, link, fcs_len)?;
        if let Some(snaplen) = target.snaplen {
            writer.set_snaplen(snaplen);
        }
        Ok(Output { writer, link, keeps_fcs })
    }

    /// For an input without frames.
    fn empty(target: Target<'_>, input: &Reader) -> Result<Output, EditError> {
        let link = target.link.or(input.interfaces().first().map(|interface| interface.link));
        Output::create(target, link.unwrap_or(LinkType::ETHERNET), false)
    }

    /// Writes a frame; `error` is by what its frame check sequence was wrong. One that was captured in part ends before it.
    fn write(
        &mut self,
        time_ns: u64,
        data: &mut Vec<u8>,
        mut wire_len: u32,
        error: [u8; fcs::LEN],
    ) -> Result<(), EditError> {
        if self.keeps_fcs {
            if data.len() == wire_len as usize {
                let fcs = fcs::corrected(data, error);
                data.extend(fcs);
            }
            wire_len = wire_len.saturating_add(fcs::LEN as u32);
        }
        Ok(self.writer.write(time_ns, data, wire_len)?)
    }

    /// Writes what became of a frame, and says how many that are. Only one that is the whole frame still keeps the error of its
    /// frame check sequence.
    fn write_pieces(
        &mut self,
        time_ns: u64,
        pieces: Vec<Vec<u8>>,
        of: &Frame,
        error: [u8; fcs::LEN],
    ) -> Result<u64, EditError> {
        let count = pieces.len() as u64;
        for mut piece in pieces {
            let (wire_len, error) = match piece == of.data {
                true => (of.wire_len, error),
                false => (piece.len() as u32, [0; fcs::LEN]),
            };
            self.write(time_ns, &mut piece, wire_len, error)?;
        }
        Ok(count)
    }
}

/// Whether frames of type `link`, of `file`, can be edited as the plan has it, into ones of type `to` (`None`: the same).
///
/// # Errors
/// They cannot: their headers cannot be read, or the plan lacks addresses for headers that are to be made.
pub fn check(link: LinkType, to: Option<LinkType>, plan: &Plan, file: &str) -> Result<(), EditError> {
    let file = || file.to_owned();
    if !link.is_readable() {
        return Err(EditError::UnreadableLink { file: file(), link });
    }
    let stays = to.is_none_or(|to| to == link) && plan.header.is_none();
    if link.is_wifi() && stays && plan.edits_macs() {
        return Err(EditError::UneditedAddresses { file: file(), link });
    }
    match to {
        Some(LinkType::ETHERNET | LinkType::JUNIPER_ETHERNET)
            if link != LinkType::ETHERNET
                && matches!(plan.header, None | Some(NewHeader::JuniperEthernet)) =>
        {
            let source = plan.source_mac.client.is_some() || link::has_sender(link);
            let destination = plan.destination_mac.client.is_some() || link::has_receiver(link);
            let missing = match (source, destination) {
                (true, true) => return Ok(()),
                (true, false) => "the destination address",
                (false, true) => "the source address",
                (false, false) => "the destination address and the source address",
            };
            Err(EditError::MissingMac { file: file(), link, missing })
        }
        _ => Ok(()),
    }
}
