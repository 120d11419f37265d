// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two programs of a clone's target. Copies come with their clients' own addresses, through a tunnel (VXLAN, RFC 7348) from
 * netdyno's host; the target's answers to them must go back through the tunnel and never to a client.
 *
 *   arrive  TC ingress of the interface where the tunnel's packets come in: learns the flow from its SYN, takes the outer headers
 *           off, and lets the inner packet go up the stack as if it had come without them. So there is no tunnel device on the
 *           target, and strict rp_filter sees the interface that clients' packets come in by.
 *   depart  TC egress of every interface: puts a learned flow's answers into the tunnel; what cannot be put there goes nowhere.
 *   steal   The same for interfaces without an Ethernet header: a learned flow's answers go nowhere.
 *
 * Fails closed. Nothing is learned unless user space has renewed its lease; a flow is forgotten by user space alone, once no
 * socket of it is left (a hash map, never an LRU: an entry that the kernel evicts is an answer that reaches a client). The filters
 * stay when their loader dies. For Linux 5.10 and newer. crates/steer loads them.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/headers.h"

#ifndef IPPROTO_ICMPV6
#define IPPROTO_ICMPV6 58
#endif

/* Goes on to filters of others, and if there are none, up the stack. */
#define NEXT TC_ACT_UNSPEC

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

#define VXLAN_HAS_VNI 0x08

struct udp {
	__be16 source;
	__be16 destination;
	__be16 length;
	__be16 checksum;
};

struct vxlan {
	__u8 flags;
	__u8 reserved[3];
	/* In the upper 24 bits. */
	__be32 vni;
};

/* What is put before a packet, behind the Ethernet header it has. The inner Ethernet header has another's layout, with 14 bytes. */
struct behind {
	struct udp udp;
	struct vxlan vxlan;
	struct ether ether;
} __attribute__((packed));

struct before4 {
	struct ipv4 ip;
	struct behind behind;
} __attribute__((packed));

struct before6 {
	struct ipv6 ip;
	struct behind behind;
} __attribute__((packed));

_Static_assert(sizeof(struct before4) == 50, "IPv4, UDP, VXLAN, Ethernet");
_Static_assert(sizeof(struct before6) == 70, "IPv6, UDP, VXLAN, Ethernet");

/* IPv4 addresses stand in the last word, the others are zero. */
struct flow {
	__be32 client[4];
	__be32 server[4];
	__be16 client_port;
	__be16 server_port;
};

#define CLIENT_FINISHED 1
#define SERVER_FINISHED 2
#define WAS_RESET 4
/* User space is about to forget it, and looks once more whether it has a socket: no packet of it is let in meanwhile. */
#define FORGOTTEN 8

struct state {
	/* When the last packet came and left, by bpf_ktime_get_ns. */
	__u64 in_ns;
	__u64 out_ns;
	__u32 flags;
	__u32 unused;
};

enum count {
	/* When the last heartbeat came: a time, not a count. */
	HEARD_NS,
	/* Packets of the tunnel that went up the stack, and answers that went into it. */
	DECAPSULATED,
	STEERED,
	/* Heartbeats sent back. */
	REFLECTED,
	/* SYNs: flows learned, and no room for. */
	LEARNED,
	FULL,
	/* Packets of the tunnel that were dropped: of unlearned flows, without a lease, not a server's. */
	UNLEARNED,
	LEASELESS,
	MALFORMED,
	/* Packets of learned flows that did not come through the tunnel, dropped. */
	FOREIGN,
	/* What left for clients and was taken away: ICMP errors, TCP fragments, and what could not be put into the tunnel. */
	STOLEN_ICMP,
	STOLEN_FRAGMENTS,
	STOLEN_ANSWERS,
	COUNTS,
};

/* User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow);
	__type(value, struct state);
} flows SEC(".maps");

/* Until when flows are learned, by bpf_ktime_get_ns. User space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lease SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* Interfaces whose clsact qdisc was made for these programs, for who removes them. The programs do not read it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} made SEC(".maps");

/* Written by user space before loading. Outer and inner packets are of one family. */
const volatile __u32 is_v6 = 0;
const volatile __be32 engine[4] = {};
const volatile __be32 here[4] = {};
/* The server; an address of zeros is any. */
const volatile __be32 server[4] = {};
const volatile __be16 server_port = 0;
const volatile __be16 tunnel_port = 0;
const volatile __be32 tunnel_vni = 0;
/* Where the engine is reached. */
const volatile __u32 underlay = 0;
/* Of the inner Ethernet headers. */
const volatile __be16 engine_mac[3] = {};
const volatile __be16 own_mac[3] = {};
/* For bpf_skb_adjust_room. */
const volatile __u64 encapsulation = 0;

/* Never done: has each program hold all maps, so that who cleans up finds them by any program that is left. */
static __always_inline void hold_maps(void)
{
	__u32 none = 0;

	if (is_v6 > 1) {
		bpf_map_lookup_elem(&lease, &none);
		bpf_map_lookup_elem(&made, &none);
	}
}

static __always_inline __u64 *counter(__u32 which)
{
	return bpf_map_lookup_elem(&counts, &which);
}

static __always_inline void count(__u32 which)
{
	__u64 *value = counter(which);

	if (value)
		__sync_fetch_and_add(value, 1);
}

/* Bytes behind the network header. */
static __always_inline bool take(struct __sk_buff *skb, __u32 at, void *to, __u32 length)
{
	return !bpf_skb_load_bytes_relative(skb, at, to, length, BPF_HDR_START_NET);
}

static __always_inline bool is_family(struct __sk_buff *skb)
{
	/* A tag is the affair of the interface above this one. */
	return !skb->vlan_present && skb->protocol == (is_v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP));
}

static __always_inline bool is_server(const __be32 *address)
{
	if (!(server[0] | server[1] | server[2] | server[3]))
		return true;
	return address[0] == server[0] && address[1] == server[1] && address[2] == server[2] && address[3] == server[3];
}

/* What an IP header says. */
struct packet {
	__be32 source[4];
	__be32 destination[4];
	/* Where the next header is, behind the network header. */
	__u32 next;
	__u8 protocol;
	/* It is a piece of a packet, and has the ports or not. */
	bool is_fragment;
	bool has_ports;
	__u8 tos;
};

#define MAX_EXTENSIONS 6
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION_OPTIONS 60

struct extension {
	__u8 next;
	__u8 length;
	/* Of a fragment header: the offset, and whether there is more. */
	__be16 offset;
};

/* The IP header at `at`; `inner`: of a packet that an ICMP error quotes, which may be cut off. */
static __always_inline bool read_ip(struct __sk_buff *skb, __u32 at, struct packet *packet)
{
	struct extension extension;
	struct ipv4 v4;
	struct ipv6 v6;

	__builtin_memset(packet, 0, sizeof(*packet));
	packet->has_ports = true;
	if (!is_v6) {
		if (!take(skb, at, &v4, sizeof(v4)) || v4.version_ihl >> 4 != 4 || (v4.version_ihl & 0xf) < 5)
			return false;
		packet->source[3] = v4.source;
		packet->destination[3] = v4.destination;
		packet->protocol = v4.protocol;
		packet->tos = v4.tos;
		packet->is_fragment = v4.fragment & bpf_htons(IPV4_FRAGMENT_MASK);
		packet->has_ports = !(v4.fragment & bpf_htons(IPV4_OFFSET_MASK));
		packet->next = at + (v4.version_ihl & 0xf) * 4;
		return true;
	}
	if (!take(skb, at, &v6, sizeof(v6)) || (bpf_ntohl(v6.version_flow) >> 28) != 6)
		return false;
	__builtin_memcpy(packet->source, v6.source.words, sizeof(packet->source));
	__builtin_memcpy(packet->destination, v6.destination.words, sizeof(packet->destination));
	packet->tos = bpf_ntohl(v6.version_flow) >> 20;
	packet->protocol = v6.next_header;
	packet->next = at + sizeof(v6);
#pragma unroll
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (packet->protocol != HOP_BY_HOP && packet->protocol != ROUTING && packet->protocol != FRAGMENT &&
		    packet->protocol != DESTINATION_OPTIONS)
			break;
		if (!take(skb, packet->next, &extension, sizeof(extension)))
			return false;
		if (packet->protocol == FRAGMENT) {
			packet->is_fragment = true;
			packet->has_ports = !(extension.offset & bpf_htons(0xfff8));
			packet->next += 8;
		} else {
			packet->next += (extension.length + 1) * 8;
		}
		packet->protocol = extension.next;
		/* What follows a later fragment's header is no header. */
		if (!packet->has_ports)
			break;
	}
	return true;
}

/* The flow of a packet from the client (`inwards`) or to it. */
static __always_inline void flow_of(const struct packet *packet, __be16 source, __be16 destination, bool inwards,
				    struct flow *flow)
{
	__builtin_memcpy(flow->client, inwards ? packet->source : packet->destination, sizeof(flow->client));
	__builtin_memcpy(flow->server, inwards ? packet->destination : packet->source, sizeof(flow->server));
	flow->client_port = inwards ? source : destination;
	flow->server_port = inwards ? destination : source;
}

/* Sends a heartbeat back to where it came from, both headers turned round. No checksum changes by that. */
static __always_inline int reflect(struct __sk_buff *skb, __u32 inner)
{
	const __u32 address = is_v6 ? 16 : 4, addresses = is_v6 ? 8 : 12, ip = is_v6 ? sizeof(struct ipv6) : sizeof(struct ipv4);
	const __u32 ethers[2] = { 0, inner };
	__u8 one[16], other[16];
	__be16 ports[2];
	__u64 *heard;

#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (bpf_skb_load_bytes(skb, ethers[i], one, 6) || bpf_skb_load_bytes(skb, ethers[i] + 6, other, 6) ||
		    bpf_skb_store_bytes(skb, ethers[i], other, 6, 0) || bpf_skb_store_bytes(skb, ethers[i] + 6, one, 6, 0))
			return TC_ACT_SHOT;
	}
	const __u32 ips[2] = { ETH_HLEN, ETH_HLEN + inner };
#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u32 at = ips[i] + addresses;

		if (bpf_skb_load_bytes(skb, at, one, address) || bpf_skb_load_bytes(skb, at + address, other, address) ||
		    bpf_skb_store_bytes(skb, at, other, address, 0) ||
		    bpf_skb_store_bytes(skb, at + address, one, address, 0))
			return TC_ACT_SHOT;
	}
	if (bpf_skb_load_bytes(skb, ETH_HLEN + inner + ip, ports, 4))
		return TC_ACT_SHOT;
	__be16 turned[2] = { ports[1], ports[0] };
	if (bpf_skb_store_bytes(skb, ETH_HLEN + inner + ip, turned, 4, 0))
		return TC_ACT_SHOT;
	heard = counter(HEARD_NS);
	if (heard)
		*heard = bpf_ktime_get_ns();
	count(REFLECTED);
	return bpf_redirect(skb->ifindex, 0);
}

/* A packet of the tunnel: the outer headers are taken off, `inner` bytes behind the network header is the inner IP header. */
static __always_inline int from_tunnel(struct __sk_buff *skb, __u32 inner)
{
	struct packet packet;
	struct flow flow = {};
	struct state *state, fresh = {};
	__u64 now = bpf_ktime_get_ns(), *until;
	__be16 ports[2];
	__u32 zero = 0;
	__u8 flags;

	until = bpf_map_lookup_elem(&lease, &zero);
	if (!until || *until < now) {
		count(LEASELESS);
		return TC_ACT_SHOT;
	}
	if (!read_ip(skb, inner, &packet))
		goto malformed;
	if (packet.protocol == IPPROTO_UDP && !packet.is_fragment)
		return reflect(skb, inner);
	if (packet.protocol != IPPROTO_TCP || packet.is_fragment || !take(skb, packet.next, ports, sizeof(ports)) ||
	    !take(skb, packet.next + 13, &flags, 1))
		goto malformed;
	if (ports[1] != server_port || !ports[0] || !is_server(packet.destination))
		goto malformed;
	flow_of(&packet, ports[0], ports[1], true, &flow);
	state = bpf_map_lookup_elem(&flows, &flow);
	if (!state) {
		if ((flags & (SYN | ACK | RST | FIN)) != SYN) {
			count(UNLEARNED);
			return TC_ACT_SHOT;
		}
		fresh.in_ns = now;
		if (bpf_map_update_elem(&flows, &flow, &fresh, BPF_ANY)) {
			count(FULL);
			return TC_ACT_SHOT;
		}
		count(LEARNED);
	} else {
		if (state->flags & FORGOTTEN) {
			count(UNLEARNED);
			return TC_ACT_SHOT;
		}
		state->in_ns = now;
		if (flags & SYN)
			state->flags = 0;
		if (flags & RST)
			state->flags |= WAS_RESET;
		if (flags & FIN)
			state->flags |= CLIENT_FINISHED;
	}
	if (bpf_skb_adjust_room(skb, is_v6 ? -(int)sizeof(struct before6) : -(int)sizeof(struct before4), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_FIXED_GSO))
		goto malformed;
	count(DECAPSULATED);
	return NEXT;
malformed:
	count(MALFORMED);
	return TC_ACT_SHOT;
}

SEC("tc")
int arrive(struct __sk_buff *skb)
{
	struct packet packet;
	struct behind head;
	struct flow flow = {};
	__be16 ports[2];

	hold_maps();
	if (!is_family(skb))
		return NEXT;
	/* Headers of the tunnel and within it lie side by side from here on. Short packets are what they are. */
	if (skb->len > ETH_HLEN + 2 * sizeof(struct ipv6) + sizeof(head) + 20)
		bpf_skb_pull_data(skb, ETH_HLEN + 2 * sizeof(struct ipv6) + sizeof(head) + 20);
	else
		bpf_skb_pull_data(skb, skb->len);
	if (!read_ip(skb, 0, &packet))
		return NEXT;
	if (packet.protocol == IPPROTO_UDP && !packet.is_fragment) {
		if (packet.next != (is_v6 ? sizeof(struct ipv6) : sizeof(struct ipv4)) ||
		    packet.source[0] != engine[0] || packet.source[1] != engine[1] || packet.source[2] != engine[2] ||
		    packet.source[3] != engine[3] || !take(skb, packet.next, &head, sizeof(head)) ||
		    head.udp.destination != tunnel_port || head.vxlan.flags != VXLAN_HAS_VNI ||
		    (head.vxlan.vni & bpf_htonl(0xffffff00)) != tunnel_vni)
			return NEXT;
		if (head.ether.type != skb->protocol) {
			count(MALFORMED);
			return TC_ACT_SHOT;
		}
		return from_tunnel(skb, is_v6 ? sizeof(struct before6) : sizeof(struct before4));
	}
	/* A learned flow's address and port are the copy's for as long as it is learned. */
	if (packet.protocol == IPPROTO_TCP && packet.has_ports && take(skb, packet.next, ports, sizeof(ports)) &&
	    ports[1] == server_port) {
		flow_of(&packet, ports[0], ports[1], true, &flow);
		if (bpf_map_lookup_elem(&flows, &flow)) {
			count(FOREIGN);
			return TC_ACT_SHOT;
		}
	}
	return NEXT;
}

static __always_inline __u16 checksum(const void *ip)
{
	const __u16 *words = ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline void fill_behind(struct behind *behind, __u32 length, __u16 entropy)
{
	__builtin_memset(behind, 0, sizeof(*behind));
	behind->udp.source = bpf_htons(0xc000 | (entropy & 0x3fff));
	behind->udp.destination = tunnel_port;
	/* Without a checksum (RFC 6935 for IPv6): the inner packet has its own. Of a GSO packet each piece gets its own length. */
	behind->udp.length = bpf_htons(length);
	behind->vxlan.flags = VXLAN_HAS_VNI;
	behind->vxlan.vni = tunnel_vni;
	/* Word by word: a copy that casts `volatile` away would be of the zeros above. */
#pragma unroll
	for (int i = 0; i < 3; i++) {
		behind->ether.destination[i] = engine_mac[i];
		behind->ether.source[i] = own_mac[i];
	}
	behind->ether.type = is_v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
}

/* Puts the outer headers before a packet that leaves, and has it leave for the engine. */
static __always_inline int into_tunnel(struct __sk_buff *skb, __u8 tos, __u16 entropy)
{
	const __u32 length = skb->len - ETH_HLEN;

	if (is_v6) {
		struct before6 before;

		if (bpf_skb_adjust_room(skb, sizeof(before), BPF_ADJ_ROOM_MAC, encapsulation))
			return TC_ACT_STOLEN;
		__builtin_memset(&before.ip, 0, sizeof(before.ip));
		before.ip.version_flow = bpf_htonl(6u << 28 | (__u32)tos << 20);
		before.ip.length = bpf_htons(length + sizeof(before.behind));
		before.ip.next_header = IPPROTO_UDP;
		before.ip.hop_limit = 64;
		for (int i = 0; i < 4; i++) {
			before.ip.source.words[i] = here[i];
			before.ip.destination.words[i] = engine[i];
		}
		fill_behind(&before.behind, length + sizeof(before.behind), entropy);
		if (bpf_skb_store_bytes(skb, ETH_HLEN, &before, sizeof(before), 0))
			return TC_ACT_STOLEN;
	} else {
		struct before4 before;

		if (bpf_skb_adjust_room(skb, sizeof(before), BPF_ADJ_ROOM_MAC, encapsulation))
			return TC_ACT_STOLEN;
		__builtin_memset(&before.ip, 0, sizeof(before.ip));
		before.ip.version_ihl = 0x45;
		before.ip.tos = tos;
		before.ip.length = bpf_htons(length + sizeof(before));
		/* Not to be fragmented: pieces would not be recognised. */
		before.ip.fragment = bpf_htons(0x4000);
		before.ip.ttl = 64;
		before.ip.protocol = IPPROTO_UDP;
		before.ip.source = here[3];
		before.ip.destination = engine[3];
		before.ip.checksum = checksum(&before);
		fill_behind(&before.behind, length + sizeof(before.behind), entropy);
		if (bpf_skb_store_bytes(skb, ETH_HLEN, &before, sizeof(before), 0))
			return TC_ACT_STOLEN;
	}
	return bpf_redirect_neigh(underlay, NULL, 0, 0);
}

/* An ICMP error about a packet of a learned flow: it would go to the client. */
static __always_inline bool is_error(struct __sk_buff *skb, const struct packet *packet)
{
	struct packet quoted;
	struct flow flow = {};
	__be16 ports[2];
	__u8 type;

	if (!packet->has_ports || !take(skb, packet->next, &type, 1))
		return false;
	if (is_v6 ? type >= 128 : (type != 3 && type != 4 && type != 5 && type != 11 && type != 12))
		return false;
	if (!read_ip(skb, packet->next + 8, &quoted) || quoted.protocol != IPPROTO_TCP || !quoted.has_ports ||
	    !take(skb, quoted.next, ports, sizeof(ports)))
		return false;
	flow_of(&quoted, ports[0], ports[1], true, &flow);
	return bpf_map_lookup_elem(&flows, &flow);
}

static __always_inline int leave(struct __sk_buff *skb, bool is_ethernet)
{
	struct packet packet;
	struct flow flow = {};
	struct state *state;
	__be16 ports[2];
	__u8 flags;
	int verdict;

	hold_maps();
	if (!is_family(skb))
		return NEXT;
	if (!read_ip(skb, 0, &packet)) {
		/* Perhaps its headers lie in pieces. */
		if (bpf_skb_pull_data(skb, 0) || !read_ip(skb, 0, &packet))
			return NEXT;
	}
	if (packet.protocol == (is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		if (!is_error(skb, &packet))
			return NEXT;
		count(STOLEN_ICMP);
		return TC_ACT_STOLEN;
	}
	if (packet.protocol != IPPROTO_TCP)
		return NEXT;
	if (!packet.has_ports) {
		/* Whose it is cannot be seen. The server's could be a copy's. */
		if (!is_server(packet.source))
			return NEXT;
		count(STOLEN_FRAGMENTS);
		return TC_ACT_STOLEN;
	}
	if (!take(skb, packet.next, ports, sizeof(ports))) {
		if (bpf_skb_pull_data(skb, 0) || !take(skb, packet.next, ports, sizeof(ports)))
			return NEXT;
	}
	if (ports[0] != server_port)
		return NEXT;
	flow_of(&packet, ports[0], ports[1], false, &flow);
	state = bpf_map_lookup_elem(&flows, &flow);
	if (!state)
		return NEXT;
	state->out_ns = bpf_ktime_get_ns();
	if (take(skb, packet.next + 13, &flags, 1)) {
		if (flags & RST)
			state->flags |= WAS_RESET;
		if (flags & FIN)
			state->flags |= SERVER_FINISHED;
	}
	if (packet.is_fragment) {
		count(STOLEN_FRAGMENTS);
		return TC_ACT_STOLEN;
	}
	/* Stolen, not shot: the sender's TCP takes it for lost on its way. */
	verdict = is_ethernet ? into_tunnel(skb, packet.tos, ports[1] ^ packet.destination[3] ^ packet.destination[3] >> 16) :
				TC_ACT_STOLEN;
	count(verdict == TC_ACT_REDIRECT ? STEERED : STOLEN_ANSWERS);
	return verdict;
}

SEC("tc")
int depart(struct __sk_buff *skb)
{
	return leave(skb, true);
}

SEC("tc")
int steal(struct __sk_buff *skb)
{
	return leave(skb, false);
}

char _license[] SEC("license") = "MIT OR Apache-2.0";
