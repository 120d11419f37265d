/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Order of one stream on one CPU: in order, reordered, duplicate, or too late to tell.
 *
 * The window is the ring of words that RFC 6479 describes for IPsec's replay check: the bit of sequence number s is
 * bit s % 64 of word (s / 64) % WINDOW_WORDS. Moving forward clears the words it enters and shifts nothing, so a frame
 * in order costs one test and one store. crates/meter/src/tracker.rs is the same in Rust.
 */
#ifndef NETDYNO_SEQUENCE_H
#define NETDYNO_SEQUENCE_H

#include "meter.h"

static __always_inline void sequence_seen(struct totals *totals, struct stream *stream, __u64 sequence)
{
	__u64 word = WINDOW_WORD(sequence);
	__u64 bit = 1ull << (sequence & 63);
	__u64 top;

	if (!stream->next) {
		stream->lowest = sequence;
	} else if (sequence >= stream->next) {
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
		if (WINDOW_WORD(stream->next - 1) - word >= WINDOW_WORDS) {
			stream->late++;
			totals->late++;
		} else if (stream->window[word & (WINDOW_WORDS - 1)] & bit) {
			stream->duplicates++;
			totals->duplicates++;
		} else {
			stream->window[word & (WINDOW_WORDS - 1)] |= bit;
			stream->reordered++;
			totals->reordered++;
		}
		return;
	}
	stream->window[word & (WINDOW_WORDS - 1)] |= bit;
	stream->next = sequence + 1;
}

#endif
