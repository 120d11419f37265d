//! `netdyno tcpprep` and `netdyno tcpcapinfo` beside Debian's tcpprep and tcpcapinfo 4.4.3: the same bytes from the
//! same options and captures, but for what docs/compat.md lists.

use crate::common::*;
use std::fs;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn byte(&mut self) -> u8 {
        self.roll(256) as u8
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// Transports that give roles away, and some that do not.
fn transport(dice: &mut Dice) -> (u8, Vec<u8>) {
    let port = |dice: &mut Dice| dice.pick(&[21, 22, 53, 80, 443, 1023, 1024, 3306, 8080, 40_000, 50_000]);
    let [from, to] = [port(dice), port(dice)].map(u16::to_be_bytes);
    match dice.roll(10) {
        0..5 => {
            let mut header = vec![0; 20];
            header[..2].copy_from_slice(&from);
            header[2..4].copy_from_slice(&to);
            (header[12], header[13]) = (0x50, dice.pick(&[0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0xc2, 0x52]));
            (6, header)
        }
        5..8 => {
            let mut datagram = [from, to, [0, 20], [0, 0]].concat();
            datagram.extend((0..12).map(|_| dice.byte()));
            (17, datagram)
        }
        8 => (1, vec![dice.pick(&[0, 3, 8, 11]), dice.pick(&[0, 1, 3]), 0, 0, 0, 0, 0, 0]),
        _ => (dice.pick(&[2, 47, 50, 89, 132]), (0..16).map(|_| dice.byte()).collect()),
    }
}

/// Frames of all kinds that tcpprep survives: tags, labels, fragments, IPv6, ARP, spanning tree and others.
fn zoo(seed: u64, count: usize, v6: bool) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut file = pcap_header(1);
    for number in 0..count {
        let mut frame = vec![2, 0, 0, 0, 0, dice.byte(), 2, 0, 0, 0, 0, dice.roll(6) as u8];
        match dice.roll(8) {
            0 => frame.extend([0x81, 0, 0, 7]),
            1 => frame.extend([0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]),
            _ => {}
        }
        let labels: &[u8] = if dice.roll(16) == 0 { &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64] } else { &[] };
        let hosts = [dice.byte() % 12, dice.byte() % 12];
        let (protocol, payload) = transport(&mut dice);
        match dice.roll(12) {
            0 => {
                frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
                frame.extend([0; 20]);
            }
            1 => frame.extend([0x88, 0xcc, 2, 7, 4, 0, 0, 0, 0, 0, 0]),
            2..5 if v6 => {
                frame.extend_from_slice(if labels.is_empty() { &[0x86, 0xdd] } else { labels });
                frame.extend([
                    0x60,
                    0,
                    0,
                    0,
                    0,
                    payload.len() as u8,
                    if protocol == 1 { 58 } else { protocol },
                    64,
                ]);
                for host in hosts {
                    frame.extend([0x20, 1, 0x0d, 0xb8, host % 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
                }
                frame.extend(&payload);
            }
            _ => {
                frame.extend_from_slice(if labels.is_empty() { &[8, 0] } else { labels });
                let options = if dice.roll(8) == 0 { 4 } else { 0 };
                let fragment = dice.pick(&[[0, 0], [0x40, 0], [0, 0], [0x20, 0], [0x20, 5]]);
                frame.extend([0x45 + options as u8 / 4, 0, 0, (20 + options + payload.len()) as u8, 0, 0]);
                frame.extend(fragment);
                frame.extend([64, protocol, 0, 0]);
                for host in hosts {
                    frame.extend([10 + host % 3, 1, 2, host]);
                }
                frame.extend(&[1, 1, 1, 0][..options]);
                frame.extend(&payload);
            }
        }
        // As long as Ethernet frames are.
        frame.resize(frame.len().max(60), 0);
        file.extend(pcap_record(1000 + number as u32, 7, frame.len() as u32, &frame));
    }
    file
}

/// A folder with captures: of a network as it is, of all kinds of frames, and without IPv6.
fn captures() -> (Folder, [String; 3]) {
    let dir = folder();
    let files = ["small.pcap", "zoo.pcap", "four.pcap"].map(|name| path(&dir, name));
    run(format!("netdyno synth --profile smallflows -w {}", files[0])).ok();
    fs::write(&files[1], zoo(1, 3001, true)).expect("written");
    fs::write(&files[2], zoo(2, 2002, false)).expect("written");
    (dir, files)
}

/// The cache that a program makes, with the same words in its comment.
#[track_caller]
fn cache(program: &str, words: &str, capture: &str, dir: &Folder) -> Vec<u8> {
    let file = path(dir, "cache");
    run(format!("{program} -i {capture} -o {file} {words}")).ok();
    let bytes = fs::read(&file).expect("a cache");
    fs::remove_file(file).expect("removed");
    bytes
}

#[test]
fn caches_are_tcppreps_byte_for_byte() {
    let (dir, captures) = captures();
    let services = path(&dir, "services");
    fs::write(&services, "a 8080/tcp\nb 50000/udp # 443/tcp\nc 3306/tcp x\n# 40000/tcp\n").expect("written");
    let mut compared = 0;
    for capture in &captures {
        for mode in [
            "-c 10.0.0.0/8",
            "--cidr=10.1.0.0/15,12.1.2.0/29,[2001:db8::/34]",
            "--cidr [2001:db8:100::/40]",
            "-c 0.0.0.0/0",
            "-c 11.1.2.4",
            "-e 02:00:00:00:00:03,02:00:00:00:00:05",
            "--mac=02:00:00:00:00:01",
            "-p",
            &format!("-p -s {services}"),
            "-r ^1[02][.]",
            "--regex=(:3|:7|2\\.9)$",
            "-r [[:digit:]]+\\.1\\.2\\.1.?$",
        ] {
            for more in [
                "",
                "--reverse",
                "-N",
                "--nonip --reverse --no-arg-comment",
                "-x P:1-5,9,20-900",
                "-X P:2,30-40",
            ] {
                let words = format!("{mode} {more}");
                let [ours, theirs] = ["netdyno tcpprep", "tcpprep"].map(|p| cache(p, &words, capture, &dir));
                assert!(ours == theirs, "{words} of {capture}");
                compared += 1;
            }
        }
        for rule in
            ["S:10.0.0.0/8", "D:11.1.2.0/30", "B:10.0.0.0/8,11.0.0.0/8", "E:12.1.2.3,[2001:db8:100::/40]"]
        {
            for words in [format!("-p -x {rule}"), format!("-c 10.1.2.0/29 -N -X {rule}")] {
                let [ours, theirs] = ["netdyno tcpprep", "tcpprep"].map(|p| cache(p, &words, capture, &dir));
                assert!(ours == theirs, "{words} of {capture}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 3 * (12 * 6 + 8));
}

#[test]
fn automatic_caches_are_tcppreps_byte_for_byte_where_there_is_no_ipv6() {
    let (dir, [small, zoo, four]) = captures();
    for mode in ["bridge", "client", "server", "first"] {
        for more in ["", "-N", "-R 1", "--ratio=0.5", "-R 7.5 --nonip", "-R 0", "-m 24 -M 16"] {
            let words = format!("--auto={mode} {more}");
            for capture in [&small, &four] {
                let [ours, theirs] = ["netdyno tcpprep", "tcpprep"].map(|p| cache(p, &words, capture, &dir));
                assert!(ours == theirs, "{words} of {capture}");
            }
            // With IPv6, if asked to make tcpprep's mistake; the option must not be in the comment then.
            let words = format!("--no-arg-comment {words}");
            let ours = cache("netdyno tcpprep", &format!("{words} --one-ipv6-host"), &zoo, &dir);
            assert!(ours == cache("tcpprep", &words, &zoo, &dir), "{words} of {zoo}");
        }
    }
    // Of the router mode, tcpprep gives up on captures whose lowest address is a client's.
    let mut compared = 0;
    for seed in 1..30 {
        fs::write(&four, self::zoo(seed, 200, false)).expect("written");
        let file = path(&dir, "theirs");
        let theirs = run(format!("tcpprep --no-arg-comment -a router -R 0.5 -i {four} -o {file}"));
        let ours = cache("netdyno tcpprep", "--no-arg-comment -a router -R 0.5", &four, &dir);
        if theirs.status == 0 {
            assert!(ours == fs::read(&file).expect("a cache"), "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > 3, "tcpprep gave up on nearly all: {compared} compared");
}

#[test]
fn the_comment_is_tcppreps_too() {
    let (dir, [capture, ..]) = captures();
    let file = path(&dir, "cache");
    let made = |program: &str, words: &[&str]| {
        let mut command = command(program);
        command.args(words);
        start(command).wait().ok();
        fs::read(&file).expect("a cache")
    };
    for words in [
        &["-C", "two words", "-i", &capture, "-o", &file, "-p"][..],
        &["-p", "-i", &capture, "-o", &file, "-C", "last"],
        &["--comment=a b", "-p", "-i", &capture, "-o", &file],
        &["-Cattached", "-p", "-i", &capture, "-o", &file, "--no-arg-comment"],
        &["-p", "--pcap", &capture, "--cachefile", &file],
        &["--port", "--pca", &capture, "--cache", &file, "--comm", &"long ".repeat(900)],
        &["-r", &"x|".repeat(900), "-i", &capture, "-o", &file, "-C", "behind a long one"],
    ] {
        assert!(made("netdyno tcpprep", words) == made("tcpprep", words), "{words:?}");
    }
    for show in ["-P", "-I", "-S", "--print-comment", "--print-info", "--print-stats"] {
        let [ours, theirs] =
            ["netdyno tcpprep", "tcpprep"].map(|p| run(format!("{p} {show} {file}")).ok().stdout);
        assert_eq!(ours, theirs, "{show}");
    }
}

#[test]
fn options_are_read_from_a_file() {
    let (dir, [capture, ..]) = captures();
    let (config, file) = (path(&dir, "config"), path(&dir, "cache"));
    let text = format!(
        "[TCPREPLAY]\ntopspeed\n[TCPPREP]\npcap  {capture}\nauto  client\nnonip\ncomment \"from a file\"\n"
    );
    fs::write(&config, text).expect("written");
    let made = ["netdyno tcpprep", "tcpprep"].map(|program| {
        run(format!("{program} --load-opts={config} --no-arg-comment -o {file}")).ok();
        fs::read(&file).expect("a cache")
    });
    assert!(made[0] == made[1]);
    fs::write(&config, "[TCPPREP]\n\nbogus 1\n").expect("written");
    run(format!("netdyno tcpprep --load-opts={config} -o {file}")).refused(&["config", "line 3", "bogus"]);
}

#[test]
fn what_is_left_out_in_automatic_modes_keeps_its_place() {
    // tcpprep enters such packets twice, so that its cache fits no capture.
    let (dir, [_, _, capture]) = captures();
    let file = path(&dir, "cache");
    run(format!("netdyno tcpprep -a bridge -X P:1-10,2000- -i {capture} -o {file}")).ok();
    let listed = run(format!("netdyno tcpprep -I {file}")).ok().stdout;
    let skipped: Vec<usize> =
        listed.lines().zip(1..).filter(|(line, _)| line.ends_with("Don't Send")).map(|(_, n)| n).collect();
    assert_eq!(skipped, (1..=10).chain(2000..=2002).collect::<Vec<_>>());
    assert_eq!(listed.lines().count(), 2002);
    let size = fs::metadata(&file).expect("a cache").len();
    run(format!("tcpprep -a bridge -X P:1-10,2000-2002 -i {capture} -o {file}")).ok();
    let theirs = fs::metadata(&file).expect("a cache").len();
    assert!(theirs > size, "tcpprep 4.4.3 no longer has the defect: {theirs} bytes to {size}");
}

#[test]
fn ipv6_hosts_are_told_apart() {
    let dir = folder();
    let (capture, file) = (path(&dir, "six.pcap"), path(&dir, "cache"));
    let mut bytes = pcap_header(1);
    for (from, to, flags) in [(1, 9, 0x02), (9, 1, 0x12), (2, 9, 0x02), (9, 2, 0x12), (1, 9, 0x10)] {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64];
        for host in [from, to] {
            frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        frame.extend([4, 210, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(pcap_record(1, 0, frame.len() as u32, &frame));
    }
    fs::write(&capture, bytes).expect("written");
    for mode in ["bridge", "client", "server", "router", "first"] {
        run(format!("netdyno tcpprep -a {mode} -i {capture} -o {file}")).ok();
        let listed = run(format!("netdyno tcpprep -I {file}")).ok().stdout;
        let primary: Vec<bool> = listed.lines().map(|line| line.ends_with("Primary")).collect();
        assert_eq!(primary, [true, false, true, false, true], "{mode}");
    }
}

#[test]
fn packed_captures_pcapng_and_pipes_give_the_same_cache() {
    let (dir, [capture, ..]) = captures();
    let (packed, ng) = (path(&dir, "packed.pcap.gz"), path(&dir, "same.pcapng"));
    run(format!("netdyno replay {capture} --write {packed} --speed 1x")).ok();
    run(format!("editcap -F pcapng {capture} {ng}")).ok();
    let words = "--no-arg-comment -a first";
    let plain = cache("netdyno tcpprep", words, &capture, &dir);
    for other in [&packed, &ng] {
        assert!(cache("netdyno tcpprep", words, other, &dir) == plain, "{other}");
    }
    let file = path(&dir, "cache");
    let line = format!("cat {capture} | {} tcpprep {words} -i - -o {file}", env!("CARGO_BIN_EXE_netdyno"));
    let mut shell = command("sh");
    start({
        shell.args(["-c", &line]);
        shell
    })
    .wait()
    .ok();
    assert!(fs::read(&file).expect("a cache") == plain);
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_no_file() {
    let (dir, [_, _, capture]) = captures();
    let (file, empty, cut) = (path(&dir, "cache"), path(&dir, "empty.pcap"), path(&dir, "cut.pcap"));
    let bytes = fs::read(&capture).expect("a capture");
    fs::write(&empty, &bytes[..24]).expect("written");
    fs::write(&cut, &bytes[..bytes.len() - 5]).expect("written");
    let both = format!("-i {capture} -o {file}");
    for (words, says) in [
        ("-p".to_owned(), &["-i CAPTURE and -o CACHE"][..]),
        (both.clone(), &["say how packets are distinguished"]),
        (format!("{both} -p -a bridge"), &["--auto and --port exclude each other"]),
        (format!("{both} -a bogus"), &["bridge, router, client"]),
        (format!("{both} -c 10.0.0.0/40"), &["10.0.0.0/40", "not a network"]),
        (format!("{both} -e 1:2:3"), &["1:2:3", "not an Ethernet address"]),
        (format!("{both} -r ("), &["not a regular expression"]),
        (format!("{both} -p -x F:tcp"), &["BPF", "tcpdump -r"]),
        (format!("{both} -p -x P:1--2"), &["not a packet number"]),
        (format!("{both} -p -x P:1 -X P:2"), &["exclude each other"]),
        (format!("{both} -p -R 3"), &["--ratio belongs to --auto"]),
        (format!("{both} -a bridge -R -1"), &["--ratio=-1"]),
        (format!("{both} -a bridge -m 8 -M 8"), &["--minmask=8 must be greater"]),
        (format!("{both} -p -A -xx"), &["--decode belongs to --verbose"]),
        (format!("{both} -p -s {empty}"), &["names no service"]),
        (format!("-i {empty} -o {file} -p"), &["holds no packets"]),
        (format!("-i {cut} -o {file} -p"), &["record 2002"]),
        (format!("-S {capture}"), &["not a cache file of tcpprep"]),
        (format!("-P {empty}.not"), &["No such file"]),
    ] {
        run(format!("netdyno tcpprep {words}")).refused(says);
        assert!(!fs::exists(&file).expect("known"), "{words}");
    }
    run(format!("netdyno tcpprep -p --skip-corrupt -i {cut} -o {file}"))
        .with(1)
        .says(&["as far as it is sound"]);
    assert!(run(format!("netdyno tcpprep -S {file}")).ok().stdout.contains("Total packets:\t\t2001\n"));
}

#[test]
fn a_link_with_their_names_is_them() {
    let (dir, [capture, ..]) = captures();
    let link = path(&dir, "tcpcapinfo");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_netdyno"), &link).expect("a link");
    let [ours, theirs] = [link.as_str(), "tcpcapinfo"].map(|p| run(format!("{p} {capture}")).ok().stdout);
    assert_eq!(ours, theirs);
}

/// A capture of three records in any of the classic formats.
fn classic(magic: u32, big_endian: bool, times: [(u32, u32); 3], lengths: [usize; 3]) -> Vec<u8> {
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file: Vec<u8> = word(magic).into();
    let version = if big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    file.extend(version);
    file.extend([0, 0, 65_535, 1].map(word).as_flattened());
    let mut dice = Dice(9);
    for ((seconds, fraction), length) in times.into_iter().zip(lengths) {
        file.extend([seconds, fraction, length as u32, length as u32 + 3].map(word).as_flattened());
        if magic == 0xa1b2_cd34 {
            file.extend(word(4));
            file.extend(if big_endian { [8, 0] } else { [0, 8] });
            file.extend([1, 0]);
        }
        file.extend((0..length).map(|_| dice.byte()));
    }
    file
}

#[test]
fn records_are_listed_as_tcpcapinfo_lists_them() {
    let (dir, captures) = captures();
    let file = path(&dir, "classic.pcap");
    let same = |what: &str, files: &str| {
        let [ours, theirs] = ["netdyno tcpcapinfo", "tcpcapinfo"].map(|p| run(format!("{p} {files}")).stdout);
        assert!(theirs.contains("file size"), "{theirs}");
        assert_eq!(ours, theirs, "{what}");
    };
    same("several", &captures.join(" "));
    let (forth, back) = ([(1, 2), (1, 3), (2, 1)], [(5, 2), (5, 1), (4, 9)]);
    for magic in [0xa1b2_c3d4, 0xa1b2_34cd, 0xa12b_3c4d, 0xa1b2_3c4d] {
        for big_endian in [false, true] {
            for times in [forth, back] {
                fs::write(&file, classic(magic, big_endian, times, [60, 1, 65_535])).expect("written");
                same(&format!("{magic:x} {big_endian} {times:?}"), &file);
            }
        }
    }
    // tcpcapinfo takes every record of this format but the first for older than the one before: so times of zero.
    for big_endian in [false, true] {
        fs::write(&file, classic(0xa1b2_cd34, big_endian, [(0, 0); 3], [60, 1, 7])).expect("written");
        same("Kuznetzov", &file);
    }
    let whole = classic(0xa1b2_c3d4, false, forth, [60, 1, 99]);
    for end in [whole.len() - 1, whole.len() - 99, whole.len() - 110, 24] {
        fs::write(&file, &whole[..end]).expect("written");
        same(&format!("{end} bytes"), &file);
    }
}

#[test]
fn damage_is_listed_and_told_by_the_status() {
    let dir = folder();
    let file = path(&dir, "classic.pcap");
    let sound = classic(0xa1b2_c3d4, false, [(1, 2); 3], [60, 1, 9]);
    fs::write(&file, &sound).expect("written");
    run(format!("netdyno tcpcapinfo {file}")).ok();
    let mut big = sound.clone();
    // A snap length below the first record.
    big[16..20].copy_from_slice(&59u32.to_le_bytes());
    fs::write(&file, &big).expect("written");
    let listed = run(format!("netdyno tcpcapinfo {file}")).with(1).stdout;
    assert!(listed.contains("TOOBIG") && listed.contains("size 60, bigger than snap length 59"), "{listed}");
    fs::write(&file, &sound[..sound.len() - 1]).expect("written");
    assert!(run(format!("netdyno tcpcapinfo {file}")).with(1).stdout.contains("File truncated!"));
    // Older records are older in this format, too.
    fs::write(&file, classic(0xa1b2_cd34, true, [(1, 1), (2, 2), (1, 1)], [60, 1, 9])).expect("written");
    let listed = run(format!("netdyno tcpcapinfo {file}")).ok().stdout;
    let notes: Vec<&str> =
        listed.lines().rev().take(3).map(|line| line.rsplit('\t').next().expect("a note")).collect();
    assert_eq!(notes, ["BAD_TS", "OK", "OK"], "{listed}");
    fs::write(&file, b"\x0a\x0d\x0d\x0a0123456789012345678901234567890").expect("written");
    run(format!("netdyno tcpcapinfo {file}")).with(2).says(&["not a classic pcap file", "netdyno info"]);
    run("netdyno tcpcapinfo").refused(&["which files?"]);
}
