//! `netdyno netserver`: a server of netperf's protocol.

use super::endpoint::server::standing;
use super::{Run, passive};
use crate::panel::Names;
use crate::session::Session;
use ::endpoint::netperf::PORT;
use ::transport::netperf::server::{self, Event, Serving};
use ::transport::phase::Stop;
use anyhow::{Context, Result, ensure};
use report::{Code, Report, Served};
use snapshot::Title;
use spec::{Family, Netserver};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Mutex, PoisonError};

/// Tests at once.
pub const TESTS: u64 = 256;
/// Bytes of all tests' buffers together.
const MEMORY: u64 = 1 << 30;
/// A passphrase that a message has room for.
const PASSPHRASE: usize = 600;

/// What a server has beside its job.
pub struct Beside {
    /// What clients have to say first, where the job names no file of it.
    pub passphrase: Option<Vec<u8>>,
    /// Called when all addresses are there, before the first client is accepted.
    pub bound: Box<dyn Fn() + Send>,
    /// Told what happens.
    pub tell: Box<dyn Fn(&Event<'_>) + Send + Sync>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

impl Run for Netserver {
    fn run(&self, session: Session) -> Result<Report> {
        passive::check(self)?;
        let beside = Beside { passphrase: None, bound: Box::new(|| {}), tell: Box::new(|_| {}) };
        serve(self, beside, &session)
    }
}

/// The first line of a file.
pub(super) fn passphrase(path: &std::path::Path) -> Result<Vec<u8>> {
    let name = || format!("`.passphrase_file` {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name)?;
    let line = text.lines().next().unwrap_or_default().as_bytes().to_vec();
    ensure!(
        (1..=PASSPHRASE).contains(&line.len()),
        "{}: its first line has no 1 to {PASSPHRASE} bytes",
        name()
    );
    Ok(line)
}

/// Where a job listens.
fn addresses(job: &Netserver) -> Result<Vec<SocketAddr>> {
    let wanted = |at: &SocketAddr| job.family.v6().is_none_or(|v6| at.is_ipv6() == v6);
    if job.listen.is_empty() {
        // [::] takes IPv4 as well, where there is IPv6.
        let has_v6 = std::path::Path::new("/proc/net/if_inet6").exists();
        let v4 = job.family == Family::V4 || job.family == Family::Any && !has_v6;
        let any: IpAddr = if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        return Ok(vec![SocketAddr::new(any, PORT)]);
    }
    let mut all = Vec::new();
    for place in &job.listen {
        let mend = || format!("`.listen` {place}: give ADDR:PORT, such as 0.0.0.0:{PORT} or [::]:{PORT}");
        let found: Vec<SocketAddr> = place.to_socket_addrs().with_context(mend)?.filter(wanted).collect();
        ensure!(!found.is_empty(), "`.listen` {place}: it has no address of that family");
        all.extend(found);
    }
    Ok(all)
}

/// What has been served so far.
#[derive(Debug, Default)]
struct Tally {
    /// Clients whose tests run.
    running: HashSet<SocketAddr>,
    served: Served,
}

impl Tally {
    fn count(&mut self, event: &Event<'_>) {
        match event {
            Event::Listening(_) => {}
            Event::Full(_) => self.served.refused_connections += 1,
            Event::Began(peer, _) => {
                self.running.insert(*peer);
            }
            Event::Ended(peer, results) => {
                self.running.remove(peer);
                self.served.tests += 1;
                self.served.bytes += results.bytes_received + results.bytes_sent;
            }
            Event::Failed(peer, _) if self.running.remove(peer) => {
                self.served.tests += 1;
                self.served.broken_tests += 1;
            }
            Event::Failed(..) => self.served.refused_connections += 1,
        }
    }
}

/// Serves until it is stopped. What contradicts itself in the job must have been found before.
///
/// # Errors
/// An address is not to be had, or the file of the passphrase.
pub fn serve(job: &Netserver, beside: Beside, session: &Session) -> Result<Report> {
    let Beside { passphrase: said, bound, tell } = beside;
    let serving = Serving {
        at: addresses(job)?,
        passphrase: job.passphrase_file.as_deref().map(passphrase).transpose()?.or(said),
        serial: job.serial,
        tests: TESTS,
        memory: MEMORY,
        v6_only: job.family == Family::V6,
    };
    session.stop_in_order();
    let mut report = Report::new("netserver");
    report.environment = crate::environment::collect();
    let places: Vec<String> = serving.at.iter().map(ToString::to_string).collect();
    let places = places.join(", ");
    session.say(Code::Begun, format!("serving netperf's clients at {places}; Ctrl-C ends and reports"));
    let title = Title { rx: Some(places), ..passive::title("netserver") };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let tally = Mutex::new(Tally::default());
    let lock = || tally.lock().unwrap_or_else(PoisonError::into_inner);
    let stop = Stop::new();
    let counted = |event: Event<'_>| {
        lock().count(&event);
        tell(&event);
    };
    // Other jobs of the file may be its clients: they begin when the port is there.
    let bound = move || {
        bound();
        session.serves();
    };
    let done = std::thread::scope(|scope| {
        let (serving, stop, counted) = (&serving, &stop, &counted);
        let thread = scope.spawn(move || server::serve(serving, stop, &bound, counted));
        session.watch(&mut panel, None, |_| {
            let now = lock();
            standing(now.served, now.running.len() as u64, thread.is_finished())
        });
        stop.set();
        thread.join().map_err(|_| anyhow::anyhow!("a thread panicked: this is a defect of netdyno"))
    })?;
    session.board.end();
    done?;
    report.result.served = Some(lock().served);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::endpoint::netperf::omni::Results;
    use ::endpoint::netperf::plan::{Plan, Style};

    #[test]
    fn places_are_addresses_of_the_family_that_is_asked_for() {
        let of = |listen: &[&str], family| {
            let listen = listen.iter().map(|place| (*place).to_owned()).collect();
            addresses(&Netserver { listen, family, ..Netserver::default() })
        };
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(of(&[], Family::V4).expect("any"), [at("0.0.0.0:12865")]);
        assert_eq!(of(&[], Family::V6).expect("any"), [at("[::]:12865")]);
        let both = ["127.0.0.1:0", "[::1]:7"];
        assert_eq!(of(&both, Family::Any).expect("both"), [at("127.0.0.1:0"), at("[::1]:7")]);
        for (listen, family) in [(["nothing"], Family::Any), (["127.0.0.1:1"], Family::V6)] {
            let said = of(&listen, family).expect_err("no place").to_string();
            assert!(said.starts_with("`.listen` "), "{said}");
        }
    }

    #[test]
    fn a_test_that_fails_is_told_from_a_client_that_is_refused() {
        let (one, other) = ("192.0.2.1:9".parse().expect("a peer"), "192.0.2.2:9".parse().expect("a peer"));
        let plan = Plan::of(Style::Omni, ::endpoint::netperf::omni::Request::default()).expect("a plan");
        let results = Results { bytes_received: 40, bytes_sent: 2, ..Results::default() };
        let mut tally = Tally::default();
        let failed = |peer| Event::Failed(peer, "why".to_owned());
        for event in
            [Event::Began(one, &plan), failed(other), Event::Ended(one, &results), Event::Full(other)]
        {
            tally.count(&event);
        }
        for event in [Event::Began(one, &plan), failed(one), Event::Began(other, &plan)] {
            tally.count(&event);
        }
        let wanted = Served { tests: 2, broken_tests: 1, refused_connections: 2, bytes: 42 };
        assert_eq!((tally.served, tally.running.len()), (wanted, 1));
    }
}
