//! The omni test's output selectors: their names, the four lines of their headers, and what each prints of a result.
//!
//! All that netperf 2.7 has, in its order. Those of drivers, interfaces and systems say "Deprecated", as its last release does.

use super::figures::{Figures, Unit};
use super::omni::Cpu;
use super::plan::Transport;

/// One selector.
#[derive(Debug, Clone, Copy)]
pub struct Selector(&'static Row);

type Row = (&'static str, [&'static str; 4], fn(&Figures) -> String);

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.name() == other.name()
    }
}

impl Selector {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.0
    }

    /// The lines of its header.
    pub fn labels(self) -> [&'static str; 4] {
        self.0.1
    }

    /// What it prints.
    pub fn value(self, of: &Figures) -> String {
        (self.0.2)(of)
    }

    /// All words of its header in a row.
    pub fn title(self) -> String {
        self.labels().into_iter().take_while(|label| !label.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// By its name, or by its header, whatever the case of its letters.
    pub fn named(name: &str) -> Option<Selector> {
        Selector::all()
            .find(|one| one.name().eq_ignore_ascii_case(name) || one.title().eq_ignore_ascii_case(name))
    }

    /// All.
    pub fn all() -> impl Iterator<Item = Selector> {
        TABLE.iter().map(Selector)
    }
}

/// Rows of selectors: of `-O` each is a block of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection(pub Vec<Vec<Selector>>);

/// Where the blocks of all selectors end.
const BLOCKS: [[&str; 2]; 4] = [
    ["SOCKET_TYPE", "RESPONSE_SIZE"],
    ["LOCAL_CPU_UTIL", "TRANSPORT_MSS"],
    ["LOCAL_SEND_THROUGHPUT", "REMOTE_CORK"],
    ["LOCAL_SYSNAME", "COMMAND_LINE"],
];

impl Selection {
    /// All but the empty one and the last.
    pub fn all() -> Selection {
        let place = |name: &str| TABLE.iter().position(|row| row.0 == name).unwrap_or(0);
        let block = |[first, last]: [&str; 2]| {
            let rows = TABLE.get(place(first)..=place(last)).unwrap_or_default();
            // Only who set a brand sees it.
            rows.iter().map(Selector).filter(|one| one.name() != "RESULT_BRAND").collect()
        };
        Selection(BLOCKS.map(block).to_vec())
    }

    /// Names with commas between them, and semicolons or lines between blocks; with those that are not known.
    pub fn parse(text: &str) -> (Selection, Vec<String>) {
        let mut unknown = Vec::new();
        let blocks = text.split([';', '\n']).map(|block| {
            let names = block.split(',').map(str::trim).filter(|name| !name.is_empty());
            let known = names.filter_map(|name| {
                let found = Selector::named(name);
                if found.is_none() {
                    unknown.push(name.to_owned());
                }
                found
            });
            known.collect::<Vec<_>>()
        });
        let blocks = blocks.filter(|block| !block.is_empty()).collect();
        (Selection(blocks), unknown)
    }

    /// What a test prints that was not told what to.
    pub fn usual(flow: super::figures::Flow, cpu: bool) -> Selection {
        use super::figures::Flow;
        let mut names = match flow {
            Flow::Send => "LSS_SIZE_END,RSR_SIZE_END,LOCAL_SEND_SIZE",
            Flow::Receive => "RSS_SIZE_END,LSR_SIZE_END,REMOTE_SEND_SIZE",
            _ => "LSS_SIZE_END,LSR_SIZE_END,RSR_SIZE_END,RSS_SIZE_END,REQUEST_SIZE,RESPONSE_SIZE",
        }
        .to_owned();
        names.push_str(",ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS");
        if cpu {
            for side in ["LOCAL", "REMOTE"] {
                for what in [
                    "UTIL",
                    "PERCENT_USER",
                    "PERCENT_SYSTEM",
                    "PERCENT_IOWAIT",
                    "PERCENT_IRQ",
                    "PERCENT_SWINTR",
                    "METHOD",
                ] {
                    names.push_str(&format!(",{side}_CPU_{what}"));
                }
            }
            names.push_str(",LOCAL_SD,REMOTE_SD,SD_UNITS");
        }
        Selection::parse(&names).0
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Selector> {
        self.0.iter().flatten().copied()
    }

    /// Is one of this name there?
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|one| one.name() == name)
    }
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

fn three(value: f64) -> String {
    format!("{value:.3}")
}

fn share(cpu: Option<Cpu>, of: impl Fn(&Cpu) -> f32) -> String {
    two(cpu.as_ref().map_or(0.0, of).into())
}

fn per(bytes: u64, calls: u64) -> String {
    two(if calls == 0 { 0.0 } else { bytes as f64 / calls as f64 })
}

fn none() -> String {
    "-1".to_owned()
}

fn zero() -> String {
    "0".to_owned()
}

fn gone() -> String {
    "Deprecated".to_owned()
}

fn no_device() -> String {
    "0xfffffffe".to_owned()
}

#[rustfmt::skip]
static TABLE: &[Row] = &[
    ("OUTPUT_NONE", [" ", "", "", ""], |_| " ".to_owned()),
    ("SOCKET_TYPE", ["Socket", "Type", "", ""], |f| if f.transport == Transport::Tcp { "Stream" } else { "Datagram" }.to_owned()),
    ("PROTOCOL", ["Protocol", "", "", ""], |f| if f.transport == Transport::Tcp { "TCP" } else { "UDP" }.to_owned()),
    ("DIRECTION", ["Direction", "", "", ""], |f| f.flow.word().to_owned()),
    ("ELAPSED_TIME", ["Elapsed", "Time", "(sec)", ""], |f| two(f.elapsed)),
    ("THROUGHPUT", ["Throughput", "", "", ""], |f| two(f.throughput)),
    ("THROUGHPUT_UNITS", ["Throughput", "Units", "", ""], |f| format!("{}/s", f.unit.word())),
    ("LSS_SIZE_REQ", ["Local", "Send Socket", "Size", "Requested"], |f| f.local.send_buffer[0].to_string()),
    ("LSS_SIZE", ["Local", "Send Socket", "Size", "Initial"], |f| f.local.send_buffer[1].to_string()),
    ("LSS_SIZE_END", ["Local", "Send Socket", "Size", "Final"], |f| f.local.send_buffer[2].to_string()),
    ("LSR_SIZE_REQ", ["Local", "Recv Socket", "Size", "Requested"], |f| f.local.recv_buffer[0].to_string()),
    ("LSR_SIZE", ["Local", "Recv Socket", "Size", "Initial"], |f| f.local.recv_buffer[1].to_string()),
    ("LSR_SIZE_END", ["Local", "Recv Socket", "Size", "Final"], |f| f.local.recv_buffer[2].to_string()),
    ("RSS_SIZE_REQ", ["Remote", "Send Socket", "Size", "Requested"], |f| f.remote.send_buffer[0].to_string()),
    ("RSS_SIZE", ["Remote", "Send Socket", "Size", "Initial"], |f| f.remote.send_buffer[1].to_string()),
    ("RSS_SIZE_END", ["Remote", "Send Socket", "Size", "Final"], |f| f.remote.send_buffer[2].to_string()),
    ("RSR_SIZE_REQ", ["Remote", "Recv Socket", "Size", "Requested"], |f| f.remote.recv_buffer[0].to_string()),
    ("RSR_SIZE", ["Remote", "Recv Socket", "Size", "Initial"], |f| f.remote.recv_buffer[1].to_string()),
    ("RSR_SIZE_END", ["Remote", "Recv Socket", "Size", "Final"], |f| f.remote.recv_buffer[2].to_string()),
    ("LOCAL_SEND_SIZE", ["Local", "Send", "Size", ""], |f| f.local.send_size.to_string()),
    ("LOCAL_RECV_SIZE", ["Local", "Recv", "Size", ""], |f| f.local.recv_size.to_string()),
    ("REMOTE_SEND_SIZE", ["Remote", "Send", "Size", ""], |f| f.remote.send_size.to_string()),
    ("REMOTE_RECV_SIZE", ["Remote", "Recv", "Size", ""], |f| f.remote.recv_size.to_string()),
    ("REQUEST_SIZE", ["Request", "Size", "Bytes", ""], |f| f.request_size.to_string()),
    ("RESPONSE_SIZE", ["Response", "Size", "Bytes", ""], |f| f.response_size.to_string()),
    ("LOCAL_CPU_UTIL", ["Local", "CPU", "Util", "%"], |f| two(f.local.util())),
    ("LOCAL_CPU_PERCENT_USER", ["Local", "CPU", "User", "%"], |f| share(f.local.cpu, |cpu| cpu.user)),
    ("LOCAL_CPU_PERCENT_SYSTEM", ["Local", "CPU", "System", "%"], |f| share(f.local.cpu, |cpu| cpu.system)),
    ("LOCAL_CPU_PERCENT_IOWAIT", ["Local", "CPU", "I/O", "%"], |f| share(f.local.cpu, |cpu| cpu.iowait)),
    ("LOCAL_CPU_PERCENT_IRQ", ["Local", "CPU", "IRQ", "%"], |f| share(f.local.cpu, |cpu| cpu.irq)),
    ("LOCAL_CPU_PERCENT_SWINTR", ["Local", "CPU", "swintr", "%"], |f| share(f.local.cpu, |cpu| cpu.softirq)),
    ("LOCAL_CPU_METHOD", ["Local", "CPU", "Util", "Method"], |f| f.local.method().to_string()),
    ("LOCAL_SD", ["Local", "Service", "Demand", ""], |f| three(f.local.service_demand)),
    ("REMOTE_CPU_UTIL", ["Remote", "CPU", "Util", "%"], |f| two(f.remote.util())),
    ("REMOTE_CPU_PERCENT_USER", ["Remote", "CPU", "User", "%"], |f| share(f.remote.cpu, |cpu| cpu.user)),
    ("REMOTE_CPU_PERCENT_SYSTEM", ["Remote", "CPU", "System", "%"], |f| share(f.remote.cpu, |cpu| cpu.system)),
    ("REMOTE_CPU_PERCENT_IOWAIT", ["Remote", "CPU", "I/O", "%"], |f| share(f.remote.cpu, |cpu| cpu.iowait)),
    ("REMOTE_CPU_PERCENT_IRQ", ["Remote", "CPU", "IRQ", "%"], |f| share(f.remote.cpu, |cpu| cpu.irq)),
    ("REMOTE_CPU_PERCENT_SWINTR", ["Remote", "CPU", "swintr", "%"], |f| share(f.remote.cpu, |cpu| cpu.softirq)),
    ("REMOTE_CPU_METHOD", ["Remote", "CPU", "Util", "Method"], |f| f.remote.method().to_string()),
    ("REMOTE_SD", ["Remote", "Service", "Demand", ""], |f| three(f.remote.service_demand)),
    ("SD_UNITS", ["Service", "Demand", "Units", ""], |f| if f.unit == Unit::Transactions { "usec/Tran" } else { "usec/KB" }.to_owned()),
    ("CONFIDENCE_LEVEL", ["Confidence", "Level", "Percent", ""], |f| f.confidence.level.to_string()),
    ("CONFIDENCE_INTERVAL", ["Confidence", "Width", "Target", ""], |f| format!("{:.6}", f.confidence.interval * if f.confidence.interval > 0.0 { 100.0 } else { 1.0 })),
    ("CONFIDENCE_ITERATION", ["Confidence", "Iterations", "Run", ""], |f| f.confidence.iterations.to_string()),
    ("THROUGHPUT_CONFID", ["Throughput", "Confidence", "Width (%)", ""], |f| three(f.confidence.reached[0])),
    ("LOCAL_CPU_CONFID", ["Local", "CPU", "Confidence", "Width (%)"], |f| three(f.confidence.reached[1])),
    ("REMOTE_CPU_CONFID", ["Remote", "CPU", "Confidence", "Width (%)"], |f| three(f.confidence.reached[2])),
    ("TRANSACTION_RATE", ["Transaction", "Rate", "Tran/s", ""], |f| three(f.transaction_rate)),
    ("RT_LATENCY", ["Round", "Trip", "Latency", "usec/tran"], |f| three(f.rt_latency)),
    ("BURST_SIZE", ["Initial", "Burst", "Requests", ""], |f| f.burst.to_string()),
    ("LOCAL_TRANSPORT_RETRANS", ["Local", "Transport", "Retransmissions", ""], |f| f.local.retransmits.to_string()),
    ("REMOTE_TRANSPORT_RETRANS", ["Remote", "Transport", "Retransmissions", ""], |f| f.remote.retransmits.to_string()),
    ("TRANSPORT_MSS", ["Transport", "MSS", "bytes", ""], |f| f.mss.to_string()),
    ("LOCAL_SEND_THROUGHPUT", ["Local", "Send", "Throughput", ""], |f| two(f.byte_rate(f.local.bytes_sent))),
    ("LOCAL_RECV_THROUGHPUT", ["Local", "Recv", "Throughput", ""], |f| two(f.byte_rate(f.local.bytes_received))),
    ("REMOTE_SEND_THROUGHPUT", ["Remote", "Send", "Throughput", ""], |f| two(f.byte_rate(f.remote.bytes_sent))),
    ("REMOTE_RECV_THROUGHPUT", ["Remote", "Recv", "Throughput", ""], |f| two(f.byte_rate(f.remote.bytes_received))),
    ("LOCAL_CPU_BIND", ["Local", "CPU", "Bind", ""], |f| f.local.cpu_bind.to_string()),
    ("LOCAL_CPU_COUNT", ["Local", "CPU", "Count", ""], |f| f.local.cpu.map_or(0, |cpu| cpu.count).to_string()),
    ("LOCAL_CPU_PEAK_UTIL", ["Local", "Peak", "Per CPU", "Util %"], |f| two(f.local.cpu.map_or(-1.0, |cpu| cpu.peak.into()))),
    ("LOCAL_CPU_PEAK_ID", ["Local", "Peak", "Per CPU", "ID"], |f| f.local.cpu.map_or(-1, |cpu| cpu.peak_id).to_string()),
    ("LOCAL_CPU_MODEL", ["Local", "CPU", "Model", ""], |_| gone()),
    ("LOCAL_CPU_FREQUENCY", ["Local", "CPU", "Frequency", "MHz"], |_| zero()),
    ("REMOTE_CPU_BIND", ["Remote", "CPU", "Bind", ""], |f| f.remote.cpu_bind.to_string()),
    ("REMOTE_CPU_COUNT", ["Remote", "CPU", "Count", ""], |f| f.remote.cpu.map_or(0, |cpu| cpu.count).to_string()),
    ("REMOTE_CPU_PEAK_UTIL", ["Remote", "Peak", "Per CPU", "Util %"], |f| two(f.remote.cpu.map_or(-1.0, |cpu| cpu.peak.into()))),
    ("REMOTE_CPU_PEAK_ID", ["Remote", "Peak", "Per CPU", "ID"], |f| f.remote.cpu.map_or(-1, |cpu| cpu.peak_id).to_string()),
    ("REMOTE_CPU_MODEL", ["Remote", "CPU", "Model", ""], |_| gone()),
    ("REMOTE_CPU_FREQUENCY", ["Remote", "CPU", "Frequency", "MHz"], |_| zero()),
    ("SOURCE_PORT", ["Source", "Port", "", ""], |f| f.source.port.clone()),
    ("SOURCE_ADDR", ["Source", "Address", "", ""], |f| f.source.host.clone()),
    ("SOURCE_FAMILY", ["Source", "Family", "", ""], |f| f.source.family.to_string()),
    ("DEST_PORT", ["Destination", "Port", "", ""], |f| f.destination.port.clone()),
    ("DEST_ADDR", ["Destination", "Address", "", ""], |f| f.destination.host.clone()),
    ("DEST_FAMILY", ["Destination", "Family", "", ""], |f| f.destination.family.to_string()),
    ("LOCAL_SEND_CALLS", ["Local", "Send", "Calls", ""], |f| f.local.send_calls.to_string()),
    ("LOCAL_RECV_CALLS", ["Local", "Recv", "Calls", ""], |f| f.local.recv_calls.to_string()),
    ("LOCAL_BYTES_PER_RECV", ["Local", "Bytes", "Per", "Recv"], |f| per(f.local.bytes_received, f.local.recv_calls)),
    ("LOCAL_BYTES_PER_SEND", ["Local", "Bytes", "Per", "Send"], |f| per(f.local.bytes_sent, f.local.send_calls)),
    ("LOCAL_BYTES_SENT", ["Local", "Bytes", "Sent", ""], |f| f.local.bytes_sent.to_string()),
    ("LOCAL_BYTES_RECVD", ["Local", "Bytes", "Received", ""], |f| f.local.bytes_received.to_string()),
    ("LOCAL_BYTES_XFERD", ["Local", "Bytes", "Xferred", ""], |f| (f.local.bytes_sent + f.local.bytes_received).to_string()),
    ("LOCAL_SEND_OFFSET", ["Local", "Send", "Offset", ""], |f| f.local.offset[0].to_string()),
    ("LOCAL_RECV_OFFSET", ["Local", "Recv", "Offset", ""], |f| f.local.offset[1].to_string()),
    ("LOCAL_SEND_ALIGN", ["Local", "Send", "Alignment", ""], |f| f.local.align[0].to_string()),
    ("LOCAL_RECV_ALIGN", ["Local", "Recv", "Alignment", ""], |f| f.local.align[1].to_string()),
    ("LOCAL_SEND_WIDTH", ["Local", "Send", "Width", ""], |f| f.local.width[0].to_string()),
    ("LOCAL_RECV_WIDTH", ["Local", "Recv", "Width", ""], |f| f.local.width[1].to_string()),
    ("LOCAL_SEND_DIRTY_COUNT", ["Local", "Send", "Dirty", "Count"], |_| none()),
    ("LOCAL_RECV_DIRTY_COUNT", ["Local", "Recv", "Dirty", "Count"], |_| none()),
    ("LOCAL_RECV_CLEAN_COUNT", ["Local", "Recv", "Clean", "Count"], |_| none()),
    ("LOCAL_NODELAY", ["Local", "NODELAY", "", ""], |f| u8::from(f.local.nodelay).to_string()),
    ("LOCAL_CORK", ["Local", "Cork", "", ""], |f| u8::from(f.local.cork).to_string()),
    ("REMOTE_SEND_CALLS", ["Remote", "Send", "Calls", ""], |f| f.remote.send_calls.to_string()),
    ("REMOTE_RECV_CALLS", ["Remote", "Recv", "Calls", ""], |f| f.remote.recv_calls.to_string()),
    ("REMOTE_BYTES_PER_RECV", ["Remote", "Bytes", "Per", "Recv"], |f| per(f.remote.bytes_received, f.remote.recv_calls)),
    ("REMOTE_BYTES_PER_SEND", ["Remote", "Bytes", "Per", "Send"], |f| per(f.remote.bytes_sent, f.remote.send_calls)),
    ("REMOTE_BYTES_SENT", ["Remote", "Bytes", "Sent", ""], |f| f.remote.bytes_sent.to_string()),
    ("REMOTE_BYTES_RECVD", ["Remote", "Bytes", "Received", ""], |f| f.remote.bytes_received.to_string()),
    ("REMOTE_BYTES_XFERD", ["Remote", "Bytes", "Xferred", ""], |f| (f.remote.bytes_sent + f.remote.bytes_received).to_string()),
    ("REMOTE_SEND_OFFSET", ["Remote", "Send", "Offset", ""], |f| f.remote.offset[0].to_string()),
    ("REMOTE_RECV_OFFSET", ["Remote", "Recv", "Offset", ""], |f| f.remote.offset[1].to_string()),
    ("REMOTE_SEND_ALIGN", ["Remote", "Send", "Alignment", ""], |f| f.remote.align[0].to_string()),
    ("REMOTE_RECV_ALIGN", ["Remote", "Recv", "Alignment", ""], |f| f.remote.align[1].to_string()),
    ("REMOTE_SEND_WIDTH", ["Remote", "Send", "Width", ""], |f| f.remote.width[0].to_string()),
    ("REMOTE_RECV_WIDTH", ["Remote", "Recv", "Width", ""], |f| f.remote.width[1].to_string()),
    ("REMOTE_SEND_DIRTY_COUNT", ["Remote", "Send", "Dirty", "Count"], |_| none()),
    ("REMOTE_RECV_DIRTY_COUNT", ["Remote", "Recv", "Dirty", "Count"], |_| none()),
    ("REMOTE_RECV_CLEAN_COUNT", ["Remote", "Recv", "Clean", "Count"], |_| none()),
    ("REMOTE_NODELAY", ["Remote", "NODELAY", "", ""], |f| u8::from(f.remote.nodelay).to_string()),
    ("REMOTE_CORK", ["Remote", "Cork", "", ""], |f| u8::from(f.remote.cork).to_string()),
    ("LOCAL_SYSNAME", ["Local", "Sysname", "", ""], |_| gone()),
    ("LOCAL_SYSTEM_MODEL", ["Local", "System", "Model", ""], |_| gone()),
    ("LOCAL_RELEASE", ["Local", "Release", "", ""], |_| gone()),
    ("LOCAL_VERSION", ["Local", "Version", "", ""], |_| gone()),
    ("LOCAL_MACHINE", ["Local", "Machine", "", ""], |_| gone()),
    ("REMOTE_SYSNAME", ["Remote", "Sysname", "", ""], |_| gone()),
    ("REMOTE_SYSTEM_MODEL", ["Remote", "System", "Model", ""], |_| gone()),
    ("REMOTE_RELEASE", ["Remote", "Release", "", ""], |_| gone()),
    ("REMOTE_VERSION", ["Remote", "Version", "", ""], |_| gone()),
    ("REMOTE_MACHINE", ["Remote", "Machine", "", ""], |_| gone()),
    ("LOCAL_INTERFACE_NAME", ["Local", "Interface", "Name", ""], |_| gone()),
    ("LOCAL_INTERFACE_VENDOR", ["Local", "Interface", "Vendor", ""], |_| no_device()),
    ("LOCAL_INTERFACE_DEVICE", ["Local", "Interface", "Device", ""], |_| no_device()),
    ("LOCAL_INTERFACE_SUBVENDOR", ["Local", "Interface", "Subvendor", ""], |_| no_device()),
    ("LOCAL_INTERFACE_SUBDEVICE", ["Local", "Interface", "Subdevice", ""], |_| no_device()),
    ("LOCAL_DRIVER_NAME", ["Local", "Driver", "Name", ""], |_| gone()),
    ("LOCAL_DRIVER_VERSION", ["Local", "Driver", "Version", ""], |_| gone()),
    ("LOCAL_DRIVER_FIRMWARE", ["Local", "Driver", "Firmware", ""], |_| gone()),
    ("LOCAL_DRIVER_BUS", ["Local", "Driver", "Bus", ""], |_| gone()),
    ("LOCAL_INTERFACE_SLOT", ["Local", "Interface", "Slot", ""], |_| gone()),
    ("REMOTE_INTERFACE_NAME", ["Remote", "Interface", "Name", ""], |_| gone()),
    ("REMOTE_INTERFACE_VENDOR", ["Remote", "Interface", "Vendor", ""], |_| no_device()),
    ("REMOTE_INTERFACE_DEVICE", ["Remote", "Interface", "Device", ""], |_| no_device()),
    ("REMOTE_INTERFACE_SUBVENDOR", ["Remote", "Interface", "Subvendor", ""], |_| no_device()),
    ("REMOTE_INTERFACE_SUBDEVICE", ["Remote", "Interface", "Subdevice", ""], |_| no_device()),
    ("REMOTE_DRIVER_NAME", ["Remote", "Driver", "Name", ""], |_| gone()),
    ("REMOTE_DRIVER_VERSION", ["Remote", "Driver", "Version", ""], |_| gone()),
    ("REMOTE_DRIVER_FIRMWARE", ["Remote", "Driver", "Firmware", ""], |_| gone()),
    ("REMOTE_DRIVER_BUS", ["Remote", "Driver", "Bus", ""], |_| gone()),
    ("REMOTE_INTERFACE_SLOT", ["Remote", "Interface", "Slot", ""], |_| gone()),
    ("LOCAL_INTERVAL_USECS", ["Local", "Interval", "Usecs", ""], |_| zero()),
    ("LOCAL_INTERVAL_BURST", ["Local", "Interval", "Burst", ""], |_| zero()),
    ("REMOTE_INTERVAL_USECS", ["Remote", "Interval", "Usecs", ""], |_| zero()),
    ("REMOTE_INTERVAL_BURST", ["Remote", "Interval", "Burst", ""], |_| zero()),
    ("LOCAL_SECURITY_TYPE_ID", ["Local", "OS", "Security", "Type ID"], |_| zero()),
    ("LOCAL_SECURITY_TYPE", ["Local", "OS", "Security", "Type"], |_| gone()),
    ("LOCAL_SECURITY_ENABLED_NUM", ["Local", "OS", "Security", "Enabled Num"], |_| zero()),
    ("LOCAL_SECURITY_ENABLED", ["Local", "OS", "Security", "Enabled"], |_| gone()),
    ("LOCAL_SECURITY_SPECIFIC", ["Local", "OS", "Security", "Specific"], |_| gone()),
    ("REMOTE_SECURITY_TYPE_ID", ["Remote", "OS", "Security", "Type"], |_| zero()),
    ("REMOTE_SECURITY_TYPE", ["Remote", "OS", "Security", "Type"], |_| gone()),
    ("REMOTE_SECURITY_ENABLED_NUM", ["Remote", "OS", "Security", "Enabled"], |_| zero()),
    ("REMOTE_SECURITY_ENABLED", ["Remote", "OS", "Security", "Enabled"], |_| gone()),
    ("REMOTE_SECURITY_SPECIFIC", ["Remote", "OS", "Security", "Specific"], |_| gone()),
    ("RESULT_BRAND", ["Result", "Tag", "", ""], |f| format!("\"{}\"", f.brand)),
    ("UUID", ["Test", "UUID", "", ""], |f| f.uuid.clone()),
    ("MIN_LATENCY", ["Minimum", "Latency", "Microseconds", ""], |f| f.latency.min.to_string()),
    ("MAX_LATENCY", ["Maximum", "Latency", "Microseconds", ""], |f| f.latency.max.to_string()),
    ("P50_LATENCY", ["50th", "Percentile", "Latency", "Microseconds"], |f| f.latency.percentiles[0].to_string()),
    ("P90_LATENCY", ["90th", "Percentile", "Latency", "Microseconds"], |f| f.latency.percentiles[1].to_string()),
    ("P99_LATENCY", ["99th", "Percentile", "Latency", "Microseconds"], |f| f.latency.percentiles[2].to_string()),
    ("MEAN_LATENCY", ["Mean", "Latency", "Microseconds", ""], |f| two(f.latency.mean)),
    ("STDDEV_LATENCY", ["Stddev", "Latency", "Microseconds", ""], |f| two(f.latency.stddev)),
    ("LOCAL_SOCKET_PRIO", ["Local", "Socket", "Priority", ""], |f| f.local.priority.to_string()),
    ("REMOTE_SOCKET_PRIO", ["Remote", "Socket", "Priority", ""], |f| f.remote.priority.to_string()),
    ("LOCAL_SOCKET_TOS", ["Local", "Socket", "TOS", ""], |f| format!("0x{:02x}", f.local.tos)),
    ("REMOTE_SOCKET_TOS", ["Remote", "Socket", "TOS", ""], |f| format!("0x{:02x}", f.remote.tos)),
    ("LOCAL_CONG_CONTROL", ["Local", "Congestion", "Control", "Algorithm"], |f| f.local.congestion.clone()),
    ("REMOTE_CONG_CONTROL", ["Remote", "Congestion", "Control", "Algorithm"], |f| f.remote.congestion.clone()),
    ("LOCAL_FILL_FILE", ["Local", "Fill", "File", ""], |f| f.local.fill_file.clone()),
    ("REMOTE_FILL_FILE", ["Remote", "Fill", "File", ""], |f| f.remote.fill_file.clone()),
    ("COMMAND_LINE", ["Command", "Line", "", ""], |f| format!("\"{}\"", f.command_line)),
    ("OUTPUT_END", ["This", "Is", "The", "End"], |_| String::new()),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_found_by_name_and_by_header() {
        assert_eq!(
            Selector::named("throughput_units").map(Selector::title).as_deref(),
            Some("Throughput Units")
        );
        assert_eq!(Selector::named("local send socket size final").map(Selector::name), Some("LSS_SIZE_END"));
        assert!(Selector::named("nothing").is_none());
        assert_eq!(Selector::all().count(), 175);
        let mut names: Vec<_> = Selector::all().map(Selector::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 175);
        assert_eq!(Selection::all().iter().count(), 172);
    }

    #[test]
    fn selections_have_blocks_and_say_what_they_do_not_know() {
        let (selection, unknown) = Selection::parse("throughput, foo;;ELAPSED_TIME\nDIRECTION,bar");
        let blocks: Vec<Vec<_>> =
            selection.0.iter().map(|row| row.iter().map(|one| one.name()).collect()).collect();
        assert_eq!(blocks, [vec!["THROUGHPUT"], vec!["ELAPSED_TIME"], vec!["DIRECTION"]]);
        assert_eq!(unknown, ["foo", "bar"]);
    }
}
