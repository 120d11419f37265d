//! What was compiled of modules before, in the user's cache folder (`$XDG_CACHE_HOME/netdyno/plugins`).
//!
//! Compiled code is executed as it is: who can write there could run anything as whoever runs netdyno. So a file is taken only
//! if it belongs to the user that runs this process, nobody else may write to it, it is no link and has no second name, and
//! its folder is such a one, too. Whoever could make such a file is that user already. A signature would add nothing: its key
//! had to lie beside it, under the same permissions. The file says of which module it is, for which build of the compiler,
//! and what its own hash is, so that one that was moved or damaged is passed over and made anew.
//!
//! With capabilities of netdyno's file that rule does not hold, since this process may more than its user: there is no cache then.
//!
//! Nothing here fails: without a cache modules are compiled each time.

#![allow(
    unsafe_code,
    reason = "compiled code is taken as it is, from files that only this user could have written"
)]

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use wasmtime::{Engine, Module};

/// How a file begins; the number changes with the layout.
const MAGIC: &[u8; 24] = b"netdyno compiled plugin1";
/// In front of the code: the magic, the module's hash, the code's.
const HEAD: usize = MAGIC.len() + 32 + 32;
/// Largest file: code is some times as long as its module.
const MOST: u64 = 16 * crate::abi::MOST_MODULE;

/// Did this process gain rights when it was executed (AT_SECURE of getauxval(3))? So it is taken where that cannot be read.
fn is_secure() -> bool {
    const AT_SECURE: usize = 23;
    const WORD: usize = size_of::<usize>();
    let Ok(vector) = std::fs::read("/proc/self/auxv") else { return true };
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
    let mut pairs = vector.chunks_exact(2 * WORD).map(|pair| pair.split_at(WORD));
    pairs.find(|(kind, _)| word(kind) == AT_SECURE).is_none_or(|(_, value)| word(value) != 0)
}

/// The folder, if there is a user's home.
fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // With the capabilities of a file, or as another user by its set-user-ID bit, this process may more than who could write
    // the cache (and chose its place); a file of theirs would be executed with all that.
    if is_secure() {
        return None;
    }
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    // As root with another user's HOME (sudo -E): nothing is made there, and nothing taken. Of folders that are not there yet
    // the nearest above counts.
    let there = base.ancestors().find_map(|folder| std::fs::metadata(folder).ok())?;
    (rustix::process::geteuid().as_raw() == there.uid()).then(|| base.join("netdyno/plugins"))
}

/// Of one module, for one build of the compiler with its settings and this processor.
fn file(engine: &Engine, sha256: &[u8; 32]) -> Option<PathBuf> {
    /// Hashes to bytes of a digest.
    struct Into256(Sha256);
    impl Hasher for Into256 {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Into256(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let build = wire::hex::encode(hasher.0.finalize().get(..8).unwrap_or_default());
    Some(folder()?.join(format!("{}-{build}", wire::hex::encode(sha256))))
}

/// Could nobody else have written it?
fn is_ours(meta: &std::fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// What was compiled of the module with this hash, if that can be trusted.
pub fn get(engine: &Engine, sha256: &[u8; 32]) -> Option<Module> {
    let path = file(engine, sha256)?;
    let folder = std::fs::symlink_metadata(path.parent()?).ok()?;
    if !folder.is_dir() || !is_ours(&folder) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || !is_ours(&meta) || meta.nlink() != 1 || meta.len() > MOST {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()?);
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    let (head, code) = bytes.split_at_checked(HEAD)?;
    let (magic, hashes) = head.split_at(MAGIC.len());
    let (module, own) = hashes.split_at(32);
    if magic != MAGIC || module != sha256 || own != Sha256::digest(code).as_slice() {
        return None;
    }
    // SAFETY: `code` is what `Module::serialize` gave: the file is one that only this user could have written (above), it
    // was read whole into memory of ours, so that nobody changes it any more, and its hash is the one that was written with
    // it. wasmtime itself refuses what another build or other settings made.
    unsafe { Module::deserialize(engine, code) }.ok()
}

/// Keeps what was compiled.
pub fn put(engine: &Engine, sha256: &[u8; 32], module: &Module) {
    let Some(path) = file(engine, sha256) else { return };
    let Some(folder) = path.parent() else { return };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let ours = std::fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && is_ours(&meta));
    let (Ok(()), true, Ok(code)) = (made, ours, module.serialize()) else { return };
    // Whole or not at all, also if several write it at once.
    let new = path.with_extension(format!("new{}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR) else { return };
    let parts = [&MAGIC[..], sha256, &Sha256::digest(&code), &code];
    let mut opened = File::from(opened);
    let written = parts.iter().try_for_each(|part| opened.write_all(part));
    if written.is_err() || std::fs::rename(&new, &path).is_err() {
        let _ = std::fs::remove_file(&new);
    }
}
