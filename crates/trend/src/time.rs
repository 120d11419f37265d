//! Times of results: seconds since 1970, as RFC 3339 writes them in UTC.

/// `2026-11-28T23:14:22Z`, a fraction of a second ignored, or a day alone, `2026-11-28`.
pub fn parse(text: &str) -> Option<u64> {
    let (day, rest) = text.split_at_checked(10)?;
    let [year, month, dom] = numbers(day, '-')?;
    let seconds = match rest {
        "" => 0,
        rest => {
            let clock = rest.strip_prefix(['T', 't', ' '])?.strip_suffix(['Z', 'z'])?;
            let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
            let [h, m, s] = numbers(clock, ':')?;
            let in_day = h < 24 && m < 60 && s <= 60 && fraction.bytes().all(|b| b.is_ascii_digit());
            in_day.then_some(h * 3600 + m * 60 + s)?
        }
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if year < 1970 || dom == 0 || dom > length {
        return None;
    }
    let before: u64 = lengths.iter().take(month as usize - 1).sum();
    // Leap days before the year: those of the Gregorian calendar less those before 1970.
    let passed = year - 1;
    let leaps = passed / 4 - passed / 100 + passed / 400 - 477;
    Some(((year - 1970) * 365 + leaps + before + dom - 1) * 86_400 + seconds)
}

/// Three numbers of digits alone.
fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let parts: Vec<u64> = text.split(between).map(digits).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// As RFC 3339 writes it.
pub fn show(seconds: u64) -> String {
    report::units::rfc3339(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_read_is_the_time_written() {
        for seconds in (0..4_200_000_000).step_by(86_399 * 17).chain([951_782_400, 4_107_542_400]) {
            assert_eq!(parse(&show(seconds)), Some(seconds), "{}", show(seconds));
        }
        assert_eq!(parse("2026-11-28T23:14:22.123Z"), parse("2026-11-28T23:14:22Z"));
        assert_eq!(parse("2026-11-28"), parse("2026-11-28T00:00:00Z"));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for odd in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-11-28T25:00:00Z",
            "2026-11-28T23:14:22",
            "1960-01-01",
            "2026-11-28T23:14:22+01:00",
            "+026-11-28",
            "2026-11-2\u{e4}",
            "99999999999999999999-01-01",
        ] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
