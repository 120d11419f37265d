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

/* Where byte i of a word in memory stands in its value. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CONTENT_SHIFT(i) (8 * (i))
#else
#define CONTENT_SHIFT(i) (56 - 8 * (i))
#endif

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
	/* Shows a verifier that takes no size of 0 (before Linux 6.8) that it is 1 or more, and the compiler nothing. */
	length = (length - 1) & (CONTENT_CHUNK - 1);
	asm volatile("" : "+r"(length));
	length = (length & (CONTENT_CHUNK - 1)) + 1;
	if (bpf_xdp_load_bytes(ctx, from, words, length))
		return 0;
#pragma unroll
	for (int i = 0; i < CONTENT_CHUNK / 8; i++)
		hash = content_step(hash, words[i]);
	return hash;
}

/*
 * The same of a frame in one buffer, for kernels that cannot copy bytes out of it (bpf_xdp_load_bytes, Linux 5.18): word by
 * word where they lie. What is left at the end, and zeros up to a whole chunk, follow.
 */
__noinline __u64 content_hash_in_place(struct xdp_md *ctx, __u32 from, __u32 length)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *at;
	__u64 hash = CONTENT_SEED ^ length, offset = from, last = 0;
	__u32 words = length >> 3, rest = length & 7, zeros;

	for (__u32 i = 0; i < CONTENT_CHUNKS * (CONTENT_CHUNK / 8); i++) {
		if (i >= words)
			break;
		/* The verifier follows packet offsets up to 64 KiB only, and no count of rounds that the compiler works out. */
		if (offset > 0xffff - 8)
			return 0;
		asm volatile("" : "+r"(offset));
		at = data + offset;
		if (at + 8 > end)
			return 0;
		hash = content_step(hash, *(__u64 *)at);
		offset += 8;
	}
	for (__u32 i = 0; i < 7; i++) {
		if (i >= rest)
			break;
		if (offset > 0xffff - 8)
			return 0;
		asm volatile("" : "+r"(offset));
		at = data + offset;
		if (at + 1 > end)
			return 0;
		last |= (__u64)*at << CONTENT_SHIFT(i);
		offset++;
	}
	if (rest)
		hash = content_step(hash, last);
	zeros = (CONTENT_CHUNK / 8 - words - !!rest) & (CONTENT_CHUNK / 8 - 1);
	for (__u32 i = 0; i < CONTENT_CHUNK / 8 - 1; i++) {
		if (i >= zeros)
			break;
		hash = content_step(hash, 0);
	}
	return hash;
}

#endif
