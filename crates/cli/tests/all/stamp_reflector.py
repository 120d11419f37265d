"""A reflector of STAMP (RFC 8762, RFC 8972) and TWAMP-Light (RFC 5357, appendix I), written from these alone: the judge of netdyno's sender.

gaps: of ten packets one never comes, and another one comes twice, of which the second answer is lost.

usage: stamp_reflector.py ADDRESS PORT [stateless] [twamp] [ptp] [twice] [hostile] [gaps]

Its times are made up of the packet's, so that what follows from them is known exactly: received a second after T1, sent 1,000 ns later.
"""

import socket
import struct
import sys

address, port, *how = sys.argv[1:]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
reflector = socket.socket(family, socket.SOCK_DGRAM)
reflector.bind((address, int(port)))
other = socket.socket(family, socket.SOCK_DGRAM)
other.bind((address, 0))
if family == socket.AF_INET:
    # linux/in.h: IP_RECVTTL, which this module has no name for.
    reflector.setsockopt(socket.IPPROTO_IP, 12, 1)
else:
    reflector.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
print("reflecting", file=sys.stderr, flush=True)

SINCE_1900 = 2_208_988_800
counts = {}


def stamp(ns):
    """Nanoseconds since 1970, as they are written."""
    seconds, rest = divmod(ns, 1_000_000_000)
    if "ptp" in how:
        return struct.pack("!II", seconds + 37, rest)
    # Up, so that a difference is not cut.
    return struct.pack("!II", (seconds + SINCE_1900) % 2**32, -(-(rest << 32) // 1_000_000_000) % 2**32)


def answer(packet, ttl, own):
    seconds, fraction = struct.unpack("!II", packet[4:12])
    t1 = (seconds - SINCE_1900) * 1_000_000_000 + (fraction * 1_000_000_000 + 2**31 >> 32)
    # S and Z, and 2^-32 s.
    error = 0x8001 | (0x4000 if "ptp" in how else 0)
    session = b"\0\0" if "twamp" in how else packet[14:16]
    made = struct.pack("!I", own) + stamp(t1 + 1_000_001_000) + struct.pack("!H", error) + session
    made += stamp(t1 + 1_000_000_000) + packet[:14] + b"\0\0" + bytes([ttl])
    if "twamp" in how:
        return made
    tlvs = bytearray(packet[44:])
    if len(tlvs) >= 4 and tlvs[1] == 1:
        # Recognised.
        tlvs[0] &= 0x7F
    return made + b"\0\0\0" + tlvs


while True:
    packet, beside, _, peer = reflector.recvmsg(65535, 1024)
    ttl = struct.unpack("=i", beside[0][2])[0]
    number = struct.unpack("!I", packet[:4])[0]
    if "gaps" in how and number % 10 == 3:
        continue
    for _ in range(2 if "twice" in how else 1):
        own = counts.get(peer, 0)
        counts[peer] = own + 1
        made = answer(packet, ttl, number if "stateless" in how else own)
        reflector.sendto(made, peer)
    if "gaps" in how and number % 10 == 5:
        counts[peer] += 1
    if "hostile" in how:
        reflector.sendto(made, peer)
        reflector.sendto(made + bytes(20000), peer)
        reflector.sendto(b"", peer)
        reflector.sendto(made[:37], peer)
        reflector.sendto(made[:14] + bytes([made[14] ^ 1]) + made[15:], peer)
        reflector.sendto(made[:24] + b"\xff\xff\xff\xff" + made[28:], peer)
        reflector.sendto(made[:35] + bytes([made[35] ^ 1]) + made[36:], peer)
        other.sendto(made, peer)
