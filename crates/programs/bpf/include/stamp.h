/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the STAMP reflector shares with user space. crates/reflector/src/stamp has the same in Rust, field by field; the
 * loader compares the sizes.
 */
#ifndef NETDYNO_STAMP_H
#define NETDYNO_STAMP_H

#include <linux/bpf.h>
#include <linux/types.h>

/*
 * One CPU's share of the counters, all 64 bits wide, so that user space reads each of them untorn while a CPU writes it.
 * `frames` is the sum of answered, others, too_short, malformed, fragments, answers, not_allowed and limited.
 */
struct stamped {
	__u64 frames; /* all that arrived */
	__u64 bytes;  /* layer 2 without the FCS, here and below */
	__u64 answered;
	__u64 answered_bytes;
	__u64 others;       /* not to this reflector: passed to the host, as are those of the next five */
	__u64 too_short;    /* shorter than an answer */
	__u64 malformed;    /* lengths, addresses or ports that contradict themselves */
	__u64 fragments;    /* first fragments */
	__u64 answers;      /* of another reflector */
	__u64 not_allowed;  /* from a source that is not listed */
	__u64 limited;      /* above the rate: dropped */
	__u64 sessions;     /* that began */
	__u64 without_room; /* among the answered: by a session for which there was no room, with the sender's number */
	__u64 first_ns;     /* CLOCK_MONOTONIC; 0: nothing yet */
	__u64 last_ns;
	__u64 tick; /* in jiffies: when last_ns was read */
} __attribute__((aligned(64)));

/*
 * How far the clocks of time stamps are ahead of CLOCK_MONOTONIC. There are three of these: user space writes one of the
 * first two, at which nobody looks, and then says by the third one's `at` that it counts.
 */
struct stamp_clock {
	__u64 at;
	__u64 utc_ahead;
	__u64 tai_ahead;
	__u64 taken_ns;  /* CLOCK_MONOTONIC */
	__u64 estimates; /* error estimates in the machine's order: of NTP's format in the low 16 bits, of PTP's above */
	__u64 own_only;  /* a bit for IPv4 and one for IPv6: only packets to the host's own addresses are for it */
};

#define STAMP_OWN_V4 1
#define STAMP_OWN_V6 2

struct stamp_address {
	__be32 words[4];
};

/* What makes a session. In the network's byte order; an IPv4 address is that of IPv6 which is mapped to it. */
struct stamp_session_key {
	__be32 source[4];
	__be32 destination[4];
	__be16 source_port;
	__be16 ssid;
	__be16 tags[2]; /* identifiers of the outer VLANs */
};

struct stamp_session {
	struct bpf_spin_lock lock;
	__u32 next; /* the number of the next answer */
	__u64 last_ns; /* CLOCK_MONOTONIC, of the last packet */
};

/* A bucket: when the next packet is due. */
struct stamp_bucket {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 due_ns;
};

struct stamp_source {
	__u32 prefix; /* in bits */
	__be32 address[4];
};

#endif
