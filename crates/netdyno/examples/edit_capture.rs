//! Writes a capture, edits it into another file as `netdyno replay --write` does, and reads that.
//!
//! Needs no rights but those to write into a folder: `cargo run -p netdyno --example edit_capture`

use netdyno::capture::{FileFormat, FileWriter, Reader};
use netdyno::spec::{Edits, Replay};
use netdyno::traffic::{executor, expr};
use netdyno::wire::LinkType;
use netdyno::{Consent, Session, start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("netdyno-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (from, to) = (folder.join("recorded.pcap"), folder.join("edited.pcap"));

    // A hundred packets of ten hosts, a millisecond apart.
    let program = expr::compile("ipv4(src=10.0.0.1..10.0.0.10)/udp(dport=53)", &expr::Options::default())?;
    let mut capture = FileWriter::create(&from, FileFormat::of_name(&from), LinkType::ETHERNET)?;
    for n in 0..100 {
        let frame = executor::frame(&program, n, 0)?;
        capture.write(n * 1_000_000, &frame, frame.len() as u32)?;
    }
    capture.finish()?;

    let job = Replay {
        captures: vec![from],
        write: Some(to.clone()),
        edits: Some(Edits {
            vlan_add: Some(7),
            map_ip: vec!["10.0.0.0/8=172.16.0.0/12".to_owned()],
            ..Edits::default()
        }),
        ..Replay::default()
    };
    // A job says what it would write; whoever runs it allows that.
    let session =
        Session { consent: Consent { write: vec![to.clone()], ..Consent::default() }, ..Session::default() };
    start(job.into(), session)?.wait()?;

    let mut edited = Reader::open(&to)?;
    let mut packets = 0;
    while let Some(packet) = edited.next_record()? {
        if packets == 0 {
            let [.., a, b] = packet.data[..16] else { return Err("a short frame".into()) };
            println!("VLAN {}", u16::from_be_bytes([a, b]) & 0xfff);
            let source: [u8; 4] = packet.data[30..34].try_into()?;
            println!("from {}", std::net::Ipv4Addr::from(source));
        }
        packets += 1;
    }
    println!("{packets} packets");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
