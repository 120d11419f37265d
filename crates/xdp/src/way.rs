//! The way out: whether an interface takes frames of XDP programs, and how they get there.
//!
//! Drivers differ, and a wrong guess is silent: the call succeeds, the program counts, and nothing leaves. So the
//! device is asked first (`xdp-features` of the netdev family) whether it would transmit. On real NICs that needs an
//! XDP program on the sending interface, which reserves the rings; on veth one at the peer (or GRO there), without
//! which the peer polls nothing. Frames that seem to come from the interface go back by XDP_TX, which spares the
//! redirect; the kernel allows that when the interface's receive queue is registered for XDP.

use crate::XdpError;
use crate::compile::Exit;
use crate::spare::{self, Known};
use bpf::pass::{NotPassing, Passing};
use bpf::{Link, Program, Run};
use port::ethtool::{Ethtool, Offload};
use port::interface::{Interface, xdp_features};
use port::netlink::{Attributes, Message, REQUEST, Socket, read_u32};
use port::packet::Target;
use rustix::io::Errno;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An interface that live frames can leave through.
#[derive(Debug)]
pub struct Way {
    /// The interface.
    pub target: Target,
    /// How frames leave.
    pub exit: Exit,
    /// Where the interface is.
    namespace: File,
    /// For looking at it, from wherever the caller is.
    watch: Mutex<Socket>,
    /// Our own program that lets everything pass, where the driver needs one; detached when this closes.
    attached: Option<Link>,
    /// What the way was tried with. It goes when the way does: to take it from the dispatcher's list waits for all CPUs, and the first frame
    /// would wait for that.
    nothing: Nothing,
}

/// A program that drops what it is run on, known to the dispatcher.
#[derive(Debug)]
pub struct Nothing {
    program: Program,
    _known: Known,
}

impl Nothing {
    fn make() -> Result<Nothing, XdpError> {
        let program = program(XDP_DROP)?;
        Ok(Nothing { _known: spare::attach(&program)?, program })
    }
}

/// What ways are tried with, made while the caller does something else: it waits for all CPUs, as attaching a program anywhere does.
/// Nothing is attached to an interface that anybody has.
#[derive(Debug)]
pub struct Early(Mutex<Option<JoinHandle<Result<Nothing, XdpError>>>>);

impl Early {
    /// Begins to make it.
    pub fn begin() -> Early {
        // Without a thread it is made when it is needed.
        Early(Mutex::new(std::thread::Builder::new().name("early".to_owned()).spawn(Nothing::make).ok()))
    }

    /// What was made, once. `None`: it was taken, or it is to be tried anew, so that the error is of who needs it.
    pub fn take(&self) -> Option<Nothing> {
        let making = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        making?.join().ok()?.ok()
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Drivers may take their rings down and up when a program is attached.
const SETTLE: Duration = Duration::from_secs(5);

/// Looks at `target`, in the current network namespace. `kind` is that of a virtual device, such as veth; `queues` its
/// transmit queues.
///
/// # Errors
/// Why live frames cannot be sent by this interface.
pub fn find(target: &Target, kind: Option<&str>, queues: u32, cores: u32) -> Result<Way, XdpError> {
    find_until(target, kind, queues, cores, &AtomicBool::new(false), None)
}

/// The same; a driver that takes its rings down is not waited for any more when `stop` is set. `early`: what was made before.
///
/// # Errors
/// As [`find`], and that it was stopped.
pub fn find_until(
    target: &Target,
    kind: Option<&str>,
    queues: u32,
    cores: u32,
    stop: &AtomicBool,
    early: Option<Nothing>,
) -> Result<Way, XdpError> {
    if cores > queues.max(1) {
        let interface = target.name.clone();
        let mend = match kind {
            // Its driver has a most of its own, which is what it was made with.
            Some("veth") => format!("make it with more: numtxqueues {cores}, in a lab `.lab.queues` {cores}"),
            _ => format!("raise them with `ethtool -L {interface} combined {cores}`"),
        };
        return Err(XdpError::TooFewQueues { interface, queues, cores, mend });
    }
    let system = |what| {
        move |error: std::io::Error| XdpError::System {
            what,
            error: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        }
    };
    let namespace =
        File::open("/proc/thread-self/ns/net").map_err(system("opening the network namespace"))?;
    let watch = Socket::route()
        .map_err(|_| XdpError::System { what: "opening a netlink socket", error: Errno::IO })?;
    // Before anything is attached to the interface, which may take its link down: has the kernel live frames at all?
    let nothing = early.map_or_else(Nothing::make, Ok)?;
    nothing.program.run(Run { live: Some(1), ..Run::on(&[0; 60]) }).map_err(failed)?;
    let mut way = Way {
        target: target.clone(),
        exit: Exit::Back,
        namespace,
        watch: Mutex::new(watch),
        attached: None,
        nothing,
    };
    let veth = kind == Some("veth");
    match way.transmits() {
        Some(true) => {}
        None if veth => peer_polls(&target.name)
            .map_err(|why| XdpError::NoTransmit { interface: target.name.clone(), why })?,
        None if puts_itself_out(&target.name) => {
            return Err(XdpError::NoTransmit {
                interface: target.name.clone(),
                why: BROKEN_BEFORE_6_3.to_owned(),
            });
        }
        // Drivers that transmit such frames at all do so with a program attached.
        None => way.attach_natively()?,
        Some(false) => {
            if !veth {
                way.attach_natively()?;
            }
            let patience = if veth { Duration::ZERO } else { SETTLE };
            if !settled(|| way.transmits() == Some(true), patience, stop) {
                let why = if stop.load(Relaxed) { "interrupted".to_owned() } else { why_not(kind) };
                return Err(XdpError::NoTransmit { interface: target.name.clone(), why });
            }
        }
    }
    match way.takes_back() {
        Ok(()) => return Ok(way),
        Err(Errno::INVAL) => {}
        Err(error) => return Err(failed(error)),
    }
    // A veth's receive queues are registered while it has a program of its own.
    if way.attached.is_none() && way.attach().is_ok() && way.takes_back().is_ok() {
        return Ok(way);
    }
    way.exit = Exit::Redirect(target.index);
    Ok(way)
}

/// Is it so, within some time? When `stop` is set it is looked for no longer.
fn settled(mut so: impl FnMut() -> bool, patience: Duration, stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        if so() {
            return true;
        }
        if stop.load(Relaxed) || start.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

const XDP_DROP: i32 = 1;

const BROKEN_BEFORE_6_3: &str = "on kernels before 6.3 they put virtio_net's device out of action until it is reset (seen on 6.1: the device finds a frame without bytes in its ring): use `.engine` afxdp or packet";

/// Is this a driver that such frames were seen to harm, on kernels that cannot say what it transmits? The interface then sends
/// nothing any more, whoever asks.
fn puts_itself_out(name: &str) -> bool {
    let driver = Ethtool::open(name).and_then(|device| device.driver());
    driver.is_ok_and(|driver| driver.name == "virtio_net")
}

/// A program that returns `verdict`.
fn program(verdict: i32) -> Result<Program, XdpError> {
    bpf::pass::returning(verdict).map_err(refused)
}

fn refused(refused: bpf::Refused) -> XdpError {
    match refused.error {
        Errno::PERM | Errno::ACCESS => XdpError::Permission,
        error => XdpError::Refused { error, log: refused.log },
    }
}

/// A call for live frames that failed.
fn failed(error: Errno) -> XdpError {
    match error {
        // Before live frames, their flag was no flag.
        Errno::INVAL | Errno::TOOBIG => XdpError::NoLiveFrames,
        Errno::PERM | Errno::ACCESS => XdpError::Permission,
        error => XdpError::System { what: "running live frames", error },
    }
}

/// Does a veth's peer poll for frames? It does with a native program, and with GRO. For kernels that do not say whether
/// the device transmits. Else what mends it.
fn peer_polls(name: &str) -> Result<(), String> {
    const MEND: &str = "measure there (`.measure`, netdyno measure or netdyno reflect attach a program), or use `.engine` afxdp";
    let unseen = || {
        format!(
            "this kernel (before 6.3) does not say whether the veth's peer takes them, and no XDP program is seen there: {MEND}"
        )
    };
    let near = Interface::by_name(name).map_err(|_| unseen())?;
    let peer = near.link.ok_or_else(unseen)?;
    if has_native_program(peer, near.link_namespace.filter(|_| near.link_elsewhere)) {
        return Ok(());
    }
    // Its GRO can be looked at only in our own namespace.
    if near.link_elsewhere {
        return Err(unseen());
    }
    let links = Interface::list().map_err(|_| unseen())?;
    let gro = links
        .iter()
        .find(|link| link.index == peer)
        .and_then(|link| Ethtool::open(&link.name).and_then(|peer| peer.offload(Offload::Gro)).ok());
    if gro == Some(true) { Ok(()) } else { Err(unseen()) }
}

/// Has that interface an XDP program of its driver's? `namespace` is its number in ours, if it is not here.
fn has_native_program(index: u32, namespace: Option<u32>) -> bool {
    const IFLA_XDP: u16 = 43;
    const IFLA_XDP_ATTACHED: u16 = 2;
    const IFLA_TARGET_NETNSID: u16 = 46;
    // XDP_ATTACHED_DRV and XDP_ATTACHED_MULTI.
    const NATIVE: [u8; 2] = [1, 4];
    let ask = Message::new(libc::RTM_GETLINK, REQUEST).link(index, 0, 0);
    let ask = match namespace {
        Some(number) => ask.attr_u32(IFLA_TARGET_NETNSID, number),
        None => ask,
    };
    let answers = Socket::route().and_then(|mut socket| socket.request(ask)).unwrap_or_default();
    let attached = answers
        .first()
        .and_then(|answer| Attributes::after(answer, 16).nested(IFLA_XDP).u8(IFLA_XDP_ATTACHED));
    attached.is_some_and(|how| NATIVE.contains(&how))
}

fn why_not(kind: Option<&str>) -> String {
    match kind {
        Some("veth") => "a veth takes them only if its peer has an XDP program or GRO; measure there (`.measure`, netdyno measure or netdyno reflect attach a program), or switch GRO on at the peer with `ethtool -K PEER gro on`".to_owned(),
        Some(kind) => format!("{kind} devices cannot transmit them; use `.engine` packet"),
        None => "its driver cannot transmit them (no ndo_xdp_xmit), or the NIC has no rings to spare for it; `netdyno doctor` says more; use `.engine` afxdp or packet".to_owned(),
    }
}

impl Way {
    /// Does the device say that it takes XDP frames now? `None`: kernels before 6.3 cannot say.
    fn transmits(&self) -> Option<bool> {
        xdp_features(self.target.index).ok().flatten().map(|features| features.transmit)
    }

    /// Attaches a program that lets everything pass. Somebody else's is left alone.
    fn attach(&mut self) -> Result<(), XdpError> {
        match bpf::pass::attach(self.target.index) {
            Ok(Passing::Ours(link)) => {
                self.attached = Some(link);
                Ok(())
            }
            // One is there already, which serves as well.
            Ok(Passing::Others) => Ok(()),
            Err(NotPassing::Refused(why)) => Err(refused(why)),
            Err(NotPassing::Attach(Errno::PERM)) => Err(XdpError::Permission),
            Err(NotPassing::Attach(error)) => Err(XdpError::NoTransmit {
                interface: self.target.name.clone(),
                why: format!("its driver takes no XDP program ({error}); use `.engine` packet"),
            }),
        }
    }

    /// The same, where it has to be the driver's: a generic one that is there already never makes a driver transmit, however long
    /// that is waited for (that of a meter on a loopback).
    fn attach_natively(&mut self) -> Result<(), XdpError> {
        self.attach()?;
        if self.attached.is_none() && !has_native_program(self.target.index, None) {
            let why = "the XDP program that is attached there is a generic one, with which no driver transmits them; use `.engine` afxdp or packet";
            return Err(XdpError::NoTransmit { interface: self.target.name.clone(), why: why.to_owned() });
        }
        Ok(())
    }

    /// Can frames seem to come from the interface?
    fn takes_back(&self) -> Result<(), Errno> {
        let ingress = Some(self.target.index);
        self.nothing.program.run(Run { live: Some(1), ingress, ..Run::on(&[0; 60]) }).map(drop)
    }

    /// The interface that frames seem to come from.
    pub fn ingress(&self) -> Option<u32> {
        (self.exit == Exit::Back).then_some(self.target.index)
    }

    /// Moves the calling thread to where the interface is. It must end there.
    ///
    /// # Errors
    /// That the namespace cannot be entered.
    pub fn enter(&self) -> Result<(), Errno> {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        use std::os::fd::AsFd;
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
    }

    /// Is the interface up? `None` when it is gone.
    pub fn is_up(&self) -> Option<bool> {
        let mut socket = self.watch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ask = Message::new(libc::RTM_GETLINK, REQUEST).link(self.target.index, 0, 0);
        match socket.request(ask) {
            // struct ifinfomsg: the flags stand behind family, type and index.
            Ok(answers) => answers.first().and_then(|answer| read_u32(answer, 8)).map(|flags| flags & 1 != 0),
            Err(error) if error.errno() == Some(Errno::NODEV) => None,
            // What cannot be seen is not taken for a fault.
            Err(_) => Some(true),
        }
    }

    /// For results: how frames leave.
    pub fn describe(&self) -> String {
        let how = match self.exit {
            Exit::Back => "made in the kernel and sent back out of the interface (XDP_TX)",
            Exit::Redirect(_) => "made in the kernel and redirected to the interface",
        };
        let note = if self.attached.is_some() { ", which has a program of ours meanwhile" } else { "" };
        format!("{how}{note}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_not_waited_for_when_all_is_to_stop() {
        let (stop, mut looks) = (AtomicBool::new(false), 0);
        let never = || {
            looks += 1;
            stop.store(looks == 2, Relaxed);
            false
        };
        assert!(!settled(never, SETTLE, &stop));
        // Not the hundreds of five seconds.
        assert_eq!(looks, 2);
        assert!(settled(|| true, Duration::ZERO, &stop) && !settled(|| false, Duration::ZERO, &stop));
    }
}
