//! Any bytes as a capture whose packets are sorted by side: each packet that is read gets its entry, whatever it holds.
#![no_main]

use capture::Reader;
use edit::classify::{Auto, Mode, Rules, Selection, Services, classify};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::sync::LazyLock;

static RULES: LazyLock<Vec<Rules>> = LazyLock::new(|| {
    let nets = "10.0.0.0/9,[2001:db8::/33]";
    let first = Rules { nonip_primary: true, ..Rules::new(Mode::Auto(Auto::First)) };
    vec![
        Rules { selection: Selection::exclude(&format!("E:{nets}")).ok(), ..first },
        Rules { selection: Selection::include("P:1-3,5-").ok(), ..Rules::new(Mode::Auto(Auto::Router)) },
        Rules { reverse: true, ..Rules::new(Mode::Cidr(nets.parse().expect("networks"))) },
        Rules::new(Mode::Port(Services::default())),
    ]
});

fuzz_target!(|bytes: &[u8]| {
    let open = || Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "fuzz").map(Reader::lenient);
    let Ok(mut reader) = open() else { return };
    let mut records = 0;
    while let Ok(Some(_)) = reader.next_record() {
        records += 1;
    }
    for rules in RULES.iter() {
        let Ok(mut reader) = open() else { return };
        if let Ok(cache) = classify(&mut reader, rules) {
            assert_eq!(cache.len(), records);
        }
    }
});
