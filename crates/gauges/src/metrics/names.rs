//! What this host is called, by what it says itself. No name server is asked: who answers there could name it anything, and
//! a search of its libraries ends where a program is linked statically.

use super::head::plain;
use std::fs::read_to_string;

/// The kernel's name of this host, those that its files give it, and `given`.
pub fn own(given: &[String]) -> Vec<String> {
    let file = |path: &str| read_to_string(path).unwrap_or_default();
    let nodename = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut names =
        of_files(&nodename, &file("/etc/hostname"), &file("/etc/hosts"), &file("/etc/resolv.conf"));
    names.extend(given.iter().map(|name| plain(name)));
    names
}

/// hostname(5), hosts(5), resolv.conf(5).
fn of_files(nodename: &str, hostname: &str, hosts: &str, resolv_conf: &str) -> Vec<String> {
    let nodename = plain(nodename);
    let mut names = vec![nodename.clone()];
    names.extend(lines(hostname).next().map(|line| plain(line.trim())));
    for line in lines(hosts) {
        let of_line: Vec<String> = line.split_whitespace().skip(1).map(plain).collect();
        if of_line.contains(&nodename) {
            names.extend(of_line);
        }
    }
    // Of several lines the last counts.
    let domains = lines(resolv_conf).filter_map(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("search" | "domain")).then(|| words.map(plain).collect::<Vec<_>>())
    });
    let short = nodename.split('.').next().unwrap_or("");
    let domains = domains.last().unwrap_or_default();
    names
        .extend(domains.iter().filter(|domain| !domain.is_empty()).map(|domain| format!("{short}.{domain}")));
    names.retain(|name| !name.is_empty());
    names
}

/// Without comments and empty lines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split(['#', ';']).next().unwrap_or("").trim())
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hosts_files() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1\tVM.lab.example.com vm # ours\n192.0.2.1 other.example.com other\n";
        let names =
            of_files("vm", "vm\n", hosts, "domain old.example\nsearch a.example b.example.\noptions x\n");
        for name in ["vm", "vm.lab.example.com", "vm.a.example", "vm.b.example"] {
            assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
        }
        for name in ["localhost", "other", "other.example.com", "vm.old.example", "vm.example.net"] {
            assert!(!names.contains(&name.to_owned()), "{name}: {names:?}");
        }
        assert_eq!(of_files("vm.x.example", "", "", "search ."), ["vm.x.example"]);
        assert!(own(&["Given.Example.".to_owned()]).contains(&"given.example".to_owned()));
    }
}
