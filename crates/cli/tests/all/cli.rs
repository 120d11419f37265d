//! The command line itself: help, completions, man pages, and words it does not know.

use crate::common::*;

const VERBS: [&str; 18] = [
    "demo",
    "send",
    "craft",
    "plugin",
    "replay",
    "measure",
    "reflect",
    "info",
    "synth",
    "lab",
    "doctor",
    "report",
    "run",
    "rerun",
    "completions",
    "man",
    "probe",
    "collect",
];

#[test]
fn every_verb_has_help() {
    let general = run("netdyno --help").ok().stdout;
    for verb in VERBS {
        assert!(general.contains(&format!("\n  {verb} ")), "{verb} is not in:\n{general}");
        let help = run(format!("netdyno {verb} --help")).ok();
        assert!(help.stdout.contains(&format!("Usage: netdyno {verb}")), "{}", help.stdout);
        assert!(help.stdout.contains("Examples:") && help.stdout.contains("xit status"), "{}", help.stdout);
        assert_eq!(run(format!("netdyno help {verb}")).ok().stdout, help.stdout);
        assert_eq!(help.stderr, "");
    }
}

#[test]
fn every_verb_has_a_man_page_that_man_can_read() {
    let dir = folder();
    run(format!("netdyno man {}", path(&dir, "man"))).ok();
    let pages = listing(dir.path().join("man"));
    for verb in VERBS {
        assert!(pages.contains(&format!("netdyno-{verb}.1")), "{verb} is not in {pages:?}");
    }
    for page in pages {
        let text = std::fs::read_to_string(dir.path().join("man").join(&page)).expect("a page");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH \"SEE ALSO\""] {
            assert!(text.contains(section), "{page}: no {section} in {text}");
        }
    }
    for verb in VERBS {
        let mut man = command(format!("man -P cat {}", path(&dir, &format!("man/netdyno-{verb}.1"))));
        man.env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
        let ran = start(man).wait().ok();
        assert_eq!(ran.stderr, "", "{verb}");
        for section in ["NAME", "SYNOPSIS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"] {
            assert!(
                ran.stdout.lines().any(|line| line == section),
                "{verb}: no {section} in\n{}",
                ran.stdout
            );
        }
    }
}

#[test]
fn completions_know_every_verb_and_bash_takes_them() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(format!("netdyno completions {shell}")).ok().stdout;
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    let dir = folder();
    let file = path(&dir, "netdyno.bash");
    std::fs::write(&file, run("netdyno completions bash").ok().stdout).expect("a file");
    let mut bash = command("bash -c");
    bash.arg(format!("source {file}; COMP_WORDS=(netdyno rep); COMP_CWORD=1; COMP_LINE='netdyno rep'; COMP_POINT=11; _netdyno_or_plugins netdyno rep netdyno; echo ${{COMPREPLY[@]}}"));
    assert_eq!(start(bash).wait().ok().stdout.trim(), "replay report");
}

#[test]
fn shells_complete_plugins_and_their_options() {
    let dir = folder();
    let netdyno = std::path::Path::new(env!("CARGO_BIN_EXE_netdyno")).parent().expect("a folder").display();
    let script = |shell: &str| {
        let file = path(&dir, shell);
        std::fs::write(&file, run(format!("netdyno completions {shell}")).ok().stdout).expect("a file");
        format!("PATH={netdyno}:$PATH; source {file}")
    };
    let told = |shell: &str, code: String| {
        let mut command = command(format!("{shell} -c"));
        command.arg(code);
        let ran = start(command).wait().ok();
        ran.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // As readline parts words: at `=`, too.
    let bash = |line: &str| {
        let words = line.replace('=', " = ");
        let code = format!(
            "{}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _netdyno_or_plugins netdyno \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo ${{COMPREPLY[@]}}",
            script("bash")
        );
        told("bash", code)
    };
    assert_eq!(bash("netdyno send --plugin gt"), ["gtpu"]);
    assert_eq!(bash("netdyno craft --plugin=simpleu"), ["simpleudp"]);
    assert_eq!(bash("netdyno send --plugin simpleudp --set dst_i"), ["dst_ip="]);
    assert_eq!(bash("netdyno send --plugin simpleudp --rate"), ["--rate"]);
    assert!(bash("netdyno plugin info ").contains(&"dns".to_owned()));
    assert!(!bash("netdyno info ").contains(&"dns".to_owned()), "that is of captures");
    assert_eq!(bash("netdyno send ipv4/udp --on l"), ["lo"]);
    assert_eq!(bash("netdyno measure --on=l"), ["lo"]);
    assert!(bash("netdyno send ipv4/udp --get latency_p").contains(&"latency_p99".to_owned()));
    let fish = |line: &str| {
        told(
            "fish",
            format!(
                "set {}; complete -C '{line}'",
                script("fish").replacen('=', " ", 1).replace(":$PATH", " $PATH")
            ),
        )
    };
    assert_eq!(fish("netdyno send --plugin gt"), ["gtpu"]);
    assert_eq!(fish("netdyno send --plugin simpleudp --set dst_i"), ["dst_ip="]);
    assert_eq!(fish("netdyno send ipv4/udp --on l"), ["lo"]);
    assert!(fish("netdyno send ipv4/udp --get latency_p9").contains(&"latency_p99".to_owned()));
    // zsh: what completes on its terminal is beyond a test; that it takes the script, and what ours yield, is not.
    let zsh = |code: &str| {
        told(
            "zsh -f",
            format!(
                "autoload -U compinit; compinit -u -d {}; {}; compadd() {{ print -l -- ${{(P)@[-1]}} }}; {code}",
                path(&dir, "dump"),
                script("zsh")
            ),
        )
    };
    assert!(zsh("_alternative() { compadd -a names }; _netdyno_plugins").contains(&"gtpu".to_owned()));
    assert!(zsh("_netdyno_interfaces").contains(&"lo".to_owned()));
    let script = run("netdyno completions zsh").ok().stdout;
    assert!(
        script.contains(":IFACE:_netdyno_interfaces'") && !script.contains(":IFACE:_default'"),
        "{script}"
    );
    assert!(
        zsh("words=(netdyno send --plugin simpleudp --set x); CURRENT=6; _netdyno_settings")
            .contains(&"dst_ip=".to_owned())
    );
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(run("netdyno --version").ok().stdout.trim(), format!("netdyno {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_not_understood_exits_with_2_and_says_what_is_possible() {
    run("netdyno").with(2).says(&["Usage: netdyno"]);
    run("netdyno repaly x").with(2).says(&["repaly", "replay"]);
    run("netdyno replay").with(2).says(&["<FILE>"]);
    run("netdyno replay x --rate 1mpps --topspeed --on lo").with(2).says(&["cannot be used with"]);
    run("netdyno send ipv4/udp --rate fast --on lo").with(2).says(&["`fast` is not a rate", "1.6mpps"]);
    run("netdyno send ipv4/udp --rate 1kpps --duration 5 --on lo").with(2).says(&["--duration", "5s"]);
    run("netdyno replay x --speed 0x --on lo").with(2).says(&["--speed"]);
}

#[test]
fn output_into_a_closed_pipe_is_no_error() {
    let mut shell = command("bash -c");
    shell.arg(format!(
        "set -o pipefail; {} craft ipv4/udp --count 1000 --show | head -n 1",
        env!("CARGO_BIN_EXE_netdyno")
    ));
    let ran = start(shell).wait().ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Frame 0, 42 bytes without FCS\n", ""));
}

#[test]
fn doctor_speaks_of_the_machine_and_of_an_interface() {
    let net = Net::new();
    let machine = net.run("netdyno doctor --json").ok().json();
    assert!(machine.is_object());
    let text = net.run("netdyno doctor tx0").ok().stdout;
    for words in ["tx0", "veth", "MTU", "XDP"] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    net.run("netdyno doctor tx1").refused(&["'tx1' (did you mean 'tx0'?)"]);
}

#[test]
fn a_word_that_has_no_place_is_answered_with_the_line_that_has_one() {
    let dir = folder();
    let capture = path(&dir, "a.pcap");
    run(format!("netdyno craft ipv4/udp --count 1 --write {capture}")).ok();
    for (line, said) in [
        // What clap refuses, and what is found wrong only when it is to be opened.
        ("send vx0 1000".to_owned(), "netdyno send ipv4/udp --on vx0 --count 1000 --rate 1kpps".to_owned()),
        (
            "send --dst 10.0.0.1 --dport 80".to_owned(),
            "netdyno send 'ipv4(dst=10.0.0.1)/udp(dport=80)' --on IFACE --resolve --rate 1kpps".to_owned(),
        ),
        (
            "send 10.0.0.1:80".to_owned(),
            "no packet, which has addresses as fields: netdyno send 'ipv4(dst=10.0.0.1)/udp(dport=80)'"
                .to_owned(),
        ),
        ("send lo".to_owned(), "lo is an interface, no packet: netdyno send ipv4/udp --on lo".to_owned()),
        (
            format!("probe {capture} 127.0.0.1:9"),
            format!(
                "there is no file 127.0.0.1:9; it is written so: netdyno probe {capture} --export 127.0.0.1:9"
            ),
        ),
        (
            format!("replay {capture} 100mbps --on lo"),
            format!(
                "there is no file 100mbps; it is written so: netdyno replay {capture} --rate 100mbps --on lo"
            ),
        ),
        (
            "info lo".to_owned(),
            "lo is an interface, and there is no file of that name: netdyno doctor lo".to_owned(),
        ),
        ("drops nosuch1".to_owned(), "the interface is an option: netdyno drops --on nosuch1".to_owned()),
        ("drops -- nosuch1".to_owned(), "there is no command nosuch1; an interface is --on IFACE".to_owned()),
        (
            "counters -- nosuch1".to_owned(),
            "there is no command nosuch1; an interface is --on IFACE".to_owned(),
        ),
        ("counters lo".to_owned(), "an interface is an option: netdyno counters --on lo".to_owned()),
        ("lab nosuch1".to_owned(), "there is no command nosuch1: such as netdyno lab -- bash".to_owned()),
        ("lab -- nosuch1".to_owned(), "nosuch1".to_owned()),
    ] {
        let ran = run(format!("netdyno {line}")).with(2);
        let told = unfolded(&ran.stderr);
        assert!(told.contains(&said), "{line}: {told}");
        assert_eq!(ran.stdout, "", "{line}");
    }
}

#[test]
fn a_figure_of_a_frame_size_that_is_not_tested_is_refused_before_the_run() {
    for (line, there) in [
        ("search throughput --lab --get throughput:1518", "64 bytes"),
        ("search latency --lab --size 64,512 --get typical_latency:1518", "64 bytes, 512 bytes"),
        ("trial --lab --rate 1kpps --size 128,256 --get trial_loss_ratio:64", "128 bytes, 256 bytes"),
    ] {
        let told = unfolded(&run(format!("netdyno {line}")).refused(&["--get: no `"]).stderr);
        assert!(told.ends_with(&format!("the frame sizes are {there} (--size)")), "{line}: {told}");
    }
}
