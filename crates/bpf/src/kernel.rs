//! What the kernel's refusal of a program means, in one line: which Linux has what is missing.
//!
//! A program is tried, never judged by the kernel's version, because distributions carry parts of newer kernels back.
//! Versions serve the words alone.

/// What programs of this project use beyond the oldest kernel they are for, and the Linux that brought it. The helpers'
/// numbers are those of `enum bpf_func_id` (linux/bpf.h), which a verifier names when it does not know one.
const HELPERS: [(u32, &str, (u32, u32)); 5] = [
    (118, "reading the kernel's ticks (bpf_jiffies64)", (5, 5)),
    (188, "a frame in several buffers (bpf_xdp_get_buff_len)", (5, 18)),
    (189, "copying bytes out of a frame (bpf_xdp_load_bytes)", (5, 18)),
    (190, "copying bytes into a frame (bpf_xdp_store_bytes)", (5, 18)),
    (208, "stamping by CLOCK_TAI in a program (bpf_ktime_get_tai_ns)", (6, 1)),
];

/// Of the oldest kernel on which anything of this project is attached: XDP on links.
pub const OLDEST: (u32, u32) = (5, 9);

/// The kernel's release, as `uname -r` prints it.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Its version and patch level.
pub fn version() -> Option<(u32, u32)> {
    parse(&release())
}

/// Whether this kernel is older than `wanted`. One that does not say its version is not.
pub fn is_before(wanted: (u32, u32)) -> bool {
    version().is_some_and(|version| version < wanted)
}

fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// "tcx needs Linux 6.6 or newer, and this is 6.1.0-49-amd64".
pub fn needs(what: &str, (version, level): (u32, u32)) -> String {
    format!("{what} needs Linux {version}.{level} or newer, and this is {}", release())
}

/// Why a program was not loaded: by what its loader's log, with the verifier's in it, says, or else by `error`.
pub fn refusal(log: &str, error: &str) -> String {
    explained(log, error, version())
}

fn explained(log: &str, error: &str, version: Option<(u32, u32)>) -> String {
    if let Some((what, wanted)) = missing(log) {
        return needs(what, wanted);
    }
    if version.is_some_and(|version| version < OLDEST) {
        return needs("an XDP program on a link", OLDEST);
    }
    let said = decisive(log).unwrap_or_else(|| error.lines().next().unwrap_or_default().trim());
    format!("Linux {} refuses it: {said}", release())
}

/// What the log shows to be missing, and the Linux that has it.
fn missing(log: &str) -> Option<(&'static str, (u32, u32))> {
    if log.contains("BPF_STX uses reserved fields") {
        return Some(("an atomic operation that gives a value", (5, 12)));
    }
    let line = log.lines().rev().find(|line| {
        let words = ["invalid func", "unknown func", "program of this type cannot use helper"];
        words.iter().any(|word| line.contains(word))
    })?;
    let digits = line.rsplit('#').next()?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: u32 = digits.get(..end)?.parse().ok()?;
    HELPERS.iter().find(|(helper, ..)| *helper == number).map(|(_, what, wanted)| (*what, *wanted))
}

/// The verifier's last word before it counts its work.
fn decisive(log: &str) -> Option<&str> {
    verifiers(log)?.last()
}

/// What the verifier said before it counted its work.
fn verifiers(log: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, verifier) = log.rsplit_once("BEGIN PROG LOAD LOG --")?;
    let said = verifier
        .lines()
        .take_while(|line| !line.starts_with("processed ") && !line.contains("END PROG LOAD LOG"));
    Some(said.map(str::trim).filter(|line| !line.is_empty()))
}

/// The last lines of the verifier, or where it did not speak those of libbpf; at most so many.
pub(crate) fn last_lines(log: &str, most: usize) -> Vec<String> {
    let lines: Vec<&str> = match verifiers(log) {
        Some(said) => said.collect(),
        None => log.lines().map(|line| line.strip_prefix("libbpf: ").unwrap_or(line).trim()).collect(),
    };
    lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(verifier: &str) -> String {
        format!(
            "libbpf: prog 'meter': BPF program load failed: Invalid argument\nlibbpf: prog 'meter': -- BEGIN PROG \
             LOAD LOG --\n0: (b7) r0 = 1\n{verifier}\nprocessed 28 insns (limit 1000000) max_states_per_insn 0\n\
             -- END PROG LOAD LOG --\nlibbpf: prog 'meter': failed to load: -22\nlibbpf: failed to load object"
        )
    }

    #[test]
    fn a_refusal_is_one_line_that_names_the_kernel_that_has_what_is_missing() {
        let said = |verifier: &str| explained(&log(verifier), "Invalid argument", Some((5, 10)));
        for (verifier, wanted) in [
            ("BPF_STX uses reserved fields", "needs Linux 5.12 or newer, and this is "),
            (
                "unknown func bpf_ktime_get_tai_ns#208",
                "CLOCK_TAI in a program (bpf_ktime_get_tai_ns) needs Linux 6.1",
            ),
            ("invalid func unknown#189", "(bpf_xdp_load_bytes) needs Linux 5.18 or newer"),
            ("invalid func unknown#4711", "refuses it: invalid func unknown#4711"),
            ("R4 invalid zero-sized read: u64=[0,63]", "refuses it: R4 invalid zero-sized read: u64=[0,63]"),
        ] {
            let said = said(verifier);
            assert!(said.contains(wanted) && said.lines().count() == 1, "{verifier}: {said}");
        }
    }

    #[test]
    fn the_last_lines_are_the_verifiers_or_else_libbpfs() {
        let lines = last_lines(&log("1: (bf) r2 = r1\nR1 min value is outside of the allowed range"), 2);
        assert_eq!(lines, ["1: (bf) r2 = r1", "R1 min value is outside of the allowed range"]);
        let lines = last_lines("libbpf: elf: no BPF programs\nlibbpf: failed", 9);
        assert_eq!(lines, ["elf: no BPF programs", "failed"]);
        assert_eq!(last_lines("", 3), Vec::<String>::new());
    }

    #[test]
    fn without_a_verifiers_word_the_error_is_told_and_an_old_kernel_is_named() {
        let said = explained("libbpf: failed", "No such device (os error 19)\nmore", Some((6, 1)));
        assert!(said.ends_with("refuses it: No such device (os error 19)"), "{said}");
        let said = explained("", "Invalid argument", Some((5, 4)));
        assert!(said.contains("an XDP program on a link needs Linux 5.9 or newer"), "{said}");
    }

    #[test]
    fn releases_of_distributions_are_read() {
        assert_eq!(parse("6.1.0-49-amd64"), Some((6, 1)));
        assert_eq!(parse("5.14.0-427.13.1.el9_4.x86_64"), Some((5, 14)));
        assert_eq!(parse("7.3.4+deb14-amd64"), Some((7, 3)));
        assert_eq!(parse("6.18-rc1"), Some((6, 18)));
        assert_eq!(parse("unknown"), None);
        assert!(version().is_some() && !is_before((4, 0)));
    }
}
