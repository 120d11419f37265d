/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A TCP segment or a UDP datagram over IPv4 or IPv6 that is written into the frame at hand, whatever stood there. All headers and checksums are written
 * whole: a frame of another host's stack may hold a partial checksum, which cannot be corrected by what changed.
 */
#ifndef NETDYNO_TCP_H
#define NETDYNO_TCP_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "checksum.h"
#include "headers.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10

/* Longest payload of a segment: an Ethernet frame of 1514 bytes over IPv4 without options. */
#define TCP_MOST 1460
#define TCP_WINDOW 65535
#define TCP_TTL 64

/* Of which each bit depends on all bits of x: initial sequence numbers and cookies are made of it. */
static __always_inline __u32 mixed(__u32 x)
{
	x ^= x >> 16;
	x *= 0x7feb352d;
	x ^= x >> 15;
	x *= 0x846ca68b;
	return x ^ x >> 16;
}

struct tcp {
	struct ports ports;
	__be32 sequence;
	__be32 acknowledged;
	__u8 offset;
	__u8 flags;
	__be16 window;
	__u16 checksum;
	__be16 urgent;
};

struct udp {
	struct ports ports;
	__be16 length;
	__u16 checksum;
};

/* The compiler knows nothing of a value from here on, and leaves the checks behind it to the verifier as they are written. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

/*
 * What frames consist of. A program's are all of one sort, which is a constant where the program begins, and is handed on as an argument:
 * so the compiler leaves out what belongs to the others, and IPv4 without tags costs what it would cost alone.
 */
#define OVER_IPV6 1
#define TAGGED 2
#define OVER_UDP 4

/* The programs that do the same, one for each sort of frames: PLAIN, and NAME with what tells the others. */
#define ONE_SORT(program, does, sort) \
	SEC("xdp") \
	int program(struct xdp_md *ctx) \
	{ \
		return does(ctx, sort); \
	}
#define EACH_SORT(plain, name, does) \
	ONE_SORT(plain, does, 0) \
	ONE_SORT(name##_ipv6, does, OVER_IPV6) \
	ONE_SORT(name##_tagged, does, TAGGED) \
	ONE_SORT(name##_tagged_6, does, OVER_IPV6 | TAGGED) \
	ONE_SORT(name##_udp, does, OVER_UDP) \
	ONE_SORT(name##_udp_ipv6, does, OVER_UDP | OVER_IPV6) \
	ONE_SORT(name##_udp_tagged, does, OVER_UDP | TAGGED) \
	ONE_SORT(name##_udp_tagged_6, does, OVER_UDP | OVER_IPV6 | TAGGED)

static __always_inline __u32 link_header(__u32 sort)
{
	return sizeof(struct ether) + (sort & TAGGED ? sizeof(struct tag) : 0);
}

static __always_inline __u32 internet_header(__u32 sort)
{
	return sort & OVER_IPV6 ? sizeof(struct ipv6) : sizeof(struct ipv4);
}

static __always_inline __u32 transport_header(__u32 sort)
{
	return sort & OVER_UDP ? sizeof(struct udp) : sizeof(struct tcp);
}

static __always_inline __u32 headers_of(__u32 sort)
{
	return link_header(sort) + internet_header(sort) + transport_header(sort);
}

static __always_inline __u32 protocol_of(__u32 sort)
{
	return sort & OVER_UDP ? IPPROTO_UDP : IPPROTO_TCP;
}

/* In the network's byte order; of IPv4 the first word alone. */
struct address {
	__be32 words[4];
};

static __always_inline bool is_same(const struct address *address, const volatile __be32 *words, __u32 sort)
{
	if (address->words[0] != words[0])
		return false;
	return !(sort & OVER_IPV6) ||
	       (address->words[1] == words[1] && address->words[2] == words[2] && address->words[3] == words[3]);
}

static __always_inline __u64 sum_of(const struct address *address, __u32 sort)
{
	__u64 sum = address->words[0];

	if (sort & OVER_IPV6)
		sum += (__u64)address->words[1] + address->words[2] + address->words[3];
	return sum;
}

#define VLAN_ID 0x0fff

/* Does a frame of this sort, whose headers are there, carry this? Priorities may change on the way, the VLAN may not. */
static __always_inline bool carries(const struct ether *ether, __u32 sort, __be16 control, __be16 type)
{
	const struct tag *tag = (const void *)(ether + 1);

	if (!(sort & TAGGED))
		return ether->type == type;
	return ether->type == bpf_htons(ETH_P_8021Q) && !((tag->control ^ control) & bpf_htons(VLAN_ID)) && tag->type == type;
}

/*
 * What is to be written. Numbers are in the machine's byte order, addresses and ports in the network's. Of a datagram the sequence number is
 * that of the request, which only its mark has.
 */
struct segment {
	__be16 control; /* of the tag */
	__be16 destination_mac[3];
	__be16 source_mac[3];
	struct address source;
	struct address destination;
	struct ports ports;
	__u32 sequence;
	__u32 acknowledged;
	__u8 flags;
};

/* A segment that was received. */
struct arrived {
	struct address source;
	struct address destination;
	struct ports ports;
	__u32 sequence;
	__u32 acknowledged;
	__u32 payload; /* bytes */
	__u32 at;      /* where it begins in the frame */
	__u32 frame;   /* bytes, layer 2 */
	__u8 flags;
};

/* The payload of a segment: where it stands and the sum of its words. */
struct payload {
	const void *bytes;
	__u32 length;
	__u64 sum;
	/* What is written over its beginning, where there are zeros, and has its part in the sum; NULL: nothing. */
	const struct mark *mark;
};

/*
 * What each datagram begins with. A request has the number that its answer is to have; an answer, what its server saw of the request: address
 * and port, and a cookie that shows that the server saw them. Who has these may have the server send a datagram there (a relay). Over IPv4
 * there is one word of an address.
 */
struct mark {
	__be32 magic;
	__be32 number;
	__be16 port;
	__u16 cookie;
	__be32 address[4];
};

/* "ndyQ", "ndyA", "ndyR" and "ndyN". Only the first and the third are answered, so that two servers never answer each other. */
#define MARK_REQUEST bpf_htonl(0x6e647951)
#define MARK_ANSWER bpf_htonl(0x6e647941)
#define MARK_RELAY bpf_htonl(0x6e647952)
#define MARK_REFUSED bpf_htonl(0x6e64794e)

static __always_inline __u32 mark_bytes(__u32 sort)
{
	return sort & OVER_IPV6 ? sizeof(struct mark) : sizeof(struct mark) - 12;
}

static __always_inline __u64 sum_of_mark(const struct mark *mark, __u32 sort)
{
	__u64 sum = (__u64)mark->magic + mark->number + mark->port + ((__u64)mark->cookie << 16) + mark->address[0];

	if (sort & OVER_IPV6)
		sum += (__u64)mark->address[1] + mark->address[2] + mark->address[3];
	return sum;
}

/* RFC 9293, section 3.7.1: what is sent to a peer that says nothing of it. */
#define TCP_LEAST_MSS 536
#define TCP_LEAST_MSS_IPV6 1220
#define TCP_OPTIONS_MOST 40

/* The longest segment that the peer of this SYN takes. */
static __always_inline __u32 peer_mss(struct xdp_md *ctx, __u32 sort, const struct arrived *in)
{
	__u8 options[72] = {};
	__u32 length = in->at - headers_of(sort), at = 0;
	__u32 unsaid = sort & OVER_IPV6 ? TCP_LEAST_MSS_IPV6 : TCP_LEAST_MSS;

	if (length < 1 || length > TCP_OPTIONS_MOST)
		return unsaid;
	/* For the verifier, which loses one of the two bounds where the compiler makes them one. */
	length--;
	OPAQUE(length);
	length = (length & 63) + 1;
	if (bpf_xdp_load_bytes(ctx, headers_of(sort), options, length))
		return unsaid;
	for (int i = 0; i < TCP_OPTIONS_MOST && at + 3 < length; i++) {
		OPAQUE(at);
		at &= 63;
		if (options[at] == 0)
			break;
		if (options[at] == 1) {
			at++;
			continue;
		}
		if (options[at] == 2 && options[at + 1] == 4)
			return options[at + 2] << 8 | options[at + 3];
		if (options[at + 1] < 2)
			break;
		at += options[at + 1];
	}
	return unsaid;
}

enum reading { OF_OTHERS, MALFORMED, WHOLE };

/*
 * The addresses of an unfragmented segment without options of its internet protocol, and how long it is from there on; false if it is
 * none. The headers are there.
 */
static __always_inline bool read_internet(void *at, __u32 sort, struct arrived *in, __u32 *length)
{
	struct ipv4 *v4 = at;
	struct ipv6 *v6 = at;

	if (!(sort & OVER_IPV6)) {
		if (v4->version_ihl != 0x45 || v4->protocol != protocol_of(sort) || (v4->fragment & bpf_htons(IPV4_FRAGMENT_MASK)))
			return false;
		in->source.words[0] = v4->source;
		in->destination.words[0] = v4->destination;
		*length = bpf_ntohs(v4->length);
		return true;
	}
	if ((v6->version_flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000) || v6->next_header != protocol_of(sort))
		return false;
	__builtin_memcpy(&in->source, &v6->source, sizeof(in->source));
	__builtin_memcpy(&in->destination, &v6->destination, sizeof(in->destination));
	*length = sizeof(*v6) + bpf_ntohs(v6->length);
	return true;
}

/*
 * Reads a segment of this sort, and of the VLAN of `answer`, which becomes a segment that goes back where it came from. Other frames, and
 * those with extension headers, are of others.
 */
static __always_inline enum reading read_segment(struct xdp_md *ctx, __u32 sort, struct arrived *in, struct segment *answer)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 length, header, link = link_header(sort), internet = internet_header(sort);
	struct ether *ether = data;
	struct tcp *tcp = data + link + internet;
	struct udp *udp = data + link + internet;

	if (data + headers_of(sort) > end ||
	    !carries(ether, sort, answer->control, bpf_htons(sort & OVER_IPV6 ? ETH_P_IPV6 : ETH_P_IP)))
		return OF_OTHERS;
	if (!read_internet(data + link, sort, in, &length))
		return OF_OTHERS;
	in->ports = tcp->ports;
	in->frame = ctx->data_end - ctx->data;
	if (sort & OVER_UDP) {
		header = sizeof(*udp);
		/* A datagram says its own length, and the packet may not be shorter. */
		length = internet + bpf_ntohs(udp->length) > length ? 0 : internet + bpf_ntohs(udp->length);
	} else {
		in->sequence = bpf_ntohl(tcp->sequence);
		in->acknowledged = bpf_ntohl(tcp->acknowledged);
		in->flags = tcp->flags;
		header = (tcp->offset >> 4) * 4;
	}
	__builtin_memcpy(answer->destination_mac, ether->source, sizeof(ether->source));
	__builtin_memcpy(answer->source_mac, ether->destination, sizeof(ether->destination));
	answer->source = in->destination;
	answer->destination = in->source;
	answer->ports.source = in->ports.destination;
	answer->ports.destination = in->ports.source;
	if (header < transport_header(sort) || length < internet + header || length + link > in->frame)
		return MALFORMED;
	in->payload = length - internet - header;
	in->at = link + internet + header;
	return WHOLE;
}

/*
 * Makes the frame `wanted` bytes long: at its end, or where there is no room at its beginning. A frame of another host's stack has some
 * 32 bytes of room behind it on a veth, and more than 200 before it.
 */
static __always_inline bool resize(struct xdp_md *ctx, int wanted)
{
	int more = wanted - (int)(ctx->data_end - ctx->data);

	if (!more || !bpf_xdp_adjust_tail(ctx, more))
		return true;
	return more > 0 && !bpf_xdp_adjust_head(ctx, -more);
}

/* Writes the Ethernet header of a frame of this sort, whose headers have room, with its tag. */
static __always_inline void write_link(struct ether *ether, __u32 sort, const struct segment *segment, __be16 type)
{
	struct tag *tag = (void *)(ether + 1);

	__builtin_memcpy(ether->destination, segment->destination_mac, sizeof(ether->destination));
	__builtin_memcpy(ether->source, segment->source_mac, sizeof(ether->source));
	if (!(sort & TAGGED)) {
		ether->type = type;
		return;
	}
	ether->type = bpf_htons(ETH_P_8021Q);
	tag->control = segment->control;
	tag->type = type;
}

/* Writes the header of IPv4 before `length` bytes; the sum of its part of the pseudo header. */
static __always_inline __u64 write_ipv4(struct ipv4 *ip, __u32 sort, const struct segment *segment, __u32 length)
{
	__u32 pseudo = bpf_htonl(TCP_TTL << 24 | protocol_of(sort) << 16);
	__u64 sum = sum_of(&segment->source, 0) + sum_of(&segment->destination, 0);

	/* Don't fragment; no identification is needed then (RFC 6864). */
	*(__be32 *)&ip->version_ihl = bpf_htonl(0x45000000 | (sizeof(*ip) + length));
	*(__be32 *)&ip->id = bpf_htonl(0x00004000);
	/* No header is all zeros, so that a checksum of 0 may stand: checkers of captures take the other zero for a fault. */
	*(__be32 *)&ip->ttl = pseudo | (__u32)(__u16)~folded(sum + *(__be32 *)&ip->version_ihl + *(__be32 *)&ip->id + pseudo) << 16;
	ip->source = segment->source.words[0];
	ip->destination = segment->destination.words[0];
	return sum + bpf_htonl(protocol_of(sort) << 16 | length);
}

/* The same of IPv6 (RFC 8200, sections 3 and 8.1). */
static __always_inline __u64 write_ipv6(struct ipv6 *ip, __u32 sort, const struct segment *segment, __u32 length)
{
	ip->version_flow = bpf_htonl(0x60000000);
	*(__be32 *)&ip->length = bpf_htonl(length << 16 | protocol_of(sort) << 8 | TCP_TTL);
	__builtin_memcpy(&ip->source, &segment->source, sizeof(ip->source));
	__builtin_memcpy(&ip->destination, &segment->destination, sizeof(ip->destination));
	return sum_of(&segment->source, OVER_IPV6) + sum_of(&segment->destination, OVER_IPV6) + bpf_htonl(length) +
	       bpf_htonl(protocol_of(sort));
}

/* Writes TCP's header of `length` bytes with its options and payload, of which `sum` has what stands before; false: it has no room. */
static __always_inline bool write_tcp(struct tcp *tcp, void *end, const struct segment *segment, __u64 sum, __u32 mss)
{
	__u32 options = segment->flags & TCP_SYN ? 4 : 0;
	__be32 *option = (void *)(tcp + 1);

	tcp->ports = segment->ports;
	tcp->sequence = bpf_htonl(segment->sequence);
	tcp->acknowledged = bpf_htonl(segment->acknowledged);
	*(__be32 *)&tcp->offset = bpf_htonl((5 + options / 4) << 28 | segment->flags << 16 | TCP_WINDOW);
	sum += (__u64)tcp->sequence + tcp->acknowledged + *(__be32 *)&tcp->offset;
	if (options) {
		if ((void *)(option + 1) > end)
			return false;
		*option = bpf_htonl(0x02040000 | mss);
		sum += *option;
	}
	*(__u32 *)&tcp->checksum = (__u16)~folded(sum);
	return true;
}

/* The same of UDP (RFC 768), whose checksum is never 0, which would say that there is none. */
static __always_inline void write_udp(struct udp *udp, const struct segment *segment, __u64 sum, __u32 length)
{
	udp->ports = segment->ports;
	udp->length = bpf_htons(length);
	udp->checksum = checksum_of(sum + udp->length);
}

/* Writes `segment`; the frame's length, or 0 if it has no room for it and was left as it was. `mss` is what a SYN says. */
static __always_inline __u32 write_segment(struct xdp_md *ctx, __u32 sort, const struct segment *segment,
					   const struct payload *payload, __u32 mss)
{
	__u32 options = !(sort & OVER_UDP) && segment->flags & TCP_SYN ? 4 : 0, length = payload->length;
	__u32 headers = headers_of(sort), frame = headers + options + length;
	void *data, *end, *ip, *transport;
	__u64 sum, bytes = length;

	if (length > TCP_MOST || !resize(ctx, frame))
		return 0;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + headers > end)
		return 0;
	write_link(data, sort, segment, bpf_htons(sort & OVER_IPV6 ? ETH_P_IPV6 : ETH_P_IP));
	ip = data + link_header(sort);
	transport = ip + internet_header(sort);
	length += transport_header(sort) + options;
	sum = sort & OVER_IPV6 ? write_ipv6(ip, sort, segment, length) : write_ipv4(ip, sort, segment, length);
	sum += *(__u32 *)&segment->ports + payload->sum;
	if (sort & OVER_UDP)
		write_udp(transport, segment, sum, length);
	else if (!write_tcp(transport, end, segment, sum, mss))
		return 0;
	if (!payload->length)
		return frame;
	OPAQUE(bytes);
	if (bytes < 1 || bytes > TCP_MOST)
		return 0;
	if (bpf_xdp_store_bytes(ctx, headers, (void *)payload->bytes, bytes))
		return 0;
	if (payload->mark && bpf_xdp_store_bytes(ctx, headers, (void *)payload->mark, mark_bytes(sort)))
		return 0;
	return frame;
}

#endif
