/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Order of one stream: in order, reordered and how far, duplicate, or too late to tell.
 *
 * The window is the ring of words that RFC 6479 describes for IPsec's replay check: the bit of sequence number s is
 * bit s % 64 of word (s / 64) % WINDOW_WORDS. Moving forward clears the words it enters and shifts nothing, so a frame
 * in order costs one test and one store.
 *
 * How far a frame is reordered is its extent (RFC 4737, section 4.2.2): how many frames have come since the first with
 * a higher number. That was the one that left this number out, so only such frames need be remembered (`holes`).
 *
 * crates/meter/src/tracker.rs is the same in Rust.
 */
#ifndef NETDYNO_SEQUENCE_H
#define NETDYNO_SEQUENCE_H

#include "meter.h"

/* Numbers before `sequence` were left out by the frame that arrives now. */
static __always_inline void sequence_left_out(struct stream *stream, __u64 sequence)
{
	stream->holes[0] = stream->holes[1];
	stream->holes[1] = stream->holes[2];
	stream->holes[2] = (sequence << 32) | (__u32)stream->frames;
}

/* The extent, or at least so much if more than HOLES holes were left since. */
static __always_inline __u64 sequence_extent(struct stream *stream, __u64 sequence)
{
	__u64 hole = 0;

#pragma unroll
	for (int i = HOLES - 1; i >= 0; i--) {
		/* The oldest one that ends above the number; all behind it end higher. */
		if (stream->holes[i] && (__s32)((__u32)(stream->holes[i] >> 32) - (__u32)sequence) > 0)
			hole = stream->holes[i];
	}
	return hole ? (__u32)((__u32)stream->frames - (__u32)hole) : 0;
}

/* Before the frame is counted in `frames`. */
static __always_inline void sequence_seen(struct totals *totals, struct stream *stream, __u64 sequence)
{
	__u64 word = WINDOW_WORD(sequence);
	__u64 bit = 1ull << (sequence & 63);
	__u64 top, extent;

	if (!stream->next) {
		stream->lowest = sequence;
		if (sequence)
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
		stream->extent_sum += extent;
		if (extent > stream->extent_max)
			stream->extent_max = extent;
		return;
	}
	stream->window[word & (WINDOW_WORDS - 1)] |= bit;
	stream->next = sequence + 1;
}

#endif
