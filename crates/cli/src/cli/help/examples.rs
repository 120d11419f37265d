//! A table: examples of each verb. Every line stands in the documents, whose commands are typed by a test, too.

/// A command, and what it is for.
#[derive(Debug)]
pub struct Example {
    /// What it does.
    pub says: &'static str,
    /// What is typed; longer ones go on behind a backslash.
    pub line: &'static str,
}

const fn example(says: &'static str, line: &'static str) -> Example {
    Example { says, line }
}

/// The examples of a verb, named by the words it is called by.
pub fn of(path: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(name, _)| *name == path).map_or(&[], |(_, examples)| examples)
}

/// By verb.
pub const EXAMPLES: &[(&str, &[Example])] = &[
    ("demo", &[example("Watch it work", "sudo netdyno demo")]),
    (
        "doctor",
        &[
            example("What this machine and an interface can do", "netdyno lab -- netdyno doctor tx0"),
            example(
                "Which engine is the fastest on an interface, kept for later",
                "sudo netdyno doctor eth1 --calibrate --duration 300ms --measure eth2 \\\n    --save eth1.json",
            ),
        ],
    ),
    (
        "lab",
        &[
            example(
                "Send and measure between two hosts that are gone when it ends",
                "netdyno lab -- netdyno send ipv4/udp --on tx0 --measure rx0 \\\n    --rate 10kpps --duration 2s",
            ),
            example(
                "The same through a device that delays and loses",
                "netdyno lab --impair 'delay 500us loss 1%' -- netdyno send ipv4/udp \\\n    --on tx0 --measure rx0 --rate 2kpps --duration 1s",
            ),
            example(
                "A server on the far host of a lab, and a client here",
                "netdyno lab --server 'netdyno endpoint serve --quiet' -- \\\n    netdyno endpoint tcp-stream 198.18.0.2 --duration 1s",
            ),
            example(
                "Hosts with addresses, for programs of your own",
                "netdyno lab --addresses -- ping -c 2 -i 0.2 198.18.0.2",
            ),
        ],
    ),
    (
        "send",
        &[
            example(
                "Send and measure in a lab of its own, without hardware",
                "netdyno send ipv4/udp --lab --rate 10kpps --count 20k",
            ),
            example(
                "Many flows at a rate, from one host of a lab to the other",
                "netdyno lab -- netdyno send 'ipv4/udp(sport=1024..65535)' --on tx0 \\\n    --rate 10kpps --duration 2s --measure rx0",
            ),
            example(
                "Out of an interface and into another, on a screen of rates, loss, latency",
                "netdyno send 'ipv4/udp' --on eth1 --measure eth2 --rate 10kpps --tui",
            ),
            example(
                "The most that an interface takes, 64-byte frames",
                "netdyno lab -- netdyno send ipv4/udp --size 64 --on tx0 \\\n    --topspeed --duration 1s",
            ),
            example(
                "Of several streams, as a file says them",
                "netdyno send scenario.yaml --on eth1 --duration 2s",
            ),
            example(
                "Of a plugin, out and back through a reflector",
                "netdyno send --plugin simpleudp --set dst_ip=198.18.0.2 --on eth1 \\\n    --rate 10kpps --duration 1s --round-trip",
            ),
        ],
    ),
    (
        "replay",
        &[
            example(
                "A capture at a rate, in a lab of its own, each pass with new flows",
                "netdyno replay small.pcap --lab --rate 200mbps --loop 4 --unique-ip --sign",
            ),
            example(
                "Out of an interface until Ctrl-C, with metrics for Prometheus",
                "netdyno replay small.pcap --on eth1 --rate 100mbps --loop 0 \\\n    --metrics 127.0.0.1:9100",
            ),
            example(
                "Clients' frames out of one interface, servers' out of another",
                "netdyno replay cap.pcap --on eth1 --on2 eth2 --rate 20kpps",
            ),
            example(
                "With other addresses and checksums that are right",
                "netdyno replay smallFlows.pcap --on eth1 --rate 100mbps --loop 2 \\\n    --map-ip 10.0.0.0/8=172.16.0.0/12 --fix-checksums",
            ),
            example(
                "Into a file, with the times that frames would leave at",
                "netdyno replay small.pcap --rate 100M --loop 3 --unique-ip -w longer.pcap",
            ),
        ],
    ),
    (
        "live",
        &[example(
            "Play the client of a capture, and compare the server's answers",
            "sudo netdyno live session.pcap --to 198.18.0.2:80 --on eth1",
        )],
    ),
    (
        "sessions",
        &[
            example(
                "10,000 new connections a second to a server, for five seconds",
                "sudo netdyno sessions --on eth1 --to 10.0.0.2:80 --rate 10kcps --duration 5s",
            ),
            example(
                "From 254 addresses, as fast as it goes",
                "sudo netdyno sessions --on eth1 --to 10.0.0.2:80 \\\n    --clients 10.1.0.0/24 --count 1m",
            ),
            example(
                "UDP sessions: as many tuples, each with a datagram and its answer",
                "sudo netdyno sessions --on eth1 --to 10.0.0.2 \\\n    --application udp --clients 10.1.0.0/24 --count 1m",
            ),
        ],
    ),
    ("sessions serve", &[example("The far end, until Ctrl-C", "sudo netdyno sessions serve --on eth1")]),
    (
        "plugin",
        &[
            example("What there is, and what one takes", "netdyno plugin list; netdyno plugin info gtpu"),
            example("One of your own", "netdyno plugin new mine --rust"),
        ],
    ),
    ("plugin list", &[example("All", "netdyno plugin list")]),
    ("plugin info", &[example("The options of one", "netdyno plugin info simpleudp")]),
    ("plugin new", &[example("In Rust, ready to build", "netdyno plugin new mine --rust")]),
    ("plugin check", &[example("Before it is given to others", "netdyno plugin check mine.wasm")]),
    ("plugin test", &[example("With the frames of each example", "netdyno plugin test mine.wasm")]),
    (
        "craft",
        &[
            example(
                "See a packet, layer by layer",
                "netdyno craft 'ipv4/udp/dns(qname=www.example.org, qtype=AAAA)' --show",
            ),
            example(
                "A capture of many flows, in the Internet's mix of sizes",
                "netdyno craft 'ipv4(src=10.0.0.0/16)/udp(sport=1024..65535, dport=9)' \\\n    --count 10k --size imix -w flows.pcap",
            ),
            example(
                "In Scapy's own spelling",
                "netdyno craft 'Ether()/IP(dst=\"10.0.0.1\")/TCP(dport=(1,1024), flags=\"S\")' \\\n    --count 1024 -w ports.pcap",
            ),
        ],
    ),
    (
        "edit",
        &[
            example(
                "Other addresses and ports",
                "netdyno edit in.pcap -w out.pcap --map-ip 10.0.0.0/8=172.16.0.0/12 \\\n    --map-port 80=8080",
            ),
            example(
                "A VLAN tag more, into a compressed file",
                "netdyno edit in.pcapng.zst -w out.pcap.gz --src-mac 02:00:00:00:00:01 \\\n    --vlan-add 5 --vlan-priority 3",
            ),
            example(
                "Frames that were cut when they were captured, made whole",
                "netdyno edit cut.pcap -w whole.pcap --fix-length pad --fix-checksums",
            ),
        ],
    ),
    ("info", &[example("What a capture holds", "netdyno info small.pcap")]),
    (
        "synth",
        &[
            example("A small one", "netdyno synth --profile smallflows -w small.pcap"),
            example(
                "A look-alike of a capture of yours, with nothing of its contents",
                "netdyno synth --like small.pcap -w look-alike.pcap",
            ),
        ],
    ),
    (
        "trial",
        &[
            example("In a lab of its own", "netdyno trial ipv4/udp --lab --rate 1kpps --duration 500ms"),
            example(
                "Of a device with known faults",
                "netdyno trial --lab --lab-impair 'delay 500us' --rate 2kpps --duration 1s",
            ),
        ],
    ),
    (
        "search",
        &[
            example(
                "The highest rate that a device passes, here a bottleneck of 20 Mbit/s",
                "netdyno search throughput --lab --lab-bottleneck 20M --size 1518 \\\n    --max 40M --min 1M --method bisect --precision 25% --trial-duration 100ms",
            ),
            example("The highest rate of new flows that a probe records", "sudo netdyno search flows --lab"),
            example(
                "The most transactions whose latency stays below a bound",
                "netdyno search transactions server --p99 20ms --max 2ktps \\\n    --trial-duration 200ms",
            ),
        ],
    ),
    (
        "search sessions",
        &[example(
            "Through a device to a server behind it, from 254 addresses",
            "sudo netdyno search sessions --on eth1 --to 10.0.0.2:80 \\\n    --clients 10.1.0.0/24 --max 100kcps",
        )],
    ),
    (
        "search session-capacity",
        &[example(
            "Through a device to a server that keeps connections open",
            "sudo netdyno search session-capacity --on eth1 --to 10.0.0.2:80 \\\n    --clients 10.1.0.0/24 --max 100k --close rst",
        )],
    ),
    (
        "search throughput",
        &[example(
            "Through a bottleneck of 20 Mbit/s in a lab",
            "netdyno search throughput --lab --lab-bottleneck 20M --size 1518 \\\n    --max 40M --min 1M --method bisect --precision 25% --trial-duration 100ms",
        )],
    ),
    (
        "search flows",
        &[
            example("netdyno's own probe, in a lab", "sudo netdyno search flows --lab"),
            example(
                "softflowd, by NetFlow v5",
                "sudo netdyno search flows --lab --probe softflowd --format 5 --report softflowd",
            ),
            example(
                "An exporter on the network",
                "sudo netdyno search flows --on eth1 --collect 0.0.0.0:2055 \\\n    --idle-timeout 15s --cache 1m",
            ),
        ],
    ),
    (
        "search socket-buffer",
        &[example(
            "Two sizes beside the kernel's own tuning",
            "netdyno search socket-buffer server --buffers 4Ki,4Mi --repetitions 1 \\\n    --trial-duration 200ms",
        )],
    ),
    (
        "search transactions",
        &[example(
            "With 99 of 100 answered within 20 ms",
            "netdyno search transactions server --p99 20ms --max 2ktps \\\n    --trial-duration 200ms",
        )],
    ),
    (
        "measure",
        &[
            example("What arrives, as lines of JSON", "netdyno measure --on eth2 --duration 2s --json-lines"),
            example(
                "And captured, for another program",
                "netdyno measure --on rx0 --capture - | tshark -r -",
            ),
        ],
    ),
    (
        "reflect",
        &[
            example("At the far host, until Ctrl-C", "netdyno reflect --on eth1"),
            example(
                "Answers to STAMP test packets, stamped in the kernel",
                "netdyno reflect --on eth2 --stamp",
            ),
        ],
    ),
    (
        "bridge",
        &[
            example("As a cable", "netdyno bridge --between eth1 eth2"),
            example(
                "As a cable that changes addresses",
                "netdyno bridge --between eth1 eth2 --map-ip 10.0.0.0/8=172.16.0.0/12",
            ),
        ],
    ),
    (
        "impair",
        &[example(
            "A path of 10 ms with loss",
            "sudo netdyno impair --between eth1 eth2 --delay 10ms --jitter 1ms --loss 1%",
        )],
    ),
    (
        "endpoint",
        &[
            example("On the server", "netdyno endpoint serve"),
            example("A TCP stream to it", "netdyno endpoint tcp-stream server --duration 1s"),
            example(
                "Both in a lab",
                "netdyno lab --server 'netdyno endpoint serve --quiet' -- \\\n    netdyno endpoint tcp-stream 198.18.0.2 --duration 1s",
            ),
            example(
                "Latency while the path is loaded",
                "netdyno endpoint latency-under-load server --duration 1s",
            ),
            example(
                "Transactions at a rate that does not wait for answers",
                "netdyno endpoint tcp-rr server --rate 2ktps -d 1s",
            ),
            example(
                "The same by the other tools' protocols",
                "netdyno iperf3 -c 192.0.2.1 -t 2 -P 4 -R\nnetdyno netperf -H server -l 1 -t TCP_STREAM -- -s 128k -S 128k -C -D",
            ),
        ],
    ),
    ("endpoint serve", &[example("Until Ctrl-C, on port 12866", "netdyno endpoint serve")]),
    (
        "clone",
        &[
            example(
                "Copy what clients say to port 80",
                "sudo netdyno clone --from eth0:80 --to 10.77.2.2:80",
            ),
            example(
                "Sessions of a capture, ten times as fast",
                "netdyno clone monday.pcap --server 192.0.2.2:80 --to 10.77.2.2:80 --speed 10x",
            ),
            example(
                "What is missing where, before anything is copied",
                "sudo netdyno clone doctor --from eth0:80 --to 10.77.2.2:80 \\\n    --source-prefix 10.99.0.0/16",
            ),
        ],
    ),
    (
        "clone doctor",
        &[example(
            "Each step from the clients to the target",
            "sudo netdyno clone doctor --from eth0:80 --to 10.77.2.2:80 \\\n    --source-prefix 10.99.0.0/16",
        )],
    ),
    (
        "clone capture",
        &[example(
            "On the server's host",
            "sudo netdyno clone capture --from eth0:80 --send-to 192.0.2.1:7117 \\\n    --key clone.key",
        )],
    ),
    ("clone key", &[example("Once; then copied to both hosts", "netdyno clone key clone.key")]),
    (
        "clone return",
        &[example(
            "On the target, first",
            "sudo netdyno clone return --on eth0 --server :80 --engine 10.77.2.1",
        )],
    ),
    (
        "probe",
        &[
            example(
                "Flows of an interface, as IPFIX",
                "sudo netdyno probe --on eth1 --export 192.0.2.10:2055",
            ),
            example(
                "Flows of a capture, as NetFlow v9",
                "netdyno probe capture.pcap.gz --export 192.0.2.10:9995 --format 9",
            ),
        ],
    ),
    (
        "collect",
        &[
            example("Count what comes and what is missing", "netdyno collect --listen 0.0.0.0:2055"),
            example(
                "Into Parquet files, by the hour",
                "netdyno collect --listen 0.0.0.0:2055 --write flows/flows.parquet \\\n    --rotate 5m --rotate-size 128M --partition hour",
            ),
        ],
    ),
    (
        "counters",
        &[
            example("What changed while a command ran", "netdyno counters -- ping -c 2 -i 0.2 127.0.0.1"),
            example(
                "A snapshot, and what changed since",
                "netdyno counters --on eth0 -w before.json\nnetdyno counters before.json after.json",
            ),
            example("What changes, second by second", "netdyno counters --interval 1s"),
        ],
    ),
    (
        "drops",
        &[
            example("While a command ran", "netdyno drops -- ping -c 2 -i 0.2 127.0.0.1"),
            example("Of DNS, for two seconds", "netdyno drops --duration 2s --filter 'udp and port 53'"),
            example("As JSON", "netdyno drops --duration 2s --json"),
        ],
    ),
    ("beforeafter", &[example("Of two listings", "netdyno beforeafter before after")]),
    (
        "run",
        &[
            example(
                "A command kept as a file, and run from it",
                "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1kpps \\\n    --duration 500ms --print-job >job.json; netdyno lab -- netdyno run job.json",
            ),
            example(
                "Again and again, with results for `netdyno trend`",
                "netdyno run job.yaml --every 2s --keep hourly --times 2",
            ),
        ],
    ),
    (
        "agent",
        &[example(
            "What this host is, and what jobs may do",
            r#"printf '%s' '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"client":' \
    '{"name":"shell","version":"1"},"protocol":["netdyno.agent/1"]}}' \
    | netdyno agent --stdio"#,
        )],
    ),
    (
        "serve",
        &[example(
            "At this host alone, with a page at that address",
            "netdyno serve --listen 127.0.0.1:8443",
        )],
    ),
    ("agents", &[example("Those of a file, as JSON", "netdyno agents check --inventory lab.yaml --json")]),
    (
        "agents reach",
        &[example(
            "An agent that has dialled out to a server, looked at through it",
            "netdyno agents check \\\n    --agent lab1='netdyno agents reach lab1 --nats tls://hub --creds me.creds'",
        )],
    ),
    (
        "agents check",
        &[
            example(
                "Two machines, each reached by ssh, before anything is sent",
                "netdyno agents check \\\n    --agent lab1='ssh lab1 netdyno agent --stdio --allow-interface eth1' \\\n    --agent lab2='ssh lab2 netdyno agent --stdio --allow-interface eth2'",
            ),
            example("Those of a file, as JSON", "netdyno agents check --inventory lab.yaml --json"),
        ],
    ),
    (
        "rerun",
        &[example(
            "An earlier result's job, and what differs",
            "netdyno lab -- netdyno rerun monday --report tuesday",
        )],
    ),
    (
        "report",
        &[
            example("What it said then", "netdyno report monday"),
            example(
                "Two figures for a script, a line each",
                "netdyno report monday --get latency_p99 --get loss_ratio",
            ),
            example("All figures: key, value, unit, name, meaning", "netdyno report monday --csv=figures"),
        ],
    ),
    (
        "compare",
        &[
            example("Two results", "netdyno compare before after"),
            example(
                "Repetitions, which tell the noise",
                "netdyno compare before1 before2 before3 --against after1 after2 after3",
            ),
            example("As a page", "netdyno compare before after --report page"),
        ],
    ),
    (
        "trend",
        &[
            example("What changed, and since when", "netdyno trend results"),
            example(
                "In CI: exit status 1 if the newest is worse by 2 % or more",
                "netdyno trend results --check --least 2% --format markdown",
            ),
            example("A page with a plot for each figure", "netdyno trend results --page trend.html"),
        ],
    ),
    ("xdp", &[example("What a program says of each frame", "netdyno xdp test filter.o some.pcap")]),
    (
        "xdp test",
        &[
            example("What a program says of each frame", "netdyno xdp test filter.o some.pcap"),
            example(
                "In CI: exit status 1 if a frame is not dropped",
                "netdyno xdp test filter.o attack.pcap --expect drop",
            ),
            example(
                "The frames as the program leaves them",
                "netdyno xdp test balancer.o some.pcap --write left.pcapng",
            ),
        ],
    ),
    (
        "tcprewrite",
        &[example(
            "Another Ethernet address",
            "netdyno tcprewrite --enet-dmac=00:55:22:AF:C6:37 --infile=smallFlows.pcap \\\n    --outfile=output.pcap",
        )],
    ),
    (
        "iperf3",
        &[
            example("The server", "netdyno iperf3 -s"),
            example("Four streams from it", "netdyno iperf3 -c 192.0.2.1 -t 2 -P 4 -R"),
        ],
    ),
    ("nprobe", &[example("Flows of a capture", "netdyno nprobe -i capture.pcap -n 192.0.2.10:9995")]),
    (
        "softflowd",
        &[example(
            "Flows of a capture",
            "netdyno softflowd -r capture.pcap -n 192.0.2.10:9995 -v 10 -A milli",
        )],
    ),
    (
        "intercept",
        &[example("Not needed any more", "netdyno intercept -i bond0 -F 'tcp and port 80' -l intercept.log")],
    ),
    ("completions", &[example("For bash", "netdyno completions bash >netdyno.bash")]),
    ("man", &[example("Then: man pages/netdyno-send.1", "netdyno man pages")]),
];
