// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counts the verdicts of somebody else's XDP program, by interface and stream.
 *
 * It hangs on that program's end (fexit), where it sees the frame as the program left it and what the program returns. The program itself
 * is not changed. Which one that is, user space says before loading (crates/verdicts/src/counter.rs).
 *
 * All frames are in `totals`. What finds no place in `verdicts`, which is bounded, is told by the difference.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/signature.h"
#include "include/verdicts.h"

/* enum xdp_buff_flags of the kernel: there are further buffers. */
#define HAS_FRAGS 1

#define KERNEL __attribute__((preserve_access_index))

struct net_device {
	int ifindex;
} KERNEL;

struct xdp_rxq_info {
	struct net_device *dev;
} KERNEL;

struct xdp_buff {
	void *data;
	void *data_end;
	struct xdp_rxq_info *rxq;
	__u32 flags;
} KERNEL;

/* User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct verdict_key);
	__type(value, struct verdict_count);
} verdicts SEC(".maps");

/* By verdict. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VERDICTS);
	__type(key, __u32);
	__type(value, struct verdict_count);
} totals SEC(".maps");

static __always_inline struct verdict_count *count_of(const struct verdict_key *key)
{
	struct verdict_count *count = bpf_map_lookup_elem(&verdicts, key), empty = {};

	if (count)
		return count;
	/* Another CPU may have made it just now. */
	bpf_map_update_elem(&verdicts, key, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&verdicts, key);
}

/* The frame's last 18 bytes say whose it is. */
static __always_inline void whose(struct xdp_buff *xdp, void *data, void *data_end, struct verdict_key *key)
{
	__u32 raw[5] = {};
	struct signature found;

	if (bpf_core_field_exists(struct xdp_buff, flags) && BPF_CORE_READ(xdp, flags) & HAS_FRAGS) {
		key->kind = VERDICT_UNREAD;
		return;
	}
	if (data_end - data < SIGNATURE_LEN || bpf_probe_read_kernel(raw, SIGNATURE_LEN, data_end - SIGNATURE_LEN))
		return;
	if (raw[0] != bpf_htonl(SIGNATURE_MAGIC))
		return;
	signature_split(&found, ((__u64)bpf_ntohl(raw[1]) << 32) | bpf_ntohl(raw[2]));
	key->kind = VERDICT_SIGNED;
	key->stream = found.stream;
}

SEC("fexit/program")
int judged(__u64 *ctx)
{
	struct xdp_buff *xdp = (struct xdp_buff *)ctx[0];
	struct verdict_key key = {.verdict = (__u32)ctx[1]};
	void *data = BPF_CORE_READ(xdp, data), *data_end = BPF_CORE_READ(xdp, data_end);
	__u64 bytes = data_end - data;
	struct verdict_count *count;
	__u32 place;

	key.ifindex = BPF_CORE_READ(xdp, rxq, dev, ifindex);
	whose(xdp, data, data_end, &key);
	place = key.verdict < VERDICTS ? key.verdict : VERDICTS - 1;
	count = bpf_map_lookup_elem(&totals, &place);
	if (count) {
		count->frames++;
		count->bytes += bytes;
	}
	count = count_of(&key);
	if (count) {
		count->frames++;
		count->bytes += bytes;
	}
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
