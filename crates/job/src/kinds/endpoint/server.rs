//! `netdyno endpoint serve`: the far end of endpoint tests.

use super::token;
use crate::kinds::{Run, passive};
use crate::panel::Names;
use crate::session::{Looked, Session};
use ::endpoint::native::{Limits, PORT};
use ::transport::native::{Server, ServerOptions, Standing, serve};
use ::transport::phase::Stop;
use ::transport::rights::{self, User};
use anyhow::{Context, Result};
use report::units::printable;
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

/// The process is root's no more, unless it is to stay so. Who it is then.
fn leave_root(name: &str) -> Result<Option<User>> {
    let user = User::find(name).with_context(|| format!("`.user` {name}"))?;
    if user.uid == rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    anyhow::ensure!(rights::is_root(), "`.user` {name}: only root can go on as another user; leave it out");
    rights::become_user(&user).with_context(|| format!("`.user` {name}: giving up root's rights"))?;
    Ok(Some(user))
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
    let options = options(args)?;
    let most = options.connections;
    let server = Server::bind(options, &stop)?;
    let user = args.user.as_deref().map(leave_root).transpose()?.flatten();
    session.stop_in_order();
    let duration = args.duration.as_deref().copied();
    let mut report = Report::new("endpoint serve");
    report.resolved = Resolved { duration_ns: duration.map(|d| d.as_nanos() as u64), ..Resolved::default() };
    report.environment = crate::environment::collect();
    let mut places: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    places.extend(server.paths().map(|path| format!("unix:{}", path.display())));
    session.meet()?;
    let user = user.map_or_else(String::new, |user| format!(" as user {}", printable(&user.name)));
    session.say(
        Code::Begun,
        format!("serving endpoint tests at {}{user}; Ctrl-C ends and reports", places.join(", ")),
    );
    if args.max_connections.is_some() && server.room() < u64::from(most) {
        let said = format!(
            "at most {} connections at once, not {most}: this process may open no more files (RLIMIT_NOFILE)",
            server.room()
        );
        report.warnings.add(
            Code::WentWithout,
            (said, "raise its hard limit (ulimit -Hn, LimitNOFILE), or ask for less by `.max_connections`"),
        );
    }
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
