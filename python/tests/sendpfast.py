"""Scapy's sendpfast in all its forms, with netdyno in the place of tcpreplay. Runs in a lab; prints a JSON object of what each form returned."""

import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time

# Behind a shell's & it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import IP, UDP, Ether, conf, sendpfast  # noqa: E402

FORMS = {
    "default": {},
    "as captured": {"realtime": True},
    "twice as fast": {"realtime": 2.0},
    "at top speed": {"realtime": None},
    "packets a second": {"pps": 1000.5},
    "megabits a second": {"mbps": 10},
    "count": {"pps": 1000, "count": 3},
    "cached": {"pps": 1000, "file_cache": True},
    "more arguments": {"pps": 1000, "replay_args": ["--stats=1"]},
    "until Ctrl-C": {"pps": 1000, "loop": 1},
}

packets = [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2", id=n) / UDP() for n in range(20)]
for number, packet in enumerate(packets):
    packet.time = 1_000_000_000 + number * 0.01
found = {}
with tempfile.TemporaryDirectory() as folder:
    conf.prog.tcpreplay = os.path.join(folder, "tcpreplay")
    os.symlink(os.path.abspath(os.environ["NETDYNO_BINARY"]), conf.prog.tcpreplay)
    for form, arguments in FORMS.items():
        if "loop" in arguments:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        found[form] = sendpfast(packets, iface="tx0", parse_results=True, **arguments)
        found[form]["elapsed"] = time.monotonic() - begin
json.dump(found, sys.stdout)
