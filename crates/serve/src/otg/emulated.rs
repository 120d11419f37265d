//! Devices that are there: started and stopped with the protocols, and what they know of their gateways.

use super::answer::Refused;
use super::config::{Config, Flow};
use super::tester::{Setup, Tester, internal};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use wire::Mac;

/// Flows wait so long for gateways that have not answered: each is asked three times meanwhile.
const ANSWERS: Duration = Duration::from_secs(3);
/// And look so often.
const LOOKS: Duration = Duration::from_millis(50);
/// Gateways that an error names.
const NAMED: usize = 20;

/// The devices of a port.
#[derive(Debug, Clone)]
pub(crate) struct Emulated {
    /// As the agent calls them.
    name: String,
    /// Their addresses' places in the configuration.
    places: Vec<usize>,
}

/// Ethernet addresses of gateways, by the places of the addresses that go through them.
#[derive(Debug, Default)]
pub(crate) struct Gateways(BTreeMap<usize, Mac>);

impl Gateways {
    /// The stream of a flow as it is sent.
    pub fn stream(&self, config: &Config, flow: &Flow) -> Result<Value, Refused> {
        let mut stream = flow.stream.clone();
        if let Some((ends, frame)) = &flow.between {
            let frame = config.devices.resolved(frame, ends, &self.0);
            stream["frame"] = frame.ok_or_else(|| internal("a gateway that is not known"))?.into();
        }
        Ok(stream)
    }
}

impl Tester {
    /// Starts or stops what the devices do.
    pub async fn protocols(&self, state: &str) -> Result<(), Refused> {
        let _turn = self.turn.lock().await;
        let mut setup = self.setup.lock().await;
        match state {
            "start" => {
                let went = self.start_devices(&mut setup).await;
                // All or none.
                if went.is_err() {
                    self.stop_devices(&mut setup).await;
                }
                went
            }
            "stop" => {
                self.stop_devices(&mut setup).await;
                Ok(())
            }
            _ => Err(Refused::one("protocol.all.state: must be start or stop")),
        }
    }

    /// Those that are there already go on.
    async fn start_devices(&self, setup: &mut Setup) -> Result<(), Refused> {
        let all = &setup.config.devices.addresses;
        let ports: BTreeSet<usize> = all.iter().map(|address| address.port).collect();
        for at in ports.into_iter().filter(|at| !setup.emulated.contains_key(at)).collect::<Vec<_>>() {
            let Some(port) = setup.config.ports.get(at) else { continue };
            let own = all.iter().enumerate().filter(|(_, address)| address.port == at);
            let (places, told): (Vec<usize>, Vec<Value>) =
                own.map(|(place, own)| (place, own.told())).unzip();
            let asked = json!({"on": port.location, "devices": told});
            let started = self.hand.call("devices.start", asked).await.map_err(|fault| {
                let refused = Refused::from(fault);
                let errors = refused.errors.iter().map(|text| format!("ports[{at}] ({}): {text}", port.name));
                Refused { status: refused.status, errors: errors.collect() }
            })?;
            let name = started["devices"].as_str().unwrap_or_default().to_owned();
            setup.emulated.insert(at, Emulated { name, places });
        }
        Ok(())
    }

    pub(super) async fn stop_devices(&self, setup: &mut Setup) {
        for emulated in std::mem::take(&mut setup.emulated).into_values() {
            let _ = self.hand.call("devices.stop", json!({"devices": emulated.name})).await;
        }
    }

    /// What the devices that are there know, by their addresses' places.
    async fn known(&self, setup: &Setup) -> Result<BTreeMap<usize, Option<Mac>>, Refused> {
        let mut known = BTreeMap::new();
        for (at, emulated) in &setup.emulated {
            let looked = self.hand.call("devices.look", json!({"devices": emulated.name})).await?;
            if let Some(why) = looked.get("failed").and_then(Value::as_str) {
                let name = setup.config.ports.get(*at).map_or("?", |port| port.name.as_str());
                let what = format!(
                    "the devices of port `{name}` are there no more: {why}: stop the protocols and start them again"
                );
                return Err(internal(what));
            }
            for neighbour in looked["neighbours"].as_array().into_iter().flatten() {
                let device = neighbour["device"].as_u64().and_then(|device| usize::try_from(device).ok());
                let place = device.and_then(|device| emulated.places.get(device));
                let mac = neighbour.get("mac").and_then(Value::as_str).and_then(|mac| mac.parse().ok());
                known.extend(place.map(|place| (*place, mac)));
            }
            // Those whose gateways' addresses were given.
            let all = &setup.config.devices.addresses;
            let given = |place: &usize| Some((*place, Some(all.get(*place)?.gateway_mac?)));
            known.extend(emulated.places.iter().filter_map(given));
        }
        Ok(known)
    }

    /// The gateways that these gangs' flows go through. Those that have not answered yet are waited for; without them nothing is sent.
    pub(super) async fn gateways(&self, setup: &Setup, gangs: &[usize]) -> Result<Gateways, Refused> {
        let gangs = gangs.iter().filter_map(|gang| setup.gangs.get(*gang));
        let flows: Vec<&Flow> =
            gangs.flat_map(|gang| &gang.flows).filter_map(|flow| setup.config.flows.get(*flow)).collect();
        let devices = &setup.config.devices;
        let open = |flow: &&&Flow| -> Vec<usize> {
            let between = flow.between.iter();
            between.flat_map(|(ends, frame)| devices.open(frame, ends)).collect()
        };
        let wanted: BTreeSet<usize> = flows.iter().flat_map(|flow| open(&flow)).collect();
        if wanted.is_empty() {
            return Ok(Gateways::default());
        }
        let until = Instant::now() + ANSWERS;
        loop {
            let known = self.known(setup).await?;
            let missing: Vec<usize> =
                wanted.iter().copied().filter(|place| !matches!(known.get(place), Some(Some(_)))).collect();
            if missing.is_empty() {
                let found = wanted.iter().filter_map(|place| Some((*place, (*known.get(place)?)?)));
                return Ok(Gateways(found.collect()));
            }
            // Where nobody asks nobody answers.
            let is_asked = missing.iter().all(|place| known.contains_key(place));
            if !is_asked || Instant::now() >= until {
                return Err(Refused::of(unanswered(setup, &flows, &missing, is_asked)));
            }
            tokio::time::sleep(LOOKS).await;
        }
    }

    /// Rows of the gateways of one family, of these Ethernets or of all.
    pub async fn neighbours(&self, v4: bool, names: &[String]) -> Result<Vec<Value>, Refused> {
        let setup = self.setup.lock().await;
        let all = &setup.config.devices.addresses;
        let unknown = names.iter().filter(|name| !all.iter().any(|address| address.ethernet == **name));
        let errors: Vec<String> = unknown
            .map(|name| {
                format!(
                    "ethernet_names: there is no Ethernet `{}` with addresses",
                    report::units::printable(name)
                )
            })
            .collect();
        if !errors.is_empty() {
            return Err(Refused::of(errors));
        }
        let known = self.known(&setup).await?;
        let mut rows: BTreeMap<(String, String), Option<Mac>> = BTreeMap::new();
        for (place, mac) in known {
            let Some(own) = all.get(place).filter(|own| own.address.is_ipv4() == v4) else { continue };
            if names.is_empty() || names.contains(&own.ethernet) {
                // Of one Ethernet's several addresses each asks by itself.
                let row = rows.entry((own.ethernet.clone(), own.gateway.to_string())).or_default();
                *row = row.or(mac);
            }
        }
        let address = if v4 { "ipv4_address" } else { "ipv6_address" };
        let row = |((ethernet, gateway), mac): ((String, String), Option<Mac>)| {
            let mut row = json!({"ethernet_name": ethernet, address: gateway});
            if let Some(mac) = mac {
                row["link_layer_address"] = mac.to_string().into();
            }
            row
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// Which gateways flows lack.
fn unanswered(setup: &Setup, flows: &[&Flow], missing: &[usize], is_asked: bool) -> Vec<String> {
    let mut errors = Vec::new();
    for place in missing {
        let Some(own) = setup.config.devices.addresses.get(*place) else { continue };
        let is_its = |flow: &&&Flow| {
            flow.between.as_ref().is_some_and(|(ends, _)| ends.pairs.iter().any(|(tx, _)| tx == place))
        };
        let flow = flows.iter().find(is_its).map_or("?", |flow| flow.name.as_str());
        errors.push(match is_asked {
            true => format!(
                "flow `{flow}`: the gateway {} of `{}` does not answer: nothing is sent to an address that is not known. Check it, or give `gateway_mac`",
                own.gateway, own.name
            ),
            false => format!(
                "flow `{flow}`: the gateway {} of `{}` is not known: start the protocols first (control_state.protocol.all)",
                own.gateway, own.name
            ),
        });
    }
    let more = errors.len().saturating_sub(NAMED);
    errors.truncate(NAMED);
    if more > 0 {
        errors.push(format!("and {more} more"));
    }
    errors
}
