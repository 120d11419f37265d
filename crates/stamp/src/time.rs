//! Time stamps as they stand in packets: NTP's 64 bits (RFC 5905, section 6; UTC) and PTPv2's, cut to 64 bits (RFC 8877, section 4.3); and
//! the error estimate beside them (RFC 4656, section 4.1.2). Here a time is nanoseconds since 1970.

/// From 1900, where NTP's era 0 begins, to 1970.
const NTP_TO_UNIX_SECONDS: i64 = 2_208_988_800;
/// Both formats count seconds in 32 bits.
const ERA_SECONDS: i64 = 1 << 32;
const SECOND_NS: i64 = 1_000_000_000;

/// How a time stamp is written: the Z bit of the error estimate beside it (RFC 8762, section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Seconds since 1900 and a binary fraction.
    Ntp,
    /// Seconds since 1970 and nanoseconds. PTP counts TAI; some reflectors write UTC.
    Ptp,
}

/// A time as NTP's 64 bits.
pub fn to_ntp(unix_ns: i64) -> u64 {
    let seconds = unix_ns.div_euclid(SECOND_NS).wrapping_add(NTP_TO_UNIX_SECONDS).rem_euclid(ERA_SECONDS);
    let fraction = (unix_ns.rem_euclid(SECOND_NS) << 32) / SECOND_NS;
    seconds.cast_unsigned() << 32 | fraction.cast_unsigned()
}

/// The time that stands in a packet, of the era that is closest to `near` (NTP's first one ends in 2036). `None`: there is none: all
/// zeroes, or a fraction of more than a second.
pub fn read(raw: u64, format: Format, near_ns: i64) -> Option<i64> {
    if raw == 0 {
        return None;
    }
    let (seconds, low) = ((raw >> 32).cast_signed(), (raw & 0xffff_ffff).cast_signed());
    let (seconds, nanoseconds) = match format {
        // To the nearest nanosecond: what was made of nanoseconds is read as it was.
        Format::Ntp => (seconds - NTP_TO_UNIX_SECONDS, (low * SECOND_NS + (1 << 31)) >> 32),
        Format::Ptp if low >= SECOND_NS => return None,
        Format::Ptp => (seconds, low),
    };
    let near = near_ns.div_euclid(SECOND_NS);
    // The one within half an era of `near`.
    let ahead = (seconds - near + ERA_SECONDS / 2).rem_euclid(ERA_SECONDS) - ERA_SECONDS / 2;
    (near + ahead).checked_mul(SECOND_NS)?.checked_add(nanoseconds)
}

/// What an end says of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// It is kept to UTC by somebody outside (S).
    pub synchronised: bool,
    /// How time stamps are written (Z).
    pub format: Format,
    /// By how much it may be off, in nanoseconds. `None`: the multiplier is 0, which says that nothing is known.
    pub error_ns: Option<u64>,
}

impl ErrorEstimate {
    /// Multiplier * 2^(scale - 32) seconds.
    pub fn read(raw: u16) -> ErrorEstimate {
        let [flags, multiplier] = raw.to_be_bytes();
        let scaled = (u128::from(multiplier) * 1_000_000_000) << u32::from(flags & 0x3f);
        let error = u64::try_from(scaled.div_ceil(1 << 32)).unwrap_or(u64::MAX);
        ErrorEstimate {
            synchronised: flags & 0x80 != 0,
            format: if flags & 0x40 != 0 { Format::Ptp } else { Format::Ntp },
            error_ns: (multiplier != 0).then_some(error),
        }
    }

    /// The least that is no smaller than the error.
    pub fn write(&self) -> u16 {
        let wanted = (u128::from(self.error_ns.unwrap_or(u64::MAX)) << 32).div_ceil(1_000_000_000).max(1);
        let scale = (0..=0x3f_u8).find(|scale| (wanted >> *scale) < 0xff).unwrap_or(0x3f);
        let multiplier = u8::try_from(wanted.div_ceil(1 << u32::from(scale))).unwrap_or(0xff);
        let flags = u8::from(self.synchronised) << 7 | u8::from(self.format == Format::Ptp) << 6 | scale;
        u16::from_be_bytes([flags, multiplier])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-28 20:00:00 UTC.
    const NOW: i64 = 1_795_982_400 * SECOND_NS;

    #[test]
    fn times_are_those_of_the_standards() {
        // RFC 5905, figure 4: 1970-01-01 is 2,208,988,800 of era 0; half a second is the highest bit of the fraction.
        assert_eq!(to_ntp(SECOND_NS / 2), 2_208_988_800 << 32 | 0x8000_0000);
        assert_eq!(read(2_208_988_800 << 32 | 0x8000_0000, Format::Ntp, 0), Some(SECOND_NS / 2));
        assert_eq!(read(7 << 32 | 500, Format::Ptp, 0), Some(7 * SECOND_NS + 500));
        assert_eq!(read(7 << 32 | 1_000_000_000, Format::Ptp, 0), None);
        assert_eq!(read(0, Format::Ntp, NOW), None);
    }

    #[test]
    fn the_era_is_the_one_that_is_closest() {
        // 2036-02-07 06:28:16 is the first second of era 1.
        let turn = (ERA_SECONDS - NTP_TO_UNIX_SECONDS) * SECOND_NS;
        for near in [turn - 5 * SECOND_NS, turn + 5 * SECOND_NS] {
            assert_eq!(read(to_ntp(turn - 1), Format::Ntp, near), Some(turn - 1));
            assert_eq!(read(to_ntp(turn + 1), Format::Ntp, near), Some(turn + 1));
        }
    }

    #[test]
    fn an_error_is_never_said_smaller_than_it_is() {
        let unknown = ErrorEstimate::read(0x8000);
        assert!(unknown.synchronised && unknown.error_ns.is_none());
        // RFC 4656: 1 * 2^-32 seconds is the least.
        assert_eq!(ErrorEstimate::read(0x0001).error_ns, Some(1));
        // 2^-32 * 2^32 seconds.
        assert_eq!(ErrorEstimate::read(0x2001).error_ns, Some(1_000_000_000));
        assert_eq!(ErrorEstimate::read(0x7fff).format, Format::Ptp);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(at in NOW - (1 << 61)..NOW + (1 << 61)) {
            prop_assert_eq!(read(to_ntp(at), Format::Ntp, at), Some(at));
        }

        #[test]
        fn any_bits_are_read_without_panic(raw: u64, near: i64, error: u16) {
            for format in [Format::Ntp, Format::Ptp] {
                if let Some(at) = read(raw, format, near) {
                    prop_assert!(at.abs_diff(near) <= (1 << 31) * 1_000_000_000 + 2_000_000_000);
                }
            }
            let _ = ErrorEstimate::read(error);
            let _ = to_ntp(near);
        }

        #[test]
        fn an_error_is_rounded_up_by_a_percent_at_most(error in 1_u64..10_000_000_000_000, synchronised: bool) {
            let said = ErrorEstimate { synchronised, format: Format::Ntp, error_ns: Some(error) };
            let read = ErrorEstimate::read(said.write());
            prop_assert_eq!((read.synchronised, read.format), (synchronised, Format::Ntp));
            let read = read.error_ns.expect("a multiplier that is not 0");
            prop_assert!(read >= error && read <= error + error / 64 + 2, "{} {}", error, read);
        }
    }
}
