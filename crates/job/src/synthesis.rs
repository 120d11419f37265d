//! Captures that are made: statistics taken of one, and frames made by statistics written as another. What `netdyno synth` does;
//! the statistics and the frames themselves are crate `synth`'s.

use anyhow::{Context as _, Result, bail};
use capture::{FileFormat, Reader, Writer};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use synth::Synth;
use synth::like::{FlowProfile, Like, Measure, Seen};
use wire::LinkType;

/// The statistics of a capture, and what is not in them.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The statistics.
    pub profile: FlowProfile,
    /// Frames of conversations beyond the first [`synth::like::CONVERSATIONS`].
    pub left_out: u64,
    /// Frames that count with another length than they had: a look-alike's frames have Ethernet headers, and room for those of IP and
    /// its transport.
    pub resized: u64,
    /// Why only the first part of the capture was read, where it is damaged.
    pub cut_short: Option<String>,
}

/// Takes the statistics of a capture. Whoever sets `stop` ends it.
///
/// # Errors
/// It cannot be read, has nothing to imitate, or was stopped.
pub fn measure(reader: &mut Reader, stop: &AtomicBool) -> Result<Measured> {
    let mut measure = Measure::new(capture::info::server_port);
    while let Some(record) = reader.next_record()? {
        if stop.load(Relaxed) {
            bail!("stopped by a signal: nothing was written");
        }
        measure.add(&Seen {
            link: record.link,
            bytes: record.data,
            length: record.wire_len,
            time_ns: record.time_ns,
        });
    }
    let (left_out, resized) = (measure.left_out(), measure.resized());
    let cut_short = reader.notes().cut_short.as_ref().map(ToString::to_string);
    let profile = measure.finish().with_context(|| reader.name().to_owned())?;
    Ok(Measured { profile, left_out, resized, cut_short })
}

/// Whoever makes frames, one after the other.
pub trait Lends {
    /// The next frame, and when it comes; `None` when there are no more.
    fn lend(&mut self) -> Option<(u64, &[u8])>;
}

impl Lends for Synth {
    fn lend(&mut self) -> Option<(u64, &[u8])> {
        self.next()
    }
}

impl Lends for Like {
    fn lend(&mut self) -> Option<(u64, &[u8])> {
        self.next()
    }
}

/// Writes frames to a file of this name (`-` is standard output); it gets its name only when it is whole. Whoever sets `stop`
/// ends it.
///
/// # Errors
/// It cannot be written, or was stopped: then there is no such file.
pub fn write(path: &Path, frames: &mut impl Lends, stop: &AtomicBool) -> Result<()> {
    let mut writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?;
    fill(&mut writer, frames, stop).with_context(|| format!("{} was not written", path.display()))?;
    writer.finish()?;
    Ok(())
}

/// Writes frames to a capture that is open.
///
/// # Errors
/// It cannot be written, or it was stopped.
pub fn fill<W: Write>(writer: &mut Writer<W>, frames: &mut impl Lends, stop: &AtomicBool) -> Result<()> {
    while let Some((time_ns, frame)) = frames.lend() {
        if stop.load(Relaxed) {
            bail!("stopped by a signal");
        }
        writer.write(time_ns, frame, frame.len() as u32)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use synth::Profile;

    #[test]
    fn a_capture_is_made_measured_and_imitated_and_a_stopped_one_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.pcap");
        let (_, profile) = Profile::NAMED[0];
        let small = profile.with_frames(20_000);
        let stop = AtomicBool::new(false);
        write(&path, &mut Synth::new(small, 1).expect("a profile"), &stop).expect("written");
        let measured = measure(&mut Reader::open(&path).expect("a capture"), &stop).expect("measured");
        assert!((1..=20_000).contains(&measured.profile.bounds().frames), "{:?}", measured.profile.bounds());
        assert_eq!((measured.left_out, measured.cut_short), (0, None));
        stop.store(true, Relaxed);
        let other = folder.path().join("other.pcap");
        let mut like = Like::new(measured.profile, 1).expect("statistics");
        assert!(
            write(&other, &mut like, &stop).expect_err("stopped").to_string().contains("was not written")
        );
        assert!(!other.exists());
    }
}
