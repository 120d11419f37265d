/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012) of whole words. crates/clone/src/sample.rs is the same in Rust: which sessions are
 * copied must not depend on who chooses them, and a test holds both equal.
 */
#ifndef NETDYNO_SIPHASH_H
#define NETDYNO_SIPHASH_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct siphash {
	__u64 v0, v1, v2, v3;
};

static __always_inline __u64 rotated(__u64 word, const int bits)
{
	return (word << bits) | (word >> (64 - bits));
}

static __always_inline void siphash_round(struct siphash *s)
{
	s->v0 += s->v1;
	s->v1 = rotated(s->v1, 13) ^ s->v0;
	s->v0 = rotated(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotated(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotated(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotated(s->v1, 17) ^ s->v2;
	s->v2 = rotated(s->v2, 32);
}

static __always_inline void siphash_begin(struct siphash *s, __u64 key0, __u64 key1)
{
	s->v0 = key0 ^ 0x736f6d6570736575ull;
	s->v1 = key1 ^ 0x646f72616e646f6dull;
	s->v2 = key0 ^ 0x6c7967656e657261ull;
	s->v3 = key1 ^ 0x7465646279746573ull;
}

static __always_inline void siphash_take(struct siphash *s, __u64 word)
{
	s->v3 ^= word;
	siphash_round(s);
	siphash_round(s);
	s->v0 ^= word;
}

/* `last`: the bytes behind the last whole word, and in its highest byte how many bytes there were. */
static __always_inline __u64 siphash_end(struct siphash *s, __u64 last)
{
	siphash_take(s, last);
	s->v2 ^= 0xff;
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
