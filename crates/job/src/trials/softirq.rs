//! How long the kernel's own packet threads waited for a processor.
//!
//! Between veths, and in bridges, routers and queues of this machine, frames are moved by softirqs; where there is more of
//! them, by the threads `ksoftirqd`, of ordinary priority. Beside other work these wait like everybody, and a short queue
//! overflows meanwhile although the sender, a real-time task, was in time: a search called 931 frames/s determined where
//! 1651 was the truth. The scheduler counts what each thread waited (Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat).

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The threads of this machine, one for each CPU.
#[derive(Debug, Default)]
pub struct PacketThreads {
    schedstats: Vec<PathBuf>,
}

impl PacketThreads {
    /// Finds them by their names, once: they live as long as the machine. None are seen in a PID namespace of its own.
    pub fn find() -> PacketThreads {
        let ours = |entry: fs::DirEntry| {
            let path = entry.path();
            let name = fs::read_to_string(path.join("comm")).ok()?;
            name.starts_with("ksoftirqd/").then(|| path.join("schedstat"))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        PacketThreads { schedstats: processes.filter_map(ours).collect() }
    }

    /// The same to be read often.
    pub fn open(&self) -> Option<OpenThreads> {
        let files: Option<Vec<File>> = self.schedstats.iter().map(|path| File::open(path).ok()).collect();
        files.filter(|files| !files.is_empty()).map(OpenThreads)
    }

    /// Nanoseconds that they waited since the machine's start, ready to run, in all; `None` where nobody counts.
    pub fn waited_ns(&self) -> Option<u64> {
        let waits: Option<Vec<u64>> =
            self.schedstats.iter().map(|path| waited(&fs::read_to_string(path).ok()?)).collect();
        waits.filter(|waits| !waits.is_empty()).map(|waits| waits.iter().sum())
    }
}

/// Their statistics, opened.
#[derive(Debug)]
pub struct OpenThreads(Vec<File>);

impl OpenThreads {
    /// As [`PacketThreads::waited_ns`].
    pub fn waited_ns(&self) -> Option<u64> {
        let mut sum = 0;
        for file in &self.0 {
            let mut text = [0u8; 96];
            let length = file.read_at(&mut text, 0).ok()?;
            sum += waited(std::str::from_utf8(text.get(..length)?).ok()?)?;
        }
        Some(sum)
    }
}

/// Of "on a CPU, waiting for one, times it ran" the second.
fn waited(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packet_threads_waited_is_read_of_every_processor() {
        assert_eq!(waited("677819307 21335291719 19489\n"), Some(21_335_291_719));
        assert_eq!((waited(""), waited("1"), waited("1 x 2")), (None, None, None));
        let threads = PacketThreads::find();
        let processors = fs::read_to_string("/proc/stat").expect("statistics");
        let processors =
            processors.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
        // A PID namespace has no threads of the kernel.
        if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
            assert_eq!(threads.schedstats.len(), processors);
            let (before, after) = (threads.waited_ns(), threads.waited_ns());
            assert!(before.is_some() && before <= after);
            let open = threads.open().expect("files");
            let (now, later) = (open.waited_ns(), open.waited_ns());
            assert!(after <= now && now <= later && now.is_some());
        } else {
            assert_eq!(threads.waited_ns(), None);
        }
        assert_eq!(PacketThreads::default().waited_ns(), None);
        assert!(PacketThreads::default().open().is_none());
    }
}
