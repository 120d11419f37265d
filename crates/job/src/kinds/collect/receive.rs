//! Receivers: what those of datagrams and of connections have in common, and that of datagrams: a socket, and a session for each
//! exporter that the kernel has it serve.

use super::exporters::Exporters;
use super::writer::Queue;
use anyhow::Result;
use flow::collect::{Counters, Room, Session};
use port::socket::Datagrams;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::Row;

/// What waits in a socket, if we may: some 40,000 messages.
const BUFFER: usize = 64 << 20;
/// What the exporters of a receiver may make it keep, in bytes.
const ROOM: usize = 128 << 20;
/// Messages between two looks at the clock and at whether it is over.
pub const PIECE: usize = 256;
/// Messages that one call takes, if they are there.
const TOGETHER: usize = 32;
/// Rows that are handed to the writers together.
const ROWS: usize = 1024;
pub const PATIENCE: Duration = Duration::from_millis(50);
/// What waits in the sockets at the end is taken for so long at most.
const LONGEST: Duration = Duration::from_secs(1);

/// Binds a socket that shares its port with those of other receivers, if they are `ours`: see [`Sharing`].
pub fn socket(at: SocketAddr, sharing: Sharing) -> Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if sharing.only_v6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sockopt::set_socket_reuseport(&socket, sharing.before)?;
    // Without CAP_NET_ADMIN it is what net.core.rmem_max allows.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
    }
    // A kernel without it hands them out one by one.
    let _ = port::socket::join_datagrams(&socket);
    bind(&socket, &at)?;
    sockopt::set_socket_reuseport(&socket, sharing.after)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// How a socket shares its port (`SO_REUSEPORT`). The kernel refuses one that does not share before it is bound wherever there is
/// another, whoever has that; and where it shares from then on, others may join.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sharing {
    /// With sockets that are there.
    pub before: bool,
    /// With sockets that come later.
    pub after: bool,
    /// Only datagrams of IPv6 come to it: another has those of IPv4.
    pub only_v6: bool,
}

/// What came of an exporter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    pub counters: Counters,
    pub packets: u64,
    pub octets: u64,
}

impl Came {
    pub fn plus(&self, other: &Came) -> Came {
        Came {
            counters: self.counters.plus(&other.counters),
            packets: self.packets.saturating_add(other.packets),
            octets: self.octets.saturating_add(other.octets),
        }
    }
}

/// An exporter that sends.
#[derive(Debug)]
pub struct Exporter {
    pub session: Session,
    packets: u64,
    octets: u64,
}

impl Exporter {
    pub fn new(session: Session) -> Exporter {
        Exporter { session, packets: 0, octets: 0 }
    }

    /// What came so far.
    pub fn came(&self) -> Came {
        Came { counters: *self.session.counters(), packets: self.packets, octets: self.octets }
    }
}

/// How it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    pub messages: u64,
    pub bytes: u64,
    pub records: u64,
    pub exporters: u64,
    pub missing_records: u64,
    pub missing_messages: u64,
    /// Exporters that were silent for long, or gave way to others.
    pub forgotten: u64,
    /// Messages that the socket had no room for.
    pub dropped: u64,
    /// Rows that writers were given, each of which is one of a writer's.
    pub rows: u64,
    /// Of these, rows without some of their fields, because they had no room.
    pub trimmed: u64,
    /// Connections that were made, and those that were closed here.
    pub connections: u64,
    pub closed: u64,
}

impl Standing {
    pub fn plus(self, other: &Standing) -> Standing {
        Standing {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            exporters: self.exporters + other.exporters,
            missing_records: self.missing_records + other.missing_records,
            missing_messages: self.missing_messages + other.missing_messages,
            forgotten: self.forgotten + other.forgotten,
            dropped: self.dropped + other.dropped,
            rows: self.rows + other.rows,
            trimmed: self.trimmed + other.trimmed,
            connections: self.connections + other.connections,
            closed: self.closed + other.closed,
        }
    }
}

/// What it came to.
#[derive(Debug, Default)]
pub struct Done {
    pub exporters: Vec<(String, Came)>,
    pub standing: Standing,
    /// When the first and the last message came, by a clock that nobody sets.
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    /// Why it ended before it was to.
    pub fault: Option<String>,
}

/// What a thread that receives has beside its sockets.
pub struct Receiver {
    queues: Vec<Queue>,
    rows: Vec<Row>,
    pub room: Room,
    over: Arc<AtomicBool>,
    /// When it was first seen that it is over.
    ended: Option<Instant>,
    /// What is read had come before that: its time is not the reader's.
    late: bool,
    told: Arc<Mutex<Standing>>,
    pub done: Done,
    /// When something came last, in nanoseconds since 1970: what is written has it.
    now_ns: u64,
    /// The same by a clock that nobody sets, in nanoseconds since any moment: what is kept of exporters ages by it.
    pub age_ns: u64,
    now: Instant,
}

impl Receiver {
    /// Reads a message of an exporter.
    pub fn read(&mut self, exporter: &mut Exporter, message: &[u8], from: IpAddr) {
        let Receiver { rows, queues, room, now_ns, done, .. } = self;
        let trimmed = &mut done.standing.trimmed;
        let writes = !queues.is_empty();
        let Exporter { session, packets, octets } = exporter;
        session.message(message, room, &mut |record, others| {
            *packets = packets.saturating_add(record.packets);
            *octets = octets.saturating_add(record.octets);
            if writes {
                let row = Row::of(record, others, from, *now_ns);
                *trimmed += u64::from(row.is_trimmed());
                rows.push(row);
            }
        });
        self.pass(message);
        if self.rows.len() >= ROWS {
            self.hand_over();
        }
    }

    /// Counts a message; of a datagram that no exporter sent that is all.
    pub fn pass(&mut self, message: &[u8]) {
        self.done.standing.messages += 1;
        self.done.standing.bytes += message.len() as u64;
        self.done.first.get_or_insert(self.now);
        if !self.late {
            self.done.last = Some(self.now);
        }
    }

    /// Whether it is over, which is seen for the first time now: [`tell`](Receiver::tell) goes by it.
    pub fn ends(&mut self) -> bool {
        if self.ended.is_some() || !self.over.load(Relaxed) {
            return false;
        }
        self.ended = Some(Instant::now());
        true
    }

    /// Whether fields without a column are wanted.
    pub fn writes(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Something came now.
    pub fn came(&mut self) {
        self.now_ns = clocks::now(clocks::Clock::Realtime);
        (self.age_ns, self.now) = (clocks::monotonic(), Instant::now());
    }

    /// Tells how it stands: of each exporter what came, and how many messages were lost here. True: it is over. What is in the
    /// sockets then is taken first, but not for ever.
    pub fn tell(&mut self, each: impl Iterator<Item = Counters>, dropped: u64, quiet: bool) -> bool {
        self.hand_over();
        let standing = &mut self.done.standing;
        (standing.records, standing.missing_records, standing.missing_messages) = (0, 0, 0);
        for counters in each {
            standing.records += counters.records;
            standing.missing_records += counters.missing_records;
            standing.missing_messages += counters.missing_messages;
        }
        standing.dropped = dropped;
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = *standing;
        self.ended.is_some_and(|ended| quiet || ended.elapsed() > LONGEST)
    }

    fn hand_over(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let batch = Arc::new(std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS)));
        self.done.standing.rows += batch.len() as u64;
        self.queues.iter().for_each(|queue| queue.give(&batch));
    }
}

/// Begins to receive, in a thread.
pub fn start(
    queues: Vec<Queue>,
    over: &Arc<AtomicBool>,
    work: impl FnOnce(Receiver) -> Done + Send + 'static,
) -> std::io::Result<Running> {
    let standing = Arc::new(Mutex::new(Standing::default()));
    let (over, told) = (Arc::clone(over), Arc::clone(&standing));
    let (rows, room) = (Vec::new(), Room::of(ROOM));
    let (done, now_ns, age_ns, now) = (Done::default(), 0, clocks::monotonic(), Instant::now());
    let (ended, late) = (None, false);
    let receiver = Receiver { queues, rows, room, over, ended, late, told, done, now_ns, age_ns, now };
    let thread = std::thread::Builder::new().name("collect".to_owned()).spawn(move || work(receiver))?;
    Ok(Running { standing, thread })
}

/// A receiver that runs.
pub struct Running {
    standing: Arc<Mutex<Standing>>,
    thread: JoinHandle<Done>,
}

impl Running {
    pub fn standing(&self) -> Standing {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn finish(self) -> Done {
        let standing = self.standing;
        self.thread.join().unwrap_or_else(|_| Done {
            standing: *standing.lock().unwrap_or_else(PoisonError::into_inner),
            fault: Some(
                "a receiver's thread panicked, and what it had counted is lost: this is a defect of netdyno"
                    .to_owned(),
            ),
            ..Done::default()
        })
    }
}

/// Receives datagrams: those that have arrived when it is over, and none that arrive later, because exporters go on.
pub fn datagrams(socket: &UdpSocket, mut receiver: Receiver) -> Done {
    let mut exporters = Exporters::new();
    let mut datagrams = Datagrams::new(TOGETHER);
    let (mut left, mut told) = (0, Instant::now());
    // Messages that had no room until it was over: what is refused after that the kernel counts, too.
    let mut dropped = None;
    loop {
        if receiver.ends() {
            dropped = Some(port::socket::receive_drops(socket).unwrap_or(0));
            if let Err(error) = port::socket::receive_no_more(socket) {
                receiver.done.fault =
                    Some(format!("what arrived by the end cannot be told from what came later: {error}"));
                receiver.tell(exporters.counters(), dropped.unwrap_or(0), true);
                break;
            }
            receiver.late = true;
            // There is nothing to wait for any more.
            let _ = socket.set_nonblocking(true);
        }
        let got = datagrams.receive(socket);
        let quiet =
            matches!(&got, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        left = left.min(PIECE).saturating_sub(datagrams.iter().count());
        if left == 0 || quiet {
            left = PIECE;
            // It looks at each exporter, of which there may be many.
            if quiet || told.elapsed() > PATIENCE {
                told = Instant::now();
                exporters.look(clocks::monotonic(), &mut receiver.room);
                receiver.done.standing.exporters = exporters.count();
                receiver.done.standing.forgotten = exporters.forgotten();
                let drops = || port::socket::receive_drops(socket).unwrap_or(0);
                if receiver.tell(exporters.counters(), dropped.unwrap_or_else(drops), quiet) {
                    // What there was no time for is lost here, too.
                    if !quiet {
                        let in_hand = if got.is_ok() { datagrams.iter().count() as u64 } else { 0 };
                        receiver.done.standing.dropped += in_hand + left_behind(socket, &mut datagrams);
                    }
                    break;
                }
            }
        }
        if got.is_err() {
            continue;
        }
        receiver.came();
        for (message, from) in datagrams.iter() {
            let Some(from) = from else {
                exporters.nobodys(message);
                receiver.pass(message);
                continue;
            };
            let (writes, age_ns) = (receiver.writes(), receiver.age_ns);
            match exporters.find(from, message, age_ns, &mut receiver.room, || Session::new(writes)) {
                Some(exporter) => receiver.read(exporter, message, from.ip()),
                None => receiver.pass(message),
            }
        }
    }
    Done { exporters: exporters.done(), ..receiver.done }
}

/// Messages that still wait in a socket that takes no more.
fn left_behind(socket: &UdpSocket, datagrams: &mut Datagrams) -> u64 {
    let (mut count, by) = (0, Instant::now() + LONGEST);
    while Instant::now() < by {
        match datagrams.receive(socket) {
            Ok(_) => count += datagrams.iter().count() as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket with some messages of several sizes in it, and where it is.
    fn with_waiting(messages: usize) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        let (to, from) = (socket.local_addr().expect("one"), UdpSocket::bind("127.0.0.1:0").expect("a port"));
        for length in [1, 100, 1400].into_iter().cycle().take(messages) {
            from.send_to(&vec![0; length], to).expect("sent");
        }
        (socket, to)
    }

    /// One that sends a message each half millisecond, for five seconds at most; how many it sent before `over`, and in all.
    fn sender(to: SocketAddr, over: &Arc<AtomicBool>, stop: &Arc<AtomicBool>) -> JoinHandle<(u64, u64)> {
        let (over, stop) = (Arc::clone(over), Arc::clone(stop));
        let from = UdpSocket::bind("127.0.0.1:0").expect("a port");
        std::thread::spawn(move || {
            let (mut before, mut all, by) = (0, 0, Instant::now() + Duration::from_secs(5));
            while !stop.load(Relaxed) && Instant::now() < by {
                before += u64::from(!over.load(Relaxed));
                from.send_to(&[0; 100], to).expect("sent");
                all += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            (before, all)
        })
    }

    #[test]
    fn messages_that_still_wait_at_the_end_are_counted_and_no_later_ones() {
        let (socket, to) = with_waiting(60);
        port::socket::receive_no_more(&socket).expect("a filter");
        let later = UdpSocket::bind("127.0.0.1:0").expect("a port");
        for _ in 0..20 {
            later.send_to(&[0; 100], to).expect("sent");
        }
        let mut datagrams = Datagrams::new(TOGETHER);
        assert_eq!(left_behind(&socket, &mut datagrams), 60);
        assert_eq!(left_behind(&socket, &mut datagrams), 0);
    }

    #[test]
    fn what_waits_at_the_end_is_read() {
        let (socket, _) = with_waiting(60);
        let over = Arc::new(AtomicBool::new(true));
        let running = start(Vec::new(), &over, move |receiver| datagrams(&socket, receiver));
        let done = running.expect("a thread").finish();
        assert_eq!((done.standing.messages, done.standing.dropped, done.fault), (60, 0, None));
    }

    /// The kernel drops what it goes on to send, and that is nobody's loss.
    #[test]
    fn of_one_that_goes_on_to_send_nothing_is_lost_at_the_end_and_nothing_later_counts() {
        let (socket, to) = with_waiting(0);
        let [over, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let sends = sender(to, &over, &stop);
        let (drops, its_drops) = std::sync::mpsc::channel();
        let running = start(Vec::new(), &over, move |receiver| {
            let done = datagrams(&socket, receiver);
            std::thread::sleep(Duration::from_millis(100));
            drops.send(port::socket::receive_drops(&socket)).expect("heard");
            done
        });
        let running = running.expect("a thread");
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, Relaxed);
        let done = running.finish();
        stop.store(true, Relaxed);
        let (before, all) = sends.join().expect("it sent");
        assert!(its_drops.recv().expect("told").expect("drops") > 0, "it did not go on");
        assert_eq!((done.standing.dropped, &done.fault), (0, &None));
        let messages = done.standing.messages;
        // Some may come while it is seen that it is over.
        let late = (all - before) / 2;
        assert!(messages >= before && messages <= before + late, "{messages} of {before} and {all}");
        assert!(done.first < done.last);
    }

    #[test]
    fn a_port_is_shared_by_sockets_of_one_collector_and_by_others_only_if_both_say_so() {
        let alone = Sharing::default();
        let [first, later] =
            [(false, true), (true, true)].map(|(before, after)| Sharing { before, after, ..alone });
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        // One that shares with nobody keeps all others out, whatever they ask for.
        let one = socket(any, alone).expect("a socket");
        let at = one.local_addr().expect("an address");
        for sharing in [alone, first, later] {
            assert!(socket(at, sharing).is_err(), "{sharing:?}");
        }
        drop(one);
        // Several of one collector: each is given some of the exporters.
        let one = socket(any, first).expect("a socket");
        let at = one.local_addr().expect("an address");
        let two = socket(at, later).expect("a second one");
        // Another collector begins as the first did, and is refused.
        assert!(socket(at, first).is_err() && socket(at, alone).is_err());
        let wildcard = SocketAddr::from(([0, 0, 0, 0], at.port()));
        assert!(socket(wildcard, first).is_err());
        for _ in 0..64 {
            let from = UdpSocket::bind(any).expect("a socket");
            from.send_to(b"one", at).expect("sent");
        }
        let mut counts = [0; 2];
        for (count, socket) in counts.iter_mut().zip([&one, &two]) {
            let mut buffer = [0; 8];
            while socket.recv_from(&mut buffer).is_ok() {
                *count += 1;
            }
        }
        assert!(counts[0] > 0 && counts[1] > 0 && counts[0] + counts[1] == 64, "{counts:?}");
    }

    #[test]
    fn a_receiver_that_panics_is_told_and_what_it_told_before_stays() {
        let over = Arc::new(AtomicBool::new(false));
        let running = start(Vec::new(), &over, |mut receiver| {
            receiver.came();
            receiver.pass(b"a message");
            receiver.tell(std::iter::empty(), 0, false);
            panic!("as a test");
        });
        let done = running.expect("a thread").finish();
        assert_eq!((done.standing.messages, done.exporters.len()), (1, 0));
        assert!(done.fault.is_some_and(|fault| fault.contains("panicked")));
    }

    #[test]
    fn the_time_of_messages_is_from_the_first_to_the_last_until_it_is_over() {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let running = start(Vec::new(), &over, move |mut receiver| {
            // Something else came before: a connection.
            receiver.came();
            let before = receiver.now;
            std::thread::sleep(Duration::from_millis(2));
            receiver.came();
            receiver.pass(b"one");
            assert!(receiver.done.first > Some(before) && receiver.done.first == receiver.done.last);
            receiver.came();
            receiver.pass(b"two");
            ends.store(true, Relaxed);
            assert!(receiver.ends() && !receiver.ends());
            receiver.late = true;
            let last = receiver.done.last;
            std::thread::sleep(Duration::from_millis(2));
            receiver.came();
            receiver.pass(b"what was in the socket");
            assert_eq!(receiver.done.last, last);
            receiver.done
        });
        let done = running.expect("a thread").finish();
        assert!(done.fault.is_none() && done.standing.messages == 3);
    }
}
