// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counts the frames that the kernel drops, where it drops them, for what reason, and whose they were.
 *
 * The program hangs on the tracepoint skb:kfree_skb, which every drop of a socket buffer goes through, and on those of XDP that tell
 * of frames without one. Nothing goes to user space for a drop: counts are kept per CPU, in a hash table by what is to be told apart
 * (struct drop_key). Tables are bounded. What finds no place in the first is counted by function and reason alone, what finds none
 * there in `totals`: so every drop is in exactly one of the three.
 *
 * A frame with a signature at its end (signature.h) is told by its stream. The signature is looked for where the frame ends, not
 * behind headers, so it is found wherever a frame is dropped.
 *
 * The kernel's structures are declared here with the members that are read; where those lie is found at load time (CO-RE). User
 * space sets the constants before loading (crates/drops/src/loader.rs), and the verifier removes what they switch off.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/drops.h"
#include "include/signature.h"
#include "include/tick.h"

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PROTOCOL_ICMPV6 58
#define PROTOCOL_SCTP 132
#define NO_HEADER 0xffff
/* So much may a sender stamp ahead of its time. */
#define AHEAD_NS 100000000ll

#define KERNEL __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	char name[16];
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

struct sock_common {
	possible_net_t skc_net;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct dst_entry {
	struct net_device *dev;
} KERNEL;

typedef struct {
	int counter;
} atomic_t;

struct skb_shared_info {
	unsigned short gso_segs;
	struct sk_buff *frag_list;
	atomic_t dataref;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned long _skb_refdst;
	unsigned int len;
	unsigned int data_len;
	__u16 mac_header;
	__u16 network_header;
	__be16 protocol;
	int skb_iif;
	__u8 cloned : 1;
	unsigned int tail;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} KERNEL;

struct bpf_prog;

/* How many values the tracepoint gives: 2 before Linux 5.17, then with the reason, since 6.11 with the receiving socket. */
const volatile __u32 arguments = 4;
/* 1: frames in several buffers are read by bpf_dynptr_from_skb (Linux 6.12). */
const volatile __u32 read_buffers = 0;
/* Only of this interface and this network namespace; 0: of all. */
const volatile __u32 only_interface = 0;
const volatile __u32 only_namespace = 0;
/* 1: a signature is ours if its frame left since `began` (modulo 2^48, by CLOCK_TAI if `tai_clock`); else all are. */
const volatile __u32 only_since = 0;
const volatile __u32 tai_clock = 0;
const volatile __u64 began = 0;

/*
 * Meters drop what they have counted: no loss, and at any rate. What is freed at these addresses, at one of these interfaces, is
 * passed over.
 */
const volatile __u64 meter_from = 0;
const volatile __u64 meter_to = 0;
const volatile __u32 meter_interfaces[METERS] = {};
const volatile __u32 meter_namespaces[METERS] = {};

/*
 * A frame that a program of XDP aborts is told twice where it lies in a socket buffer (veth, generic XDP): by xdp_exception, and where
 * it is freed. From where to where the functions are that free it; 0: not known.
 */
const volatile __u64 xdp_frees_from[XDP_FREES] = {};
const volatile __u64 xdp_frees_to[XDP_FREES] = {};

/* 1: frames are copied for examples. */
const volatile __u32 examples = 0;

/* User space sets max_entries of both. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct drop_key);
	__type(value, struct drop_count);
} drops SEC(".maps");

/* What found no place in `drops`: the same keys, without what is told of the frame. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct drop_key);
	__type(value, struct drop_count);
} coarse SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct drop_totals);
} totals SEC(".maps");

/* Read when all is over: what finds no room is not kept. User space sets max_entries of both. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} kept SEC(".maps");

/* How many of a function and reason are kept. */
struct cause {
	__u64 location;
	__u64 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct cause);
	__type(value, __u32);
} kept_of SEC(".maps");

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags, struct bpf_dynptr *out) __ksym __weak;

/* What is read of a frame. */
struct frame {
	__u64 sequence;
	__u64 frames;
	__u64 bytes;
	bool copy;
};

/* Everything that is added to a count at once. */
static __always_inline void add(struct drop_count *count, const struct frame *frame, __u64 now, bool is_signed)
{
	if (!count->frames && !count->copies)
		count->first_ns = now;
	count->last_ns = now;
	if (frame->copy) {
		count->copies += frame->frames;
		return;
	}
	if (is_signed) {
		if (!count->frames) {
			count->first_sequence = frame->sequence;
			count->lowest = frame->sequence;
			count->highest = frame->sequence;
		}
		count->last_sequence = frame->sequence;
		if (frame->sequence < count->lowest)
			count->lowest = frame->sequence;
		if (frame->sequence > count->highest)
			count->highest = frame->sequence;
	}
	count->frames += frame->frames;
	count->bytes += frame->bytes;
}

/* The count of `key`, made if there is room. */
static __always_inline struct drop_count *count_of(void *map, const struct drop_key *key, struct net_device *dev)
{
	struct drop_count *count = bpf_map_lookup_elem(map, key), empty;

	if (count)
		return count;
	__builtin_memset(&empty, 0, sizeof(empty));
	if (dev)
		bpf_probe_read_kernel(empty.name, sizeof(empty.name), &dev->name);
	/* Another CPU may have made it just now. */
	bpf_map_update_elem(map, key, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* Whether there is room for one more example of this cause. */
static __always_inline bool is_wanted(const struct drop_key *key)
{
	struct cause cause = {.location = key->location, .reason = key->reason};
	__u32 *kept = bpf_map_lookup_elem(&kept_of, &cause), none = 0;

	if (!kept) {
		bpf_map_update_elem(&kept_of, &cause, &none, BPF_NOEXIST);
		kept = bpf_map_lookup_elem(&kept_of, &cause);
	}
	/* Several CPUs may keep a few more. */
	return kept && (*kept)++ < EXAMPLES_OF_CAUSE;
}

/* Keeps what lies in the frame's first buffer, if it is one of the first of its key on this CPU. */
static __always_inline void keep(const struct drop_key *key, struct sk_buff *skb, struct drop_totals *sums)
{
	struct drop_count *count = bpf_map_lookup_elem(&drops, key);
	struct drop_example *example;
	__u32 from, in_buffer, tail;
	unsigned char *head;

	if ((count && count->frames > EXAMPLES_OF_KEY) || !is_wanted(key))
		return;
	example = bpf_ringbuf_reserve(&kept, sizeof(*example), 0);
	if (!example) {
		sums->not_kept++;
		return;
	}
	head = skb->head;
	tail = skb->tail;
	from = skb->mac_header;
	example->key = *key;
	example->time = bpf_ktime_get_ns();
	example->headless = from == NO_HEADER;
	if (from == NO_HEADER)
		from = skb->network_header ? skb->network_header : (__u32)(skb->data - head);
	in_buffer = tail > from ? tail - from : 0;
	example->length = in_buffer + skb->data_len;
	example->unused = 0;
	if (in_buffer > EXAMPLE)
		in_buffer = EXAMPLE;
	if (bpf_probe_read_kernel(example->data, in_buffer, head + from))
		in_buffer = 0;
	example->captured = in_buffer;
	bpf_ringbuf_submit(example, 0);
}

static __always_inline void count(struct drop_key *key, const struct frame *frame, struct net_device *dev,
				  struct drop_totals *sums)
{
	bool is_signed = key->kind == DROP_SIGNED || key->kind == DROP_SIGNED_BY_OTHERS;
	struct drop_count *place = count_of(&drops, key, dev);

	if (!place) {
		key->stream = 0;
		key->ethertype = 0;
		key->port = 0;
		key->protocol = 0;
		key->ifindex = 0;
		is_signed = false;
		place = count_of(&coarse, key, NULL);
	}
	if (place)
		add(place, frame, sums->now, is_signed);
	else
		sums->unlisted += frame->frames;
}

static __always_inline __u32 namespace_of_device(struct net_device *dev)
{
	struct net *net = dev->nd_net.net;

	return net ? net->ns.inum : 0;
}

static __always_inline __u32 namespace_of_socket(struct sock *sk)
{
	struct net *net = sk ? BPF_CORE_READ(sk, __sk_common.skc_net.net) : NULL;

	return net ? BPF_CORE_READ(net, ns.inum) : 0;
}

/*
 * Where the frame was. Its device's place holds something else while the frame is in a UDP socket's hands: that reads as none
 * (no namespace has the number 0). Then the device that it came in by is told, and the namespace of the socket or the route.
 */
static __always_inline struct net_device *place_of(struct sk_buff *skb, struct sock *rx, struct drop_key *key)
{
	struct net_device *dev = skb->dev, *routed;
	unsigned long route;

	/* The kernel's addresses have the highest bit. */
	if ((long)dev < 0) {
		key->netns = namespace_of_device(dev);
		if (key->netns) {
			key->ifindex = dev->ifindex;
			return dev;
		}
	}
	key->ifindex = skb->skb_iif;
	key->netns = namespace_of_socket(rx);
	if (!key->netns)
		key->netns = namespace_of_socket(BPF_CORE_READ(skb, sk));
	route = skb->_skb_refdst & ~1ul;
	if (!key->netns && route) {
		routed = BPF_CORE_READ((struct dst_entry *)route, dev);
		key->netns = BPF_CORE_READ(routed, nd_net.net, ns.inum);
	}
	return NULL;
}

/* The IP header is where the frame says, or else behind its Ethernet header, or where its data begins: only what begins with the
 * version is one. Reads as much as the ports need; there are always as many bytes in the buffer, behind its end if need be. */
static __always_inline bool ip_header(struct sk_buff *skb, const unsigned char *head, __u8 version, __u8 *out, __u32 size)
{
	__u32 at = skb->network_header, mac = skb->mac_header;

	if (at && at != NO_HEADER && !bpf_probe_read_kernel(out, size, head + at) && out[0] >> 4 == version)
		return true;
	if (mac != NO_HEADER && !bpf_probe_read_kernel(out, size, head + mac + ETH_HLEN) && out[0] >> 4 == version)
		return true;
	return !bpf_probe_read_kernel(out, size, skb->data) && out[0] >> 4 == version;
}

static __always_inline __u16 port_at(const __u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* Protocol and port of an ordinary frame. True if it is an ICMP error, whose end is that of the frame it is about. */
static __always_inline bool describe(struct sk_buff *skb, const unsigned char *head, struct drop_key *key)
{
	__u8 bytes[44];
	__u16 port = 0;
	__u8 type = 0;
	bool first = true;

	__builtin_memset(bytes, 0, sizeof(bytes));
	key->ethertype = bpf_ntohs(skb->protocol);
	if (key->ethertype == ETH_P_IP) {
		if (!ip_header(skb, head, 4, bytes, sizeof(bytes)))
			return false;
		key->protocol = bytes[9];
		first = !(bytes[6] & 0x1f) && !bytes[7];
		/* Behind options nothing is looked for: so few have any. */
		if ((bytes[0] & 0xf) == 5 && first) {
			type = bytes[20];
			port = port_at(bytes + 22);
		}
		if (key->protocol == PROTOCOL_ICMP)
			return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
	} else if (key->ethertype == ETH_P_IPV6) {
		if (!ip_header(skb, head, 6, bytes, sizeof(bytes)))
			return false;
		key->protocol = bytes[6];
		type = bytes[40];
		port = port_at(bytes + 42);
		if (key->protocol == PROTOCOL_ICMPV6)
			return type < 128;
	}
	if (key->protocol == PROTOCOL_TCP || key->protocol == PROTOCOL_UDP || key->protocol == PROTOCOL_SCTP)
		key->port = port;
	return false;
}

/* The frame's last 18 bytes. */
static __always_inline bool last_bytes(struct sk_buff *skb, const unsigned char *head, struct drop_totals *sums,
				       __u32 *raw)
{
	__u32 length = skb->len, in_buffers = skb->data_len, tail;
	__u64 place[2];

	if (!in_buffers) {
		tail = skb->tail;
		return tail >= SIGNATURE_LEN && !bpf_probe_read_kernel(raw, SIGNATURE_LEN, head + tail - SIGNATURE_LEN);
	}
	if (length < SIGNATURE_LEN)
		return false;
	if (read_buffers && bpf_ksym_exists(bpf_dynptr_from_skb)) {
		if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, (struct bpf_dynptr *)place))
			return false;
		return !bpf_dynptr_read(raw, SIGNATURE_LEN, (struct bpf_dynptr *)place, length - SIGNATURE_LEN, 0);
	}
	sums->unread++;
	return false;
}

/* Whether a frame that was stamped so can have left in this run. One without a stamp can. */
static __always_inline bool is_of_this_run(__u64 time, __u64 now)
{
	if (!only_since || !time)
		return true;
	if (tai_clock)
		now = bpf_ktime_get_tai_ns();
	return signature_elapsed(began, time) >= 0 && signature_elapsed(time, now) >= -AHEAD_NS;
}

static __always_inline void read_signature(struct sk_buff *skb, const unsigned char *head, struct drop_totals *sums,
					   struct drop_key *key, struct frame *frame)
{
	struct signature found;
	__u32 raw[5] = {};

	if (!last_bytes(skb, head, sums, raw) || raw[0] != bpf_htonl(SIGNATURE_MAGIC))
		return;
	signature_split(&found, ((__u64)bpf_ntohl(raw[1]) << 32) | bpf_ntohl(raw[2]));
	found.time = ((__u64)bpf_ntohl(raw[3]) << 16) | bpf_ntohs(*(__u16 *)&raw[4]);
	key->kind = is_of_this_run(found.time, sums->now) ? DROP_SIGNED : DROP_SIGNED_BY_OTHERS;
	key->stream = found.stream;
	frame->sequence = found.sequence;
}

/*
 * How many frames of the wire it stands for, and whether another copy of it is still held: then the frame is not lost by this.
 * TCP holds the payload of what it sends, for retransmission, which is no copy of the frame; the upper half of `dataref` counts those.
 */
static __always_inline void read_shared(struct sk_buff *skb, const unsigned char *head, struct frame *frame)
{
	struct skb_shared_info *shared = (void *)(head + skb->end);
	__u32 references = BPF_CORE_READ(shared, dataref.counter);
	__u16 segments = BPF_CORE_READ(shared, gso_segs);

	/* Parts in a list are freed one by one, and counted then. */
	if (segments > 1 && !BPF_CORE_READ(shared, frag_list))
		frame->frames = segments;
	frame->copy = BPF_CORE_READ_BITFIELD(skb, cloned) && (references & 0xffff) - (references >> 16) != 1;
}

static __always_inline bool is_dropped_by_a_meter(struct sk_buff *skb, __u64 location)
{
	struct net_device *dev = skb->dev;
	__u32 ifindex, netns;

	if (location - meter_from >= meter_to - meter_from || (long)dev >= 0)
		return false;
	ifindex = dev->ifindex;
	netns = namespace_of_device(dev);
#pragma unroll
	for (int i = 0; i < METERS; i++) {
		if (meter_interfaces[i] == ifindex && meter_namespaces[i] == netns)
			return true;
	}
	return false;
}

static __always_inline bool is_asked_for(const struct drop_key *key)
{
	if (only_namespace && key->netns != only_namespace)
		return false;
	return !only_interface || key->ifindex == only_interface;
}

/* The sums of this CPU, with the time of this tick: the exact one costs 33 ns on a virtual machine. */
static __always_inline struct drop_totals *sums_now(void)
{
	__u32 zero = 0;
	struct drop_totals *sums = bpf_map_lookup_elem(&totals, &zero);

	if (sums)
		sums->now = time_by_tick(&sums->tick, sums->now);
	return sums;
}

/* Whether an address is in a function that frees frames in socket buffers for verdicts of XDP. */
static __always_inline bool frees_for_xdp(__u64 location)
{
#pragma unroll
	for (int i = 0; i < XDP_FREES; i++) {
		if (location - xdp_frees_from[i] < xdp_frees_to[i] - xdp_frees_from[i])
			return true;
	}
	return false;
}

SEC("tp_btf/kfree_skb")
int freed(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct frame frame = {.frames = 1};
	struct sock *rx = NULL;
	struct drop_totals *sums;
	struct net_device *dev;
	struct drop_key key;
	unsigned char *head;
	bool is_error;

	if (is_dropped_by_a_meter(skb, ctx[1]))
		return 0;
	__builtin_memset(&key, 0, sizeof(key));
	key.location = ctx[1];
	if (arguments > 2)
		key.reason = ctx[2];
	if (arguments > 3)
		rx = (struct sock *)ctx[3];
	dev = place_of(skb, rx, &key);
	sums = sums_now();
	if (!sums)
		return 0;
	/* Told by its exception, which was not counted. */
	if (sums->verdict && frees_for_xdp(key.location)) {
		key.location = DROP_AT_EXCEPTION;
		key.reason = sums->verdict - 1;
		sums->verdict = 0;
	}
	if (!is_asked_for(&key))
		return 0;
	head = skb->head;
	frame.bytes = skb->len;
	is_error = describe(skb, head, &key);
	if (!dev && !key.ethertype)
		key.kind = DROP_LOCAL;
	else if (!is_error)
		read_signature(skb, head, sums, &key, &frame);
	read_shared(skb, head, &frame);
	if (examples && key.kind != DROP_LOCAL) {
		/* Counting may take from the key what it has no room for. */
		struct drop_key whole = key;

		count(&key, &frame, dev, sums);
		keep(&whole, skb, sums);
		return 0;
	}
	count(&key, &frame, dev, sums);
	return 0;
}

/* Frames without a socket buffer: what the tracepoints of XDP tell. The reason is theirs, the "function" is their number. */
static __always_inline int count_xdp(__u64 which, __u32 reason, struct net_device *dev, __u64 frames)
{
	struct frame frame = {.frames = frames};
	struct drop_totals *sums;
	struct drop_key key;

	__builtin_memset(&key, 0, sizeof(key));
	key.location = which;
	key.reason = reason;
	key.kind = DROP_XDP;
	key.netns = namespace_of_device(dev);
	key.ifindex = dev->ifindex;
	if (!frames || !is_asked_for(&key))
		return 0;
	sums = sums_now();
	if (sums)
		count(&key, &frame, dev, sums);
	return 0;
}

/* A frame in a socket buffer is told where it is freed, at once and on this CPU: there it is known whose it is. */
SEC("tp_btf/xdp_exception")
int exception(__u64 *ctx)
{
	struct drop_totals *sums;
	__u64 callers[12] = {};
	long bytes = 0;

	if (xdp_frees_to[0])
		bytes = bpf_get_stack(ctx, callers, sizeof(callers), 0);
#pragma unroll
	for (int i = 0; i < 12; i++) {
		if (bytes > i * 8 && frees_for_xdp(callers[i])) {
			sums = sums_now();
			if (sums)
				sums->verdict = ctx[2] + 1;
			return 0;
		}
	}
	return count_xdp(DROP_AT_EXCEPTION, ctx[2], (struct net_device *)ctx[0], 1);
}

SEC("tp_btf/xdp_bulk_tx")
int bulk(__u64 *ctx)
{
	return count_xdp(DROP_AT_BULK_TX, -(__s32)ctx[3], (struct net_device *)ctx[0], (__u32)ctx[2]);
}

/* To a device: told by the one that did not take them. */
SEC("tp_btf/xdp_devmap_xmit")
int devmap(__u64 *ctx)
{
	return count_xdp(DROP_AT_DEVMAP_XMIT, -(__s32)ctx[4], (struct net_device *)ctx[1], (__u32)ctx[3]);
}

SEC("tp_btf/xdp_redirect_err")
int redirect(__u64 *ctx)
{
	return count_xdp(DROP_AT_REDIRECT, -(__s32)ctx[3], (struct net_device *)ctx[0], 1);
}

char _license[] SEC("license") = "Dual MIT/GPL";
