/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What CPUs do to the same word at once, on each kernel as it can. */
#ifndef NETDYNO_EXCHANGE_H
#define NETDYNO_EXCHANGE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "kernel.h"

/* Only of LINUX_5_9. Map memory with a lock in it cannot be mapped, so the locks stand apart from what they are for. */
#define LOCKS 64

struct lock {
	struct bpf_spin_lock lock;
	__u32 apart[15]; /* on a cache line of its own */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOCKS);
	__type(key, __u32);
	__type(value, struct lock);
} locks SEC(".maps");

enum change { ADD, TAKE, REPLACE };

/*
 * What stood at `word`, to which `value` is added, or whose place it takes: that of 0, or if it is 0 that of anything; or
 * that of `old` alone. `which` lock it takes is the same for all that is done to a word.
 */
static __always_inline __u64 locked(__u64 *word, __u64 old, __u64 value, __u32 which, const enum change how)
{
	struct lock *lock;
	__u64 was;

	which &= LOCKS - 1;
	lock = bpf_map_lookup_elem(&locks, &which);
	if (!lock) /* there always is one: this is for the verifier */
		return how == REPLACE ? ~old : 1;
	bpf_spin_lock(&lock->lock);
	was = *(volatile __u64 *)word;
	/* Who lets go of a record need not take this lock: what is held is not written. */
	if (how == ADD)
		*(volatile __u64 *)word = was + value;
	else if (how == TAKE ? !was || !value : was == old)
		*(volatile __u64 *)word = value;
	bpf_spin_unlock(&lock->lock);
	return was;
}

static __always_inline __u64 fetch_add(__u64 *word, __u64 value, __u32 which, const enum kernel on)
{
	return on == LINUX_5_9 ? locked(word, 0, value, which, ADD) : __sync_fetch_and_add(word, value);
}

static __always_inline __u64 exchange(__u64 *word, __u64 value, __u32 which, const enum kernel on)
{
	return on == LINUX_5_9 ? locked(word, 0, value, which, TAKE) : __sync_lock_test_and_set(word, value);
}

/* What stood at `word`; it was replaced if that is `old`. */
static __always_inline __u64 compare_exchange(__u64 *word, __u64 old, __u64 value, __u32 which, const enum kernel on)
{
	if (on == LINUX_5_9)
		return locked(word, old, value, which, REPLACE);
	return __sync_val_compare_and_swap(word, old, value);
}

#endif
