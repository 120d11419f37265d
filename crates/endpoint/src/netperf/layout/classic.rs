//! The tables that netperf's tests had before the omni test, and have still.

use crate::netperf::figures::{Figures, Flow, Unit};
use crate::netperf::plan::Transport;
use std::fmt::Write as _;

/// Is CPU use of either side in the result?
fn with_cpu(f: &Figures) -> bool {
    f.local.cpu.is_some() || f.remote.cpu.is_some()
}

/// `-v 0`: one number, that of the rate, or with CPU use of one side its service demand.
pub fn brief(f: &Figures) -> String {
    let side = if f.local.cpu.is_some() { &f.local } else { &f.remote };
    let (demand, method) = (side.service_demand, side.method());
    match (f.flow, with_cpu(f)) {
        (Flow::TransactEach | Flow::ConnectEach, true) => format!("{demand:6.3}\n"),
        (Flow::TransactEach | Flow::ConnectEach, false) => format!("{:7.2}\n", f.throughput),
        (Flow::Send, true) if f.transport == Transport::Udp => format!("{demand:6.2} {method}\n"),
        // The sender's: what was received is in the table.
        (Flow::Send, false) if f.transport == Transport::Udp => {
            format!("{:7.2}\n", f.byte_rate(f.local.bytes_sent))
        }
        (_, true) => format!("{demand:6.3} {method}\n"),
        (_, false) => format!("{:7.2} \n", f.throughput),
    }
}

/// `-v 1`: the table.
pub fn table(f: &Figures, headers: bool) -> String {
    match f.flow {
        Flow::Send if f.transport == Transport::Udp => datagrams(f, headers),
        Flow::Send | Flow::Receive => stream(f, headers),
        _ => transactions(f, headers),
    }
}

fn stream(f: &Figures, headers: bool) -> String {
    let (local, remote) = (&f.local, &f.remote);
    let sends = f.flow == Flow::Send;
    let (receiver, sender) = if sends { (remote, local) } else { (local, remote) };
    let unit = f.byte_unit().word();
    let sizes = format!(
        "{:6} {:6} {:6}    {:<6.2}",
        receiver.recv_buffer[1], sender.send_buffer[1], sender.send_size, f.elapsed
    );
    let mut text = String::new();
    if with_cpu(f) {
        if headers {
            let ways =
                if sends { "Send     Recv     Send    Recv" } else { "Recv     Send     Recv    Send" };
            let _ = write!(
                text,
                "Recv   Send    Send                          Utilization       Service Demand\n\
                 Socket Socket  Message  Elapsed              {ways}\n\
                 Size   Size    Size     Time     Throughput  local    remote   local   remote\n\
                 bytes  bytes   bytes    secs.    {unit:<8}/s  % {}      % {}      us/KB   us/KB\n\n",
                local.method(),
                remote.method()
            );
        }
        let _ = writeln!(
            text,
            "{sizes}     {:7.2}   {:<6.2}   {:<6.2}   {:<6.3}  {:<6.3} {}",
            f.throughput,
            local.util(),
            remote.util(),
            local.service_demand,
            remote.service_demand,
            shown_brand(f, headers)
        );
    } else {
        if headers {
            let _ = write!(
                text,
                "Recv   Send    Send                          \n\
                 Socket Socket  Message  Elapsed              \n\
                 Size   Size    Size     Time     Throughput  \n\
                 bytes  bytes   bytes    secs.    {unit}/sec  \n\n"
            );
        }
        let _ = writeln!(text, "{sizes}   {:7.2}   {}", f.throughput, shown_brand(f, headers));
    }
    text
}

/// The user's mark stands where there is no header to tell results apart.
fn shown_brand(f: &Figures, headers: bool) -> &str {
    if headers { "" } else { &f.brand }
}

fn datagrams(f: &Figures, headers: bool) -> String {
    let (local, remote) = (&f.local, &f.remote);
    let unit = f.byte_unit().word();
    let cpu = with_cpu(f);
    let mut text = String::new();
    if headers {
        let columns = if cpu {
            [
                "   CPU      Service\n".to_owned(),
                "   Util     Demand\n".to_owned(),
                format!(" % {}{}     us/KB\n", local.method(), remote.method()),
            ]
        } else {
            ["\n".to_owned(), "\n".to_owned(), "\n".to_owned()]
        };
        let _ = writeln!(
            text,
            "Socket  Message  Elapsed      Messages                {}\
             Size    Size     Time         Okay Errors   Throughput{}\
             bytes   bytes    secs            #      #   {unit}/sec{}",
            columns[0], columns[1], columns[2]
        );
    }
    let sent = format!(
        "{:6}  {:6}   {:<7.2}   {:7} {:6}    ",
        local.send_buffer[1], local.send_size, f.elapsed, local.send_calls, f.failed_sends
    );
    let received = format!(
        "{:6}           {:<7.2}   {:7}           ",
        remote.recv_buffer[1], f.elapsed, remote.recv_calls
    );
    let [sender, receiver] = [local.bytes_sent, remote.bytes_received].map(|bytes| f.byte_rate(bytes));
    let lines = [(sent, sender, local), (received, receiver, remote)];
    for (counts, rate, side) in lines {
        let _ = if cpu {
            writeln!(text, "{counts}{rate:7.1}     {:<6.2}   {:<6.3}", side.util(), side.service_demand)
        } else {
            writeln!(text, "{counts}{rate:7.2}")
        };
    }
    if headers {
        text.push('\n');
    }
    text
}

fn transactions(f: &Figures, headers: bool) -> String {
    let (local, remote) = (&f.local, &f.remote);
    // netperf's tests of connections were written at another time: they have no mark, and do not say how CPU use was measured.
    let each = f.flow.is_each();
    let mut text = String::new();
    let [asked, answered] = [f.request_size, f.response_size];
    if with_cpu(f) {
        if headers {
            let methods = match each {
                true => "%      %     ".to_owned(),
                false => format!("% {}    % {}   ", local.method(), remote.method()),
            };
            let rate = if f.unit == Unit::Transactions {
                "per sec  ".to_owned()
            } else {
                format!("{:<8} ", f.unit.word())
            };
            let _ = write!(
                text,
                "Local /Remote\n\
                 Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n\
                 Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n\
                 bytes  bytes  bytes   bytes  secs.   {rate}{methods} us/Tr   us/Tr\n\n"
            );
        }
        let gap = if each || f.transport == Transport::Udp { "   " } else { "  " };
        let brand = if each { String::new() } else { format!(" {}", shown_brand(f, headers)) };
        let _ = writeln!(
            text,
            "{:<6} {:<6} {asked:<6}  {answered:<6} {:<6.2}  {:<6.2}{gap}{:<6.2} {:<6.2} {:<6.3}  {:<6.3}{brand}",
            local.send_buffer[1],
            local.recv_buffer[1],
            f.elapsed,
            f.throughput,
            local.util(),
            remote.util(),
            local.service_demand,
            remote.service_demand
        );
    } else {
        if headers {
            let (third, fourth, fifth) = match f.unit {
                Unit::Transactions => ("Trans.", "Rate         ".to_owned(), "per sec   ".to_owned()),
                unit => ("", "Throughput ".to_owned(), format!("{}/sec   ", unit.word())),
            };
            let _ = write!(
                text,
                "Local /Remote\n\
                 Socket Size   Request  Resp.   Elapsed  {third}\n\
                 Send   Recv   Size     Size    Time     {fourth}\n\
                 bytes  Bytes  bytes    bytes   secs.    {fifth}\n\n"
            );
        }
        let brand = if each { "" } else { shown_brand(f, headers) };
        let _ = writeln!(
            text,
            "{:<6} {:<6} {asked:<6}   {answered:<6}  {:<6.2}   {:7.2}   {brand}",
            local.send_buffer[1], local.recv_buffer[1], f.elapsed, f.throughput
        );
    }
    let _ = writeln!(text, "{:<6} {:<6}", remote.send_buffer[1], remote.recv_buffer[1]);
    text
}

/// `-v 2`: what follows the table.
pub fn wider(f: &Figures) -> String {
    let (local, remote) = (&f.local, &f.remote);
    let per = |bytes: u64, calls: u64| if calls == 0 { 0.0 } else { bytes as f64 / calls as f64 };
    match f.flow {
        Flow::Send | Flow::Receive if f.transport == Transport::Udp => String::new(),
        Flow::Send => format!(
            "\nAlignment      Offset         Bytes    Bytes       Sends   Bytes    Recvs\n\
             Local  Remote  Local  Remote  Xfered   Per                 Per\n\
             Send   Recv    Send   Recv             Send (avg)          Recv (avg)\n\
             {:5}   {:5}  {:5}   {:5} {:6} {:9.2}    {:6}   {:9.2} {:6}\n\
             \nMaximum\nSegment\nSize (bytes)\n{:6}\n",
            local.align[0],
            remote.align[1],
            local.offset[0],
            remote.offset[1],
            local.bytes_sent,
            per(local.bytes_sent, local.send_calls),
            local.send_calls,
            per(remote.bytes_received, remote.recv_calls),
            remote.recv_calls,
            f.mss
        ),
        Flow::Receive => format!(
            "\nAlignment      Offset         Bytes    Bytes       Recvs   Bytes    Sends\n\
             Local  Remote  Local  Remote  Xfered   Per                 Per\n\
             Recv   Send    Recv   Send             Recv (avg)          Send (avg)\n\
             {:5}   {:5}  {:5}   {:5} {:6}  {:9.2}    {:6}  {:9.2} {:6}\n\
             \nMaximum\nSegment\nSize (bytes)\n{:6}\n",
            local.align[1],
            remote.align[0],
            local.offset[1],
            remote.offset[0],
            local.bytes_received,
            per(local.bytes_received, local.recv_calls),
            local.recv_calls,
            per(remote.bytes_sent, remote.send_calls),
            remote.send_calls,
            f.mss
        ),
        Flow::Transact => {
            let sent = Unit::Megabits.rate(local.bytes_sent as f64, f.elapsed);
            let received = Unit::Megabits.rate(local.bytes_received as f64, f.elapsed);
            format!(
                "Alignment      Offset         RoundTrip  Trans    Throughput\n\
                 Local  Remote  Local  Remote  Latency    Rate     10^6bits/s\n\
                 Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n\
                 {:5}  {:5}   {:5}  {:5}   {:<6.3}   {:<6.3} {sent:<6.3}    {received:<6.3}\n",
                local.align[0],
                remote.align[1],
                local.offset[0],
                remote.offset[1],
                f.rt_latency,
                f.transaction_rate
            )
        }
        Flow::TransactEach | Flow::ConnectEach => format!(
            "\nAlignment      Offset\n\
             Local  Remote  Local  Remote\n\
             Send   Recv    Send   Recv\n\
             {:5}  {:5}   {:5}  {:5}\n",
            local.align[0], remote.align[1], local.offset[0], remote.offset[1]
        ),
    }
}
