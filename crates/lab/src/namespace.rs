//! Network namespaces: made, opened and entered by file descriptor; and interfaces found in them by name.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::FsWord;
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::{LabError, sys};

/// In a lab: the receiver's namespace, for `nsenter --net=$NETDYNO_LAB_RECEIVER_NS`.
pub const ENV_RECEIVER_NS: &str = "NETDYNO_LAB_RECEIVER_NS";

/// The namespace of the calling thread. A thread has one of its own in Linux, and so its own answer here.
const OWN: &str = "/proc/thread-self/ns/net";

/// `NSFS_MAGIC` of `linux/magic.h`: the file system that namespace files come from.
const NSFS_MAGIC: FsWord = 0x6e73_6673;

/// How interfaces of the calling thread's namespace come to IPv6 addresses, unless told otherwise. 1: not
/// by themselves (`IN6_ADDR_GEN_MODE_NONE`).
const IPV6_DEFAULT_ADDR_GEN_MODE: &str = "/proc/sys/net/ipv6/conf/default/addr_gen_mode";

/// A network namespace, held by a file descriptor. It goes when the last holder does: processes and threads
/// in it, sockets opened in it, and descriptors like this one.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// A new, empty one.
    ///
    /// # Errors
    /// It takes `CAP_SYS_ADMIN`, or the kernel has no more to give.
    pub fn new() -> Result<Self, LabError> {
        // Namespaces are left by thread, and a thread that left does not come back here: a scratch thread goes,
        // leaves its new namespace in our hands, and ends.
        in_scratch_thread(|| {
            match sys::unshare(UnshareFlags::NEWNET) {
                Ok(()) => {}
                Err(Errno::PERM) => return Err(LabError::NotPermitted),
                Err(errno) => return Err(LabError::Create(errno)),
            }
            // IPv6 leaves an interface whose MTU falls under 1280 bytes (RFC 8200, section 5) and comes back with
            // the namespace's defaults, which are to announce addresses: frames that nobody sent. Where the
            // setting cannot be written (no IPv6, a read-only /proc), only `veth::silence` keeps them away.
            drop(std::fs::write(IPV6_DEFAULT_ADDR_GEN_MODE, "1"));
            Self::current()
        })?
    }

    /// The calling thread's.
    ///
    /// # Errors
    /// `/proc` cannot be read, or no descriptor is left.
    pub fn current() -> Result<Self, LabError> {
        Self::open(Path::new(OWN))
    }

    /// The one behind a namespace file: `/proc/PID/ns/net`, `/run/netns/NAME`.
    ///
    /// # Errors
    /// There is no such file, it may not be opened, or it is no network namespace.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        let failed =
            |source| LabError::Open { name: path.display().to_string(), path: path.to_owned(), source };
        let file =
            File::open(path).map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        // Anything may stand under a path that a user gave.
        if rustix::fs::fstatfs(&file).map_err(failed)?.f_type != NSFS_MAGIC {
            return Err(LabError::NotANamespace { path: path.to_owned() });
        }
        Ok(Self { fd: file.into() })
    }

    /// Another handle of the same namespace.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> Result<Self, LabError> {
        let fd = self.fd.try_clone().map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            LabError::kernel("keep a network namespace")(errno)
        })?;
        Ok(Self { fd })
    }

    /// Moves the calling thread in, for good. Threads it starts from then on start there.
    ///
    /// # Errors
    /// It takes `CAP_SYS_ADMIN`.
    pub fn enter_current_thread(&self) -> Result<(), LabError> {
        rustix::thread::move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |errno| match errno {
                Errno::INVAL => LabError::NotANamespace { path: PathBuf::from("the given file") },
                errno => LabError::kernel("enter the network namespace")(errno),
            },
        )
    }

    /// Runs `work` in a thread of its own inside and waits for it. Sockets opened there stay in the namespace,
    /// wherever they are used afterwards.
    ///
    /// # Errors
    /// It takes `CAP_SYS_ADMIN`, or no thread is to be had. `work` was not done then.
    pub fn run_in<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        in_scratch_thread(|| self.enter_current_thread().map(|()| work()))?
    }

    /// A command that will start inside.
    ///
    /// # Errors
    /// No descriptor is left. What goes wrong inside is reported when the command is started.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let fd = self.fd.try_clone().map_err(|error| {
            LabError::kernel("duplicate a descriptor")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let mut command = Command::new(program);
        sys::start_in(&mut command, fd);
        Ok(command)
    }

    /// The index of the interface of that name in here, if there is one.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn index_of(&self, interface: &str) -> Result<Option<u32>, LabError> {
        self.run_in(|| index_of(interface))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Runs `work` in a thread that ends with it, so that what it does to its namespaces ends too.
pub(crate) fn in_scratch_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lab".to_owned()).spawn_scoped(scope, work).map_err(
            |error| LabError::kernel("start a thread")(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)),
        )?;
        match thread.join() {
            Ok(value) => Ok(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn index_of(interface: &str) -> Option<u32> {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(socket, interface).ok()
}

/// How a user names a namespace: a file (anything with a slash in it), or a name under `/run/netns`, as
/// `ip netns` uses them. Inside `netdyno lab` the names `sender` and `receiver` exist there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRef {
    name: String,
}

impl NamespaceRef {
    /// What a user wrote; `None` if nothing can be named so.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = !text.is_empty() && text != "." && text != ".." && !text.contains('\0');
        plain.then(|| Self { name: text.to_owned() })
    }

    /// The file that is meant.
    pub fn path(&self) -> PathBuf {
        if self.name.contains('/') {
            PathBuf::from(&self.name)
        } else {
            Path::new("/run/netns").join(&self.name)
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// There is no such namespace, or it may not be opened.
    pub fn open(&self) -> Result<Namespace, LabError> {
        Namespace::open(&self.path()).map_err(|error| match error {
            LabError::Open { path, source, .. } => LabError::Open { name: self.name.clone(), path, source },
            other => other,
        })
    }
}

/// An interface, and where it is: `namespace` is `None` for the calling thread's own.
#[derive(Debug)]
pub struct Located {
    /// Where it is; `None`: in the calling thread's own namespace.
    pub namespace: Option<Namespace>,
    /// The interface's name there. It need not exist.
    pub name: String,
}

impl Located {
    /// Runs `work` where the interface is.
    ///
    /// # Errors
    /// The namespace cannot be entered. `work` was not done then.
    pub fn run_in<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        match &self.namespace {
            Some(namespace) => namespace.run_in(work),
            None => Ok(work()),
        }
    }
}

/// Finds what the user means by `IFACE` or `IFACE@NAMESPACE`.
///
/// A bare name means an interface here. If there is none and this process runs inside `netdyno lab`, the
/// receiver's interfaces are looked at too, so that `--measure rx0` means what it says. Whether a bare name
/// exists at all is for whoever opens it to find out: `port::interface` knows the names that do.
///
/// # Errors
/// The text names no interface, or the namespace cannot be opened.
pub fn resolve(spec: &str) -> Result<Located, LabError> {
    let wrong = || LabError::Spec { spec: spec.to_owned() };
    let (name, elsewhere) = spec.split_once('@').map_or((spec, None), |(name, rest)| (name, Some(rest)));
    // The kernel's own rules for a name, `dev_valid_name`.
    let impossible = |character: char| matches!(character, '/' | ':' | '\0') || character.is_whitespace();
    if matches!(name, "" | "." | "..") || name.contains(impossible) {
        return Err(wrong());
    }
    let namespace = match elsewhere {
        Some(elsewhere) => Some(NamespaceRef::parse(elsewhere).ok_or_else(wrong)?.open()?),
        None => lab_namespace_with(name)?,
    };
    Ok(Located { namespace, name: name.to_owned() })
}

/// The lab's receiver, if `interface` is there and not here.
fn lab_namespace_with(interface: &str) -> Result<Option<Namespace>, LabError> {
    let Some(path) = std::env::var_os(ENV_RECEIVER_NS) else { return Ok(None) };
    if index_of(interface).is_some() {
        return Ok(None);
    }
    let receiver = Namespace::open(Path::new(&path))?;
    Ok(receiver.index_of(interface)?.is_some().then_some(receiver))
}
