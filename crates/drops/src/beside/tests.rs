//! Rules as nft makes them, in a namespace of their own.

use super::*;
use rules::Suspect;

fn nft(namespace: &Namespace, rules: &str) {
    let status = namespace.command("nft").expect("a command").arg(rules).status().expect("nft");
    assert!(status.success(), "{rules}");
}

fn here() -> (Namespace, Beside) {
    let namespace = Namespace::new().expect("these tests need root");
    let door = Door::Held(namespace.try_clone().expect("a descriptor"));
    let beside = Beside::of([(number(&namespace).expect("a number"), door)]);
    (namespace, beside)
}

/// Each by its words.
fn suspects(beside: &Beside, earlier: &Counters) -> Vec<(String, Suspect)> {
    let netns = beside.at[0].0;
    let rules = beside.rules(netns, earlier, &beside.read()).expect("one of those");
    assert_eq!(rules.unread, None);
    let words = beside.words(netns);
    let with_words = |suspect: Suspect| {
        let place = &suspect.place;
        let key = place.handle.map(|handle| (place.family_name().to_owned(), place.table.clone(), handle));
        let words = key.and_then(|key| words.get(&key).cloned());
        (words.unwrap_or_else(|| format!("policy of {}", place.chain)), suspect)
    };
    rules.suspects.into_iter().map(with_words).collect()
}

#[test]
fn rules_that_can_drop_are_found_and_those_whose_counter_stood_still_are_none() {
    let (namespace, beside) = here();
    let empty = beside.read();
    assert_eq!(suspects(&beside, &empty), []);
    nft(
        &namespace,
        "add table inet f; add counter inet f named; add counter inet f shared; add chain inet f later; add map inet f verdicts { type inet_service : \
         verdict; elements = { 1 : drop } }; add map inet f passing { type inet_service : verdict; elements = { 1 : accept } }; \
         add chain inet f c { type filter hook forward priority 0; policy drop; }; add chain inet f open { type filter hook input priority 0; }; \
         add rule inet f c udp dport 1 counter drop; add rule inet f c counter udp dport 2 drop; add rule inet f c udp dport 3 drop comment \"why\"; \
         add rule inet f c udp dport 4 counter name named reject; add rule inet f c udp dport 5 counter name shared drop; \
         add rule inet f c udp dport 6 counter name shared drop; add rule inet f c udp dport 7 counter accept; \
         add rule inet f c udp dport vmap @verdicts; add rule inet f c udp dport vmap @passing; add rule inet f c jump later; \
         add rule inet f later udp dport 8 counter log prefix x drop",
    );
    // Since before they were there: what a counter says now is the most that it can have counted, and it is 0.
    let found = suspects(&beside, &empty);
    let words: Vec<&str> = found.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(
        words,
        ["policy of c", "udp dport 3 drop comment \"why\"", "udp dport vmap @verdicts"],
        "{found:?}"
    );
    // Nothing came meanwhile: what has a counter cannot have been it.
    let found = suspects(&beside, &beside.read());
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|(_, suspect)| suspect.rise.is_none() && !suspect.exact && !suspect.is_gone));
    let then = beside.read();
    nft(&namespace, "flush ruleset");
    let gone = suspects(&beside, &then);
    assert!(gone.len() >= 8 && gone.iter().all(|(_, suspect)| suspect.is_gone), "{gone:?}");
}

#[test]
fn a_counter_is_exact_where_no_condition_follows_it() {
    let (namespace, beside) = here();
    let make = "add table ip f; add counter ip f named { packets 10 bytes 0 }; add counter ip f shared { packets 10 bytes 0 }; \
                add chain ip f c { type filter hook output priority 0; }; add rule ip f c udp dport 1 counter packets 10 bytes 0 drop; \
                add rule ip f c counter packets 10 bytes 0 udp dport 2 drop; add rule ip f c udp dport 4 counter name named drop; \
                add rule ip f c udp dport 5 counter name shared drop; add rule ip f c udp dport 6 counter name shared drop";
    nft(&namespace, make);
    let then = beside.read();
    // Packets of this namespace's own, which has no other.
    let up = namespace.command("ip").expect("a command").args(["link", "set", "lo", "up"]).status();
    assert!(up.expect("ip").success());
    let sent = namespace.run_in(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for port in [1, 1, 1, 2, 4, 5, 5, 6] {
            // A packet that a rule drops is an error.
            let _ = socket.send_to(b"x", ("127.0.0.1", port));
        }
    });
    sent.expect("entered");
    let found = suspects(&beside, &then);
    let told: Vec<(&str, Option<u64>, bool)> =
        found.iter().map(|(words, suspect)| (words.as_str(), suspect.rise, suspect.exact)).collect();
    assert_eq!(
        told,
        [
            ("udp dport 1 counter drop", Some(3), true),
            ("counter udp dport 2 drop", Some(5), false),
            ("udp dport 4 counter name \"named\" drop", Some(1), true),
            ("udp dport 5 counter name \"shared\" drop", Some(3), false),
            ("udp dport 6 counter name \"shared\" drop", Some(3), false),
        ]
    );
    // The same table once more: its counters are no continuation of the old ones.
    let then = beside.read();
    nft(&namespace, &format!("flush ruleset; {make}"));
    let found = suspects(&beside, &then);
    assert!(found.iter().all(|(_, suspect)| !suspect.exact), "{found:?}");
}

#[test]
fn a_queue_that_dropped_is_told_as_tc_does() {
    let (namespace, beside) = here();
    let said = |line: &str| {
        let mut words = line.split(' ');
        let mut command = namespace.command(words.next().expect("a program")).expect("a command");
        let output = command.args(words).output().expect("it runs");
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).expect("text")
    };
    said("ip link set lo up");
    said("tc qdisc add dev lo root handle 7: tbf rate 100kbit burst 3000 limit 6000");
    let then = beside.read();
    assert_eq!(beside.read().queues(&then, beside.at[0].0), []);
    let sent = namespace.run_in(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        // What the discipline drops is an error, or none.
        (0..50).for_each(|_| drop(socket.send_to(&[0; 1000], ("127.0.0.1", 9))));
    });
    sent.expect("entered");
    let queues = beside.read().queues(&then, beside.at[0].0);
    let told: Vec<_> = queues.iter().map(|(q, n)| (q.kind.as_str(), q.handle(), q.parent(), *n)).collect();
    let by_tc = said("tc -s qdisc show dev lo");
    let dropped =
        by_tc.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next()).expect("tc's count");
    let dropped: u64 = dropped.parse().expect("a number");
    assert!(dropped > 0, "{by_tc}");
    assert!(told.contains(&("tbf", "7:".to_owned(), "root".to_owned(), dropped)), "{told:?}: {by_tc}");
}

#[test]
fn words_of_rules_are_found_by_their_handles() {
    let listed = "table inet f { # handle 3\n\tset s { # handle 2\n\t\ttype ipv4_addr\n\t}\n\n\tchain c { # handle 1\n\t\ttype filter hook forward \
                  priority filter; policy drop;\n\t\tudp dport 1 counter drop # handle 4\n\t\tip saddr { 1.2.3.4, 1.2.3.5 } drop comment \"a # handle \
                  9\" # handle 5\n\t}\n}\ntable ip g { # handle 4\n\tchain d { # handle 1\n\t\tdrop # handle 4\n\t}\n}\nbroken # handle\n";
    let found = rules::words(listed);
    let of = |family: &str, table: &str, handle| {
        found.get(&(family.to_owned(), table.to_owned(), handle)).map(String::as_str)
    };
    assert_eq!(of("inet", "f", 4), Some("udp dport 1 counter drop"));
    assert_eq!(of("inet", "f", 5), Some("ip saddr { 1.2.3.4, 1.2.3.5 } drop comment \"a # handle 9\""));
    assert_eq!(of("ip", "g", 4), Some("drop"));
    assert_eq!(found.len(), 3);
    assert!(rules::words("").is_empty());
}

#[test]
fn backlogs_are_read_with_and_without_the_numbers_of_cpus() {
    let now = "1 5 2 0 0 0 0 0 0 0 0 0 3 0 0\n1 1 9 0 0 0 0 0 0 0 0 0 a\n";
    let then = "1 3 1 0 0 0 0 0 0 0 0 0 3 0 0\n1 1 1 0 0 0 0 0 0 0 0 0 a\n";
    let rises = cores::since(&cores::parse(now), &cores::parse(then));
    assert_eq!(rises, [(3, cores::Core { dropped: 2, time_squeeze: 1 })].into(), "CPU 10 dropped none");
    assert_eq!(cores::parse("1 5 2\nbroken\n1 6 0 0").keys().copied().collect::<Vec<_>>(), [0, 2]);
    // Counters of 32 bits wrap.
    let wrapped = cores::since(&cores::parse("0 1 0"), &cores::parse("0 ffffffff 0"));
    assert_eq!(wrapped[&0].dropped, 2);
}

/// What reading costs (docs/why-lost.md): `cargo test -p netdyno-drops --lib --release -- --ignored --nocapture costs`.
#[test]
#[ignore = "measures: by hand"]
fn what_reading_rules_costs() {
    for count in [10, 1_000, 10_000] {
        let (namespace, beside) = here();
        let rules: String = (0..count).map(|n| format!("udp dport {n} counter drop\n")).collect();
        let text = format!("table inet f {{ chain c {{ type filter hook forward priority 0;\n{rules}}} }}");
        let file = std::env::temp_dir().join(format!("netdyno-rules-{}-{count}.nft", std::process::id()));
        std::fs::write(&file, text).expect("a file");
        nft(&namespace, &format!("include \"{}\"", file.display()));
        std::fs::remove_file(&file).expect("its own");
        let each = (0..7).map(|_| {
            let began = Instant::now();
            let read = beside.read();
            assert!(read.at.values().all(|of| of.rules.is_ok()));
            began.elapsed()
        });
        let mut each: Vec<Duration> = each.collect();
        each.sort();
        println!("{count} rules: median {:?}, {each:?}", each[3]);
    }
}
