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
use super::{EditError, Frame};

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
    let mut output: Option<(FileWriter, LinkType)> = None;
    let mut frame = Frame::default();
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
        let (writer, output_link) = match &mut output {
            Some(open) => open,
            None => {
                let link = target.link.unwrap_or(link);
                output.insert((create(target, link)?, link))
            }
        };
        if target.link.is_none() && link != *output_link {
            return Err(EditError::MixedLinks {
                file: name,
                record: record.number,
                link,
                first: *output_link,
            });
        }
        frame.data.clear();
        frame.data.extend_from_slice(record.data);
        frame.wire_len = record.wire_len;
        totals.read += 1;
        let side = side(record.number);
        let before = target.uses.and_then(|_| Ends::of(link, &frame.data));
        let verdict = match side {
            Some(side) => edit(&mut frame, plan, link, *output_link, side),
            None => Verdict::Edited,
        };
        if let (Some(uses), Some(before), Some(side), Verdict::Edited) = (target.uses, before, side, verdict)
        {
            let output = *output_link;
            uses.borrow_mut().count(plan, side, before, || Ends::of(output, &frame.data));
        }
        // A file of Ethernet frames must hold nothing else.
        let foreign = verdict == Verdict::Unsupported
            && link != *output_link
            && !(plan.keep_foreign && link == LinkType::ETHERNET);
        totals.foreign += u64::from(foreign);
        totals.unsupported += u64::from(verdict == Verdict::Unsupported && !foreign);
        if verdict == Verdict::Left || foreign {
            totals.left += 1;
            continue;
        }
        if let (Some(fragment), Some(side), Verdict::Edited) = (&target.fragment, side, verdict)
            && fragment.is_for(side)
            && let Some(network) = link::network(*output_link, &frame.data)
        {
            let pieces = fragment.rules.apply(&frame.data, network, record.number);
            let pieces =
                pieces.map_err(|why| EditError::Pieces { file: name.clone(), record: record.number, why })?;
            totals.left += u64::from(pieces.is_empty());
            for piece in pieces {
                let wire_len = if piece == frame.data { frame.wire_len } else { piece.len() as u32 };
                writer.write(record.time_ns, &piece, wire_len)?;
                totals.written += 1;
            }
            continue;
        }
        writer.write(record.time_ns, &frame.data, frame.wire_len)?;
        totals.written += 1;
    }
    if let Some((frames, cache)) = target.known
        && (totals.read > frames || totals.read < frames && input.notes().cut_short.is_none())
    {
        return Err(EditError::OtherCache {
            cache: cache.display().to_string(),
            frames,
            file: name,
            read: totals.read,
        });
    }
    let (writer, _) = match output {
        Some(open) => open,
        None => {
            let link = target.link.or(input.interfaces().first().map(|interface| interface.link));
            let link = link.unwrap_or(LinkType::ETHERNET);
            (create(target, link)?, link)
        }
    };
    writer.finish()?;
    Ok(totals)
}

fn create(target: Target<'_>, link: LinkType) -> Result<FileWriter, EditError> {
    let mut writer = FileWriter::create(target.path, target.format, link)?;
    if let Some(snaplen) = target.snaplen {
        writer.set_snaplen(snaplen);
    }
    Ok(writer)
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
