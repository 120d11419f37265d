//! An XDP program under test as the device of a lab: put there by `netdyno lab --dut-xdp`, and looked at by each run that the lab's
//! command starts, in processes of their own. Those find it by a variable.

use crate::place::Place;
use ::lab::{ENV_XDP, Lab};
use anyhow::{Context as _, Result, bail};
use bpf::attach::{WhyNot, index_of, why_not};
use bpf::{Hook, Link};
use port::interface::Interface;
use report::sections::xdp::{XdpProgram, XdpVerdict};
use report::{Code, Report};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use verdicts::{Counted, Counter, Loaded, VerdictsError, Watch};

/// The program of a lab's device, at work until this goes.
#[derive(Debug)]
pub struct DeviceXdp {
    counter: Counter,
    known: Known,
    _links: Vec<Link>,
    _loaded: Loaded,
}

/// A CPU that is at work on a frame has counted its verdict, and its run not yet: so many may be.
const AT_WORK: u64 = 16;

/// What the numbers in its tables stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    object: String,
    program: String,
    interfaces: HashMap<u32, String>,
}

impl DeviceXdp {
    /// Loads the program and attaches it to each interface of the lab's device, in the driver.
    ///
    /// # Errors
    /// It is not loaded, or not attached.
    pub fn put_into(lab: &Lab, object: &Path, wanted: Option<&str>) -> Result<DeviceXdp> {
        let loaded = verdicts::load(object, wanted)?;
        let ports = lab.device.iter().flatten().chain(lab.ports.iter().skip(2).map(|[_, port]| port));
        let (mut links, mut interfaces) = (Vec::new(), HashMap::new());
        for port in ports {
            let (index, link) = port.namespace.run_in(|| attach(port.interface, &loaded))??;
            interfaces.insert(index, port.interface.to_owned());
            links.push(link);
        }
        if links.is_empty() {
            bail!("this lab has no device that an XDP program could be put into");
        }
        let counter = Counter::start(&loaded.program, &loaded.name)?;
        let known = Known { object: object.display().to_string(), program: loaded.name.clone(), interfaces };
        Ok(DeviceXdp { counter, known, _links: links, _loaded: loaded })
    }

    /// The variable by which runs in the lab find it.
    pub fn variable(&self) -> (&'static str, OsString) {
        let Known { object, program, interfaces } = &self.known;
        let interfaces: Vec<String> =
            interfaces.iter().map(|(index, name)| format!("{index}={name}")).collect();
        let text = format!("{}\t{program}\t{}\t{object}", self.counter.numbers(), interfaces.join(","));
        (ENV_XDP, text.into())
    }

    /// What it did up to now.
    ///
    /// # Errors
    /// The kernel does not give its tables.
    pub fn told(&self) -> Result<XdpProgram> {
        let counted = self.counter.read()?;
        let mut told = told(&self.known, &counted);
        told.notes.extend(self.counter.notes.iter().cloned());
        if self.counter.counts_verdicts() {
            told.notes.extend(differing(&counted));
        }
        Ok(told)
    }
}

/// In the network namespace of the interface.
fn attach(interface: &'static str, loaded: &Loaded) -> Result<(u32, Link), VerdictsError> {
    let index = index_of(interface)?;
    match loaded.program.attach(index, Hook::XdpNative) {
        Ok(link) => Ok((index, link)),
        Err(Errno::PERM) => Err(VerdictsError::Permission { what: "attaching an XDP program" }),
        Err(error) => {
            let mtu = || Interface::by_name(interface).ok().map(|found| found.mtu);
            let (WhyNot::Occupied(reason) | WhyNot::Refused(reason)) =
                why_not((interface, index), mtu, true, error, &loaded.program);
            Err(VerdictsError::NotAttached { interface: interface.to_owned(), reason })
        }
    }
}

fn told(known: &Known, counted: &Counted) -> XdpProgram {
    let row = |(row, frames): (&verdicts::Row, &u64)| XdpVerdict {
        verdict: verdicts::name(row.verdict),
        interface: Some(
            known.interfaces.get(&row.ifindex).cloned().unwrap_or_else(|| row.ifindex.to_string()),
        ),
        stream: row.stream,
        in_several_buffers: row.unread,
        frames: *frames,
    };
    let mut verdicts: Vec<XdpVerdict> = counted.rows.iter().map(row).collect();
    verdicts.sort_by_key(|one| (one.interface.clone(), one.stream, one.verdict.clone()));
    let listed: u64 = verdicts.iter().map(|one| one.frames).sum();
    let runs = counted.runs.count;
    XdpProgram {
        object: known.object.clone(),
        program: known.program.clone(),
        frames: if runs > 0 { runs } else { counted.frames() },
        ns_per_frame: counted.ns_per_frame(),
        counting_ns_per_frame: (runs > 0 && counted.counting_ns > 0)
            .then(|| counted.counting_ns as f64 / runs as f64),
        unlisted_frames: counted.frames().saturating_sub(listed),
        verdicts,
        notes: Vec::new(),
    }
}

/// The kernel's statistics count the program's runs, and a program at its end counts verdicts: of each run one. Says so where these are
/// different numbers. `None`: they are not, or the kernel counts no runs.
fn differing(counted: &Counted) -> Option<String> {
    let (fewest, most) = counted.runs_between;
    let (runs, verdicts) = (counted.runs.count, counted.frames());
    if runs == 0 || (fewest.saturating_sub(AT_WORK)..=most.saturating_add(AT_WORK)).contains(&verdicts) {
        return None;
    }
    let count = report::units::counted;
    Some(format!(
        "the kernel counted {} of the XDP program and {}, which should be the same number: verdicts by stream and time for each frame are \
         not certain",
        count(runs, "run"),
        count(verdicts, "verdict")
    ))
}

/// Looks at the program of the lab that this process runs in, while a run lasts.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    looking: Option<(Watch, Known, Counted)>,
    refused: Option<String>,
}

impl Watching {
    /// Begins; there is nothing to look at outside of such a lab, or if none of the places is in it.
    pub(crate) fn begin(places: &[&Place]) -> Watching {
        let Some(text) = std::env::var_os(ENV_XDP) else { return Watching::default() };
        // A run with a lab of its own within this one has nothing to do with its device.
        if !places.iter().any(|place| place.is_of_a_lab()) {
            return Watching::default();
        }
        match Watching::of(&text.to_string_lossy()) {
            Ok(looking) => Watching { looking: Some(looking), refused: None },
            Err(error) => Watching { looking: None, refused: Some(format!("{error:#}")) },
        }
    }

    fn of(text: &str) -> Result<(Watch, Known, Counted)> {
        let (numbers, known) = read(text).with_context(|| format!("the variable {ENV_XDP} is damaged"))?;
        let watch = Watch::by_numbers(numbers)?;
        let before = watch.read()?;
        Ok((watch, known, before))
    }

    /// It is over: puts into the result what the program did meanwhile.
    pub(crate) fn finish(self, report: &mut Report) {
        let why = match self.looking {
            None => self.refused,
            Some((watch, known, before)) => match watch.read() {
                Ok(counted) => {
                    let counted = counted.since(&before);
                    report.result.xdp = Some(told(&known, &counted));
                    match watch.counts_verdicts() {
                        true => differing(&counted),
                        false => Some(
                            "its verdicts are not counted; `netdyno lab` says why when it ends".to_owned(),
                        ),
                    }
                }
                Err(error) => Some(error.to_string()),
            },
        };
        if let Some(why) = why {
            report.warnings.add(Code::XdpNotCounted, why);
        }
    }
}

fn read(text: &str) -> Option<(&str, Known)> {
    let mut parts = text.splitn(4, '\t');
    let (numbers, program, interfaces, object) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let named = |one: &str| {
        let (index, name) = one.split_once('=')?;
        Some((index.parse().ok()?, name.to_owned()))
    };
    let interfaces = interfaces.split(',').filter_map(named).collect();
    Some((numbers, Known { object: object.to_owned(), program: program.to_owned(), interfaces }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpf::Runs;
    use std::collections::BTreeMap;

    #[test]
    fn what_a_lab_says_of_its_program_is_read_again() {
        let (numbers, known) =
            read("1 2 3 4\tfilter\t2=dut0,3=dut1\ta folder/filter.o").expect("well-formed");
        assert_eq!((numbers, &*known.program, &*known.object), ("1 2 3 4", "filter", "a folder/filter.o"));
        assert_eq!(known.interfaces[&3], "dut1");
        assert_eq!(read("1 2 3 4\tfilter"), None);
    }

    #[test]
    fn runs_and_verdicts_that_differ_are_told() {
        let counted = |runs, verdicts| Counted {
            totals: [0, 0, verdicts, 0, 0, 0],
            runs: Runs { count: runs, ns: 7_000 },
            runs_between: (runs, runs + 500),
            ..Counted::default()
        };
        for (runs, verdicts) in [(0, 0), (0, 500), (500, 500), (1_000, 1_400), (1_000, 999)] {
            assert_eq!(differing(&counted(runs, verdicts)), None, "{runs} and {verdicts}");
        }
        let said = differing(&counted(90_000, 100_000)).expect("they differ");
        assert!(
            said.starts_with("the kernel counted 90,000 runs of the XDP program and 100,000 verdicts"),
            "{said}"
        );
        assert!(differing(&counted(100_000, 90_000)).is_some() && differing(&counted(1_000, 0)).is_some());
    }

    #[test]
    fn what_was_counted_is_told_by_interface_and_stream() {
        let (_, known) = read("1 2 3 4\tfilter\t2=dut0\tfilter.o").expect("well-formed");
        let row = |ifindex, stream, verdict| verdicts::Row { ifindex, stream, verdict, unread: false };
        let counted = Counted {
            rows: BTreeMap::from([(row(2, Some(1), 2), 90), (row(2, None, 1), 5), (row(9, None, 7), 1)]),
            totals: [0, 5, 90, 0, 0, 5],
            runs: Runs { count: 100, ns: 7_000 },
            runs_between: (100, 100),
            counting_ns: 2_000,
        };
        let told = told(&known, &counted);
        assert_eq!((told.ns_per_frame, told.counting_ns_per_frame), (Some(50.0), Some(20.0)));
        assert_eq!((told.frames, told.unlisted_frames), (100, 4));
        let words: Vec<_> =
            told.verdicts.iter().map(|one| (&*one.verdict, one.interface.as_deref(), one.stream)).collect();
        assert_eq!(
            words,
            [("(verdict 7)", Some("9"), None), ("drop", Some("dut0"), None), ("pass", Some("dut0"), Some(1))]
        );
    }
}
