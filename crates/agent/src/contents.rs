//! Files that the client sends.

use crate::message::{CHUNK_BYTES, ContentBegin, ContentBegun, Fault, FaultKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wire::hex::{decode, encode};

/// Contents that are kept.
pub(crate) const MOST: usize = 1024;
/// Bytes of a name.
const NAME_BYTES: usize = 4096;

#[derive(Debug)]
struct Content {
    name: String,
    bytes: u64,
    wanted: [u8; 32],
    here: u64,
    digest: Sha256,
    /// Until it is whole.
    file: Option<File>,
    path: PathBuf,
    whole: bool,
}

/// All that are kept.
#[derive(Debug)]
pub(crate) struct Contents {
    folder: PathBuf,
    most_bytes: u64,
    bytes: u64,
    next: u64,
    kept: BTreeMap<String, Content>,
}

impl Contents {
    pub fn new(folder: &Path, most_bytes: u64) -> Contents {
        Contents { folder: folder.to_owned(), most_bytes, bytes: 0, next: 1, kept: BTreeMap::new() }
    }

    pub fn begin(&mut self, asked: ContentBegin) -> Result<ContentBegun, Fault> {
        let wanted: Option<[u8; 32]> = decode(&asked.sha256).and_then(|bytes| bytes.try_into().ok());
        let wanted =
            wanted.ok_or_else(|| Fault::usage("content.begin: `sha256` must be 64 hexadecimal digits"))?;
        if asked.name.len() > NAME_BYTES {
            return Err(Fault::usage("content.begin: `name` has more than 4096 bytes"));
        }
        let same = |content: &Content| (content.wanted, content.bytes) == (wanted, asked.bytes);
        if let Some((name, content)) = self.kept.iter().find(|(_, content)| same(content)) {
            return Ok(ContentBegun { content: name.clone(), offset: content.here });
        }
        let left = self.most_bytes.saturating_sub(self.bytes);
        if self.kept.len() >= MOST || asked.bytes > left {
            let what = match self.kept.len() {
                MOST.. => format!("{MOST} contents are kept already"),
                _ => format!("it has {} bytes, and there is room for {left}", asked.bytes),
            };
            let fault = Fault::new(FaultKind::Limit, format!("content.begin: {what}"));
            return Err(fault.remedy(
                "forget contents that are not needed, or start the agent with a greater --max-contents",
            ));
        }
        let content = format!("c{}", self.next);
        self.next += 1;
        let path = self.folder.join(&content);
        // A key that others may read is refused by who reads it.
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| room(&error))?;
        let digest = Sha256::new();
        let kept = Content {
            name: report::units::printable(&asked.name),
            bytes: asked.bytes,
            wanted,
            here: 0,
            digest,
            file: Some(file),
            path,
            whole: false,
        };
        self.bytes += asked.bytes;
        self.kept.insert(content.clone(), kept);
        Ok(ContentBegun { content, offset: 0 })
    }

    /// Where the next piece begins.
    pub fn chunk(&mut self, name: &str, offset: u64, base64: &str) -> Result<u64, Fault> {
        let content = self.find(name)?;
        if offset != content.here {
            let what = format!("content.chunk: {name} goes on at {}, not at {offset}", content.here);
            return Err(Fault::usage(what));
        }
        let piece = STANDARD
            .decode(base64)
            .map_err(|error| Fault::usage(format!("content.chunk: no base64: {error}")))?;
        if piece.len() > CHUNK_BYTES || piece.len() as u64 > content.bytes - content.here {
            let what = format!(
                "content.chunk: {} bytes are more than are left of {} ({}), or than a piece may have ({CHUNK_BYTES})",
                piece.len(),
                content.name,
                content.bytes - content.here
            );
            return Err(Fault::new(FaultKind::Limit, what));
        }
        let Some(file) = &content.file else {
            return Err(Fault::usage(format!("content.chunk: {name} is whole already")));
        };
        // At its place: of a piece for which there was no room, the beginning may stand there already.
        file.write_all_at(&piece, content.here).map_err(|error| room(&error))?;
        content.digest.update(&piece);
        content.here += piece.len() as u64;
        Ok(content.here)
    }

    pub fn end(&mut self, name: &str) -> Result<(), Fault> {
        let content = self.find(name)?;
        if content.here != content.bytes {
            let what = format!(
                "content.end: {} of {} bytes of {} are here",
                content.here, content.bytes, content.name
            );
            return Err(Fault::usage(what));
        }
        let found: [u8; 32] = content.digest.clone().finalize().into();
        if found != content.wanted {
            let what =
                format!("content.end: {} has the SHA-256 {}, which is another", content.name, encode(&found));
            let fault = Fault::usage(what).remedy("send it again");
            // What is wrong is not gone on with.
            self.forget(name)?;
            return Err(fault);
        }
        content.whole = true;
        content.file = None;
        Ok(())
    }

    pub fn forget(&mut self, name: &str) -> Result<(), Fault> {
        let content = self.kept.remove(name).ok_or_else(|| no_content(name))?;
        self.bytes -= content.bytes;
        let _ = std::fs::remove_file(content.path);
        Ok(())
    }

    /// Where one that is whole stands.
    pub fn path(&mut self, name: &str) -> Result<PathBuf, Fault> {
        let content = self.find(name)?;
        if !content.whole {
            let what = format!("job.start: {name} ({}) has not come whole", content.name);
            return Err(Fault::usage(what).remedy("send content.end, and wait for its answer"));
        }
        Ok(content.path.clone())
    }

    fn find(&mut self, name: &str) -> Result<&mut Content, Fault> {
        self.kept.get_mut(name).ok_or_else(|| no_content(name))
    }
}

fn no_content(name: &str) -> Fault {
    Fault::new(FaultKind::Unknown, format!("there is no content `{}`", report::units::printable(name)))
}

fn room(error: &std::io::Error) -> Fault {
    Fault::new(FaultKind::Limit, format!("a file of the agent's cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    fn begin(contents: &mut Contents, bytes: &[u8]) -> Result<ContentBegun, Fault> {
        let sha256 = encode(&Sha256::digest(bytes));
        contents.begin(ContentBegin { name: "web.pcap".to_owned(), bytes: bytes.len() as u64, sha256 })
    }

    #[test]
    fn a_file_comes_in_pieces_and_is_compared_and_not_sent_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut contents = Contents::new(folder.path(), 100);
        let begun = begin(&mut contents, b"abcdef").expect("begun");
        assert_eq!((begun.content.as_str(), begun.offset), ("c1", 0));
        assert_eq!(contents.chunk("c1", 0, &STANDARD.encode(b"abcd")), Ok(4));
        assert!(contents.chunk("c1", 0, "").is_err_and(|fault| fault.message.contains("goes on at 4")));
        assert!(contents.end("c1").is_err_and(|fault| fault.message.contains("4 of 6 bytes")));
        assert!(contents.path("c1").is_err());
        assert_eq!(begin(&mut contents, b"abcdef").expect("the same").offset, 4);
        assert!(contents.chunk("c1", 4, &STANDARD.encode(b"efg")).is_err());
        assert!(contents.chunk("c1", 4, "!").is_err_and(|fault| fault.message.contains("no base64")));
        assert_eq!(contents.chunk("c1", 4, &STANDARD.encode(b"ef")), Ok(6));
        contents.end("c1").expect("whole");
        assert_eq!(std::fs::read(contents.path("c1").expect("there")).expect("read"), b"abcdef");
        contents.forget("c1").expect("there");
        assert!(contents.forget("c1").is_err_and(|fault| fault.data.kind == FaultKind::Unknown));
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn a_piece_for_which_there_was_no_room_is_sent_again_to_its_own_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut contents = Contents::new(folder.path(), 100);
        begin(&mut contents, b"abcdef").expect("begun");
        assert_eq!(contents.chunk("c1", 0, &STANDARD.encode(b"ab")), Ok(2));
        // What a full file system takes of a piece before it refuses the rest.
        let file = contents.kept.get_mut("c1").and_then(|kept| kept.file.as_mut()).expect("open");
        file.seek(SeekFrom::Start(2)).expect("a file");
        file.write_all(b"cd").expect("room");
        assert_eq!(contents.chunk("c1", 2, &STANDARD.encode(b"cdef")), Ok(6));
        contents.end("c1").expect("whole");
        assert_eq!(std::fs::read(contents.path("c1").expect("there")).expect("read"), b"abcdef");
    }

    #[test]
    fn another_file_than_was_said_is_refused_and_room_is_bounded_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut contents = Contents::new(folder.path(), 10);
        begin(&mut contents, b"abcdef").expect("room");
        contents.chunk("c1", 0, &STANDARD.encode(b"abcdeX")).expect("room");
        assert!(contents.end("c1").is_err_and(|fault| fault.data.remedy.as_deref() == Some("send it again")));
        begin(&mut contents, b"abcdef").expect("room");
        let refused = begin(&mut contents, b"12345").expect_err("no room");
        assert_eq!(refused.data.kind, FaultKind::Limit);
        assert!(refused.message.contains("room for 4"), "{refused}");
        contents.forget("c2").expect("there");
        begin(&mut contents, b"12345").expect("room");
        let wrong = ContentBegin { name: String::new(), bytes: 1, sha256: "é".repeat(32) };
        assert!(contents.begin(wrong).is_err_and(|fault| fault.message.contains("64 hexadecimal")));
    }
}
