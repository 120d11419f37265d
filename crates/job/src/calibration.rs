//! Which engine is the fastest here: measured by `netdyno doctor --calibrate`, kept in a file of the user's choice, and read
//! only where `--calibration` names it.

use crate::place::Place;
use anyhow::{Context, Result, bail};
use report::Witness;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// The newest form of the file that is known here.
const VERSION: u32 = 1;

/// No such file is longer.
const LONGEST: u64 = 1 << 20;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Of this layout.
    pub version: u32,
    /// The interface that was measured.
    pub interface: String,
    /// Its driver.
    #[serde(default)]
    pub driver: Option<String>,
    /// The kernel's release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Of the netdyno that measured.
    #[serde(default)]
    pub netdyno_version: String,
    /// When, RFC 3339, UTC.
    #[serde(default)]
    pub measured: Option<String>,
    /// Where what arrives was counted, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Of each frame, with FCS.
    pub frame_bytes: u32,
    /// With each engine.
    pub duration_ns: u64,
    /// The fastest first; behind them those that could not be had, or whose frames nobody saw.
    pub ways: Vec<Way>,
}

/// A way for frames to leave, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// `afxdp zero-copy`, `xdp`, `afxdp copy`, `packet`.
    pub name: String,
    /// As for `--engine`.
    pub engine: String,
    /// Sent, as far as somebody saw them leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_frames_per_second: Option<f64>,
    /// Arrived at the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_frames_per_second: Option<f64>,
    /// Who saw them leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<Witness>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl Way {
    /// What it is judged by.
    pub fn figure(&self) -> Option<f64> {
        if self.why_not.is_some() {
            None
        } else {
            self.received_frames_per_second.or(self.sent_frames_per_second)
        }
    }
}

impl Calibration {
    /// Of these ways, at `place`.
    pub fn of(place: &Place, receiver: Option<&str>, duration_ns: u64, mut ways: Vec<Way>) -> Calibration {
        ways.sort_by(|a, b| b.figure().unwrap_or(-1.0).total_cmp(&a.figure().unwrap_or(-1.0)));
        let environment = crate::environment::collect();
        Calibration {
            version: VERSION,
            interface: place.spec.clone(),
            driver: place.interface.driver.clone(),
            kernel: environment.kernel,
            netdyno_version: environment.netdyno_version,
            measured: environment.started,
            receiver: receiver.map(str::to_owned),
            frame_bytes: 64,
            duration_ns,
            ways,
        }
    }

    /// Reads what [`Calibration`] is written as.
    ///
    /// # Errors
    /// That the file cannot be read, or holds no calibration.
    pub fn read(path: &Path) -> Result<Calibration> {
        let name = path.display();
        let mut text = String::new();
        let file = std::fs::File::open(path).with_context(|| format!("`.calibration` {name}"))?;
        file.take(LONGEST)
            .read_to_string(&mut text)
            .with_context(|| format!("`.calibration` {name} cannot be read"))?;
        let read: Calibration = serde_json::from_str(&text)
            .with_context(|| format!("`.calibration` {name} is not what `.calibrate` writes"))?;
        if read.version != VERSION {
            bail!(
                "`.calibration` {name} is of version {}, and this netdyno knows {VERSION}: calibrate again",
                read.version
            );
        }
        Ok(read)
    }

    /// Refuses what was measured with another driver or kernel.
    ///
    /// # Errors
    /// What differs: the driver or the kernel.
    pub fn is_of(&self, place: Option<&Place>) -> Result<()> {
        let Some(place) = place else { return Ok(()) };
        self.is_for(place.interface.driver.as_deref(), crate::environment::collect().kernel.as_deref())
            .with_context(|| format!("`.calibration` for {}", place.spec))
    }

    fn is_for(&self, driver: Option<&str>, kernel: Option<&str>) -> Result<()> {
        let name = |what: Option<&str>| report::units::printable(what.unwrap_or("unknown"));
        for (what, then, now) in
            [("driver", self.driver.as_deref(), driver), ("kernel", self.kernel.as_deref(), kernel)]
        {
            if then != now {
                bail!(
                    "it was measured with {what} {} and this is {}: calibrate again (`.calibrate`)",
                    name(then),
                    name(now)
                );
            }
        }
        Ok(())
    }

    /// The names of the ways that sent, the fastest first.
    pub fn order(&self) -> impl Iterator<Item = &str> {
        self.ways.iter().filter(|way| way.figure().is_some()).map(|way| way.name.as_str())
    }

    /// The fastest.
    pub fn best(&self) -> Option<&Way> {
        self.ways.first().filter(|way| way.figure().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        let way = |name: &str, sent, why_not: Option<&str>| Way {
            name: name.to_owned(),
            sent_frames_per_second: sent,
            why_not: why_not.map(str::to_owned),
            ..Way::default()
        };
        Calibration {
            version: VERSION,
            interface: "eth1".to_owned(),
            driver: Some("igb".to_owned()),
            kernel: Some("6.12".to_owned()),
            netdyno_version: String::new(),
            measured: None,
            receiver: None,
            frame_bytes: 64,
            duration_ns: 1,
            ways: vec![way("packet", Some(2.0), None), way("xdp", Some(9.0), Some("nobody saw them leave"))],
        }
    }

    #[test]
    fn what_nobody_saw_leave_is_no_choice() {
        let measured = calibration();
        assert_eq!(measured.order().collect::<Vec<_>>(), ["packet"]);
        assert_eq!(measured.best().map(|way| way.name.as_str()), Some("packet"));
    }

    #[test]
    fn it_holds_for_the_driver_and_kernel_it_was_measured_with() {
        let measured = calibration();
        assert!(measured.is_for(Some("igb"), Some("6.12")).is_ok());
        for (driver, kernel) in
            [(Some("ice"), Some("6.12")), (None, Some("6.12")), (Some("igb"), Some("6.13"))]
        {
            let refused = measured.is_for(driver, kernel).unwrap_err().to_string();
            assert!(refused.contains("calibrate again"), "{refused}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for text in ["", "{}", "[1]", "{\"version\": 7}"] {
            std::fs::write(file.path(), text).expect("written");
            assert!(Calibration::read(file.path()).is_err(), "{text}");
        }
        std::fs::write(file.path(), serde_json::to_string(&calibration()).expect("JSON")).expect("written");
        assert_eq!(Calibration::read(file.path()).expect("its own"), calibration());
    }
}
