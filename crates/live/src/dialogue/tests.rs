use super::collect::{Conversation, Taken};
use super::*;
use crate::segment::Segment;

const CLIENT: u32 = 0xffff_fff0;
const SERVER: u32 = 500;

/// `c` or `s`, flags, offset of its first byte, acknowledged offset, text; a millisecond apart.
fn conversation(script: &[(char, u8, u32, u32, &str)]) -> Conversation {
    let mut conversation =
        Conversation::new(0, ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap()));
    for (nth, (who, flags, at, ack, text)) in script.iter().enumerate() {
        let (own, other) = if *who == 'c' { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let syn = u32::from(flags & SYN != 0);
        conversation.segments.push(Taken {
            time_ns: nth as u64 * 1_000_000,
            by_first: *who == 'c',
            segment: Segment {
                seq: own.wrapping_add(1 + at).wrapping_sub(syn),
                ack: other.wrapping_add(1 + ack),
                flags: *flags,
                window: 1000,
                payload: text.as_bytes().to_vec().into(),
                ..Segment::default()
            },
            missing: 0,
        });
    }
    conversation
}

const OPEN: [(char, u8, u32, u32, &str); 3] =
    [('c', SYN, 0, 0, ""), ('s', SYN | ACK, 0, 0, ""), ('c', ACK, 0, 0, "")];

#[test]
fn words_wait_for_what_the_client_had_heard() {
    let mut script = OPEN.to_vec();
    script.extend([
        ('c', ACK | PSH, 0, 0, "ask"),
        ('s', ACK, 0, 3, "ans"),
        ('s', ACK | PSH, 3, 3, "wer"),
        ('c', ACK, 3, 6, "more, "),
        ('c', ACK | PSH, 9, 6, "please"),
        ('s', ACK | PSH, 6, 15, "no"),
        ('c', ACK | FIN, 15, 8, ""),
        ('s', ACK | FIN, 8, 16, ""),
        ('c', ACK, 16, 9, ""),
    ]);
    let dialogue = understand(&conversation(&script));
    assert_eq!((&dialogue.said[..], &dialogue.heard[..]), (&b"askmore, please"[..], &b"answerno"[..]));
    let exchanges: Vec<_> =
        dialogue.exchanges.iter().map(|e| (e.said.clone(), e.heard.clone(), e.steps.clone())).collect();
    assert_eq!(exchanges, [(0..3, 0..6, 0..1), (3..15, 6..8, 1..3)]);
    assert_eq!(dialogue.closing, 3..4);
    assert_eq!((dialogue.ended, dialogue.gap, dialogue.handshake), (Ended::ByClient, None, true));
    // After the SYN's answer, after the server's words, after its own words before.
    let delays: Vec<_> = dialogue.steps.iter().map(|step| step.delay_ns / 1_000_000).collect();
    assert_eq!(delays, [2, 1, 1, 1]);
    assert_eq!(dialogue.steps[2].say, Say::Bytes { end: 15, push: true });
}

#[test]
fn retransmissions_and_disorder_change_nothing() {
    let mut script = OPEN.to_vec();
    script.extend([
        ('c', ACK, 3, 0, "def"),
        ('c', ACK, 0, 0, "abc"),
        ('c', ACK, 1, 0, "bcd"),
        ('c', ACK | PSH, 5, 0, "fgh"),
        ('s', ACK, 0, 8, "ok"),
        ('s', ACK, 0, 8, "ok"),
    ]);
    let dialogue = understand(&conversation(&script));
    assert_eq!((&dialogue.said[..], &dialogue.heard[..], dialogue.gap), (&b"abcdefgh"[..], &b"ok"[..], None));
    let ends: Vec<_> = dialogue.steps.iter().map(|step| step.say).collect();
    let bytes = |end, push| Say::Bytes { end, push };
    assert_eq!(ends, [bytes(3, false), bytes(6, false), bytes(8, true)]);
    assert_eq!(dialogue.ended, Ended::Open);
}

#[test]
fn a_gap_in_the_clients_words_is_named_and_ends_them() {
    let mut script = OPEN.to_vec();
    script.extend([('c', ACK, 0, 0, "abc"), ('c', ACK, 5, 0, "fgh"), ('c', ACK | FIN, 8, 0, "")]);
    let dialogue = understand(&conversation(&script));
    assert_eq!(dialogue.gap, Some(Gap { at: 3, bytes: Some(2), cut: false }));
    assert_eq!((&dialogue.said[..], dialogue.steps.len()), (&b"abc"[..], 1));
}

#[test]
fn a_server_may_speak_first_and_a_capture_begin_in_the_middle() {
    let script = [
        ('s', ACK | PSH, 100, 50, "220 hello"),
        ('c', ACK | PSH, 50, 109, "EHLO"),
        ('s', ACK | PSH, 109, 54, "250"),
    ];
    let mut conversation = conversation(&script);
    conversation.segments.iter_mut().for_each(|taken| taken.by_first = !taken.by_first);
    std::mem::swap(&mut conversation.ends.0, &mut conversation.ends.1);
    let dialogue = understand(&conversation);
    assert_eq!(dialogue.client.port(), 40000);
    assert!(!dialogue.handshake);
    let exchanges: Vec<_> = dialogue.exchanges.iter().map(|e| (e.said.clone(), e.heard.clone())).collect();
    assert_eq!(exchanges, [(0..0, 0..9), (0..4, 9..12)]);
}
