//! What interfaces, drivers and hosts counted during a run, held to what we did.

use crate::place::Place;
use anyhow::Result;
use engine::{Counts, Sent};
use port::interface::{CounterReader, Counters};
use port::tx::TxCounters;
use port::watch::{Rise, Source as Counting, Watch};
use report::{Code, HostCounter, InterfaceCounters, Report, Sentence, Witness, units};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Drivers that update their counters now and then do so at least this often.
pub const COUNTERS_SETTLE: Duration = Duration::from_millis(2500);
/// Reading them may ask the driver.
const LOOK_AT_COUNTERS: Duration = Duration::from_millis(50);

/// What the interface counted since `before`, once it has counted `ours`, will not any more, or `hurry` is set; `None`
/// when its counters can no longer be read.
pub fn moved(
    reader: &mut CounterReader,
    before: &Counters,
    ours: u64,
    hurry: Option<&AtomicBool>,
) -> Option<Counters> {
    settled(|| Some(reader.read().ok()?.since(before)), ours, hurry)
}

/// The same, by whatever looks.
fn settled(
    mut look: impl FnMut() -> Option<Counters>,
    ours: u64,
    hurry: Option<&AtomicBool>,
) -> Option<Counters> {
    let start = Instant::now();
    let mut looked = None::<Instant>;
    loop {
        let hurry = hurry.is_some_and(|hurry| hurry.load(Relaxed));
        if hurry || looked.is_none_or(|at| at.elapsed() >= LOOK_AT_COUNTERS) {
            looked = Some(Instant::now());
            let moved = look()?;
            if hurry || moved.tx_packets >= ours || start.elapsed() > COUNTERS_SETTLE {
                return Some(moved);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was seen of the frames that were handed to one interface.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Handed over.
    pub ours: u64,
    /// Rise of the interface's `tx_packets`.
    pub interface: u64,
    /// Rise of the driver's own counter of XDP frames, where it has one that rose.
    pub driver: Option<u64>,
    /// Arrived at a meter of ours, where there is one for just these frames.
    pub arrived: Option<u64>,
    /// What the engine knows of its frames.
    pub counts: Counts,
}

/// So many frames of others, of the kernel itself above all (ARP, IPv6), say nothing about whether a counter knows ours.
pub fn few(ours: u64) -> u64 {
    (ours / 50).max(8).min(ours / 4)
}

impl Seen {
    /// Who is to be believed, and how many frames that one saw leave. Whether a counter knows the frames of XDP programs
    /// and AF_XDP sockets is the driver's choice; it shows in the count, and is not looked up by the driver's name.
    pub fn judge(&self) -> (Witness, u64) {
        let Seen { ours, interface, driver, arrived, counts } = *self;
        if interface >= ours {
            return (Witness::Interface, ours);
        }
        let clearly_more = |other: u64| other > interface + few(ours);
        if let Some(driver) = driver.filter(|driver| clearly_more(*driver)) {
            return (Witness::Driver, driver.min(ours));
        }
        let contradicted = arrived.is_some_and(clearly_more);
        if interface > few(ours) && !contradicted {
            return (Witness::Interface, interface);
        }
        match arrived {
            Some(arrived) if arrived >= ours => (Witness::Meter, ours),
            Some(arrived) if contradicted => (Witness::Meter, arrived),
            None if counts == Counts::Completed => (Witness::Completions, ours),
            _ => (Witness::Nobody, interface),
        }
    }

    /// Frames that were handed over, and of which nobody knows that they left. A driver that gives memory back as done with
    /// has sent it, though no counter of it may say so.
    pub fn unconfirmed(&self) -> u64 {
        match self.judge() {
            (Witness::Interface | Witness::Driver, left) => self.ours.saturating_sub(left),
            (Witness::Meter, arrived) if self.counts != Counts::Completed => {
                self.ours.saturating_sub(arrived)
            }
            (Witness::Meter | Witness::Completions, _) => 0,
            (Witness::Nobody, _) => self.ours,
        }
    }

    /// Did none leave, as somebody would have seen? A few that the interface counted are others'. Without a meter nobody can
    /// tell: there are drivers that count frames of XDP nowhere.
    pub fn vanished(&self) -> bool {
        let unseen = |count: Option<u64>| count.is_none_or(|count| count == 0);
        self.ours > 0 && self.interface <= few(self.ours) && unseen(self.driver) && self.arrived == Some(0)
    }
}

/// What the driver counted of frames that XDP programs and AF_XDP sockets sent, among all that rose. Drivers name it as
/// they like: `tx0_xdp_tx` (virtio_net), `tx_queue_0_xdp_xmit` (veth), `tx_xdp_xmit`, `rx_xdp_tx_xmit` and
/// `tx_xsk_xmit` with one of each for every queue (mlx5), `tx_xsk_sent[0]` (gve).
///
/// Some count what they were handed (virtio_net), others what they sent (veth), so what they dropped is taken away.
pub fn xdp_sent(rises: &[Rise]) -> Option<u64> {
    // Of each name without its numbers: of the whole interface, and added up over its queues.
    let mut names: BTreeMap<(String, bool), (u64, u64)> = BTreeMap::new();
    for rise in rises.iter().filter(|rise| rise.source == Counting::Driver) {
        let words = rise.name.split(|c: char| !c.is_ascii_alphabetic());
        let mut words: Vec<&str> = words.filter(|word| !word.is_empty() && *word != "queue").collect();
        let lost =
            words.pop_if(|word| matches!(*word, "drops" | "drop" | "errors" | "err" | "full")).is_some();
        let by_xdp = words.iter().any(|word| matches!(*word, "xdp" | "xsk"));
        let sent = words.last().is_some_and(|word| matches!(*word, "xmit" | "tx" | "sent"));
        if !by_xdp || !sent {
            continue;
        }
        let of = names.entry((words.join("_"), lost)).or_default();
        let all = if rise.name.contains(|c: char| c.is_ascii_digit()) { &mut of.1 } else { &mut of.0 };
        *all += rise.by;
    }
    let sum = |sums: &(u64, u64)| sums.0.max(sums.1);
    let left = |((name, _), sent): (&(String, bool), &(u64, u64))| {
        sum(sent).saturating_sub(names.get(&(name.clone(), true)).map_or(0, sum))
    };
    // A frame may be counted under two names, so the largest is what is certain.
    names.iter().filter(|((_, lost), _)| !lost).map(left).max()
}

/// Of frames that were handed over ([`engine::Counts::HandedOver`]) to a port sent is what a counter that knows them saw, the
/// rest was refused.
pub fn believe(sent: &mut Sent, port: usize, seen: u64) {
    let own = sent.ports.get(port).copied().unwrap_or(sent.counters);
    let missing = own.frames.saturating_sub(seen);
    if missing == 0 {
        return;
    }
    let bytes = (u128::from(own.bytes) * u128::from(missing) / u128::from(own.frames)) as u64;
    for counters in std::iter::once(&mut sent.counters).chain(sent.ports.get_mut(port)) {
        counters.frames -= missing;
        counters.bytes -= bytes;
        counters.failed += missing;
        counters.failed_bytes += bytes;
    }
}

/// The interface's counters beside our own count.
pub fn compare(interface: &str, ours: u64, moved: &Counters) -> InterfaceCounters {
    InterfaceCounters {
        tx_bytes: Some(moved.tx_bytes),
        tx_errors: Some(moved.tx_errors),
        tx_dropped: Some(moved.tx_dropped),
        ..InterfaceCounters::compare(interface, ours, moved.tx_packets)
    }
}

/// Holds what we counted, `ours`, to what the interface did, and to whoever else saw the frames. `beside`: other jobs of the same file run
/// beside this one.
pub fn compare_counters(
    report: &mut Report,
    place: &Place,
    ours: TxCounters,
    moved: Option<Counters>,
    seen: &Seen,
    beside: bool,
) {
    let seen = &Seen { ours: ours.frames, ..*seen };
    let unconfirmed = if moved.is_some() { seen.unconfirmed() } else { ours.frames };
    if let Some(tx) = report.result.tx.as_mut().filter(|_| unconfirmed > 0) {
        *tx.unconfirmed_frames.get_or_insert(0) += unconfirmed;
    }
    let Some(moved) = moved else {
        report
            .warnings
            .add(Code::CountersUnreadable, format!("the counters of {} can no longer be read", place.spec));
        return;
    };
    let mut compared = compare(&place.spec, ours.frames, &moved);
    compared.beyond_layer2_bytes = beyond_layer2(&ours, &moved);
    let foreign = compared.foreign_frames;
    let told = Told {
        unaccounted: "",
        remedy: None,
        nobody: "use `.engine` afxdp or packet, or measure where they arrive",
        completions: Some("measure where they arrive (`.measure`)"),
    };
    account(report, compared, &moved, seen, &told);
    if let Some((meant, counted)) = other_bytes(&ours, &moved, Counted::by(place, seen.counts)) {
        report.result.verdict.fall_short(Code::CountersDisagree, Sentence::new(
            format!(
                "other bytes left than were meant: {} of {} together, and {} counts {}{}: frames left longer or shorter than they \
                 were made",
                units::counted(ours.frames, "frame"),
                units::counted(meant, "byte"),
                place.spec,
                units::counted(counted, "byte"),
                if foreign > 0 { ", others' frames included" } else { "" },
            ),
            Some("use another `.engine`: afxdp or packet"),
        ));
    }
    if foreign > 0 {
        report.warnings.add(
            Code::OthersSent,
            format!(
                "{} sent {} that are not of this {}, or the kernel itself does (ARP, IPv6)",
                place.spec,
                units::counted(foreign, "frame"),
                if beside {
                    "job: others of the same file use it, other programs do"
                } else {
                    "run: other programs use it"
                },
            ),
        );
    }
}

/// What a command adds to what is said of frames that nobody accounts for.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// Why an interface may not have transmitted what it was handed.
    pub unaccounted: &'a str,
    /// What to do then.
    pub remedy: Option<&'a str>,
    /// What to do where nobody saw frames leave.
    pub nobody: &'a str,
    /// And where only the driver gave their memory back.
    pub completions: Option<&'a str>,
}

/// Says who saw the frames of `compared` leave, and what is missing by the one that is believed; puts it into the result.
pub fn account(
    report: &mut Report,
    mut compared: InterfaceCounters,
    moved: &Counters,
    seen: &Seen,
    told: &Told<'_>,
) {
    compared.driver_xdp_frames = seen.driver;
    let (witness, known) = seen.judge();
    compared.confirmed_by = (seen.ours > 0).then_some(witness);
    let (frames, on) = (units::counted(seen.ours, "frame"), &compared.interface);
    let counted = units::count(moved.tx_packets);
    let unknown = format!("the counter of {on} does not know these frames ({counted} of {frames})");
    let short = || Sentence::new(unaccounted(&compared, moved) + told.unaccounted, told.remedy);
    match witness {
        _ if compared.missing_frames == 0 => {}
        Witness::Interface => report.result.verdict.fall_short(Code::FramesUnaccounted, short()),
        Witness::Driver => {
            report.warnings.add(Code::CounterBlind, format!("{unknown}: its driver's own counter of XDP frames is believed"));
            if known < seen.ours {
                report.result.verdict.fall_short(Code::FramesUnaccounted, format!(
                    "unaccounted frames: {on} was handed {frames}, and its driver counts only {} as sent by XDP",
                    units::count(known)
                ));
            }
        }
        Witness::Meter => report.warnings.add(Code::CounterBlind, format!(
            "{unknown}: that they left is known from {} that arrived",
            if known >= seen.ours { "all".to_owned() } else { units::count(known) }
        )),
        Witness::Completions => report.warnings.add(Code::CounterBlind, Sentence::new(format!(
            "{unknown}, and nobody else counted them: that its driver gave the memory of all of them back as sent is all \
             that is known"
        ), told.completions)),
        Witness::Nobody if seen.counts == Counts::HandedOver => {
            let said = format!(
                "nobody saw these frames leave: {on} was handed {frames} by XDP and counts {counted}{}: the driver dropped \
                 them without a word, or counts no XDP frames",
                if seen.arrived == Some(0) { ", and none arrived" } else { "" },
            );
            report.result.verdict.fall_short(Code::FramesUnaccounted, (said, told.nobody));
        }
        Witness::Nobody => report.result.verdict.fall_short(Code::FramesUnaccounted, short()),
    }
    if let Some(tx) = &mut report.result.tx {
        tx.interface_counters.push(compared);
    }
}

/// An interface by which frames leave, of whoever takes them over from another or sends them back.
#[derive(Debug)]
pub struct Leaving {
    is_veth: bool,
    reader: CounterReader,
    before: Counters,
    driver: Watch,
}

impl Leaving {
    /// From now on.
    pub fn begin(place: &Place) -> Result<Leaving> {
        let mut reader = place.counters()?;
        let before = reader.read()?;
        let name = &place.interface.name;
        let driver = place.run_in(|| Watch::begin(name, false))?;
        let is_veth = place.is_veth();
        Ok(Leaving { is_veth, reader, before, driver })
    }

    /// What the interface counted up to now; `None` when its counters can no longer be read.
    pub fn moved(&mut self) -> Option<Counters> {
        Some(self.reader.read().ok()?.since(&self.before))
    }

    /// The same once it has counted `ours`, or will not any more.
    pub fn settled(&mut self, ours: u64) -> Option<Counters> {
        moved(&mut self.reader, &self.before, ours, None)
    }

    /// Who saw `ours` leave. `by_xdp`: they were handed to the driver by an XDP program, so that its driver decides who
    /// knows them. A veth's counter knows all that its other end took.
    pub fn seen(&mut self, ours: u64, moved: &Counters, by_xdp: bool) -> Seen {
        let by_xdp = by_xdp && !self.is_veth;
        Seen {
            ours,
            interface: moved.tx_packets,
            driver: by_xdp.then(|| xdp_sent(&self.driver.rises())).flatten(),
            arrived: None,
            counts: if by_xdp { Counts::HandedOver } else { Counts::Accepted },
        }
    }
}

fn unaccounted(compared: &InterfaceCounters, moved: &Counters) -> String {
    format!(
        "unaccounted frames: the kernel accepted {} but {} counts only {} as transmitted ({} dropped, {} errors): {} are missing",
        units::counted(compared.sent_frames, "frame"),
        compared.interface,
        units::count(moved.tx_packets),
        units::count(moved.tx_dropped),
        units::count(moved.tx_errors),
        units::count(compared.missing_frames),
    )
}

/// What the interface counts of each frame beyond its bytes here, if it counted these frames and no others.
fn beyond_layer2(ours: &TxCounters, moved: &Counters) -> Option<i64> {
    if ours.frames == 0 || moved.tx_packets != ours.frames {
        return None;
    }
    let (frames, all) = (i64::try_from(ours.frames).ok()?, i64::try_from(moved.tx_bytes).ok()?);
    let beyond = all - i64::try_from(ours.bytes).ok()?;
    // No counter adds more to a frame than preamble, FCS and gap; anything else was counted at another moment.
    (beyond % frames == 0 && (beyond / frames).abs() <= 24).then_some(beyond / frames)
}

/// What an interface counts of a frame beyond its bytes here: at least, and at most.
#[derive(Debug, Clone, Copy)]
struct Counted(i64, i64);

impl Counted {
    /// Of a veth, or of any hardware; `None` where drivers count what they like (a tunnel's, with or without headers).
    fn by(place: &Place, counts: Counts) -> Option<Counted> {
        match place.interface.kind.as_deref() {
            Some("veth") if counts == Counts::HandedOver => Some(Counted(0, 0)),
            // The far end counts socket buffers where it polls (XDP, GRO), and does so behind their Ethernet header.
            Some("veth") => Some(Counted(-14, 0)),
            Some(_) => None,
            // Preamble, FCS and gap, or none of two tags; what is shorter than a frame may be is filled up.
            None => Some(Counted(-24, 24 + 46)),
        }
    }
}

/// The bytes that were meant and those that the interface counted, where they cannot be of the same frames: as many frames left,
/// with other lengths. Frames of others may only add to them.
fn other_bytes(ours: &TxCounters, moved: &Counters, counted: Option<Counted>) -> Option<(u64, u64)> {
    const LONGEST: i128 = 65_549;
    let Counted(least, most) = counted?;
    let others = moved.tx_packets.checked_sub(ours.frames)?;
    let (frames, meant, all) = (i128::from(ours.frames), i128::from(ours.bytes), i128::from(moved.tx_bytes));
    let may_be =
        meant + frames * i128::from(least)..=meant + frames * i128::from(most) + i128::from(others) * LONGEST;
    (!may_be.contains(&all)).then_some((ours.bytes, moved.tx_bytes))
}

/// What rose at each end of the run.
pub fn counted(ends: Vec<(String, port::watch::Watch)>) -> Vec<HostCounter> {
    let of = |(place, watch): (String, port::watch::Watch)| {
        watch.end().into_iter().map(move |rise| host_counter(&place, rise))
    };
    ends.into_iter().flat_map(of).collect()
}

/// A rise at one end of the run.
pub fn host_counter(place: &str, rise: port::watch::Rise) -> HostCounter {
    // The cores serve all that happens on the machine.
    let place = if rise.source == Counting::Cores { "this machine" } else { place };
    HostCounter {
        place: place.to_owned(),
        source: rise.source.name().to_owned(),
        explains: rise.meaning().map(str::to_owned),
        name: rise.name,
        rise: rise.by,
        own_frames: None,
    }
}

/// Counters of an end are read one after the other while frames may still arrive, and others' arrive, too: of so many frames
/// they may differ by this.
pub fn about(frames: u64) -> u64 {
    (frames / 50).max(8)
}

/// Tells the frames that the meter at `place` measured, and its XDP program then dropped, from lost ones. Drivers differ in
/// whether they count such drops, so it is told by the counts: no counter of losses can rise by more than was lost, unless it
/// counts these, too.
pub fn leave_out_own(counters: &mut [HostCounter], place: &str, measured: u64, lost: u64) {
    // A counter for each queue counts a part.
    let family = |counter: &HostCounter| {
        (counter.source.clone(), counter.name.replace(|c: char| c.is_ascii_digit(), ""))
    };
    let of_drops = |counter: &HostCounter| {
        counter.place == place && counter.explains.is_some() && !counter.name.contains("tx")
    };
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for counter in counters.iter().filter(|counter| of_drops(counter)) {
        *sums.entry(family(counter)).or_default() += counter.rise;
    }
    for (name, sum) in sums {
        let counts_ours = sum > lost || sum.abs_diff(measured) <= about(measured);
        if !counts_ours || sum + about(measured) < measured {
            continue;
        }
        let mut left = measured;
        for counter in counters.iter_mut().filter(|counter| of_drops(counter) && family(counter) == name) {
            let own = counter.rise.min(left);
            left -= own;
            counter.own_frames = Some(own);
            if own == counter.rise {
                counter.explains = None;
            }
        }
    }
}

/// Where lost frames may have gone, by those who counted them.
pub fn where_they_went(counters: &[HostCounter]) -> Option<String> {
    let told = counters.iter().filter_map(|counter| {
        let why = counter.explains.as_ref()?;
        let HostCounter { place, name, rise, source, own_frames, .. } = counter;
        let gone = rise.saturating_sub(own_frames.unwrap_or(0));
        Some(format!("{place} counts {} as {name} ({source}): {why}", units::count(gone)))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("where frames may have gone: {}", told.join("; ")))
}

/// Two runs on one interface number their frames alike, so that the one's stand in for what the other lost: that shows
/// in frames that came twice, or long after their place, and are no more than the interface sent of others'.
pub fn another_run(report: &Report, odd: u64) -> Option<String> {
    let counted = report.result.tx.as_ref()?.interface_counters.iter();
    let others = counted.max_by_key(|counters| counters.foreign_frames)?;
    (odd > 0 && others.foreign_frames >= odd).then(|| {
        format!(
            "{} came twice or long after their place, and {} sent {} of others: if they are another netdyno's, they \
             stand in for what this run lost, and the loss may be larger than it says; give each run an interface of \
             its own",
            units::counted(odd, "signed frame"),
            others.interface,
            units::counted(others.foreign_frames, "frame"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(interface: u64, driver: Option<u64>, arrived: Option<u64>, counts: Counts) -> Seen {
        Seen { ours: 300, interface, driver, arrived, counts }
    }

    #[test]
    fn a_counter_is_believed_unless_somebody_saw_more() {
        use Counts::{Accepted, Completed, HandedOver};
        for (seen, expected) in [
            (seen(300, None, None, Accepted), (Witness::Interface, 300)),
            (seen(305, None, Some(250), HandedOver), (Witness::Interface, 300)),
            // A part is what it says, and a neighbour's frame more at the receiver contradicts nothing.
            (seen(255, None, None, HandedOver), (Witness::Interface, 255)),
            (seen(255, None, Some(256), Completed), (Witness::Interface, 255)),
            (seen(255, None, Some(300), HandedOver), (Witness::Meter, 300)),
            // virtio_net counts nothing of zero-copy.
            (seen(0, None, Some(300), Completed), (Witness::Meter, 300)),
            (seen(4, None, Some(280), Completed), (Witness::Meter, 280)),
            (seen(0, None, None, Completed), (Witness::Completions, 300)),
            (seen(0, None, Some(0), Completed), (Witness::Nobody, 0)),
            (seen(0, Some(300), None, HandedOver), (Witness::Driver, 300)),
            (seen(3, Some(290), Some(300), HandedOver), (Witness::Driver, 290)),
            (seen(0, None, None, HandedOver), (Witness::Nobody, 0)),
            (seen(6, None, Some(0), HandedOver), (Witness::Nobody, 6)),
            (seen(0, None, None, Accepted), (Witness::Nobody, 0)),
        ] {
            assert_eq!(seen.judge(), expected, "{seen:?}");
        }
    }

    #[test]
    fn an_interrupt_ends_the_wait_for_counters_that_do_not_know_the_frames() {
        let (hurry, mut looks) = (AtomicBool::new(false), 0);
        let look = || {
            looks += 1;
            hurry.store(looks == 2, Relaxed);
            Some(Counters { tx_packets: looks, ..Counters::default() })
        };
        let last = settled(look, 1000, Some(&hurry)).expect("counters");
        // One more look, and not the dozens of two seconds.
        assert_eq!(last.tx_packets, 3);
        assert_eq!(settled(|| None, 1, None), None);
    }

    #[test]
    fn what_nobody_saw_leave_is_unconfirmed() {
        use Counts::{Accepted, Completed, HandedOver};
        for (seen, expected) in [
            (seen(300, None, Some(100), Accepted), 0),
            (seen(255, None, Some(100), Accepted), 45),
            (seen(0, Some(290), Some(200), HandedOver), 10),
            // No counter knows them: that they left is known of those that arrived, or from the driver's completions.
            (seen(0, None, Some(280), HandedOver), 20),
            (seen(0, None, Some(280), Completed), 0),
            (seen(0, None, None, Completed), 0),
            (seen(0, None, Some(0), Completed), 300),
            (seen(6, None, Some(0), HandedOver), 300),
        ] {
            assert_eq!(seen.unconfirmed(), expected, "{seen:?}");
        }
    }

    #[test]
    fn frames_vanished_only_if_nobody_saw_one() {
        let counts = Counts::HandedOver;
        assert!(seen(0, None, Some(0), counts).vanished() && seen(0, Some(0), Some(0), counts).vanished());
        // Others', as none arrived.
        assert!(seen(6, None, Some(0), counts).vanished());
        // Without a receiver nobody can tell: a driver may send what it counts nowhere.
        assert!(!seen(6, None, None, counts).vanished() && !seen(0, None, None, counts).vanished());
        assert!(!seen(0, Some(1), None, counts).vanished() && !seen(0, None, Some(1), counts).vanished());
        assert!(!Seen { ours: 0, ..seen(0, None, None, counts) }.vanished());
    }

    /// Of a bridge or reflector that handed 300 frames to a driver.
    fn accounted(interface: u64, driver: Option<u64>, by_xdp: bool) -> Report {
        let counts = if by_xdp { Counts::HandedOver } else { Counts::Accepted };
        let moved = Counters { tx_packets: interface, ..Counters::default() };
        let mut report = Report::new("bridge");
        report.result.tx = Some(report::Tx::default());
        let told = Told { unaccounted: ": why", remedy: None, nobody: "measure", completions: None };
        let compared = compare("east", 300, &moved);
        account(&mut report, compared, &moved, &seen(interface, driver, None, counts), &told);
        report
    }

    #[test]
    fn what_a_bridge_or_reflector_handed_over_is_judged_by_whoever_knows_it() {
        for (interface, driver, by_xdp, short, warned, witness) in [
            (300, None, true, None, 0, Witness::Interface),
            (290, None, true, Some("10 are missing: why"), 0, Witness::Interface),
            // A driver that counts no XDP frames, but for one that the kernel sent.
            (1, None, true, Some("nobody saw these frames leave"), 0, Witness::Nobody),
            (1, Some(300), true, None, 1, Witness::Driver),
            (1, Some(200), true, Some("its driver counts only 200"), 1, Witness::Driver),
            (0, None, false, Some("300 are missing: why"), 0, Witness::Nobody),
        ] {
            let report = accounted(interface, driver, by_xdp);
            let said = report.result.verdict.reasons().join("; ");
            let case = format!("{interface} {driver:?}: {said}");
            assert_eq!(said.is_empty(), short.is_none(), "{case}");
            assert!(said.contains(short.unwrap_or_default()), "{case}");
            assert_eq!(report.warnings.len(), warned, "{case}");
            let counted = &report.result.tx.as_ref().expect("sent").interface_counters[0];
            assert_eq!(counted.confirmed_by, Some(witness), "{case}");
        }
    }

    #[test]
    fn drivers_counters_of_xdp_are_found_and_added_up() {
        let rise = |(name, by): (&str, u64)| Rise { source: Counting::Driver, name: name.to_owned(), by };
        for (rises, expected) in [
            (&[("tx0_xdp_tx", 200), ("tx1_xdp_tx", 100), ("tx0_xdp_tx_drops", 7)][..], Some(293)),
            (&[("tx_queue_0_xdp_xmit", 300), ("rx_queue_0_xdp_tx_errors", 2)], Some(300)),
            (&[("tx_xsk_xmit", 300), ("tx0_xsk_xmit", 300), ("tx_xsk_full", 9)], Some(300)),
            (&[("tx_xsk_sent[0]", 300), ("tx_packets", 900), ("rx_xdp_drop", 5)], Some(300)),
            (&[("tx_packets", 300), ("rx0_xdp_redirect", 3)], None),
        ] {
            let rises: Vec<Rise> = rises.iter().copied().map(rise).collect();
            assert_eq!(xdp_sent(&rises), expected, "{rises:?}");
        }
    }

    #[test]
    fn whether_a_counter_knows_the_fcs_shows_in_its_bytes() {
        let ours = TxCounters { frames: 10, bytes: 600, ..TxCounters::default() };
        let moved = |tx_packets, tx_bytes| Counters { tx_packets, tx_bytes, ..Counters::default() };
        for (moved, beyond) in [
            (moved(10, 600), Some(0)),
            (moved(10, 640), Some(4)),
            (moved(10, 560), Some(-4)),
            (moved(10, 641), None),
            (moved(11, 660), None),
        ] {
            assert_eq!(beyond_layer2(&ours, &moved), beyond);
        }
    }

    #[test]
    fn frames_that_left_with_other_lengths_show_in_the_bytes() {
        let ours = TxCounters { frames: 100, bytes: 9_600, ..TxCounters::default() };
        let moved = |tx_packets, tx_bytes| Counters { tx_packets, tx_bytes, ..Counters::default() };
        let (veth, hardware) = (Some(Counted(0, 0)), Some(Counted(-24, 70)));
        for (moved, counted, differs) in [
            (moved(100, 9_600), veth, false),
            (moved(100, 9_599), veth, true),
            (moved(100, 9_604), veth, true),
            // A frame of others' adds what it has.
            (moved(101, 9_642), veth, false),
            (moved(101, 9_599), veth, true),
            (moved(100, 10_000), hardware, false),
            (moved(100, 1_600), hardware, true),
            (moved(100, 20_000), hardware, true),
            // Fewer frames are another finding.
            (moved(99, 9_504), veth, false),
            (moved(100, 1_600), None, false),
        ] {
            assert_eq!(other_bytes(&ours, &moved, counted).is_some(), differs, "{moved:?} {counted:?}");
        }
    }

    #[test]
    fn only_counters_that_tell_are_named_for_a_loss() {
        let counter = |name: &str, explains: Option<&str>| HostCounter {
            place: "rx0".to_owned(),
            source: "interface".to_owned(),
            name: name.to_owned(),
            rise: 1_500,
            own_frames: None,
            explains: explains.map(str::to_owned),
        };
        assert_eq!(where_they_went(&[counter("rx_packets", None)]), None);
        let told = where_they_went(&[
            counter("rx_packets", None),
            counter("rx_missed_errors", Some("the receive ring was full")),
        ]);
        assert_eq!(
            told.as_deref(),
            Some(
                "where frames may have gone: rx0 counts 1,500 as rx_missed_errors (interface): the receive ring was full"
            )
        );
    }

    #[test]
    fn what_the_meter_dropped_itself_is_no_loss() {
        let counter = |source: &str, name: &str, rise: u64| HostCounter {
            place: "rx0".to_owned(),
            source: source.to_owned(),
            name: name.to_owned(),
            rise,
            own_frames: None,
            explains: Some("dropped".to_owned()),
        };
        let rest = |counters: &[(&str, &str, u64)], measured: u64, lost: u64| {
            let mut all: Vec<_> =
                counters.iter().map(|&(source, name, rise)| counter(source, name, rise)).collect();
            leave_out_own(&mut all, "rx0", measured, lost);
            all.iter().map(|c| c.rise - c.own_frames.unwrap_or(0)).collect::<Vec<_>>()
        };
        // virtio_net: two frames were too long for its buffers, and all are counted as dropped.
        let virtio = [
            ("interface", "rx_dropped", 300),
            ("interface", "rx_length_errors", 2),
            ("driver", "rx0_drops", 300),
        ];
        assert_eq!(rest(&virtio, 298, 2), [2, 2, 2]);
        // Its queues together.
        assert_eq!(rest(&[("driver", "rx0_drops", 180), ("driver", "rx1_drops", 118)], 298, 2), [0, 0]);
        // A driver that counts none of them, and what it lost is little, or much, or most.
        for lost in [2, 250, 400] {
            assert_eq!(rest(&[("interface", "rx_dropped", lost)], 700 - lost, lost), [lost], "{lost}");
        }
        // Another interface's, and sending ones.
        assert_eq!(rest(&[("driver", "tx0_drops", 300)], 298, 2), [300]);
        let mut other = [counter("interface", "rx_dropped", 300)];
        leave_out_own(&mut other, "rx1", 298, 2);
        assert_eq!((other[0].own_frames, other[0].explains.is_some()), (None, true));
        // Nothing of it is left to explain a loss.
        let mut ours = [counter("interface", "rx_dropped", 301)];
        leave_out_own(&mut ours, "rx0", 301, 5);
        assert_eq!(where_they_went(&ours), None);
        let mut most = [counter("interface", "rx_dropped", 303)];
        leave_out_own(&mut most, "rx0", 300, 5);
        assert_eq!(
            where_they_went(&most).expect("three"),
            "where frames may have gone: rx0 counts 3 as rx_dropped (interface): dropped"
        );
    }
}
