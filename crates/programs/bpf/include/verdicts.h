/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is counted of a program's verdicts, as user space reads it (crates/verdicts/src/counted.rs, which is held to these by its size). */
#ifndef NETDYNO_VERDICTS_H
#define NETDYNO_VERDICTS_H

#include <linux/types.h>

/* XDP_ABORTED to XDP_REDIRECT, then all that is no verdict. */
#define VERDICTS 6

enum verdict_kind {
	/* Without a signature. */
	VERDICT_ORDINARY,
	/* With one: of a stream. */
	VERDICT_SIGNED,
	/* In several buffers, whose end is not looked at. */
	VERDICT_UNREAD,
};

/* What is told apart. No padding: a hash is made of all bytes. */
struct verdict_key {
	__u32 ifindex;
	__u32 stream;
	__u32 verdict;
	__u32 kind;
};

struct verdict_count {
	__u64 frames;
	__u64 bytes;
};

#endif
