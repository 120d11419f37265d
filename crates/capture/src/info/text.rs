//! A summary for people: labels on the left, then tables, in at most 100 columns.

use report::units::{bit_rate, bytes, count, counted, frame_rate, percent, printable, time};

use super::{Info, Layer, MAX_PORTS};

/// Width of the labels and of a table's first column.
const LABEL: usize = 16;
const NAME: usize = 28;

impl Info {
    /// The summary as text, with a newline at its end.
    pub fn text(&self) -> String {
        let mut out = printable(&self.file);
        out.push('\n');
        let mut line = |label: &str, text: String| {
            out += &format!("  {label:LABEL$}{text}\n");
        };
        let on_disk = self.file_bytes.map_or(String::new(), |length| format!(", {}", bytes(length)));
        line("Format", format!("{}{on_disk}", self.format));
        for text in self.interface_lines() {
            line(if self.interfaces.len() > 1 { "Interface" } else { "Link type" }, text);
        }
        line("Frames", count(self.frames));
        let captured = match self.captured_bytes {
            captured if captured == self.bytes => String::new(),
            captured => format!("; {} of them captured", count(captured)),
        };
        line("Bytes", format!("{} ({} without FCS){captured}", count(self.bytes), bytes(self.bytes)));
        if let (Some(first), Some(last)) = (&self.first_time, &self.last_time) {
            line("First", first.clone());
            line("Last", last.clone());
            let exact =
                format!("{}.{:09} s", self.duration_ns / 1_000_000_000, self.duration_ns % 1_000_000_000);
            line("Duration", format!("{} ({exact})", time(self.duration_ns)));
        }
        if let (Some(frames), Some(bits)) = (self.frames_per_second, self.bits_per_second) {
            line("Average rate", format!("{}, {}", frame_rate(frames), bit_rate(bits)));
        }
        if let (Some(smallest), Some(mean), Some(largest)) =
            (self.smallest_frame_bytes, self.mean_frame_bytes, self.largest_frame_bytes)
        {
            let text = match (count(smallest), count(largest)) {
                (smallest, largest) if smallest == largest => format!("{largest} bytes"),
                (smallest, largest) => format!("{smallest} to {largest} bytes, {mean:.1} on average"),
            };
            line("Frame size", text);
        }
        let least = if self.flows_exact { "" } else { "at least " };
        let flows =
            format!("{least}{} one-way, {least}{} both ways", count(self.flows), count(self.conversations));
        let in_flows = self.frames - self.frames_without_flow.total();
        line(
            "Flows",
            match self.flows {
                0 => "none".into(),
                n if self.flows_exact => format!("{flows}; {:.1} frames a flow", in_flows as f64 / n as f64),
                _ => flows,
            },
        );
        if self.frames_without_flow.total() > 0 {
            line("Without a flow", self.without_flow_line());
        }
        let addresses = &self.addresses;
        for (label, sources, destinations) in [
            ("IPv4 addresses", addresses.ipv4_sources, addresses.ipv4_destinations),
            ("IPv6 addresses", addresses.ipv6_sources, addresses.ipv6_destinations),
        ] {
            if sources + destinations > 0 {
                line(
                    label,
                    format!(
                        "{least}{}, {least}{}",
                        counted(sources, "source"),
                        counted(destinations, "destination")
                    ),
                );
            }
        }
        if self.frames > 0 {
            self.tables(&mut out);
        }
        for warning in &self.warnings {
            out += &format!("\n  Note: {}", printable(warning));
        }
        if !self.warnings.is_empty() {
            out.push('\n');
        }
        out
    }

    fn interface_lines(&self) -> Vec<String> {
        let describe = |interface: &super::InterfaceInfo| {
            let name = interface.name.as_ref().map_or(String::new(), |name| format!("{}, ", printable(name)));
            let speed =
                interface.bits_per_second.map_or(String::new(), |bps| format!(", {}", bit_rate(bps as f64)));
            let snap = match interface.snap_length {
                0 | 65535 | 262_144 => String::new(),
                snap => format!(", at most {} bytes of a frame", count(snap.into())),
            };
            let frames = match self.interfaces.len() {
                1 => String::new(),
                _ => format!(": {}", counted(interface.frames, "frame")),
            };
            format!("{name}{}{speed}{snap}{frames}", interface.link)
        };
        // A merged capture may have dozens.
        let mut lines: Vec<String> = self.interfaces.iter().take(16).map(describe).collect();
        if self.interfaces.len() > 16 {
            lines.push(format!("and {} more", count(self.interfaces.len() as u64 - 16)));
        }
        lines
    }

    fn without_flow_line(&self) -> String {
        let without = &self.frames_without_flow;
        let parts = [
            (without.not_ip, "not IP"),
            (without.later_fragments, "later fragments"),
            (without.cut_off, "cut off before the ports"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", count(*n))).collect();
        format!("{}: {}", counted(without.total(), "frame"), parts.join(", "))
    }

    fn tables(&self, out: &mut String) {
        let share = |frames: u64| percent(frames as f64 / self.frames as f64);
        let mut row = |cells: [&str; 4]| {
            let [name, frames, share, bytes] = cells;
            let line = format!("  {name:NAME$}{frames:>16}{share:>12}{bytes:>12}");
            *out += line.trim_end();
            out.push('\n');
        };
        row([""; 4]);
        row(["Size with FCS", "frames", "share", ""]);
        for class in self.sizes_with_fcs.iter().filter(|class| class.frames > 0) {
            let name = match (class.from, class.to) {
                (0, Some(to)) => format!("below {}", to + 1),
                (from, Some(to)) if from == to => from.to_string(),
                (from, Some(to)) => format!("{from} to {to}"),
                (from, None) => format!("{from} and more"),
            };
            row([&name, &count(class.frames), &share(class.frames), ""]);
        }
        for (layer, title) in
            [(Layer::Tag, "Tag"), (Layer::Network, "Network layer"), (Layer::Transport, "Behind IP")]
        {
            let of_layer: Vec<_> = self.protocols.iter().filter(|protocol| protocol.layer == layer).collect();
            if !of_layer.is_empty() {
                row([""; 4]);
                row([title, "frames", "share", "bytes"]);
            }
            for protocol in of_layer {
                row([
                    &protocol.name,
                    &count(protocol.frames),
                    &share(protocol.frames),
                    &bytes(protocol.bytes),
                ]);
            }
        }
        if self.ports.is_empty() {
            return;
        }
        row([""; 4]);
        row(["Server port", "frames", "share", "bytes"]);
        for port in self.ports.iter().take(MAX_PORTS / 2) {
            let name = format!("{} {} {}", port.transport, port.port, port.name.unwrap_or(""));
            row([&name, &count(port.frames), &share(port.frames), &bytes(port.bytes)]);
        }
        if let Some(more @ 1..) = self.distinct_ports.checked_sub(MAX_PORTS as u64 / 2) {
            row([&format!("and {} more", count(more)), "", "", ""]);
        }
    }
}

impl super::FramesWithoutFlow {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.not_ip + self.later_fragments + self.cut_off
    }
}
