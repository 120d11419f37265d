use super::*;
use proptest::prelude::*;

/// 2026-11-28.
const NOW: i64 = 1_795_982_400_000_000_000;
const MS: i64 = 1_000_000;
const OURS: ErrorEstimate = ErrorEstimate { synchronised: true, format: Format::Ntp, error_ns: Some(1000) };

/// An answer to `packet`, received and sent again at these times.
fn answer(packet: &[u8], own: u32, t2: u64, t3: u64, error: u16) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    bytes[..4].copy_from_slice(&own.to_be_bytes());
    bytes[4..12].copy_from_slice(&t3.to_be_bytes());
    bytes[12..14].copy_from_slice(&error.to_be_bytes());
    bytes[16..24].copy_from_slice(&t2.to_be_bytes());
    bytes[24..38].copy_from_slice(&packet[..14]);
    bytes[40] = 250;
    bytes
}

fn session() -> Session {
    Session::new(0xabcd, 44, 1_000_000_000, 37_000_000_000)
}

/// Sends one, and has it answered after 5 ms there, 2 ms at the reflector and 3 ms back, by a clock that is ahead by `ahead`.
fn exchange(session: &mut Session, at: i64, ahead: i64, error: u16) -> Arrived {
    let packet = session.send(at, OURS).expect("few packets").to_vec();
    let number = u32::from_be_bytes(packet[..4].try_into().expect("four"));
    let raw = |at: i64| match ErrorEstimate::read(error).format {
        Format::Ntp => time::to_ntp(at),
        Format::Ptp => (((at / 1_000_000_000) << 32) | (at % 1_000_000_000)).cast_unsigned(),
    };
    let bytes = answer(&packet, number, raw(at + ahead + 5 * MS), raw(at + ahead + 7 * MS), error);
    session.arrived(&bytes, bytes.len(), true, at + 10 * MS)
}

#[test]
fn delays_are_those_of_the_four_times() {
    for (error, ahead, tai) in [(0x8401, 0, 0), (0xc401, 0, 0), (0xc401, 37_000_000_000, 37_000_000_000)] {
        let mut session = session();
        for n in 0..10 {
            assert_eq!(exchange(&mut session, NOW + n * 100 * MS, ahead, error), Arrived::Answered);
        }
        let figures = &session.figures;
        let all = [&figures.round_trip, &figures.residence, &figures.forward.delay, &figures.back.delay];
        assert_eq!(all.map(|h| (h.min(), h.count())), [8, 2, 5, 3].map(|ms| (ms * 1_000_000, 10)));
        assert_eq!((figures.round_trip_variation.count(), figures.round_trip_variation.max()), (9, 0));
        assert_eq!(figures.clock.map(|clock| clock.tai_ns), Some(tai));
        assert_eq!((figures.ttl, figures.session_echoed), (Some((250, 250)), 10));
        assert!(one_way_error(&figures.forward, figures, Some(1000)).is_ok_and(|e| e < 1100));
    }
}

#[test]
fn one_way_delays_are_withheld_where_clocks_cannot_bear_them() {
    let run = |ahead, error, ours| {
        let mut session = session();
        exchange(&mut session, NOW, ahead, error);
        let figures = &session.figures;
        assert_eq!(figures.round_trip.min(), 8_000_000);
        one_way_error(&figures.back, figures, ours)
    };
    assert_eq!(run(0, 0x8401, None), Err(Withheld::OursUnsynchronised));
    assert_eq!(run(0, 0x0401, Some(1)), Err(Withheld::TheirsUnsynchronised));
    assert_eq!(run(0, 0x8400, Some(1)), Err(Withheld::NoErrorEstimate));
    assert_eq!(run(-4 * MS, 0x8401, Some(1)), Ok(5));
    // The way back is below zero; that there is; and TAI for UTC, where the kernel does not know how far they are apart.
    assert_eq!(run(4 * MS, 0x8401, Some(1)), Err(Withheld::Negative));
    assert_eq!(run(-6 * MS, 0x8401, Some(1)), Err(Withheld::Negative));
    assert_eq!(run(37_000 * MS, 0x8401, Some(1)), Err(Withheld::Negative));
    assert_eq!(run(3 * MS, 0x8401, Some(1)), Err(Withheld::ErrorTooLarge(5)));
    assert!(matches!(run(0, 0x8401, Some(3_000_000)), Err(Withheld::ErrorTooLarge(3_000_004))));
}

#[test]
fn datagrams_that_are_no_answers_are_counted_by_what_is_wrong_with_them() {
    let mut session = session();
    let packet = session.send(NOW, OURS).expect("few packets").to_vec();
    let good = answer(&packet, 0, time::to_ntp(NOW + MS), time::to_ntp(NOW + 2 * MS), 0x8401);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= byte;
        bytes
    };
    let at = NOW + 10 * MS;
    assert_eq!(session.arrived(&good, 44, false, at), Arrived::OtherSource);
    assert_eq!(session.arrived(&good[..37], 37, true, at), Arrived::TooShort);
    assert_eq!(session.arrived(&with(15, 1), 44, true, at), Arrived::OtherSession);
    assert_eq!(session.arrived(&with(27, 1), 44, true, at), Arrived::UnknownNumber);
    assert_eq!(session.arrived(&with(35, 1), 44, true, at), Arrived::OtherTime);
    assert_eq!(session.arrived(&good[..41], 41, true, at), Arrived::Answered);
    assert_eq!(session.arrived(&good, 44, true, at), Arrived::Duplicate);
    session.send(NOW + MS, OURS);
    let packet = session.packet.clone();
    let late = answer(&packet, 1, time::to_ntp(NOW + MS), time::to_ntp(NOW + 2 * MS), 0x8401);
    assert_eq!(session.arrived(&late, 44, true, NOW + 1002 * MS), Arrived::Late);
    let figures = &session.figures;
    assert_eq!((figures.answered, figures.late, figures.duplicates, figures.other_length), (1, 1, 1, 1));
    let one = Strangers { other_source: 1, too_short: 1, other_session: 1, unknown_number: 1, other_time: 1 };
    assert_eq!(figures.strangers, one);
    // A reflector that does not know sessions leaves them out.
    let packet = session.send(NOW + 2 * MS, OURS).expect("few packets").to_vec();
    let mut bytes = answer(&packet, 2, time::to_ntp(NOW), time::to_ntp(NOW), 0x8401);
    bytes[14..16].fill(0);
    assert_eq!(session.arrived(&bytes, 44, true, NOW + 3 * MS), Arrived::Answered);
    assert_eq!(session.figures.session_zero, 1);
}

#[test]
fn times_that_cannot_be_are_no_delays() {
    let mut session = session();
    for (n, (t2, t3)) in [(5, 4), (1, 900), (0, 0)].into_iter().enumerate() {
        let at = NOW + n as i64;
        let packet = session.send(at, OURS).expect("few packets").to_vec();
        let raw = |ms: i64| if ms == 0 { 0 } else { time::to_ntp(at + ms * MS) };
        let bytes = answer(&packet, n as u32, raw(t2), raw(t3), 0x8401);
        assert_eq!(session.arrived(&bytes, 44, true, at + 10 * MS), Arrived::Answered);
    }
    assert_eq!((session.figures.implausible, session.figures.answered), (3, 3));
    assert!(session.figures.round_trip.is_empty());
}

proptest! {
    /// Whatever a reflector does to good answers: every datagram is counted once.
    #[test]
    fn anything_may_be_answered(
        hostile in prop::collection::vec((0..8_u32, prop::collection::vec((0..80_usize, any::<u8>()), 0..6), 0..90_usize, any::<i64>()), 0..60),
    ) {
        let mut session = Session::new(7, 60, 1_000_000, 37_000_000_000);
        let packets: Vec<Vec<u8>> = (0..8).filter_map(|n| Some(session.send(NOW + n, OURS)?.to_vec())).collect();
        let all = hostile.len() as u64;
        for (which, changes, length, t4) in hostile {
            let at = time::to_ntp(NOW + 500);
            let mut bytes = answer(&packets[which as usize], which, at, at, 0x8401);
            for (place, byte) in changes {
                if let Some(at) = bytes.get_mut(place) { *at = byte; }
            }
            bytes.resize(length, 0xff);
            session.arrived(&bytes, length, true, if t4 % 2 == 0 { NOW + 900 } else { t4 });
        }
        let (f, s) = (&session.figures, session.figures.strangers);
        let strangers = s.other_source + s.too_short + s.other_session + s.unknown_number + s.other_time;
        prop_assert_eq!(f.answered + f.late + f.duplicates + strangers, all);
        prop_assert_eq!(f.round_trip.count() + f.implausible, f.answered);
        prop_assert!(f.answered + f.late <= session.sent());
        let _ = (session.directions(), session.is_stateful());
    }
}
