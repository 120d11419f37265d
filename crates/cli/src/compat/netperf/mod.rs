//! `netdyno netperf`: netperf's command lines, as they are. What differs stands in docs/from-netperf.md.
//!
//! `words` reads options, `options` and `specific` what they mean, `outcome` makes netperf's figures of results.

mod asked;
pub mod help;
mod options;
mod outcome;
mod specific;
pub mod words;

use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use endpoint::netperf::PORT;
use endpoint::netperf::confidence::Series;
use endpoint::netperf::figures::{Flow, Unit};
use endpoint::netperf::layout::{self, Banner, End, Form, Interim};
use endpoint::netperf::plan::{Length, Transport};
use endpoint::netperf::selectors::{Selection, Selector};
use job::Session;
use job::kinds::netperf::{self, Beside, Look};
use options::{Options, Wanted};
use report::units::printable;
use spec::Job;
use std::ffi::OsString;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transport::netperf::client::{Moment, Outcome};

/// The words as text.
pub fn texts(words: &[OsString]) -> Result<std::collections::VecDeque<String>> {
    let text = |word: &OsString| {
        word.to_str()
            .map(str::to_owned)
            .with_context(|| format!("`{}` is no text", printable(&word.to_string_lossy())))
    };
    words.iter().map(text).collect()
}

/// Runs `netdyno netperf` with the words that follow its name; returns the exit status.
pub fn run(words: &[OsString]) -> Result<u8> {
    match options::read(texts(words)?)? {
        Wanted::Help => print(help::HELP)?,
        Wanted::Version => {
            print(&format!("netdyno {}, for netperf 2.6 to 2.7.1\n", env!("CARGO_PKG_VERSION")))?
        }
        Wanted::Selectors { one_line } => {
            let names: Vec<_> = Selector::all().map(Selector::name).collect();
            print(&(names.join(if one_line { "," } else { "\n" }) + "\n"))?;
        }
        Wanted::Uuid => print(&outcome::uuid()?)?,
        Wanted::Test(options) => return test(&options),
    }
    Ok(0)
}

/// netperf's option for a setting of its test. Those of a test stand behind `--`, and some letters have another meaning there.
pub fn called(setting: &str) -> Option<String> {
    let option = match setting {
        "test" => "-t",
        "host" => "-H",
        "port" | "from_port" => "-p",
        "duration" | "bytes" | "transactions" => "-l",
        "confidence" => "-I",
        "iterations" | "least_iterations" => "-i",
        "size" | "remote_size" => "-m behind --",
        "receive_size" | "remote_receive_size" => "-M behind --",
        "request" | "response" => "-r behind --",
        "burst" => "-b behind --",
        "ports" => "-p behind --",
        "send_buffer" | "receive_buffer" => "-s behind --",
        "remote_send_buffer" | "remote_receive_buffer" => "-S behind --",
        "congestion" | "remote_congestion" => "-K behind --",
        "mss" => "-G behind --",
        "sendfile" => "-t TCP_SENDFILE",
        _ => return None,
    };
    Some(option.to_owned())
}

fn test(o: &Options) -> Result<u8> {
    let selection = o.selection()?;
    if let Some((_, unknown)) = &selection
        && !unknown.is_empty()
    {
        note(&format!("not known as output selectors, and left out: {}", printable(&unknown.join(", "))));
    }
    let fill = o.fill.as_deref().map(filled).transpose()?;
    let signals = Signals::at_once()?;
    let places = Places::of(o)?;
    let job = asked::job(o, &places);
    super::check(&job, called)?;
    if o.headers {
        print(&places.banner(o).text())?;
    }
    let interim = Interims::new(o);
    let look = o.interim.map(|each| -> (Duration, Box<Look>) {
        (each, Box::new(move |moment: &Moment| interim.look(moment)))
    });
    let beside = Beside { passphrase: o.passphrase.clone(), fill, request: o.request.clone(), look };
    let session = signals.session(Job::from(job.clone()).asks(), None);
    let ended = Arc::<Mutex<Option<(Vec<Outcome>, bool)>>>::default();
    let run = {
        let ended = Arc::clone(&ended);
        move |session: Session| {
            let netperf::Ended { report, runs, stopped } = netperf::test(&job, beside, &session)?;
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some((runs, stopped));
            Ok(report)
        }
    };
    // Nothing of what a job says is printed but what netperf prints.
    let silent = Output { quiet: true, ..Output::default() };
    attend(&silent, Line::Not, session, |session| job::spawn(session, run))?;
    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (runs, stopped) = ended.context("no test was run")?;
    show(o, runs, &places, selection.as_ref().map(|(selection, _)| selection))?;
    if stopped {
        note("a signal ended it before its time");
    }
    Ok(u8::from(stopped))
}

/// Prints what a test came to.
fn show(o: &Options, runs: Vec<Outcome>, places: &Places, selection: Option<&Selection>) -> Result<()> {
    let mut series = Series::default();
    let with_figures = |run: Outcome| {
        let figures = outcome::of(o, &run);
        series.push(figures.throughput, figures.local.util(), figures.remote.util());
        (figures, run)
    };
    let runs = runs.into_iter().map(with_figures).collect();
    let figures = outcome::mean(o, runs, &series, &places.ends(o))?;
    if let Some(goal) = &o.confidence
        && !series.reached(goal)
    {
        print(&layout::not_confident(&series, goal.level))?;
    }
    let text = match selection {
        Some(selection) => layout::selected(o.form, selection, &figures, o.headers),
        None if o.verbosity == 0 => layout::brief(&figures),
        None => {
            let more = if o.verbosity > 1 { layout::wider(&figures) } else { String::new() };
            layout::table(&figures, o.headers) + &more
        }
    };
    print(&text)?;
    if o.avoid_copies && o.flow == Flow::Receive {
        note("data received was not touched (-V): a program that reads it gets less");
    }
    Ok(())
}

/// Up to so much of a file is put into buffers.
const FILLS: u64 = 1 << 20;

fn filled(path: &std::path::Path) -> Result<Arc<[u8]>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("-F {}", path.display()))?;
    if file.metadata().is_ok_and(|about| about.len() > FILLS) {
        note(&format!("-F {}: buffers hold its first {FILLS} bytes", path.display()));
    }
    file.take(FILLS).read_to_end(&mut bytes).with_context(|| format!("-F {}", path.display()))?;
    if bytes.is_empty() {
        bail!("-F {}: the file is empty", path.display());
    }
    Ok(bytes.into())
}

/// All addresses of a test.
struct Places {
    server: SocketAddr,
    own: IpAddr,
    data: Option<IpAddr>,
    own_data: Option<IpAddr>,
}

fn resolve(host: &str, port: u16, v6: Option<bool>) -> Result<SocketAddr> {
    let found =
        (host, port).to_socket_addrs().with_context(|| format!("{}: no such host", printable(host)))?;
    let mut found = found.filter(|at| v6.is_none_or(|v6| at.is_ipv6() == v6));
    let family = match v6 {
        Some(true) => "IPv6 ",
        Some(false) => "IPv4 ",
        None => "",
    };
    found.next().with_context(|| format!("{}: it has no {family}address", printable(host)))
}

impl Places {
    fn of(o: &Options) -> Result<Places> {
        let host = o.control.host.as_deref().unwrap_or("localhost");
        let v6 = o.control.v6.or(o.own.v6);
        let port = o.control.port.unwrap_or(PORT);
        let server = resolve(host, port, v6)?;
        // localhost is both on most hosts, and a netserver may listen on one: the first that answers is taken.
        let server = match v6 {
            None if host == "localhost" => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            _ => server,
        };
        let like = Some(server.is_ipv6());
        let one = |host: &Option<String>, v6: Option<bool>| match host {
            Some(host) => resolve(host, 0, v6.or(like)).map(|at| Some(at.ip())),
            None => Ok(None),
        };
        let data = one(&o.data.host, o.data.v6)?;
        if data.is_none() && o.data.v6.is_some_and(|v6| Some(v6) != like) {
            bail!(
                "data over another family of addresses than that of the control connection needs an address: -H ADDRESS behind --"
            );
        }
        let any: IpAddr =
            if server.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let own = one(&o.own.host, o.own.v6)?;
        let own_data = match one(&o.own_data.host, o.own_data.v6)? {
            None if data.is_none_or(|data| data.is_ipv6() == server.is_ipv6()) => own,
            other => other,
        };
        Ok(Places { server, own: own.unwrap_or(any), data, own_data })
    }

    /// Both ends for data: as typed, and what it came to.
    fn ends(&self, o: &Options) -> [End; 2] {
        let to = self.data.unwrap_or(self.server.ip());
        let any = if to.is_ipv6() {
            ("::0", Ipv6Addr::UNSPECIFIED.into())
        } else {
            ("0.0.0.0", Ipv4Addr::UNSPECIFIED.into())
        };
        let host = o.data.host.as_ref().or(o.control.host.as_ref());
        let own = o.own_data.host.as_ref().or(o.own.host.as_ref());
        [
            End {
                name: own.map_or_else(|| any.0.to_owned(), |host| printable(host)),
                address: self.own_data.unwrap_or(any.1),
                port: o.own_data.port.unwrap_or(0),
            },
            End {
                name: host.map_or_else(|| "localhost".to_owned(), |host| printable(host)),
                address: to,
                port: o.request.data_port as u16,
            },
        ]
    }

    fn banner(&self, o: &Options) -> Banner {
        let [from, to] = self.ends(o);
        let transport = if o.datagrams { Transport::Udp } else { Transport::Tcp };
        Banner {
            title: layout::title(&o.test, o.flow, transport),
            from,
            to,
            confidence: o.confidence,
            nodelay: o.nodelay,
            avoids_copies: o.avoid_copies,
            burst: (o.flow == Flow::Transact && o.test != "OMNI").then_some(o.burst),
            cpu_bind: o.cpu_bind,
        }
    }
}

/// Interim results, printed as they come.
struct Interims {
    each: Duration,
    /// How long the test lasts, where that is known.
    lasts: Option<Duration>,
    unit: Unit,
    form: Form,
    state: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    number: u32,
    at: Duration,
    amount: u64,
}

impl Interims {
    fn new(o: &Options) -> Interims {
        let lasts = match o.length() {
            Length::Time(time) => Some(time),
            Length::Units(_) => None,
        };
        let each = o.interim.unwrap_or_default();
        Interims { each, lasts, unit: o.unit(), form: o.form, state: Mutex::default() }
    }

    fn look(&self, now: &Moment) {
        self.show(now);
        if now.last {
            self.rewind();
        }
    }

    /// The next test begins at nothing; numbers go on.
    fn rewind(&self) {
        let mut seen = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.at, seen.amount) = (Duration::ZERO, 0);
    }

    fn show(&self, now: &Moment) {
        let amount = if self.unit == Unit::Transactions { now.count } else { now.bytes };
        let mut seen = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let span = now.at.saturating_sub(seen.at);
        // The last one is as long as what is left. One that is due next to the end would leave a rest of a millisecond, whose rate is of
        // nothing: it waits for the end, and where nobody knew when that comes, a tenth of an interval is left out.
        let ends = self.lasts.is_some_and(|lasts| now.at + self.each / 2 > lasts);
        let crumb = seen.at > Duration::ZERO && span < self.each / 10;
        let nothing = if now.last { amount == seen.amount || crumb } else { ends };
        if span < Duration::from_millis(1) || nothing {
            return;
        }
        let interim = Interim {
            number: seen.number,
            rate: self.unit.rate(amount.saturating_sub(seen.amount) as f64, span.as_secs_f64()),
            unit: self.unit,
            seconds: span.as_secs_f64(),
            ending_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()),
        };
        *seen = Seen { number: seen.number + 1, at: now.at, amount };
        // A reader that has had enough of it is told at the end.
        let _ = print(&interim.text(self.form));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Options {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match options::read(texts(&words).expect("text")).expect("options") {
            Wanted::Test(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    /// netperf 2.7.1 takes the two of `-I` apart as those of all other options (break_args): one number is both.
    #[test]
    fn a_confidence_without_a_width_is_as_wide_as_it_is_sure() {
        let goal = |line: &str| {
            let goal = asked(line).confidence.expect("a goal");
            (goal.level, (goal.interval * 100.0).round() as u32, goal.min, goal.max)
        };
        assert_eq!(goal("-I 99"), (99, 99, 3, 10));
        assert_eq!(goal("-I 99,"), (99, 5, 3, 10));
        assert_eq!(goal("-I 95,10 -i 8,4"), (95, 10, 4, 8));
        assert_eq!(goal("-i 50,2"), (99, 5, 3, 30));
    }

    #[test]
    fn lengths_beyond_a_day_are_refused_and_not_cut() {
        assert_eq!(asked("-l 86400").length, 86_400);
        assert_eq!(asked("-l -2147483647").length, -i32::MAX);
        for line in ["-l 86401", "-l 25h", "-l -2147483648"] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let said = options::read(texts(&words).expect("text")).expect_err(line).to_string();
            assert!(said.contains("to 86400 (seconds)"), "{said}");
        }
    }

    #[test]
    fn a_passphrase_that_a_message_has_no_room_for_is_refused_and_not_cut() {
        let words = ["-Z", &"x".repeat(601)].map(OsString::from);
        let said = options::read(texts(&words).expect("text")).expect_err("too long").to_string();
        assert_eq!(said, "-Z: a passphrase has 1 to 600 bytes");
        assert!(asked(&format!("-Z {}", "x".repeat(600))).passphrase.is_some());
    }

    /// What is shown of a test of so many seconds at these moments: their lengths in ms.
    fn shown(line: &str, moments: &[(u64, bool)]) -> Vec<u128> {
        let interim = Interims::new(&asked(line));
        let mut spans = Vec::new();
        for (number, (ms, last)) in (1..).zip(moments) {
            let before = interim.state.lock().expect("a state").at;
            interim.show(&Moment {
                at: Duration::from_millis(*ms),
                bytes: 1000 * number,
                count: number,
                last: *last,
            });
            let at = interim.state.lock().expect("a state").at;
            if at != before {
                spans.push((at - before).as_millis());
            }
        }
        spans
    }

    #[test]
    fn the_last_interim_result_is_of_no_millisecond() {
        let of_a_second = [(250, false), (500, false), (750, false), (1000, false), (1001, true)];
        assert_eq!(shown("-l 1 -D 0.25", &of_a_second), [250, 250, 250, 251]);
        // Nobody knew when an amount would be there.
        assert_eq!(shown("-l -9 -D 0.25", &[(250, false), (500, false), (501, true)]), [250, 250]);
        assert_eq!(shown("-l -9 -D 0.25", &[(250, false), (300, true)]), [250, 50]);
        assert_eq!(shown("-l -9 -D 0.25", &[(2, true)]), [2]);
    }
}
