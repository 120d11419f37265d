//! Keeps what a run's meters capture: all of it, or the frames to which something happened with their neighbours, in one growing file or several.
//!
//! ```text
//!   meter (a thread for each) --meter::Copies--> Recorder --[near: chooses, comments]--> capture::Ongoing
//! ```
//!
//! Times in the file are the meter's own, moved to the wall clock by what it was ahead when the run began: their differences are those
//! that latencies are told by, even if somebody sets the clock meanwhile.

mod near;

use crate::environment;
use anyhow::{Context, Result};
use capture::{Interface, Ongoing, Plan, Section, Statistics};
use meter::{Captured, Copied, Copies};
use near::{Near, Verdict};
use report::units::{self, counted};
use report::{Code, Report};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::LinkType;

/// Neighbours on each side of an event, of who names no number.
const AROUND: u32 = 8;

/// See the module.
#[derive(Debug)]
pub struct Recorder(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    file: Ongoing,
    name: String,
    near: Option<Near>,
    /// What the wall clock was ahead of the meters' when it began.
    ahead: i64,
    begun: u64,
    /// No more frames than these are wanted.
    wanted: Option<u64>,
    frames: u64,
    bytes: u64,
    /// Frames of each interface that came and could not be written.
    unwritten: Vec<u64>,
    /// Why, from then on.
    failed: Option<String>,
    /// Whoever read it wants no more of it.
    left: bool,
    /// Of a frame whose tag has to be put back.
    whole: Vec<u8>,
}

impl Recorder {
    /// Begins the file for what arrives at `interfaces`. `from_zero`: the streams' first numbers are 0.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn begin(
        asked: &spec::Capture,
        (command, interfaces): (&str, &[String]),
        from_zero: bool,
    ) -> Result<Recorder> {
        let snap = asked.snap.as_deref().copied().unwrap_or(0);
        let ahead = clocks::ahead(clocks::Clock::Realtime, clocks::Clock::Monotonic).ns;
        let about = environment::collect();
        let commit = about.netdyno_commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
        let section = Section {
            comment: format!("netdyno {command}: times of arrival are CLOCK_MONOTONIC + {ahead} ns"),
            hardware: about.cpu_model.unwrap_or_default(),
            system: format!("Linux {}", about.kernel.unwrap_or_default()),
            application: format!("netdyno {}{commit}", about.netdyno_version),
        };
        let described = interfaces.iter().map(|name| Interface {
            link: LinkType::ETHERNET,
            snaplen: u32::try_from(snap).unwrap_or(0),
            name: Some(name.clone()),
            ..Interface::default()
        });
        let plan = Plan {
            path: asked.file.clone(),
            rotate: asked.rotate.as_deref().copied(),
            rotate_size: asked.rotate_size.as_deref().copied(),
            files: asked.files,
        };
        let begun = clocks::monotonic().wrapping_add_signed(ahead);
        let file = Ongoing::begin(plan, section, described.collect(), begun).context("`.capture`")?;
        let around = asked.around.unwrap_or(AROUND) as usize;
        let near = (!asked.only.is_empty()).then(|| Near::new(&asked.only, around, from_zero));
        Ok(Recorder(Arc::new(Mutex::new(Inner {
            file,
            name: asked.file.display().to_string(),
            near,
            ahead,
            begun,
            wanted: asked.count.as_deref().copied(),
            frames: 0,
            bytes: 0,
            unwritten: vec![0; interfaces.len()],
            failed: None,
            left: false,
            whole: Vec::new(),
        }))))
    }

    /// What the meter at an interface is to hand over.
    pub fn of(&self, asked: &spec::Capture, interface: u32) -> meter::Capture {
        let inner = Arc::clone(&self.0);
        let bytes = match asked.snap.as_deref().copied().unwrap_or(0) {
            0 => u32::MAX,
            bytes => u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        let to = move |copies: &Copies| lock(&inner).take(interface, copies);
        meter::Capture { bytes, to: Arc::new(to) }
    }

    /// Ends the file, of so many frames that were counted and captured at each interface, and says what became of it.
    pub fn finish(&self, counted_at: &[(u64, Option<Captured>)], report: &mut Report) {
        lock(&self.0).finish(counted_at, report);
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn now(&self) -> u64 {
        clocks::monotonic().wrapping_add_signed(self.ahead)
    }

    /// Are all frames there that are wanted?
    fn is_full(&self) -> bool {
        self.left || self.wanted.is_some_and(|wanted| self.frames >= wanted)
    }

    /// Says whether more is wanted. What cannot be written is counted for as long as it comes.
    fn take(&mut self, interface: u32, copies: &Copies) -> bool {
        for frame in copies.iter() {
            if self.is_full() {
                break;
            }
            match &mut self.near {
                None => self.write(interface, &frame, None),
                Some(near) => match near.judge(&frame) {
                    Verdict::Unknown => {}
                    Verdict::Held => near.hold(interface, &frame),
                    Verdict::Behind => self.write(interface, &frame, None),
                    Verdict::Event(stream, comment) => {
                        for held in near.release(stream) {
                            self.write(held.interface, &held.frame(), None);
                        }
                        self.write(interface, &frame, Some(&comment));
                    }
                },
            }
        }
        if self.failed.is_some() {
            return true;
        }
        let now = self.now();
        // Another file would be empty, and might take the place of one that is not; and nobody may come again to end this one.
        let kept = if self.is_full() { self.file.flush() } else { self.file.tick(now) };
        if let Err(error) = kept {
            self.fail(&error);
        }
        !self.is_full()
    }

    fn write(&mut self, interface: u32, frame: &Copied<'_>, comment: Option<&str>) {
        // Neighbours of one event may be more than are wanted.
        if self.is_full() {
            return;
        }
        if self.failed.is_some() {
            self.miss(interface);
            return;
        }
        let time = frame.time.wrapping_add_signed(self.ahead);
        let mut length = frame.length;
        let mut bytes = frame.bytes;
        // As it was on the wire.
        if let Some((kind, tag)) = frame.tag
            && let Some((addresses, rest)) = frame.bytes.split_at_checked(12)
        {
            self.whole.clear();
            let parts = [addresses, &kind.to_be_bytes(), &tag.to_be_bytes(), rest];
            parts.iter().for_each(|part| self.whole.extend_from_slice(part));
            (bytes, length) = (&self.whole, length + 4);
        }
        let written = self.file.write(interface, time, bytes, length, comment);
        self.frames += 1;
        self.bytes += bytes.len() as u64;
        if let Err(error) = written {
            let bytes = bytes.len() as u64;
            // It is among those that waited, unless it was refused by itself.
            if !self.fail(&error) {
                (self.frames, self.bytes) = (self.frames - 1, self.bytes - bytes);
                if !self.left {
                    self.miss(interface);
                }
            }
        }
    }

    fn miss(&mut self, interface: u32) {
        if let Some(unwritten) = self.unwritten.get_mut(interface as usize) {
            *unwritten += 1;
        }
    }

    /// Takes back what was counted and did not get into the file. Whether there was anything.
    fn fail(&mut self, error: &capture::CaptureError) -> bool {
        let lost = self.file.take_lost();
        for (at, (packets, bytes)) in lost.iter().enumerate() {
            self.frames = self.frames.saturating_sub(*packets);
            self.bytes = self.bytes.saturating_sub(*bytes);
            // What a reader who left did not get is what it did not want.
            if let Some(unwritten) = self.unwritten.get_mut(at).filter(|_| !error.reader_left()) {
                *unwritten += packets;
            }
        }
        if error.reader_left() {
            self.left = true;
        } else {
            self.failed.get_or_insert_with(|| crate::in_full(&anyhow::Error::msg(error.to_string())));
        }
        lost.iter().any(|(packets, _)| *packets > 0)
    }

    fn finish(&mut self, counted_at: &[(u64, Option<Captured>)], report: &mut Report) {
        let ended_ns = self.now();
        let told: Vec<Statistics> = (counted_at.iter().zip(&self.unwritten))
            .map(|((counted, captured), unwritten)| Statistics {
                begun_ns: self.begun,
                ended_ns,
                received: *counted,
                dropped: captured.map_or(*counted, |captured| captured.missed) + unwritten,
            })
            .collect();
        if self.failed.is_none()
            && !self.left
            && let Err(error) = self.file.finish(&told)
        {
            self.fail(&error);
        }
        let full: u64 = counted_at.iter().filter_map(|(_, captured)| *captured).map(|of| of.missed).sum();
        let unwritten: u64 = self.unwritten.iter().sum();
        let arrived = counted_at.iter().map(|(counted, _)| counted).sum();
        if full > 0 {
            let mend = "write to a faster disk, fewer bytes of each frame (`.capture.snap`), or fewer frames (`.capture.only`)";
            let (full, arrived) = (counted(full, "frame"), units::count(arrived));
            let mut said = format!(
                "{full} of {arrived} not captured: they came faster than they were written, and memory for them was full"
            );
            if self.is_full() {
                said += "; whether before or after the last frame that was wanted is not known";
            }
            report.warnings.add(Code::FramesNotCaptured, (said, mend));
        }
        if let Some(why) = &self.failed {
            let arrived = units::count(arrived);
            let said = match unwritten {
                0 => format!("the capture lacks its end, which says what became of frames: {why}"),
                frames => {
                    let frames = counted(frames, "frame");
                    format!("{frames} of {arrived} not in the capture, which ends before them: {why}")
                }
            };
            report.result.verdict.fall_short(Code::FramesNotCaptured, said);
        }
        let (begun, files) = self.file.files();
        report.result.capture = Some(report::Capture {
            file: self.name.clone(),
            arrived_frames: arrived,
            frames: self.frames,
            bytes: self.bytes,
            missed_frames: full + unwritten,
            wanted_frames: self.wanted,
            events: self.near.as_ref().map(Near::events),
            files_begun: begun,
            files: match begun {
                1 => Vec::new(),
                _ => files.iter().map(|path| path.display().to_string()).collect(),
            },
        });
    }
}
