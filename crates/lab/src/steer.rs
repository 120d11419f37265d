//! Which CPUs do the device's work.
//!
//! What is sent into a virtual cable is forwarded by the CPU that sent it, in the same call: a device that is busy would
//! slow its sender down, where a device of its own would lose frames. Receive packet steering
//! (Documentation/networking/scaling.rst) hands what arrives at a port to other CPUs. It is set in sysfs, of which a copy
//! is opened that is mounted nowhere: sysfs shows the network namespace of whoever opened it.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::{Host, LabError};

/// Hands what arrives at `port` to these CPUs. One that has no number below 32 is left out.
pub fn to_cpus(port: &Host, cpus: &[usize]) -> Result<(), LabError> {
    let mask = cpus.iter().filter(|&&cpu| cpu < 32).fold(0u32, |mask, cpu| mask | 1 << cpu);
    let name = port.interface;
    let set = || -> Result<(), Errno> {
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let sysfs = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        for queue in 0.. {
            let file = format!("class/net/{name}/queues/rx-{queue}/rps_cpus");
            match rustix::fs::openat(&sysfs, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
                Ok(file) => rustix::io::write(file, format!("{mask:x}").as_bytes()).map(drop)?,
                Err(Errno::NOENT) if queue > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    port.namespace.run_in(set)?.map_err(LabError::kernel(format!("choose the CPUs that serve {name}")))
}
