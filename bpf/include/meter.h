/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the meter keeps. crates/meter/src/layout.rs is the same in Rust, field by field: the loader compares the sizes,
 * a property test every field. All fields are 64 bits wide, so user space can read each of them untorn from mapped
 * memory while a CPU writes it, and all of them start at zero.
 */
#ifndef NETDYNO_METER_H
#define NETDYNO_METER_H

#include <linux/types.h>
#include "loglinear.h"

#define FCS_LEN 4
#define SIZE_CLASSES 8

/* Words of a stream's duplicate window: 1,024 bits, of which the last 961 to 1,024 sequence numbers are in view. */
#define WINDOW_WORDS 16
#define WINDOW_WORD(sequence) ((sequence) >> 6)

/* Nanoseconds under way, without buckets. */
struct latency {
	__u64 count;
	__u64 sum;
	__u64 min; /* meaningful once count is not 0 */
	__u64 max;
	__u64 negative; /* stamped in the meter's future; in none of the others */
};

/* One CPU's share of everything that arrived. The frame count is the sum of `sizes`. */
struct totals {
	__u64 sizes[SIZE_CLASSES];
	__u64 bytes;    /* from the destination address to the last byte before the FCS */
	__u64 first_ns; /* CLOCK_MONOTONIC; 0: nothing yet */
	__u64 last_ns;
	__u64 tick;     /* in jiffies: when last_ns was read, if the clock is not read for each frame */
	__u64 signed_frames;
	__u64 unplaced;   /* signed, but the stream's number is beyond the table */
	__u64 reordered;  /* of all streams, as below */
	__u64 duplicates;
	__u64 late;
	struct latency latency;
	__u64 histogram[LOGLINEAR_BUCKETS]; /* of the latencies */
} __attribute__((aligned(64)));

/* One CPU's share of one stream; what every frame touches comes first. */
struct stream {
	__u64 frames;
	__u64 bytes;
	__u64 next; /* highest sequence number seen + 1; 0: none yet */
	struct latency latency;
	__u64 lowest;     /* lowest sequence number seen */
	__u64 reordered;  /* below the highest, in the window, not seen before */
	__u64 duplicates; /* in the window, seen before */
	__u64 late;       /* so far below the highest that nobody remembers whether it was seen */
	__u64 window[WINDOW_WORDS];
} __attribute__((aligned(64)));

/* One CPU's share of one stream's latencies. */
struct histogram {
	__u64 buckets[LOGLINEAR_BUCKETS];
};

#endif
