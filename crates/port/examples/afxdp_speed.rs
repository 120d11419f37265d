//! How fast the packet engine's and the AF_XDP engine's senders are beside the least that AF_XDP allows (`sudo
//! afxdp_speed`): over the cable of a lab, in one interleaved run on one CPU, as ratios.

use std::error::Error;
use std::time::{Duration, Instant};

use lab::{Lab, Options as LabOptions};
use netdyno_port::afxdp::{self, Options, bare::Bare};
use netdyno_port::packet::{Sendmmsg, Target};
use netdyno_port::tx::Tx;

const ROUNDS: usize = 15;
const EACH: Duration = Duration::from_millis(150);

/// Frames a second of a sender of which eight bytes of each frame are written anew.
fn through(tx: &mut dyn Tx, frame: &[u8]) -> Result<f64, Box<dyn Error>> {
    let (start, mut frames) = (Instant::now(), 0_u64);
    while start.elapsed() < EACH {
        let buffers = tx.buffers();
        let count = buffers.held.len();
        let slots = buffers.bytes.chunks_exact_mut(buffers.stride);
        for (slot, held) in slots.zip(buffers.held) {
            if *held == 0 {
                slot[..frame.len()].copy_from_slice(frame);
                *held = 1;
            }
            frames += 1;
            slot[14..22].copy_from_slice(&frames.to_be_bytes());
        }
        buffers.lengths.fill(frame.len() as u32);
        tx.send(count, &vec![0; count])?;
    }
    Ok(frames as f64 / start.elapsed().as_secs_f64())
}

fn bare(bare: &mut Bare) -> Result<f64, Box<dyn Error>> {
    let (start, mut frames) = (Instant::now(), 0);
    while start.elapsed() < EACH {
        frames += bare.submit()?;
    }
    Ok(frames as f64 / start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let lab = Lab::two_hosts(&LabOptions { queues: 2, ..LabOptions::default() })?;
    let index = lab.sender.namespace.index_of("tx0")?.ok_or("no tx0")?;
    let target = Target { name: "tx0".to_owned(), index, mtu: 1500 };
    let mut cpus = rustix::thread::CpuSet::new();
    let own = rustix::thread::sched_getaffinity(None)?;
    cpus.set((0..rustix::thread::CpuSet::MAX_CPU).rfind(|&cpu| own.is_set(cpu)).ok_or("no CPU")?);
    rustix::thread::sched_setaffinity(None, &cpus)?;
    for length in [60, 1514] {
        let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xb5];
        frame.resize(length, 0);
        let open = || -> Result<_, String> {
            let text = |error: &dyn Error| error.to_string();
            Ok((
                Sendmmsg::open(&target, length).map_err(|e| text(&e))?,
                afxdp::open(&target, length, &[0], &Options::default()).map_err(|e| text(&e))?.remove(0),
                Bare::open(&target, 1, &frame).map_err(|e| text(&e))?,
            ))
        };
        let (mut packet, mut afxdp, mut floor) = lab.sender.namespace.run_in(open)??;
        let mut rates = [vec![], vec![], vec![]];
        for _ in 0..ROUNDS {
            rates[0].push(through(&mut packet, &frame)?);
            rates[1].push(through(&mut afxdp, &frame)?);
            rates[2].push(bare(&mut floor)?);
        }
        let [packet, engine, floor] = rates.map(median);
        println!(
            "{length} bytes: AF_XDP {:.2} of sendmmsg, {:.2} of the bare loop ({})",
            engine / packet,
            engine / floor,
            afxdp.describe()
        );
    }
    Ok(())
}
