//! Options behind `--`: those of a test.

use super::options::{Options, Wanted, largest, place};
use super::words::{Getopt, number, pair, pair_explicit, size};
use anyhow::{Context, Result, bail};
use endpoint::netperf::figures::Flow;
use endpoint::netperf::layout::Form;
use endpoint::netperf::omni::flag;
use report::units::printable;
use std::time::Duration;

/// What an omni test is made of.
#[derive(Default)]
struct Made {
    direction: Option<[bool; 2]>,
    implied: [bool; 2],
    each: bool,
    datagrams: Option<bool>,
    /// What the other end sends and receives at once.
    remote_sizes: [Option<u32>; 2],
}

/// Reads them.
pub fn read(mut o: Options, mut getopt: Getopt) -> Result<Wanted> {
    let omni = o.test == "OMNI";
    let mut made = Made::default();
    while let Some((letter, value)) = getopt.next()? {
        let text = value.as_deref().unwrap_or_default();
        let number_of = |most: u32| size(&letter.to_string(), text, most);
        match letter {
            'h' => return Ok(Wanted::Help),
            'k' | 'o' | 'O' => {
                o.form = match letter {
                    'k' => Form::Keyvals,
                    'o' => Form::Csv,
                    _ => Form::Human,
                };
                o.selection = getopt.take_if(|word| !word.starts_with('-'));
                if o.selection.as_deref() == Some("?") {
                    return Ok(Wanted::Selectors { one_line: letter != 'O' });
                }
            }
            '4' | '6' | 'H' | 'L' | 'P' | 'p' => ends(&mut o, letter, text)?,
            's' | 'S' | 'm' | 'M' | 'r' => sizes(&mut o, &mut made, letter, text)?,
            'b' => o.burst = number_of(65_535)?,
            'D' => o.nodelay = true,
            'C' => o.cork = true,
            'K' => {
                let (own, theirs) = pair(text);
                o.congestion = own.map(str::to_owned);
                o.request.congestion = theirs.unwrap_or_default().to_owned();
                if o.request.congestion.len() > 15 {
                    bail!("-K {}: names of congestion controls have up to 15 bytes", printable(text));
                }
            }
            'q' => {
                let rate = number("q", text)?;
                o.pacing = Some(
                    u64::try_from(rate)
                        .ok()
                        .filter(|rate| *rate > 0)
                        .with_context(|| format!("-q {}: bytes a second", printable(text)))?,
                );
            }
            'G' => o.mss = Some(number_of(65_535)?),
            'e' => {
                let seconds = number_of(86_400)?;
                o.loses_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
            }
            'f' => o.dont_fragment = true,
            'F' => o.fast_open = true,
            'a' => o.request.flags |= flag::DEFER_ACCEPT,
            'R' => o.dont_route = number("R", text)? == 0,
            'W' => o.request.send_width = number_of(1 << 20)? as i32,
            'V' => o.avoid_copies = true,
            'u' => o.uuid = Some(printable(text)),
            // send(2) and write(2) are one to the kernel; UDP sockets are connected here in any case.
            'I' | 'n' | 'N' => {}
            'c' => made.each = true,
            'd' if omni => made.direction = Some(direction(text)?),
            // Others have theirs by name.
            'd' => {}
            't' => made.datagrams = Some(socket_type(text)?),
            'T' => made.datagrams = Some(protocol(text)?),
            _ => bail!(refused(letter)),
        }
    }
    if omni {
        compose(&mut o, &made)?;
    } else if made.datagrams.is_some_and(|datagrams| datagrams != o.datagrams) {
        bail!("-T: the test's name says by what it is sent; `-t omni` takes any");
    }
    finish(&mut o, made.remote_sizes)?;
    Ok(Wanted::Test(Box::new(o)))
}

/// Where data goes from and to: addresses and ports.
fn ends(o: &mut Options, letter: char, text: &str) -> Result<()> {
    match letter {
        '4' | '6' => (o.data.v6, o.own_data.v6) = (Some(letter == '6'), Some(letter == '6')),
        'H' => place("H", text, &mut o.data)?,
        'L' => place("L", text, &mut o.own_data)?,
        'P' => {
            let (own, theirs) = pair(text);
            let read = |text: Option<&str>| text.map(|text| size("P", text, 65_535)).transpose();
            o.own_data.port = read(own)?.map(|port| port as u16);
            o.request.data_port = read(theirs)?.unwrap_or(0);
        }
        'p' => {
            let (least, most) = pair(text);
            let read =
                |text: Option<&str>, other: u32| text.map_or(Ok(other), |text| size("p", text, 65_535));
            let (least, most) = (read(least, 5000)?, read(most, 65_535)?);
            if least == 0 || most < least {
                bail!("-p {}: ports from 1 to 65535 are expected, the lower one first", printable(text));
            }
            o.ports = Some((least as u16, most as u16));
        }
        _ => {}
    }
    Ok(())
}

/// Of sockets' buffers the sizes for sending and for receiving; none where zero is given.
fn buffers(option: &str, text: &str) -> Result<[Option<u32>; 2]> {
    let (sends, receives) = pair(text);
    let read = |text: Option<&str>| text.map(|text| size(option, text, i32::MAX as u32 / 2)).transpose();
    Ok([read(sends)?, read(receives)?].map(|size| size.filter(|size| *size > 0)))
}

/// How much is sent and received at once, and what sockets have room for.
fn sizes(o: &mut Options, made: &mut Made, letter: char, text: &str) -> Result<()> {
    match letter {
        's' => o.own_buffers = buffers("s", text)?,
        'S' => {
            let [sends, receives] = buffers("S", text)?.map(|size| size.map_or(-1, |size| size as i32));
            (o.request.send_buffer, o.request.recv_buffer) = (sends, receives);
        }
        // Local send size, remote send size.
        'm' => {
            let (own, theirs) = pair_explicit(text);
            let most = largest(false);
            if let Some(own) = own {
                o.own_sizes[0] = size("m", own, most)?;
                made.implied[0] = true;
            }
            if let Some(theirs) = theirs {
                made.remote_sizes[0] = Some(size("m", theirs, most)?);
                made.implied[1] = true;
            }
        }
        // Remote receive size, local receive size.
        'M' => {
            let (theirs, own) = pair_explicit(text);
            let most = largest(false);
            if let Some(theirs) = theirs {
                made.remote_sizes[1] = Some(size("M", theirs, most)?);
                made.implied[0] = true;
            }
            if let Some(own) = own {
                o.own_sizes[1] = size("M", own, most)?;
                made.implied[1] = true;
            }
        }
        'r' => {
            let (request, response) = pair(text);
            let most = largest(false);
            o.request_size = request.map_or(Ok(o.request_size), |text| size("r", text, most))?;
            o.response_size = response.map_or(Ok(o.response_size), |text| size("r", text, most))?;
            if o.request_size == 0 || o.response_size == 0 {
                bail!("-r {}: requests and responses have at least 1 byte", printable(text));
            }
            made.implied = [true; 2];
        }
        _ => {}
    }
    Ok(())
}

fn refused(letter: char) -> String {
    let (what, mend) = match letter {
        'B' => ("IP_PKTINFO", "leave it out: answers leave from the address that was asked"),
        'g' => ("SO_DEBUG", "leave it out: Linux does nothing with it"),
        'i' => ("an interval of looking", "leave it out, as netperf itself does"),
        'j' => ("parallel connections", "give `netdyno endpoint tcp-stream -P N`, or run several"),
        'l' => ("multicast", "`netdyno send` sends to groups"),
        'U' => (
            "connecting again and again",
            "leave it out: a connection is waited for as long as the kernel does",
        ),
        'w' => ("sends in intervals", "give a rate: -q BYTES_PER_SECOND"),
        _ => ("this", "leave it out"),
    };
    format!("-{letter} (behind --): {what} is not supported: {mend}")
}

/// Does it send, does it receive?
fn direction(text: &str) -> Result<[bool; 2]> {
    let mut ways = [false; 2];
    for word in text.split(['|', '+']) {
        match word.to_ascii_lowercase().as_str() {
            "0" | "cc" | "connection" => {}
            "2" | "send" | "xmit" | "transmit" | "stream" => ways[0] = true,
            "4" | "recv" | "receive" | "maerts" => ways[1] = true,
            "6" | "rr" | "request/response" => ways = [true; 2],
            _ => bail!("-d {}: send (2), recv (4) or rr (6)", printable(text)),
        }
    }
    Ok(ways)
}

fn socket_type(text: &str) -> Result<bool> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "stream" | "1" => false,
        "dgram" | "datagram" | "2" => true,
        _ => bail!("-t {}: stream or dgram", printable(text)),
    })
}

fn protocol(text: &str) -> Result<bool> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "tcp" | "6" => false,
        "udp" | "17" => true,
        _ => bail!("-T {}: tcp or udp is supported", printable(text)),
    })
}

fn compose(o: &mut Options, made: &Made) -> Result<()> {
    o.datagrams = made.datagrams.unwrap_or(false);
    o.flow = match (made.direction.unwrap_or(made.implied), made.each) {
        ([true, true], false) => Flow::Transact,
        ([true, true], true) => Flow::TransactEach,
        ([false, false], true) => Flow::ConnectEach,
        ([true, false] | [false, false], false) => Flow::Send,
        ([false, true], false) => Flow::Receive,
        _ => bail!("-c: tests of connections send and receive (-d rr), or do neither"),
    };
    if made.each && o.datagrams {
        bail!("-c: UDP has no connections; give -T tcp");
    }
    Ok(())
}

/// What follows from all of them.
fn finish(o: &mut Options, remote_sizes: [Option<u32>; 2]) -> Result<()> {
    let most = largest(o.datagrams);
    let sizes = [
        ("-m", Some(o.own_sizes[0])),
        ("-M", Some(o.own_sizes[1])),
        ("-m", remote_sizes[0]),
        ("-M", remote_sizes[1]),
        ("-r", Some(o.request_size).filter(|_| o.flow.is_transactions())),
        ("-r", Some(o.response_size).filter(|_| o.flow.is_transactions())),
    ];
    for (option, size) in sizes {
        if let Some(size) = size.filter(|size| *size > most) {
            bail!("{option} {size}: that is more bytes than a datagram holds: {most}");
        }
    }
    if o.datagrams && o.length < 0 && !o.flow.is_transactions() {
        bail!("-l {}: datagrams may be lost, so that their number ends no test: give seconds", o.length);
    }
    if o.burst > 0 && o.flow != Flow::Transact {
        bail!("-b: only TCP_RR and UDP_RR have requests in flight");
    }
    let [sends, receives] =
        remote_sizes.map(|size| size.filter(|size| *size > 0).map_or(-1, |size| size as i32));
    (o.request.send_size, o.request.receive_size) = (sends, receives);
    let flags = [
        // With it comes the name of the congestion control.
        (!o.dont_route, flag::ROUTING_ALLOWED),
        (o.nodelay, flag::NODELAY),
        (o.keepalive, flag::KEEPALIVE),
        (o.fast_open, flag::FASTOPEN),
        (o.dont_fragment, flag::MTU_DISCOVER),
    ];
    for (is, flag) in flags {
        if is {
            o.request.flags |= flag;
        }
    }
    o.request.avoid = [i32::from(o.avoid_copies); 2];
    Ok(())
}
