use super::*;
use spec::Engine;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[track_caller]
fn plan(line: &str) -> Plan {
    match translate(Tool::Tcpreplay, &words(line)) {
        Ok(Wanted::Replay(plan)) => *plan,
        other => panic!("{line}: {other:?}"),
    }
}

fn settings(line: &str) -> Settings {
    plan(line).settings
}

#[test]
fn the_articles_command_lines_mean_what_they_say() {
    let s = settings("-i ens17 -K --loop 5000 --netmap --mbps 1000 tcp_port_scan_64.pcap");
    assert_eq!((s.interface.as_deref(), s.preload, s.loops), (Some("ens17"), true, Some(5000)));
    assert_eq!(s.pace.rate, Some(Rate::Bits { bits_per_second: 1_000_000_000, layer1: false }));
    assert_eq!(s.files, [PathBuf::from("tcp_port_scan_64.pcap")]);
    let s = settings("-i eth7 -K --mbps 7000 --loop 50 --unique-ip --netmap bigFlows.pcap");
    assert_eq!((s.unique_every, s.loops, s.through.engine), (Some(NonZeroU64::MIN), Some(50), Engine::Auto));
    let s = settings("-i ens17 -K --loop 5000 --mbps 10000 udp_port_scan_1500.pcap");
    assert_eq!((s.unique_every, s.seam, s.best_effort), (None, Seam::Nothing, true));
}

#[test]
fn every_pace_is_understood_and_only_one_taken() {
    for (line, rate) in [
        ("-p 1000", "1000pps"),
        ("--pps=0.5", "0.5pps"),
        ("-M2.5", "2.5mbps"),
        ("-t", "top"),
        ("-M 0", "top"),
        ("--mbps 0.0", "top"),
    ] {
        let pace = settings(&format!("-i a {line} f")).pace;
        let found = pace.rate;
        assert_eq!(found, Some(rate.parse().unwrap()), "{line}");
    }
    let s = settings("-ia -x.5 f");
    assert_eq!((s.speed.unwrap().numerator, s.speed.unwrap().denominator), (5, 10));
    assert_eq!(settings("-i a f").speed, None);
    for line in ["-i a -x 0 f", "--intf1=a --multiplier=0.000000 f"] {
        assert_eq!(settings(line).speed, Some(Speed::ONE), "{line}");
    }
}

#[test]
fn all_else_is_handed_on() {
    let s = settings("-i netmap:a -l0 --loopdelay-ms 20 -p 5 --pps-multi=3 -L 7 --duration 9 --pktlen f g");
    assert_eq!((s.interface.as_deref(), s.loops, s.together.get()), (Some("a"), Some(0), 3));
    assert_eq!((s.pace.count, s.pace.duration), (Some(7), Some(Duration::from_secs(9))));
    assert_eq!((s.pause, s.whole_length, s.files.len()), (Duration::from_millis(20), true, 2));
    let s =
        settings("-w out.pcap --include 1-5,9,72- --maxsleep 50 --unique-ip --unique-ip-loops 2.0 -l 4 f");
    assert_eq!(s.packets, Some(Selection { ranges: vec![1..=5, 9..=9, 72..=u64::MAX], excluded: false }));
    assert_eq!((s.longest_gap, s.unique_every), (Some(Duration::from_millis(50)), NonZeroU64::new(2)));
    assert_eq!(s.write, Some(PathBuf::from("out.pcap")));
    assert!(settings("-i a --exclude 3 f").packets.unwrap().excluded);
    let p = plan("-i a --stats 2 -q --no-flow-stats -P -T nano --sleep-accel 5 --skip-soft-errors --xdp f");
    assert_eq!((p.stats, p.quiet, p.flows, p.pid), (true, true, false, true));
    assert_eq!(p.settings.interim.unwrap().every, Duration::from_secs(2));
    assert_eq!(settings("-i a --yes-disrupt a f").through.yes_disrupt, ["a"]);
}

#[test]
fn what_is_wrong_is_refused_with_what_to_do() {
    for (line, says) in [
        ("f", "--intf1"),
        ("-i a", "which captures"),
        ("-i a -w b f", "--intf1 and --write exclude"),
        ("-i a -x 2 -p 5 f", "--multiplier and --pps exclude"),
        ("-i a -M 5 -t f", "--mbps and --topspeed exclude"),
        ("-i a -p 0 f", "zero"),
        ("-i a -x 1..2 f", "not a speed"),
        ("-i a -p 5k f", "--pps=5k: give a number"),
        ("-i a -M 1e3 f", "--mbps=1e3"),
        ("-i a -l -1 f", "--loop=-1"),
        ("-i a -L 0 f", "--limit=0"),
        ("-i a --duration 0 f", "--duration=0"),
        ("-i a --unique-ip f", "--unique-ip needs --loop"),
        ("-i a --pps-multi 5 f", "--pps-multi needs --pps"),
        ("-i a -l2 --unique-ip --unique-ip-loops 1.5 f", "--unique-ip-loops=1.5"),
        ("-i a -l2 --unique-ip --unique-ip-loops 0 f", "--unique-ip-loops=0"),
        ("-i a --include 5-1 f", "--include=5-1"),
        ("-i a --exclude 0 f", "--exclude=0"),
        ("-i a --include 1 --exclude 2 f", "exclude each other"),
        ("-i a --load-opts nowhere f", "nowhere"),
        ("-i a -l 2 -", "--preload-pcap"),
        ("-i a --timer sundial f", "--timer=sundial"),
        ("-i a -I b f", "--intf2 needs --cachefile or --dualfile"),
        ("-i a -c x f", "--cachefile needs --intf2"),
        ("-i a --dualfile f g", "--dualfile needs --intf2"),
        ("-i a -I b -c x --dualfile f g", "--cachefile and --dualfile exclude"),
        ("-i a -o -p 5 f", "--pps and --oneatatime exclude"),
        ("-i a -A -e f", "--decode needs --verbose"),
        ("-i a --stats 0 -l 2 -", "give a file"),
        ("-i a --loss 100 f", "100%"),
        ("-i a --loss much f", "--loss=much"),
        ("-i a --raw f", "--raw is not supported"),
        ("-i a --nonsense f", "no option --nonsense"),
    ] {
        let error = translate(Tool::Tcpreplay, &words(line)).map(|_| ()).expect_err(line);
        let text = job::in_full(&error);
        assert!(text.contains(says), "{line}: {text}");
    }
}

#[test]
fn every_option_stands_in_the_help_once() {
    let help = help(Tool::Tcpreplay);
    for known in &OPTIONS {
        let name = format!(" --{}", known.spec.name);
        let lines = help.lines().filter(|line| {
            line.split_once(&name).is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '=']))
        });
        assert!(lines.count() >= 1, "{name}");
    }
    let mut names: Vec<_> = OPTIONS.iter().map(|known| known.spec.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), OPTIONS.len());
}
