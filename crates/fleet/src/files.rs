//! Files of a job: sent to an agent by content, and fetched from it when the run is over. No path leads from one host to another.

use crate::client::Client;
use crate::lost::Lost;
use agent::{ContentBegun, FilePiece, FileRead, OfContent, OfRun, Written};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use spec::reach::{Reach, each_text};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of a piece: its line stays below the mebibyte that an agent takes.
const PIECE: usize = 512 << 10;

/// Why a file did not come where it was to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileLost {
    /// It cannot be read or written here.
    #[error("{path}: {error}")]
    Here { path: String, error: io::Error },
    /// The agent is gone, silent, or refuses it.
    #[error(transparent)]
    There(#[from] Lost),
}

fn here(path: &Path) -> impl Fn(io::Error) -> FileLost + '_ {
    |error| FileLost::Here { path: report::units::printable(&path.display().to_string()), error }
}

#[derive(Deserialize)]
struct FilesTold {
    files: Vec<Written>,
}

impl Client {
    /// Sends a file: the number of its content there.
    pub(crate) fn put(&mut self, path: &Path) -> Result<String, FileLost> {
        let file = File::open(path).map_err(here(path))?;
        self.put_as(path, file)
    }

    /// Sends what is read, as a file of this name.
    pub(crate) fn put_as(&mut self, path: &Path, mut file: impl Read + Seek) -> Result<String, FileLost> {
        let mut digest = Sha256::new();
        let bytes = io::copy(&mut file, &mut digest).map_err(here(path))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let asked = json!({ "name": name, "bytes": bytes, "sha256": wire::hex::encode(&digest.finalize()) });
        let ContentBegun { content, mut offset } = self.call("content.begin", &asked)?;
        file.seek(SeekFrom::Start(offset)).map_err(here(path))?;
        let mut piece = vec![0; PIECE];
        while offset < bytes {
            let count = file.read(&mut piece).map_err(here(path))?;
            let read = piece.get(..count).filter(|read| !read.is_empty());
            let read =
                read.ok_or_else(|| here(path)(io::Error::other("it became shorter while it was sent")))?;
            let chunk = json!({ "content": content, "offset": offset, "base64": STANDARD.encode(read) });
            self.call::<Value>("content.chunk", &chunk)?;
            offset += count as u64;
        }
        self.call::<Value>("content.end", &OfContent { content: content.clone() })?;
        Ok(content)
    }

    /// Sends the files that a job reads: the number of each.
    pub(crate) fn put_all(&mut self, job: &Map<String, Value>) -> Result<BTreeMap<String, String>, FileLost> {
        let mut job = Value::Object(job.clone());
        let mut files = Vec::new();
        each_text(&mut job, &mut |_, reach, text| {
            let is_file = matches!(reach, Reach::Parsed | Reach::Perhaps) && Path::new(&*text).is_file();
            if is_file && !files.contains(text) {
                files.push(text.clone());
            }
        });
        let mut contents = BTreeMap::new();
        for file in files {
            let content = self.put(Path::new(&file))?;
            contents.insert(file, content);
        }
        Ok(contents)
    }

    /// The files that a run wrote.
    pub(crate) fn written(&mut self, run: &str) -> Result<Vec<Written>, Lost> {
        let told: FilesTold = self.call("job.files", &OfRun { run: run.to_owned() })?;
        Ok(told.files)
    }

    /// Fetches one of them into a file here, which is there whole or not at all.
    pub(crate) fn fetch(&mut self, run: &str, written: &Written, into: &Path) -> Result<(), FileLost> {
        let mut beside = into.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = Path::new(&beside);
        // Only what is this one's is taken away.
        let file = File::create_new(beside).map_err(here(beside))?;
        let done = self.fetch_beside(run, written, (file, beside));
        let done = done.and_then(|()| std::fs::rename(beside, into).map_err(here(into)));
        if done.is_err() {
            let _ = std::fs::remove_file(beside);
        }
        done
    }

    fn fetch_beside(
        &mut self,
        run: &str,
        written: &Written,
        (mut file, beside): (File, &Path),
    ) -> Result<(), FileLost> {
        let (mut digest, mut offset) = (Sha256::new(), 0u64);
        while offset < written.bytes {
            let asked =
                FileRead { run: run.to_owned(), name: written.name.clone(), offset, length: PIECE as u64 };
            let told: FilePiece = self.call("file.read", &asked)?;
            let piece = STANDARD.decode(&told.base64).unwrap_or_default();
            if piece.is_empty() || piece.len() as u64 > written.bytes - offset {
                let what = "the answer to `file.read`: another piece than was asked for".to_owned();
                return Err(Lost::Nonsense { what }.into());
            }
            file.write_all(&piece).map_err(here(beside))?;
            digest.update(&piece);
            offset += piece.len() as u64;
        }
        if wire::hex::encode(&digest.finalize()) != written.sha256 {
            let what = "the answer to `file.read`: the file has another SHA-256 than was said".to_owned();
            return Err(Lost::Nonsense { what }.into());
        }
        file.sync_all().map_err(here(beside))
    }
}
