//! Jobs in a process of somebody else's: several at once, in namespaces of their own, changed, ended and watched.

use lab::{Host, Lab};
use netdyno_job as jobs;
use netdyno_job::{Handle, Member, Session};
use report::Report;
use snapshot::{Board, Phase};
use spec::{File, Job};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn job(members: &str) -> Job {
    let text = format!("{{schema: netdyno.job/1, {members}}}");
    File::read(&text, "job").expect("a job").jobs.remove(0)
}

fn lab() -> Lab {
    Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)")
}

/// Starts it where `host` is: a thread begins in the namespace of the one that starts it.
fn start(host: &Host, members: &str, session: Session) -> Handle {
    let job = job(members);
    host.namespace.run_in(move || jobs::start(job, session)).expect("entered").expect("a thread")
}

fn sent(report: &Report) -> u64 {
    report.result.tx.as_ref().expect("a sender").totals.frames
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const SEND: &str = "kind: send, what: ipv4/udp, links: [{on: tx0}], engine: packet, sign: always";

#[test]
fn two_jobs_of_one_process_in_two_namespaces_count_the_same_frames() {
    let lab = lab();
    let [a, b] = <[Member; 2]>::try_from(Member::beginning(2)).expect("two");
    let with = |member| Session { together: Some(member), ..Session::default() };
    let measure = start(&lab.receiver, "kind: measure, on: rx0, count: 500, duration: 60s", with(a));
    let send = start(&lab.sender, &format!("{SEND}, rate: 5kpps, count: 500"), with(b));
    let (sent_report, measured) = (send.wait().expect("sent"), measure.wait().expect("measured"));
    assert_eq!(sent(&sent_report), 500);
    let rx = measured.result.rx.as_ref().expect("a receiver");
    assert!(rx.totals.frames >= 500, "{rx:?}");
    let stream = measured.streams.iter().find(|stream| stream.stream == 0).expect("the stream");
    assert_eq!((stream.rx_frames, stream.lost_frames), (500, 0));
}

#[test]
fn a_job_is_paused_changed_and_ended_by_its_handle() {
    let lab = lab();
    let handle = start(&lab.sender, &format!("{SEND}, rate: 1kpps, duration: 10m"), Session::default());
    let frames = || handle.snapshot().and_then(|now| now.tx).map_or(0, |tx| tx.frames);
    until("it begins", || frames() > 0);
    handle.pause();
    let phase = || handle.snapshot().map(|now| now.phase);
    until("it pauses", || phase() == Some(Phase::Paused));
    // Asked for twice is paused all the same.
    handle.pause();
    let paused = frames();
    std::thread::sleep(Duration::from_millis(300));
    assert!(frames() <= paused + 1, "{} after {paused}", frames());
    assert_eq!(phase(), Some(Phase::Paused));
    handle.set_rate(50);
    handle.resume();
    until("it goes on", || frames() > paused + 50);
    until("it is slower", || handle.snapshot().is_some_and(|now| now.percent == 50));
    assert!(!handle.is_over());
    // From several threads, and more than once.
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| handle.stop())));
    });
    let [first, second] = [handle.wait(), handle.wait()].map(|report| report.expect("a result"));
    assert!(Arc::ptr_eq(&first, &second) && handle.is_over());
    handle.stop();
    let changes: Vec<_> = first.result.adjustments.iter().map(|a| a.change).collect();
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert!(first.result.verdict.reasons().iter().any(|reason| reason.contains("stopped")), "{first:?}");
}

#[test]
fn what_cannot_be_changed_is_not_told_as_changed_and_what_is_wanted_early_is_done() {
    let lab = lab();
    let top = start(&lab.sender, &format!("{SEND}, rate: top, count: 200k"), Session::default());
    until("it begins", || top.snapshot().is_some());
    top.set_rate(50);
    let report = top.into_result().expect("a result");
    assert_eq!((sent(&report), report.result.adjustments.len()), (200_000, 0));
    let early = start(&lab.sender, &format!("{SEND}, rate: 1kpps, count: 1k"), Session::default());
    early.set_rate(200);
    let report = early.into_result().expect("a result");
    assert_eq!((sent(&report), report.result.adjustments.len()), (1_000, 1));
}

#[test]
fn what_is_dropped_leaves_nothing_behind() {
    let lab = lab();
    let program = || {
        let look = || port::interface::Interface::by_name("rx0").expect("rx0").xdp.is_some();
        lab.receiver.namespace.run_in(look).expect("entered")
    };
    let handle = start(&lab.receiver, "kind: measure, on: rx0", Session::default());
    until("it measures", || handle.snapshot().is_some());
    assert!(program());
    drop(handle);
    assert!(!program(), "a program was left at the interface");
}

/// Whoever looks on may be slow, hang or panic: the run sends what it was told to, in its time.
#[test]
fn who_looks_on_never_holds_up_the_run() {
    let lab = lab();
    let session = Session::default();
    let board: Arc<Board> = Arc::clone(&session.board);
    board.watch_closely();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let panics = scope.spawn({
            let board = Arc::clone(&board);
            move || {
                assert!(board.await_first());
                panic!("as a defect of an observer would");
            }
        });
        scope.spawn(|| {
            // It has what it read, and never comes back for more.
            assert!(board.await_first());
            let _kept = board.latest();
            until("the run is over", || over.load(Relaxed));
        });
        let handle = start(&lab.sender, &format!("{SEND}, rate: 1kpps, count: 700"), session);
        let report = handle.wait().expect("a result");
        over.store(true, Relaxed);
        assert_eq!(sent(&report), 700);
        assert!(panics.join().is_err());
    });
    assert!(board.is_over());
}

#[test]
fn what_cannot_be_is_told_by_wait_each_time() {
    let lab = lab();
    for (members, says) in [
        ("kind: measure, on: nothere0", "nothere0"),
        ("kind: send, what: ipv4/udq, links: [{on: tx0}], rate: 1kpps", "udq"),
        ("kind: reflect, on: tx0, yes_disrupt: [tx0]", "tx0, although that carries"),
    ] {
        let handle = start(&lab.sender, members, Session::default());
        for _ in 0..2 {
            let error = handle.wait().expect_err(members).to_string();
            assert!(error.contains(says), "{members}: {error}");
        }
        assert!(handle.snapshot().is_none() && handle.board().is_over());
    }
    // Of a job that was not read out of a file it is said, too.
    let Job::Send(mut send) = job("kind: send, what: ipv4/udp, links: [{on: tx0}]") else { panic!("a send") };
    send.links.push(spec::Link::default());
    let handle = jobs::start((*send).into(), Session::default()).expect("a thread");
    assert!(handle.wait().expect_err("two links").to_string().contains("links[1].on: each link sends"));
}

/// A kind that panics is told as what it is, and takes nobody along.
#[test]
fn a_defect_ends_its_job_only() {
    let handle = jobs::spawn(Session::default(), |_| panic!("as a defect would")).expect("a thread");
    assert!(handle.wait().expect_err("a panic").to_string().contains("defect of netdyno"));
}
