//! Whether the hardware can tell when frames arrived and left, and if not, what is missing.
//!
//! Three things must come together: hardware that can stamp every frame, stamping that is switched on, and a clock that can
//! be compared with this host's. Packet sockets then get the stamps of every driver; XDP programs of a few.
//!
//! netdyno changes no setting of an interface, so what is off is said with the command that switches it on: stamping that
//! netdyno had switched on would stay on if it were killed, and whoever keeps a clock by PTP there would lose its filter.
//! Callers: `netdyno doctor`, and whatever measures with `--timestamps`.

use crate::departures::Stamper;
use crate::ethtool::Ethtool;
use crate::interface::xdp_features;
use crate::phc::{Comparison, Phc};
use std::thread::sleep;
use std::time::Duration;

/// What is missing.
#[derive(Debug, thiserror::Error)]
pub enum NoStamps {
    /// The hardware stamps some frames only.
    #[error("the hardware stamps PTP's own frames at most, not all")]
    NotAll,
    /// The hardware has no clock that can be read.
    #[error("the stamps are of no clock that can be read: the interface has no PTP hardware clock")]
    NoClock,
    /// Stamping is switched off there.
    #[error(
        "the hardware stamps no frames now: `sudo hwstamp_ctl -i {0} -r 1` (package linuxptp) switches it on"
    )]
    Off(String),
    /// The driver cannot do it.
    #[error("the driver stamps no frames that it sends")]
    NotByDriver,
    /// The hardware does not stamp what it sends.
    #[error("the hardware stamps no frames that it sends")]
    NotSent,
    /// Stamping of what is sent is switched off there.
    #[error(
        "the hardware stamps no frames that it sends now: `sudo hwstamp_ctl -i {name} -t 1 -r {filter}` (package linuxptp) switches it on"
    )]
    SentOff {
        /// The interface.
        name: String,
        /// What arrives is stamped by this filter (`HWTSTAMP_FILTER_`).
        filter: i32,
    },
    /// Its clock cannot be read.
    #[error("the clock of its stamps cannot be read: {path}: {error}")]
    Clock {
        /// The clock.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// Its clock runs at another speed than CLOCK_MONOTONIC.
    #[error("the clock of its stamps keeps no time: {path} ran {ratio:.2} times as fast as this host's")]
    Astray {
        /// The clock.
        path: String,
        /// How fast it runs, of that one.
        ratio: f64,
    },
}

/// The stamps that the hardware takes of all that arrives.
#[derive(Debug)]
pub struct Stamping {
    /// Their clock.
    pub clock: Phc,
    /// The driver gives them to XDP programs, too, not only to sockets.
    pub to_xdp: bool,
}

/// The time stamps of the hardware of an interface of this thread's network namespace.
///
/// # Errors
/// Why there are none: the driver has none, they are off, or the kernel does not say.
pub fn receive_stamps(name: &str, index: u32) -> Result<Stamping, NoStamps> {
    let stamping = Ethtool::open(name).and_then(|ethtool| ethtool.time_stamping());
    let stamping = stamping.map_err(|_| NoStamps::NoClock)?;
    let number = stamping.clock.ok_or(NoStamps::NoClock)?;
    if !stamping.can_stamp_all {
        return Err(NoStamps::NotAll);
    }
    if stamping.stamps_all == Some(false) {
        return Err(NoStamps::Off(name.to_owned()));
    }
    Ok(Stamping { clock: good_clock(number)?, to_xdp: gives_to_xdp(index) })
}

/// Who stamps frames that leave by an interface of this thread's network namespace: its hardware, or its driver.
///
/// # Errors
/// Why there are none: the driver has none, they are off, or the kernel does not say.
pub fn transmit_stamps(name: &str, by_hardware: bool) -> Result<Stamper, NoStamps> {
    let stamping = Ethtool::open(name).and_then(|ethtool| ethtool.time_stamping());
    let stamping =
        stamping.map_err(|_| if by_hardware { NoStamps::NotSent } else { NoStamps::NotByDriver })?;
    if !by_hardware {
        return if stamping.driver_stamps_sent { Ok(Stamper::Driver) } else { Err(NoStamps::NotByDriver) };
    }
    if !stamping.can_stamp_sent {
        return Err(NoStamps::NotSent);
    }
    let number = stamping.clock.ok_or(NoStamps::NoClock)?;
    if stamping.stamps_sent == Some(false) {
        // The command sets both directions; the other is to stay as it is.
        let filter = stamping.receive_filter.unwrap_or(0);
        return Err(NoStamps::SentOff { name: name.to_owned(), filter });
    }
    Ok(Stamper::Hardware(good_clock(number)?))
}

/// A clock that can be read, and keeps time.
fn good_clock(number: u32) -> Result<Phc, NoStamps> {
    let unreadable = |error| NoStamps::Clock { path: format!("/dev/ptp{number}"), error };
    let clock = Phc::open(number).map_err(unreadable)?;
    let first = clock.compare().map_err(unreadable)?;
    sleep(BETWEEN);
    let ratio = pace(first, clock.compare().map_err(unreadable)?);
    if (ratio - 1.0).abs() > ASTRAY {
        return Err(NoStamps::Astray { path: clock.path().to_owned(), ratio });
    }
    Ok(clock)
}

/// Two looks at a clock that are so far apart tell its pace to some 100 ppm.
const BETWEEN: Duration = Duration::from_millis(20);

/// No quartz is off by this (a per cent); emulated clocks are.
const ASTRAY: f64 = 0.01;

/// How fast the clock ran from one look to the other, by this host's.
fn pace(first: Comparison, second: Comparison) -> f64 {
    let middle = |look: Comparison| look.before_ns as f64 / 2.0 + look.after_ns as f64 / 2.0;
    let device = second.device_ns as i128 - first.device_ns as i128;
    device as f64 / (middle(second) - middle(first)).max(1.0)
}

/// A kernel that does not say (before 6.3) has no driver that does.
fn gives_to_xdp(index: u32) -> bool {
    let features = xdp_features(index).ok().flatten();
    // One that says so of everything but this (6.3 to 6.7) may have a driver that does: frames without stamps would show.
    features.is_some_and(|features| features.native && features.receive_timestamps != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use lab::Lab;

    #[test]
    fn what_is_missing_for_stamps_of_the_hardware_is_said() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let ask = |name: &str| {
            let index = Interface::by_name(name).expect("the interface").index;
            receive_stamps(name, index).expect_err("no hardware here").to_string()
        };
        let said = lab.receiver.namespace.run_in(|| (ask("rx0"), ask("lo"))).expect("the namespace");
        assert!(said.0.contains("no PTP hardware clock"), "{said:?}");
        assert!(said.1.contains("no PTP hardware clock"), "{said:?}");
    }

    #[test]
    fn a_veths_driver_stamps_what_it_sends_and_its_hardware_does_not() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let ask = |by_hardware| transmit_stamps("tx0", by_hardware);
        let said = lab.sender.namespace.run_in(|| (ask(false), ask(true))).expect("the namespace");
        assert!(matches!(said, (Ok(Stamper::Driver), Err(NoStamps::NotSent))), "{said:?}");
    }

    #[test]
    fn only_drivers_that_say_so_give_stamps_to_xdp() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let ask = |name: &str| gives_to_xdp(Interface::by_name(name).expect("the interface").index);
        let said = lab.receiver.namespace.run_in(|| (ask("rx0"), ask("lo"))).expect("the namespace");
        assert_eq!(said, (true, false));
    }

    #[test]
    fn a_clock_that_runs_at_another_pace_is_found_out() {
        let look =
            |host: u64, device_ns: u64| Comparison { before_ns: host - 200, device_ns, after_ns: host + 200 };
        let first = look(5_000_000_000, 1_795_000_000_000_000_000);
        let after = |host: u64, device: u64| look(5_000_000_000 + host, 1_795_000_000_000_000_000 + device);
        assert!((pace(first, after(20_000_000, 20_001_000)) - 1.0).abs() < ASTRAY);
        assert!((pace(first, after(20_000_000, 50_000_000)) - 2.5).abs() < 0.001);
        assert!(pace(first, look(5_020_000_000, 1_794_999_999_000_000_000)) < 0.0);
    }
}
