/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Are the bytes before the signature those that were sent? They are hashed and compared with what user space says of
 * the stream. Counted from the signature, so that headers may change.
 *
 * Each step of the hash can be undone, so that one changed word always shows; several changed ones but for one time in
 * 2^64. crates/meter/src/content.rs is the same in Rust.
 */
#ifndef NETDYNO_CONTENT_H
#define NETDYNO_CONTENT_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "meter.h"

#define CONTENT_SEED 0x9e3779b97f4a7c15ull
#define CONTENT_PRIME 0xd6e8feb86659fd93ull
/* Bytes copied out at a time, and how often: 9,216 bytes. */
#define CONTENT_CHUNK 64
#define CONTENT_CHUNKS 144

static __always_inline __u64 content_step(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * CONTENT_PRIME;
	return hash ^ (hash >> 32);
}

/* Global, so that the verifier looks at its loop once and not for each way there. */
__noinline __u64 content_hash(struct xdp_md *ctx, __u32 from, __u32 length)
{
	__u64 words[CONTENT_CHUNK / 8], hash = CONTENT_SEED ^ length;

	for (int chunk = 0; chunk < CONTENT_CHUNKS && length >= CONTENT_CHUNK; chunk++) {
		if (bpf_xdp_load_bytes(ctx, from, words, CONTENT_CHUNK))
			return 0;
#pragma unroll
		for (int i = 0; i < CONTENT_CHUNK / 8; i++)
			hash = content_step(hash, words[i]);
		from += CONTENT_CHUNK;
		length -= CONTENT_CHUNK;
	}
	length &= CONTENT_CHUNK - 1;
	if (!length)
		return hash;
#pragma unroll
	for (int i = 0; i < CONTENT_CHUNK / 8; i++)
		words[i] = 0;
	if (bpf_xdp_load_bytes(ctx, from, words, length))
		return 0;
#pragma unroll
	for (int i = 0; i < CONTENT_CHUNK / 8; i++)
		hash = content_step(hash, words[i]);
	return hash;
}

#endif
