//! Numbers as iperf3 reads and writes them: suffixes of sizes by 1024, of rates by 1000.

/// A size or a count: `128K` is 131072.
pub fn size(text: &str) -> Option<u64> {
    suffixed(text, 1024.0)
}

/// A rate: `100M` is 100000000.
pub fn rate(text: &str) -> Option<u64> {
    suffixed(text, 1000.0)
}

fn suffixed(text: &str, thousand: f64) -> Option<u64> {
    let power = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => 0,
    };
    let digits = if power > 0 { &text[..text.len() - 1] } else { text };
    if !digits.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
        return None;
    }
    if let (0, Ok(whole)) = (power, digits.parse()) {
        return Some(whole);
    }
    let number = digits.parse::<f64>().ok()? * f64::powi(thousand, power);
    (number.is_finite() && number < u64::MAX as f64).then_some(number as u64)
}

/// How rates are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    /// Powers of 1000 or 1024; `None`: what fits the number.
    pub power: Option<u8>,
    /// Bytes, not bits.
    pub bytes: bool,
}

impl Format {
    /// `-f k`: kilobits, `-f K`: kilobytes, and so on to T.
    pub fn read(text: &str) -> Option<Format> {
        let letter = text.chars().next().filter(|_| text.len() == 1)?;
        let power = "kmgt".find(letter.to_ascii_lowercase())?;
        Some(Format { power: u8::try_from(power + 1).ok(), bytes: letter.is_ascii_uppercase() })
    }
}

/// Bytes: `12.0 MBytes`.
pub fn amount(bytes: f64) -> String {
    with_unit(bytes, Format { power: None, bytes: true })
}

/// A rate without its "/sec": ` 101 Mbits`.
pub fn speed(bits_per_second: f64, format: Format) -> String {
    with_unit(if format.bytes { bits_per_second / 8.0 } else { bits_per_second }, format)
}

fn with_unit(number: f64, format: Format) -> String {
    let thousand = if format.bytes { 1024.0 } else { 1000.0 };
    let power = format.power.unwrap_or_else(|| {
        (0..4).find(|power| number < f64::powi(thousand, i32::from(*power) + 1)).unwrap_or(4)
    });
    let number = number / f64::powi(thousand, power.into());
    let prefix = ["", "K", "M", "G", "T"][usize::from(power.min(4))];
    let word = if format.bytes { "Bytes" } else { "bits" };
    let digits = match number {
        // Four characters wide, if it goes.
        _ if number < 9.995 => format!("{number:4.2}"),
        _ if number < 99.95 => format!("{number:4.1}"),
        _ => format!("{number:4.0}"),
    };
    format!("{digits} {prefix}{word}")
}

/// A share in percent, with two digits that count.
pub fn percent(share: f64) -> String {
    if share == 0.0 || !share.is_finite() {
        return "0".into();
    }
    let decimals = 1 - share.abs().log10().floor() as i32;
    let text = format!("{share:.*}", usize::try_from(decimals.clamp(0, 9)).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A time as in HTTP's headers: `Tue, 24 Nov 2026 22:03:17 GMT`.
pub fn http_date(unix_seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    loop {
        let length = 365 + u64::from(leap(year));
        if left < length || year > 9999 {
            break;
        }
        left -= length;
        year += 1;
    }
    let mut month = 0;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let weekday = DAYS[(days % 7) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT", left + 1, MONTHS[month])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_as_iperf3_reads_them() {
        assert_eq!(["128K", "1.5m", "2G", "77"].map(size), [131_072, 1_572_864, 2 << 30, 77].map(Some));
        assert_eq!(["100M", "1k", "2.5G"].map(rate), [100_000_000, 1000, 2_500_000_000].map(Some));
        assert_eq!(size("18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "K", "-1", "1e3", "1x", "nan", "99999999999999999999999T", "1 K", "é"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    /// As iperf3 3.12 and 3.21 print them.
    #[test]
    fn amounts_and_rates_have_iperf3s_width() {
        assert_eq!(amount(12_582_912.0), "12.0 MBytes");
        assert_eq!(amount(131_072.0), " 128 KBytes");
        assert_eq!(amount(0.0), "0.00 Bytes");
        assert_eq!(amount(1_024_000.0), "1000 KBytes");
        assert_eq!(amount(1_178_694.0), "1.12 MBytes");
        let speed = |bits: f64, format: &str| speed(bits, Format::read(format).unwrap_or_default());
        assert_eq!(speed(100_655_640.0, ""), " 101 Mbits");
        assert_eq!(speed(99_600_000.0, ""), "99.6 Mbits");
        assert_eq!(speed(6.43e9, ""), "6.43 Gbits");
        assert_eq!(speed(8.0 * 1014.0 * 1048576.0, "M"), "1014 MBytes");
        assert_eq!(speed(1e9, "k"), "1000000 Kbits");
        assert_eq!(["b", "", "kk", "é"].map(Format::read), [None; 4]);
    }

    #[test]
    fn shares_have_two_digits() {
        let shown = [0.0, 100.0, 12.34, 1.25, 0.0123, 3.0, 99.96].map(percent);
        assert_eq!(shown, ["0", "100", "12", "1.2", "0.012", "3", "100"]);
    }

    #[test]
    fn dates_are_http_s() {
        assert_eq!(http_date(1_795_557_797), "Tue, 24 Nov 2026 22:03:17 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
