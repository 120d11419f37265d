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

/*
 * So many frames in a row are no longer damaged ones but a sender's that is elsewhere with its numbers; and where nothing but
 * the numbers tells, since a device may send many of its copies in a row.
 */
#define RUN_BITS 10
#define RUN_ELSEWHERE 16
#define RUN_UNSTAMPED ((1u << RUN_BITS) - 1)

/* A number so far ahead is damaged: of 20 million frames a second those of 214 seconds would have to be lost. */
#define ASTRAY_BITS 32
#define ASTRAY (~0ull)

/* How many frames in a row, with this one, did not lead the stream on and are not where they should be. */
static __always_inline __u64 sequence_run(struct stream *stream)
{
	__u64 here = stream->next << RUN_BITS, run = 0;

	if ((stream->run ^ here) <= RUN_UNSTAMPED)
		run = stream->run & RUN_UNSTAMPED;
	if (run < RUN_UNSTAMPED)
		run++;
	stream->run = here | run;
	return run;
}

/*
 * Whether a frame behind the highest number is of a sender that began anew: it left later than the one with the highest
 * number, where what a device holds back or copies left earlier. Without stamps: its number came before, and the numbers behind rise.
 * (The stamps come round after 78 hours: so the sender that began anew 39 hours later is not known.)
 */
static __always_inline bool sequence_renewed(struct stream *stream, __u64 sequence, __u64 time, enum seen seen)
{
	bool rises = sequence >= stream->newest;

	if (time)
		return signature_elapsed(stream->newest, time) > 0;
	stream->newest = sequence + 1;
	if (!rises)
		stream->run = 0;
	return rises && seen != SEEN_NEVER;
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
static __always_inline void sequence_seen(struct totals *totals, struct stream *stream, __u64 sequence, __u64 time,
					  enum seen seen)
{
	bool behind = false;
	__u64 extent;

	if (!stream->next) {
		/* Any number may be missing before the first, whose own may just have come round. */
		stream->lowest = sequence;
		sequence_left_out(stream, sequence);
	} else if (sequence >= stream->next) {
		if (sequence > stream->next)
			sequence_left_out(stream, sequence);
	} else {
		behind = true;
		if (sequence_renewed(stream, sequence, time, seen)) {
			if (sequence_run(stream) >= (time ? RUN_ELSEWHERE : RUN_UNSTAMPED))
				stream->renewed++;
		} else if (sequence < stream->lowest) {
			stream->lowest = sequence;
		}
	}
	if (!behind) {
		stream->next = sequence + 1;
		if (time)
			stream->newest = time;
	}
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
