//! Captures to replay, made afresh in a folder that goes with the bench.

use anyhow::Result;
use capture::{FileFormat, FileWriter};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use traffic::executor::BATCH;
use traffic::expr::{self, Size};
use traffic::values::hash;
use traffic::{Executor, Program, Slab};
use wire::LinkType;

/// Where captures are made.
#[derive(Debug)]
pub struct Fixtures {
    folder: TempDir,
}

/// Flows of the captures: destination ports 1025 to 65535.
pub const FLOWS: u64 = 64_511;

/// Frames of `bytes` (without FCS) to a host that is not the receiver, so that its stack drops them at once.
pub fn frames(bytes: u32) -> Result<Program> {
    let expression = "ether(src=02:00:00:00:00:01, dst=02:00:00:00:00:99)\
                      /ipv4(src=198.18.0.1, dst=198.18.0.2)/udp(sport=5001, dport=1025..65535)";
    let size = Some(Size::Fixed(bytes + expr::FCS));
    Ok(expr::compile(expression, &expr::Options { size, ..expr::Options::default() })?)
}

impl Fixtures {
    pub fn new() -> Result<Fixtures> {
        Ok(Fixtures { folder: TempDir::with_prefix("netdyno-bench-")? })
    }

    /// The same in memory, where there is such a place.
    pub fn in_memory() -> Result<Fixtures> {
        match tempfile::Builder::new().prefix("netdyno-bench-").tempdir_in("/dev/shm") {
            Ok(folder) => Ok(Fixtures { folder }),
            Err(_) => Fixtures::new(),
        }
    }

    /// Where a file of that name is, or will be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The capture of that name, if it was made before.
    pub fn made(&self, name: &str) -> Option<PathBuf> {
        Some(self.path(name)).filter(|path| path.exists())
    }

    /// A file with this text.
    pub fn text(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// `count` frames of `bytes` at the given times; the microseconds that tcpreplay keeps.
    pub fn write(
        &self,
        name: &str,
        bytes: u32,
        count: u64,
        mut time_us: impl FnMut(u64) -> u64,
    ) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        let program = frames(bytes)?;
        let mut executor = Executor::new(&program)?;
        let mut slab = Slab::new(BATCH, bytes as usize);
        let mut writer = FileWriter::create(&path, FileFormat::PcapMicroseconds, LinkType::ETHERNET)?;
        let mut written = 0;
        while written < count {
            let made = executor.render(&mut slab.buffers(), BATCH.min((count - written) as usize), || 0);
            for i in 0..made {
                let time = 1_700_000_000_000_000 + time_us(written);
                writer.write(time * 1000, slab.frame(i), bytes)?;
                written += 1;
            }
        }
        writer.finish()?;
        Ok(path)
    }

    /// One frame of each flow, a microsecond apart.
    pub fn flows(&self, name: &str, bytes: u32, count: u64) -> Result<PathBuf> {
        self.write(name, bytes, count, |n| n)
    }

    /// Gaps of random length, exponentially distributed. Returns the frames' times in nanoseconds, too.
    pub fn exponential(&self, name: &str, count: u64, mean_us: f64) -> Result<(PathBuf, Vec<u64>)> {
        let mut now = 0.0;
        let times: Vec<u64> = (0..count)
            .map(|n| {
                let uniform = (hash(0x6761_7073, n) >> 11) as f64 / (1_u64 << 53) as f64;
                let at = now;
                now += -(1.0 - uniform).ln() * mean_us;
                at.round() as u64
            })
            .collect();
        let path = self.write(name, 60, count, |n| times[n as usize])?;
        Ok((path, times.into_iter().map(|us| us * 1000).collect()))
    }
}

/// As an argument.
pub fn argument(path: &Path) -> String {
    path.display().to_string()
}
