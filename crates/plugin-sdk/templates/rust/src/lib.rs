//! Requests of many clients to a UDP service.

use plugin_sdk::options::{Addresses, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::bytes;
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be set. The comments are what users read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Addresses of clients.
    clients: Addresses,
    /// Address of the service.
    service: Addresses,
    /// Port of the service.
    #[schemars(range(min = 1))]
    port: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clients: Addresses::known("10.0.0.0/16"),
            service: Addresses::known("198.18.0.1"),
            port: 7,
        }
    }
}

/// The plugin.
#[derive(Debug)]
pub struct Plugin;

impl Compile for Plugin {
    type Options = Options;
    const NAME: &'static str = "PLUGIN_NAME";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const ABOUT: &'static str = "Requests of many clients to a UDP service, each with a number of chance.";

    fn examples() -> Vec<Example> {
        vec![Example::new("Clients of a /24", serde_json::json!({ "clients": "10.1.0.0/24" }))]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let request = bytes().text("request ").vary(32, any());
        let packet = ip(&o.clients, &o.service, "/service")? / udp().sport(1024..=65535).dport(o.port) / request;
        Ok(Scenario::of(Stream::new(packet).named("requests")))
    }
}

plugin_sdk::export_compile!(Plugin);

#[cfg(test)]
mod tests {
    use super::*;
    use plugin_sdk::testing;

    #[test]
    fn it_describes_itself_and_takes_its_examples() {
        testing::check::<Plugin>();
    }

    #[test]
    fn the_port_is_where_it_was_asked_for() {
        let scenario = testing::compile::<Plugin>(&serde_json::json!({ "port": 4000 }));
        assert!(scenario.streams[0].frame.contains("dport=4000"));
    }
}
