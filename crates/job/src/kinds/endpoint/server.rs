//! `netdyno endpoint serve`: the far end of endpoint tests.

use super::token;
use crate::kinds::{Run, passive};
use crate::panel::Names;
use crate::session::{Looked, Session};
use ::endpoint::native::{Limits, PORT};
use ::transport::native::{Server, ServerOptions, Standing, serve};
use ::transport::phase::Stop;
use anyhow::{Context, Result};
use report::{Code, Report, Resolved};
use snapshot::{Snapshot, Title};
use spec::{EndpointRate, EndpointServer};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

impl Run for EndpointServer {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn options(args: &EndpointServer) -> Result<ServerOptions> {
    let mut options = ServerOptions::default();
    for place in &args.listen {
        if let Some(path) = place.strip_prefix("unix:") {
            options.unix.push(path.into());
            continue;
        }
        options.listen.push(address(place)?);
    }
    options.token = args.token_file.as_deref().map(token).transpose()?;
    options.clients = args.max_clients.unwrap_or(options.clients);
    options.connections = args.max_connections.unwrap_or(options.connections);
    options.mptcp = args.mptcp;
    let limits = Limits::default();
    options.limits = Limits {
        flows: args.max_parallel.unwrap_or(limits.flows),
        duration_ns: args
            .max_duration
            .as_deref()
            .map_or(limits.duration_ns, |most| u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)),
        memory: args.max_memory.as_deref().copied().unwrap_or(limits.memory),
        bits_per_second: match args.max_rate.as_deref() {
            Some(EndpointRate::Bits(bits)) => *bits,
            _ => 0,
        },
    };
    Ok(options)
}

fn address(place: &str) -> Result<SocketAddr> {
    if let Ok(address) = place.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let mend =
        || format!("`.listen` {place}: give ADDR:PORT, such as 0.0.0.0:{PORT} or [::]:{PORT}, or unix:PATH");
    place.to_socket_addrs().with_context(mend)?.next().with_context(mend)
}

fn run(args: &EndpointServer, session: &Session) -> Result<Report> {
    passive::check(args)?;
    let stop = Stop::new();
    let server = Server::bind(options(args)?, &stop)?;
    session.heed();
    let duration = args.duration.as_deref().copied();
    let mut report = Report::new("endpoint serve");
    report.resolved = Resolved { duration_ns: duration.map(|d| d.as_nanos() as u64), ..Resolved::default() };
    report.environment = crate::environment::collect();
    let mut places: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    places.extend(server.paths().map(|path| format!("unix:{}", path.display())));
    session.meet();
    session.say(
        Code::Begun,
        format!("serving endpoint tests at {}; Ctrl-C ends and reports", places.join(", ")),
    );
    let title = Title { rx: Some(places.join(", ")), ..passive::title("endpoint serve") };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let standing = server.standing();
    let served = std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server));
        let watched = session.watch(&mut panel, duration, |_| look(standing(), serving.is_finished()));
        stop.set();
        let served =
            serving.join().map_err(|_| anyhow::anyhow!("a thread panicked: this is a defect of netdyno"));
        (served, watched)
    });
    session.board.end();
    let (served, watched) = served;
    served?.context("accepting connections")?;
    // Who ends a server by hand ends it as it is meant to be.
    if duration.is_some() {
        watched.judge(&mut report);
    }
    report.result.served = Some(of(standing()));
    Ok(report)
}

fn look(now: Standing, over: bool) -> Looked<'static, ()> {
    let endpoint = snapshot::Endpoint {
        received_bytes: now.bytes,
        clients: Some(now.clients),
        tests: Some(now.done),
        ..snapshot::Endpoint::default()
    };
    Looked::of((), over, Snapshot { endpoint: Some(endpoint), ..Snapshot::default() })
}

fn of(now: Standing) -> report::Served {
    report::Served {
        tests: now.done,
        broken_tests: now.broken,
        refused_connections: now.refused,
        bytes: now.bytes,
    }
}
