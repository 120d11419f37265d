//! A test of iperf3's protocol between the two hosts of a lab: a server on one, a client on the other. Each could be iperf3 itself.
//!
//! As root: `cargo run -p netdyno --example iperf3`

use netdyno::lab::{Lab, Options};
use netdyno::spec::{Consent, Iperf3, Iperf3Server};
use netdyno::{Session, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::two_hosts(&Options { addresses: true, ..Options::default() })?;
    let (client, server) = (&lab.sender.namespace, &lab.receiver.namespace);
    // A job's sockets are of the host that it is started on. The server ends after one test.
    let job = Iperf3Server { one_off: true, ..Iperf3Server::default() };
    let serving = server.run_in(|| start(job.into(), Session::default()))??;
    while !serving.is_over() && server.run_in(|| !listens())? {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let address = lab.receiver.address.to_string();
    let test = Iperf3 { host: address.clone(), bytes: Some("8M".parse()?), ..Iperf3::default() };
    // A job connects nowhere unless whoever starts it says so, too.
    let consent = Consent { addresses: vec![address], ..Consent::default() };
    let session = Session { consent, ..Session::default() };
    let tested = client.run_in(|| start(test.into(), session))??.wait()?;
    let served = serving.wait()?;
    for stream in tested.result.endpoint.iter().flat_map(|tested| &tested.streams) {
        println!("sent: {} bytes, received: {:?}", stream.sent_bytes, stream.received_bytes);
    }
    let served = served.result.served.ok_or("no server")?;
    println!("the server: {} test, {} bytes, {} broken", served.tests, served.bytes, served.broken_tests);
    Ok(())
}

/// Whether iperf3's port is open on this host: the kernel lists its listeners.
fn listens() -> bool {
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    tables.iter().any(|table| std::fs::read_to_string(table).is_ok_and(|text| text.contains(":1451 ")))
}
