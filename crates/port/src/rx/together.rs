//! Several receivers as one: the queues of an interface with AF_XDP, or several interfaces.

use super::{Frame, Rx, RxCounters, RxError, RxFacts};
use crate::socket::polled;
use rustix::event::PollFlags;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Receivers that are asked in turn. A batch is of one of them, the order of frames is kept within each. All belong to the
/// thread that holds this: who has a thread for each keeps them apart.
#[derive(Debug)]
pub struct Together<R> {
    members: Vec<R>,
    /// Whose batch is lent.
    lent: usize,
    /// Can be read when any of them can.
    epoll: OwnedFd,
}

impl<R: Rx> Together<R> {
    /// At least one of them; their descriptors stay in use until this is dropped.
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn of(members: Vec<R>) -> Result<Together<R>, Errno> {
        if members.is_empty() {
            return Err(Errno::INVAL);
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (nth, member) in (0u64..).zip(&members) {
            epoll::add(&epoll, member.as_fd(), EventData::new_u64(nth), EventFlags::IN)?;
        }
        Ok(Together { members, lent: 0, epoll })
    }

    /// Asks each once, from the one behind the last that had something.
    fn look(&mut self, patience: Duration) -> Result<usize, RxError> {
        let (from, count) = (self.lent + 1, self.members.len());
        for nth in (from..from + count).map(|nth| nth % count) {
            let taken = self.members[nth].advance(patience)?;
            if taken > 0 {
                self.lent = nth;
                return Ok(taken);
            }
        }
        Ok(0)
    }
}

impl<R: Rx> AsFd for Together<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl<R: Rx> Rx for Together<R> {
    fn batch(&self) -> usize {
        self.members.iter().map(Rx::batch).max().unwrap_or(0)
    }

    fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        // The batch that is lent goes back first: the others' turns come before its owner's.
        self.members[self.lent].give_back();
        let taken = self.look(Duration::ZERO)?;
        if taken > 0 || patience.is_zero() {
            return Ok(taken);
        }
        // Its errors are those of the members, which are asked in any case: for no longer than a look, but for long enough
        // to be told what is wrong with the interface.
        let _ = polled(&self.epoll, PollFlags::IN, patience);
        self.look(Duration::from_nanos(1))
    }

    fn give_back(&mut self) {
        self.members[self.lent].give_back();
    }

    fn frames(&self) -> &[Frame<'_>] {
        self.members[self.lent].frames()
    }

    /// Of all members together.
    fn counters(&mut self) -> RxCounters {
        self.members.iter_mut().map(Rx::counters).fold(RxCounters::default(), |sum, one| RxCounters {
            frames: sum.frames + one.frames,
            dropped: sum.dropped + one.dropped,
        })
    }

    /// What every member tells.
    fn facts(&self) -> RxFacts {
        let all = |of: fn(&RxFacts) -> bool| self.members.iter().all(|member| of(&member.facts()));
        RxFacts {
            tags: all(|facts| facts.tags),
            checksums: all(|facts| facts.checksums),
            offloads: all(|facts| facts.offloads),
            kinds: all(|facts| facts.kinds),
            stamps: all(|facts| facts.stamps),
            shared: !all(|facts| !facts.shared),
        }
    }
}
