//! The devices as a state machine: frames and the time go in, frames come out.

use crate::frame::{packet, pinged, pong, tagged, untagged};
use port::resolve::{Mac, message};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::signature::Signature;

/// A gateway that does not answer is asked again after this.
const AGAIN: Duration = Duration::from_secs(1);
/// One that answered, after this: it may be another by then.
const STILL: Duration = Duration::from_secs(30);
/// It is taken for gone when it did not answer so many times, one after another.
const UNANSWERED: u32 = 3;

/// A VLAN tag of what a device sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Its EtherType.
    pub tpid: u16,
    /// The VLAN's number.
    pub id: u16,
    /// Its priority.
    pub priority: u8,
}

/// One address of an emulated device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its Ethernet address.
    pub mac: Mac,
    /// Its tags, the outermost first.
    pub vlans: Vec<Vlan>,
    /// The longest IP packet that it answers.
    pub mtu: u16,
    /// Its IP address.
    pub address: IpAddr,
    /// Whose Ethernet address it finds out.
    pub gateway: Option<IpAddr>,
}

/// What a device knows of its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The device, by its place.
    pub device: usize,
    /// The gateway.
    pub address: IpAddr,
    /// Its Ethernet address, if it answered.
    pub mac: Option<Mac>,
}

/// What the devices did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// ARP requests and neighbour solicitations sent.
    pub asked: u64,
    /// Those of others that were answered.
    pub answered: u64,
    /// Echo requests that were answered.
    pub pings: u64,
}

#[derive(Debug)]
struct Gateway {
    mac: Option<Mac>,
    /// When it is asked next.
    due: Duration,
    /// Questions since its last answer.
    unanswered: u32,
}

/// Where something is: its VLANs' numbers, and its address.
type Place = (Vec<u16>, IpAddr);

/// Devices on one interface.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Device>,
    /// Of each device.
    gateways: Vec<Option<Gateway>>,
    by_address: HashMap<Place, usize>,
    by_gateway: HashMap<Place, Vec<usize>>,
    counts: Counts,
}

fn place(device: &Device, address: IpAddr) -> Place {
    (device.vlans.iter().map(|vlan| vlan.id).filter(|id| *id != 0).collect(), address)
}

impl Devices {
    /// Of several with the same address in the same VLAN the last one is there.
    pub fn new(devices: Vec<Device>) -> Devices {
        let mut by_gateway: HashMap<Place, Vec<usize>> = HashMap::new();
        let mut by_address = HashMap::new();
        for (at, device) in devices.iter().enumerate() {
            by_address.insert(place(device, device.address), at);
            if let Some(gateway) = device.gateway {
                by_gateway.entry(place(device, gateway)).or_default().push(at);
            }
        }
        let asks = |device: &Device| {
            device.gateway.map(|_| Gateway { mac: None, due: Duration::ZERO, unanswered: 0 })
        };
        let gateways = devices.iter().map(asks).collect();
        Devices { devices, gateways, by_address, by_gateway, counts: Counts::default() }
    }

    /// A frame came at `now`, whose outermost tag the kernel took out. The answer to it, if there is one.
    pub fn frame(&mut self, now: Duration, outer: Option<(u16, u16)>, bytes: &[u8]) -> Option<Vec<u8>> {
        // What tests send is not answered, whatever it is.
        if Signature::at_end_of(bytes).is_some() {
            return None;
        }
        let (vlans, frame) = untagged(outer, bytes)?;
        if let Some(asked) = message::asked(&frame) {
            let at = *self.by_address.get(&(vlans, asked.target))?;
            let device = self.devices.get(at)?;
            if !is_for(&frame, device.mac) {
                return None;
            }
            // Who asks tells where it is (RFC 826).
            let answer = tagged(&device.vlans, &message::reply(device.mac, &asked));
            if device.gateway == Some(asked.source) {
                self.answers(at, now, asked.mac);
            }
            self.counts.answered += 1;
            return Some(answer);
        }
        if let Some(at) = pinged(&frame).and_then(|to| self.by_address.get(&(vlans.clone(), to)).copied()) {
            let device = self.devices.get(at)?;
            let is_its = frame.get(..6)? == device.mac && packet(&frame) <= usize::from(device.mtu);
            let answer = tagged(&device.vlans, &pong(&frame).filter(|_| is_its)?);
            self.counts.pings += 1;
            return Some(answer);
        }
        self.answered(now, vlans, &frame);
        None
    }

    /// Perhaps a gateway answers.
    fn answered(&mut self, now: Duration, vlans: Vec<u16>, frame: &[u8]) -> Option<()> {
        let told = match *frame.get(12..)?.first_chunk()? {
            [8, 6] => IpAddr::from(*frame.get(28..)?.first_chunk::<4>()?),
            _ => IpAddr::from(*frame.get(62..)?.first_chunk::<16>()?),
        };
        let who = self.by_gateway.get(&(vlans, told))?;
        let mac = message::answer(frame, told)?;
        let is_told = |at: &usize| self.devices.get(*at).is_some_and(|device| is_for(frame, device.mac));
        for at in who.iter().copied().filter(is_told).collect::<Vec<_>>() {
            self.answers(at, now, mac);
        }
        Some(())
    }

    fn answers(&mut self, device: usize, now: Duration, mac: Mac) {
        if let Some(Some(gateway)) = self.gateways.get_mut(device) {
            *gateway = Gateway { mac: Some(mac), due: now + STILL, unanswered: 0 };
        }
    }

    /// The questions that are due, which are asked now.
    pub fn due(&mut self, now: Duration) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for (device, gateway) in self.devices.iter().zip(&mut self.gateways) {
            let (Some(gateway), Some(address)) = (gateway, device.gateway) else { continue };
            if gateway.due > now {
                continue;
            }
            if gateway.unanswered >= UNANSWERED {
                gateway.mac = None;
            }
            gateway.unanswered = gateway.unanswered.saturating_add(1);
            gateway.due = now + AGAIN;
            if let Some(question) = message::question(device.mac, device.address, address) {
                frames.push(tagged(&device.vlans, &question));
            }
        }
        self.counts.asked += frames.len() as u64;
        frames
    }

    /// The link was down: who is behind it now is not known.
    pub fn forget(&mut self, now: Duration) {
        for gateway in self.gateways.iter_mut().flatten() {
            *gateway = Gateway { mac: None, due: now, unanswered: 0 };
        }
    }

    /// When something is due next.
    pub fn next(&self) -> Option<Duration> {
        self.gateways.iter().flatten().map(|gateway| gateway.due).min()
    }

    /// The gateways.
    pub fn neighbours(&self) -> Vec<Neighbour> {
        let of = |(device, (own, gateway)): (usize, (&Device, &Option<Gateway>))| {
            Some(Neighbour { device, address: own.gateway?, mac: gateway.as_ref()?.mac })
        };
        self.devices.iter().zip(&self.gateways).enumerate().filter_map(of).collect()
    }

    /// What they did so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Is a frame for this address, or for a group?
fn is_for(frame: &[u8], mac: Mac) -> bool {
    frame.get(..6).is_some_and(|to| to == mac || to.first().is_some_and(|first| first & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const ROUTER: Mac = [2, 0, 0, 0, 0, 0xfe];

    fn device(address: &str, gateway: &str, vlans: &[u16]) -> Device {
        Device {
            mac: OWN,
            vlans: vlans.iter().map(|id| Vlan { tpid: 0x8100, id: *id, priority: 3 }).collect(),
            mtu: 1500,
            address: address.parse().unwrap(),
            gateway: Some(gateway.parse().unwrap()),
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn request(target: &str, source: &str) -> Vec<u8> {
        message::question(ROUTER, source.parse().unwrap(), target.parse().unwrap()).unwrap()
    }

    /// The answer of the gateway to a question.
    fn answer_to(question: &[u8]) -> Vec<u8> {
        message::reply(ROUTER, &message::asked(question).expect("a question"))
    }

    #[test]
    fn a_gateway_is_asked_until_it_answers_and_is_gone_when_it_does_not_any_more() {
        for (own, gateway) in [("10.0.0.1", "10.0.0.254"), ("2001:db8::1", "2001:db8::fe")] {
            let mut devices = Devices::new(vec![device(own, gateway, &[])]);
            let known = |devices: &Devices| devices.neighbours()[0].mac;
            for second in 0..5 {
                let asked = devices.due(seconds(second));
                assert_eq!((asked.len(), known(&devices)), (1, None));
                assert!(devices.due(seconds(second)).is_empty(), "once a second");
            }
            let asked = devices.due(seconds(5));
            // What answers for another, or another device's question, tells nothing.
            let mut others = answer_to(&asked[0]);
            others[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
            assert_eq!(devices.frame(seconds(5), None, &others), None);
            assert_eq!(known(&devices), None);
            devices.frame(seconds(5), None, &answer_to(&asked[0]));
            assert_eq!(known(&devices), Some(ROUTER));
            // It is asked whether it is there still, and three times for nothing.
            let mut asked = 0;
            for second in 6..60 {
                asked += devices.due(seconds(second)).len();
                let gone = second >= 35 + u64::from(UNANSWERED);
                assert_eq!(known(&devices).is_none(), gone, "{second}");
            }
            assert_eq!(asked, 60 - 35);
        }
    }

    #[test]
    fn only_who_is_meant_answers_and_in_its_own_vlan() {
        let mut devices =
            Devices::new(vec![device("10.0.0.1", "10.0.0.254", &[5]), device("10.0.0.2", "10.0.0.254", &[])]);
        let now = seconds(0);
        let asked = request("10.0.0.1", "10.0.0.254");
        assert_eq!(devices.frame(now, None, &asked), None);
        assert_eq!(devices.frame(now, Some((0x8100, 6)), &asked), None);
        let answer = devices.frame(now, Some((0x8100, 5)), &asked).expect("its own");
        assert_eq!(answer[12..18], [0x81, 0, 0x60, 5, 8, 6]);
        // The tag may stand within the frame, and a priority alone is no VLAN.
        let inline = tagged(&[Vlan { tpid: 0x8100, id: 5, priority: 0 }], &asked);
        assert!(devices.frame(now, None, &inline).is_some());
        assert!(devices.frame(now, Some((0x8100, 0)), &request("10.0.0.2", "10.0.0.9")).is_some());
        assert_eq!(devices.frame(now, None, &request("10.0.0.3", "10.0.0.9")), None);
        // Who asked is a gateway, and told where it is.
        let known: Vec<_> = devices.neighbours().iter().map(|neighbour| neighbour.mac).collect();
        assert_eq!(known, [Some(ROUTER), None]);
        assert_eq!(devices.counts(), Counts { asked: 0, answered: 3, pings: 0 });
    }

    #[test]
    fn test_frames_are_never_answered() {
        let mut devices = Devices::new(vec![device("10.0.0.1", "10.0.0.254", &[])]);
        let mut asked = request("10.0.0.1", "10.0.0.254");
        assert!(devices.frame(seconds(0), None, &asked).is_some());
        asked.extend(Signature { stream: 1, sequence: 2, time: 3 }.to_bytes());
        assert_eq!(devices.frame(seconds(0), None, &asked), None);
    }

    proptest! {
        /// Nothing that comes from outside makes it stumble.
        #[test]
        fn any_frame_is_answered_or_not(
            start in 0..4usize, flips in prop::collection::vec((0..120usize, any::<u8>()), 0..8), cut in 0..120usize,
        ) {
            let mut devices = Devices::new(vec![
                device("10.0.0.1", "10.0.0.254", &[]), device("2001:db8::1", "2001:db8::fe", &[5, 6]),
            ]);
            let mut frame = match start {
                0 => request("10.0.0.1", "10.0.0.254"),
                1 => request("2001:db8::1", "2001:db8::fe"),
                2 => answer_to(&devices.due(seconds(0))[0]),
                _ => vec![0; 100],
            };
            for (at, byte) in flips {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame.truncate(cut);
            devices.frame(seconds(1), None, &frame);
            devices.frame(seconds(1), Some((0x8100, 5)), &frame);
        }
    }
}
