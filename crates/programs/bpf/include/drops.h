/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the tracer of drops counts, as user space reads it (crates/drops/src/counted.rs, which is held to these by its size). */
#ifndef NETDYNO_DROPS_H
#define NETDYNO_DROPS_H

#include <linux/types.h>

/* So many meters are known. */
#define METERS 4
/* So many functions are known that free a frame in a socket buffer for a verdict of XDP. */
#define XDP_FREES 4
/* Bytes of an example, from its Ethernet header on. */
#define EXAMPLE 512
/* So many of each key on each CPU, and so many of each function and reason in all. */
#define EXAMPLES_OF_KEY 2
#define EXAMPLES_OF_CAUSE 64

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
	/* One more than the verdict by which the next frame in a socket buffer is freed that one of XDP_FREES frees. */
	__u64 verdict;
	/* Examples for which there was no room. */
	__u64 not_kept;
};

/* A frame that was dropped. */
struct drop_example {
	struct drop_key key;
	/* By CLOCK_MONOTONIC. */
	__u64 time;
	__u32 length;
	__u32 captured;
	/* It had no Ethernet header there: this begins with what follows one. */
	__u32 headless;
	__u32 unused;
	__u8 data[EXAMPLE];
};

#endif
