//! Names of the kernel's functions, by addresses in them: /proc/kallsyms.

use std::{fs, io};

/// No function is longer, of a module or of the kernel: an address farther behind the last one that begins before it is in a module
/// that is gone.
const LONGEST: u64 = 64 << 10;

/// What an address is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In this function.
    Function(String),
    /// The kernel hides its addresses from this process.
    Hidden,
    /// In none that there is now: of a module that was unloaded, perhaps.
    Unknown,
}

/// All functions, by address.
#[derive(Debug)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Those of the running kernel, as far as it shows them to this process.
    pub fn read() -> io::Result<Symbols> {
        Ok(Symbols::parse(&String::from_utf8_lossy(&fs::read("/proc/kallsyms")?)))
    }

    fn parse(text: &str) -> Symbols {
        let mut found: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        // Of several names of one place the first that is listed stays.
        found.sort_by_key(|(start, _)| *start);
        found.dedup_by_key(|(start, _)| *start);
        Symbols(found)
    }

    /// Where a function was called from, by the address that it returns to: that of the next instruction, perhaps of the next
    /// function. Some tracepoints tell a function's begin instead, which is no place to return to.
    pub fn caller(&self, location: u64) -> Place {
        match self.0.binary_search_by_key(&location, |(start, _)| *start) {
            Ok(index) => self.named(index),
            Err(_) => self.at(location.saturating_sub(1)),
        }
    }

    /// From where to where a function is.
    pub fn function(&self, wanted: &str) -> Option<(u64, u64)> {
        let index = self.0.iter().position(|(_, name)| name.split('.').next() == Some(wanted))?;
        let start = self.0.get(index)?.0;
        let end = self.0.get(index + 1).map_or(start + LONGEST, |(next, _)| *next);
        Some((start, end.min(start + LONGEST)))
    }

    fn at(&self, address: u64) -> Place {
        let behind = self.0.partition_point(|(start, _)| *start <= address);
        let Some(index) = behind.checked_sub(1) else {
            return if self.0.is_empty() { Place::Hidden } else { Place::Unknown };
        };
        match self.0.get(index) {
            Some((start, _)) if address - start < LONGEST => self.named(index),
            _ => Place::Unknown,
        }
    }

    fn named(&self, index: usize) -> Place {
        // The compiler's variants of a function: `.isra.0`, `.cold`, `.constprop.0`.
        let name = self.0.get(index).and_then(|(_, name)| name.split('.').next());
        name.map_or(Place::Unknown, |name| Place::Function(name.to_owned()))
    }
}

/// Address and name of a function. Other symbols are passed over, and hidden ones, whose address is 0.
fn function(line: &str) -> Option<(u64, String)> {
    let (address, rest) = line.split_once(' ')?;
    let rest = rest.strip_prefix(['t', 'T', 'w', 'W'])?.strip_prefix(' ')?;
    let name = rest.split('\t').next()?.trim_end();
    let address = u64::from_str_radix(address, 16).ok()?;
    // What pads a function stands before it and bears its name.
    (address != 0 && !name.starts_with("__pfx_")).then(|| (address, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "ffffffff81000000 T first\nffffffff81000100 t second.isra.0\nffffffff810000f0 t __pfx_second\n\
                          ffffffff81000100 t alias\nffffffff81000200 D data\nffffffffc0000000 t last\t[module]\n";

    #[test]
    fn a_place_is_named_by_the_function_that_called_from_there() {
        let symbols = Symbols::parse(LISTED);
        assert_eq!(symbols.function("second"), Some((0xffff_ffff_8100_0100, 0xffff_ffff_8101_0100)));
        assert_eq!(symbols.function("third"), None);
        let function = |name: &str| Place::Function(name.to_owned());
        for (location, wanted) in [
            (0xffff_ffff_8100_0042, function("first")),
            (0xffff_ffff_8100_0100, function("second")),
            (0xffff_ffff_8100_0101, function("second")),
            (0xffff_ffff_8100_0300, function("second")),
            (0xffff_ffff_9000_0000, Place::Unknown),
            (0xffff_ffff_c000_0010, function("last")),
            (0xffff_ffff_c001_0001, Place::Unknown),
            (0x1000, Place::Unknown),
        ] {
            assert_eq!(symbols.caller(location), wanted, "{location:x}");
        }
    }

    #[test]
    fn hidden_symbols_are_no_names() {
        let symbols = Symbols::parse("0000000000000000 T first\n0000000000000000 t second\n");
        assert_eq!(symbols.caller(0xffff_ffff_8100_0042), Place::Hidden);
    }
}
