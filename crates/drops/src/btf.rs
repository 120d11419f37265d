//! The kernel's description of its types (BTF), as far as names of reasons need it: enumerations, and how many values a tracepoint gives.
//!
//! Read anew from /sys/kernel/btf, where a module's types go on counting where the kernel's end. The layout is that of
//! linux/btf.h (Documentation/bpf/btf.rst). What is cut off or contradicts itself ends the reading.

/// Kinds of types, by `enum` of linux/btf.h, that are looked at or skipped by another length than 12 bytes.
mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const DECL_TAG: u32 = 17;
    pub const ENUM64: u32 = 19;
}

/// A type, as far as it is looked at.
#[derive(Debug, Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    members: u32,
    /// Or its size.
    to: u32,
    /// Where its members begin in the section of types.
    at: usize,
}

/// Types and their names, of the kernel or of one of its modules.
#[derive(Debug)]
pub struct Btf<'a> {
    types: Vec<Type>,
    /// The number of the first type, and the offset of the first string.
    first: (u32, u32),
    section: &'a [u8],
    strings: &'a [u8],
    base: Option<&'a Btf<'a>>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// How many bytes stand behind the twelve that every type has.
fn behind(kind: u32, members: u32) -> Option<usize> {
    let each = match kind {
        kind::INT | kind::VAR | kind::DECL_TAG => return Some(4),
        kind::ARRAY => return Some(12),
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12,
        kind::ENUM | kind::FUNC_PROTO => 8,
        0..=19 => 0,
        _ => return None,
    };
    Some(each * members as usize)
}

impl<'a> Btf<'a> {
    /// Reads `bytes`, a file of /sys/kernel/btf; `base` is the kernel's own where they are a module's.
    pub fn read(bytes: &'a [u8], base: Option<&'a Btf<'a>>) -> Option<Btf<'a>> {
        if word(bytes, 0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let part = |at: usize, length: usize| {
            let start = header.checked_add(word(bytes, at)? as usize)?;
            bytes.get(start..start.checked_add(word(bytes, length)? as usize)?)
        };
        let (section, strings) = (part(8, 12)?, part(16, 20)?);
        let first = match base {
            None => (1, 0),
            Some(base) => (base.first.0 + base.types.len() as u32, base.strings.len() as u32),
        };
        let (mut types, mut at) = (Vec::new(), 0);
        while at < section.len() {
            let (name, info, to) = (word(section, at)?, word(section, at + 4)?, word(section, at + 8)?);
            let (kind, members) = (info >> 24 & 0x1f, info & 0xffff);
            types.push(Type { name, kind, members, to, at: at + 12 });
            at += 12 + behind(kind, members)?;
        }
        Some(Btf { types, first, section, strings, base })
    }

    fn string(&self, offset: u32) -> Option<&str> {
        if offset < self.first.1 {
            return self.base?.string(offset);
        }
        let from = self.strings.get((offset - self.first.1) as usize..)?;
        std::str::from_utf8(from.split(|byte| *byte == 0).next()?).ok()
    }

    fn by_number(&self, number: u32) -> Option<&Type> {
        match number.checked_sub(self.first.0) {
            Some(index) => self.types.get(index as usize),
            None => self.base?.by_number(number),
        }
    }

    /// The names and values of all enumerations whose own name is `wanted`.
    pub fn enumerations(&self, wanted: impl Fn(&str) -> bool) -> Vec<(&str, u32)> {
        let mut found = Vec::new();
        for one in &self.types {
            let each = match one.kind {
                kind::ENUM => 8,
                kind::ENUM64 => 12,
                _ => continue,
            };
            if !self.string(one.name).is_some_and(&wanted) {
                continue;
            }
            for member in 0..one.members as usize {
                let at = one.at + member * each;
                let name = word(self.section, at).and_then(|name| self.string(name));
                if let (Some(name), Some(value)) = (name, word(self.section, at + 4)) {
                    found.push((name, value));
                }
            }
        }
        found
    }

    /// How many values a tracepoint gives to who hangs on it. `None`: there is no such tracepoint.
    pub fn tracepoint_values(&self, tracepoint: &str) -> Option<u32> {
        let wanted = format!("btf_trace_{tracepoint}");
        let named = |one: &&Type| one.kind == kind::TYPEDEF && self.string(one.name) == Some(&wanted);
        let pointer =
            self.by_number(self.types.iter().find(named)?.to).filter(|one| one.kind == kind::PTR)?;
        let function = self.by_number(pointer.to).filter(|one| one.kind == kind::FUNC_PROTO)?;
        // The first one is the tracepoint's own.
        function.members.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BTF of these types (name, kind and members, size or type, what stands behind), with these strings.
    fn written(types: &[(u32, u32, u32, &[u32])], strings: &[u8]) -> Vec<u8> {
        let mut section = Vec::new();
        for (name, info, to, behind) in types {
            for word in [name, info, to].into_iter().chain(behind.iter()) {
                section.extend(word.to_ne_bytes());
            }
        }
        let mut bytes = Vec::new();
        let length = section.len() as u32;
        for word in [0x0001_eb9f, 24, 0, length, length, strings.len() as u32] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(section);
        bytes.extend(strings);
        bytes
    }

    const NAMES: &[u8] = b"\0drop\0A\0B\0btf_trace_t\0";

    fn example() -> Vec<u8> {
        written(
            &[
                (1, kind::ENUM << 24 | 2, 4, &[6, 0, 8, 0x3_0001]),
                (0, kind::FUNC_PROTO << 24 | 3, 0, &[0, 0, 0, 0, 0, 0]),
                (0, kind::PTR << 24, 2, &[]),
                (10, kind::TYPEDEF << 24, 3, &[]),
            ],
            NAMES,
        )
    }

    #[test]
    fn enumerations_and_tracepoints_are_found_by_name() {
        let bytes = example();
        let btf = Btf::read(&bytes, None).expect("well-formed");
        assert_eq!(btf.enumerations(|name| name == "drop"), [("A", 0), ("B", 0x3_0001)]);
        assert_eq!(btf.tracepoint_values("t"), Some(2));
        assert_eq!(btf.tracepoint_values("other"), None);
    }

    #[test]
    fn a_modules_types_and_strings_go_on_behind_the_kernels() {
        let bytes = example();
        let base = Btf::read(&bytes, None).expect("well-formed");
        // Its strings begin at offset 23 with an empty one.
        let own = written(&[(24, kind::ENUM64 << 24 | 1, 8, &[8, 7, 0])], b"\0module\0");
        assert_eq!(NAMES.len(), 22);
        let own_at_22 = written(&[(23, kind::ENUM64 << 24 | 1, 8, &[8, 7, 0])], b"\0module\0");
        let module = Btf::read(&own_at_22, Some(&base)).expect("well-formed");
        assert_eq!(module.enumerations(|name| name == "module"), [("B", 7)]);
        let module = Btf::read(&own, Some(&base)).expect("well-formed");
        assert_eq!(module.enumerations(|name| name == "module"), []);
    }

    #[test]
    fn what_is_cut_off_anywhere_is_refused_or_read_as_less_without_a_panic() {
        let bytes = example();
        for length in 0..bytes.len() {
            let _ = Btf::read(&bytes[..length], None).map(|btf| btf.tracepoint_values("t"));
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0xff;
            let _ = Btf::read(&wrong, None)
                .map(|btf| (btf.tracepoint_values("t"), btf.enumerations(|_| true).len()));
        }
    }

    #[test]
    fn this_kernels_reasons_are_read() {
        let bytes = std::fs::read("/sys/kernel/btf/vmlinux").expect("a kernel with BTF");
        let btf = Btf::read(&bytes, None).expect("well-formed");
        let reasons = btf.enumerations(|name| name == "skb_drop_reason");
        assert!(reasons.iter().any(|(name, _)| *name == "SKB_DROP_REASON_NOT_SPECIFIED"), "{reasons:?}");
        assert!(btf.tracepoint_values("kfree_skb").is_some_and(|values| (2..=4).contains(&values)));
    }
}
