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

/* Words of a stream's duplicate window: 512 bits, of which the last 449 to 512 sequence numbers are in view. */
#define WINDOW_WORDS 8
#define WINDOW_WORD(sequence) ((sequence) >> 6)

/* The last so many times that a stream left out sequence numbers are remembered, to tell how far frames are reordered. */
#define HOLES 3

/* A sum of 128 bits: 64 bits of nanoseconds are full after 4.3 days of a million frames a second, 50 ms under way each. */
struct sum {
	__u64 low;
	__u64 high;
};

static __always_inline void sum_add(struct sum *sum, __u64 value)
{
	sum->low += value;
	if (sum->low < value)
		sum->high++;
}

/* Nanoseconds under way, without buckets. */
struct latency {
	__u64 count;
	struct sum sum;
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
	__u64 contended;  /* signed, but another CPU held the stream's record for too long */
	__u64 reordered;  /* of all streams, as below */
	__u64 duplicates;
	__u64 late;
	__u64 corrupted;
	__u64 trailed;    /* signed, but with bytes behind the signature */
	__u64 by_hardware; /* frames whose time of arrival the hardware told */
	__u64 background;  /* unsigned frames that most networks carry: background.h */
	__u64 astray;      /* signed, but with a number that is so far ahead that it must be damaged */
	__u64 unwanted;    /* frames that were not copied, because whoever takes copies wants no more */
	struct latency latency;
	struct latency variation; /* between one frame of a stream and the one before, without sign; only sum and max */
	struct latency gap;       /* between one arrival on this CPU and the one before; only sum and max */
	__u64 latencies[LOGLINEAR_FINE_BUCKETS];
	__u64 variations[LOGLINEAR_BUCKETS];
	__u64 gaps[LOGLINEAR_BUCKETS];
} __attribute__((aligned(64)));

/* A frame that left out the numbers before its own. */
struct hole {
	__u64 number; /* its own; 0: there was none */
	__u64 frames; /* that had come before it */
};

/*
 * One stream, or one CPU's share of it: five cache lines, of which a frame in order touches the first two and the word
 * of the window that it belongs to. Sequence numbers are wide (sequence.h).
 */
struct stream {
	__u64 busy; /* 1 while a CPU works on it, if they share it */
	__u64 next; /* highest sequence number seen + 1; 0: none yet */
	__u64 frames;
	__u64 bytes;
	__u64 last_ns; /* latest arrival, if the clock is read for each frame */
	__u64 gap_max; /* longest time between two arrivals */
	__u64 transit; /* time under way of the last frame with a stamp: two's complement, clocks may differ */
	__u64 jitter;  /* RFC 3550, appendix A.8: nanoseconds, times 16 */
	struct latency latency;
	__u64 first_ns;
	__u64 newest; /* stamp of the frame with the highest number; without stamps: last number behind it + 1 */
	__u64 window[WINDOW_WORDS];
	__u64 reordered;  /* below the highest, in the window, not seen before */
	__u64 duplicates; /* in the window, seen before */
	__u64 late;       /* so far below the highest that nobody remembers whether it was seen */
	__u64 corrupted;
	__u64 extent_max; /* of the reordered and late ones: frames that came since the first with a higher number */
	struct sum extent_sum;
	struct hole holes[HOLES]; /* the latest last */
	__u64 lowest;  /* lowest sequence number seen */
	__u64 run;     /* frames in a row that are not where they should be: sequence_run */
	__u64 renewed; /* frames of a sender that began anew, but for the first ones */
} __attribute__((aligned(64)));

/* One stream's latencies, or one CPU's share of them; or the times between its arrivals. */
struct histogram {
	__u64 buckets[LOGLINEAR_BUCKETS];
};

/* What a stream's frames must have before the signature. */
struct content {
	__u64 length; /* of the frames this is about, in the low 32 bits; of the bytes to look at, in the high ones */
	__u64 hash;
};

/* How the clock of the hardware's time stamps stood to this host's when user space last compared them. */
struct device_clock {
	__u64 at;    /* what it showed; in the third entry of the map: which of the first two is in force */
	__u64 ahead; /* how far CLOCK_MONOTONIC was ahead of it, in two's complement */
	__s64 slope; /* by how much that grows with each of its nanoseconds, times 2^32 */
	__u64 tai;   /* how far CLOCK_TAI is ahead of CLOCK_MONOTONIC */
};

/* The stream of a frame without a signature: theirs have 24 bits. */
#define NO_STREAM 0xffffffff

/* More of a frame does not fit a record of a perf ring, whose length has 16 bits. */
#define CAPTURED_MOST 65408

/* Before a frame's bytes in a ring. */
struct captured {
	__u64 time;     /* of arrival, by CLOCK_MONOTONIC */
	__u64 sequence; /* 40 bits, if there is a stream */
	__u32 length;   /* in buffers */
	__u32 bytes;    /* of which so many follow; behind them a ring may have some more */
	__u32 tag;      /* that was taken out: protocol, and behind it the tag; 0: none */
	__u32 stream;
};

#endif
