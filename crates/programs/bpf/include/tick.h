/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The time, read once a tick (1 to 10 ms) instead of for each frame, which would cost about 33 ns on a virtual machine.
 */
#ifndef NETDYNO_TICK_H
#define NETDYNO_TICK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* `last` is the time that was read at `*tick`. */
static __always_inline __u64 time_by_tick(__u64 *tick, __u64 last)
{
	/* The JIT makes this one load, where even the coarse clock would be a call of 12 ns. */
	__u64 now = bpf_jiffies64();

	if (now == *tick)
		return last;
	*tick = now;
	return bpf_ktime_get_ns();
}

#endif
