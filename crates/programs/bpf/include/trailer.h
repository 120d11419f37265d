/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finding a signature that has come to stand before the frame's end. */
#ifndef NETDYNO_TRAILER_H
#define NETDYNO_TRAILER_H

#include "signature.h"

/* Most bytes behind a signature that is still found. */
#define SIGNATURE_TRAILER 18

/*
 * How many bytes stand behind the signature, at most SIGNATURE_TRAILER, in a frame of one buffer: padding or a trailer
 * that a device has added. 0 if there is none.
 */
static __noinline __u32 signature_trailer(struct xdp_md *ctx, __u64 length)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *at;
	__u64 offset = length - SIGNATURE_LEN - SIGNATURE_TRAILER;

	if (offset > 0xffff - SIGNATURE_LEN - SIGNATURE_TRAILER)
		return 0;
	asm volatile("" : "+r"(offset));
	at = data + offset;
	if (at + SIGNATURE_LEN + SIGNATURE_TRAILER > end)
		return 0;
#pragma unroll
	for (__u32 behind = 1; behind <= SIGNATURE_TRAILER; behind++) {
		if (*(__u32 *)(at + SIGNATURE_TRAILER - behind) == bpf_htonl(SIGNATURE_MAGIC))
			return behind;
	}
	return 0;
}

#endif
