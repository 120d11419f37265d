/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the bridge keeps. crates/forwarder/src/counters.rs is the same in Rust, field by field; the loader compares the
 * sizes. All fields are 64 bits wide, so user space reads each of them untorn while a CPU writes it.
 */
#ifndef NETDYNO_BRIDGE_H
#define NETDYNO_BRIDGE_H

#include <linux/types.h>

/* One CPU's share of one direction. `frames` is the sum of forwarded, over_limit, too_long and failed. */
struct passage {
	__u64 frames; /* all that arrived */
	__u64 bytes;  /* layer 2 without the FCS, here and below */
	__u64 forwarded;
	__u64 forwarded_bytes;
	__u64 over_limit; /* after the last frame that was asked for: dropped */
	__u64 too_long;	  /* for the MTU of the other interface: dropped */
	__u64 failed;	  /* there was nowhere to send them: dropped */
	__u64 buffers;    /* the forwarded, each super-frame counted once */
	__u64 completed;  /* among the forwarded: their checksum was left to hardware, and was computed */
	__u64 first_ns;	  /* CLOCK_MONOTONIC; 0: nothing yet */
	__u64 last_ns;
	__u64 tick; /* in jiffies: when last_ns was read */
	__u64 buffer_bytes; /* of `buffers`: the headers of a super-frame once */
} __attribute__((aligned(64)));

#endif
