"""Ends of UDP sessions over the sockets of the host: `echo ADDRESS PORT` sends back what comes and says at an interrupt what came from how
many; `ask ADDRESS PORT` asks netdyno's server, and does what it is not to answer."""

import json
import signal
import socket
import struct
import sys

# Of Linux; the module has no name for it.
SO_RCVBUFFORCE = 33
REQUEST, ANSWER, RELAY, REFUSED = b"ndyQ", b"ndyA", b"ndyR", b"ndyN"


def opened(address):
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)


def echo(address, port):
    peers, count = set(), 0
    sock = opened(address)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    sock.bind((address, port))

    def end(*_):
        print(json.dumps({"datagrams": count, "peers": len(peers)}))
        sys.exit(0)

    signal.signal(signal.SIGINT, end)
    print("listening", file=sys.stderr, flush=True)
    while True:
        data, peer = sock.recvfrom(2048)
        count += 1
        peers.add(peer)
        sock.sendto(data, peer)


def ask(address, port):
    of = socket.AF_INET6 if ":" in address else socket.AF_INET
    size = 16 if of == socket.AF_INET6 else 4
    one, other = opened(address), opened(address)
    for sock in (one, other):
        sock.connect((address, port))
        sock.settimeout(2)

    def mark(magic, number, port=0, cookie=b"\0\0", at=b"\0" * size):
        return magic + struct.pack("!IH", number, port) + cookie + at

    one.send(mark(REQUEST, 7) + b"more")
    answer = one.recv(2048)
    host, port = one.getsockname()[:2]
    seen = (socket.inet_pton(of, host), port)
    assert answer[:8] == ANSWER + struct.pack("!I", 7), answer
    assert (answer[12:12 + size], struct.unpack("!H", answer[8:10])[0]) == seen, answer
    cookie = answer[10:12]
    # By way of another it sends to where the first came from.
    other.send(mark(RELAY, 8, port, cookie, seen[0]))
    relayed = one.recv(2048)
    assert relayed == mark(ANSWER, 8, port, cookie, seen[0]), relayed
    # With another cookie, or to another port, it does not, and says so to who asked; nor does it answer what is no request, or too short for one.
    wrong = bytes([cookie[0] ^ 1, cookie[1]])
    for asked in ((port, wrong), (port ^ 1, cookie)):
        other.send(mark(RELAY, 9, *asked, seen[0]))
        assert other.recv(2048) == mark(REFUSED, 9, *asked, seen[0])
    for silent in (mark(ANSWER, 9), b"hello, is there anybody?" * 2, mark(REQUEST, 9)[:-1], b""):
        other.send(silent)
    for sock in (one, other):
        sock.settimeout(0.3)
        try:
            raise AssertionError(sock.recv(2048))
        except socket.timeout:
            pass
    print(json.dumps({"asked": 1, "relayed": 1, "bad": 2, "silent": 4}))


{"echo": echo, "ask": ask}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
