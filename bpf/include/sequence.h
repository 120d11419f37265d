/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Order of one stream: in order, reordered and how far, duplicate, or too late to tell.
 *
 * Whether a frame was seen before all CPUs tell together where each has records of its own (seen.h), else the record's window.
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
#include "seen.h"
#include "signature.h"

/* Numbers there are in a signature; wide ones begin here. */
#define SEQUENCE_ROUND (1ull << SIGNATURE_SEQUENCE_BITS)

/* Of all numbers with these 40 bits the one nearest to `near`, which is the expected one. */
static __always_inline __u64 sequence_near(__u64 sequence, __u64 near)
{
	/* As in signature_elapsed: the sign of 40 bits is extended. */
	return near + ((__s64)((sequence - near) << (64 - SIGNATURE_SEQUENCE_BITS)) >> (64 - SIGNATURE_SEQUENCE_BITS));
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

/*
 * Whether a frame was seen, by the window of its stream's record, which moves up to it: where there is one record for all
 * CPUs. Before sequence_seen, which counts it.
 */
static __always_inline enum seen window_seen(struct stream *stream, __u64 sequence)
{
	__u64 word = WINDOW_WORD(sequence), bit = 1ull << (sequence & 63), *place, top;

	place = &stream->window[word & (WINDOW_WORDS - 1)];
	if (stream->next) {
		top = WINDOW_WORD(stream->next - 1);
		if (sequence < stream->next) {
			if (top - word >= WINDOW_WORDS)
				return SEEN_UNKNOWN;
			if (*place & bit)
				return SEEN_BEFORE;
		} else if (word != top) {
			for (__u32 i = 1; i <= WINDOW_WORDS; i++) {
				stream->window[(top + i) & (WINDOW_WORDS - 1)] = 0;
				if (top + i >= word)
					break;
			}
		}
	}
	*place |= bit;
	return SEEN_NEVER;
}

/* A frame that was `seen` before or not. Before it is counted in `frames`. */
static __always_inline void sequence_seen(struct totals *totals, struct stream *stream, __u64 sequence, enum seen seen)
{
	bool behind = false;
	__u64 extent;

	if (!stream->next) {
		stream->lowest = sequence;
		if (sequence != SEQUENCE_ROUND)
			sequence_left_out(stream, sequence);
	} else if (sequence >= stream->next) {
		if (sequence > stream->next)
			sequence_left_out(stream, sequence);
	} else {
		behind = true;
		if (sequence < stream->lowest)
			stream->lowest = sequence;
	}
	if (!behind)
		stream->next = sequence + 1;
	if (seen == SEEN_BEFORE) {
		stream->duplicates++;
		totals->duplicates++;
		return;
	}
	if (seen == SEEN_UNKNOWN) {
		stream->late++;
		totals->late++;
	} else if (behind) {
		stream->reordered++;
		totals->reordered++;
	}
	if (behind) {
		extent = sequence_extent(stream, sequence);
		sum_add(&stream->extent_sum, extent);
		if (extent > stream->extent_max)
			stream->extent_max = extent;
	}
}

#endif
