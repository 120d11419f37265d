//! `netdyno xdp test`: what an XDP program says of the frames of a capture.

use crate::cli::xdp::{Test, Xdp, XdpCommand};
use crate::hints::Kind;
use crate::output::print;
use anyhow::{Result, bail};
use capture::{FileFormat, FileWriter, Reader, Record, Writer};
use report::sections::xdp::{XDP_TEST_SCHEMA, XdpRange, XdpTest, XdpTestVerdict};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use verdicts::{Judged, Loaded, Timed, Trial};
use wire::LinkType;

/// A frame is timed by so many runs at most: the kernel takes a number of 31 bits, and nobody waits longer.
const MOST_RUNS: u64 = 100_000_000;

pub fn run(args: &Xdp) -> Result<u8> {
    match &args.command {
        XdpCommand::Test(args) => test(args),
    }
}

fn test(args: &Test) -> Result<u8> {
    if args.repeat > MOST_RUNS {
        bail!("--repeat {}: 0 to {MOST_RUNS} are possible", args.repeat);
    }
    crate::hints::check_file(&args.capture, Kind::Capture)?;
    let mut reader = Reader::open(&args.capture)?;
    let loaded = verdicts::load(&args.object, args.program.as_deref())
        .map_err(|error| choosing(error, "--program"))?;
    let mut test = judged(args, &loaded, &mut reader)?;
    if test.frames == 0 {
        bail!("{}: there is no frame in it that could be tested", reader.name());
    }
    test.verdicts.sort_by_key(|one| Reverse(one.frames));
    print(&if args.json { test.to_json()? } else { report::xdp::render(&test) })?;
    Ok(u8::from(!test.holds()))
}

/// Judges all frames, then times some.
fn judged(args: &Test, loaded: &Loaded, reader: &mut Reader) -> Result<XdpTest> {
    let mut trial = Trial::of(&loaded.program);
    let mut found = Found {
        test: XdpTest {
            schema: XDP_TEST_SCHEMA.to_owned(),
            object: args.object.display().to_string(),
            program: loaded.name.clone(),
            section: loaded.section.clone(),
            capture: reader.name().to_owned(),
            kernel: verdicts::kernel(),
            expected: args.expect.map(|verdict| verdict.name().to_owned()),
            written: args.write.as_ref().map(|path| path.display().to_string()),
            ..XdpTest::default()
        },
        verdicts: BTreeMap::new(),
    };
    let mut writer = args.write.as_deref().map(Left::create).transpose()?;
    while let Some(record) = reader.next_record()? {
        if record.link != LinkType::ETHERNET {
            bail!(
                "frame {} of {}: XDP programs are for Ethernet frames, and this is of link type {}; `netdyno edit --dlt` changes it",
                record.number,
                args.capture.display(),
                record.link
            );
        }
        let said = trial.judge(record.data);
        found.add(&record, said.as_ref().map_err(ToString::to_string));
        if let (Some(writer), Ok(said)) = (&mut writer, &said) {
            writer.write(&record, said)?;
        }
    }
    if let Some(writer) = writer {
        writer.writer.finish()?;
    }
    let repeat = args.repeat as u32;
    let timed = if repeat > 0 { trial.time(repeat)? } else { Vec::new() };
    Ok(found.with_times(repeat, &timed))
}

/// What was found up to now.
struct Found {
    test: XdpTest,
    verdicts: BTreeMap<u32, u64>,
}

impl Found {
    fn add(&mut self, record: &Record<'_>, said: Result<&Judged, String>) {
        let test = &mut self.test;
        test.frames += 1;
        test.cut_frames += u64::from((record.data.len() as u64) < u64::from(record.wire_len));
        let verdict = match said {
            Ok(said) => {
                *self.verdicts.entry(said.verdict).or_default() += 1;
                test.changed_frames += u64::from(said.changed);
                verdicts::name(said.verdict)
            }
            Err(why) => {
                test.not_run_frames += 1;
                XdpRange::add(&mut test.not_run, record.number, &why);
                "not run".to_owned()
            }
        };
        if test.expected.as_ref().is_some_and(|expected| *expected != verdict) {
            test.differing_frames += 1;
            XdpRange::add(&mut test.differing, record.number, &verdict);
        }
    }

    fn with_times(self, repeat: u32, timed: &[Timed]) -> XdpTest {
        let verdict = |(verdict, frames): (u32, u64)| XdpTestVerdict {
            verdict: verdicts::name(verdict),
            frames,
            ns_per_frame: mean(timed.iter().filter(|one| one.verdict == verdict)),
        };
        XdpTest {
            verdicts: self.verdicts.into_iter().map(verdict).collect(),
            ns_per_frame: mean(timed.iter()),
            timed_frames: timed.len() as u64,
            timed_singly_frames: timed.iter().filter(|one| one.singly).count() as u64,
            repeat,
            ..self.test
        }
    }
}

fn mean<'t>(timed: impl Iterator<Item = &'t Timed>) -> Option<f64> {
    let (count, sum) = timed.fold((0u64, 0u64), |(count, sum), one| (count + 1, sum + u64::from(one.ns)));
    (count > 0).then(|| sum as f64 / count as f64)
}

/// Frames as the program left them.
struct Left {
    writer: FileWriter,
    noted: bool,
}

impl Left {
    fn create(path: &Path) -> Result<Left> {
        let format = FileFormat::of_name(path);
        let writer = Writer::create(path, format, LinkType::ETHERNET)?;
        Ok(Left { writer, noted: format == FileFormat::Pcapng })
    }

    fn write(&mut self, record: &Record<'_>, said: &Judged) -> Result<()> {
        if !verdicts::goes_on(said.verdict) {
            return Ok(());
        }
        let (time, frame) = (record.time_ns, &said.frame);
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        match self.noted {
            true => {
                let comment = format!("frame {}: {}", record.number, verdicts::name(said.verdict));
                self.writer.write_noted(0, time, frame, length, &comment)?;
            }
            false => self.writer.write(time, frame, length)?,
        }
        Ok(())
    }
}

/// What is wrong with an object, with the option that chooses one of its programs where it has several.
pub(super) fn choosing(error: verdicts::VerdictsError, option: &str) -> anyhow::Error {
    match error {
        verdicts::VerdictsError::Several { .. } => anyhow::anyhow!("{error} ({option} NAME)"),
        other => other.into(),
    }
}
