//! Parts that several kinds of jobs have: their settings are declared here once. Where a struct of settings has a member
//! `#[part] pace: pace!()`, those of the part `pace` stand in its place, so that in a file they are members beside the others.

/// Declares parts: each becomes a macro that `#[settings]` hands the struct to.
macro_rules! parts {
    (($d:tt) $($(#[doc = $about:literal])+ $name:ident { $($members:tt)* })+) => {$(
        $(#[doc = $about])+
        macro_rules! $name {
            ([$d($d head:tt)*] [$d($d before:tt)*] [$d($d after:tt)*]) => {
                $d($d head)* { $d($d before)* $($members)* $d($d after)* }
            };
        }

        pub(crate) use $name;
    )+};
}

parts! { ($)
    /// How fast, for how long.
    pace {
        /// Frames per second (1.6mpps), bits per second of frames without FCS (7gbps) or on the wire (7gbps-l1),
        /// percent of the link's speed (40%), new flows per second (100kfps), or `top`.
        #[setting(
            value = "RATE",
            heading = "Rate",
            brief = "10kpps, 500mbps, 40% (of the link), 100kfps (new flows), top",
            shorthand(option = "topspeed", means = "top", text = "As fast as it goes.")
        )]
        pub rate: Option<crate::Written<traffic::Rate>>,
        /// Send for this long: 5s, 200ms, 1m30s.
        #[setting(value = "TIME", heading = "Rate")]
        pub duration: Option<crate::Written<std::time::Duration>>,
        /// Send this many frames: 1000, 10k, 2.5M.
        #[setting(value = "FRAMES", heading = "Rate")]
        pub count: Option<crate::Written<u64>>,
        /// After a stall, catch up at no more than this many times the rate asked for, over any millisecond; `never`: not at all, as
        /// trials. Default: what is overdue leaves in bursts of at most 32 frames, with at most half of what the link carries over any
        /// millisecond (500 Mbit/s where its speed is not known), or twice the rate, whichever is more.
        #[setting(value = "TIMES", other_word = "never=1", expert)]
        pub catch_up: Option<f64>,
        /// Never sleep while waiting for a frame's time: the most exact, and costs a whole core at any rate.
        #[setting(expert)]
        pub spin: bool,
    }

    /// Before whom it goes.
    priority {
        /// Send like any other program. Default: what has times is sent before all ordinary tasks of this machine (SCHED_FIFO; where that
        /// is not permitted, by the nicest value that is): in trials from the start, else as soon as others hold up the sender.
        #[setting(expert)]
        pub no_real_time: bool,
    }

    /// The rest of the tag of a VLAN, whose number is a setting beside them.
    tag {
        /// The tag's priority (PCP).
        #[setting(value = "0-7", needs("vlan"), most = 7)]
        pub vlan_priority: Option<u8>,
        /// The tag's drop eligible indicator (DEI).
        #[setting(value = "0|1", needs("vlan"), most = 1)]
        pub vlan_dei: Option<u8>,
    }

    /// Through what.
    through {
        /// How frames leave: xdp (made in the kernel, as XDP live frames), afxdp (AF_XDP sockets, one of the interface's
        /// queues for each core; without copying where the driver can), packet (a packet socket with sendmmsg), packet-ring
        /// (PACKET_TX_RING, to compare), null (nowhere, to see what making them costs), or auto: the fastest that the
        /// interface, the kernel and the frames allow.
        #[setting(
            value = "ENGINE",
            default = "auto",
            heading = "Rate",
            brief = "How frames leave: the fastest that is possible here, or one of these"
        )]
        #[serde(default)]
        pub engine: crate::Engine,
        /// With `.engine` auto: take what is fastest by this file, which `netdyno doctor IFACE --calibrate --save FILE` wrote
        /// on this machine and kernel for this driver.
        #[setting(value = "FILE", expert)]
        pub calibration: Option<std::path::PathBuf>,
        /// Send with several cores, a worker on each, which share the frames out among them: how many (4), or which CPUs
        /// (0-3,6). Of a number, the last ones that this process may run on, spread over the interface's queues. Default: 1.
        #[setting(
            value = "N|LIST",
            heading = "Rate",
            brief = "Send with several cores: how many (4), or which CPUs (0-3,6)",
            shorthand(
                option = "core",
                value = "CPU",
                means = "{}-{}",
                text = "Send with this CPU alone.",
                expert
            )
        )]
        pub cores: Option<crate::Written<crate::Cores>>,
        /// Have frames stamped as they leave, one at a time and up to a thousand a second, and tell how late they really left: by
        /// the hardware (it must be switched on, and its clock readable), or by the driver, which hands them to it. With
        /// `.engine` packet, which is taken then.
        #[setting(value = "WHO", expert)]
        pub tx_timestamps: Option<crate::Stamps>,
    }

    /// What is measured, and how.
    metering {
        /// The frames come back: a reflector (`netdyno reflect`) is at the other end. Measure them where they are sent,
        /// so that loss and latency are of the way there and back. Signs the frames.
        #[setting(heading = "Measure", excludes("lab"))]
        pub round_trip: bool,
        /// How they are measured.
        #[setting(within)]
        #[serde(default)]
        pub meter: crate::Meter,
    }

    /// Where frames are lost.
    tracing {
        /// Say of lost frames in which function and for what reason this host's kernel dropped them, by stream: for a device under
        /// test, or a way to it, that is this host. Costs nothing until a frame is dropped. On by itself in a lab.
        #[setting(
            heading = "Measure",
            excludes("no_trace_drops"),
            brief = "Say where and why this host's kernel dropped frames of the test (docs/why-lost.md)"
        )]
        pub trace_drops: bool,
        /// Do not, in a lab.
        #[setting(heading = "Measure", expert)]
        pub no_trace_drops: bool,
    }

    /// What an expression does not say.
    shape {
        /// Frame size, the FCS counted: 64, a list 64,512,1518, 64..1518, random(64..1518), imix, 64:7,1518:1
        /// (size:weight) or an RFC 6985 genome such as aaafg. Default: as long as the layers are.
        #[setting(
            value = "SIZE",
            heading = "Traffic",
            brief = "Frame size with FCS: 64, 64..1518, random(64..1518), imix, 64:7,1518:1"
        )]
        pub size: Option<crate::Written<traffic::expr::Size>>,
        /// Key of all random values: the same seed gives the same frames. Default: drawn, and named in the result.
        #[setting(value = "N", heading = "Traffic")]
        pub seed: Option<u64>,
    }

    /// Buffers of both ends' sockets.
    socket_buffers {
        /// SO_SNDBUF here, in bytes. The kernel doubles it, and stops tuning it.
        #[setting(value = "BYTES", expert)]
        pub send_buffer: Option<crate::Written<u64>>,
        /// SO_RCVBUF here.
        #[setting(value = "BYTES", expert)]
        pub receive_buffer: Option<crate::Written<u64>>,
        /// SO_SNDBUF at the server.
        #[setting(value = "BYTES", expert)]
        pub remote_send_buffer: Option<crate::Written<u64>>,
        /// SO_RCVBUF at the server.
        #[setting(value = "BYTES", expert)]
        pub remote_receive_buffer: Option<crate::Written<u64>>,
    }

    /// Two hosts of the job's own.
    lab {
        /// Do it in a lab of its own: two hosts, and a device between them if one is asked for, gone when this ends (docs/lab.md).
        #[setting(
            within,
            option = "lab",
            heading = "Lab",
            brief = "Do it in a lab of its own: two hosts, and a device if one is asked for"
        )]
        pub lab: Option<crate::Lab>,
    }

    /// What latency is left.
    floor {
        /// Show what latency is left when this is taken off: `device` (the lab's device of `.lab.impair`, idle; then the
        /// default), `cable` (a lab's bare cable on this machine), a time (12us), or an earlier result with a cable in the
        /// device's place.
        #[setting(
            value = "WHAT",
            heading = "Measure",
            brief = "Take this off latencies: device, cable, a time, an earlier result"
        )]
        pub floor: Option<String>,
    }

    /// What a client and a server of iperf3's protocol have alike: sockets of this host, and what is told meanwhile.
    iperf3_side {
        /// The server's port, for TCP and UDP. Default: 5201.
        #[setting(value = "PORT", least = 1, heading = "Traffic")]
        pub port: Option<u16>,
        /// Own address. Default: any.
        #[setting(value = "ADDR", heading = "Traffic")]
        pub bind: Option<std::net::IpAddr>,
        /// Own interface (SO_BINDTODEVICE).
        #[setting(value = "IFACE", expert)]
        pub bind_dev: Option<String>,
        /// Only this Internet protocol: 4 or 6.
        #[setting(value = "VERSION", default = "any", heading = "Traffic")]
        pub family: crate::Family,
        /// Multipath TCP.
        #[setting(expert)]
        pub mptcp: bool,
        /// The core of this end.
        #[setting(value = "CPU", expert)]
        pub affinity: Option<u32>,
        /// Time from one interval of the result to the next, 100ms to 60s; 0: one for all. Default: 1s.
        #[setting(value = "TIME", heading = "Measure")]
        pub interval: Option<crate::Written<crate::TimeOrZero>>,
        /// A file that is sent where this end sends, and written where it receives.
        #[setting(value = "FILE", consent, expert)]
        pub file: Option<std::path::PathBuf>,
        /// End a test when no data has come for this long. Default: 120s.
        #[setting(value = "TIME", expert)]
        pub rcv_timeout: Option<crate::Written<std::time::Duration>>,
        /// End a connection whose data has not been acknowledged for this long.
        #[setting(value = "TIME", expert)]
        pub snd_timeout: Option<crate::Written<crate::TimeOrZero>>,
        /// Ask the control connection's peer whether it is still there (SO_KEEPALIVE).
        #[setting(value = "IDLE/INTV/CNT", expert)]
        pub cntl_ka: Option<crate::Written<crate::KeepAlive>>,
    }

    /// What needs consent.
    disrupting {
        /// Yes, use this interface, for sending or for `.measure`, although it carries the default route or your login, or (for
        /// `.measure` without `.pass`) connections of this host.
        #[setting(value = "IFACE", expert, consent)]
        pub yes_disrupt: Vec<String>,
    }
}

#[cfg(test)]
mod tests {
    use crate::setting::{Settings as _, named};
    use crate::{File, Job, Replay, Send};

    #[test]
    fn what_a_part_has_stands_among_the_members_and_others_are_refused() {
        let read = |members: &str| {
            File::read(&format!("{{schema: netdyno.job/1, kind: send, what: ipv4, {members}}}"), "job")
        };
        let Job::Send(job) =
            read("catch_up: 2, spin: true, cores: 4, round_trip: true").expect("a job").jobs.remove(0)
        else {
            panic!("another kind");
        };
        assert_eq!((job.catch_up, job.spin, job.round_trip), (Some(2.0), true, true));
        assert_eq!(job.cores.map(|cores| cores.text().to_owned()), Some("4".to_owned()));
        let error = read("catchup: 2").expect_err("no such member").to_string();
        assert!(
            error.contains("there is no member `catchup`") && error.contains("did you mean `catch_up`"),
            "{error}"
        );
        for name in
            ["rate", "catch_up", "no_real_time", "engine", "cores", "round_trip", "yes_disrupt", "lab.queue"]
        {
            let (of_send, of_replay) = (named(Send::MEMBERS, name), named(Replay::MEMBERS, name));
            assert_eq!(of_send.map(|setting| setting.text), of_replay.map(|setting| setting.text), "{name}");
            assert!(of_send.is_some(), "{name}");
        }
    }
}
