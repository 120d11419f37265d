// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Segments: copies what clients say to one TCP server, and the beginnings of what it answers, into BPF ring buffers that user space
 * reads in place. `netdyno clone --capture ring-buffer` says it again to another server. The frames themselves go on as if nothing
 * were there: every way out returns TCX_NEXT, and no helper is called that changes a packet.
 *
 * It is attached at TC ingress and egress (tcx, Linux 6.6), before all others, by links that go with their process. Which sessions
 * are copied is decided here, before anything is copied: by the hash of addresses and ports that crates/clone/src/sample.rs has. Of
 * the other sessions segments with SYN, FIN or RST are handed over, so that they are counted.
 *
 * What it cannot judge (pieces of IP packets, headers that it does not know) goes to user space whole. A frame that finds no room
 * in its ring is counted. crates/meter/src/segments reads the rings.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "include/headers.h"
#include "include/siphash.h"

#define TCX_NEXT -1

/* linux/if_ether.h of old distributions has them under the same numbers. */
#define TYPE_MPLS 0x8847
#define TYPE_MPLS_MULTICAST 0x8848
#define TYPE_PPPOE 0x8864

/* RFC 8200, section 4. */
#define HEADER_HOP_BY_HOP 0
#define HEADER_ROUTING 43
#define HEADER_FRAGMENT 44
#define HEADER_DESTINATION 60
/* IPv6 extension headers that are looked behind. */
#define MAX_HEADERS 6

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04

/* Addresses as in IPv6, those of IPv4 mapped (::ffff:a.b.c.d); as they stand in memory. */
struct address {
	__u64 words[2];
};

/* The server: its port in network order; its address, if it has one, or else up to two that it does not have. */
const volatile __u16 server_port = 0;
const volatile __u8 with_server = 0;
const volatile __u8 excepted = 0;
const volatile struct address server = {};
const volatile struct address except_first = {};
const volatile struct address except_second = {};
/* Of frames from the server so many bytes are copied. */
const volatile __u32 answers = 1400;
/* How many rings there are. */
const volatile __u32 lanes = 1;
/*
 * If `sampling`, sessions whose hash is below `chosen` (0: all) are copied, and of those only the ones whose second hash is below
 * `more` (0: all).
 */
const volatile __u64 seed = 0;
const volatile __u64 chosen = 0;
const volatile __u64 more = 0;
const volatile __u8 sampling = 0;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* User space makes a ring for each lane. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 64);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__array(values, struct ring);
} rings SEC(".maps");

/* Frames that found no room in their ring, by lane. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");

/* Before a frame's bytes in a ring. */
struct taken {
	__u64 ns; /* CLOCK_MONOTONIC */
	__u32 length; /* of the frame */
	__u32 captured;
};

/* TCP's header as far as its flags. */
struct tcp {
	__be16 source;
	__be16 destination;
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
};

struct ends {
	struct address source;
	struct address destination;
};

static __always_inline void mapped(struct address *to, __be32 address)
{
	to->words[0] = 0;
	((__be32 *)to->words)[2] = bpf_htonl(0xffff);
	((__be32 *)to->words)[3] = address;
}

static __always_inline bool same(const struct address *a, const volatile struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

static __always_inline bool is_server(const struct address *address, __be16 port)
{
	if (port != server_port)
		return false;
	if (with_server)
		return same(address, &server);
	if (excepted > 0 && same(address, &except_first))
		return false;
	return excepted < 2 || !same(address, &except_second);
}

/* Words of a message as SipHash reads them, from the bytes in memory. */
static __always_inline __u64 little(__u64 word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return word;
#else
	return __builtin_bswap64(word);
#endif
}

static __always_inline __u64 little_port(__be16 port)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return port;
#else
	return __builtin_bswap16(port);
#endif
}

/* Of 36 bytes: the client's address and port, then the server's. */
static __always_inline __u64 hash_of(const struct address *client, __be16 client_port, const struct address *host,
				     __be16 host_port)
{
	__u64 first = little(host->words[0]), second = little(host->words[1]);
	struct siphash s;

	siphash_begin(&s, seed, ~seed);
	siphash_take(&s, little(client->words[0]));
	siphash_take(&s, little(client->words[1]));
	siphash_take(&s, little_port(client_port) | (first << 16));
	siphash_take(&s, (first >> 48) | (second << 16));
	return siphash_end(&s, (second >> 48) | (little_port(host_port) << 16) | (36ull << 56));
}

static __always_inline bool is_chosen(__u64 hash)
{
	struct siphash s;

	if (chosen && hash >= chosen)
		return false;
	if (!more)
		return true;
	siphash_begin(&s, hash, 0);
	return siphash_end(&s, 0) < more;
}

/* A ring hands out room of sizes that the verifier knows: the smallest that holds the frame. */
static __always_inline bool put(struct __sk_buff *skb, void *ring, __u32 bytes, const __u32 room)
{
	struct taken *taken = bpf_ringbuf_reserve(ring, sizeof(*taken) + room, 0);
	__u64 wanted = bytes;

	if (!taken)
		return false;
	taken->ns = bpf_ktime_get_ns();
	taken->length = skb->len;
	taken->captured = bytes;
	/* The verifier wants both bounds, on this very register: the compiler must not make one test of them. */
	asm volatile("" : "+r"(wanted));
	if (wanted > room)
		goto give_up;
	asm volatile("" : "+r"(wanted));
	if (wanted < 1)
		goto give_up;
	if (bpf_skb_load_bytes(skb, 0, taken + 1, wanted))
		goto give_up;
	bpf_ringbuf_submit(taken, 0);
	return true;

give_up:
	bpf_ringbuf_discard(taken, 0);
	return false;
}

static __always_inline bool put_as_needed(struct __sk_buff *skb, void *ring, __u32 bytes)
{
#define ROOM(size)         \
	if (bytes <= size) \
		return put(skb, ring, bytes, size)
	ROOM(112);
	ROOM(176);
	ROOM(240);
	ROOM(368);
	ROOM(496);
	ROOM(752);
	ROOM(1008);
	ROOM(1520);
	ROOM(2032);
	ROOM(3056);
	ROOM(4592);
	ROOM(6640);
	ROOM(9200);
	ROOM(13296);
	ROOM(18416);
	ROOM(26608);
	ROOM(36848);
	ROOM(50160);
	ROOM(65776);
	/* BIG TCP (Linux 5.19, 6.3 of IPv4): at most eight times 64 KiB. */
	ROOM(131312);
	ROOM(262384);
	ROOM(524528);
#undef ROOM
	return false;
}

static __noinline int hand_over(struct __sk_buff *skb, __u32 lane, __u32 bytes)
{
	void *ring = bpf_map_lookup_elem(&rings, &lane);
	__u64 *dropped;

	if (ring && put_as_needed(skb, ring, bytes))
		return TCX_NEXT;
	dropped = bpf_map_lookup_elem(&drops, &lane);
	if (dropped)
		__sync_fetch_and_add(dropped, 1);
	return TCX_NEXT;
}

static __noinline int by_ends(struct __sk_buff *skb, const struct ends *ends, __u32 at)
{
	__u32 lane = 0, bytes = skb->len;
	bool to, from;
	struct tcp tcp;
	__u64 hash;

	if (bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)))
		return TCX_NEXT;
	to = is_server(&ends->destination, tcp.destination);
	from = is_server(&ends->source, tcp.source);
	if (!to && !from)
		return TCX_NEXT;
	if (!to && bytes > answers)
		bytes = answers;
	/* Which of both is the client, if both have the port, user space knows. */
	if ((sampling || lanes > 1) && to != from) {
		if (to)
			hash = hash_of(&ends->source, tcp.source, &ends->destination, tcp.destination);
		else
			hash = hash_of(&ends->destination, tcp.destination, &ends->source, tcp.source);
		if (sampling && !(tcp.flags & (TCP_SYN | TCP_FIN | TCP_RST)) && !is_chosen(hash))
			return TCX_NEXT;
		/* Not the bits that choose. */
		if (lanes > 1)
			lane = (__u32)hash % lanes;
	}
	return hand_over(skb, lane, bytes);
}

static __always_inline int take(struct __sk_buff *skb)
{
	struct ends ends;
	struct ipv4 v4;
	struct ipv6 v6;
	struct tag tag;
	__u32 at = ETH_HLEN;
	__be16 type;
	__u8 next, header[2];

	if (bpf_skb_load_bytes(skb, 12, &type, sizeof(type)))
		return TCX_NEXT;
	/* A tag that the kernel took out is beside the frame, and the type that stands in it is that of what follows. */
#pragma unroll
	for (int i = 0; i < MAX_TAGS; i++) {
		if (!is_tag(type))
			break;
		if (bpf_skb_load_bytes(skb, at, &tag, sizeof(tag)))
			return TCX_NEXT;
		type = tag.type;
		at += sizeof(tag);
	}
	if (type == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, at, &v4, sizeof(v4)) || v4.protocol != IPPROTO_TCP)
			return TCX_NEXT;
		/* A later piece has no ports, and of a first one nothing may be cut off: it is put together with the others. */
		if (v4.fragment & bpf_htons(IPV4_FRAGMENT_MASK))
			return hand_over(skb, 0, skb->len);
		mapped(&ends.source, v4.source);
		mapped(&ends.destination, v4.destination);
		return by_ends(skb, &ends, at + (v4.version_ihl & 0xf) * 4);
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, at, &v6, sizeof(v6)))
			return TCX_NEXT;
		next = v6.next_header;
		at += sizeof(v6);
		for (int i = 0; i < MAX_HEADERS && next != IPPROTO_TCP; i++) {
			if (next == HEADER_FRAGMENT)
				return hand_over(skb, 0, skb->len);
			if (next != HEADER_HOP_BY_HOP && next != HEADER_ROUTING && next != HEADER_DESTINATION)
				return TCX_NEXT;
			if (bpf_skb_load_bytes(skb, at, header, sizeof(header)))
				return TCX_NEXT;
			next = header[0];
			at += (header[1] + 1) * 8;
		}
		if (next != IPPROTO_TCP)
			return hand_over(skb, 0, skb->len);
		ends.source.words[0] = v6.source.parts[0];
		ends.source.words[1] = v6.source.parts[1];
		ends.destination.words[0] = v6.destination.parts[0];
		ends.destination.words[1] = v6.destination.parts[1];
		return by_ends(skb, &ends, at);
	}
	if (is_tag(type) || type == bpf_htons(TYPE_MPLS) || type == bpf_htons(TYPE_MPLS_MULTICAST) ||
	    type == bpf_htons(TYPE_PPPOE))
		return hand_over(skb, 0, skb->len);
	return TCX_NEXT;
}

SEC("tcx/ingress")
int segments_in(struct __sk_buff *skb)
{
	return take(skb);
}

SEC("tcx/egress")
int segments_out(struct __sk_buff *skb)
{
	return take(skb);
}

char _license[] SEC("license") = "Dual MIT/GPL";
