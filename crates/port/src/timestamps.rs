//! Whether the hardware can tell a meter when frames arrived, and if not, what is missing.
//!
//! Four things must come together: a driver that gives its stamps to XDP programs, hardware that can stamp every frame,
//! stamping that is switched on, and a clock that can be compared with this host's. netdyno changes no setting of an
//! interface, so what is off is said with the command that switches it on. Callers: `netdyno doctor`, and whatever
//! measures with `--timestamps`.

use crate::ethtool::Ethtool;
use crate::interface::xdp_features;
use crate::phc::Phc;

/// What is missing.
#[derive(Debug, thiserror::Error)]
pub enum NoStamps {
    #[error("the driver does not give its time stamps to XDP programs")]
    Driver,
    #[error("the hardware stamps PTP's own frames at most, not all")]
    NotAll,
    #[error("the stamps are of no clock that can be read: the interface has no PTP hardware clock")]
    NoClock,
    #[error(
        "the hardware stamps no frames now: `sudo hwstamp_ctl -i {0} -r 1` (package linuxptp) switches it on"
    )]
    Off(String),
    #[error("the clock of its stamps cannot be read: {path}: {error}")]
    Clock { path: String, error: std::io::Error },
}

/// The clock of the stamps that the hardware of an interface of this thread's network namespace takes of all that
/// arrives.
pub fn receive_clock(name: &str, index: u32) -> Result<Phc, NoStamps> {
    let features = xdp_features(index).ok().flatten();
    // A kernel that does not say may have a driver that does it: frames without stamps would show.
    if features.is_some_and(|features| !features.native || features.receive_timestamps == Some(false)) {
        return Err(NoStamps::Driver);
    }
    let stamping = Ethtool::open(name).and_then(|ethtool| ethtool.time_stamping());
    let stamping = stamping.map_err(|_| NoStamps::NoClock)?;
    let number = stamping.clock.ok_or(NoStamps::NoClock)?;
    if !stamping.can_stamp_all {
        return Err(NoStamps::NotAll);
    }
    if stamping.stamps_all == Some(false) {
        return Err(NoStamps::Off(name.to_owned()));
    }
    let unreadable = |error| NoStamps::Clock { path: format!("/dev/ptp{number}"), error };
    let clock = Phc::open(number).map_err(unreadable)?;
    clock.compare().map_err(unreadable)?;
    Ok(clock)
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
            receive_clock(name, index).expect_err("no hardware here").to_string()
        };
        let said = lab.receiver.namespace.run_in(|| (ask("rx0"), ask("lo"))).expect("the namespace");
        // A veth's driver would give stamps, as the kernel says: it has none, and no clock.
        assert!(said.0.contains("no PTP hardware clock"), "{said:?}");
        assert!(said.1.contains("does not give its time stamps"), "{said:?}");
    }
}
