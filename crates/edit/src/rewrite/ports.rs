//! Which ports become which.

use std::fmt;

/// A table over all ports, so that a lookup costs the same whatever was asked for. The first mapping of a port wins.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PortMap {
    /// Empty, or 65536 entries.
    table: Vec<Option<u16>>,
}

impl fmt::Debug for PortMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.table.iter().enumerate().filter_map(|(from, to)| to.map(|to| (from, to))))
            .finish()
    }
}

impl PortMap {
    /// Maps `from` unless it is mapped already.
    pub fn insert(&mut self, from: u16, to: u16) {
        if self.table.is_empty() {
            self.table = vec![None; 1 << 16];
        }
        if let Some(entry) = self.table.get_mut(usize::from(from)) {
            entry.get_or_insert(to);
        }
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether a port is mapped.
    pub fn holds(&self, port: u16) -> bool {
        self.table.get(usize::from(port)).is_some_and(Option::is_some)
    }

    /// What a port becomes.
    #[inline]
    pub fn get(&self, port: u16) -> u16 {
        self.table.get(usize::from(port)).copied().flatten().unwrap_or(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mapping_of_a_port_wins() {
        let mut map = PortMap::default();
        assert_eq!(map.get(80), 80);
        map.insert(80, 8080);
        map.insert(80, 9090);
        map.insert(65535, 0);
        assert_eq!((map.get(80), map.get(65535), map.get(81)), (8080, 0, 81));
    }
}
