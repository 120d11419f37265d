// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Heads: copies the beginning of each frame that arrives, with its length and time, into a ring that user space reads in
 * place. `netdyno probe` makes flows of them. The frame itself goes where it would go, or is dropped: one verdict for all.
 *
 * There is a ring for each CPU, with one writer (a program runs on one CPU with its soft interrupts off, so no other run of
 * it can come in between) and one reader. It stands in an array that user space maps: neither side makes a call or uses an
 * atomic operation on x86. What finds the ring full is counted, there.
 *
 * As few bytes are copied as tell all that a flow's record has: of plain IPv4 48, so that an entry is one cache line.
 * crates/meter/src/heads.rs reads the rings; `cargo test -p netdyno-meter heads -- --nocapture` prints what a
 * frame costs here.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "include/headers.h"
#include "include/heads.h"
#include "include/kernel.h"

const volatile __u32 verdict = XDP_PASS;
/* Bytes of a ring less one; a power of two less one. */
const volatile __u64 ring_mask = 0;
/* The most bytes that are copied of a frame, up to HEAD_MOST; a multiple of 8. */
const volatile __u32 longest_head = 112;
/* 1: of plain packets no more is copied than flows without tunnels need. */
const volatile __u32 short_heads = 1;
/* 1: stores are seen in their order by other CPUs (x86), so that handing an entry over takes no exchange. */
const volatile __u32 ordered_stores = 0;
/* Of a program for one interface: 1: its driver is asked for tags. */
const volatile __u32 ask_tags = 0;

/* One entry for each CPU number; user space sets how many and how large: struct ring, the entries, RING_SLACK. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring) + RING_SLACK + 4096);
} rings SEC(".maps");

/* A VLAN tag that the NIC took out of the frame (Linux 6.8); only of programs that were loaded for one interface. */
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *protocol, __u16 *tag) __ksym __weak;

/* IPv4 without options and as far as TCP's flags. */
#define PLAIN_V4 48
/* IPv6 with a transport behind it, as far as TCP's flags; a multiple of 8. */
#define PLAIN_V6 72

static __always_inline void copy(void *to, const void *from, const __u32 bytes)
{
	for (__u32 at = 0; at < bytes; at += 8)
		*(__u64 *)(to + at) = *(__u64 *)(from + at);
}

static __always_inline bool has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/* Copies as much as is needed of the frame; how much that was. */
static __always_inline __u64 copy_head(struct xdp_md *ctx, void *to, __u64 length, const enum kernel on)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = data;
	struct ipv4 *v4 = data + sizeof(*ether);
	struct ipv6 *v6 = data + sizeof(*ether);
	__u64 most;

	if (short_heads && data + PLAIN_V4 <= end && ether->type == bpf_htons(ETH_P_IP) && v4->version_ihl == 0x45) {
		copy(to, data, PLAIN_V4);
		return PLAIN_V4;
	}
	if (short_heads && data + PLAIN_V6 <= end && ether->type == bpf_htons(ETH_P_IPV6) &&
	    has_ports(v6->next_header)) {
		copy(to, data, PLAIN_V6);
		return PLAIN_V6;
	}
	most = length < longest_head ? length : longest_head;
	if (on == LINUX_5_18) {
		/* The verifier wants bounds, on this very register. */
		asm volatile("" : "+r"(most));
		if (most < 1 || most > HEAD_MOST)
			return 0;
		return bpf_xdp_load_bytes(ctx, 0, to, most) ? 0 : most;
	}
#pragma unroll
	for (__u32 at = 0; at < HEAD_MOST; at += 8) {
		if (at >= longest_head || data + at + 8 > end)
			break;
		*(__u64 *)(to + at) = *(__u64 *)(data + at);
	}
	/* Up to seven bytes at the end of a short frame. */
	most &= 0xff;
	for (__u32 n = 0; n < 7; n++) {
		__u64 at = (most & ~7ull) + n;

		asm volatile("" : "+r"(at));
		at &= 0xff;
		if (at >= most || at >= longest_head || data + at + 1 > end)
			break;
		*(__u8 *)(to + at) = *(__u8 *)(data + at);
	}
	return most;
}

static __always_inline int take(struct xdp_md *ctx, const bool bound, const enum kernel on)
{
	__u64 length = (long)ctx->data_end - (long)ctx->data, at, captured, told;
	__u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring;
	struct head *entry;
	__be16 protocol;
	__u16 tag = 0;

	/* Or the compiler would compare with data_end itself, which verifiers forbid. */
	asm volatile("" : "+r"(length));
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (!ring)
		return verdict;
	at = ring->head;
	if (at - *(volatile __u64 *)&ring->tail + sizeof(*entry) + HEAD_MOST > ring_mask) {
		ring->dropped++;
		return verdict;
	}
	if (on == LINUX_5_18)
		length = bpf_xdp_get_buff_len(ctx);
	told = (__u32)length & ~HEAD_TAGGED;
	if (bound && ask_tags && bpf_ksym_exists(bpf_xdp_metadata_rx_vlan_tag) &&
	    !bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &tag))
		told |= HEAD_TAGGED;
	at &= ring_mask;
	asm volatile("" : "+r"(at));
	at &= ring_mask;
	entry = (void *)(ring + 1) + at;
	captured = copy_head(ctx, entry + 1, length, on);
	entry->ns = bpf_ktime_get_ns();
	entry->captured = captured;
	entry->tag = tag;
	entry->length = told;
	at = ring->head + sizeof(*entry) + ((captured + 15) & ~15ull);
	if (ordered_stores || on == LINUX_5_9) {
		asm volatile("" ::: "memory");
		*(volatile __u64 *)&ring->head = at;
	} else {
		/* Its result is used, or the compiler would make a plain store of it. */
		at = __sync_lock_test_and_set(&ring->head, at);
		asm volatile("" : "+r"(at));
	}
	return verdict;
}

SEC("xdp")
int heads(struct xdp_md *ctx)
{
	return take(ctx, false, LINUX_5_18);
}

SEC("xdp")
int heads_5_12(struct xdp_md *ctx)
{
	return take(ctx, false, LINUX_5_12);
}

/* Only where stores are seen in their order. */
SEC("xdp")
int heads_5_9(struct xdp_md *ctx)
{
	return take(ctx, false, LINUX_5_9);
}

/* For one interface, whose driver is asked for VLAN tags. */
SEC("xdp")
int heads_bound(struct xdp_md *ctx)
{
	return take(ctx, true, LINUX_5_18);
}

/* As the meter's: what asks a driver must call itself compatible with the GPL. */
char _license[] SEC("license") = "Dual MIT/GPL";
