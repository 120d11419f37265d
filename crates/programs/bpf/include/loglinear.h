/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Buckets of a log-linear histogram: every power of two is cut into 128 equal parts, values below 256 are exact, so a
 * bucket is never wider than 1/128 (0.8 %) of the values in it; or into 2,048 fine ones (0.05 %, three significant digits).
 * 3,968 buckets, or 55,296 fine ones, reach to 2^37 ns (137 s); whatever is longer is counted in the last one.
 * crates/histogram/src/lib.rs is the same in Rust.
 */
#ifndef NETDYNO_LOGLINEAR_H
#define NETDYNO_LOGLINEAR_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define LOGLINEAR_PART_BITS 7
#define LOGLINEAR_FINE_PART_BITS 11
#define LOGLINEAR_RANGE_BITS 37
#define LOGLINEAR_BUCKETS ((LOGLINEAR_RANGE_BITS - LOGLINEAR_PART_BITS + 1) << LOGLINEAR_PART_BITS)
#define LOGLINEAR_FINE_BUCKETS ((LOGLINEAR_RANGE_BITS - LOGLINEAR_FINE_PART_BITS + 1) << LOGLINEAR_FINE_PART_BITS)

/*
 * How far a value below 2^17 is shifted to have eight bits at most, by what stands above its first seven bits: BPF has no
 * instruction that counts leading zeros, and halving takes branches that nobody predicts. With frames' times under way
 * only the first lines of this table are in use.
 */
#define LOGLINEAR_SHIFT_BITS 10
static const __u8 loglinear_shifts[1 << LOGLINEAR_SHIFT_BITS] = {
	[2 ... 3] = 1,	   [4 ... 7] = 2,     [8 ... 15] = 3,	 [16 ... 31] = 4,    [32 ... 63] = 5,
	[64 ... 127] = 6, [128 ... 255] = 7, [256 ... 511] = 8, [512 ... 1023] = 9,
};

/* How often `value` must be halved to have eight bits at most; one beyond the range becomes the greatest within. */
static __always_inline __u64 loglinear_shift(__u64 *value)
{
	__u64 rest = *value >> LOGLINEAR_PART_BITS;
	__u64 shift = 0;

	if (rest >> LOGLINEAR_SHIFT_BITS) {
		if (rest >> 2 * LOGLINEAR_SHIFT_BITS) {
			if (*value >> LOGLINEAR_RANGE_BITS) {
				*value = (1ULL << LOGLINEAR_RANGE_BITS) - 1;
				return LOGLINEAR_RANGE_BITS - LOGLINEAR_PART_BITS - 1;
			}
			rest >>= LOGLINEAR_SHIFT_BITS;
			shift = LOGLINEAR_SHIFT_BITS;
		}
		rest >>= LOGLINEAR_SHIFT_BITS;
		shift += LOGLINEAR_SHIFT_BITS;
	}
	return shift + loglinear_shifts[rest & ((1 << LOGLINEAR_SHIFT_BITS) - 1)];
}

/* The first two rows of 128 have buckets one wide: there the shift is 0. */
static __always_inline __u64 loglinear_bucket(__u64 value, __u64 shift)
{
	return (shift << LOGLINEAR_PART_BITS) + (value >> shift);
}

/* The same, of `value` with the same shift: its first rows are 2,048 long. */
static __always_inline __u64 loglinear_fine_bucket(__u64 value, __u64 shift)
{
	const __u64 more = LOGLINEAR_FINE_PART_BITS - LOGLINEAR_PART_BITS;

	shift = shift > more ? shift - more : 0;
	return (shift << LOGLINEAR_FINE_PART_BITS) + (value >> shift);
}

#endif
