// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The bridge: sends each frame that arrives on one of two interfaces out of the other one, unchanged, as early as the
 * kernel lets a program see it. Its programs share counters and rules:
 *
 *   bridge_xdp   native or generic XDP: no socket buffer is made (native), nothing else on this host sees the frame
 *                (bridge_xdp_5_9 is the same without a limit, for kernels before 5.12)
 *   bridge_tc    at the ingress hook of traffic control (tcx): a little later, with all that a socket buffer knows
 *                (super-frames of TCP, checksums left to hardware, VLAN tags taken out)
 *   pass_xdp     passes all: where nothing is taken, but sent
 *   hold_tc      keeps what arrives from this host's own stack, while packet sockets still see it
 *
 * Only what arrives is seen, never what is sent, so nothing that the bridge sends comes round again.
 *
 * A veth hands frames over whose checksum its sender left to hardware that is not there; XDP cannot be told so, and
 * the far end would take them for damaged. Such a checksum field holds the sum of the pseudo header alone. Where
 * `complete` says that such frames may come, the sum is compared and the checksum finished. A frame whose true
 * checksum happens to be that number stays as it is, because computing it again gives the same.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/bridge.h"
#include "include/headers.h"
#include "include/tick.h"

/* Bytes that are summed at once, and the longest packet that is: 64 KiB. */
#define CHUNK 256
#define CHUNKS 256

/* Interface numbers: what arrives on [0] goes to [1], and the other way round. */
const volatile __u32 interfaces[2] = {};
/* 1: frames that arrive on [0], [1] may come with unfinished checksums. */
const volatile __u32 complete[2] = {};
/* The longest frame of direction 0, 1: Ethernet header and MTU. An 802.1Q tag may stand above it. */
const volatile __u32 longest[2] = {};
/* Forward this many frames, both directions together; 0: without end. */
const volatile __u64 limit = 0;
/* 1: frames may lie in several buffers (the program is loaded with BPF_F_XDP_HAS_FRAGS; Linux 5.18). */
const volatile __u32 multi_buffer = 0;

/* Entry 2 * cpu + direction; user space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct passage);
} passages SEC(".maps");

/* Frames that took a part of the limit. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} taken SEC(".maps");

/* Where direction 0 and 1 lead. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} ways SEC(".maps");

static __always_inline struct passage *passage_of(__u32 direction)
{
	__u32 key = 2 * bpf_get_smp_processor_id() + direction;

	return bpf_map_lookup_elem(&passages, &key);
}

static __always_inline void arrived(struct passage *passage, __u64 frames, __u64 bytes)
{
	__u64 now = time_by_tick(&passage->tick, passage->last_ns);

	passage->frames += frames;
	passage->bytes += bytes;
	if (!passage->first_ns)
		passage->first_ns = now;
	passage->last_ns = now;
}

/*
 * Whether the limit leaves room for these. A super-frame goes whole or not at all. Counting takes an atomic operation that
 * gives a value, whose encoding kernels before 5.12 refuse even where it is never reached: `counts` is a constant.
 */
static __always_inline bool within_limit(__u64 frames, const bool counts)
{
	__u32 key = 0;
	__u64 *count;

	if (!counts || !limit)
		return true;
	count = bpf_map_lookup_elem(&taken, &key);
	return count && __sync_fetch_and_add(count, frames) < limit;
}

static __always_inline __u16 folded(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The sum of `count` words, which is not folded. */
static __always_inline __u32 halves_of(const __be16 *words, const int count)
{
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

/* Sums `left` bytes from `at` on and puts the checksum where `field` is, the sum of the pseudo header being in it. */
static __noinline int finish(struct xdp_md *ctx, __u32 at, __u32 left, __u32 field)
{
	__u8 chunk[CHUNK];
	__s64 sum = 0;
	__u16 checksum;
	__u32 size;

	for (int i = 0; i < CHUNKS && left >= CHUNK; i++) {
		if (bpf_xdp_load_bytes(ctx, at, chunk, CHUNK))
			return 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)chunk, CHUNK, sum);
		at += CHUNK;
		left -= CHUNK;
	}
	if (left > 0) {
		__builtin_memset(chunk, 0, CHUNK);
		/* Shows the verifier that it is 1 to CHUNK, and the compiler nothing that it could do without. */
		size = (left - 1) & (CHUNK - 1);
		asm volatile("" : "+r"(size));
		size = (size & (CHUNK - 1)) + 1;
		if (bpf_xdp_load_bytes(ctx, at, chunk, size))
			return 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)chunk, CHUNK, sum);
	}
	checksum = ~folded(sum);
	if (!checksum)
		checksum = 0xffff;
	return bpf_xdp_store_bytes(ctx, field, &checksum, sizeof(checksum)) == 0;
}

/* Finishes the checksum of a TCP or UDP packet if it was left unfinished. Whether it was. */
static __always_inline bool completed(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *at = data;
	struct ether *ether = data;
	__u32 sum = 0, length, field;
	struct ipv4 *v4;
	struct ipv6 *v6;
	__u8 protocol;
	__be16 type;
	__u16 held;

	if (data + sizeof(*ether) > end)
		return false;
	type = ether->type;
	at += sizeof(*ether);
	at = behind_tags(at, end, &type);
	if (!at)
		return false;
	if (type == bpf_htons(ETH_P_IP)) {
		v4 = at;
		if (at + sizeof(*v4) > end || v4->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
			return false;
		length = bpf_ntohs(v4->length);
		protocol = v4->protocol;
		sum = halves_of((__be16 *)&v4->source, 4);
		field = (v4->version_ihl & 0xf) * 4;
		if (field < sizeof(*v4) || length < field)
			return false;
		length -= field;
		at += field;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		v6 = at;
		if (at + sizeof(*v6) > end)
			return false;
		length = bpf_ntohs(v6->length);
		protocol = v6->next_header;
		sum = halves_of((__be16 *)&v6->source, 16);
		at += sizeof(*v6);
	} else {
		return false;
	}
	/* A way for each: older verifiers do not see what the protocol has to do with how far the packet was looked at. */
	if (protocol == IPPROTO_TCP) {
		field = 16;
		if (length < 18 || at + 18 > end)
			return false;
		held = *(__u16 *)(at + 16);
	} else if (protocol == IPPROTO_UDP) {
		field = 6;
		if (length < 8 || at + 8 > end)
			return false;
		held = *(__u16 *)(at + 6);
	} else {
		return false;
	}
	sum += bpf_htons(protocol) + bpf_htons(length);
	/* One's complement has two zeros, and this one is seldom written: both are compared. */
	if (held != folded(sum))
		return false;
	return finish(ctx, at - data, length, at - data + field);
}

static __always_inline bool fits_with_tag(struct xdp_md *ctx, __u64 length, __u32 most)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = data;

	return length <= most + sizeof(struct tag) && data + sizeof(*ether) <= end &&
	       ether->type == bpf_htons(ETH_P_8021Q);
}

static __always_inline int redirected(struct xdp_md *ctx, const bool counts)
{
	__u32 direction = ctx->ingress_ifindex == interfaces[1];
	struct passage *passage = passage_of(direction);
	__u64 length = ctx->data_end - ctx->data;
	bool was_unfinished = false;

	if (!passage)
		return XDP_ABORTED;
	if (multi_buffer)
		length = bpf_xdp_get_buff_len(ctx);
	arrived(passage, 1, length);
	if (length > longest[direction] && !fits_with_tag(ctx, length, longest[direction])) {
		passage->too_long++;
		return XDP_DROP;
	}
	if (!within_limit(1, counts)) {
		passage->over_limit++;
		return XDP_DROP;
	}
	if (complete[direction])
		was_unfinished = completed(ctx);
	/* The lower bits of the flags are what is returned if there is no such entry. */
	if (bpf_redirect_map(&ways, direction, XDP_ABORTED) != XDP_REDIRECT) {
		passage->failed++;
		return XDP_DROP;
	}
	passage->completed += was_unfinished;
	passage->forwarded++;
	passage->buffers++;
	passage->forwarded_bytes += length;
	passage->buffer_bytes += length;
	return XDP_REDIRECT;
}

SEC("xdp")
int bridge_xdp(struct xdp_md *ctx)
{
	return redirected(ctx, true);
}

/* Without a limit, for Linux 5.9 and newer. */
SEC("xdp")
int bridge_xdp_5_9(struct xdp_md *ctx)
{
	return redirected(ctx, false);
}

/* Many drivers send for XDP only while they have a program of their own: for the far side of a bridge in one direction. */
SEC("xdp")
int pass_xdp(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* The headers of a super-frame of TCP over IP, or of UDP, which each of its frames will have. */
static __always_inline __u32 headers_of(struct __sk_buff *skb)
{
	__u32 at = sizeof(struct ether) + sizeof(struct ipv6);
	__u8 byte = 0, protocol = 0;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, sizeof(struct ether), &byte, 1))
			return 0;
		at = sizeof(struct ether) + (byte & 0xf) * 4;
		bpf_skb_load_bytes(skb, sizeof(struct ether) + 9, &protocol, 1);
	} else {
		bpf_skb_load_bytes(skb, sizeof(struct ether) + 6, &protocol, 1);
	}
	if (protocol == IPPROTO_UDP)
		return at + 8;
	return bpf_skb_load_bytes(skb, at + 12, &byte, 1) ? 0 : at + (byte >> 4) * 4;
}

SEC("tc")
int bridge_tc(struct __sk_buff *skb)
{
	__u32 direction = skb->ingress_ifindex == interfaces[1];
	struct passage *passage = passage_of(direction);
	__u64 frames = skb->gso_segs ? skb->gso_segs : 1, bytes = skb->len;

	if (!passage)
		return TC_ACT_SHOT;
	if (frames > 1)
		bytes += (frames - 1) * headers_of(skb);
	/* A tag that was taken out is on the wire all the same. */
	if (skb->vlan_present)
		bytes += 4 * frames;
	arrived(passage, frames, bytes);
	/* A tag that was taken out is not in the length. */
	if ((skb->gso_size ? skb->gso_size + headers_of(skb) : skb->len) > longest[direction]) {
		passage->too_long += frames;
		return TC_ACT_SHOT;
	}
	if (!within_limit(frames, true)) {
		passage->over_limit += frames;
		return TC_ACT_SHOT;
	}
	if (bpf_redirect(interfaces[!direction], 0) != TC_ACT_REDIRECT) {
		passage->failed += frames;
		return TC_ACT_SHOT;
	}
	passage->forwarded += frames;
	passage->buffers++;
	passage->forwarded_bytes += bytes;
	passage->buffer_bytes += skb->len + (skb->vlan_present ? 4 : 0);
	return TC_ACT_REDIRECT;
}

SEC("tc")
int hold_tc(struct __sk_buff *skb)
{
	(void)skb;
	return TC_ACT_SHOT;
}

/* No helper used here asks for a GPL-compatible licence. */
char _license[] SEC("license") = "MIT OR Apache-2.0";
