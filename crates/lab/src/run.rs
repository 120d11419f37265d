//! Running a command inside a lab: its own view of the machine, signals passed on, nothing left behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags,
};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity};

use crate::namespace::in_scratch_thread;
use crate::{Host, Lab, LabError, Namespace, sys};

/// In a lab: the sender's interface.
pub const ENV_TX: &str = "NETDYNO_LAB_TX";
/// In a lab: the receiver's interface.
pub const ENV_RX: &str = "NETDYNO_LAB_RX";
pub use crate::namespace::ENV_RECEIVER_NS;
/// In a lab: the path to the network namespace of whoever made it, where what a command serves can be reached.
pub const ENV_HOST_NS: &str = "NETDYNO_LAB_HOST_NS";
/// In a lab whose device is an XDP program under test: what runs need to find what it says of frames (crate `job`).
pub const ENV_XDP: &str = "NETDYNO_LAB_XDP";
/// In a lab whose device is a NAT: the name of its network namespace, where what it counts is found.
pub const ENV_NAT: &str = "NETDYNO_LAB_NAT";
/// In a lab: the name of the device's network namespace.
pub const DEVICE: &str = "dut";
/// Its name in there.
const HOST: &str = "host";

const RUN: &str = "/run";
const RUN_NETNS: &str = "/run/netns";

/// File systems that stand inside `/sys` and belong to the machine, not to a network namespace.
const SYS_MOUNTS: [&str; 5] =
    ["/sys/fs/bpf", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security"];

/// Runs a command on the lab's sender and returns its exit status; 128 plus the signal's number if one killed it.
///
/// The command sees `tx0`, an empty loopback, and:
/// - the namespaces under the names `ip netns` looks for: `ip -n receiver link`, `ip netns exec receiver CMD`,
///   and `dut` if there is a device;
/// - `/sys` as it is on that host (outside tools find their interfaces in `/sys/class/net`);
/// - only its own processes: it and all its descendants are in a PID namespace, which ends with the command or
///   with the calling process, whichever comes first, even if that is killed with SIGKILL;
///   and `host`, where the lab was made;
/// - the variables [`ENV_TX`], [`ENV_RX`], [`ENV_RECEIVER_NS`], [`ENV_HOST_NS`].
///
/// All mounts are in a mount namespace of the command's own. Call it from a program's only thread: other
/// threads would be hit by the signals that are passed on here.
///
/// # Errors
/// The command cannot be started, or the lab cannot be entered.
pub fn run_command(lab: &Lab, argv: &[OsString]) -> Result<i32, LabError> {
    run_command_beside(lab, argv, &[], || Ok(())).map(|(status, ())| status)
}

/// The same with further variables, beside something that `start` begins: threads that it starts are not hit by signals. What it gives is handed
/// back when the command has ended; if it fails, nothing is run.
///
/// # Errors
/// As of [`run_command`], and what `beside` says.
pub fn run_command_beside<T, E: From<LabError>>(
    lab: &Lab,
    argv: &[OsString],
    variables: &[(&str, OsString)],
    start: impl FnOnce() -> Result<T, E>,
) -> Result<(i32, T), E> {
    let (program, arguments) = argv.split_first().ok_or(LabError::NoCommand)?;
    let failed = |source| LabError::Command { command: program.to_string_lossy().into_owned(), source };
    let signals = sys::Signals::collect().map_err(failed)?;
    let beside = start()?;
    let status = in_scratch_thread(|| {
        let (mut command, _holder) = prepare(lab, &lab.sender, program)?;
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(failed)?;
        wait(child, &signals).map_err(failed)
    })??;
    Ok((status, beside))
}

/// A command that will run on one of the hosts, in namespaces that the calling thread takes for it, until nobody holds the
/// descriptor that comes with it.
fn prepare(lab: &Lab, on: &Host, program: &OsStr) -> Result<(Command, OwnedFd), LabError> {
    let host = Namespace::current()?;
    // The command's namespaces come from the thread that starts it. Nothing else of this process moves.
    on.namespace.enter_current_thread()?;
    sys::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWPID)
        .map_err(LabError::kernel("make a mount and a PID namespace"))?;
    set_up_mounts(lab, &host)?;
    let (lifeline, holder) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(LabError::kernel("make a pipe"))?;
    let mut command = Command::new(program);
    command
        .env(ENV_TX, lab.sender.interface)
        .env(ENV_RX, lab.receiver.interface)
        .env(ENV_RECEIVER_NS, Path::new(RUN_NETNS).join("receiver"))
        .env(ENV_HOST_NS, Path::new(RUN_NETNS).join(HOST));
    sys::supervise(&mut command, lifeline);
    Ok((command, holder))
}

/// A command that runs on a host of a lab, with all its descendants: they end when this is dropped, or with the calling process,
/// in whatever way that ends.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The command's init waits on the other end.
    lifeline: Option<OwnedFd>,
}

/// Starts a command on a host of the lab, in the background, with mounts and processes as [`run_command`] has them (`/run/netns`
/// is a folder of its own that it may write to). It reads nothing, and what it prints goes to `output`. It may run on these CPUs;
/// none: on those of the calling thread.
///
/// # Errors
/// The command cannot be started, or the lab cannot be entered.
pub fn start(
    lab: &Lab,
    on: &Host,
    argv: &[OsString],
    output: &File,
    cpus: &[usize],
) -> Result<Running, LabError> {
    let (program, arguments) = argv.split_first().ok_or(LabError::NoCommand)?;
    let failed = |source| LabError::Command { command: program.to_string_lossy().into_owned(), source };
    in_scratch_thread(|| {
        let (mut command, lifeline) = prepare(lab, on, program)?;
        if !cpus.is_empty() {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu));
            sched_setaffinity(None, &set).map_err(LabError::kernel("choose CPUs"))?;
        }
        let [out, err] = [output.try_clone(), output.try_clone()];
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.map_err(failed)?)
            .stderr(err.map_err(failed)?);
        let child = command.spawn().map_err(failed)?;
        Ok(Running { child, lifeline: Some(lifeline) })
    })?
}

impl Running {
    /// Asks it to end.
    pub fn terminate(&self) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    /// Its status, if it has ended: 128 plus the signal's number if one killed it.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok()??;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.lifeline = None;
        // Its init ends of itself now, and takes all others along.
        let _ = self.child.wait();
    }
}

/// Waits for the command and passes signals on.
fn wait(mut child: Child, signals: &sys::Signals) -> Result<i32, std::io::Error> {
    let pid = Pid::from_child(&child);
    let pidfd: OwnedFd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let mut polled = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [ended, signalled] = polled.map(|fd| !fd.revents().is_empty());
        if ended {
            let status = child.wait()?;
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        if signalled && let Some(signal) = signals.take().and_then(Signal::from_named_raw) {
            // The pidfd makes sure that this is still our child.
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
}

/// Gives the calling thread's mount namespace the lab's `/sys` and `/run/netns`.
fn set_up_mounts(lab: &Lab, host: &Namespace) -> Result<(), LabError> {
    // Mounts made outside still arrive, so that nothing is pinned; ours stay in here.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|errno| match errno {
            Errno::INVAL => LabError::Root,
            errno => LabError::kernel("make mounts private")(errno),
        })?;
    match mount_sysfs() {
        // Without real root the kernel may refuse, e.g. in a container that hides parts of /sys. Only tools that read
        // /sys/class/net notice: they see the interfaces outside.
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(LabError::kernel("mount the lab's /sys")(errno)),
    }
    let failed = |error: std::io::Error| {
        LabError::kernel("set up the lab's /run/netns")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    if Path::new(RUN_NETNS).is_dir() {
        mount_tmpfs(RUN_NETNS).map_err(|errno| failed(errno.into()))?;
    } else {
        mount_writable_run().map_err(failed)?;
        fs::create_dir(RUN_NETNS).map_err(failed)?;
    }
    let device = lab.device.as_ref().map(|[port, _]| (DEVICE, port));
    for (name, host) in [("sender", &lab.sender), ("receiver", &lab.receiver)].into_iter().chain(device) {
        bind_namespace(&host.namespace, &Path::new(RUN_NETNS).join(name)).map_err(failed)?;
    }
    bind_namespace(host, &Path::new(RUN_NETNS).join(HOST)).map_err(failed)
}

/// Mounts a `/sys` that shows this thread's network namespace, with what was mounted inside the old one.
fn mount_sysfs() -> Result<(), Errno> {
    let parent_device = rustix::fs::stat("/sys")?.st_dev;
    let inner: Vec<(OwnedFd, &str)> = SYS_MOUNTS
        .into_iter()
        .filter(|path| rustix::fs::stat(*path).is_ok_and(|stat| stat.st_dev != parent_device))
        .filter_map(|path| Some((clone_tree(path).ok()?, path)))
        .collect();
    let context = rustix::mount::fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let sysfs = rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )?;
    attach(&sysfs, "/sys")?;
    for (tree, path) in inner {
        // A directory that the fresh sysfs does not have is nothing to the command.
        let _ = attach(&tree, path);
    }
    Ok(())
}

fn clone_tree(path: &str) -> Result<OwnedFd, Errno> {
    rustix::mount::open_tree(
        CWD,
        path,
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE,
    )
}

fn attach(tree: &OwnedFd, path: &str) -> Result<(), Errno> {
    rustix::mount::move_mount(tree.as_fd(), "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn mount_tmpfs(path: &str) -> Result<(), Errno> {
    rustix::mount::mount(
        "netdyno-lab",
        path,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        c"mode=755",
    )
}

/// Where the machine has no `/run/netns`, making it would leave a directory behind. So `/run` becomes a tmpfs
/// (in the command's view only) in which everything that was there is mounted again.
fn mount_writable_run() -> Result<(), std::io::Error> {
    let old = rustix::fs::open(RUN, rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC, Mode::empty())?;
    let entries: Vec<_> = fs::read_dir(RUN)?.collect::<Result<_, _>>()?;
    mount_tmpfs(RUN)?;
    for entry in entries {
        let place = entry.path();
        let old_place =
            Path::new("/proc/thread-self/fd").join(old.as_raw_fd().to_string()).join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&old_place)?, &place)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&place)?;
        } else {
            fs::File::create(&place)?;
        }
        // An entry that went away or cannot be mounted leaves an empty place.
        let _ = rustix::mount::mount_bind_recursive(&old_place, &place);
    }
    Ok(())
}

fn bind_namespace(namespace: &Namespace, place: &Path) -> Result<(), std::io::Error> {
    fs::File::create(place)?;
    let source = Path::new("/proc/thread-self/fd").join(namespace.as_fd().as_raw_fd().to_string());
    Ok(rustix::mount::mount_bind(source, place)?)
}
