//! Command lines of iperf3 and netperf at `netdyno endpoint`: there the host and the test are options, here they are words.

use super::super::mistyped::{everyday, line};
use super::translated;
use clap::Command;
use spec::{EndpointTest, Word as _};

/// What a word names as a test: ours in any spelling, netperf's, and what people call them.
pub fn test(word: &str) -> Option<EndpointTest> {
    use EndpointTest as Test;
    let plain = word.to_ascii_lowercase().replace('_', "-");
    Some(match plain.as_str() {
        // netperf -t TCP_SENDFILE is tcp-stream --method sendfile.
        "tcp" | "stream" | "throughput" | "bandwidth" | "upload" | "tcp-sendfile" | "iperf" | "iperf3" => {
            Test::TcpStream
        }
        "reverse" | "download" | "maerts" | "tcp-reverse" => Test::TcpMaerts,
        "bidir" | "bidirectional" | "duplex" => Test::TcpBidir,
        "udp" => Test::UdpStream,
        "udp-reverse" => Test::UdpMaerts,
        "rr" | "ping" | "rtt" | "latency" | "pingpong" | "ping-pong" | "transactions" => Test::TcpRr,
        "udp-ping" | "udp-latency" => Test::UdpRr,
        "crr" => Test::TcpCrr,
        "cc" => Test::TcpCc,
        "connect" | "connections" | "conn" | "cps" | "connection" => Test::ConnectionRate,
        "bufferbloat" | "rrul" | "bloat" | "responsiveness" | "rpm" => Test::LatencyUnderLoad,
        "twamp" | "twamp-light" | "twping" => Test::Stamp,
        plain => Test::named(plain)?,
    })
}

/// A command line of one of those tools.
#[derive(Default)]
struct Line {
    test: Option<EndpointTest>,
    host: Option<String>,
    udp: bool,
    reverse: bool,
    both: bool,
    serve: bool,
    buffers: bool,
    port: Option<String>,
    /// The host is behind an option, as those tools have it.
    is_theirs: bool,
    /// What is behind `-l`.
    length: Option<String>,
    rest: Vec<String>,
}

impl Line {
    fn read(words: &[String]) -> Line {
        let mut line = Line::default();
        let mut words = words.iter().cloned().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-c" | "-H" | "--client" | "--host" => {
                    (line.host, line.is_theirs) = (value(&mut words), true)
                }
                "-t" => match value(&mut words) {
                    Some(name) if test(&name).is_some() => line.test = test(&name),
                    time => line.rest.extend(std::iter::once(word).chain(time)),
                },
                "-u" | "--udp" => line.udp = true,
                "-R" | "--reverse" => line.reverse = true,
                "--bidir" => line.both = true,
                // netperf's has a size behind it.
                "-s" if value_is_size(words.peek()) => {
                    line.buffers = true;
                    words.next();
                }
                "-s" | "--server" => line.serve = true,
                "-l" => line.length = value(&mut words),
                word if !word.starts_with('-') && line.test.is_none() && test(word).is_some() => {
                    line.test = test(word);
                }
                word if !word.starts_with('-') && line.host.is_none() => line.host = Some(word.to_owned()),
                // A port behind the host, as a word or as iperf3's and netperf's option.
                word if word.parse::<u16>().is_ok() && line.host.is_some() => {
                    line.port = Some(word.to_owned())
                }
                "--port" => line.port = value(&mut words),
                "-p" if line.is_theirs => line.port = value(&mut words),
                // Behind it are netperf's options of its test.
                "--" => {
                    for word in words.by_ref() {
                        let (request, response) = word.split_once(',').unwrap_or((&word, &word));
                        match line.rest.last().map(String::as_str) {
                            Some("-r") => {
                                line.rest.pop();
                                let sizes = ["--request", request, "--response", response];
                                line.rest.extend(sizes.map(str::to_owned));
                            }
                            _ if word == "-m" => line.rest.push("--size".to_owned()),
                            _ => line.rest.push(word),
                        }
                    }
                }
                _ => {
                    let alone = word.starts_with("--") && word.contains('=');
                    let value = if alone { None } else { value(&mut words) };
                    line.rest.extend(std::iter::once(word).chain(value));
                }
            }
        }
        if let (Some(host), Some(port)) = (&mut line.host, &line.port) {
            *host = format!("{host}:{port}");
        }
        line
    }

    /// The test that is meant.
    fn meant(&self) -> EndpointTest {
        use EndpointTest as Test;
        match self.test.unwrap_or(if self.udp { Test::UdpStream } else { Test::TcpStream }) {
            Test::TcpStream | Test::UdpStream if self.both && !self.udp => Test::TcpBidir,
            Test::TcpStream if self.udp => {
                if self.reverse {
                    Test::UdpMaerts
                } else {
                    Test::UdpStream
                }
            }
            Test::TcpRr if self.udp => Test::UdpRr,
            Test::TcpStream if self.reverse => Test::TcpMaerts,
            Test::UdpStream if self.reverse => Test::UdpMaerts,
            test => test,
        }
    }
}

/// The value behind an option, if one is there.
fn value(words: &mut std::iter::Peekable<impl Iterator<Item = String>>) -> Option<String> {
    words.next_if(|next| !next.starts_with('-'))
}

fn value_is_size(next: Option<&String>) -> bool {
    next.is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()))
}

/// Options that only those tools have, or that are not called by one name alone.
const KNOWN: [&str; 14] = [
    "-c",
    "-H",
    "--client",
    "--host",
    "-u",
    "--udp",
    "-R",
    "--reverse",
    "--bidir",
    "-t",
    "-l",
    "-s",
    "--server",
    "--port",
];

/// The whole line for an option of those tools.
pub fn option(verb: &str, command: &Command, typed: &str, words: &[String], at: usize) -> Option<String> {
    if verb != "endpoint"
        || !KNOWN.contains(&typed) && super::foreign(verb, command, typed, Some("1")).is_none()
    {
        return None;
    }
    let read = Line::read(words.get(at..)?);
    if read.buffers {
        return Some(
            "socket buffers are --send-buffer BYTES and --receive-buffer BYTES, the server's --remote-send-buffer and \
             --remote-receive-buffer"
                .to_owned(),
        );
    }
    if read.serve {
        return Some("the far end is: netdyno endpoint serve".to_owned());
    }
    let meant = read.meant();
    let host = read.host.clone().unwrap_or_else(|| "HOST".to_owned());
    let whole = |more: &[String]| {
        let rest: Vec<String> = read.rest.iter().chain(more).cloned().collect();
        line(&[], &["endpoint", meant.name(), host.as_str()], &translated(verb, command, &rest))
    };
    let Some(length) = &read.length else {
        let ours = super::foreign(verb, command, typed, Some("1")).filter(|_| !KNOWN.contains(&typed));
        let ours = ours.map_or_else(|| "here it is".to_owned(), |(_, ours)| format!("here it is `--{ours}`"));
        return Some(format!("{ours}: {}", whole(&[])));
    };
    let seconds = length.chars().all(|c| c.is_ascii_digit()).then(|| format!("{length}s"));
    let size = || whole(&["--size".to_owned(), length.clone()]);
    Some(match seconds {
        Some(seconds) if meant.transacts() => {
            format!("netperf's -l is the duration: {}", whole(&["--duration".to_owned(), seconds]))
        }
        Some(seconds) => format!(
            "netperf's -l is the duration: {}; iperf3's is the size of a message: {}",
            whole(&["--duration".to_owned(), seconds]),
            size()
        ),
        None => format!("here it is `--size`: {}", size()),
    })
}

/// The whole line for words that are too many: a port behind the host, options of netperf's tests behind `--`.
pub fn conflict(verb: &str, command: &Command, words: &[String], at: usize) -> Option<String> {
    let own = words.get(at..).filter(|_| verb == "endpoint")?;
    let read = Line::read(own);
    let (test, host) = (read.test?, read.host?);
    let told =
        [vec![verb.to_owned(), test.name().to_owned(), host], translated(verb, command, &read.rest)].concat();
    let is_other = told.get(1..) != Some(own);
    (is_other && everyday::can_be_typed(&told))
        .then(|| format!("it is written so: {}", line(&told, &[], &[])))
}

/// What a word means in the place of a test: the test, or that a host stands there.
pub fn in_tests_place(typed: &str, words: &[String], at: usize) -> Option<String> {
    let behind = words.get(at..)?;
    let place = behind.iter().position(|word| word == typed)?;
    let others = |test: &str| {
        let mut words = behind.to_vec();
        if let Some(word) = words.get_mut(place) {
            *word = test.to_owned();
        }
        line(&[], &["endpoint"], &words)
    };
    if matches!(typed, "server" | "server-mode" | "listen" | "daemon") {
        return Some("the far end is: netdyno endpoint serve".to_owned());
    }
    if let Some(test) = test(typed) {
        return Some(format!("the test is called: {}", others(test.name())));
    }
    let swapped = behind.get(place + 1).and_then(|next| test(next));
    let is_host = typed.contains(['.', ':']) || matches!(typed, "localhost" | "HOST");
    if let Some(test) = swapped {
        let mut words = behind.to_vec();
        words.drain(place..=place + 1);
        let line = line(&[], &["endpoint", test.name(), typed], &words);
        return Some(format!("the test stands before the host: {line}"));
    }
    is_host.then(|| {
        let mut words = behind.to_vec();
        words.insert(place, EndpointTest::TcpStream.name().to_owned());
        format!("the test stands before the host, such as {}", line(&[], &["endpoint"], &words))
    })
}
