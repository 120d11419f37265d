//! Who came here by SSH, and from where.

use std::net::IpAddr;

/// The client's and our own address if the user came by SSH. `sudo` clears the variable that tells, so the
/// environments of the processes above are looked at, too.
pub(super) fn login() -> Option<(IpAddr, IpAddr)> {
    let own = std::env::var("SSH_CONNECTION").ok();
    own.or_else(|| ancestors().find_map(ssh_connection_of)).and_then(|text| parse_ssh_connection(&text))
}

fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name, in parentheses, and may hold anything; the fourth is the parent.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 1)
    };
    std::iter::successors(Some(std::process::id()), parent).skip(1)
}

fn ssh_connection_of(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| Some(str::from_utf8(entry).ok()?.strip_prefix("SSH_CONNECTION=")?.to_owned()))
}

/// `CLIENT PORT SERVER PORT`, ssh(1). A link-local address carries its interface: `fe80::1%eth0`.
fn parse_ssh_connection(text: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = text.split_whitespace();
    let mut address = |nth| words.nth(nth)?.split('%').next()?.parse().ok();
    Some((address(0)?, address(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssh_login_names_both_addresses() {
        let parsed = parse_ssh_connection("192.0.2.7 51234 198.51.100.1 22").unwrap();
        assert_eq!(parsed, ("192.0.2.7".parse().unwrap(), "198.51.100.1".parse().unwrap()));
        let parsed = parse_ssh_connection("fe80::1%eth0 51234 fe80::2%eth0 22").unwrap();
        assert_eq!(parsed.1, "fe80::2".parse::<IpAddr>().unwrap());
        assert_eq!(parse_ssh_connection("garbage"), None);
    }
}
