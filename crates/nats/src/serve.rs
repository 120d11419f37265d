//! The agent's end: it stays connected, and each session that a client asks for is a program of its own, which serves standard input and
//! output.
//!
//! A program and not a thread, because an agent stays for months: what a run would leave in a process goes away with it, a run that does
//! not end can be ended, and the kernel tells apart who holds an interface.

use crate::bus::{Bus, Options, State};
use crate::carry::{Ended, Role, Session as Carried};
use crate::ends::Ends;
use crate::link::Link;
use crate::message::{Hello, Message, Open, Opened, SCHEMA, read_words, shown, words};
use crate::subject::{For, Id, Session, Subjects};
use crate::{Fault, SESSIONS};
use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

/// How often it looks whether something is due.
const LOOK: Duration = Duration::from_millis(100);
/// A server must answer within this time.
const ANSWERS: Duration = Duration::from_secs(5);
/// How often it says that it is there.
const HELLO: Duration = Duration::from_secs(1);
/// A server that is not there is looked for so often.
const AGAIN: Duration = Duration::from_secs(2);
/// Messages on their way to a session; what comes beyond is lost, and sent again.
const WAITING: usize = 256;
/// Of a connection that is lost so much is told.
const TROUBLES: usize = 8;
/// A program whose pipes are closed has so long to end its runs.
const GRACE: Duration = Duration::from_secs(20);

/// What is served.
pub struct Served<'a> {
    /// The agent's name at the server.
    pub id: &'a Id,
    /// Who is not heard for so long is gone.
    pub lease: Duration,
    /// The program of a session: standard input and output are its client's.
    pub program: &'a dyn Fn() -> Command,
    /// Takes words for people, a line at a time.
    pub say: fn(&str),
}

impl std::fmt::Debug for Served<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("id", self.id).finish_non_exhaustive()
    }
}

/// Serves those who ask for the agent, until `stop` is set. Then each session has ended, with its program.
///
/// # Errors
/// The server refuses the login or what an agent does, or an option is wrong. A server that is not there is waited for.
pub fn serve(options: &Options, served: &Served<'_>, stop: &Arc<AtomicBool>) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Some(bus) = connect(options, served, stop).await? else { return Ok(()) };
        let subjects = Subjects::new(&options.prefix, served.id);
        let subscribed = bus.client.subscribe(subjects.for_agent()).await;
        let asked = subscribed.map_err(|error| Fault::Server(shown(&error.to_string())))?;
        let mut agent = Agent {
            options,
            served,
            stop,
            subjects,
            hello: Hello {
                schema: SCHEMA.into(),
                id: served.id.to_string(),
                boot_id: boot_id(),
                instance: Session(crate::draw()?).to_string(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                sessions: 0,
            },
            sessions: BTreeMap::new(),
            said: State::default(),
            troubles: BTreeSet::new(),
            bus,
        };
        let ended = agent.run(asked).await;
        let _ = tokio::time::timeout(HELLO, agent.bus.client.flush()).await;
        ended
    })
}

/// A connection; none if it is to stop before there is one.
async fn connect(options: &Options, served: &Served<'_>, stop: &AtomicBool) -> Result<Option<Bus>, Fault> {
    let mut said = String::new();
    while !stop.load(Relaxed) {
        let fault = match Bus::connect(options, &format!("netdyno agent {}", served.id), ANSWERS).await {
            Ok(bus) => return Ok(Some(bus)),
            Err(not) if not.passes => not.fault.to_string(),
            Err(not) => return Err(not.fault),
        };
        if fault != said {
            (served.say)(&format!("{fault}; it is tried again each {} s", AGAIN.as_secs()));
            said = fault;
        }
        let until = Instant::now() + AGAIN;
        while Instant::now() < until && !stop.load(Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(None)
}

/// A session that goes on.
struct Going {
    epoch: u64,
    incoming: Sender<Bytes>,
    task: JoinHandle<()>,
}

struct Agent<'a> {
    options: &'a Options,
    served: &'a Served<'a>,
    stop: &'a Arc<AtomicBool>,
    subjects: Subjects,
    bus: Bus,
    hello: Hello,
    sessions: BTreeMap<Session, Going>,
    /// How the connection stood when it was told last.
    said: State,
    /// What was told of it since it was lost.
    troubles: BTreeSet<String>,
}

impl Agent<'_> {
    async fn run(&mut self, mut asked: Subscriber) -> Result<(), Fault> {
        let mut last_hello = None::<Instant>;
        loop {
            self.sessions.retain(|_, session| !session.task.is_finished());
            let state = self.bus.state.borrow().clone();
            if let Some(refused) = &state.refused {
                return Err(self.refused(refused));
            }
            self.tell(state);
            if self.stop.load(Relaxed) && self.sessions.is_empty() {
                return Ok(());
            }
            if last_hello.is_none_or(|last| last.elapsed() >= HELLO) && self.said.connected {
                last_hello = Some(Instant::now());
                self.hello.sessions = self.sessions.len();
                let hello = words(&self.hello);
                let _ = self.bus.client.publish(self.subjects.hello(), hello.into()).await;
            }
            tokio::select! {
                message = asked.next() => match message {
                    Some(message) => self.came(&message).await,
                    None => return Err(Fault::Server("the connection to the server is gone".to_owned())),
                },
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn refused(&self, said: &str) -> Fault {
        let (prefix, id) = (&self.options.prefix, self.served.id);
        Fault::Server(format!(
            "{} does not permit this user what an agent does: {said}: let it publish {prefix}.up.{id}.> and subscribe to {prefix}.agent.{id}.>",
            self.options.told()
        ))
    }

    /// Tells how the connection stands, if that has changed.
    fn tell(&mut self, state: State) {
        let (id, server) = (self.served.id, self.options.told());
        match (self.said.connected, state.connected) {
            (false, true) => (self.served.say)(&format!("{id} is connected to {server}")),
            (true, false) => (self.served.say)(&format!(
                "the connection to {server} is lost; {id} tries again, and ends sessions after {} s",
                self.served.lease.as_secs()
            )),
            _ => {}
        }
        if state.connected {
            self.troubles.clear();
        }
        // A server may be away for months: each thing is said once until it is back.
        if let Some(trouble) = &state.trouble
            && self.troubles.len() < TROUBLES
            && self.troubles.insert(trouble.clone())
        {
            (self.served.say)(&format!("{server}: {trouble}"));
        }
        self.said = state;
    }

    /// A message came, from outside.
    async fn came(&mut self, message: &async_nats::Message) {
        match self.subjects.of(&message.subject) {
            Some(For::Open) => self.open(&message.payload).await,
            Some(For::Session(name)) => match self.sessions.get(&name) {
                // What there is no room for is sent again.
                Some(session) => drop(session.incoming.try_send(message.payload.clone())),
                None => {
                    // Its client is to know now, and not when it has waited long enough. Who leaves needs no answer.
                    let Some(read) = Message::read(&message.payload) else { return };
                    if read.kind != crate::message::Kind::Bye {
                        let bye =
                            Message::bye(read.epoch, "it knows this session no more, as after a restart");
                        let _ = self.bus.client.publish(self.subjects.by_agent(name), bye.into()).await;
                    }
                }
            },
            None => {}
        }
    }

    async fn open(&mut self, payload: &[u8]) {
        let Some(open) = read_words::<Open>(payload) else { return };
        let Some(name) = open.session() else { return };
        let opened = self.opened(&open, name);
        let error = opened.as_ref().err().cloned();
        if let Some(error) = &error {
            (self.served.say)(&format!("a session is refused to {}: {error}", told(&open)));
        }
        let answer = Opened {
            schema: SCHEMA.into(),
            session: open.session,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: opened.ok().map(|epoch| format!("{epoch:016x}")),
            lease_ms: u64::try_from(self.served.lease.as_millis()).ok(),
            error,
        };
        let _ = self.bus.client.publish(self.subjects.by_agent(name), words(&answer).into()).await;
    }

    /// The epoch of a session: of a new one, or of the one that was asked for before.
    fn opened(&mut self, open: &Open, name: Session) -> Result<u64, String> {
        if let Some(session) = self.sessions.get(&name) {
            return Ok(session.epoch);
        }
        if open.schema != SCHEMA {
            return Err(format!("it speaks {SCHEMA}, and was asked for {}", shown(&open.schema)));
        }
        if self.stop.load(Relaxed) {
            return Err("it is being stopped".to_owned());
        }
        if self.sessions.len() >= SESSIONS {
            return Err(format!("{SESSIONS} sessions go on, which is the most"));
        }
        let started = self.start(told(open), name);
        started.map_err(|error| format!("its program cannot be started: {}", shown(&error.to_string())))
    }

    fn start(&mut self, client: String, name: Session) -> std::io::Result<u64> {
        let epoch = crate::draw()? as u64;
        let mut command = (self.served.program)();
        // Signals for this process are passed on as the end of its input.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("it has no pipes"));
        };
        let ends = Ends::new(from, to).inspect_err(|_| end_at_once(&mut child))?;
        let (hand_on, incoming) = channel(WAITING);
        let carried = Carried {
            role: Role::Agent,
            link: Link::new(epoch, Duration::ZERO),
            bus: self.bus.clone(),
            to: self.subjects.by_agent(name),
            incoming,
            stop: Arc::clone(self.stop),
            lease: self.served.lease,
            began: Instant::now(),
        };
        let say = self.served.say;
        say(&format!("session {:.8} begins: {client}", name.to_string()));
        let task = tokio::spawn(session(carried, ends, child, name, say));
        self.sessions.insert(name, Going { epoch, incoming: hand_on, task });
        Ok(epoch)
    }
}

/// A session until its program has ended.
async fn session(mut carried: Carried, mut ends: Ends, mut child: Child, name: Session, say: fn(&str)) {
    let ended = carried.carry(&mut ends).await;
    let why = match &ended {
        Ended::Regularly => "its client and its program have ended".to_owned(),
        Ended::Bye(why) => why.clone(),
        Ended::Silent => format!("its client was not heard for {} s", carried.lease.as_secs()),
        Ended::Stuck => format!("its program did not end within {} s", GRACE.as_secs()),
        Ended::Early | Ended::Two | Ended::Unread => "it ended".to_owned(),
    };
    // Its pipes are closed: that is its lease. Who had that time has no more.
    drop(ends);
    let until = Instant::now() + if ended == Ended::Stuck { Duration::ZERO } else { GRACE };
    let ends_by_itself = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => tokio::time::sleep(LOOK / 4).await,
            Ok(None) => break false,
            Ok(Some(_)) | Err(_) => break true,
        }
    };
    if !ends_by_itself {
        end_at_once(&mut child);
    }
    let how = if ends_by_itself { "" } else { "; its program was ended" };
    say(&format!("session {:.8} is over: {why}{how}", name.to_string()));
}

/// Ends it, with all that it has started.
fn end_at_once(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

/// Who asks, as it says.
fn told(open: &Open) -> String {
    let client = &open.client;
    let [user, host, version] = [&client.user, &client.host, &client.version].map(|text| shown(text));
    format!("{user} at {host} (process {}, netdyno {version}, as it says)", client.process)
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
