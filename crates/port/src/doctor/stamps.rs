//! Can the hardware time what arrives?

use super::{Area, Finding, State};
use crate::timestamps::{NoStamps, Stamping, receive_stamps};

pub fn finding(name: &str, index: u32) -> Finding {
    let finding =
        |state, found: String, means| Finding::new(Area::Interface, "time stamps", state, found, means);
    match receive_stamps(name, index) {
        Ok(Stamping { clock, to_xdp: true }) => finding(
            State::Good,
            format!("by the hardware, of all frames ({})", clock.path()),
            "arrivals are timed before any software waits for them (`.timestamps`)",
        ),
        Ok(Stamping { clock, to_xdp: false }) => finding(
            State::Good,
            format!("by the hardware, of all frames, for sockets ({})", clock.path()),
            "with `.timestamps` hardware a packet socket measures, by them; XDP programs of this driver get none",
        ),
        Err(NoStamps::Off(_)) => finding(
            State::Note,
            "the hardware could, but stamps no frames now".to_owned(),
            "arrivals are timed by software; with the hardware's stamps the receiver's own delays are left out",
        )
        .command(format!("sudo hwstamp_ctl -i {name} -r 1")),
        Err(why) => finding(State::Note, why.to_string(), "arrivals are timed by software"),
    }
}
