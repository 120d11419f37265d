//! Carries a session: between the pipes of one end and the messages of the server, until it is over.

use crate::bus::Bus;
use crate::ends::Ends;
use crate::link::{Came, Link, Refused};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{OwnedPermit, Receiver, error::TrySendError};

/// How often it is looked whether something is due, or it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// A program whose input was closed has so long to end: the agent's bound for its runs, and some more.
const GRACE: Duration = Duration::from_secs(20);

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Agent,
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both streams ended.
    Regularly,
    /// At a client: the agent ended first.
    Early,
    /// The other end left, and said why.
    Bye(String),
    /// The other end was not heard for as long as the lease is.
    Silent,
    /// At a client: another agent answers, too.
    Two,
    /// At a client: nobody reads what is written.
    Unread,
    /// At an agent: its program did not end.
    Stuck,
}

/// What a session is carried between.
#[derive(Debug)]
pub(crate) struct Session {
    pub role: Role,
    pub link: Link,
    pub bus: Bus,
    /// The subject that the other end listens to.
    pub to: String,
    /// Messages of the other end.
    pub incoming: Receiver<Bytes>,
    pub stop: Arc<AtomicBool>,
    pub lease: Duration,
    /// Times of the link are since then.
    pub began: Instant,
}

/// What else it keeps in mind.
#[derive(Debug, Default)]
struct Mind {
    /// Since when the program has no input any more.
    closed: Option<Duration>,
    /// Nobody reads what is written.
    unread: bool,
    times: u64,
}

impl Session {
    /// Carries it until it is over.
    pub async fn carry(&mut self, ends: &mut Ends) -> Ended {
        let mut mind = Mind { times: self.bus.state.borrow().times, ..Mind::default() };
        loop {
            let now = self.began.elapsed();
            self.hand_on(ends, &mut mind, now);
            self.send(now).await;
            if let Some(ended) = self.is_over(&mind, now) {
                return ended;
            }
            let room = self.link.has_room();
            let waits = self.link.has_pieces().then(|| ends.to.clone()).flatten();
            tokio::select! {
                message = self.incoming.recv() => {
                    // Nobody hands on any more: it is over in time.
                    let Some(message) = message else {
                        tokio::time::sleep(LOOK).await;
                        continue;
                    };
                    if let Some(ended) = self.came(message) {
                        return ended;
                    }
                }
                piece = ends.from.recv(), if room => match piece {
                    Some(piece) => self.link.write(&piece),
                    None => self.link.finish(),
                },
                () = has_room(waits), if self.link.has_pieces() => {}
                changed = self.bus.state.changed() => {
                    let state = self.bus.state.borrow_and_update().clone();
                    if state.connected && state.times != mind.times {
                        mind.times = state.times;
                        self.link.reconnected(self.began.elapsed());
                    }
                    if changed.is_err() {
                        return Ended::Silent;
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// A message came, and those that came with it: they are answered together.
    fn came(&mut self, mut message: Bytes) -> Option<Ended> {
        let now = self.began.elapsed();
        loop {
            match self.link.came(now, &message) {
                Ok(Came::Bye(why)) => return Some(Ended::Bye(why)),
                Err(Refused::Stale) if self.role == Role::Client => return Some(Ended::Two),
                Ok(Came::Message) | Err(_) => {}
            }
            message = self.incoming.try_recv().ok()?;
        }
    }

    /// Hands on what came, as far as there is room.
    fn hand_on(&mut self, ends: &mut Ends, mind: &mut Mind, now: Duration) {
        let stops = self.stop.load(Relaxed);
        match self.role {
            // The other end's runs are stopped, and their ends are still heard.
            Role::Client if stops => self.link.finish(),
            Role::Agent if stops => ends.to = None,
            _ => {}
        }
        loop {
            let permit = match ends.to.clone().map(tokio::sync::mpsc::Sender::try_reserve_owned) {
                Some(Ok(permit)) => Some(permit),
                Some(Err(TrySendError::Full(_))) => return,
                Some(Err(TrySendError::Closed(_))) => {
                    mind.unread = true;
                    None
                }
                None => None,
            };
            let Some(piece) = self.link.take() else { break };
            // Who takes nothing any more does not hold up the other end's.
            if let Some(permit) = permit {
                OwnedPermit::send(permit, piece);
            }
        }
        if self.link.is_at_end() {
            ends.to = None;
        }
        if ends.to.is_none() || mind.unread {
            mind.closed.get_or_insert(now);
        }
    }

    /// Sends what is due. While there is no connection it waits here.
    async fn send(&mut self, now: Duration) {
        if !self.bus.state.borrow().connected {
            return;
        }
        let most = self.bus.client.max_payload();
        while let Some(message) = self.link.next_message(now, most) {
            // What cannot be sent is sent again later.
            let _ = self.bus.client.publish(self.to.clone(), message.into()).await;
        }
    }

    fn is_over(&self, mind: &Mind, now: Duration) -> Option<Ended> {
        let link = &self.link;
        match self.role {
            Role::Agent if link.is_through() => return Some(Ended::Regularly),
            Role::Agent
                if mind.closed.is_some_and(|closed| now >= closed + GRACE) && !link.has_finished() =>
            {
                return Some(Ended::Stuck);
            }
            Role::Client if link.is_at_end() => {
                return Some(if link.has_finished() { Ended::Regularly } else { Ended::Early });
            }
            Role::Client if mind.unread => return Some(Ended::Unread),
            _ => {}
        }
        (link.silence(now) >= self.lease).then_some(Ended::Silent)
    }
}

/// Until the writer takes more, or ends.
async fn has_room(to: Option<tokio::sync::mpsc::Sender<Vec<u8>>>) {
    if let Some(to) = to {
        drop(to.reserve().await);
    }
}
