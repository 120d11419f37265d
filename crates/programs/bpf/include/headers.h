/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Headers as they lie in memory, for the programs that read them in place. Packet memory need not be aligned on any
 * architecture that has a BPF JIT and a fast NIC, so the fields are read whole.
 */
#ifndef NETDYNO_HEADERS_H
#define NETDYNO_HEADERS_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_QINQ_OLD 0x9100
/* VLAN tags that are looked behind. */
#define MAX_TAGS 4
#define IPV4_OFFSET_MASK 0x1fff
/* Offset, or more to come. */
#define IPV4_FRAGMENT_MASK 0x3fff

struct ether {
	__be16 destination[3];
	__be16 source[3];
	__be16 type;
};

struct tag {
	__be16 control;
	__be16 type;
};

struct ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__be16 length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__be32 source;
	__be32 destination;
};

union ipv6_address {
	__be32 words[4];
	__be64 parts[2];
};

struct ipv6 {
	__be32 version_flow;
	__be16 length;
	__u8 next_header;
	__u8 hop_limit;
	union ipv6_address source;
	union ipv6_address destination;
};

/* The first four bytes of TCP and UDP. */
struct ports {
	__be16 source;
	__be16 destination;
};

#define SWAP(a, b)                       \
	do {                             \
		typeof(a) __kept = (a);  \
		(a) = (b);               \
		(b) = __kept;            \
	} while (0)

static __always_inline bool is_tag(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD) || type == bpf_htons(ETH_P_QINQ_OLD);
}

/*
 * What stands behind the tags at `at`, of which `*type` is the first one's; it becomes the type of what follows them. NULL
 * if the frame ends within a tag.
 */
static __always_inline void *behind_tags(void *at, void *end, __be16 *type)
{
	struct tag *tag;

#pragma unroll
	for (int i = 0; i < MAX_TAGS; i++) {
		if (!is_tag(*type))
			break;
		tag = at;
		if (at + sizeof(*tag) > end)
			return NULL;
		*type = tag->type;
		at += sizeof(*tag);
	}
	return at;
}

#endif
