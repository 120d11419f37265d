/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checksums that are corrected by what changed under them (RFC 1624) and sums of one's complement. Sums of words in the
 * machine's byte order are those in the network's, bytes swapped (RFC 1071 section 2).
 */
#ifndef NETDYNO_CHECKSUM_H
#define NETDYNO_CHECKSUM_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* A sum of 16-bit words, in 16 bits. */
static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * The checksum of words with this sum. 0 is written as 0xffff, which is the other zero of one's complement: it is right over
 * any message, where 0 is wrong over one that is all zeros, and of UDP says that there is no checksum.
 */
static __always_inline __u16 checksum_of(__u64 sum)
{
	__u16 checksum = ~folded(sum);

	return checksum ? checksum : 0xffff;
}

/* A checksum after one word under it changed: RFC 1624, equation 3. */
static __always_inline __u16 corrected(__u16 checksum, __u16 before, __u16 after)
{
	return checksum_of((__u64)(__u16)~checksum + (__u16)~before + after);
}

#endif
