//! Frames of a source that is not netdyno's own.

use engine::source::{Facts, Frames, Sequence, Source, SourceError};
use lab::Lab;
use netdyno_job::{Handle, Session, start_with};
use report::Report;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, socket_with, sockopt};
use std::os::fd::OwnedFd;
use std::time::Duration;
use traffic::Buffers;
use traffic::executor::NOTHING;

fn lab() -> Lab {
    Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)")
}

fn job(members: &str) -> spec::Send {
    let text = format!("{{schema: netdyno.job/1, kind: send, what: of a test, {members}}}");
    let job = spec::File::read(&text, "job").expect("a job").jobs.remove(0);
    let spec::Job::Send(job) = job else { panic!("a send") };
    *job
}

fn start(lab: &Lab, mut job: spec::Send, source: impl Into<Source>) -> Handle {
    job.links.resize(1, spec::Link::default());
    job.links[0].on = Some(lab.sender.spec());
    start_with(job, source, Session::default()).expect("a thread")
}

/// Sees every frame of the receiver's host: packet(7), ETH_P_ALL.
fn ear(lab: &Lab) -> OwnedFd {
    let open = || {
        let all = Protocol::from_raw(u32::from(0x0003u16.to_be()).try_into().expect("not 0"));
        socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(all))
            .expect("a socket")
    };
    let socket = lab.receiver.namespace.run_in(open).expect("entered");
    sockopt::set_socket_recv_buffer_size(&socket, 1 << 21).expect("room");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(60)))
        .expect("patience");
    socket
}

fn heard(socket: &OwnedFd, frames: usize) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    let mut next = || {
        let (length, _) =
            rustix::net::recv(socket, &mut buffer, RecvFlags::empty()).expect("a frame in a minute");
        buffer[..length].to_vec()
    };
    (0..frames).map(|_| next()).collect()
}

/// Frame `n` of a test, of many lengths, between two hosts that nobody has.
fn frame(n: u64) -> Vec<u8> {
    let mut frame = vec![n as u8; 60 + (n * 37 % 1400) as usize];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2]);
    // For local experiments (IEEE 802).
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..22].copy_from_slice(&n.to_be_bytes());
    frame
}

fn sent(report: &Report) -> u64 {
    report.result.tx.as_ref().expect("a sender").totals.frames
}

#[test]
fn frames_of_an_iterator_arrive_in_order_to_the_byte() {
    const FRAMES: u64 = 1000;
    let lab = lab();
    let ear = ear(&lab);
    let frames = (0..FRAMES).map(|n| (n * 200_000, frame(n)));
    let handle = start(&lab, job("engine: packet"), Sequence::timed("a test's", frames));
    for (n, arrived) in heard(&ear, FRAMES as usize).into_iter().enumerate() {
        assert!(arrived == frame(n as u64), "{n}: {arrived:02x?}");
    }
    let report = handle.into_result().expect("a result");
    assert_eq!(sent(&report), FRAMES);
    let totals = &report.result.tx.as_ref().expect("a sender").totals;
    assert_eq!(totals.bytes, (0..FRAMES).map(|n| frame(n).len() as u64).sum::<u64>());
    // The last is due after 199.8 ms, and none leaves before its time.
    assert!(totals.duration_ns >= 199_800_000, "{totals:?}");
    assert!(report.result.pacing.is_some());
}

#[test]
fn a_rate_and_a_count_of_the_job_hold_for_an_iterator_without_end() {
    let lab = lab();
    let ear = ear(&lab);
    let endless = Sequence::untimed("a test's", (0..).map(frame));
    let handle = start(&lab, job("engine: packet, rate: 5kpps, count: 700"), endless);
    assert!(heard(&ear, 700).into_iter().zip((0..).map(frame)).all(|(arrived, sent)| arrived == sent));
    let report = handle.into_result().expect("a result");
    assert_eq!(
        (sent(&report), report.result.tx.as_ref().and_then(|tx| tx.intended_frames)),
        (700, Some(700))
    );
}

#[test]
fn signed_frames_of_an_iterator_are_accounted_for_one_by_one() {
    let lab = lab();
    let udp = traffic::expr::compile(
        "ipv4/udp(dport=10..19)",
        &traffic::expr::Options {
            size: Some("200".parse().expect("a size")),
            ..traffic::expr::Options::default()
        },
    )
    .expect("an expression");
    let frames: Vec<Vec<u8>> =
        (0..500).map(|n| traffic::executor::frame(&udp, n, 0).expect("a frame")).collect();
    let mut job = job("engine: packet, sign: always, rate: 5kpps");
    let measure = Some(lab.receiver.spec());
    job.links.push(spec::Link { measure, ..spec::Link::default() });
    let report =
        start(&lab, job, Sequence::untimed("a test's", frames.into_iter())).into_result().expect("a result");
    assert_eq!(report.result.loss.map(|loss| (loss.frames, loss.by_count_only)), Some((0, false)));
    let [stream] = &report.streams[..] else { panic!("{:?}", report.streams) };
    assert_eq!((stream.tx_frames, stream.rx_frames, stream.lost_frames), (Some(500), 500, 0));
    assert_eq!(report.result.flows.as_ref().map(|flows| flows.flows), Some(10));
}

/// A source from the bottom: one frame at a time, at times of its own, and no rate is taken.
#[derive(Debug)]
struct Beats(u64);

impl Frames for Beats {
    fn facts(&self) -> Facts {
        Facts { paced: true, frames: Some(50), longest: Some(1460), ..Facts::default() }
    }

    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        Ok((self.0 < 50).then_some(self.0 * 1_000_000))
    }

    fn fill(
        &mut self,
        to: &mut Buffers<'_>,
        _: usize,
        _: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let frame = frame(self.0);
        to.bytes[..frame.len()].copy_from_slice(&frame);
        (to.held[0], to.lengths[0], due[0]) = (NOTHING, frame.len() as u32, self.0 * 1_000_000);
        self.0 += 1;
        Ok(1)
    }

    fn end(&mut self) -> u64 {
        50_000_000
    }
}

#[test]
fn whatever_yields_frames_is_a_source() {
    let lab = lab();
    let ear = ear(&lab);
    let handle = start(&lab, job("engine: packet"), Beats(0));
    assert!(heard(&ear, 50).into_iter().zip((0..).map(frame)).all(|(arrived, sent)| arrived == sent));
    let report = handle.into_result().expect("a result");
    assert_eq!(sent(&report), 50);
    // A sender that was held up says so, and nothing else.
    let late = |said: &report::Said| said.code == report::Code::RateNotReached;
    assert!(report.result.verdict.reasons().iter().all(late), "{:?}", report.result.verdict);
}

#[test]
fn what_a_source_cannot_do_is_refused() {
    let lab = lab();
    for (members, says) in [
        ("rate: 1kpps", "rate: these frames have times of their own"),
        ("sign: always", "sign: this source cannot sign"),
        ("size: 60", "size: it does nothing to frames of a source"),
        ("cores: 2", "one reader"),
        ("yes_disrupt: [tx0]", "tx0, although that carries"),
    ] {
        let error = start(&lab, job(members), Beats(0)).wait().expect_err(members).to_string();
        assert!(error.contains(says), "{members}: {error}");
    }
}
