/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers to ARP requests for addresses that are not the host's own. */
#ifndef NETDYNO_ARP_H
#define NETDYNO_ARP_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "headers.h"
#include "tcp.h"

#define ARP_REQUEST 1
#define ARP_REPLY 2

struct arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__be16 sender_mac[3];
	__be16 sender[2];
	__be16 target_mac[3];
	__be16 target[2];
};

/* The request in the frame, if it is one by Ethernet for IPv4, with the tag of this sort of frames. */
static __always_inline struct arp *arp_request(struct xdp_md *ctx, __u32 sort, __be16 control)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct arp *arp = data + link_header(sort);

	if (data + link_header(sort) + sizeof(*arp) > end || !carries(data, sort, control, bpf_htons(ETH_P_ARP)))
		return NULL;
	if (arp->hardware != bpf_htons(1) || arp->protocol != bpf_htons(ETH_P_IP) || arp->hardware_length != 6 ||
	    arp->protocol_length != 4 || arp->operation != bpf_htons(ARP_REQUEST))
		return NULL;
	/* Who probes for an address, or tells its own (RFC 5227), is not answered: it is not ours to defend. */
	if (!(arp->sender[0] | arp->sender[1]) || (arp->sender[0] == arp->target[0] && arp->sender[1] == arp->target[1]))
		return NULL;
	return arp;
}

static __always_inline __be32 arp_target(const struct arp *arp)
{
	return (__u32)arp->target[0] | (__u32)arp->target[1] << 16;
}

static __always_inline __be32 arp_sender(const struct arp *arp)
{
	return (__u32)arp->sender[0] | (__u32)arp->sender[1] << 16;
}

/* Makes a request the answer that its target is at `mac`, with this tag. */
static __always_inline void answer_arp(struct arp *arp, __u32 sort, __be16 control, const volatile __be16 *mac)
{
	struct ether *ether = (void *)arp - link_header(sort);
	struct tag *tag = (void *)(ether + 1);
	__be16 target[2] = { arp->target[0], arp->target[1] };

	if (sort & TAGGED)
		tag->control = control;
	arp->operation = bpf_htons(ARP_REPLY);
	for (int i = 0; i < 3; i++) {
		ether->destination[i] = arp->sender_mac[i];
		ether->source[i] = mac[i];
		arp->target_mac[i] = arp->sender_mac[i];
		arp->sender_mac[i] = mac[i];
	}
	for (int i = 0; i < 2; i++) {
		arp->target[i] = arp->sender[i];
		arp->sender[i] = target[i];
	}
}

#endif
