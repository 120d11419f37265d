//! The two pipes of a session's end, each with a thread: what they lead to may be a terminal, a file or a program, which cannot all be
//! waited for in one way.

use std::io::{Read, Write};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece, and pieces on their way between a thread and the session.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;

/// What the session reads from and writes to.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Pieces that were read; none more at the end.
    pub from: Receiver<Vec<u8>>,
    /// Pieces to be written. Dropped, the pipe is closed; it is closed by itself when nobody reads there.
    pub to: Option<Sender<Vec<u8>>>,
    writer: JoinHandle<()>,
}

impl Ends {
    /// Starts both threads.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn new(
        mut from: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
    ) -> std::io::Result<Ends> {
        let (send, pieces) = channel::<Vec<u8>>(PIECES);
        // It ends when its pipe does, or with the process.
        std::thread::Builder::new().name("nats-reader".to_owned()).spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                match from.read(&mut piece) {
                    Ok(0) => break,
                    Ok(read) => {
                        let read = piece.get(..read).unwrap_or_default().to_vec();
                        if send.blocking_send(read).is_err() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        })?;
        let (sender, mut writes) = channel::<Vec<u8>>(PIECES);
        let writer = std::thread::Builder::new().name("nats-writer".to_owned()).spawn(move || {
            while let Some(piece) = writes.blocking_recv() {
                if to.write_all(&piece).and_then(|()| to.flush()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Ends { from: pieces, to: Some(sender), writer })
    }

    /// Closes what is written to when all has been written, and waits for that.
    pub fn close(mut self) {
        self.to = None;
        // It does not panic.
        let _ = self.writer.join();
    }
}
