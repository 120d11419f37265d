//! Sensors that report to a CoAP server (RFC 7252): a plugin of the compile world. netdyno compiles its scenario once; then
//! it costs nothing a frame, on any engine.

use plugin_sdk::options::{Addresses, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::bytes;
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be set. The comments are what `netdyno plugin info` shows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Addresses of sensors (IPv4 or IPv6).
    sensors: Addresses,
    /// The server.
    server: Addresses,
    /// Resources that are reported to, one segment of a path each. They take turns.
    #[schemars(length(min = 1, max = 20))]
    resources: Vec<String>,
    /// Share of reports that want an acknowledgement, in percent.
    #[schemars(range(max = 100))]
    confirmable: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sensors: Addresses::known("10.0.0.0/16"),
            server: Addresses::known("198.18.0.1"),
            resources: vec!["temperature".to_owned(), "humidity".to_owned()],
            confirmable: 50,
        }
    }
}

/// The plugin.
#[derive(Debug)]
pub struct CoapSensors;

impl Compile for CoapSensors {
    type Options = Options;
    const NAME: &'static str = "coap_sensors";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const ABOUT: &'static str = "Sensors that report measurements to a CoAP server, confirmable or not.";

    fn examples() -> Vec<Example> {
        vec![
            Example::new("65,536 sensors of two kinds", serde_json::json!({})),
            Example::new(
                "One resource, all confirmable, IPv6",
                serde_json::json!({
                    "sensors": "2001:2::/112", "server": "2001:2:0:1::1", "resources": ["door"], "confirmable": 100
                }),
            ),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let mut streams = Vec::new();
        for (at, resource) in o.resources.iter().enumerate() {
            let short = (1..=12).contains(&resource.len()) && resource.is_ascii();
            if !short {
                return Err(Fault::at(format!("/resources/{at}"), "1 to 12 ASCII characters"));
            }
            for (kind, share) in [(0x40, o.confirmable), (0x50, 100 - o.confirmable.min(100))] {
                if share == 0 {
                    continue;
                }
                // Version 1, type, token of 4 bytes; POST; message ID; token; Uri-Path; the marker; a number that varies.
                let report = bytes()
                    .u8(kind | 4)
                    .u8(2)
                    .vary(16, 0..=65535)
                    .vary(32, any())
                    .u8(0xb0 | resource.len() as u8)
                    .text(resource)
                    .u8(0xff)
                    .text("2")
                    .digits(1)
                    .text(".")
                    .digits(1);
                let packet = ip(&o.sensors, &o.server, "/server")? / udp().sport(5683).dport(5683) / report;
                let name = format!("{resource}{}", if kind == 0x40 { " confirmable" } else { "" });
                streams.push(Stream::new(packet).named(name).weight(share));
            }
        }
        Ok(Scenario::new(streams))
    }
}

plugin_sdk::export_compile!(CoapSensors);

#[cfg(test)]
mod tests {
    use super::*;
    use plugin_sdk::testing;
    use serde_json::json;

    #[test]
    fn it_describes_itself_and_takes_its_examples() {
        testing::check::<CoapSensors>();
    }

    #[test]
    fn each_resource_has_both_kinds() {
        let scenario = testing::compile::<CoapSensors>(&json!({ "resources": ["door"] }));
        assert_eq!(scenario.streams.len(), 2);
        assert!(scenario.streams[0].frame.starts_with("ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=5683, dport=5683)"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let fault = testing::refusal::<CoapSensors>(&json!({ "resources": ["ok", ""] }));
        assert_eq!(fault.path, "/resources/1");
    }
}
