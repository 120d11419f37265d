//! The one place that writes numbers with units for people: `1.60 Mpps`, `9.71 Gbit/s`, `12.3 us`, `1m 30s`,
//! `1,234,567`. Three significant digits, decimal prefixes, ASCII. Reading them is the command line's work;
//! files for machines carry plain numbers with the unit in the name.

/// `1,234,567`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 frame`, `2,000 frames`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Events a second, in full: `1,440,195/s`, `0.5/s`.
pub fn event_rate(per_second: f64) -> String {
    if per_second >= 100.0 {
        format!("{}/s", count(per_second.round() as u64))
    } else {
        format!("{per_second:.1}/s")
    }
}

/// `1.60 Mpps`
pub fn frame_rate(frames_per_second: f64) -> String {
    scaled(frames_per_second, "pps")
}

/// `9.71 Gbit/s`
pub fn bit_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, "bit/s")
}

/// New flows a second, `100 kflows/s`.
pub fn flow_rate(flows_per_second: f64) -> String {
    scaled(flows_per_second, "flows/s")
}

/// `17.8 GB`
pub fn bytes(n: u64) -> String {
    if n < 1000 { format!("{n} B") } else { scaled(n as f64, "B") }
}

/// The size of a buffer: `64 KiB` where it is a whole number of them, else (and where it is one of thousands) as [`bytes`].
pub fn buffer(n: u64) -> String {
    let binary = [(1_u64 << 20, "MiB"), (1 << 10, "KiB")].into_iter().filter(|_| !n.is_multiple_of(1000));
    let whole = binary.into_iter().find(|(unit, _)| n >= *unit && n.is_multiple_of(*unit));
    whole.map_or_else(|| bytes(n), |(unit, name)| format!("{} {name}", n / unit))
}

/// A short time, `12.3 us`, `450 ns`; from a minute on as [`clock`] does.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..60_000_000_000 => {
            let steps = [(1e3, "us"), (1e6, "ms"), (1e9, "s")];
            let fitting = steps.iter().find(|(unit, _)| three_digits(ns as f64 / unit).1 < 1000.0);
            let (unit, name) = fitting.copied().unwrap_or((1e9, "s"));
            let (text, value) = three_digits(ns as f64 / unit);
            // 59.97 s rounds to a minute, which has a way of writing of its own.
            if name == "s" && value >= 60.0 { clock(60_000_000_000) } else { format!("{text} {name}") }
        }
        _ => clock(ns),
    }
}

/// A round time for an axis, without needless zeros: `10 us`, `2.5 ms`.
pub fn tick_time(ns: f64) -> String {
    let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let (unit, name) = steps.into_iter().find(|(unit, _)| ns >= *unit).unwrap_or((1.0, "ns"));
    let digits = format!("{:.3}", ns / unit);
    format!("{} {name}", trim_zeros(&digits))
}

/// The decimal prefix that makes `largest` a number below 1000, with its factor: `(1e6, "M")`.
pub fn prefix(largest: f64) -> (f64, &'static str) {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    steps.into_iter().find(|(factor, _)| largest >= *factor).unwrap_or((1.0, ""))
}

/// As [`time`], with a sign.
pub fn signed_time(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "-" } else { "" }, time(ns.unsigned_abs()))
}

/// Whole seconds: `5s`, `1m 30s`, `2h 5m`.
pub fn clock(ns: u64) -> String {
    let s = ns.saturating_add(500_000_000) / 1_000_000_000;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m {s}s"),
        (h, 0, _) => format!("{h}h"),
        (h, m, _) => format!("{h}h {m}m"),
    }
}

/// Time that something still takes: what still takes some is never told as nothing. `<1s`, `3m 20s`
pub fn ahead(ns: u64) -> String {
    if ns < 1_000_000_000 { "<1s".to_owned() } else { clock(ns) }
}

/// A word as one would type it: quoted where the shell would otherwise read it differently.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A ratio as percent, `0.0023 %`. What is not quite nothing or not quite all never reads as if it were.
pub fn percent(ratio: f64) -> String {
    let p = ratio * 100.0;
    if !p.is_finite() {
        return "-".to_owned();
    }
    match p.abs() {
        0.0 => "0 %".to_owned(),
        a if a < 0.0001 => format!("{}0.0001 %", if p < 0.0 { ">-" } else { "<" }),
        a if a < 0.1 => format!("{} %", trim_zeros(&format!("{p:.4}"))),
        a if a > 99.9 && a < 100.0 => {
            let nines = format!("{p:.4}");
            if nines.ends_with("100.0000") { ">99.9999 %".to_owned() } else { format!("{nines} %") }
        }
        100.0 => format!("{p:.0} %"),
        _ => format!("{} %", three_digits(p).0),
    }
}

/// A UTC time stamp, `2026-11-21T07:12:46Z`, from seconds since 1970 (RFC 3339, 5.6).
pub fn rfc3339(unix_seconds: u64) -> String {
    let (days, s) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let is_leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    // 400 Gregorian years are 146,097 days: skip whole ones so that the walk below is short for any input.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", left + 1)
}

/// Text from outside made fit for a terminal: what [`is_unprintable`] becomes an escape, so that a file name
/// cannot move the cursor, recolour the screen or turn the line around.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Control characters, invisible ones, and those that change the direction of text.
pub fn is_unprintable(c: char) -> bool {
    let ranges =
        ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{2069}', '\u{feff}'..='\u{feff}'];
    c.is_control() || ranges.iter().any(|range| range.contains(&c))
}

fn scaled(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return format!("- {unit}");
    }
    let mut scaled = value;
    for prefix in ["", "k", "M", "G", "T"] {
        let (text, rounded) = three_digits(scaled);
        if rounded.abs() < 1000.0 {
            return format!("{text} {prefix}{unit}");
        }
        scaled /= 1000.0;
    }
    format!("{scaled:.0} P{unit}")
}

/// Three significant digits, and the value they stand for (which may round up into the next thousand).
fn three_digits(value: f64) -> (String, f64) {
    let decimals = match value.abs() {
        0.0 => 0,
        a if a < 9.995 => 2,
        a if a < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let rounded = text.parse().unwrap_or(value);
    (text, rounded)
}

fn trim_zeros(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_a_prefix() {
        assert_eq!(frame_rate(1_602_566.65), "1.60 Mpps");
        assert_eq!([1, 999_999_999, 1_000_000_000].map(ahead), ["<1s", "<1s", "1s"]);
        assert_eq!(bit_rate(9.7066e9), "9.71 Gbit/s");
        assert_eq!(flow_rate(100_164.0), "100 kflows/s");
        assert_eq!(flow_rate(0.5), "0.50 flows/s");
        assert_eq!(frame_rate(999_999.0), "1.00 Mpps");
        assert_eq!(frame_rate(9_996.0), "10.0 kpps");
        assert_eq!(frame_rate(0.0), "0 pps");
        assert_eq!(frame_rate(0.5), "0.50 pps");
        assert_eq!(bit_rate(f64::NAN), "- bit/s");
        assert_eq!(bit_rate(1e18), "1000 Pbit/s");
        assert_eq!(bytes(17_770_889_200), "17.8 GB");
        assert_eq!(bytes(999), "999 B");
    }

    #[test]
    fn times_read_like_a_person_says_them() {
        let table = [
            (0, "0 ns"),
            (999, "999 ns"),
            (12_345, "12.3 us"),
            (999_999, "1.00 ms"),
            (20_034_000_000, "20.0 s"),
            (59_970_000_000, "1m"),
            (90_000_000_000, "1m 30s"),
            (3_600_000_000_000, "1h"),
            (7_500_000_000_000, "2h 5m"),
        ];
        for (ns, text) in table {
            assert_eq!(time(ns), text, "{ns} ns");
        }
        assert_eq!(signed_time(-45_000), "-45.0 us");
        assert_eq!(
            [1.0, 200.0, 1e3, 2.5e6, 1e10].map(tick_time),
            ["1 ns", "200 ns", "1 us", "2.5 ms", "10 s"]
        );
        assert_eq!(clock(u64::MAX), "5124095h 34m");
    }

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "frame"), "1 frame");
        assert_eq!(counted(2000, "frame"), "2,000 frames");
    }

    #[test]
    fn a_little_loss_never_reads_as_none_nor_almost_all_as_all() {
        let table = [
            (0.0, "0 %"),
            (1e-9, "<0.0001 %"),
            (0.000_023, "0.0023 %"),
            (0.0123, "1.23 %"),
            (0.323, "32.3 %"),
            (0.999_95, "99.9950 %"),
            (0.999_999_99, ">99.9999 %"),
            (1.0, "100 %"),
            (1.5, "150 %"),
        ];
        for (ratio, text) in table {
            assert_eq!(percent(ratio), text, "{ratio}");
        }
        assert_eq!(percent(f64::NAN), "-");
    }

    #[test]
    fn time_stamps_follow_the_gregorian_calendar() {
        // Expected values from `date -u -d @N +%FT%TZ`.
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_245_166, "2026-11-21T07:12:46Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in table {
            assert_eq!(rfc3339(seconds), text);
        }
    }

    #[test]
    fn a_file_name_cannot_drive_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\r\nc\u{202e}d.pcap"), "a\\u{1b}[2Jb\\r\\nc\\u{202e}d.pcap");
        assert_eq!(printable("naïve 名.pcap"), "naïve 名.pcap");
    }
}
