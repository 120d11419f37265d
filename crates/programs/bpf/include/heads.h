/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A ring of heads of frames, as the program writes it and user space reads it: one for each CPU. */
#ifndef NETDYNO_HEADS_H
#define NETDYNO_HEADS_H

#include <linux/types.h>

/* The longest head; a multiple of 16. */
#define HEAD_MOST 240

/*
 * What stands before the entries. Positions count bytes from the beginning and never go back; entry `position & mask`
 * is where they stand. The words of either side are on a cache line of their own.
 */
struct ring {
	/* The program's: up to here entries are whole. */
	__u64 head;
	/* Frames that found no room. */
	__u64 dropped;
	__u64 apart[6];
	/* The reader's: up to here the room is free again. */
	__u64 tail;
	__u64 also_apart[7];
};

/* An entry: this, and behind it the head, up to the next multiple of 16 bytes. */
struct head {
	__u64 ns; /* CLOCK_MONOTONIC */
	__u16 captured;
	__u16 tag; /* the control word of a VLAN tag that the NIC took out, if HEAD_TAGGED is set */
	__u32 length; /* of the frame; HEAD_TAGGED is its uppermost bit */
};

#define HEAD_TAGGED (1u << 31)

/* An entry may stand over the end of a ring by so much: room behind it. */
#define RING_SLACK 512

#endif
