//! Syslog messages of many hosts to a collector (RFC 5424, RFC 3164, RFC 5426).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::text;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// How messages are written.
    Format {
        /// RFC 5424.
        Rfc5424 = "rfc5424",
        /// RFC 3164, the older BSD format.
        Rfc3164 = "rfc3164",
    }
}

/// A severity.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// 0 (emergency) to 7 (debug).
    #[schemars(range(max = 7))]
    pub severity: u8,
    /// Its share of the messages.
    #[schemars(range(min = 1, max = 1000))]
    pub share: u32,
}

options! {
    /// Options of syslog.
    {
        /// Addresses of the hosts that report (IPv4 or IPv6).
        hosts: Addresses = addresses("10.0.0.0/24"),
        /// The collector.
        collector: Addresses = addresses("198.18.0.14"),
        /// Ports of the hosts.
        src_port: Values = values("1024..65535"),
        /// The collector's port.
        #[schemars(range(min = 1))]
        port: u16 = 514,
        /// How messages are written.
        format: Format = Format::Rfc5424,
        /// Facility: 0 (kernel) to 23 (local7).
        #[schemars(range(max = 23))]
        facility: u8 = 16,
        /// Severities and their shares.
        #[schemars(length(min = 1, max = 8))]
        severities: Vec<Level> = vec![
            Level { severity: 6, share: 80 },
            Level { severity: 4, share: 15 },
            Level { severity: 3, share: 5 },
        ],
        /// The host's name begins so; a number of `host_digits` digits follows.
        #[schemars(length(min = 1, max = 200))]
        host_name: String = "host-".to_owned(),
        /// Digits of the number in the host's name: 2 are 100 hosts.
        #[schemars(range(max = 6))]
        host_digits: u32 = 2,
        /// The application's name.
        #[schemars(length(min = 1, max = 48))]
        application: String = "netdyno".to_owned(),
        /// Time stamp. It stands still: frames are functions of their number. RFC 5424 takes `-` for none.
        #[schemars(length(min = 1, max = 40))]
        timestamp: String = "-".to_owned(),
        /// The message.
        #[schemars(length(max = 2000))]
        message: String = "connection from 198.51.100.7 port 40022 accepted".to_owned(),
        /// A counting number of ten digits in each message: it shows which are lost.
        sequence: bool = true,
    }
}

/// Messages of many hosts.
#[derive(Debug)]
pub struct Syslog;

impl Compile for Syslog {
    type Options = Options;
    const NAME: &'static str = "syslog";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "Syslog messages of many hosts to a collector, by RFC 5424 or 3164, in a mix of severities, numbered so that losses show.";

    fn examples() -> Vec<Example> {
        vec![
            example!("100 hosts, three severities, RFC 5424", {}),
            example!("BSD format from firewalls, errors only", {
                "format": "rfc3164", "timestamp": "Jan  1 00:00:00", "severities": [{ "severity": 3, "share": 1 }],
                "host_name": "fw", "application": "kernel", "message": "DROP IN=eth0 SRC=203.0.113.9 DST=198.18.0.1 PROTO=TCP DPT=22"
            }),
            example!("IPv6", { "hosts": "2001:2::/120", "collector": "2001:2:0:1::14", "facility": 4 }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        for (path, text) in
            [("/host_name", &o.host_name), ("/application", &o.application), ("/timestamp", &o.timestamp)]
        {
            let blank = path != "/timestamp" && text.contains(' ');
            if blank || text.is_empty() || !text.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
                return Err(Fault::at(path, "printable ASCII characters without blanks"));
            }
        }
        if o.format == Format::Rfc3164 && o.timestamp == "-" {
            return Err(Fault::at("/timestamp", "RFC 3164 needs one, such as `Jan  1 00:00:00`"));
        }
        let mut streams = Vec::new();
        for level in &o.severities {
            let priority = u32::from(o.facility) * 8 + u32::from(level.severity);
            let payload = match o.format {
                Format::Rfc5424 => {
                    let payload = text(&format!("<{priority}>1 {} {}", o.timestamp, o.host_name))
                        .digits(o.host_digits)
                        .text(&format!(" {} 4711 - ", o.application));
                    let payload = if o.sequence {
                        payload.text("[meta sequenceId=\"").digits(10).text("\"] ")
                    } else {
                        payload.text("- ")
                    };
                    payload.text(&o.message)
                }
                Format::Rfc3164 => {
                    let payload = text(&format!("<{priority}>{} {}", o.timestamp, o.host_name))
                        .digits(o.host_digits)
                        .text(&format!(" {}[4711]: ", o.application));
                    let payload = if o.sequence { payload.text("#").digits(10).text(" ") } else { payload };
                    payload.text(&o.message)
                }
            };
            let header = ip(&o.hosts, &o.collector, "/collector")?;
            let packet = header / udp().sport(&o.src_port).dport(o.port) / payload;
            let name = format!("severity {}", level.severity);
            streams.push((Stream::new(packet).named(name), u64::from(level.share)));
        }
        Ok(Scenario::new(proportional(streams)))
    }
}
