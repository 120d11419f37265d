//! Takes the filters away, once no learned flow has a socket that could answer a client. Finds everything by itself in the kernel, so
//! that it can be done by another process than the one that attached them.

use crate::filters::{self, Side};
use crate::flows::Flow;
use crate::programs::Maps;
use crate::sockets::Sockets;
use crate::steering::{QUIET_ELSEWHERE_NS, now};
use port::netlink::Socket;
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// From one look to the next.
const LOOK: Duration = Duration::from_millis(50);
/// So often in a row no socket must be found: a SYN may be on its way from the filter to the stack.
const LOOKS: u32 = 3;

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Filters that were taken away.
    pub filters: u64,
    /// Sockets of learned flows that were ended.
    pub ended: u64,
    /// Why filters are left, which keep answers from clients.
    pub left: Option<String>,
}

/// Ends all sockets of learned flows, and takes away the filters, in the calling thread's network namespace. Where sockets are left
/// after `patience`, or may be elsewhere, the filters stay, unless `force`.
///
/// # Errors
/// That the kernel does not answer, or it is not permitted.
pub fn clean(patience: Duration, force: bool) -> io::Result<Cleaned> {
    let mut done = Cleaned::default();
    for is_v6 in [false, true] {
        family(is_v6, patience, force, &mut done)?;
    }
    Ok(done)
}

fn family(is_v6: bool, patience: Duration, force: bool, done: &mut Cleaned) -> io::Result<()> {
    let mut route = Socket::route().map_err(io::Error::other)?;
    let there = |route: &mut Socket| -> io::Result<Vec<(u32, Side, u32)>> {
        let links = filters::links(route)?;
        let each = links.iter().flat_map(|link| [Side::Ingress, Side::Egress].map(|side| (link.index, side)));
        Ok(each
            .filter_map(|(index, side)| Some((index, side, filters::attached(index, side, is_v6)?)))
            .collect())
    };
    let all = there(&mut route)?;
    let Some((_, _, program)) = all.first() else { return Ok(()) };
    let maps = filters::maps_of(*program);
    // From now on nothing is let in.
    if let Some(maps) = &maps {
        maps.set_lease(0)?;
    }
    for (index, side, _) in all.iter().filter(|(_, side, _)| *side == Side::Ingress) {
        filters::detach(*index, *side, is_v6);
        done.filters += 1;
    }
    let left = match &maps {
        Some(maps) => end_sockets(maps, patience, done)?,
        None => Some("what their programs learned cannot be read".to_owned()),
    };
    if left.is_some() && !force {
        done.left = left;
        return Ok(());
    }
    for (index, side, _) in there(&mut route)? {
        filters::detach(index, side, is_v6);
        done.filters += 1;
    }
    if let Some(maps) = &maps {
        filters::links(&mut route)?
            .iter()
            .filter(|link| maps.was_made(link.index))
            .for_each(|link| filters::remove_qdisc(link.index));
    }
    Ok(())
}

/// Ends the sockets of learned flows; why some are left.
fn end_sockets(maps: &Maps, patience: Duration, done: &mut Cleaned) -> io::Result<Option<String>> {
    let until = Instant::now() + patience;
    let mut sockets = Sockets::open().map_err(io::Error::other)?;
    let (mut looks, mut refused) = (0, None);
    let mut ended: HashSet<Flow> = HashSet::new();
    loop {
        let learned = maps.learned();
        let ports: HashSet<u16> = learned.iter().map(|(flow, _)| flow.ends().1.port()).collect();
        let mut found = HashSet::new();
        for port in ports {
            found.extend(sockets.of(port).map_err(io::Error::other)?.flows);
        }
        let mut left = 0;
        for (flow, _) in learned.iter().filter(|(flow, _)| found.contains(flow)) {
            left += 1;
            match sockets.destroy(flow) {
                Ok(()) => {
                    ended.insert(*flow);
                }
                // Gone by itself.
                Err(error) if error.errno() == Some(Errno::NOENT) => {}
                Err(error) => refused = Some(error),
            }
        }
        // Whose sockets are not to be seen from here.
        let quiet = |last_ns: u64| now().saturating_sub(last_ns) >= QUIET_ELSEWHERE_NS;
        let elsewhere = match maps.is_elsewhere() {
            true => {
                learned.iter().filter(|(_, state)| !(state.is_closed() && quiet(state.last_ns()))).count()
            }
            false => 0,
        };
        done.ended = ended.len() as u64;
        looks = if left + elsewhere == 0 { looks + 1 } else { 0 };
        if looks >= LOOKS {
            return Ok(None);
        }
        if Instant::now() >= until {
            let why = match refused {
                _ if elsewhere > 0 => format!(
                    "{elsewhere} flows have their sockets in another network namespace: end the server's connections there"
                ),
                Some(error) if error.errno() == Some(Errno::OPNOTSUPP) => format!(
                    "{left} sockets cannot be ended, because this kernel has no CONFIG_INET_DIAG_DESTROY: end the server's program"
                ),
                Some(error) => format!("{left} sockets cannot be ended: {error}"),
                None => format!("{left} sockets are left"),
            };
            return Ok(Some(why));
        }
        std::thread::sleep(LOOK);
    }
}
