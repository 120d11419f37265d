/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of TCP sessions share with user space; crates/sessions/src/layout.rs is the same in Rust. */
#ifndef NETDYNO_SESSIONS_H
#define NETDYNO_SESSIONS_H

#include <linux/types.h>

/* Time stamps in slots are nanoseconds without their last so many bits: 32 of them last for nine minutes. */
#define TICK_BITS 7

/* The states of a connection, as RFC 9293 has them for a client whose peer closes first; from FINISHED on it is over. */
enum session_state {
	SESSION_FREE,
	SESSION_SYN_SENT,
	/* The request was sent and not acknowledged. */
	SESSION_REQUESTED,
	/* It was acknowledged. */
	SESSION_WAITING,
	/* The peer has closed, and our FIN was sent. */
	SESSION_LAST_ACK,
	SESSION_FINISHED,
	SESSION_RESET,
	SESSION_TIMED_OUT,
	/* Ended by us before its time. */
	SESSION_ABANDONED,
	/* The peer closed without an answer. */
	SESSION_UNANSWERED,
};

/* A connection. Its tuple is a function of its slot's number. */
struct session_slot {
	/* State in the lowest 8 bits, retransmissions since the last progress in the next, our initial sequence number in the highest 32. */
	__u64 word;
	__u32 next;	/* the sequence number that the peer's next byte has */
	__u32 received; /* bytes of the answer */
	__u32 opened;	/* when, in ticks */
	__u32 began;	/* when its SYN, then its request was sent */
	__u32 deadline; /* when what was sent last is sent again */
	__u32 sent;	/* of the request's bytes; 0 before it */
};

#define WORD_STATE 0xff
#define WORD_TRIES_SHIFT 8
#define WORD_TRIES (0xff << WORD_TRIES_SHIFT)
#define WORD_INITIAL_SHIFT 32

/* What user space tells the program that sends, and what that keeps. One thread at a time runs it. */
#define DEFERRED 4096
#define LISTED 4096

/* What is to be done with a slot. */
enum session_task { TASK_AGAIN, TASK_TIME_OUT, TASK_ABANDON };

struct session_control {
	__u64 limit;	 /* so many are opened in all */
	__u64 in_flight; /* no more than so many at a time; 0: any number */
	__u64 gap_ns;	 /* between two; 0: no schedule */
	__u64 gap_part;	 /* and so many of `gap_parts` of a nanosecond */
	__u64 gap_parts;
	__u64 opened;
	__u64 due_ns; /* when the next is */
	__u64 due_part;
	__u64 last_ns; /* when the last was opened */
	__u64 slot;    /* of the next */
	__u64 busy;    /* slots that were passed over because their connections are not over */
	__u64 late;    /* opened more than a millisecond after they were due */
	__u64 listed_at;
	__u64 listed_count;
	__u64 deferred_at;
	__u64 next_mac; /* of the next hop: its six bytes as they lie in memory */
	/* Written on every CPU. */
	__u64 ended;
	__u64 deferred_end;
	__u64 apart_too[6];
	__u64 listed[LISTED];	  /* slot, and the task above 32 bits */
	__u64 deferred[DEFERRED]; /* slot + 1 of a request that had no room in the frame that arrived */
};

/* What a CPU counted. */
struct session_counts {
	__u64 opened;
	__u64 established;
	__u64 finished;
	__u64 reset;
	__u64 timed_out;
	__u64 abandoned;
	__u64 unanswered;
	__u64 retransmitted_syns;
	__u64 retransmitted_requests;
	__u64 retransmitted_acks;
	__u64 retransmitted_fins;
	__u64 duplicates;
	__u64 out_of_order;
	__u64 unexpected;
	__u64 malformed;
	__u64 resets_sent;
	__u64 deferred;
	__u64 no_room;
	__u64 arp_replies;
	__u64 answer_bytes;
	__u64 tx_frames;
	__u64 tx_bytes;
	__u64 rx_frames;
	__u64 rx_bytes;
} __attribute__((aligned(64)));

/* What the server of a CPU counted. */
struct served_counts {
	__u64 syns;
	__u64 requests;
	__u64 segments; /* of answers */
	__u64 finished;
	__u64 resets;
	__u64 bad_cookies;
	__u64 unexpected;
	__u64 malformed;
	__u64 no_room;
	__u64 arp_replies;
	__u64 request_bytes;
	__u64 answer_bytes;
	__u64 tx_frames;
	__u64 tx_bytes;
	__u64 rx_frames;
	__u64 rx_bytes;
} __attribute__((aligned(64)));

#endif
