//! Networks of IP addresses, as the tcpreplay suite writes them: `10.0.0.0/8,[2001:db8::/32]`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: the addresses that share a prefix. An address alone is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

/// Several of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nets(pub Vec<Net>);

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a network: write an address and a prefix length, such as 10.0.0.0/8 or [2001:db8::/32]"
)]
pub struct BadNet(pub String);

impl Net {
    /// The network of the first `prefix` bits of `address`; `None` if it has fewer.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Net> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= most).then_some(Net { address, prefix })
    }

    /// The address it was given with; its host part is not cleared.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits the addresses share.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether the address is in it. One of the other family never is.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let differ = net.to_bits() ^ address.to_bits();
                differ.checked_shr(32 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let differ = net.to_bits() ^ address.to_bits();
                differ.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Nets {
    /// Whether the address is in one of them.
    #[inline]
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(address))
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Net {
    type Err = BadNet;

    fn from_str(text: &str) -> Result<Net, BadNet> {
        let bad = || BadNet(text.to_owned());
        let inner = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(bad)?,
            None => text,
        };
        let (address, prefix) = match inner.split_once('/') {
            Some((address, prefix)) => {
                // `parse` would take a sign.
                let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
                let prefix = prefix.parse().ok().filter(|_| digits).ok_or_else(bad)?;
                (address, Some(prefix))
            }
            None => (inner, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        Net::new(address, prefix.unwrap_or(whole)).ok_or_else(bad)
    }
}

impl FromStr for Nets {
    type Err = BadNet;

    /// Reads a list with commas.
    fn from_str(text: &str) -> Result<Nets, BadNet> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Nets)
    }
}
