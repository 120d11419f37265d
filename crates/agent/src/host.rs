//! What this host is and can do.

use crate::grants::Grants;
use crate::message::{AskHost, Fault, FaultKind, Host};
use clocks::{Clock, ClockState};
use job::doctor::diagnose;
use job::place::Place;
use port::interface::Interface;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Interfaces that are looked at by one request: each takes a while.
const MOST_NAMED: usize = 256;

/// What does not change while the agent runs.
pub(crate) fn host() -> Host {
    let name = rustix::system::uname();
    Host {
        name: name.nodename().to_string_lossy().into_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        architecture: std::env::consts::ARCH.into(),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        boot_id: boot_id(),
    }
}

/// The number of this host's boot; empty where the kernel does not say it.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Its clock, its interfaces, and what `netdyno doctor` finds.
pub(crate) fn look(asked: &AskHost, grants: &Grants) -> Result<Value, Fault> {
    let failed = |error: String| Fault::new(FaultKind::Engine, error);
    if asked.interfaces.len() > MOST_NAMED {
        let what = format!("interfaces: {} are more than {MOST_NAMED}", asked.interfaces.len());
        return Err(Fault::new(FaultKind::Limit, what).remedy("ask for the rest by another request"));
    }
    for name in &asked.interfaces {
        grants.interface("interfaces", name)?;
    }
    let of = |name: Option<&str>| {
        let found = diagnose(name).map_err(|error| failed(job::in_full(&error)))?;
        serde_json::to_value(found).map_err(|error| failed(error.to_string()))
    };
    // Each by the name that was asked for: it may be another than the kernel's own, or of another namespace.
    let named = |name: &String| {
        let place = Place::find(name).map_err(|error| failed(job::in_full(&error)))?;
        let mut told = told(&place.interface, grants);
        told["name"] = json!(name);
        told["granted"] = json!(true);
        if let Some(counted) = place.counters().ok().and_then(|mut counters| counters.read().ok()) {
            told["counters"] = json!({ "rx_frames": counted.rx_packets, "tx_frames": counted.tx_packets });
        }
        Ok(told)
    };
    let named: Vec<Value> = asked.interfaces.iter().map(named).collect::<Result<_, Fault>>()?;
    let diagnoses: Vec<Value> = if asked.diagnosis {
        asked.interfaces.iter().map(|name| of(Some(name))).collect::<Result<_, _>>()?
    } else {
        Vec::new()
    };
    let interfaces: Vec<Value> = Interface::list()
        .map_err(|error| failed(error.to_string()))?
        .into_iter()
        .map(|interface| told(&interface, grants))
        .collect();
    let ahead = clocks::ahead(Clock::Tai, Clock::Realtime);
    // The kernel's own offset is a whole number of seconds.
    let tai_minus_utc_s = (ahead.ns + 500_000_000).div_euclid(1_000_000_000);
    let mut told = json!({ "clock": clock(tai_minus_utc_s), "interfaces": interfaces, "named": named });
    if let Some(to) = asked.towards {
        told["own_address"] = json!(
            own_address(to)
                .map_err(|error| { failed(format!("there is no way from here to {to}: {error}")) })?
        );
    }
    if asked.diagnosis {
        told["diagnosis"] = of(None)?;
        told["diagnoses"] = diagnoses.into();
    }
    Ok(told)
}

/// The address that packets to `to` come from, by this host's routes. Nothing is sent.
fn own_address(to: IpAddr) -> std::io::Result<IpAddr> {
    let any = match to {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Whichever port: a way has none.
    socket.connect((to, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// What the kernel knows of the clock that hosts share.
fn clock(tai_minus_utc_s: i64) -> Value {
    let mut told = json!({ "tai_ns": clocks::now(Clock::Tai), "tai_minus_utc_s": tai_minus_utc_s });
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if let Ok(source) = source {
        told["source"] = json!(source.trim());
    }
    if let Some(state) = ClockState::read() {
        told["synchronised"] = json!(state.synchronised);
        if state.synchronised {
            told["max_error_ns"] = json!(state.max_error_ns);
        }
    }
    told
}

fn told(interface: &Interface, grants: &Grants) -> Value {
    let mut told = json!({
        "name": interface.name,
        "up": interface.up,
        "running": interface.running,
        "mtu": interface.mtu,
        "granted": grants.has_interface(&interface.name),
    });
    if let Some(mac) = interface.mac {
        told["mac"] = json!(wire::Mac(mac).to_string());
    }
    if let Some(driver) = &interface.driver {
        told["driver"] = json!(driver);
    }
    if let Some(kind) = &interface.kind {
        told["kind"] = json!(kind);
    }
    if let Some(mbps) = interface.speed_mbps {
        told["speed_bits_per_second"] = json!(u64::from(mbps) * 1_000_000);
    }
    told
}
