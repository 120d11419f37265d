"""Random exporters of flow records (NetFlow v5 and v9, IPFIX, sFlow v5), and what is true of them.

    exporters.py make FILE [--seed N] [--messages N] [--kinds v5,v9,ipfix,sflow] [--calm]
    exporters.py send FILE HOST PORT [--kinds ...] [--gap SECONDS]
    exporters.py judge FILE ROWS.csv RESULT.json

`make` invents exporters and what becomes of their messages on the way: some are lost, come twice, or are overtaken; exporters
restart; templates come late and change their meaning; options say how packets are sampled, of all, of a sampler, an interface or a
template. FILE gets the datagrams in the order in which they arrive, the rows that a collector has to write, and the counts that it
has to give. These follow from what was sent and what arrived (class Truth), not from how a collector works. With --calm nothing is
lost, late or twice, and nothing restarts, because other collectors write what they received, whatever the numbers say.

`send` sends them, each exporter from an address (of 127.0.0.0/8) and port of its own; `judge` compares what `netdyno collect` wrote with what is true.
Used by collect_judged.rs and by scripts/judge-exporters, which asks other collectors, too.

Each record has a source address of its own, by which the same record is found in everybody's output.
"""
import csv, ipaddress, json, random, socket, struct, sys, time

START_MS = 1_700_000_000_000
WRAP = 2**32
ROW = dict(type="", domain=0, rate=None, first=None, last=None, bytes=0, packets=0, src="", dst="", proto=0, sport=0, dport=0, input=0,
    output=0, src_mac="00:00:00:00:00:00", dst_mac="00:00:00:00:00:00", src_vlan=0, dst_vlan=0, tos=0, flags=0, src_as=0, dst_as=0,
    src_net=0, dst_net=0, next_hop="", end=0, direction=0)
COLUMNS = dict(domain="observation_domain_id", rate="sampling_rate", first="time_flow_start_ns", last="time_flow_end_ns", src="src_addr",
    dst="dst_addr", sport="src_port", dport="dst_port", input="in_if", output="out_if", tos="ip_tos", flags="tcp_flags",
    end="flow_end_reason", direction="flow_direction")
COUNTS = ["messages", "records", "options_records", "malformed_messages", "unread_sets", "missing_records", "missing_messages",
    "uncounted_records", "late_messages", "duplicate_messages", "duplicate_records", "restarts", "unknown_sampling_records",
    "reserved_sets", "unread_samples", "missing_samples", "dropped_samples",
    "miscounted_messages"]


def number(value, length):
    return value.to_bytes(length, "big")


def words(*values):
    return b"".join(struct.pack("!I", value) for value in values)


def mac(value):
    return ":".join(f"{byte:02x}" for byte in value)


class Message:
    """What an exporter sends at once. `rise`: by how much it raises the number of its domain. `fixed`: it is neither lost nor
    overtaken, and overtakes none."""

    def __init__(self, domain, life, at, rise, datagram, sets, fixed=False):
        self.domain, self.life, self.at, self.rise, self.datagram, self.sets, self.fixed = domain, life, at, rise, datagram, sets, fixed


def arrive(dice, sent, trouble):
    """What arrives of messages, in order: true is what makes no difference between a message and its duplicate."""
    arrived, under_way = [], []
    for at, message in enumerate(sent):
        if message.fixed:
            arrived += [of for _, _, of in sorted(under_way, key=lambda way: way[:2])] + [message]
            under_way = []
            continue
        if dice.random() < trouble["loss"]:
            continue
        due = at + (dice.randrange(1, 6) if dice.random() < trouble["late"] else 0)
        under_way.append((due, len(under_way), message))
        if dice.random() < trouble["twice"]:
            under_way.append((due + dice.randrange(1, 6), at, message))
        now = sorted((way for way in under_way if way[0] <= at), key=lambda way: way[:2])
        under_way = [way for way in under_way if way[0] > at]
        arrived += [of for _, _, of in now]
    return arrived + [of for _, _, of in sorted(under_way, key=lambda way: way[:2])]


class Truth:
    """What is true of messages that arrived in this order, by all that was sent."""

    def __init__(self, kind):
        self.kind, self.rows, self.counts = kind, [], dict.fromkeys(COUNTS, 0)
        self.lives, self.numbers, self.templates, self.said, self.waiting, self.sources = {}, {}, {}, {}, {}, {}

    def arrives(self, message):
        self.counts["messages"] += 1
        domain = message.domain
        if self.lives.get(domain, message.life) != message.life:
            self.counts["restarts"] += 1
            # What was said before may mean something else now (RFC 3954, 7). In IPFIX nothing proves a restart.
            if self.kind == "v9":
                self.templates[domain], self.said[domain] = {}, {}
        self.lives[domain] = message.life
        seen, first, end = self.numbers.setdefault((domain, message.life), (set(), message.at, [message.at]))
        numbers = range(message.at, message.at + message.rise)
        is_twice = message.rise > 0 and all(of in seen for of in numbers)
        if is_twice:
            self.counts["duplicate_messages"] += 1
        elif message.at < end[0]:
            self.counts["late_messages"] += 1
        seen.update(numbers)
        end[0] = max(end[0], message.at + message.rise)
        for kind, *of in message.sets:
            getattr(self, kind)(domain, is_twice, message, *of)

    def template(self, domain, is_twice, message, number):
        self.templates.setdefault(domain, {})[number] = True
        for then, is_twice, rows in self.waiting.pop((domain, number), []):
            self.take(domain, is_twice, then, number, rows, True)

    def said_of(self, domain, is_twice, message, number, records):
        if number not in self.templates.get(domain, {}):
            raise AssertionError("options that wait are not in the model")
        self.counts["options_records"] += len(records)
        self.said.setdefault(domain, {}).update(records)

    def rows_of(self, domain, is_twice, message, number, rows):
        if number is not None and number not in self.templates.get(domain, {}):
            self.waiting.setdefault((domain, number), []).append((message, is_twice, rows))
        else:
            self.take(domain, is_twice, message, number, rows, False)

    def take(self, domain, is_twice, message, number, rows, waited):
        for row in rows:
            rate = self.rate(domain, number, row)
            # A record of both directions is a row for each.
            self.rows += [dict(of, rate=rate, waited=waited) for of in [row["row"], *row.get("back", [])]]
            self.counts["records"] += 1
            self.counts["duplicate_records"] += is_twice
            self.counts["unknown_sampling_records"] += rate is None

    def rate(self, domain, number, row):
        if row.get("own"):
            return row["own"]
        said = self.said.get(domain, {})
        if row.get("sampler") is not None and any(kind == "sampler" for kind, _ in said):
            return said.get(("sampler", row["sampler"])) or None
        for whose in [("interface", row["row"]["input"]), ("interface", row["row"]["output"]), ("template", number), ("all", 0)]:
            if said.get(whose):
                return said[whose]
        # Who names no sampler is meant by the only one that looks at anything.
        rates = {rate for (kind, _), rate in said.items() if kind == "sampler" and rate}
        return rates.pop() if len(rates) == 1 else None

    def miscounted(self, domain, is_twice, message):
        """The last of a message's sets. Where some of them cannot be counted nobody knows what is right."""
        unknown = [of for of in message.sets if of[0] == "reserved" or of[0] == "rows_of" and of[1] not in self.templates.get(domain, {})]
        self.counts["miscounted_messages"] += not unknown

    def reserved(self, domain, is_twice, message):
        self.counts["reserved_sets"] += 1

    def sample(self, domain, is_twice, message, source, number, drops, row):
        key = (domain, message.life, source)
        seen, dropped, first = self.sources.setdefault(key, (set(), [drops, drops], number))
        if number > max(seen, default=0):
            dropped[1] = drops
        seen.add(number)
        if row is None:
            self.counts["unread_samples"] += 1
        else:
            self.take(domain, is_twice, message, None, [row], False)

    def unread(self, domain, is_twice, message):
        self.counts["unread_samples"] += 1

    def result(self):
        missing = "missing_messages" if self.kind in ("v9", "sflow") else "missing_records"
        for seen, first, end in self.numbers.values():
            # What came before the first message that arrived was perhaps not sent to us.
            self.counts[missing] += sum(of not in seen for of in range(first, end[0]))
        for seen, dropped, first in self.sources.values():
            self.counts["missing_samples"] += sum(of not in seen for of in range(first, max(seen)))
            self.counts["dropped_samples"] += dropped[1] - dropped[0]
        self.counts["unread_sets"] += sum(len(sets) for sets in self.waiting.values())
        return self.counts


class Life:
    """An exporter from its start to the next."""

    def __init__(self, dice, count, began_ms, uptime_ms):
        self.dice, self.count, self.began_ms, self.uptime_ms, self.now_ms = dice, count, began_ms, uptime_ms, began_ms

    def up(self, at_ms):
        return (at_ms - self.began_ms + self.uptime_ms) % WRAP

    def set_clock(self, dice):
        """By a day back, or on: not by more than the uptime, because by what it says the exporter would have begun anew then."""
        on = [100_000] if 200_000 < self.up(self.now_ms) else []
        ms = dice.choice([-86_400_000, -3_600_000, *on])
        self.began_ms += ms
        self.now_ms += ms

    def span(self):
        """First and last packet of a flow; none comes before the exporter began."""
        last = max(self.began_ms, self.now_ms - self.dice.randrange(20_000))
        return max(self.began_ms, last - self.dice.randrange(30_000)), last


class Exporter:
    kind = ""

    def __init__(self, dice, messages, calm):
        self.dice, self.calm, self.addresses = dice, calm, 0
        self.salt = dice.randrange(1 << 24)
        rough = dict(loss=dice.choice([0, 0.05, 0.2]), late=dice.choice([0, 0.1, 0.3]), twice=dice.choice([0, 0.1, 0.2]))
        self.trouble = dict.fromkeys(rough, 0) if calm else rough
        lives = 1 if calm else dice.randrange(1, 4)
        # Where an exporter restarts as well, a clock that is set makes one life look like another to everybody.
        self.sets_clock = lives == 1 and dice.random() < 0.5
        sent, now_ms = [], START_MS + dice.randrange(60) * 1000
        for life in range(lives):
            # Uptimes wrap after 49.7 days, some of these soon.
            uptime_ms = dice.choice([200_000, 3_000_000_000, WRAP - 20_000]) if life == 0 else dice.randrange(2_000)
            # Agents of sFlow say no time: an uptime that wraps and one that begins anew are the same to everybody.
            if self.kind == "sflow" and life < lives - 1:
                uptime_ms = min(uptime_ms, 3_000_000_000)
            of = Life(dice, life, now_ms, uptime_ms)
            self.begin(of)
            sent += self.live(of, messages // lives)
            now_ms = of.now_ms + 20_000
        self.arrived = arrive(dice, sent, self.trouble)
        truth = Truth(self.kind)
        for message in self.arrived:
            truth.arrives(message)
        self.rows, self.counts = truth.rows, truth.result()

    def begin(self, life):
        pass

    def address(self, v6):
        """One that no other record has."""
        self.addresses += 1
        bits = (self.salt << 20 | self.addresses) & (2**32 - 1 if not v6 else 2**64 - 1)
        return (bytes.fromhex("20010db8") + number(bits, 12)) if v6 else number(bits | 1 << 31, 4)

    def passes(self, life, most_ms):
        life.now_ms += self.dice.choice([0, 1, 1, 2]) * most_ms // 2

    def counters(self):
        """A flow's, not larger than everybody's."""
        return self.dice.randrange(1, 2**31), self.dice.randrange(1, 2**20)

    def ends(self, v6):
        dice = self.dice
        protocol = dice.choice([6, 17, 17, 47, 132, 58 if v6 else 1])
        icmp = protocol in (1, 58)
        sport = 0 if protocol in (1, 58, 47) else dice.randrange(1, 65536)
        dport = dice.randrange(1, 16) * 256 + dice.randrange(4) if icmp else 0 if protocol == 47 else dice.randrange(1, 65536)
        return protocol, sport, dport


def text(address):
    return str(ipaddress.ip_address(address))


class V5(Exporter):
    kind = "v5"

    def begin(self, life):
        first = self.dice.choice([0, 1_000_000, WRAP - 40]) if life.count == 0 else 0
        self.numbers = {engine: first for engine in (0, 0x0103)}
        self.rates = {engine: self.dice.choice([0, 100, 16_383]) for engine in self.numbers}

    def live(self, life, messages):
        dice, fixed = self.dice, set(self.numbers)
        for _ in range(messages):
            self.passes(life, dice.choice([300, 1500]))
            if self.sets_clock and dice.random() < 0.02:
                life.set_clock(dice)
                fixed = set(self.numbers)
            engine = dice.choice(list(self.numbers))
            rate, rows, body = self.rates[engine], [], b""
            for _ in range(dice.randrange(1, 31)):
                protocol, sport, dport = self.ends(False)
                first, last = life.span()
                octets, packets = self.counters()
                row = dict(ROW, type="v5", domain=engine, first=first, last=last, bytes=octets, packets=packets, proto=protocol, sport=sport,
                    dport=dport, input=dice.randrange(65536), output=dice.randrange(65536), tos=dice.randrange(256),
                    flags=dice.randrange(64) if protocol == 6 else 0, src_as=dice.randrange(65536), dst_as=dice.randrange(65536),
                    src_net=dice.randrange(33), dst_net=dice.randrange(33))
                source, destination, hop = self.address(False), dice.randbytes(4), dice.choice([bytes(4), b"\xc0\0\2\1"])
                row.update(src=text(source), dst=text(destination), next_hop="" if hop == bytes(4) else text(hop))
                rows.append(dict(row=row, own=rate))
                body += source + destination + hop + struct.pack("!HHIIIIHHBBBBHHBBH", row["input"], row["output"], packets, octets,
                    life.up(first), life.up(last), sport, dport, 0, row["flags"], protocol, row["tos"], row["src_as"], row["dst_as"],
                    row["src_net"], row["dst_net"], 0)
            number = self.numbers[engine]
            head = struct.pack("!HHIIIIHH", 5, len(rows), life.up(life.now_ms), life.now_ms // 1000, life.now_ms % 1000 * 1_000_000,
                number % WRAP, engine, rate)
            self.numbers[engine] += len(rows)
            yield Message(engine, life.count, number, len(rows), head + body, [("rows_of", None, rows)], engine in fixed)
            fixed.discard(engine)


# How options of IPFIX say that one packet in so many is looked at: fields, and their values.
WAYS = {
    "interval": ([(34, 4)], lambda rate: number(rate, 4)),
    "random": ([(50, 4)], lambda rate: number(rate, 4)),
    "space": ([(305, 4), (306, 4)], lambda rate: number(3 if rate else 0, 4) + number(3 * (rate - 1) if rate else 0, 4)),
    "size": ([(309, 4), (310, 4)], lambda rate: number(7, 4) + number(7 * rate, 4)),
    "chance": ([(311, 8)], lambda rate: struct.pack("!d", 1 / rate if rate else 0)),
}


class Template:
    """Fields of records, each with its length; `times` names how first and last are said."""

    def __init__(self, dice, version, whose, own):
        self.v6 = dice.random() < 0.4
        size = 16 if self.v6 else 4
        name = lambda v4, v6: v6 if self.v6 else v4
        times = {"up": [22, 21], "s": [150, 151], "ms": [152, 153], "us": [154, 155], "ns": [156, 157], "ago": [158, 159], "none": []}
        ways = ["up", "ms"] if version == 9 else ["s", "ms", "us", "ns", "ago", "init", "none"]
        self.times = dice.choice(ways)
        self.octets, self.packets = dice.choice([(1, 2), (1, 2), (1, 2), (1, 2), (85, 86), (23, 24), (231, 298), (231, None)])
        fields = [(name(8, 27), size), (name(12, 28), size), (7, 2), (11, 2), (4, 1), (5, 1), (6, dice.choice([1, 2])),
            (self.octets, dice.choice([4, 8])), (self.packets, dice.choice([4, 8]))]
        # As firewalls say it (Cisco's NSEL): what initiator and responder sent, some of octets alone.
        self.both = self.octets == 231
        fields += [(232, dice.choice([4, 8])), (299, dice.choice([4, 8]))] if self.both else []
        fields = [field for field in fields if self.packets or field[0] not in (None, 299)]
        lengths = {22: 4, 21: 4, 150: 4, 151: 4, 158: 4, 159: 4, 160: 8}
        chosen = [160, 22, 21] if self.times == "init" else times[self.times]
        fields += [(of, lengths.get(of, 8)) for of in chosen]
        beside = [(10, dice.choice([2, 4])), (14, dice.choice([2, 4])), (16, dice.choice([2, 4])), (17, dice.choice([2, 4])),
            (name(9, 29), 1), (name(13, 30), 1), (name(15, 62), size), (58, 2), (59, 2), (56, 6), (80, 6), (61, 1), (9999, 7), (60, 1)]
        beside += [(136, 1), (96, 65535)] if version == 10 else []
        # Event, translated addresses, rules and user: numbers from 32,768 on are Cisco's own in v9, and elements of enterprise 9 in IPFIX.
        beside += [(233, 1), (148, 4), (323, 8), (225, 4), (226, 4), (227, 2), (228, 2), (33002, 2), (33000, 12), (40000, 20), (40005, 1)] if self.both else []
        fields += dice.sample(beside, dice.randrange(len(beside)))
        if whose == "interface" and all(of != 10 for of, _ in fields):
            fields.append((10, 4))
        self.sampler = whose == "sampler" and dice.random() < 0.8
        if self.sampler:
            fields.append((48, dice.choice([1, 2, 4])) if version == 9 else (302, dice.choice([2, 4, 8])))
        self.own = own and dice.random() < 0.3
        if self.own:
            fields.append((34, 4))
        # ICMP's type and code where no ports are said.
        self.icmp = None
        if dice.random() < 0.15:
            fields = [field for field in fields if field[0] not in (7, 11)]
            self.icmp = dice.choice([name(32, 139), name(176, 178)])
            fields += [(self.icmp, 2)] if self.icmp in (32, 139) else [(self.icmp, 1), (self.icmp + 1, 1)]
        dice.shuffle(fields)
        self.fields, self.varies = fields, any(length == 65535 for _, length in fields)
        own = lambda field: b"\0\0\0\x09" if version == 10 and field[0] >= 32_768 else b""
        self.body = b"".join(struct.pack("!HH", *field) + own(field) for field in fields)
        self.how = " ".join([self.times, f"counter{self.octets}", f"icmp{self.icmp}" if self.icmp else "", "both" if self.both else "", "own" if self.own else "",
            "sampler" if self.sampler else "", "direction" if (61, 1) in fields else "", "varies" if self.varies else ""])

    def of(self, tid):
        return struct.pack("!HH", tid, len(self.fields)) + self.body


def set_of(tid, body, pad=True):
    body += bytes(-len(body) % 4 if pad else 0)
    return struct.pack("!HH", tid, 4 + len(body)) + body


NTP = 2_208_988_800


def ntp(ms, fine):
    """Seconds and fraction, rounded up, so that whoever rounds down finds the same millisecond."""
    fraction = -(-(ms % 1000 << 32) // 1000)
    return struct.pack("!II", ms // 1000 + NTP, fraction if fine else (fraction + 2047) // 2048 * 2048)


class Templated(Exporter):
    version = 0

    def begin(self, life):
        dice = self.dice
        self.known, self.options, self.samplers = {}, {}, {}
        self.whose = self.whose if life.count else {}
        first = dice.choice([0, 1_000_000, 3_000_000_000]) if life.count == 0 else 0
        self.numbers = {domain: first for domain in (0, 7, WRAP - 1)}
        for domain in self.numbers:
            # Of IPFIX it stays the same, because what was said before a restart holds until it is said again.
            stays = self.version == 10 and life.count > 0
            whose = self.whose[domain] if stays else dice.choice(["none", "all", "sampler", "interface", "template", "own"])
            self.whose[domain] = whose
            tids = dice.sample(range(256, 264), dice.randrange(1, 4))
            self.known[domain] = {tid: Template(dice, self.version, whose, whose != "none") for tid in tids}
            self.samplers[domain] = {}
            if whose not in ("none", "own"):
                self.options[domain] = (300 + dice.randrange(9), dice.choice(list(WAYS)), dice.choice([1, 2, 4]))

    def rate(self):
        return self.dice.choice([10, 100, 1000, 4000, 10_922])

    def options_of(self, domain):
        """The options' template and what it is sent as."""
        tid, way, width = self.options[domain]
        whose, nine = self.whose[domain], self.version == 9
        scope = {"all": (1, 4), "sampler": (1, 4), "interface": (2, 4), "template": (5, 2)} if nine else {
            "all": (149, 4), "sampler": (302, width), "interface": (10, 4), "template": (145, 2)}
        fields = ([(48, width)] if whose == "sampler" else []) + [(34, 4) if way == "interval" else (50, 4), (49, 1)] if nine else WAYS[way][0]
        head = struct.pack("!HHH", tid, 4, 4 * len(fields)) if nine else struct.pack("!HHH", tid, 1 + len(fields), 1)
        return set_of(1 if nine else 3, head + b"".join(struct.pack("!HH", *field) for field in [scope[whose], *fields]))

    def say(self, domain):
        """Records of options: of all, or of some samplers, interfaces, templates."""
        tid, way, width = self.options[domain]
        whose, nine, dice = self.whose[domain], self.version == 9, self.dice
        ids = {"all": [0], "sampler": [1, 2, 3], "interface": [3, 4], "template": list(self.known[domain])}[whose]
        said, body = [], b""
        for of in dice.sample(ids, dice.randrange(1, len(ids) + 1)):
            rate = self.rate() if whose != "sampler" or dice.random() < 0.9 else 0
            if self.samplers[domain].get(of) is not None and dice.random() < 0.6:
                rate = self.samplers[domain][of]
            self.samplers[domain][of] = rate
            said.append(((whose, of), rate))
            if nine:
                body += number(of if whose in ("interface", "template") else 0, 2 if whose == "template" else 4)
                body += (number(of, width) if whose == "sampler" else b"") + number(rate, 4) + b"\2"
            else:
                length = {"all": 4, "sampler": width, "interface": 4, "template": 2}[whose]
                body += number(of, length) + WAYS[way][1](rate)
        return set_of(tid, body), said

    def record(self, domain, template, life):
        dice, v6, fields = self.dice, template.v6, dict(template.fields)
        protocol, sport, dport = self.ends(v6)
        first, last = life.span()
        octets, packets = self.counters()
        addresses = self.address(v6), dice.randbytes(16 if v6 else 4)
        hop = dice.choice([bytes(len(addresses[0])), addresses[1]])
        macs = dice.randbytes(6), dice.randbytes(6)
        flags = dice.randrange(64) if protocol == 6 else 0
        if template.icmp:
            protocol, sport, dport = (58 if v6 else 1, 0, dice.randrange(1, 16) * 256 + dice.randrange(4)) if dice.random() < 0.5 else (47, 0, 0)
            flags = 0
        sampler, own = dice.choice([1, 2, 3, 4]), dice.choice([0, self.rate()])
        value = {27: addresses[0], 8: addresses[0], 28: addresses[1], 12: addresses[1], 7: sport, 11: dport, 4: protocol, 5: dice.randrange(256),
            6: flags, template.octets: octets, template.packets: packets, 22: life.up(first), 21: life.up(last), 150: first // 1000,
            151: last // 1000, 152: first, 153: last, 154: ntp(first, False), 155: ntp(last, False), 156: ntp(first, True), 157: ntp(last, True),
            158: (life.now_ms // 1000 * 1000 - first) * 1000, 159: (life.now_ms // 1000 * 1000 - last) * 1000,
            160: life.began_ms - life.uptime_ms, 10: dice.choice([3, 4, 5]), 14: dice.choice([3, 4, 5]), 16: dice.randrange(65536),
            17: dice.randrange(65536), 9: dice.randrange(33), 13: dice.randrange(33), 29: dice.randrange(129), 30: dice.randrange(129), 15: hop,
            62: hop, 58: dice.randrange(4096), 59: dice.randrange(4096), 56: macs[0], 80: macs[1], 61: dice.randrange(2), 9999: dice.randbytes(7),
            60: 6 if v6 else 4, 136: dice.randrange(1, 6), 96: b"name"[:dice.randrange(5)], 48: sampler, 302: sampler, 34: own,
            32: dport, 139: dport, 176: dport >> 8, 177: dport & 255, 178: dport >> 8, 179: dport & 255, 233: dice.randrange(6), 148: dice.randrange(1 << 32),
            323: life.now_ms, 225: dice.randbytes(4), 226: dice.randbytes(4), 227: dice.randrange(65536), 228: dice.randrange(65536),
            33002: dice.randrange(65536), 33000: dice.randbytes(12), 40000: b"user".ljust(20, b"\0"), 40005: dice.randrange(6)}
        back = dice.choice([(0, 0), self.counters()])
        value.update({232: back[0], 299: back[1]})
        row = dict(ROW, type="v9" if self.version == 9 else "ipfix", domain=domain, bytes=octets, packets=packets if template.packets else 0, src=text(addresses[0]),
            dst=text(addresses[1]), proto=protocol, sport=sport, dport=dport, tos=value[5], flags=flags, how=template.how)
        if template.times == "s":
            row.update(first=first // 1000 * 1000, last=last // 1000 * 1000)
        elif template.times != "none":
            row.update(first=first, last=last)
        elif 323 in fields:
            # Of an event one time is said.
            row.update(first=life.now_ms, last=life.now_ms)
        names = {10: "input", 14: "output", 16: "src_as", 17: "dst_as", 9: "src_net", 29: "src_net", 13: "dst_net", 30: "dst_net", 58: "src_vlan",
            59: "dst_vlan", 61: "direction", 136: "end"}
        row.update({name: value[of] for of, name in names.items() if of in fields})
        row.update({name: mac(value[of]) for of, name in {56: "src_mac", 80: "dst_mac"}.items() if of in fields})
        if any(of in fields for of in (15, 62)) and hop != bytes(len(hop)):
            row["next_hop"] = text(hop)
        body = b""
        for of, length in template.fields:
            this = value[of]
            if length == 65535:
                body += dice.choice([bytes([len(this)]), b"\xff" + struct.pack("!H", len(this))]) + this
            else:
                body += this if isinstance(this, bytes) else number(this, length)
        backs = [self.back(row, back if template.packets else (back[0], 0))] if template.both and back[0] else []
        return body, dict(row=row, back=backs, own=own if template.own else 0, sampler=sampler if template.sampler else None)

    @staticmethod
    def back(row, counted):
        """What the responder sent."""
        turned = dict(row, bytes=counted[0], packets=counted[1], flags=0, next_hop="", direction=0)
        ends = [("src", "dst"), ("input", "output"), ("src_as", "dst_as"), ("src_net", "dst_net"), ("src_mac", "dst_mac")]
        for a, b in ends + ([("sport", "dport")] if row["proto"] not in (1, 58) else []):
            turned[a], turned[b] = row[b], row[a]
        return turned

    def templates(self, domain, leave_out=()):
        sets, items, count = b"", [], 0
        for tid, template in self.known[domain].items():
            if tid in leave_out:
                continue
            sets += set_of(0 if self.version == 9 else 2, template.of(tid))
            items.append(("template", tid))
            count += 1
        if domain in self.options:
            sets += self.options_of(domain)
            items.append(("template", self.options[domain][0]))
            count += 1
        return sets, items, count

    def live(self, life, messages):
        dice, fresh, was_set = self.dice, set(self.numbers), set()
        # Of some exporters a template comes only later. What it counts meanwhile depends on it.
        may_be_late = not self.calm and (self.version == 9 or life.count == 0)
        late = {domain: dice.choice(list(known)) for domain, known in self.known.items() if may_be_late and dice.random() < 0.3}
        for at in range(messages):
            self.passes(life, 2000)
            life.now_ms = life.now_ms // 1000 * 1000
            if self.sets_clock and dice.random() < 0.02:
                life.set_clock(dice)
                was_set = set(self.numbers)
            domain = dice.choice(list(self.numbers))
            fixed, sets, items, counted, others = domain in fresh or domain in was_set, b"", [], 0, 0
            was_set.discard(domain)
            if fixed or dice.random() < 0.1:
                sent = [tid for tid in self.known[domain] if tid != late.get(domain)]
                if not fixed and sent and dice.random() < 0.2:
                    # It means something else from now on.
                    tid = dice.choice(sent)
                    self.known[domain][tid] = Template(dice, self.version, self.whose[domain], self.whose[domain] != "none")
                    fixed = True
                leave_out = [late[domain]] if domain in late and (domain in fresh or dice.random() < 0.7) else []
                if domain in late and not leave_out:
                    late.pop(domain)
                    fixed = True
                sets, items, others = self.templates(domain, leave_out)
            fresh.discard(domain)
            if domain in self.options and dice.random() < 0.15:
                body, said = self.say(domain)
                sets += body
                items.append(("said_of", self.options[domain][0], said))
                counted += len(said)
            if dice.random() < 0.03:
                sets += set_of(dice.choice([4, 100, 255]), bytes(8))
                items.append(("reserved",))
            for _ in range(dice.randrange(0 if sets else 1, 4)):
                tid = dice.choice(list(self.known[domain]))
                template = self.known[domain][tid]
                several = [self.record(domain, template, life) for _ in range(dice.choice([1, 1, 2, 9, 20]))]
                # Messages are not cut by Ethernet.
                while several and len(sets) + sum(len(of) for of, _ in several) > 1400:
                    several.pop()
                if not several:
                    break
                body = b"".join(of for of, _ in several)
                sets += set_of(tid, body, not template.varies)
                items.append(("rows_of", tid, [row for _, row in several]))
                counted += len(several)
            yield self.message(domain, life, sets, items, counted, others, fixed)
        # All that waits can be read at the end.
        for domain in self.numbers:
            sets, items, others = self.templates(domain)
            yield self.message(domain, life, sets, items, 0, others, True)

    def message(self, domain, life, sets, items, counted, others, fixed):
        at, rise = self.numbers[domain], counted if self.version == 10 else 1
        self.numbers[domain] += rise
        seconds = life.now_ms // 1000
        if self.version == 10:
            head = struct.pack("!HHIII", 10, 16 + len(sets), seconds, at % WRAP, domain)
        else:
            # Some count wrongly, and some leave out templates.
            wrong = 100 if not self.calm and at % 17 == 5 else -others if at % 3 == 1 else 0
            items = items + [("miscounted",)] if wrong > 0 else items
            head = struct.pack("!HHIIII", 9, counted + others + wrong, life.up(life.now_ms), seconds, at % WRAP, domain)
        return Message(domain, life.count, at, rise, head + sets, items, fixed)


class V9(Templated):
    kind, version = "v9", 9


class Ipfix(Templated):
    kind, version = "ipfix", 10


def xdr(body):
    return body + bytes(-len(body) % 4)


def tagged(kind, body):
    return words(kind, len(body)) + body


class Sflow(Exporter):
    kind = "sflow"

    def begin(self, life):
        dice = self.dice
        agents = [(b"\xc0\0\2\x09", 0), (b"\xc0\0\2\x09", 5), (bytes.fromhex("20010db8") + bytes(11) + b"\7", 1)]
        first = dice.choice([1, 1_000_000]) if life.count == 0 else 1
        self.numbers = {agent: first for agent in agents}
        # Of each source: the number of its latest sample, one packet in how many it takes, of how many packets, how many it dropped.
        self.sources = {agent: {port: [first, dice.choice([0, 1, 512, 4096]), 0, 0] for port in (3, 4, 70_000)} for agent in agents}

    def packet(self, v6):
        """A packet, and the row of whoever sees all of it."""
        dice = self.dice
        protocol, sport, dport = self.ends(v6)
        source, destination, tos = self.address(v6), dice.randbytes(16 if v6 else 4), dice.randrange(256)
        payload, flags = dice.randbytes(dice.randrange(64)), 0
        if protocol == 6:
            flags = dice.randrange(64)
            upper = struct.pack("!HHIIBBHHH", sport, dport, 1, 2, 0x50, flags, 512, 0, 0) + payload
        elif protocol == 17:
            upper = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload
        elif protocol == 132:
            upper = struct.pack("!HHII", sport, dport, 1, 0) + payload
        elif protocol == 47:
            # GRE of a protocol that nobody looks into.
            upper = struct.pack("!HH", 0, 0x88B5) + payload
        else:
            upper = struct.pack("!HHI", dport, 0, 0) + payload
        row = dict(ROW, type="sflow", packets=1, proto=protocol, sport=sport, dport=dport, src=text(source), dst=text(destination), tos=tos, flags=flags)
        # Of a later fragment nobody knows the ports.
        later = dice.random() < 0.05
        if later:
            row.update(sport=0, dport=0, flags=0)
        if v6:
            hop = b"" if dice.random() < 0.8 else bytes([protocol, 0, 1, 4, 0, 0, 0, 0])
            if later:
                hop = bytes([protocol, 0, 0, 8 * 8, 0, 0, 0, 7])
            following = 44 if later else protocol if not hop else 0
            ip = struct.pack("!IHBB", 6 << 28 | tos << 20, len(hop) + len(upper), following, 64) + source + destination + hop
            row["bytes"], head = len(ip) + len(upper), len(ip)
        else:
            options = b"" if dice.random() < 0.9 else b"\1\1\1\1"
            head = 20 + len(options)
            row["bytes"] = head + len(upper)
            ip = struct.pack("!BBHHHBBH", 0x40 | head // 4, tos, row["bytes"], 7, 8 if later else 0, 64, protocol, 0) + source + destination + options
        return ip + upper, row, head, later

    def header(self):
        """A record of a packet's beginning, and its row, if anything can be said."""
        dice, v6 = self.dice, self.dice.random() < 0.4
        packet, row, head, later = self.packet(v6)
        link, way = b"", dice.choice([1, 1, 12 if v6 else 11])
        if way == 1:
            macs = dice.randbytes(6), dice.randbytes(6)
            vlan = dice.choice([0, 0, dice.randrange(1, 4095)])
            tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
            link = macs[1] + macs[0] + tag + struct.pack("!H", 0x86DD if v6 else 0x0800)
            row.update(src_mac=mac(macs[0]), dst_mac=mac(macs[1]), src_vlan=vlan)
        frame = link + packet
        cut = dice.choice([128, 128, 128, len(link) + head, len(link) + head + 4, dice.randrange(len(link), len(frame) + 1)])
        seen = frame[:cut]
        body = words(way, len(frame) + (4 if way == 1 else 0), 4 if way == 1 else 0, len(seen)) + xdr(seen)
        whole = dict(row)
        left = len(seen) - len(link)
        if left < (40 if v6 else head):
            row = None
        elif not later:
            upper = left - head
            if upper < (2 if row["proto"] in (1, 58) else 4):
                row.update(sport=0, dport=0)
            if upper < 14:
                row["flags"] = 0
        if row is not None and v6 and left < head:
            # The header that says which protocol it is was cut off.
            row.update(sport=0, dport=0, flags=0, bytes=row["bytes"])
            row["proto"] = None
        return tagged(1, body), row, whole

    def told(self, of=None):
        """What the switch read of a packet: of one by itself, or of the one that this row is of."""
        dice, v6 = self.dice, self.dice.random() < 0.4
        if of is not None:
            source, destination = (ipaddress.ip_address(of[name]).packed for name in ("src", "dst"))
            body = words(of["bytes"], of["proto"]) + source + destination + words(of["sport"], of["dport"], of["flags"], of["tos"])
            return tagged(4 if len(source) == 16 else 3, body), of
        protocol, sport, dport = self.ends(v6)
        source, destination, tos = self.address(v6), dice.randbytes(16 if v6 else 4), dice.randrange(256)
        flags, octets = dice.randrange(64) if protocol == 6 else 0, dice.randrange(40, 1501)
        row = dict(ROW, type="sflow", packets=1, proto=protocol, sport=sport, dport=dport, src=text(source), dst=text(destination), tos=tos,
            flags=flags, bytes=octets)
        return tagged(4 if v6 else 3, words(octets, protocol) + source + destination + words(sport, dport, flags, tos)), row

    def flow_sample(self, agent, domain):
        dice = self.dice
        port = dice.choice([3, 4, 70_000])
        source = self.sources[agent][port]
        source[0] += 1
        source[2] += max(source[1], 1) + dice.randrange(3)
        source[3] += dice.choice([0, 0, 0, 0, 2])
        at, rate, pool, drops = source
        if dice.random() < 0.02:
            source[1] = dice.choice([0, 1, 512, 4096])
        records, row = [], None
        kind = dice.random()
        if kind < 0.7:
            body, row, _ = self.header()
            records.append(body)
        elif kind < 0.9:
            body, row = self.told()
            records.append(body)
        elif kind < 0.95:
            # PPP, and Ethernet's addresses alone: nothing of IP.
            records.append(dice.choice([tagged(1, words(7, 60, 0, 4, 0xC0210000)), tagged(2, words(60) + bytes(16) + words(0x88CC))]))
        else:
            # Both: what stood in the packet goes first.
            body, row, whole = self.header()
            told, of_it = self.told(dict(ROW, **{name: whole[name] for name in ("type", "packets", "bytes", "src", "dst", "proto", "sport", "dport", "flags", "tos")}))
            records += [body, told]
            row = row or of_it
        if row is not None:
            row["domain"] = domain
        self.beside(records, row)
        dice.shuffle(records)
        ports, expanded = [port, dice.choice([3, 4, 65_000])], port > 65_535 or dice.random() < 0.3
        way = dice.choice([0, 0, 0, 1, 2]) if row is not None else 0
        value = ports[1] if way == 0 else dice.choice([0, 7, 258])
        none = dice.random() < 0.05
        nobody = WRAP - 1 if expanded else 0x3FFFFFFF
        if none:
            ports[0] = 0
        if row is not None:
            row.update(input=ports[0], output=ports[1] if way == 0 else 0)
        if expanded:
            head = words(at, 0, port, rate, pool, drops, 0, 0x3FFFFFFF if none else ports[0], way, value, len(records))
            sample = tagged(3, head + b"".join(records))
        else:
            head = words(at, port, rate, pool, drops, nobody if none else ports[0], way << 30 | value, len(records))
            sample = tagged(1, head + b"".join(records))
        item = ("sample", port, at, drops, None if row is None else dict(row=row, own=rate))
        return sample, item

    def beside(self, records, row):
        """What the switch knows beside the packet."""
        dice = self.dice
        row = {} if row is None else row
        if dice.random() < 0.4:
            vlans = dice.choice([0, 5, 4094]), dice.choice([0, 6])
            records.append(tagged(1001, words(vlans[0], 1, vlans[1], 2)))
            row.update({name: vlan for name, vlan in zip(("src_vlan", "dst_vlan"), vlans) if vlan})
        if dice.random() < 0.3:
            v6 = dice.random() < 0.3
            hop = dice.choice([dice.randbytes(16 if v6 else 4), bytes(16 if v6 else 4)])
            nets = dice.randrange(33), dice.randrange(33)
            records.append(tagged(1002, words(2 if v6 else 1) + hop + words(*nets)))
            row.update(src_net=nets[0], dst_net=nets[1], next_hop="" if hop == bytes(len(hop)) else text(hop))
        elif dice.random() < 0.3:
            own, source, peer, path = 64_500, dice.randrange(1, 65536), 64_502, [dice.randrange(1, WRAP) for _ in range(dice.randrange(3))]
            segments = words(1, 2, len(path), *path) if path else words(0)
            records.append(tagged(1003, words(1) + b"\xc6\x33\x64\1" + words(own, source, peer) + segments + words(0, 100)))
            row.update(src_as=source, dst_as=path[-1] if path else own, next_hop="198.51.100.1")
        if dice.random() < 0.1:
            records.append(tagged(4413 << 12 | 1, bytes(8)))

    def live(self, life, messages):
        dice, fresh = self.dice, set(self.numbers)
        for _ in range(messages):
            # Agents send what they sampled at once, and networks hold nothing back for seconds.
            life.now_ms += dice.choice([50, 200, 500])
            agent = dice.choice(list(self.numbers))
            address, domain = agent
            samples, items = [], []
            # The first one has a sample of each source, so that what is missing afterwards is known to be.
            for _ in range(dice.randrange(1, 6)):
                if dice.random() < 0.1:
                    # Counters are none of ours, and packets that were discarded are another kind of sample.
                    kind = dice.choice([2, 4, 5, 4413 << 12 | 9])
                    samples.append(tagged(kind, words(1, *[0] * {2: 2, 4: 3, 5: 7}.get(kind, 1))))
                    items += [] if kind in (2, 4) else [("unread",)]
                    continue
                sample, item = self.flow_sample(agent, domain)
                samples.append(sample)
                items.append(item)
            at = self.numbers[agent]
            self.numbers[agent] += 1
            head = words(5, 1 if len(address) == 4 else 2) + address + words(domain, at, life.up(life.now_ms), len(samples))
            yield Message(agent, life.count, at, 1, head + b"".join(samples), items, agent in fresh)
            fresh.discard(agent)


KINDS = {"v5": V5, "v9": V9, "ipfix": Ipfix, "sflow": Sflow}


def make(seed, messages, kinds, calm, each=250):
    """Exporters of each kind, with so many messages of each kind together."""
    exporters = []
    for kind in kinds:
        for at in range(-(-messages // each)):
            dice = random.Random(f"{seed} {kind} {at}")
            exporters.append(KINDS[kind](dice, each, calm))
    return exporters


def value(row, name):
    """A column of a row, as netdyno writes it."""
    of = row[name]
    return "" if of is None else str(of)


def judge(exporters, rows, result):
    """Where rows and counts of netdyno are not what is true: one line for each."""
    faults, wanted, got = [], {}, {}
    for exporter in exporters:
        for row in exporter["rows"]:
            wanted.setdefault((row["type"], row["src"]), []).append(row)
    for row in rows:
        got.setdefault((row["type"], row["src_addr"]), []).append(row)
    for key in sorted(wanted.keys() | got.keys()):
        ours, true = got.get(key, []), wanted.get(key, [])
        if len(ours) != len(true):
            faults.append(f"{key}: {len(ours)} rows of {len(true)}")
            continue
        def columns(row, from_csv):
            out = []
            for name in ROW:
                if name == "proto" and true[0]["proto"] is None:
                    continue
                if from_csv:
                    of = row[COLUMNS.get(name, name)]
                    out.append((name, str(int(of) // 1_000_000) if name in ("first", "last") and of else of))
                else:
                    out.append((name, value(row, name)))
            return out
        ours = sorted(columns(row, True) for row in ours)
        true = sorted(columns(row, False) for row in true)
        for one, other in zip(ours, true):
            faults += [f"{key}: {name} is {a}, not {b}" for (name, a), (_, b) in zip(one, other) if a != b]
    by_exporter = {of["from"]: of for of in result["result"]["collection"]["by_exporter"]}
    for at, exporter in enumerate(exporters):
        of = by_exporter.get(exporter["from"])
        if of is None:
            faults.append(f"exporter {at} ({exporter['kind']}): not in the result")
            continue
        for name, true in exporter["counts"].items():
            if of.get(name, 0) != true:
                faults.append(f"exporter {at} ({exporter['kind']}, seed {exporter['seed']}, {exporter['trouble']}): {name} is {of.get(name, 0)}, not {true}")
    return faults


def main():
    words, options = [], {}
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if argument == "--calm":
            options["calm"] = True
        elif argument.startswith("--"):
            options[argument[2:]] = next(arguments)
        else:
            words.append(argument)
    kinds = options.get("kinds", ",".join(KINDS)).split(",")
    if words[0] == "make":
        seed = int(options.get("seed", 31))
        made = make(seed, int(options.get("messages", 500)), kinds, "calm" in options)
        with open(words[1], "w") as out:
            json.dump([dict(kind=of.kind, seed=seed, trouble=of.trouble, datagrams=[message.datagram.hex() for message in of.arrived], rows=of.rows,
                counts=of.counts) for of in made], out)
    elif words[0] == "send":
        host, port, gap = words[2], int(words[3]), float(options.get("gap", 0.0004))
        with open(words[1]) as file:
            exporters = json.load(file)
        for at, exporter in enumerate(exporters):
            if exporter["kind"] not in kinds:
                continue
            out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            # Some collectors tell exporters apart by their addresses alone.
            out.bind((f"127.1.{at // 250}.{at % 250 + 1}" if host.startswith("127.") else "", 0))
            out.connect((host, port))
            exporter["from"] = "%s:%d" % out.getsockname()
            for datagram in exporter["datagrams"]:
                out.send(bytes.fromhex(datagram))
                time.sleep(gap)
        with open(words[1], "w") as file:
            json.dump(exporters, file)
    else:
        with open(words[1]) as file:
            exporters = [of for of in json.load(file) if of["kind"] in kinds]
        with open(words[2]) as file:
            rows = list(csv.DictReader(file))
        with open(words[3]) as file:
            faults = judge(exporters, rows, json.load(file))
        kinds = {}
        for fault in faults:
            kind = fault.split(" ")[0] + " " + fault.partition(": ")[2].split(" ")[0] if fault.startswith("(") else fault
            kinds.setdefault(kind, []).append(fault)
        faults = [one for of in kinds.values() for one in of[:2]] + [""] * sum(len(of[2:]) for of in kinds.values())
        print("\n".join([fault for fault in faults if fault][:40] + [f"{len(faults)} faults, {len(rows)} rows"]))
        sys.exit(bool(faults))


if __name__ == "__main__":
    main()
