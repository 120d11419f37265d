"""Open Traffic Generator's own client, unmodified, drives `netdyno serve`: python serve_otg.py URL PORT1 PORT2 CASE

Ports are interfaces that a device joins; what it drops is told by nftables, which the caller compares.
"""

import json
import sys
import time
import urllib.request

import snappi

url, first, second, case = sys.argv[1:5]
api = snappi.api(location=url, version_check=True)


def config(flows, captures=False):
    config = api.config()
    for name, location in (("p1", first), ("p2", second)):
        config.ports.port(name=name, location=location)
    for number, (tx, rx) in enumerate(flows, 1):
        flow = config.flows.flow(name=f"f{number}")[-1]
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = tx, [rx]
        flow.size.fixed, flow.rate.pps = 128 * number, 1000 * number
        flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = flow.metrics.timestamps = True
        ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
        ends = ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
        ethernet.src.value, ethernet.dst.value = ends if tx == "p1" else reversed(ends)
        ip.src.increment.start, ip.src.increment.step, ip.src.increment.count = "10.0.0.1", "0.0.0.2", 5
        ip.dst.values = ["10.1.0.1", "10.1.0.2"]
        udp.src_port.random.min, udp.src_port.random.max, udp.src_port.random.count = 1000, 2000, 10
        udp.dst_port.value = number
    if captures:
        config.captures.add(name="c", port_names=["p2"])
    return config


def transmit(state, names=()):
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = list(names)
    return api.set_control_state(control)


def flows(names=()):
    request = api.metrics_request()
    request.flow.flow_names = list(names)
    return {flow.name: flow for flow in api.get_metrics(request).flow_metrics}


def ports():
    request = api.metrics_request()
    request.port.port_names = []
    return {port.name: port for port in api.get_metrics(request).port_metrics}


def eventually(what, so, within=60):
    until = time.monotonic() + within
    while not so():
        assert time.monotonic() < until, (what, [str(flow) for flow in flows().values()])
        time.sleep(0.1)


def stopped():
    return all(flow.transmit == "stopped" for flow in flows().values())


def refused(act, *words):
    try:
        act()
    except Exception as error:
        told = api.from_exception(error)
        assert told is not None and told.kind == "validation", error
        for word in words:
            assert any(word in text for text in told.errors), (word, told.errors)
        return told.errors
    raise AssertionError(f"was not refused: {words}")


def counted():
    """Both ways, a number of frames each, which arrive; captured at one port with the FCS."""
    both = config([("p1", "p2"), ("p2", "p1")], captures=True)
    for flow, packets in zip(both.flows, (1500, 3000)):
        flow.duration.fixed_packets.packets = packets
    assert not api.set_config(both).warnings
    control = api.control_state()
    control.port.capture.state, control.port.capture.port_names = "start", ["p2"]
    api.set_control_state(control)
    assert ports()["p2"].capture == "started"
    begun = time.time_ns()
    transmit("start")
    eventually("the end", stopped)
    ended = time.time_ns()
    told = flows()
    for flow, packets, size in ((told["f1"], 1500, 128), (told["f2"], 3000, 256)):
        assert (flow.frames_tx, flow.frames_rx) == (packets, packets), str(flow)
        assert (flow.bytes_tx, flow.bytes_rx) == (packets * size, packets * size), str(flow)
        assert flow.loss == 0, str(flow)
        assert 0 < flow.latency.minimum_ns <= flow.latency.average_ns <= flow.latency.maximum_ns, str(flow)
        stamps = flow.timestamps
        assert begun < stamps.first_timestamp_ns < stamps.last_timestamp_ns < ended, (begun, str(flow), ended)
    told = ports()
    for port, tx, rx in ((told["p1"], 1500, 3000), (told["p2"], 3000, 1500)):
        assert port.link == "up" and port.transmit == "stopped", str(port)
        assert port.frames_tx == tx and port.frames_rx >= rx, str(port)
    request = api.capture_request()
    request.port_name = "p2"
    with open(sys.argv[5], "wb") as file:
        file.write(api.get_capture(request).read())
    # Nothing changes after the end.
    time.sleep(1)
    assert flows()["f2"].frames_rx == 3000


def steered():
    """Each flow is started, paused, resumed and stopped by itself."""
    api.set_config(config([("p1", "p2"), ("p2", "p1")]))

    def sent(name, more_than):
        eventually(f"{name} sends", lambda: flows()[name].frames_tx > more_than)

    transmit("start", ["f1"])
    sent("f1", 200)
    assert flows()["f2"].transmit == "stopped" and flows()["f2"].frames_tx == 0
    transmit("start", ["f2"])
    sent("f2", 200)
    transmit("pause", ["f1"])
    assert flows()["f1"].transmit == "paused"
    before = flows()
    sent("f2", before["f2"].frames_tx + 500)
    assert flows()["f1"].frames_tx == before["f1"].frames_tx
    transmit("resume", ["f1"])
    sent("f1", before["f1"].frames_tx + 200)
    # The rate of one that goes on.
    update = api.config_update()
    update.flows.property_names = ["rate"]
    changed = config([("p1", "p2"), ("p2", "p1")]).flows[0]
    changed.rate.pps = 3000
    update.flows.flows.append(changed)
    api.update_config(update)
    transmit("stop", ["f1"])
    at_stop = flows()["f1"]
    assert (at_stop.transmit, at_stop.frames_tx) == ("stopped", at_stop.frames_rx), str(at_stop)
    assert at_stop.loss == 0, str(at_stop)
    # What is resumed goes on counting, what is started begins anew.
    transmit("resume", ["f1"])
    sent("f1", at_stop.frames_tx)
    transmit("stop")
    before = flows()
    transmit("start", ["f1"])
    assert flows()["f1"].frames_tx < before["f1"].frames_tx
    assert flows()["f2"].frames_tx == before["f2"].frames_tx == flows()["f2"].frames_rx
    warned = transmit("stop").warnings or []
    assert not [text for text in warned if "its interface counted" in text], warned
    # The meters have ended with the flows, what they counted stays, and the interfaces are others' again.
    told = ports()
    sent = sum(port.frames_tx for port in told.values())
    assert sent > 0 and sum(port.frames_rx for port in told.values()) >= sent, told
    runs = json.load(urllib.request.urlopen(url + "/api/v1/runs"))["runs"]
    assert not [run for run in runs if run["state"] in ("preparing", "running", "ready", "paused")], runs
    # A setting of nothing ends all.
    api.set_config(api.config())
    assert flows() == {} and ports() == {}


def lost():
    """What the device drops is lost, of each flow its own."""
    three = config([("p1", "p2"), ("p1", "p2"), ("p2", "p1")])
    for flow in three.flows:
        flow.duration.fixed_packets.packets = 1000
    api.set_config(three)
    transmit("start")
    eventually("the end", stopped)
    told = flows()
    rows = {name: [flow.frames_tx, flow.frames_rx, flow.loss] for name, flow in told.items()}
    print(json.dumps(rows))


def many():
    """More flows than are runs of their own."""
    all_of_them = config([("p1", "p2")] * 300)
    for number, flow in enumerate(all_of_them.flows):
        flow.size.fixed, flow.rate.pps = 128, 20
        flow.duration.fixed_packets.packets = 10 + number
        flow.packet[2].dst_port.value = 1 + number
    api.set_config(all_of_them)
    transmit("start")
    eventually("the end", stopped)
    body = b'{"choice":"flow","flow":{}}'
    request = urllib.request.Request(url + "/monitor/metrics", body, {"Content-Type": "application/json"})
    rows = json.load(urllib.request.urlopen(request))["flow_metrics"]
    assert [row["name"] for row in rows] == [f"f{number}" for number in range(1, 301)]
    for number, row in enumerate(rows):
        assert row["frames_tx"] == row["frames_rx"] == str(10 + number), row
    refused(lambda: transmit("stop", ["f7"]), "sent as one")


def wrong():
    """All that is wrong is told at once, by its path; what is not there is not taken for nothing."""
    bad = config([("p1", "p2"), ("p1", "p2")])
    bad.ports.port(name="p1", location="x")
    bad.flows[0].tx_rx.port.tx_name = "nowhere"
    bad.flows[0].size.fixed = 10
    bad.flows[1].name = "f1"
    bad.flows[1].packet.rsvp()
    bad.flows[1].rate.percentage = 101
    device = bad.devices.device(name="d")[-1]
    ethernet = device.ethernets.ethernet(name="d.eth", mac="02:00:00:00:00:01")[-1]
    ethernet.connection.port_name = "nowhere"
    ethernet.ipv4_addresses.ipv4(name="d.ip", address="10.0.0.1", gateway="10.0.0.2")
    between = bad.flows.flow(name="f3")[-1]
    between.tx_rx.device.tx_names, between.tx_rx.device.rx_names = ["nobody"], ["d.ip"]
    between.packet.ethernet().ipv4().udp()
    errors = refused(
        lambda: api.set_config(bad),
        "ports[2].name", "flows[0].tx_rx.port.tx_name", "flows[0].size.fixed", "flows[1].name", "flows[1].packet[3]",
        "flows[1].rate.percentage", "devices[0].ethernets[0].connection.port_name", "flows[2].tx_rx.device.tx_names[0]",
    )
    assert len(errors) >= 7, errors
    refused(lambda: transmit("start", ["nobody"]), "nobody")
    missing = config([])
    missing.ports[0].location = "nosuch"
    refused(lambda: api.set_config(missing), "ports[0].location")
    short = config([("p1", "p2")])
    short.flows[0].packet.clear()
    short.flows[0].packet.ethernet().ipv4().tcp()
    short.flows[0].size.fixed = 64
    warned = api.set_config(short).warnings
    assert any("flows[0].size" in text for text in warned), warned
    tiny = config([("p1", "p2")])
    tiny.flows[0].size.fixed = 40
    refused(lambda: api.set_config(tiny), "flows[0]")
    control = api.control_state()
    control.port.link.state, control.port.link.port_names = "down", ["p1"]
    refused(lambda: api.set_control_state(control), "port.link", "--yes-disrupt")


def protocols(state):
    control = api.control_state()
    control.protocol.all.state = state
    api.set_control_state(control)


def neighbours(family, names=()):
    request = api.states_request()
    of = getattr(request, family)
    of.ethernet_names = list(names)
    return getattr(api.get_states(request), family)


def device(config, name, port, mac, addresses, vlan=None):
    ethernet = config.devices.device(name=name)[-1].ethernets.ethernet(name=f"{name}.eth", mac=mac)[-1]
    ethernet.connection.port_name = port
    if vlan:
        ethernet.vlans.vlan(name=f"{name}.vlan", id=vlan)
    for address, gateway in addresses:
        if ":" in address:
            ethernet.ipv6_addresses.ipv6(name=f"{name}.ipv6", address=address, gateway=gateway)
        else:
            ethernet.ipv4_addresses.ipv4(name=f"{name}.ipv4", address=address, gateway=gateway)
    return ethernet


def between(config, name, tx, rx, headers, packets=1000, pps=4000):
    flow = config.flows.flow(name=name)[-1]
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = tx, rx
    getattr(flow.packet, headers[0])()
    for header in headers[1:]:
        getattr(flow.packet, header)()
    flow.size.fixed, flow.rate.pps = 128, pps
    flow.duration.fixed_packets.packets = packets
    flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = True
    return flow


def routed():
    config = api.config()
    for name, location in (("p1", first), ("p2", second)):
        config.ports.port(name=name, location=location)
    device(config, "d1", "p1", "02:00:00:00:01:01", [("10.0.1.1", "10.0.1.254"), ("2001:db8:1::1", "2001:db8:1::fe")])
    device(config, "d2", "p2", "02:00:00:00:02:01", [("10.0.2.1", "10.0.2.254"), ("2001:db8:2::1", "2001:db8:2::fe")])
    device(config, "d3", "p1", "02:00:00:00:03:01", [("10.0.3.1", "10.0.3.254")], vlan=5)
    return config


def devices():
    """Through a router that knows nothing of them: it asks where they are, and they ask where it is."""
    config = routed()
    between(config, "v4", ["d1"], ["d2"], ["ethernet", "ipv4", "udp"], 1000)
    between(config, "v6", ["d1.ipv6"], ["d2.eth"], ["ethernet", "ipv6", "udp"], 1500)
    between(config, "tagged", ["d3"], ["d2"], ["ethernet", "vlan", "ipv4", "udp"], 2000)
    between(config, "mesh", ["d2"], ["d1", "d3"], ["ethernet", "ipv4", "udp"], 3000)
    assert not api.set_config(config).warnings
    assert not list(neighbours("ipv4_neighbors"))
    refused(lambda: transmit("start"), "start the protocols first", "`d1.ipv4`", "`d3.ipv4`", "`d1.ipv6`")
    protocols("start")
    # Flows wait for those who were asked a moment ago.
    transmit("start")
    eventually("the end", stopped)
    told = flows()
    for name, packets in (("v4", 1000), ("v6", 1500), ("tagged", 2000), ("mesh", 3000)):
        flow = told[name]
        assert (flow.frames_tx, flow.frames_rx, flow.loss) == (packets, packets, 0), str(flow)
        assert flow.latency.minimum_ns > 0, str(flow)
    rows = [[of.ethernet_name, of.ipv4_address, of.link_layer_address] for of in neighbours("ipv4_neighbors")]
    rows += [[of.ethernet_name, of.ipv6_address, of.link_layer_address] for of in neighbours("ipv6_neighbors")]
    assert [row[0] for row in rows] == ["d1.eth", "d2.eth", "d3.eth", "d1.eth", "d2.eth"], rows
    assert [of.ethernet_name for of in neighbours("ipv4_neighbors", ["d3.eth"])] == ["d3.eth"]
    refused(lambda: neighbours("ipv4_neighbors", ["nobody"]), "nobody")
    print(json.dumps(rows))


def silent():
    """A gateway that nobody has: nothing is sent, until its address is given."""
    config = routed()
    lost = device(config, "d4", "p1", "02:00:00:00:04:01", [("10.0.1.4", "10.0.1.99")])
    between(config, "f1", ["d4"], ["d2"], ["ethernet", "ipv4", "udp"], 500)
    api.set_config(config)
    protocols("start")
    refused(lambda: transmit("start"), "`f1`", "10.0.1.99", "does not answer")
    assert flows()["f1"].frames_tx == 0
    row = neighbours("ipv4_neighbors", ["d4.eth"])[0]
    assert row.ipv4_address == "10.0.1.99" and not row.link_layer_address, str(row)
    lost.ipv4_addresses[0].gateway_mac.value = sys.argv[5]
    api.set_config(config)
    # What is given needs nobody to answer, and no protocols.
    transmit("start")
    eventually("the end", stopped)
    told = flows()["f1"]
    # The router learned where d2 is when that one asked for it.
    assert (told.frames_tx, told.frames_rx) == (500, 500), str(told)


def answering():
    api.set_config(routed())
    protocols("start")
    eventually("the gateways", lambda: all(of.link_layer_address for of in neighbours("ipv4_neighbors")))


def gone():
    protocols("stop")
    assert not list(neighbours("ipv4_neighbors"))


def links():
    """Down, up, and put back by a new configuration."""
    import subprocess

    def up():
        return "UP" in json.loads(subprocess.check_output(["ip", "-j", "link", "show", first]))[0]["flags"]

    def set_link(state, names):
        control = api.control_state()
        control.port.link.state, control.port.link.port_names = state, names
        api.set_control_state(control)

    one = config([("p1", "p2")])
    one.flows[0].duration.fixed_packets.packets = 800
    api.set_config(one)
    set_link("down", ["p1"])
    assert not up()
    told = ports()
    assert (told["p1"].link, told["p2"].link) == ("down", "down"), told
    set_link("up", ["p1"])
    assert up()
    eventually("both are up", lambda: all(port.link == "up" for port in ports().values()))
    transmit("start")
    eventually("the end", stopped)
    told = flows()["f1"]
    assert (told.frames_tx, told.frames_rx) == (800, 800), str(told)
    refused(lambda: set_link("down", ["p2", "nobody"]), "nobody")
    set_link("down", ["p1"])
    api.set_config(one)
    assert up(), "a new configuration finds the links as they were"
    set_link("down", ["p1"])


CASES = [counted, steered, lost, many, wrong, devices, silent, answering, gone, links]
{of.__name__: of for of in CASES}[case]()
