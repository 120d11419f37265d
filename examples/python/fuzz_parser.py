"""Fuzzes a parser with a template of Scapy at up to a million frames a second, and captures what it answers: here a lab's host, whose
kernel refuses datagrams of random bytes to ports of chance, by ICMP and as often as it may.

    python3 fuzz_parser.py                  in a lab
    python3 fuzz_parser.py eth1 MAC         your device with that Ethernet address behind eth1
"""

import collections
import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.volatile import RandBin, RandShort

import netdyno as nd


def fuzz(interface: str, mac: str, address: str) -> None:
    packet = Ether(src="02:00:00:00:00:01", dst=mac) / IP(src="198.18.0.1", dst=address, id=RandShort())
    packet = packet / UDP(sport=RandShort(), dport=RandShort()) / Raw(load=RandBin(24))
    file = "answers.pcapng"
    report = nd.send(packet, on=interface, measure=interface, rate="1mpps", duration="2s", sign="never", capture=file, seed=1)
    print(f"{report.tx.frames:,} frames sent at {report.tx.frames_per_second:,.0f}/s; seed=1 sends the same again")
    kinds = collections.Counter(answer.summary().split(" ")[2] for answer in nd.read_packets(file))
    print("answers:", dict(kinds) or "none")


def main() -> None:
    if len(sys.argv) == 3:
        fuzz(sys.argv[1], sys.argv[2], "198.18.0.2")
    else:
        with nd.lab(addresses=True) as lab:
            fuzz(lab.tx, "02:00:00:00:00:02", "198.18.0.2")


if __name__ == "__main__":
    main()
