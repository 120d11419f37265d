/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether a frame is an ICMP error. Such a message quotes the packet it is about, so that its last bytes may be another
 * frame's signature. crates/meter/src/tracker.rs has the same in Rust.
 */
#ifndef NETDYNO_ICMP_H
#define NETDYNO_ICMP_H

#include "headers.h"

static __always_inline bool is_icmp_error(struct xdp_md *ctx)
{
	__u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 header;
	__be16 type;

	if (at + ETH_HLEN > end)
		return false;
	type = ((struct ether *)at)->type;
	at = behind_tags(at + ETH_HLEN, end, &type);
	if (!at)
		return false;
	if (type == bpf_htons(ETH_P_IP)) {
		if (at + 20 > end || at[0] >> 4 != 4 || at[9] != 1)
			return false;
		header = (at[0] & 0xf) * 4;
		if (header < 20)
			return false;
		at += header;
		if (at + 1 > end)
			return false;
		/* Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792). */
		return at[0] == 3 || at[0] == 4 || at[0] == 5 || at[0] == 11 || at[0] == 12;
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		/* RFC 4443 section 2.1: errors are the types below 128. */
		return at + 41 <= end && at[0] >> 4 == 6 && at[6] == 58 && at[40] < 128;
	}
	return false;
}

#endif
