"""Asks a host with packets of Scapy at 10,000 a second, and shows which of them it answered: here a lab's host.

    python3 ask.py
"""

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether

import netdyno as nd


def main() -> None:
    with nd.lab(addresses=True) as lab:
        asked = Ether(dst="ff:ff:ff:ff:ff:ff") / IP(src="198.18.0.1", dst="198.18.0.2", ttl=[1, 64]) / ICMP(seq=(1, 100))
        answered, silent = nd.sr(asked, on=lab.tx, rate="10kpps")
    print(f"{len(answered)} of {len(answered) + len(silent)} were answered")
    for packet in silent[:5]:
        print("no answer:", packet.summary())


if __name__ == "__main__":
    main()
