/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers to neighbour solicitations (RFC 4861) for addresses that are not the host's own. */
#ifndef NETDYNO_NEIGHBOUR_H
#define NETDYNO_NEIGHBOUR_H

#include <linux/bpf.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "checksum.h"
#include "headers.h"
#include "tcp.h"

#define NEIGHBOUR_SOLICITATION 135
#define NEIGHBOUR_ADVERTISEMENT 136
/* Only a neighbour's packet arrives with all its hops left (section 7.1). */
#define NEIGHBOUR_HOPS 255
/* It answers a solicitation, and what it says replaces what was known. */
#define NEIGHBOUR_SOLICITED_OVERRIDE 0x60000000
/* The option with the Ethernet address of the target, and its length in units of eight bytes. */
#define NEIGHBOUR_TARGET_ADDRESS 0x0201

struct neighbour {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__be32 flags;
	struct address target;
	/* Of a solicitation there may be others, or none. */
	__be16 option;
	__be16 mac[3];
};

#define NEIGHBOUR_LEAST (sizeof(struct neighbour) - 8)

/* Who asks for whom. */
struct solicited {
	__be16 mac[3];
	struct address source;
	struct address target;
};

/*
 * Reads the solicitation in the frame, if it is one. Who asks from no address looks whether anybody has the one that it is about to take
 * (RFC 4862, section 5.4), and is not answered: it is not ours to defend.
 */
static __always_inline bool read_solicitation(struct xdp_md *ctx, __u32 sort, __be16 control, struct solicited *asked)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = data;
	struct ipv6 *ip = data + link_header(sort);
	struct neighbour *message = (void *)(ip + 1);

	if (data + link_header(sort) + sizeof(*ip) + NEIGHBOUR_LEAST > end || !carries(ether, sort, control, bpf_htons(ETH_P_IPV6)))
		return false;
	if ((ip->version_flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000) || ip->next_header != IPPROTO_ICMPV6 ||
	    ip->hop_limit != NEIGHBOUR_HOPS || bpf_ntohs(ip->length) < NEIGHBOUR_LEAST)
		return false;
	if (message->type != NEIGHBOUR_SOLICITATION || message->code)
		return false;
	__builtin_memcpy(asked->mac, ether->source, sizeof(asked->mac));
	__builtin_memcpy(&asked->source, &ip->source, sizeof(asked->source));
	__builtin_memcpy(&asked->target, &message->target, sizeof(asked->target));
	return asked->source.words[0] | asked->source.words[1] | asked->source.words[2] | asked->source.words[3];
}

/* Makes the frame the answer that the target is at `mac`; false if the frame has no room for it. */
static __always_inline bool answer_solicitation(struct xdp_md *ctx, __u32 sort, __be16 control, const struct solicited *asked,
						const volatile __be16 *mac)
{
	struct segment link = { .control = control };
	struct neighbour *message;
	struct ipv6 *ip;
	void *data, *end;
	__u64 sum;

	if (!resize(ctx, link_header(sort) + sizeof(*ip) + sizeof(*message)))
		return false;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + link_header(sort) + sizeof(*ip) + sizeof(*message) > end)
		return false;
	__builtin_memcpy(link.destination_mac, asked->mac, sizeof(asked->mac));
	for (int i = 0; i < 3; i++)
		link.source_mac[i] = mac[i];
	write_link(data, sort, &link, bpf_htons(ETH_P_IPV6));
	ip = data + link_header(sort);
	message = (void *)(ip + 1);
	ip->version_flow = bpf_htonl(0x60000000);
	*(__be32 *)&ip->length = bpf_htonl(sizeof(*message) << 16 | IPPROTO_ICMPV6 << 8 | NEIGHBOUR_HOPS);
	__builtin_memcpy(&ip->source, &asked->target, sizeof(ip->source));
	__builtin_memcpy(&ip->destination, &asked->source, sizeof(ip->destination));
	*(__be32 *)&message->type = bpf_htonl(NEIGHBOUR_ADVERTISEMENT << 24);
	message->flags = bpf_htonl(NEIGHBOUR_SOLICITED_OVERRIDE);
	message->target = asked->target;
	message->option = bpf_htons(NEIGHBOUR_TARGET_ADDRESS);
	/* The target is there twice: as the source of the packet, and in the message. */
	sum = 2 * sum_of(&asked->target, OVER_IPV6) + sum_of(&asked->source, OVER_IPV6);
	sum += (__u64)bpf_htonl(sizeof(*message)) + bpf_htonl(IPPROTO_ICMPV6);
	sum += (__u64)*(__be32 *)&message->type + message->flags + message->option;
	for (int i = 0; i < 3; i++) {
		message->mac[i] = mac[i];
		sum += message->mac[i];
	}
	message->checksum = checksum_of(sum);
	return true;
}

#endif
