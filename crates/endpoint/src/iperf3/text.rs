//! iperf3's text: lines that scripts cut at columns.

use super::params::Protocol;
use super::results::{Cpu, Output};
use super::summary::{
    Datagrams, End, Interval, Role, Share, Side, Slice, Start, Sum, Total, lost_percent, rate, slices,
};
use super::units::{Format, amount, http_date, percent, speed};
use std::fmt::Write as _;

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
const BAR: &str = "-----------------------------------------------------------\n";
/// Where TCP's sender has retransmissions and window, others have blanks.
const BLANK: &str = "                  ";

/// Makes lines; remembers which came before.
#[derive(Debug, Clone, Default)]
pub struct Text {
    format: Format,
    verbose: bool,
    intervals: usize,
}

/// What a server says while it waits for its `n`th test.
pub fn listening(port: u16, n: u64) -> String {
    format!("{BAR}Server listening on {port} (test #{n})\n{BAR}")
}

impl Text {
    /// With rates in this unit, and more of them.
    pub fn new(format: Format, verbose: bool) -> Text {
        Text { format, verbose, intervals: 0 }
    }

    /// The program, where more is asked for.
    pub fn program(&self, version: &str, system: &str) -> String {
        if self.verbose { format!("{version}\n{system}\n") } else { String::new() }
    }

    /// The control connection is there. `dynamic`: a datagram's length was made from its segment size.
    pub fn connecting(&self, start: &Start, dynamic: bool) -> String {
        let params = &start.params;
        let mut text = String::new();
        if self.verbose {
            if start.role == Role::Client {
                let _ = writeln!(text, "Control connection MSS {}", start.mss);
                if dynamic {
                    let _ = writeln!(text, "Setting UDP block size to {}", params.len);
                }
            }
            let _ = writeln!(text, "Time: {}", http_date(start.unix_ms / 1000));
        }
        let (host, port) = (&start.host, start.port);
        let _ = match start.role {
            Role::Client => writeln!(text, "Connecting to host {host}, port {port}"),
            Role::Server => writeln!(text, "Accepted connection from {host}, port {port}"),
        };
        if start.role == Role::Client && params.reverse {
            let _ = writeln!(text, "Reverse mode, remote host {host} is sending");
        }
        if self.verbose {
            let _ = writeln!(text, "      Cookie: {}", start.cookie);
            if params.protocol == Protocol::Tcp {
                let _ = match params.mss {
                    0 => writeln!(text, "      TCP MSS: {} (default)", start.mss),
                    mss => writeln!(text, "      TCP MSS: {mss}"),
                };
            }
            if params.rate > 0 {
                let _ = writeln!(text, "      Target Bitrate: {}", params.rate);
            }
        }
        text
    }

    /// The streams are there.
    pub fn start(&self, start: &Start) -> String {
        let mut text = String::new();
        for stream in &start.streams {
            let (local, remote) = (stream.local, stream.remote);
            let _ = writeln!(
                text,
                "[{:3}] local {} port {} connected to {} port {}",
                stream.socket,
                local.ip().to_canonical(),
                local.port(),
                remote.ip().to_canonical(),
                remote.port()
            );
        }
        if self.verbose {
            let params = &start.params;
            let until = match (params.bytes, params.blocks, params.seconds) {
                (0, 0, seconds) => format!("{seconds} second test"),
                (0, blocks, _) => format!("{blocks} blocks to send"),
                (bytes, ..) => format!("{bytes} bytes to send"),
            };
            let _ = writeln!(
                text,
                "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {until}, tos {}",
                params.protocol.name(),
                params.parallel,
                params.len,
                params.omit,
                params.tos
            );
        }
        text
    }

    /// An interval is over.
    pub fn interval(&mut self, start: &Start, interval: &Interval) -> String {
        let mut text = String::new();
        let bidir = start.params.bidir;
        let several = start.params.parallel > 1;
        if self.intervals == 0 {
            let sends = interval.streams.first().is_some_and(|slice| slice.sender);
            let columns = match (start.protocol(), bidir || sends, bidir || !sends) {
                (Protocol::Tcp, true, _) => "         Retr  Cwnd",
                (Protocol::Tcp, false, _) => "",
                (Protocol::Udp, _, true) => "         Jitter    Lost/Total Datagrams",
                (Protocol::Udp, _, false) => "         Total Datagrams",
            };
            text.push_str(&header(bidir, columns));
        } else if several {
            text.push_str(RULE);
        }
        self.intervals += 1;
        let span = span(interval.start, interval.end);
        let mut direction = None;
        let flush = |text: &mut String, sender: Option<bool>| {
            if let Some(sum) = sender.filter(|_| several).and_then(|sender| slices(interval, sender)) {
                let head = head("SUM", bidir, sum.sender, start.role);
                let _ = writeln!(text, "{head}{span}{}", self.slice(interval, &sum, bidir, true));
            }
        };
        for slice in &interval.streams {
            if direction.is_some_and(|sender| sender != slice.sender) {
                flush(&mut text, direction);
            }
            direction = Some(slice.sender);
            let head = head(&format!("{:3}", slice.socket), bidir, slice.sender, start.role);
            let _ = writeln!(text, "{head}{span}{}", self.slice(interval, slice, bidir, false));
        }
        flush(&mut text, direction);
        text
    }

    fn slice(&self, interval: &Interval, slice: &Slice, bidir: bool, sum: bool) -> String {
        let omitted = if interval.omitted { "(omitted)" } else { "" };
        let mut text = self.moved(slice.bytes, rate(slice.bytes, interval.seconds()));
        let _ = match (&slice.tcp, &slice.udp) {
            (Some(tcp), _) if slice.sender && sum => write!(text, "  {:3}             ", tcp.retransmits),
            (Some(tcp), _) if slice.sender => {
                write!(text, "  {:3}   {}       ", tcp.retransmits, amount(tcp.snd_cwnd as f64))
            }
            (_, Some(udp)) if slice.sender && bidir => write!(text, "            {}  ", udp.packets),
            (_, Some(udp)) if slice.sender => write!(text, "  {}  ", udp.packets),
            (_, Some(udp)) => write!(text, "  {}  ", arrivals(udp)),
            _ => write!(text, "{BLANK}"),
        };
        text.push_str(omitted);
        text
    }

    fn moved(&self, bytes: u64, bits_per_second: f64) -> String {
        format!("{}  {}/sec", amount(bytes as f64), speed(bits_per_second, self.format))
    }

    /// The test is over.
    pub fn end(&self, start: &Start, end: &End) -> String {
        let mut text = String::from(RULE);
        if self.verbose {
            text.push_str("Test Complete. Summary Results:\n");
        }
        let bidir = start.params.bidir;
        let sends = end.streams.first().is_some_and(|stream| stream.sender);
        text.push_str(&header(
            bidir,
            match (start.protocol(), start.role, bidir || sends) {
                (Protocol::Tcp, Role::Server, false) => "",
                (Protocol::Tcp, ..) => "         Retr",
                (Protocol::Udp, ..) => "         Jitter    Lost/Total Datagrams",
            },
        ));
        let mut first = true;
        for sender in [sends, !sends] {
            let streams = end.streams.iter().filter(|stream| stream.sender == sender);
            let mut any = false;
            for total in streams {
                any = true;
                self.total(&mut text, start, total, end.file.as_ref());
            }
            if any && start.params.parallel > 1 {
                let sum = Sum::of(&end.streams, sender);
                let head = head("SUM", bidir, sender, start.role);
                self.sides(&mut text, start, (&head, sender), sum.sent, sum.received);
            }
            if any && first && self.verbose {
                self.use_of_cpu(&mut text, start, end);
            }
            first = false;
        }
        if end.unread > 0 {
            let _ = writeln!(
                text,
                "{} bytes arrived at the server's host, and the server ended before it read them: they are in the sender's count alone",
                end.unread
            );
        }
        if end.receiver_drops > 0 {
            let _ = writeln!(
                text,
                "{} datagrams were dropped by this host's full socket buffers, not by the network: try a larger -w",
                end.receiver_drops
            );
        }
        if start.role == Role::Client
            && let Some(output) = &end.server_output
        {
            let _ = match output {
                Output::Text(output) => write!(text, "\nServer output:\n{output}\n"),
                Output::Json(value) => write!(text, "\nServer JSON output:\n{value:#}\n"),
            };
        }
        text
    }

    /// The last words of a client.
    pub fn done() -> &'static str {
        "\niperf Done.\n"
    }

    fn total(&self, text: &mut String, start: &Start, total: &Total, file: Option<&(String, u64)>) {
        let socket = format!("{:3}", total.socket);
        let head = head(&socket, start.params.bidir, total.sender, start.role);
        let Some((name, size)) = file else {
            return self.sides(text, start, (&head, total.sender), total.sent, total.received);
        };
        // As iperf3 has it: between the sender's line and the receiver's.
        self.sides(text, start, (&head, total.sender), total.sent, None);
        let [sent, received] = [total.sent, total.received].map(|side| side.map_or(0, |side| side.bytes));
        let share = Share::of(*size, sent, received);
        let (moved, percent) =
            if total.sender { (sent, share.percent[0]) } else { (received, share.percent[1]) };
        // In this line iperf3 has units in the singular.
        let [moved, size] =
            [moved, share.size].map(|bytes| amount(bytes as f64).trim_end_matches('s').to_owned());
        let _ = writeln!(text, "        Sent {moved} / {size} ({percent}%) of {name}");
        self.sides(text, start, (&head, total.sender), None, total.received);
    }

    fn sides(
        &self,
        text: &mut String,
        start: &Start,
        (head, sends): (&str, bool),
        sent: Option<Side>,
        received: Option<Side>,
    ) {
        let udp = start.protocol() == Protocol::Udp;
        // A server shows its own side.
        let own = |sender: bool| start.role == Role::Client || sender == sends;
        let sides = [(sent.filter(|_| own(true)), "sender"), (received.filter(|_| own(false)), "receiver")];
        for (side, who) in sides {
            let Some(side) = side else { continue };
            let moved = self.moved(side.bytes, side.rate());
            let span = span(0.0, side.seconds);
            let _ = match side.retransmits {
                _ if udp => writeln!(text, "{head}{span}{moved}  {}  {who}", arrivals(&side.udp)),
                Some(retransmits) => writeln!(text, "{head}{span}{moved}  {retransmits:3}             {who}"),
                None => writeln!(text, "{head}{span}{moved}{BLANK}{who}"),
            };
        }
    }

    fn use_of_cpu(&self, text: &mut String, start: &Start, end: &End) {
        let share = |cpu: Cpu| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
        let sends = end.streams.first().is_some_and(|stream| stream.sender);
        let roles = if sends { ["sender", "receiver"] } else { ["receiver", "sender"] };
        let mut line = |local: &str, remote: &str| {
            let _ = write!(text, "CPU Utilization: local/{local} {}", share(end.cpu));
            let _ = match end.remote_cpu {
                Some(cpu) => writeln!(text, ", remote/{remote} {}", share(cpu)),
                None => writeln!(text),
            };
        };
        line(roles[0], roles[1]);
        if start.params.bidir {
            line(roles[1], roles[0]);
        }
        if start.protocol() == Protocol::Tcp {
            let names = if sends { ["snd", "rcv"] } else { ["rcv", "snd"] };
            for (name, congestion) in names.into_iter().zip([&end.congestion, &end.remote_congestion]) {
                if let Some(congestion) = congestion {
                    let _ = writeln!(text, "{name}_tcp_congestion {congestion}");
                }
            }
        }
    }
}

fn header(bidir: bool, columns: &str) -> String {
    let role = if bidir { "[Role]" } else { "" };
    format!("[ ID]{role} Interval           Transfer     Bitrate{columns}\n")
}

fn head(name: &str, bidir: bool, sender: bool, role: Role) -> String {
    let role = match (bidir, sender, role) {
        (false, ..) => "",
        (_, true, Role::Client) => "[TX-C]",
        (_, false, Role::Client) => "[RX-C]",
        (_, true, Role::Server) => "[TX-S]",
        (_, false, Role::Server) => "[RX-S]",
    };
    format!("[{name}]{role} ")
}

fn span(start: f64, end: f64) -> String {
    format!("{start:6.2}-{end:<6.2} sec  ")
}

fn arrivals(udp: &Datagrams) -> String {
    format!("{:5.3} ms  {}/{} ({}%)", udp.jitter * 1e3, udp.lost, udp.packets, percent(lost_percent(udp)))
}

#[cfg(test)]
mod tests {
    use super::super::params::Params;
    use super::super::summary::{Stream, Tcp};
    use super::*;

    fn begun(params: Params, role: Role) -> Start {
        let address = |port| (std::net::Ipv4Addr::LOCALHOST, port).into();
        Start {
            role,
            host: "127.0.0.1".into(),
            port: 5301,
            cookie: "a".repeat(36),
            unix_ms: 1_795_557_797_000,
            system: "Linux".into(),
            mss: 32768,
            send_buffer: 16384,
            receive_buffer: 131_072,
            interval: 1.0,
            streams: vec![Stream { socket: 5, sender: true, local: address(51908), remote: address(5301) }],
            params,
        }
    }

    fn slice(sender: bool, tcp: bool) -> Slice {
        Slice {
            socket: 5,
            sender,
            bytes: 12_582_912,
            tcp: (tcp && sender).then_some(Tcp { snd_cwnd: 1_178_694, ..Tcp::default() }),
            udp: (!tcp).then_some(Datagrams { packets: 39, jitter: 7e-6, ..Datagrams::default() }),
        }
    }

    fn lines(params: Params, slices: Vec<Slice>, omitted: bool) -> String {
        let interval = Interval { start: 0.0, end: 1.000_076, omitted, streams: slices };
        Text::new(Format::default(), false).interval(&begun(params, Role::Client), &interval)
    }

    /// As iperf3 3.12 prints them, blanks at the end included.
    #[test]
    fn interval_lines_are_iperf3s() {
        let params = Params { parallel: 1, ..Params::default() };
        assert_eq!(
            lines(params.clone(), vec![slice(true, true)], false),
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
             [  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec    0   1.12 MBytes       \n"
        );
        assert_eq!(
            lines(params.clone(), vec![slice(false, true)], true),
            "[ ID] Interval           Transfer     Bitrate\n\
             [  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec                  (omitted)\n"
        );
        let udp = Params { protocol: Protocol::Udp, ..params.clone() };
        assert_eq!(
            lines(udp.clone(), vec![slice(true, false)], false),
            "[ ID] Interval           Transfer     Bitrate         Total Datagrams\n\
             [  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec  39  \n"
        );
        assert_eq!(
            lines(Params { bidir: true, ..udp }, vec![slice(true, false), slice(false, false)], false),
            "[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
             [  5][TX-C]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec            39  \n\
             [  5][RX-C]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec  0.007 ms  0/39 (0%)  \n"
        );
        assert_eq!(
            lines(Params { parallel: 2, ..params }, vec![slice(true, true); 2], false).lines().last(),
            Some("[SUM]   0.00-1.00   sec  24.0 MBytes   201 Mbits/sec    0             ")
        );
    }

    #[test]
    fn summaries_are_iperf3s() {
        let side = Side { seconds: 2.0, bytes: 25_000_000, ..Side::default() };
        let total = Total {
            socket: 5,
            sender: true,
            sent: Some(Side { retransmits: Some(3), ..side }),
            received: Some(side),
            tcp: None,
        };
        let end = End { streams: vec![total], ..End::default() };
        let params = Params { parallel: 1, ..Params::default() };
        let text = Text::new(Format::default(), false).end(&begun(params, Role::Client), &end);
        assert_eq!(
            text,
            "- - - - - - - - - - - - - - - - - - - - - - - - -\n\
             [ ID] Interval           Transfer     Bitrate         Retr\n\
             [  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec    3             sender\n\
             [  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec                  receiver\n"
        );
    }

    /// The line of `-F` stands between the two, as iperf3's `report_diskfile` does.
    #[test]
    fn a_file_is_told_with_its_share() {
        let side = |bytes| Some(Side { seconds: 1.0, bytes, ..Side::default() });
        let total =
            Total { socket: 5, sender: true, sent: side(300_007), received: side(300_007), tcp: None };
        let end = End { streams: vec![total], file: Some(("from".into(), 600_014)), ..End::default() };
        let params = Params { parallel: 1, ..Params::default() };
        let text = Text::new(Format::default(), false).end(&begun(params, Role::Client), &end);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[1], "        Sent  293 KByte /  586 KByte (50%) of from");
        assert!(lines[0].ends_with("sender") && lines[2].ends_with("receiver"), "{text}");
        assert_eq!(Share::of(0, 0, 0).percent, [100, 100]);
    }
}
