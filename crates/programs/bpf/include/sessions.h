/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of TCP and UDP sessions share with user space; crates/sessions/src/layout.rs is the same in Rust. */
#ifndef NETDYNO_SESSIONS_H
#define NETDYNO_SESSIONS_H

#include <linux/types.h>

/* Time stamps in slots are nanoseconds without their last so many bits: 32 of them last for nine minutes. */
#define TICK_BITS 7

/* The states of a connection, as RFC 9293 has them for a client; from FINISHED on it is over. */
enum session_state {
	SESSION_FREE,
	SESSION_SYN_SENT,
	/* A request was sent and not acknowledged. */
	SESSION_REQUESTED,
	/* It was acknowledged. */
	SESSION_WAITING,
	/* A part of its answer came. */
	SESSION_RECEIVING,
	/* All that was asked is answered: it is held open, or thinks before it asks again. */
	SESSION_HELD,
	/* Our FIN was sent and not acknowledged. */
	SESSION_FIN_WAIT_1,
	/* It was acknowledged. */
	SESSION_FIN_WAIT_2,
	/* The peer has closed, and our FIN was sent. */
	SESSION_LAST_ACK,
	SESSION_FINISHED,
	SESSION_RESET,
	SESSION_TIMED_OUT,
	/* Ended by us before its time. */
	SESSION_ABANDONED,
	/* The peer closed before the answer at hand was whole. */
	SESSION_UNANSWERED,
	/* The peer closed after a whole answer, though more was to be asked or the connection was to be held. */
	SESSION_CLOSED_EARLY,
	/* The peer takes no segment that is as long as a request. */
	SESSION_REFUSED,
};

/*
 * A connection. Its tuple is a function of its slot's number. One of UDP has of these states REQUESTED, HELD and those in which it is over, and
 * its requests have numbers where those of TCP have bytes.
 */
struct session_slot {
	/* See WORD_*; our initial sequence number in the highest 32 bits. */
	__u64 word;
	__u32 next;	/* the sequence number that the peer's next byte has; of UDP the address that the server saw (IPv4) */
	__u32 left;	/* bytes of the answer at hand that are still to come; of UDP the port that the server saw, and its cookie above */
	__u32 since;	/* when what it does began, in ticks: it was opened, asked again, or closed */
	__u32 began;	/* when its SYN, then its request was sent */
	__u32 deadline; /* when what was sent last is sent again, or who thinks asks again */
	__u32 sent;	/* bytes of all requests; of UDP their number */
};

/* Of an answer whose length its head does not tell. */
#define TO_THE_END 0xffffffff
/* A Content-Length of more counts as this much. */
#define ANSWER_MOST 4000000000U

#define WORD_STATE 0xff
/* Retransmissions since the last progress. */
#define WORD_TRIES_SHIFT 8
#define WORD_TRIES (0xff << WORD_TRIES_SHIFT)
/* The first digit of the status of the answer at hand; 0: it is no HTTP; STATUS_UNREAD: its first segment is too short to tell. */
#define WORD_CLASS_SHIFT 16
#define WORD_CLASS (0x7 << WORD_CLASS_SHIFT)
#define STATUS_UNREAD 7
/* All was answered before the peer closed; or only what had been asked. */
#define WORD_COMPLETE (1 << 19)
#define WORD_EARLY (1 << 20)
/* It was asked once more since all were to be used again. */
#define WORD_USED_AGAIN (1 << 21)
/* More came of the answer at hand than its head announces. */
#define WORD_OVERLONG (1 << 22)
/* One of its answers is no success, or contradicts what its head announces. */
#define WORD_BAD (1 << 23)
#define WORD_INITIAL_SHIFT 32

/* What user space tells the program that sends, and what that keeps. One thread at a time runs it. */
#define DEFERRED 4096
#define LISTED 4096

/* What is to be done with a slot. */
enum session_task {
	TASK_AGAIN,
	TASK_TIME_OUT,
	TASK_ABANDON,
	/* Of one that is held: ask again. */
	TASK_ASK,
	/* The same, when all are used again. */
	TASK_USE_AGAIN,
	TASK_CLOSE,
};

/* Who closes, once all is answered. */
enum session_close { CLOSE_SERVER, CLOSE_FIN, CLOSE_RST };

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
	__u64 held; /* connections in that state */
	__u64 via[2]; /* slots through whose tuples the server is asked for relays; the second is for the first */
	__u64 apart_too[3];
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
	__u64 closed_early;
	__u64 refused;
	__u64 asked;
	__u64 used_again;
	__u64 used_again_answered;
	__u64 used_again_badly; /* of those, with WORD_BAD */
	__u64 finished_badly;	/* of the finished ones, with WORD_BAD */
	__u64 classes[6]; /* whole answers by the first digit of their status; the first: no HTTP */
	__u64 unread;	  /* whole answers whose first segment ends within the status */
	__u64 relays_refused; /* by a server that does not relay, or that takes the cookie for none of its own */
	__u64 numbered;	  /* answers of UDP: they have the number of the request at hand */
	__u64 interim;	  /* answers of 1xx that announced another one (RFC 9110, section 15.2) */
	__u64 unframed;
	__u64 to_the_close; /* whole answers of which nothing but the close told that they are */
	__u64 misframed;    /* answers whose Content-Length is no number, or contradicts another one */
	__u64 overlong;	    /* whole answers with more bytes behind them than their heads announce */
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
	__u64 undeferred;
	__u64 no_room;
	__u64 arp_replies;
	__u64 advertisements; /* neighbour solicitations that were answered */
	__u64 answer_bytes;
	__u64 tx_frames;
	__u64 tx_bytes;
	__u64 rx_frames;
	__u64 rx_bytes;
} __attribute__((aligned(64)));

/* Whom a server of UDP may answer with more bytes than were sent to it. */
enum longer_answers { LONGER_NONE, LONGER_PRIVATE, LONGER_ALL };

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
	__u64 advertisements; /* neighbour solicitations that were answered */
	__u64 request_bytes;
	__u64 answer_bytes;
	__u64 relayed; /* datagrams that clients had sent to what was seen of another request */
	__u64 tx_frames;
	__u64 tx_bytes;
	__u64 rx_frames;
	__u64 rx_bytes;
} __attribute__((aligned(64)));

#endif
