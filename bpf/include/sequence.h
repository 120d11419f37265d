/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Order of one stream: in order, reordered and how far, duplicate, or too late to tell.
 *
 * The window is the ring of words that RFC 6479 describes for IPsec's replay check: the bit of sequence number s is
 * bit s % 64 of word (s / 64) % WINDOW_WORDS. Moving forward clears the words it enters and shifts nothing, so a frame
 * in order costs one test and one store.
 *
 * Signatures have 40 bits of a number, which come round after 15 hours of 20 million frames a second. What arrives stands
 * for the number nearest to the one expected next, so that counting goes on. The first one is put a round above zero, so
 * that numbers before it are told, too: wherever a receiver joins in, a frame that left before may come after.
 *
 * How far a frame is reordered is its extent (RFC 4737, section 4.2.2): how many frames have come since the first with
 * a higher number. That was the one that left this number out, so only such frames need be remembered (`holes`).
 *
 * crates/meter/src/tracker.rs is the same in Rust.
 */
#ifndef NETDYNO_SEQUENCE_H
#define NETDYNO_SEQUENCE_H

#include "meter.h"
#include "signature.h"

/* Numbers there are in a signature; wide ones begin here. */
#define SEQUENCE_ROUND (1ull << SIGNATURE_SEQUENCE_BITS)

/* Of all numbers with these 40 bits the one nearest to `near`, which is the expected one. */
static __always_inline __u64 sequence_near(__u64 sequence, __u64 near)
{
	/* As in signature_elapsed: the sign of 40 bits is extended. */
	return near + ((__s64)((sequence - near) << (64 - SIGNATURE_SEQUENCE_BITS)) >> (64 - SIGNATURE_SEQUENCE_BITS));
}

static __always_inline __u64 sequence_wide(const struct stream *stream, __u64 sequence)
{
	return stream->next ? sequence_near(sequence, stream->next) : sequence + SEQUENCE_ROUND;
}

/* Numbers before `sequence` were left out by the frame that arrives now. */
static __always_inline void sequence_left_out(struct stream *stream, __u64 sequence)
{
	stream->holes[0] = stream->holes[1];
	stream->holes[1] = stream->holes[2];
	stream->holes[2].number = sequence;
	stream->holes[2].frames = stream->frames;
}

/* The extent, or at least so much if more than HOLES holes were left since. */
static __always_inline __u64 sequence_extent(struct stream *stream, __u64 sequence)
{
	__u64 extent = 0;

#pragma unroll
	for (int i = HOLES - 1; i >= 0; i--) {
		/* The oldest one that ends above the number; all behind it end higher. */
		if (stream->holes[i].number > sequence)
			extent = stream->frames - stream->holes[i].frames;
	}
	return extent;
}

/* A frame with the 40 bits of `written`, before it is counted in `frames`. */
static __always_inline void sequence_seen(struct totals *totals, struct stream *stream, __u64 written)
{
	__u64 sequence = sequence_wide(stream, written);
	__u64 word = WINDOW_WORD(sequence);
	__u64 bit = 1ull << (sequence & 63);
	__u64 top, extent;

	if (!stream->next) {
		stream->lowest = sequence;
		if (written)
			sequence_left_out(stream, sequence);
	} else if (sequence >= stream->next) {
		if (sequence > stream->next)
			sequence_left_out(stream, sequence);
		top = WINDOW_WORD(stream->next - 1);
		if (word != top) {
			for (__u32 i = 1; i <= WINDOW_WORDS; i++) {
				stream->window[(top + i) & (WINDOW_WORDS - 1)] = 0;
				if (top + i >= word)
					break;
			}
		}
	} else {
		if (sequence < stream->lowest)
			stream->lowest = sequence;
		if (WINDOW_WORD(stream->next - 1) - word < WINDOW_WORDS) {
			if (stream->window[word & (WINDOW_WORDS - 1)] & bit) {
				stream->duplicates++;
				totals->duplicates++;
				return;
			}
			stream->window[word & (WINDOW_WORDS - 1)] |= bit;
			stream->reordered++;
			totals->reordered++;
		} else {
			stream->late++;
			totals->late++;
		}
		extent = sequence_extent(stream, sequence);
		sum_add(&stream->extent_sum, extent);
		if (extent > stream->extent_max)
			stream->extent_max = extent;
		return;
	}
	stream->window[word & (WINDOW_WORDS - 1)] |= bit;
	stream->next = sequence + 1;
}

#endif
