//! How much memory there is to be had, so that what would not fit is refused with a sentence instead of ending in the
//! kernel's hands.

use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;
use std::path::Path;

/// Bytes that may still be taken: what the kernel has left, the control groups that this process is in, and its own limit
/// allow. One part in sixteen is left to others.
pub fn available() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let own = getrlimit(Resource::As).current.map(|limit| limit.saturating_sub(taken()));
    let least = [machine, groups(), own].into_iter().flatten().min().unwrap_or(u64::MAX);
    least - least / 16
}

fn of_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The address space that is in use.
fn taken() -> u64 {
    let pages = read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// What is left in the tightest control group (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
fn groups() -> Option<u64> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    own.lines().filter_map(place_of_group).filter_map(|(root, own, names)| tightest(root, own, names)).min()
}

/// Files that tell of a group: its limit, what it takes, and of what.
type Names = [&'static str; 2];
const V1: Names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
const V2: Names = ["memory.max", "memory.current"];

/// Where a line of /proc/self/cgroup (cgroups(7)) leads to, if it is of a hierarchy that limits memory.
fn place_of_group(line: &str) -> Option<(&'static str, &str, Names)> {
    let (_, line) = line.split_once(':')?;
    let (controllers, own) = line.split_once(":/")?;
    match controllers {
        "" => Some(("/sys/fs/cgroup", own, V2)),
        _ if controllers.split(',').any(|one| one == "memory") => Some(("/sys/fs/cgroup/memory", own, V1)),
        _ => None,
    }
}

fn tightest(root: &str, own: &str, [most, current]: Names) -> Option<u64> {
    let folder = Path::new(root).join(own);
    let of = |folder: &Path| {
        let read = |name: &str| read_to_string(folder.join(name)).ok();
        of_group(&read(most)?, &read(current)?, &read("memory.stat").unwrap_or_default())
    };
    folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(of).min()
}

/// Files that the kernel keeps in memory, and what it knows of them, count for a group but go when others need the room.
fn of_group(most: &str, current: &str, stat: &str) -> Option<u64> {
    // "max": no limit.
    let most = most.trim().parse::<u64>().ok()?;
    let current = current.trim().parse::<u64>().ok()?;
    let of = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    // Version 1 has those of the groups below under names of their own, as its sum of what is taken has them.
    let either = |name: &str| of(&format!("total_{name}")).or_else(|| of(name)).unwrap_or(0);
    let given_back = ["inactive_file", "active_file", "slab_reclaimable"].map(either);
    let given_back = given_back.into_iter().fold(0, u64::saturating_add);
    Some(most.saturating_sub(current.saturating_sub(given_back)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let meminfo = "MemTotal:       24691204 kB\nMemFree: 1 kB\nMemAvailable:   21000000 kB\n";
        assert_eq!(of_machine(meminfo), Some(21_000_000 * 1024));
        assert_eq!((of_machine(""), of_machine("MemAvailable: many kB\n")), (None, None));
        assert_eq!(of_group("max\n", "5\n", ""), None);
        assert_eq!(of_group("1000\n", "700\n", "anon 3\ninactive_file 200\n"), Some(500));
        assert_eq!(of_group("1000\n", "1700\n", ""), Some(0));
        let stat = "inactive_file 200\nactive_file 50\nslab_reclaimable 5\nslab_unreclaimable 9\n";
        assert_eq!(of_group("1000\n", "700\n", stat), Some(555));
        let stat = "inactive_file 1\nactive_file 1\ntotal_inactive_file 200\ntotal_active_file 50\n";
        assert_eq!(of_group("1000\n", "700\n", stat), Some(550));
        assert!(available() > 1 << 20);
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        assert_eq!(place_of_group("0::/user.slice/a"), Some(("/sys/fs/cgroup", "user.slice/a", V2)));
        assert_eq!(place_of_group("9:cpu,memory:/a"), Some(("/sys/fs/cgroup/memory", "a", V1)));
        assert_eq!((place_of_group("1:name=systemd:/a"), place_of_group("")), (None, None));

        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        for (at, most) in [("", "9223372036854771712\n"), ("a/", "1000\n")] {
            write(&format!("{at}memory.limit_in_bytes"), most);
            write(&format!("{at}memory.usage_in_bytes"), "700\n");
        }
        let root = root.path().to_str().unwrap();
        assert_eq!((tightest(root, "a", V1), tightest(root, "a", V2)), (Some(300), None));
        // In a container the group's name is that of the host, and what is mounted is the group itself.
        assert_eq!(tightest(root, "none/such", V1), Some(9_223_372_036_854_771_712 - 700));
    }
}
