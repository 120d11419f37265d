//! HTTP/1.1 requests (or answers) as segments of established connections, one a segment, in bursts if wanted. Nothing is
//! answered and no connection is opened: what inspects or counts such segments is loaded, not what terminates them.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::tcp;
use plugin_sdk::payload::{bytes, text};
use plugin_sdk::scenario::Burst;
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// Who speaks.
    Side {
        /// Clients: requests.
        Client = "client",
        /// Servers: answers.
        Server = "server",
    }
}

options! {
    /// Options of http.
    {
        /// Addresses of clients (IPv4 or IPv6).
        clients: Addresses = addresses("10.0.0.0/16"),
        /// Addresses of servers, of the same IP version.
        servers: Addresses = addresses("198.18.0.80"),
        /// Ports of clients.
        client_port: Values = values("1024..65535"),
        /// The server's port.
        #[schemars(range(min = 1))]
        port: u16 = 80,
        /// Who speaks.
        side: Side = Side::Client,
        /// The host that is asked.
        host: String = "www.example.com".to_owned(),
        /// What is asked for: a method and a path each. They take turns.
        #[schemars(length(min = 1, max = 100))]
        requests: Vec<String> = vec![
            "GET /".to_owned(),
            "GET /index.html".to_owned(),
            "GET /images/logo.png".to_owned(),
            "POST /api/v1/orders".to_owned(),
        ],
        /// What clients call themselves.
        user_agent: String = "netdyno".to_owned(),
        /// Further header lines, `Name: value` each.
        #[schemars(length(max = 50))]
        headers: Vec<String> = vec!["Accept: */*".to_owned()],
        /// Give each request a number of its own in a header line X-Request-Id.
        request_ids: bool = true,
        /// Bytes of the body of POST, PUT and PATCH, and of answers.
        #[schemars(range(max = 8000))]
        body: u16 = 32,
        /// Requests of a burst. 0: no bursts; the run's rate decides.
        burst: u64 = 0,
        /// From the start of one burst to the start of the next, such as 100ms.
        burst_every: String = "100ms".to_owned(),
        /// Within a burst, from request to request. Default: as fast as it goes.
        burst_gap: Option<String> = None,
    }
}

/// Requests.
#[derive(Debug)]
pub struct Http;

impl Compile for Http {
    type Options = Options;
    const NAME: &'static str = "http";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "HTTP/1.1 requests or answers as TCP segments, each complete in itself, evenly or in bursts; connections are neither opened nor answered.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Four different requests of many clients", {}),
            example!("Bursts of 50 requests, 20 a second", {
                "burst": 50, "burst_every": "50ms", "burst_gap": "10us", "requests": ["GET /login", "POST /login"], "body": 64
            }),
            example!("Answers of an IPv6 server with bodies of 1,000 bytes", {
                "side": "server", "clients": "2001:2::/112", "servers": "2001:2:0:1::80", "body": 1000
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let line = |path: String, text: &str| {
            if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
                Err(Fault::at(path, "one line of ASCII characters"))
            } else {
                Ok(())
            }
        };
        line("/host".to_owned(), &o.host)?;
        line("/user_agent".to_owned(), &o.user_agent)?;
        for (at, header) in o.headers.iter().enumerate() {
            line(format!("/headers/{at}"), header)?;
            if !header.contains(':') {
                return Err(Fault::at(format!("/headers/{at}"), "write `Name: value`"));
            }
        }
        let mut streams = Vec::new();
        for (at, request) in o.requests.iter().enumerate() {
            line(format!("/requests/{at}"), request)?;
            let Some((method, path)) = request.split_once(' ').filter(|(_, path)| path.starts_with('/'))
            else {
                return Err(Fault::at(
                    format!("/requests/{at}"),
                    "write a method and a path, such as `GET /`",
                ));
            };
            let client = o.side == Side::Client;
            let has_body = !client || matches!(method, "POST" | "PUT" | "PATCH");
            let mut message = if client {
                text(&format!(
                    "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\n",
                    o.host, o.user_agent
                ))
            } else {
                text("HTTP/1.1 200 OK\r\nServer: netdyno\r\nContent-Type: text/plain\r\n")
            };
            if o.request_ids {
                message = message.text("X-Request-Id: ").digits(10).text("\r\n");
            }
            if client {
                for header in &o.headers {
                    message = message.text(header).text("\r\n");
                }
            }
            if has_body {
                message = message.text(&format!("Content-Length: {}\r\n", o.body));
            }
            message = message.text("\r\n");
            if has_body {
                message = message.append(&bytes().put(&vec![b'x'; usize::from(o.body)]));
            }
            let (from, to) = if client { (&o.clients, &o.servers) } else { (&o.servers, &o.clients) };
            let segment = if client {
                tcp().sport(&o.client_port).dport(o.port)
            } else {
                tcp().sport(o.port).dport(&o.client_port)
            };
            let segment = segment.flags("PA").seq(any()).ack(any()).window(502);
            let mut stream =
                Stream::new(ip(from, to, "/servers")?.dont_fragment() / segment / message).named(request);
            if o.burst > 0 {
                let every = o.burst_every.clone();
                stream.burst =
                    Some(Burst { frames: o.burst, gap: o.burst_gap.clone(), every, ..Burst::default() });
            }
            streams.push(stream);
        }
        Ok(Scenario::new(streams))
    }
}
