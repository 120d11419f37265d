/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which of a stream's last sequence numbers were seen, by whatever CPU: a ring of words that all CPUs share, where each has
 * a record of its own. The copy of a frame may come to another CPU than the frame, and would otherwise count as a frame
 * that was not lost.
 *
 * A word says in its low half which of 32 numbers were seen, and in its high half which round of the ring they are of. So
 * one compare-and-exchange takes down a number and, if it is the first of its round, forgets those of the round before:
 * nothing is cleared, and nothing is held. Numbers that follow each other are in words of different cache lines:
 *
 *   number   | round (40 - bits)          | word in line's part (bits - 8) | bit (5) | part (3) |
 *
 * What was seen of the 256 numbers that a word's turn covers is forgotten by the first of a later round there: a number is
 * remembered while the highest is less than 2^bits - 248 above it.
 *
 * crates/meter/src/seen.rs is the same in Rust.
 */
#ifndef NETDYNO_SEEN_H
#define NETDYNO_SEEN_H

#include "exchange.h"
#include "signature.h"

/* How often a word that other CPUs change is tried anew. */
#define SEEN_TRIES 64

enum seen {
	SEEN_NEVER,
	SEEN_BEFORE,
	SEEN_UNKNOWN, /* nobody remembers */
};

/* Words of a ring of 2^bits numbers. */
static __always_inline __u32 seen_words(__u32 bits)
{
	return 1u << (bits - 5);
}

/* Which of them `number` is in. */
static __always_inline __u32 seen_word(__u64 number, __u32 bits)
{
	__u32 part = 1u << (bits - 8);

	return (number & 7) * part + ((number >> 8) & (part - 1));
}

/* Takes down `number`, which is in `word`. */
static __always_inline enum seen seen_mark(__u64 *word, __u64 number, __u32 bits, __u32 which, const enum kernel on)
{
	__u32 bit = 1u << ((number >> 3) & 31);
	__u32 round = (number & ((1ull << SIGNATURE_SEQUENCE_BITS) - 1)) >> bits;
	__u64 old = *(volatile __u64 *)word, now, was;
	__s32 ahead;

	for (int i = 0; i < SEEN_TRIES; i++) {
		/* Rounds come round as numbers do: the sign of 40 - bits is extended. */
		ahead = (__s32)((round - (__u32)(old >> 32)) << (bits - (SIGNATURE_SEQUENCE_BITS - 32)));
		if (!(__u32)old || ahead > 0)
			now = (__u64)round << 32 | bit;
		else if (ahead < 0)
			return SEEN_UNKNOWN;
		else if (old & bit)
			return SEEN_BEFORE;
		else
			now = old | bit;
		was = compare_exchange(word, old, now, which, on);
		if (was == old)
			return SEEN_NEVER;
		old = was;
	}
	return SEEN_UNKNOWN;
}

#endif
