/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the tracer of drops counts, as user space reads it (crates/drops/src/counted.rs, which is held to these by its size). */
#ifndef NETDYNO_DROPS_H
#define NETDYNO_DROPS_H

#include <linux/types.h>

/* So many meters are known. */
#define METERS 4

enum drop_kind {
	/* Of a network, without a signature. */
	DROP_ORDINARY,
	/* With one that can be of this run. */
	DROP_SIGNED,
	/* With one that was stamped before this run, or by another clock. */
	DROP_SIGNED_BY_OTHERS,
	/* Never was on a network: Unix sockets, netlink. */
	DROP_LOCAL,
	/* Of XDP, which has no socket buffer: nothing is known of the frame. */
	DROP_XDP,
};

/* `location` of DROP_XDP. */
enum drop_tracepoint { DROP_AT_EXCEPTION = 1, DROP_AT_BULK_TX, DROP_AT_DEVMAP_XMIT, DROP_AT_REDIRECT };

/* What is told apart. No padding: a hash is made of all bytes. */
struct drop_key {
	__u64 location;
	__u32 reason;
	__u32 netns;
	__u32 ifindex;
	__u32 stream;
	__u16 ethertype;
	__u16 port;
	__u8 protocol;
	__u8 kind;
	__u16 unused;
};

struct drop_count {
	/* Those of which no other copy was held. */
	__u64 frames;
	__u64 bytes;
	/* Those of which one was. */
	__u64 copies;
	/* By CLOCK_MONOTONIC, as of the last tick. */
	__u64 first_ns;
	__u64 last_ns;
	/* Of frames with a signature. */
	__u64 first_sequence;
	__u64 last_sequence;
	__u64 lowest;
	__u64 highest;
	char name[16];
};

struct drop_totals {
	/* Frames that found no place in any table. */
	__u64 unlisted;
	/* In several buffers, whose end this kernel does not let a program read. */
	__u64 unread;
	/* The time, and the tick that it was read at. */
	__u64 now;
	__u64 tick;
};

#endif
