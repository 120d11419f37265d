//! Sessions of UDP. Needs root.

use super::*;

fn serve_datagrams(lab: &Lab, sort: Sort, size: usize) -> Server {
    let host = &lab.receiver;
    let options =
        ServerOptions { udp: true, answer: datagram(size, sort.v6), ..server_options(lab, sort, 1, 1) };
    host.namespace.run_in(|| Server::attach(host.interface, &options)).expect("entered").expect("attached")
}

fn datagram_options(lab: &Lab, sort: Sort) -> Options {
    Options { udp: true, request: datagram(0, sort.v6), ..options_sort(lab, sort) }
}

#[test]
fn every_session_of_udp_is_a_datagram_each_way_for_each_request() {
    for sort in SORTS {
        for (requests, size) in [(1, 0), (3, 1001)] {
            let lab = lab();
            let server = serve_datagrams(&lab, sort, size);
            let options = Options { requests, ..datagram_options(&lab, sort) };
            let load = Load { count: Some(20_000), in_flight: Some(100), ..Load::default() };
            let (_, counts) = run(&lab, options, &load, &AtomicBool::new(false));
            let served = server.finish();
            agree(&counts, &served);
            let asked = 20_000 * u64::from(requests);
            assert_eq!((counts.finished, counts.failed(), counts.established), (20_000, 0, 20_000));
            assert_eq!((counts.asked, counts.numbered, counts.retransmitted()), (asked, asked, 0));
            assert_eq!((counts.tx_frames, counts.rx_frames, served.requests), (asked, asked, asked));
            assert_eq!(counts.answer_bytes, asked * datagram(size, sort.v6).len() as u64);
        }
    }
}

#[test]
fn who_does_not_answer_lets_every_session_of_udp_time_out_and_sends_nothing_more() {
    let lab = lab();
    let server = serve(&lab, 1);
    let nobody = SocketAddr::new([192, 0, 2, 1].into(), 7);
    let options =
        Options { server: nobody, timeout: Duration::from_millis(500), ..datagram_options(&lab, PLAIN) };
    let load = Load { count: Some(100), in_flight: Some(100), ..Load::default() };
    let (_, counts) = run(&lab, options, &load, &AtomicBool::new(false));
    assert_eq!((counts.opened, counts.timed_out, counts.ended()), (100, 100, 100));
    // After 100 and 300 ms.
    assert_eq!((counts.retransmitted_requests, counts.retransmitted()), (200, 200));
    assert_eq!((counts.tx_frames, counts.resets_sent), (300, 0));
    assert_eq!(server.finish().rx_frames, 0);
}

/// The server has no sessions: it is asked to send to where it saw each from, by way of another.
#[test]
fn sessions_that_are_held_are_used_again_from_either_side() {
    for sort in SORTS {
        for from_server in [false, true] {
            let lab = lab();
            let server = serve_datagrams(&lab, sort, 0);
            let options = Options { holds: true, from_server, ..datagram_options(&lab, sort) };
            let load = Load {
                count: Some(5_000),
                in_flight: Some(100),
                hold: Some(Duration::ZERO),
                use_again: true,
                ..Load::default()
            };
            let (ran, counts) = run(&lab, options, &load, &AtomicBool::new(false));
            let served = server.finish();
            agree(&counts, &served);
            assert_eq!((ran.held, counts.finished, counts.retransmitted()), (5_000, 5_000, 0));
            assert_eq!((counts.used_again, counts.used_again_answered), (5_000, 5_000));
            let relayed = if from_server { 5_000 } else { 0 };
            assert_eq!((served.requests, served.relayed), (10_000 - relayed, relayed));
            assert_eq!(counts.tx_frames, 10_000);
        }
    }
}

/// RFC 768: a checksum of 0 would say that there is none.
#[test]
fn a_checksum_of_zero_is_written_as_all_ones() {
    let lab = lab();
    let server = serve_datagrams(&lab, PLAIN, 0);
    let [client, host] = [&lab.sender, &lab.receiver];
    let ends = [frames::octets(PLAIN.address(client)), frames::octets(PLAIN.address(host))].concat();
    // A request whose checksum nobody looks at; its number is changed until an answer has the one that is sought.
    let mut frame =
        [&host.mac[..], &client.mac, &[8, 0, 0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 17, 0, 0], &ends].concat();
    frame.extend([&[0x80, 0, 0, 80, 0, 24, 0, 0], &b"ndyQ"[..], &[0; 12]].concat());
    let mut found = 0;
    for number in 0..=0xffff_u32 {
        frame[46..50].copy_from_slice(&number.to_be_bytes());
        let answer = frames::answered(server.program(), &frame).expect("an answer");
        let sum = &answer[40..42];
        assert_ne!(sum, [0, 0], "{number}");
        // With its pseudo header the whole sums up to all ones.
        let summed = [&answer[26..34], &[0, 17, 0, 24], &answer[34..58]].concat();
        assert_eq!(frames::checksum(&summed), [0, 0], "{number}: {answer:x?}");
        found += u32::from(sum == [0xff, 0xff]);
    }
    assert!((1..=2).contains(&found), "numbers of 16 bits have all checksums, and 0 is 0xffff: {found}");
}
