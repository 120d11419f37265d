/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Buckets of a log-linear histogram: every power of two is cut into 128 equal parts, values below 128 are exact, so a
 * bucket is never wider than 1/128 (0.8 %) of the values in it. 3,968 buckets reach to 2^37 ns (137 s); whatever is
 * longer is counted in the last one. crates/histogram/src/lib.rs is the same in Rust.
 */
#ifndef NETDYNO_LOGLINEAR_H
#define NETDYNO_LOGLINEAR_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define LOGLINEAR_PART_BITS 7
#define LOGLINEAR_RANGE_BITS 37
#define LOGLINEAR_BUCKETS ((LOGLINEAR_RANGE_BITS - LOGLINEAR_PART_BITS + 1) << LOGLINEAR_PART_BITS)

static __always_inline __u64 loglinear_bucket(__u64 value)
{
	__u64 rest = value >> LOGLINEAR_PART_BITS;
	__u64 shift = 0;

	if (value >> LOGLINEAR_RANGE_BITS)
		return LOGLINEAR_BUCKETS - 1;
	/* BPF has no instruction that counts leading zeros: how many bits `rest` has, by halving. */
	if (rest >> 16) {
		shift += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		shift += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		shift += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		shift += 2;
		rest >>= 2;
	}
	shift += rest < 2 ? rest : 2;
	if (shift <= 1)
		return value; /* the first two rows of 128 have buckets one wide */
	return ((shift - 1) << LOGLINEAR_PART_BITS) + (value >> (shift - 1));
}

#endif
