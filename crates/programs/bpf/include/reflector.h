/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the reflector keeps. crates/reflector/src/counters.rs is the same in Rust, field by field; the loader compares
 * the sizes. All fields are 64 bits wide, so user space reads each of them untorn while a CPU writes it.
 */
#ifndef NETDYNO_REFLECTOR_H
#define NETDYNO_REFLECTOR_H

#include <linux/types.h>

/* One CPU's share. `frames` is the sum of reflected, group, resolution, unsigned_frames and malformed. */
struct reflected {
	__u64 frames; /* all that arrived */
	__u64 bytes;  /* layer 2 without the FCS, here and below */
	__u64 reflected;
	__u64 reflected_bytes;
	__u64 echoes;          /* among the reflected: echo requests that became replies */
	__u64 group;           /* to a broadcast or multicast address: passed to the host */
	__u64 resolution;      /* ARP and IPv6 neighbour discovery: passed to the host */
	__u64 unsigned_frames; /* without the signature that was asked for: passed to the host */
	__u64 malformed;       /* cut short, or headers that contradict themselves: dropped */
	__u64 first_ns;        /* CLOCK_MONOTONIC; 0: nothing yet */
	__u64 last_ns;
	__u64 tick; /* in jiffies: when last_ns was read */
} __attribute__((aligned(64)));

#endif
