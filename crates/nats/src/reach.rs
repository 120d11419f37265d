//! The client's end: a session with an agent, at whose disposal are two pipes.

use crate::bus::{Bus, Options};
use crate::carry::{Ended, Role, Session as Carried};
use crate::ends::Ends;
use crate::link::Link;
use crate::message::{Caller, Message, Open, Opened, SCHEMA, read_words, shown, words};
use crate::subject::{Id, Session, Subjects};
use crate::{Fault, LEASE};
use async_nats::{StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Sender, channel};

/// An agent is asked so often.
const ASKS: Duration = Duration::from_secs(1);
/// Messages on their way to the session; what comes beyond is lost, and sent again.
const WAITING: usize = 256;
/// What was said last has so long to leave.
const LEAVES: Duration = Duration::from_secs(1);

/// Carries a session with the agent `id`, which answers within `answers`, as the server does: what `from` has goes to its standard input, and what it writes goes to `to`. It ends when both have
/// ended; `stop` ends what goes to the agent.
///
/// # Errors
/// The server or the agent is not reached, or was lost: what is wrong, and what to do.
pub fn reach(
    options: &Options,
    id: &Id,
    answers: Duration,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    stop: &Arc<AtomicBool>,
) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bus = connect(options, id, answers, stop).await?;
        let subjects = Subjects::new(&options.prefix, id);
        let mut asking = Asking { bus, subjects, id, options, answers, lease: LEASE };
        let ended = asking.session(Ends::new(from, to)?, stop).await;
        // It may tell the agent that this end has left.
        let _ = tokio::time::timeout(LEAVES, asking.bus.client.flush()).await;
        ended
    })
}

/// Connects; a server that breaks off is tried again.
async fn connect(options: &Options, id: &Id, answers: Duration, stop: &AtomicBool) -> Result<Bus, Fault> {
    let until = Instant::now() + answers;
    loop {
        match Bus::connect(options, &format!("netdyno agents reach {id}"), answers).await {
            Ok(bus) => return Ok(bus),
            Err(not) if not.is_busy && Instant::now() < until && !stop.load(Relaxed) => {
                tokio::time::sleep(ASKS / 5).await;
            }
            Err(not) => return Err(not.fault),
        }
    }
}

/// Who asks an agent for a session.
struct Asking<'a> {
    bus: Bus,
    subjects: Subjects,
    id: &'a Id,
    options: &'a Options,
    answers: Duration,
    /// As the agent says.
    lease: Duration,
}

impl Asking<'_> {
    async fn session(&mut self, mut ends: Ends, stop: &Arc<AtomicBool>) -> Result<(), Fault> {
        let session = Session(crate::draw()?);
        let subject = self.subjects.by_agent(session);
        let mut answers = self.bus.client.subscribe(subject.clone()).await.map_err(lost)?;
        let (epoch, lease) = tokio::select! {
            opened = self.open(session, &subject, &mut answers, stop) => opened?,
            refused = self.refused() => return Err(refused),
        };
        self.lease = lease;
        let (hand_on, incoming) = channel(WAITING);
        tokio::spawn(pass(answers, epoch, hand_on));
        let began = Instant::now();
        let mut carried = Carried {
            role: Role::Client,
            link: Link::new(epoch, Duration::ZERO),
            bus: self.bus.clone(),
            to: self.subjects.for_session(session),
            incoming,
            stop: Arc::clone(stop),
            lease,
            began,
        };
        let ended = tokio::select! {
            ended = carried.carry(&mut ends) => ended,
            refused = self.refused() => return Err(refused),
        };
        // Whatever the reason: nobody listens any more.
        let bye = Message::bye(epoch, "its client has left");
        let _ = self.bus.client.publish(self.subjects.for_session(session), bye.into()).await;
        match ended {
            Ended::Regularly => {
                ends.close();
                Ok(())
            }
            other => Err(Fault::Agent(self.why(&other))),
        }
    }

    /// The epoch of a session that the agent has opened, and its lease.
    async fn open(
        &self,
        session: Session,
        reply: &str,
        answers: &mut Subscriber,
        stop: &AtomicBool,
    ) -> Result<(u64, Duration), Fault> {
        let id = self.id;
        let open = Open { schema: SCHEMA.into(), session: session.to_string(), client: caller() };
        let open = Bytes::from(words(&open));
        let until = Instant::now() + self.answers;
        while Instant::now() < until && !stop.load(Relaxed) {
            let asked =
                self.bus.client.publish_with_reply(self.subjects.open(), reply.to_owned(), open.clone());
            asked.await.map_err(lost)?;
            // What comes meanwhile is the answer, or comes again.
            while let Ok(message) = tokio::time::timeout(ASKS, answers.next()).await {
                let Some(message) = message else { return Err(lost("its subscription ended")) };
                if message.status == Some(StatusCode::NO_RESPONDERS) {
                    return Err(Fault::Agent(format!(
                        "no agent {id} is connected to {}: see that `netdyno agent --nats ... --id {id}` runs there with --prefix {} and its log is good",
                        self.options.told(),
                        self.options.prefix
                    )));
                }
                let Some(opened) = read_words::<Opened>(&message.payload) else { continue };
                if opened.session == session.to_string() {
                    return self.opened(&opened);
                }
            }
        }
        if stop.load(Relaxed) {
            return Err(Fault::Agent("stopped before the agent answered".to_owned()));
        }
        Err(Fault::Agent(format!(
            "the agent {id} does not answer: its host has gone away without a word, or it is frozen (its last hello may be on {})",
            self.subjects.hello()
        )))
    }

    fn opened(&self, opened: &Opened) -> Result<(u64, Duration), Fault> {
        let id = self.id;
        if opened.schema != SCHEMA {
            return Err(Fault::Agent(format!(
                "the agent {id} speaks {} and is netdyno {}, and this is netdyno {}, which speaks {SCHEMA}: install the same version at both ends",
                shown(&opened.schema),
                shown(&opened.version),
                env!("CARGO_PKG_VERSION")
            )));
        }
        match (&opened.error, opened.epoch()) {
            (Some(error), _) => Err(Fault::Agent(format!("the agent {id} refuses: {}", shown(error)))),
            (None, Some(epoch)) => Ok((epoch, opened.lease())),
            (None, None) => {
                Err(Fault::Agent(format!("the agent {id} answers without an epoch: it is no netdyno")))
            }
        }
    }

    /// Until the server says that something is not permitted.
    async fn refused(&self) -> Fault {
        let mut state = self.bus.state.clone();
        loop {
            if let Some(said) = &state.borrow_and_update().refused {
                let (prefix, id) = (&self.options.prefix, self.id);
                return Fault::Server(format!(
                    "{} does not permit this user what it takes: {said}: let it publish {prefix}.agent.{id}.> and subscribe to {prefix}.up.{id}.>",
                    self.options.told()
                ));
            }
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn why(&self, ended: &Ended) -> String {
        let (id, seconds) = (self.id, self.lease.as_secs());
        match ended {
            Ended::Bye(why) => format!("the agent {id} has ended the session: {why}"),
            Ended::Two => format!("two agents answer as {id}: give each an id of its own (--id)"),
            Ended::Unread => "nobody reads what the agent answers".to_owned(),
            Ended::Silent => {
                let state = self.bus.state.borrow();
                let server = self.options.told();
                match (state.connected, &state.trouble) {
                    (false, None) => format!(
                        "the connection to {server} was lost {seconds} s ago; the agent {id} ends its runs by itself"
                    ),
                    (false, Some(trouble)) => format!(
                        "the connection to {server} was lost {seconds} s ago ({trouble}); the agent {id} ends its runs by itself"
                    ),
                    (true, _) => format!(
                        "the agent {id} was not heard for {seconds} s: it was killed, is frozen, or has lost its connection to {server}; if it lives, it ends its runs by itself"
                    ),
                }
            }
            Ended::Regularly | Ended::Early | Ended::Stuck => {
                format!(
                    "the agent {id} has ended the session: it was stopped, or its program ended; its log says more"
                )
            }
        }
    }
}

fn lost(error: impl std::fmt::Display) -> Fault {
    Fault::Server(format!("the connection to the server is gone: {}", shown(&error.to_string())))
}

/// Hands on what the agent says. What another one says that has opened the session, too, looks like what is of another epoch.
async fn pass(mut answers: Subscriber, epoch: u64, hand_on: Sender<Bytes>) {
    while let Some(message) = answers.next().await {
        let payload = match read_words::<Opened>(&message.payload) {
            Some(opened) => match opened.epoch() {
                Some(other) if other != epoch => Message::bye(other, "").into(),
                _ => continue,
            },
            None => message.payload,
        };
        // What there is no room for is sent again.
        if let Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) = hand_on.try_send(payload) {
            return;
        }
    }
}

fn caller() -> Caller {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER")).or_else(|| name("LOGNAME"));
    let short = |text: String| text.chars().take(64).collect::<String>();
    Caller {
        user: short(user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))),
        host: short(rustix::system::uname().nodename().to_string_lossy().into_owned()),
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
