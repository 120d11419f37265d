//! Stamps of frames as they leave. A veth's driver gives them; hardware that does is in scripts/drivers/cells.

use crate::common::*;

const SEND: &str = "netdyno send ipv4/udp --on tx0 --measure rx0 --json";

#[test]
fn a_driver_says_when_some_of_the_frames_really_left() {
    if !several_cpus() {
        return;
    }
    let net = Net::new();
    let stamped = |arguments: &str| net.run(format!("{SEND} --tx-timestamps driver {arguments}")).result();
    // A thousand frames in a second and a half: most of them more than a millisecond apart.
    let report = stamped("--rate 700pps --count 1000");
    assert_eq!(report["environment"]["engine"]["name"], "packet");
    let departures = &report["result"]["tx"]["departures"];
    let [asked, came] = ["asked_frames", "stamped_frames"].map(|name| number(&departures[name]));
    assert_eq!(departures["stamped_by"], "driver");
    // A sender that is held up hands up to 64 frames over at once, of which one is asked for.
    assert!((10..=1000).contains(&asked) && came == asked, "{departures}");
    let [late, handing] = ["lateness_ns", "handing_ns"].map(|name| &departures[name]);
    assert_eq!((number(&late["count"]), number(&handing["count"])), (came, came));
    // On one clock: no frame left before it was handed over, or after the run's end.
    let lasted = number(&report["result"]["tx"]["duration_ns"]);
    assert!(number(&handing["min"]) > 0 && number(&late["max"]) < lasted, "{departures}");
    // At top speed nothing is late.
    let report = stamped("--topspeed --count 200000");
    let departures = &report["result"]["tx"]["departures"];
    assert_eq!(departures["asked_frames"], departures["stamped_frames"]);
    assert!(number(&departures["asked_frames"]) > 0 && departures["lateness_ns"].is_null(), "{departures}");
    // Unasked there is none.
    let report = net.run(format!("{SEND} --engine packet --rate 1kpps --count 10")).result();
    assert!(report["result"]["tx"]["departures"].is_null());
    // The first of two workers asks.
    let report = stamped("--cores 2 --rate 700pps --count 100");
    let departures = &report["result"]["tx"]["departures"];
    assert!((1..=50).contains(&number(&departures["asked_frames"])), "{departures}");
}

#[test]
fn stamps_that_nobody_gives_are_refused_in_one_sentence() {
    let net = Net::new();
    let refused = |arguments: &str, why: &str| {
        let ran = net.run(format!("{SEND} --rate 1kpps --count 10 --tx-timestamps {arguments}"));
        assert_eq!((ran.status, ran.stderr.trim_end().lines().count()), (2, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    };
    refused(
        "hardware",
        "--tx-timestamps hardware on tx0 (veth): the hardware stamps no frames that it sends",
    );
    refused("driver --engine xdp", "only --engine packet learns when its frames left");
    refused("driver --engine afxdp", "only --engine packet learns when its frames left");
}
