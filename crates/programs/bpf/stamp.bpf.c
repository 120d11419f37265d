// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A session-reflector of STAMP (RFC 8762) in unauthenticated mode: answers test packets by XDP_TX, and stamps their arrival
 * and their departure here, so that no wake-up of a process lies in between. Senders of TWAMP Light (RFC 5357 appendix I)
 * are answered, too.
 *
 * An answer has as many octets as what it answers, so that nobody's traffic grows by it; what is shorter than an
 * answer's fields is none of ours. Everything that is not answered passes to the host untouched and counted, but for
 * what exceeds the rate, which is dropped, lest the host answer it with an ICMP error.
 *
 * Time stamps are CLOCK_MONOTONIC, which a program can read on every kernel, and its distance from UTC and TAI, which user
 * space writes into a map. Slewing a clock changes CLOCK_MONOTONIC alike, so the distance changes only when
 * somebody sets the clock.
 *
 * Numbers are counted for each session in a hash map of bounded size. It is none that forgets its oldest entries by
 * itself: a session that began again from 0 would have lost packets that it did not lose. A session without room gets the
 * sender's numbers, as in stateless mode, and is counted. User space removes those that are long silent.
 *
 * crates/reflector/src/stamp/reference.rs is the same in Rust, for the tests.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/checksum.h"
#include "include/headers.h"
#include "include/stamp.h"
#include "include/tick.h"

/* In the first two bytes of an Ethernet address: it is that of a group. */
#define GROUP bpf_htons(0x0100)
/* Octets of an answer's fields, without and with the zeros at their end (RFC 5357 section 4.2.1, RFC 8762 section 4.3.1). */
#define LEAST 41
#define WHOLE 44
#define WORDS (WHOLE / 4)
/* From 1900 to 1970, in seconds. */
#define NTP_EPOCH 2208988800ULL
#define SECOND 1000000000ULL
/* In an error estimate: the clock is synchronised; time stamps are of PTP's format (RFC 8186). */
#define SYNCHRONISED 0x8000
#define PTP 0x4000
#define TTL 255
#define UDP_HEADER sizeof(struct udp)
/* A checksum is computed of no more than so many times so many octets: the packets of an MTU of 1500. */
#define CHUNK 64
#define CHUNKS 24

/* The compiler knows nothing of a value from here on: what it makes of loops over a packet is nothing for a verifier. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

struct udp {
	struct ports ports;
	__be16 length;
	__u16 checksum;
};

/* In the network's order. */
const volatile __u16 port = 0;
/* The interface's own address; frames to others are others'. */
const volatile __u16 own[3] = {};
/* 1: answers have the sender's numbers. */
const volatile __u32 stateless = 0;
/* 1: only to the sources in `sources`. */
const volatile __u32 listed = 0;
/* Nanoseconds between two packets at the highest rate; 0: any rate. So many may come early. */
const volatile __u64 interval_ns = 0;
const volatile __u64 burst_ns = 0;
/* 1: in the kernel's receive path, which completes checksums that are to be completed. */
const volatile __u32 generic = 0;
/* 1: frames may lie in several buffers (the program is loaded with BPF_F_XDP_HAS_FRAGS; Linux 5.18). */
const volatile __u32 multi_buffer = 0;

/* One entry for each CPU number; user space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stamped);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct stamp_clock);
} clocks SEC(".maps");

/* User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct stamp_session_key);
	__type(value, struct stamp_session);
} sessions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stamp_bucket);
} bucket SEC(".maps");

/* Who is answered, where not all are; user space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct stamp_source);
	__type(value, __u32);
} sources SEC(".maps");

/* The host's own addresses, where only packets to these are for it; user space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct stamp_address);
	__type(value, __u32);
} destinations SEC(".maps");

/* What becomes of a frame. */
enum fate { ANSWER, OTHER, TOO_SHORT, MALFORMED, FRAGMENT };

/* A test packet. */
struct packet {
	struct ether *ether;
	/* The header of IPv6 or IPv4. A verifier knows a flag's value, and not whether a pointer is NULL. */
	bool is_v6;
	void *ip;
	struct udp *udp;
	/* Octets that UDP carries. */
	__u32 octets;
};

/* Bytes of the frame from `at` on, in all its buffers. */
static __always_inline __u32 bytes_from(struct xdp_md *ctx, void *at)
{
	__u32 before = at - (void *)(long)ctx->data;

	if (multi_buffer)
		return bpf_xdp_get_buff_len(ctx) - before;
	return (void *)(long)ctx->data_end - (void *)(long)ctx->data - before;
}

/* The UDP header at `at` is one to this reflector. */
static __always_inline bool is_ours(void *at, void *end)
{
	struct udp *udp = at;

	return at + sizeof(*udp) <= end && udp->ports.destination == port;
}

static __always_inline enum fate find_ipv4(struct xdp_md *ctx, void *at, struct packet *packet)
{
	void *end = (void *)(long)ctx->data_end;
	__u32 header, length, source, destination;
	struct ipv4 *ip = at;

	if (at + sizeof(*ip) > end || ip->protocol != IPPROTO_UDP)
		return OTHER;
	header = (ip->version_ihl & 0xf) * 4;
	if (ip->version_ihl >> 4 != 4 || header < sizeof(*ip))
		return OTHER;
	/* A fragment that is not the first one has no ports. */
	if (ip->fragment & bpf_htons(IPV4_OFFSET_MASK) || !is_ours(at + header, end))
		return OTHER;
	if (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return FRAGMENT;
	packet->is_v6 = false;
	packet->ip = ip;
	packet->udp = at + header;
	length = bpf_ntohs(ip->length);
	if (length > bytes_from(ctx, at) || length < header + bpf_ntohs(packet->udp->length))
		return MALFORMED;
	/* Nobody is at 0.0.0.0/8, 127.0.0.0/8, and from 224.0.0.0 on (RFC 6890). */
	source = bpf_ntohl(ip->source) >> 24;
	destination = bpf_ntohl(ip->destination) >> 24;
	if (!source || source == 127 || source >= 224 || !destination || destination == 127 || destination >= 224)
		return MALFORMED;
	return ANSWER;
}

static __always_inline bool is_group(const union ipv6_address *address)
{
	return (address->words[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

static __always_inline enum fate find_ipv6(struct xdp_md *ctx, void *at, struct packet *packet)
{
	void *end = (void *)(long)ctx->data_end;
	struct ipv6 *ip = at;
	__u32 length;

	if (at + sizeof(*ip) > end || ip->next_header != IPPROTO_UDP)
		return OTHER;
	if ((ip->version_flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000))
		return OTHER;
	if (!is_ours(at + sizeof(*ip), end))
		return OTHER;
	packet->is_v6 = true;
	packet->ip = ip;
	packet->udp = at + sizeof(*ip);
	length = bpf_ntohs(ip->length);
	if (length + sizeof(*ip) > bytes_from(ctx, at) || length < bpf_ntohs(packet->udp->length))
		return MALFORMED;
	/* Without a checksum there is no UDP (RFC 8200 section 8.1), nor anybody at :: and at groups. */
	if (!packet->udp->checksum || !(ip->source.parts[0] | ip->source.parts[1]))
		return MALFORMED;
	if (is_group(&ip->source) || is_group(&ip->destination))
		return MALFORMED;
	return ANSWER;
}

/*
 * Words of an answer: its receive time stamp is within a second of its time stamp. A test packet has zeros there or, in TWAMP,
 * anything, which is so by chance once in two thousand million packets. Two reflectors would answer each other for ever.
 */
static __always_inline bool is_answer(const __be32 *words)
{
	__u32 apart = bpf_ntohl(words[4]) - bpf_ntohl(words[1]);

	return (words[4] | words[5]) && apart + 1 <= 2;
}

static __always_inline enum fate find(struct xdp_md *ctx, struct packet *packet)
{
	void *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = at;
	enum fate fate;
	__be16 type;

	if (at + sizeof(*ether) > end)
		return OTHER;
	/* Groups and other hosts. */
	for (int i = 0; i < 3; i++)
		if (ether->destination[i] != own[i])
			return OTHER;
	packet->ether = ether;
	type = ether->type;
	at = behind_tags(at + sizeof(*ether), end, &type);
	if (!at)
		return OTHER;
	if (type == bpf_htons(ETH_P_IP))
		fate = find_ipv4(ctx, at, packet);
	else if (type == bpf_htons(ETH_P_IPV6))
		fate = find_ipv6(ctx, at, packet);
	else
		return OTHER;
	if (fate != ANSWER)
		return fate;
	packet->octets = bpf_ntohs(packet->udp->length);
	if (packet->octets < UDP_HEADER || !packet->udp->ports.source || ether->source[0] & GROUP)
		return MALFORMED;
	packet->octets -= UDP_HEADER;
	return packet->octets < LEAST ? TOO_SHORT : ANSWER;
}

static __always_inline void addresses_of(const struct packet *packet, __be32 source[4], __be32 destination[4])
{
	struct ipv4 *v4 = packet->ip;
	struct ipv6 *v6 = packet->ip;

	if (packet->is_v6) {
		for (int i = 0; i < 4; i++) {
			source[i] = v6->source.words[i];
			destination[i] = v6->destination.words[i];
		}
	} else {
		source[0] = source[1] = destination[0] = destination[1] = 0;
		source[2] = destination[2] = bpf_htonl(0xffff);
		source[3] = v4->source;
		destination[3] = v4->destination;
	}
}

static __always_inline bool is_allowed(const struct stamp_session_key *key)
{
	struct stamp_source from = {.prefix = 128};

	if (!listed)
		return true;
	for (int i = 0; i < 4; i++)
		from.address[i] = key->source[i];
	return bpf_map_lookup_elem(&sources, &from);
}

/* A router is not to answer what it passes on. */
static __always_inline bool is_to_us(const struct packet *packet, const struct stamp_clock *clock,
				     const struct stamp_session_key *key)
{
	if (!(clock->own_only & (packet->is_v6 ? STAMP_OWN_V6 : STAMP_OWN_V4)))
		return true;
	return bpf_map_lookup_elem(&destinations, key->destination);
}

/* Packets are due at equal intervals, and may be early by what was saved up. */
static __always_inline bool is_within_rate(__u64 now)
{
	struct stamp_bucket *all;
	bool within = false;
	__u32 zero = 0;

	if (!interval_ns)
		return true;
	all = bpf_map_lookup_elem(&bucket, &zero);
	if (!all)
		return false;
	bpf_spin_lock(&all->lock);
	if (all->due_ns < now)
		all->due_ns = now;
	if (all->due_ns - now <= burst_ns) {
		all->due_ns += interval_ns;
		within = true;
	}
	bpf_spin_unlock(&all->lock);
	return within;
}

static __always_inline __u32 next_of(struct stamp_session *session, __u64 now)
{
	__u32 number;

	bpf_spin_lock(&session->lock);
	number = session->next++;
	session->last_ns = now;
	bpf_spin_unlock(&session->lock);
	return number;
}

/* The number of an answer, in the network's order; `senders` is what it answers. */
static __always_inline __be32 number_of(const struct stamp_session_key *key, __u64 now, __be32 senders,
					struct stamped *sums)
{
	struct stamp_session begun = {.next = 1, .last_ns = now}, *session;

	session = bpf_map_lookup_elem(&sessions, key);
	if (session)
		return bpf_htonl(next_of(session, now));
	if (!bpf_map_update_elem(&sessions, key, &begun, BPF_NOEXIST)) {
		sums->sessions++;
		return 0;
	}
	/* Another CPU was faster, or there is no room. */
	session = bpf_map_lookup_elem(&sessions, key);
	if (session)
		return bpf_htonl(next_of(session, now));
	sums->without_room++;
	return senders;
}

/* A time since 1970 in the format of NTP (RFC 5905 section 6) or of PTP, truncated (RFC 8186 section 2). */
static __always_inline void write_time(__be32 *words, __u64 ns, bool ptp)
{
	__u64 seconds = ns / SECOND, rest = ns % SECOND;

	words[0] = bpf_htonl(ptp ? seconds : seconds + NTP_EPOCH);
	words[1] = bpf_htonl(ptp ? rest : (rest << 32) / SECOND);
}

static __always_inline struct stamp_clock *clock_now(void)
{
	__u32 which = 2;
	struct stamp_clock *clock = bpf_map_lookup_elem(&clocks, &which);

	if (!clock)
		return NULL;
	which = clock->at & 1;
	return bpf_map_lookup_elem(&clocks, &which);
}

/* The sum of what stands under the checksum of UDP before its header. */
static __always_inline __u64 pseudo_sum(const struct packet *packet)
{
	__u64 sum = (__u64)bpf_htons(IPPROTO_UDP) + packet->udp->length;
	struct ipv4 *v4 = packet->ip;
	struct ipv6 *v6 = packet->ip;

	if (packet->is_v6)
		return sum + (__u32)bpf_csum_diff(NULL, 0, v6->source.words, 32, 0);
	return sum + (__u32)bpf_csum_diff(NULL, 0, &v4->source, 8, 0);
}

/*
 * The sum of so many octets of the frame from `from` on, in 16 bits; below 0 if they do not lie in the first buffer, or are too many. A
 * function of its own, which a verifier looks at once and not for every way that leads to it.
 */
__noinline int sum_of(struct xdp_md *ctx, __u32 from, __u32 octets)
{
	void *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 sum = 0;

	/* Ethernet, tags and the longest header of IPv4. */
	if (from > ETH_HLEN + MAX_TAGS * sizeof(struct tag) + 60)
		return -1;
	at += from;
	for (int i = 0; i < CHUNKS; i++) {
		OPAQUE(at);
		if (octets < CHUNK || at + CHUNK > end)
			break;
		sum += (__u32)bpf_csum_diff(NULL, 0, at, CHUNK, 0);
		at += CHUNK;
		octets -= CHUNK;
	}
	for (int i = 0; i < CHUNK / 2; i++) {
		OPAQUE(at);
		if (octets < 2 || at + 2 > end)
			break;
		sum += *(__u16 *)at;
		at += 2;
		octets -= 2;
	}
	OPAQUE(at);
	if (octets == 1 && at + 1 <= end) {
		sum += bpf_htons(*(__u8 *)at << 8);
		octets = 0;
	}
	return octets ? -1 : folded(sum);
}

/*
 * Corrects the checksum of UDP after its words changed from `before` to `after`; a wrong one stays wrong. `pseudo` is the sum of
 * what stands before the header.
 *
 * In a packet of this host that no wire has seen the checksum may be yet to be computed, and the sum of what stands before
 * the header is in its place. On its way out of the kernel's receive path it will be; a driver that is handed a frame
 * by XDP does not know.
 */
static __always_inline void correct(struct xdp_md *ctx, struct packet *packet, __be32 *before, __be32 *after,
				    __u64 pseudo)
{
	struct udp *udp = packet->udp;
	__u16 old = udp->checksum;
	__u32 from;
	int sum;

	if (!old)
		return;
	udp->checksum = checksum_of((__u32)bpf_csum_diff(before, WHOLE, after, WHOLE, (__u16)~old));
	if (old != folded(pseudo))
		return;
	from = (void *)udp - (void *)(long)ctx->data;
	sum = sum_of(ctx, from, packet->octets + UDP_HEADER);
	/* One in 65536 that is computed looks so, too: it is right now as it was before. */
	if (sum >= 0 && folded(pseudo + sum) == 0xffff)
		return;
	if (generic)
		udp->checksum = old;
	else if (sum >= 0)
		/* The sum has the checksum as it is now. */
		udp->checksum = checksum_of(pseudo + sum + (__u16)~udp->checksum);
}

/* The fields' words of a test packet. The last one of a packet that is shorter has what there is. */
static __always_inline bool read_words(struct xdp_md *ctx, const struct packet *packet, __be32 *words)
{
	void *end = (void *)(long)ctx->data_end, *payload = packet->udp + 1;

	if (payload + LEAST > end)
		return false;
	for (int i = 0; i < WORDS - 1; i++)
		words[i] = ((__be32 *)payload)[i];
	if (packet->octets < WHOLE) {
		words[WORDS - 1] = bpf_htonl((__u32)((__u8 *)payload)[LEAST - 1] << 24);
		return true;
	}
	if (payload + WHOLE > end)
		return false;
	words[WORDS - 1] = ((__be32 *)payload)[WORDS - 1];
	return true;
}

static __always_inline void write_words(struct xdp_md *ctx, const struct packet *packet, const __be32 *words)
{
	void *end = (void *)(long)ctx->data_end, *payload = packet->udp + 1;

	if (payload + LEAST > end)
		return;
	for (int i = 0; i < WORDS - 1; i++)
		((__be32 *)payload)[i] = words[i];
	((__u8 *)payload)[LEAST - 1] = bpf_ntohl(words[WORDS - 1]) >> 24;
	if (packet->octets >= WHOLE && payload + WHOLE <= end)
		((__be32 *)payload)[WORDS - 1] = words[WORDS - 1];
}

/* Addresses, ports and the time to live. Gives back what the latter was. */
static __always_inline __u8 turn(struct packet *packet)
{
	struct ipv4 *v4 = packet->ip;
	struct ipv6 *v6 = packet->ip;
	__u16 before;
	__u8 ttl;

	for (int i = 0; i < 3; i++)
		SWAP(packet->ether->destination[i], packet->ether->source[i]);
	SWAP(packet->udp->ports.source, packet->udp->ports.destination);
	if (packet->is_v6) {
		ttl = v6->hop_limit;
		v6->hop_limit = TTL;
		SWAP(v6->source.parts[0], v6->destination.parts[0]);
		SWAP(v6->source.parts[1], v6->destination.parts[1]);
		return ttl;
	}
	/* The word of the time to live and the protocol, as it lies in memory. */
	before = *(__u16 *)&v4->ttl;
	ttl = v4->ttl;
	v4->ttl = TTL;
	/* RFC 1624, equation 3. No header is all zeros, so that a checksum of 0 may stand. */
	v4->checksum = ~folded((__u64)(__u16)~v4->checksum + (__u16)~before + *(__u16 *)&v4->ttl);
	SWAP(v4->source, v4->destination);
	return ttl;
}

/*
 * The identifier of the session (RFC 8972 section 3) in a test packet: that of one with zeros where the reflector's fields
 * will be. In a packet of TWAMP that has padding there, which may be different in each, these two octets are padding as well.
 */
static __always_inline __be16 ssid_of(const __be32 *words)
{
	__be32 any = 0;

	for (int i = 4; i < WORDS; i++)
		any |= words[i];
	return any ? 0 : bpf_htons(bpf_ntohl(words[3]) & 0xffff);
}

static __always_inline void key_of(const struct packet *packet, __be16 ssid, struct stamp_session_key *key)
{
	void *tags = &packet->ether->type;
	bool tagged = is_tag(packet->ether->type);

	addresses_of(packet, key->source, key->destination);
	key->source_port = packet->udp->ports.source;
	key->ssid = ssid;
	key->tags[0] = key->tags[1] = 0;
	/* What follows was found behind these. The identifier is in the lower twelve bits. */
	if (tagged) {
		key->tags[0] = ((struct tag *)(tags + 2))->control & bpf_htons(0xfff);
		if (is_tag(((struct tag *)(tags + 2))->type))
			key->tags[1] = ((struct tag *)(tags + 6))->control & bpf_htons(0xfff);
	}
}

/* The fields of the answer to `in` (RFC 8762 section 4.3.1), but for its time stamp and the sender's time to live. */
static __always_inline void fill(__be32 *out, const __be32 *in, __be32 number, __u16 estimate, __be16 ssid)
{
	out[0] = number;
	out[3] = bpf_htonl((__u32)estimate << 16 | bpf_ntohs(ssid));
	out[6] = in[0];
	out[7] = in[1];
	out[8] = in[2];
	out[9] = in[3] & bpf_htonl(0xffff0000);
}

/* Answers a test packet that arrived at `received`. */
static __always_inline int answer(struct xdp_md *ctx, struct packet *packet, struct stamped *sums, __u64 received)
{
	struct stamp_clock *clock = clock_now();
	__be32 in[WORDS], out[WORDS], number;
	struct stamp_session_key key;
	__u64 pseudo, ahead, now;
	__be16 ssid;
	__u16 estimate;
	bool ptp;

	if (!clock || !read_words(ctx, packet, in)) {
		sums->malformed++;
		return XDP_PASS;
	}
	ssid = ssid_of(in);
	key_of(packet, ssid, &key);
	if (!is_to_us(packet, clock, &key)) {
		sums->others++;
		return XDP_PASS;
	}
	if (is_answer(in)) {
		sums->answers++;
		return XDP_PASS;
	}
	if (!is_allowed(&key)) {
		sums->not_allowed++;
		return XDP_PASS;
	}
	if (!is_within_rate(received)) {
		sums->limited++;
		return XDP_DROP;
	}
	number = stateless ? in[0] : number_of(&key, received, in[0], sums);
	/* The sender's format; the answer's own estimate says which it is. */
	ptp = in[3] & bpf_htonl((__u32)PTP << 16);
	estimate = ptp ? clock->estimates >> 16 : clock->estimates;
	ahead = ptp ? clock->tai_ahead : clock->utc_ahead;
	/* Nobody has looked at the clock for a while: it may have been set. */
	if (received > clock->taken_ns + SECOND)
		estimate &= ~SYNCHRONISED;
	fill(out, in, number, estimate, ssid);
	write_time(&out[4], received + ahead, ptp);
	pseudo = pseudo_sum(packet);
	out[WORDS - 1] = bpf_htonl((__u32)turn(packet) << 24);
	now = bpf_ktime_get_ns();
	write_time(&out[1], now + ahead, ptp);
	write_words(ctx, packet, out);
	correct(ctx, packet, in, out, pseudo);
	return XDP_TX;
}

SEC("xdp")
int stamp(struct xdp_md *ctx)
{
	__u64 length = (void *)(long)ctx->data_end - (void *)(long)ctx->data, now;
	__u32 cpu = bpf_get_smp_processor_id();
	struct packet packet = {};
	struct stamped *sums;
	int verdict;

	sums = bpf_map_lookup_elem(&counters, &cpu);
	if (!sums)
		return XDP_PASS;
	now = time_by_tick(&sums->tick, sums->last_ns);
	if (multi_buffer)
		length = bpf_xdp_get_buff_len(ctx);
	sums->frames++;
	sums->bytes += length;
	if (!sums->first_ns)
		sums->first_ns = now;
	sums->last_ns = now;

	switch (find(ctx, &packet)) {
	case OTHER:
		sums->others++;
		return XDP_PASS;
	case TOO_SHORT:
		sums->too_short++;
		return XDP_PASS;
	case MALFORMED:
		sums->malformed++;
		return XDP_PASS;
	case FRAGMENT:
		sums->fragments++;
		return XDP_PASS;
	case ANSWER:
		break;
	}
	verdict = answer(ctx, &packet, sums, bpf_ktime_get_ns());
	if (verdict == XDP_TX) {
		sums->answered++;
		sums->answered_bytes += length;
	}
	return verdict;
}

/* No helper used here asks for a GPL-compatible licence. */
char _license[] SEC("license") = "MIT OR Apache-2.0";
