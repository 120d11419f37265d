/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A TCP segment over IPv4 that is written into the frame at hand, whatever stood there. All headers and both checksums are written
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

/* Longest payload of a segment: an Ethernet frame of 1514 bytes without options. */
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

/* The compiler knows nothing of a value from here on, and leaves the checks behind it to the verifier as they are written. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

#define TCP_HEADERS (sizeof(struct ether) + sizeof(struct ipv4) + sizeof(struct tcp))

/* What is to be written. Numbers are in the machine's byte order, addresses and ports in the network's. */
struct segment {
	__be16 destination_mac[3];
	__be16 source_mac[3];
	__be32 source;
	__be32 destination;
	struct ports ports;
	__u32 sequence;
	__u32 acknowledged;
	__u8 flags;
};

/* A segment that was received. */
struct arrived {
	__be32 source;
	__be32 destination;
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
	__u32 sum;
};

/* RFC 9293, section 3.7.1: what is sent to a peer that says nothing of it. */
#define TCP_LEAST_MSS 536
#define TCP_OPTIONS_MOST 40

/* The longest segment that the peer of this SYN takes. */
static __always_inline __u32 peer_mss(struct xdp_md *ctx, const struct arrived *in)
{
	__u8 options[72] = {};
	__u32 length = in->at - TCP_HEADERS, at = 0;

	if (length < 1 || length > TCP_OPTIONS_MOST)
		return TCP_LEAST_MSS;
	/* For the verifier, which loses one of the two bounds where the compiler makes them one. */
	length--;
	OPAQUE(length);
	length = (length & 63) + 1;
	if (bpf_xdp_load_bytes(ctx, TCP_HEADERS, options, length))
		return TCP_LEAST_MSS;
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
	return TCP_LEAST_MSS;
}

enum reading { NOT_TCP, MALFORMED, TCP };

/*
 * Reads an unfragmented segment over IPv4 without options; `answer` becomes a segment that goes back where it came from. Frames with
 * VLAN tags are not TCP here.
 */
static __always_inline enum reading read_segment(struct xdp_md *ctx, struct arrived *in, struct segment *answer)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = data;
	struct ipv4 *ip = data + sizeof(*ether);
	struct tcp *tcp = data + sizeof(*ether) + sizeof(*ip);
	__u32 length, header;

	if (data + TCP_HEADERS > end || ether->type != bpf_htons(ETH_P_IP))
		return NOT_TCP;
	if (ip->version_ihl != 0x45 || ip->protocol != IPPROTO_TCP || (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK)))
		return NOT_TCP;
	in->source = ip->source;
	in->destination = ip->destination;
	in->ports = tcp->ports;
	in->sequence = bpf_ntohl(tcp->sequence);
	in->acknowledged = bpf_ntohl(tcp->acknowledged);
	in->flags = tcp->flags;
	in->frame = ctx->data_end - ctx->data;
	length = bpf_ntohs(ip->length);
	header = (tcp->offset >> 4) * 4;
	__builtin_memcpy(answer->destination_mac, ether->source, sizeof(ether->source));
	__builtin_memcpy(answer->source_mac, ether->destination, sizeof(ether->destination));
	answer->source = in->destination;
	answer->destination = in->source;
	answer->ports.source = in->ports.destination;
	answer->ports.destination = in->ports.source;
	if (header < sizeof(*tcp) || length < sizeof(*ip) + header || length + sizeof(*ether) > in->frame)
		return MALFORMED;
	in->payload = length - sizeof(*ip) - header;
	in->at = sizeof(*ether) + sizeof(*ip) + header;
	return TCP;
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

/* Writes `segment`; the frame's length, or 0 if it has no room for it and was left as it was. `mss` is what a SYN says. */
static __always_inline __u32 write_segment(struct xdp_md *ctx, const struct segment *segment,
					   const struct payload *payload, __u32 mss)
{
	__u32 options = segment->flags & TCP_SYN ? 4 : 0, length = payload->length, pseudo;
	__u32 frame = TCP_HEADERS + options + length;
	struct ether *ether;
	struct ipv4 *ip;
	struct tcp *tcp;
	__be32 *option;
	void *data, *end;
	__u64 sum, bytes = length;

	if (length > TCP_MOST || !resize(ctx, frame))
		return 0;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + TCP_HEADERS > end)
		return 0;
	ether = data;
	ip = data + sizeof(*ether);
	tcp = data + sizeof(*ether) + sizeof(*ip);
	__builtin_memcpy(ether->destination, segment->destination_mac, sizeof(ether->destination));
	__builtin_memcpy(ether->source, segment->source_mac, sizeof(ether->source));
	ether->type = bpf_htons(ETH_P_IP);
	/* Don't fragment; no identification is needed then (RFC 6864). */
	*(__be32 *)&ip->version_ihl = bpf_htonl(0x45000000 | (frame - sizeof(*ether)));
	*(__be32 *)&ip->id = bpf_htonl(0x00004000);
	pseudo = bpf_htonl(TCP_TTL << 24 | IPPROTO_TCP << 16);
	sum = (__u64)segment->source + segment->destination;
	/* No header is all zeros, so that a checksum of 0 may stand: checkers of captures take the other zero for a fault. */
	*(__be32 *)&ip->ttl = pseudo | (__u32)(__u16)~folded(sum + *(__be32 *)&ip->version_ihl + *(__be32 *)&ip->id + pseudo) << 16;
	ip->source = segment->source;
	ip->destination = segment->destination;
	tcp->ports = segment->ports;
	tcp->sequence = bpf_htonl(segment->sequence);
	tcp->acknowledged = bpf_htonl(segment->acknowledged);
	*(__be32 *)&tcp->offset = bpf_htonl((5 + options / 4) << 28 | segment->flags << 16 | TCP_WINDOW);
	sum += bpf_htonl(IPPROTO_TCP << 16 | (sizeof(*tcp) + options + length));
	sum += *(__u32 *)&segment->ports;
	sum += (__u64)tcp->sequence + tcp->acknowledged + *(__be32 *)&tcp->offset + payload->sum;
	if (options) {
		option = (void *)(tcp + 1);
		if ((void *)(option + 1) > end)
			return 0;
		*option = bpf_htonl(0x02040000 | mss);
		sum += *option;
	}
	*(__u32 *)&tcp->checksum = (__u16)~folded(sum);
	if (!length)
		return frame;
	OPAQUE(bytes);
	if (bytes < 1 || bytes > TCP_MOST)
		return 0;
	return bpf_xdp_store_bytes(ctx, TCP_HEADERS, (void *)payload->bytes, bytes) ? 0 : frame;
}

#endif
