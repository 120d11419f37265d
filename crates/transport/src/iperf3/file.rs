//! `-F`: a file is what is sent, or where what is received goes.

use crate::phase::{self, Done, End, Progress, Until};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

fn count(done: &mut Done, progress: &Progress, bytes: usize) {
    done.bytes += bytes as u64;
    done.count += 1;
    progress.bytes.fetch_add(bytes as u64, Relaxed);
    progress.count.fetch_add(1, Relaxed);
}

fn over(mut done: Done, end: End) -> Done {
    done.ended = Instant::now();
    done.end = end;
    done
}

/// Sends a file's bytes once.
pub fn send(mut to: &TcpStream, path: &Path, block: usize, until: &Until, progress: &Progress) -> Done {
    let mut done = Done::new();
    let mut file = match phase::look_up_often(to).and_then(|()| File::open(path)) {
        Ok(file) => file,
        Err(error) => return over(done, End::Failed(error)),
    };
    let mut buffer = vec![0; block.max(1)];
    let (mut at, mut filled) = (0, 0);
    let end = loop {
        if until.stop.is_set() {
            break End::Stopped;
        }
        if at == filled {
            (at, filled) = match file.read(&mut buffer) {
                Ok(0) => break End::Amount,
                Ok(count) => (0, count),
                Err(error) => break End::Failed(error),
            };
        }
        match to.write(&buffer[at..filled]) {
            Ok(sent) => {
                at += sent;
                count(&mut done, progress, sent);
            }
            Err(error) if phase::is_again(&error) => {}
            Err(error) => break End::Failed(error),
        }
    };
    over(done, end)
}

/// Writes what is received to a file.
pub fn receive(mut from: &TcpStream, path: &Path, block: usize, until: &Until, progress: &Progress) -> Done {
    let mut done = Done::new();
    let mut file = match phase::look_up_often(from).and_then(|()| File::create(path)) {
        Ok(file) => file,
        Err(error) => return over(done, End::Failed(error)),
    };
    let mut buffer = vec![0; block.max(1)];
    let mut stopped = false;
    let end = loop {
        if until.stop.is_set() && !stopped {
            // What is here already belongs to the file.
            stopped = true;
            let _ = from.set_nonblocking(true);
        }
        match from.read(&mut buffer) {
            Ok(0) => break End::Closed,
            Ok(got) => {
                if let Err(error) = file.write_all(&buffer[..got]) {
                    break End::Failed(error);
                }
                count(&mut done, progress, got);
            }
            Err(error) if phase::is_again(&error) && !stopped => {}
            Err(error) if phase::is_again(&error) => {
                let _ = from.set_nonblocking(false);
                break End::Stopped;
            }
            Err(error) => break End::Failed(error),
        }
    };
    over(done, end)
}
