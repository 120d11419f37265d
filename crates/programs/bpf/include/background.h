/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Frames that most networks carry whoever measures there: what hosts and switches tell each other of addresses, groups
 * and themselves. crates/wire/src/background.rs has the same in Rust.
 */
#ifndef NETDYNO_BACKGROUND_H
#define NETDYNO_BACKGROUND_H

#include "headers.h"

#ifndef ETH_P_LLDP
#define ETH_P_LLDP 0x88CC
#endif

static __always_inline bool is_background(struct xdp_md *ctx)
{
	__u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 type;

	if (at + ETH_HLEN > end)
		return false;
	/* Groups that no bridge forwards to (IEEE 802.1Q, table 8-1): spanning tree, LACP, LLDP, pause. */
	if (at[0] == 0x01 && at[1] == 0x80 && at[2] == 0xc2 && !at[3] && !at[4] && at[5] <= 0x0f)
		return true;
	type = ((struct ether *)at)->type;
	at = behind_tags(at + ETH_HLEN, end, &type);
	if (!at)
		return false;
	/* The most frequent first. IGMP. */
	if (type == bpf_htons(ETH_P_IP))
		return at + 20 <= end && at[0] >> 4 == 4 && at[9] == 2;
	if (type == bpf_htons(ETH_P_IPV6)) {
		if (at + 41 > end || at[0] >> 4 != 6)
			return false;
		/* Neighbour discovery (RFC 4861). */
		if (at[6] == 58)
			return at[40] >= 133 && at[40] <= 137;
		/* Listener discovery (RFC 3810), behind hop-by-hop options of 8 bytes with the router alert. */
		if (at[6] || at + 49 > end || at[40] != 58 || at[41])
			return false;
		return (at[48] >= 130 && at[48] <= 132) || at[48] == 143;
	}
	return type == bpf_htons(ETH_P_ARP) || type == bpf_htons(ETH_P_LLDP);
}

#endif
