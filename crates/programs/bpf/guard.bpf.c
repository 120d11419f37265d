// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guard: keeps what a server says on our own TCP connections from the host's stack, which knows nothing of them and
 * would reset them. It is attached at TC ingress (tcx), behind the packet sockets through which they are heard, and in
 * front of everything else. All other traffic passes untouched.
 *
 * Whoever holds the link holds the guard: it goes with its process, however that ends. crates/live/src/guard.rs loads it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/headers.h"

#define TCX_NEXT -1
#define TCX_DROP 2

/* A connection as its server's segments show it. IPv4 addresses stand in the last four bytes, the others are zero. */
struct connection {
	__be32 source[4];
	__be32 destination[4];
	__be16 source_port;
	__be16 destination_port;
};

/* User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct connection);
	__type(value, __u64);
} connections SEC(".maps");

SEC("tcx/ingress")
int guard(struct __sk_buff *skb)
{
	struct connection key = {};
	struct ipv4 v4;
	struct ipv6 v6;
	__u32 at = ETH_HLEN;

	/* Ours carry no tag. */
	if (skb->vlan_present)
		return TCX_NEXT;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, at, &v4, sizeof(v4)) || v4.protocol != IPPROTO_TCP ||
		    (v4.fragment & bpf_htons(IPV4_OFFSET_MASK)))
			return TCX_NEXT;
		key.source[3] = v4.source;
		key.destination[3] = v4.destination;
		at += (v4.version_ihl & 0xf) * 4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, at, &v6, sizeof(v6)) || v6.next_header != IPPROTO_TCP)
			return TCX_NEXT;
		__builtin_memcpy(key.source, v6.source.words, sizeof(key.source));
		__builtin_memcpy(key.destination, v6.destination.words, sizeof(key.destination));
		at += sizeof(v6);
	} else {
		return TCX_NEXT;
	}
	if (bpf_skb_load_bytes(skb, at, &key.source_port, 4))
		return TCX_NEXT;
	return bpf_map_lookup_elem(&connections, &key) ? TCX_DROP : TCX_NEXT;
}

char _license[] SEC("license") = "MIT OR Apache-2.0";
