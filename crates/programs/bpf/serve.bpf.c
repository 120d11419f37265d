// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A TCP server that keeps no state: what it answers follows from the frame that it answers, which becomes the answer and goes back.
 *
 * Its initial sequence number is a keyed hash of the tuple, so the number that a client acknowledges says how much of the answer that
 * client has. Few numbers are right: whole answers, whole segments of the next one, and all of them with the FIN. Everything else is
 * answered by a RST as of a connection that is not there (RFC 9293, section 3.5.2).
 *
 * It sends nothing of its own accord and nothing again: that is the client's work. Two such servers end after at most three frames
 * whatever is said between them: a SYN with an ACK, a RST and a bare acknowledgement of all or of nothing are never answered, and each
 * answer to anything else acknowledges more than what it answers.
 *
 * The server of UDP answers the datagrams that are marked as requests, and nothing else, so that no answer is ever answered. Its answer says
 * what it saw of the request: so a client behind a NAT learns its translated tuple, and may have a datagram sent to that from here, through
 * another session (a relay), if this server relays: what a device still knows of a session shows when the other side sends first. A relay goes
 * only where a request came from, which the cookie shows, and is no longer than what asked for it; one that is refused is said to who asked.
 * Nor is an answer longer than its request, unless that was asked for, and then only to private addresses, unless all are allowed.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/arp.h"
#include "include/neighbour.h"
#include "include/sessions.h"
#include "include/siphash.h"
#include "include/tcp.h"

/* Bytes of the longest answer. */
#define MOST_ANSWER 65535
#define SEGMENTS 128

const volatile __be16 own_mac[3] = {};
/* In the network's byte order, of IPv4 the first word. */
const volatile __be32 listen[4] = {};
const volatile __be16 listen_port = 0;
/* The answer to so many requests closes a connection. */
const volatile __u32 requests = 1;
/* 1: the address is none of the host's own, and ARP or neighbour solicitations are answered for it. */
const volatile __u32 answers_for_address = 0;
/* The control word of the tag of frames that have one: of all that are sent, and as to the VLAN of all that are taken. */
const volatile __be16 tag_control = 0;
const volatile __u32 mss = TCP_MOST;
const volatile __u32 answer_length = 1;
/* Of a segment of the answer, but for the last. */
const volatile __u32 segment_length = TCP_MOST;
const volatile __u32 sums[SEGMENTS] = {};
const volatile __u8 answer[MOST_ANSWER + 1 + TCP_MOST] = {};
const volatile __u32 key[4] = {};
/* Of UDP: sends relays. */
const volatile __u32 relays = 0;
/* Of UDP: who may be answered with more bytes than were sent (`enum longer_answers`). */
const volatile __u32 longer = LONGER_NONE;
/* Of the interface, if answers go out by a redirect: a veth whose peer has no program of its own takes nothing that is sent by XDP_TX. */
const volatile __u32 redirect_to = 0;

/* One entry for each CPU number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct served_counts);
} counts SEC(".maps");

static __always_inline __u32 cookie(const struct arrived *in, __u32 sort)
{
	__u32 ports = (__u32)in->ports.source << 16 | in->ports.destination;
	__u32 source = in->source.words[0] ^ key[0], destination = in->destination.words[0] ^ key[1];

	if (sort & OVER_IPV6) {
		for (int i = 1; i < 4; i++) {
			source = mixed(source) ^ in->source.words[i];
			destination = mixed(destination) ^ in->destination.words[i];
		}
	}
	return mixed(mixed(source) + ports + mixed(destination));
}

/* What shows that a request came from there; 0 is none. */
static __always_inline __u16 relay_cookie(const struct arrived *in, __u32 sort)
{
	__u64 last = (__u32)in->ports.source << 16 | in->ports.destination;
	const __be32 *from = in->source.words, *to = in->destination.words;
	struct siphash hash;
	__u16 made;

	siphash_begin(&hash, (__u64)key[0] << 32 | key[1], (__u64)key[2] << 32 | key[3]);
	if (sort & OVER_IPV6) {
		siphash_take(&hash, (__u64)from[0] << 32 | from[1]);
		siphash_take(&hash, (__u64)from[2] << 32 | from[3]);
		siphash_take(&hash, (__u64)to[0] << 32 | to[1]);
		siphash_take(&hash, (__u64)to[2] << 32 | to[3]);
		made = siphash_end(&hash, last | 36ULL << 56);
	} else {
		siphash_take(&hash, (__u64)from[0] << 32 | to[0]);
		made = siphash_end(&hash, last | 12ULL << 56);
	}
	return made ? made : 1;
}

/* Addresses that are nobody's in the Internet: `is_private` of crates/job/src/kinds/clone/safety.rs is the same. */
static __always_inline bool is_private(const struct address *address, __u32 sort)
{
	__u32 first = bpf_ntohl(address->words[0]);

	if (sort & OVER_IPV6)
		return (first & 0xfe000000) == 0xfc000000 || (first & 0xffc00000) == 0xfe800000 || first == 0x20010db8 ||
		       (first == 0x20010002 && !(bpf_ntohl(address->words[1]) >> 16));
	return first >> 24 == 10 || first >> 20 == 0xac1 || first >> 16 == 0xc0a8 || first >> 16 == 0xa9fe || first >> 17 == 0x6309 ||
	       first >> 22 == 0x191 || first >> 8 == 0xc00002 || first >> 8 == 0xc63364 || first >> 8 == 0xcb0071;
}

static __always_inline int sent(struct served_counts *counts, __u32 frame)
{
	if (!frame) {
		counts->no_room++;
		return XDP_DROP;
	}
	counts->tx_frames++;
	counts->tx_bytes += frame;
	return redirect_to ? bpf_redirect(redirect_to, 0) : XDP_TX;
}

static __always_inline int bare(struct xdp_md *ctx, __u32 sort, struct served_counts *counts, struct segment *out)
{
	struct payload none = {};

	return sent(counts, write_segment(ctx, sort, out, &none, mss));
}

/* The segment of the answer that begins at `at`; `last`: the answer that closes. */
static __always_inline int piece(struct xdp_md *ctx, __u32 sort, struct served_counts *counts, struct segment *out, __u32 at, bool last)
{
	__u32 left = answer_length - at, length = left > segment_length ? segment_length : left;
	struct payload payload = {};
	__u64 begins = at;
	__u32 frame;

	OPAQUE(begins);
	if (begins > MOST_ANSWER)
		return XDP_DROP;
	payload.bytes = (const void *)(answer + begins);
	payload.length = length;
	payload.sum = sums[(at / segment_length) & (SEGMENTS - 1)];
	out->flags = left > segment_length ? TCP_ACK : TCP_ACK | TCP_PSH | (last ? TCP_FIN : 0);
	frame = write_segment(ctx, sort, out, &payload, mss);
	if (frame) {
		counts->segments++;
		counts->answer_bytes += length;
	}
	return sent(counts, frame);
}

/* It acknowledges what was never said. */
static __always_inline int stranger(struct xdp_md *ctx, __u32 sort, struct served_counts *counts, const struct arrived *in,
				    struct segment *out)
{
	counts->bad_cookies++;
	out->sequence = in->acknowledged;
	out->flags = TCP_RST;
	return bare(ctx, sort, counts, out);
}

/* A segment of a connection that has been opened, as the client says: `has` bytes of answers arrived there, FIN and all. */
static __always_inline int of_connection(struct xdp_md *ctx, __u32 sort, struct served_counts *counts, const struct arrived *in,
					 struct segment *out, __u32 has)
{
	__u32 length = answer_length ? answer_length : 1, answers = has / length, at = has % length;
	bool closes = in->flags & TCP_FIN, closed = answers >= requests, last = answers + 1 >= requests;

	/* Our FIN, or the answer to the client's, is one more. */
	if (closed ? at > 1 : at % segment_length && (at != 1 || in->payload || closes))
		return stranger(ctx, sort, counts, in, out);
	out->sequence = in->acknowledged;
	out->acknowledged = in->sequence + in->payload + closes;
	out->flags = TCP_ACK;
	if (!at && !closed && in->payload) {
		counts->request_bytes += in->payload;
		/* A request of several segments ends with a PSH. */
		if (!(in->flags & TCP_PSH) && !closes)
			return bare(ctx, sort, counts, out);
		counts->requests++;
		out->acknowledged -= closes;
		return piece(ctx, sort, counts, out, 0, last);
	}
	if (closes && (!at || closed)) {
		/* With the whole answer and our FIN, or before we closed. */
		counts->finished += closed ? at : answers > 0;
		out->flags |= closed && at ? 0 : TCP_FIN;
		return bare(ctx, sort, counts, out);
	}
	if (at && !closed && at % segment_length == 0 && !in->payload && !closes)
		return piece(ctx, sort, counts, out, at, last);
	/* An acknowledgement of all or of nothing, which asks for nothing. */
	if (in->payload || closes)
		counts->unexpected++;
	return XDP_DROP;
}

/* A datagram to the server. */
static __always_inline int datagram(struct xdp_md *ctx, __u32 sort, struct served_counts *counts, struct arrived *in, struct segment *out)
{
	struct payload payload = { .bytes = (const void *)answer, .length = answer_length, .sum = sums[0] };
	struct mark mark = {};
	__u32 frame;

	if (in->payload < mark_bytes(sort) || bpf_xdp_load_bytes(ctx, in->at, &mark, mark_bytes(sort)) ||
	    (mark.magic != MARK_REQUEST && mark.magic != MARK_RELAY)) {
		counts->unexpected++;
		return XDP_DROP;
	}
	if (mark.magic == MARK_RELAY) {
		__builtin_memcpy(&in->source, mark.address, sizeof(in->source));
		in->ports.source = mark.port;
		if (relays && relay_cookie(in, sort) == mark.cookie) {
			out->destination = in->source;
			out->ports.destination = mark.port;
			counts->relayed++;
			mark.magic = MARK_ANSWER;
		} else {
			counts->bad_cookies++;
			mark.magic = MARK_REFUSED;
		}
		payload.bytes = &mark;
		payload.length = mark_bytes(sort);
		payload.sum = sum_of_mark(&mark, sort);
	} else {
		counts->requests++;
		counts->request_bytes += in->payload;
		mark.magic = MARK_ANSWER;
		mark.port = in->ports.source;
		mark.cookie = relays ? relay_cookie(in, sort) : 0;
		/* Behind the mark are zeros, whose sum is the same however many they are. */
		if (payload.length > in->payload && longer != LONGER_ALL && (longer == LONGER_NONE || !is_private(&in->source, sort)))
			payload.length = in->payload;
		__builtin_memcpy(mark.address, &in->source, sizeof(mark.address));
		payload.mark = &mark;
		payload.sum += sum_of_mark(&mark, sort);
	}
	frame = write_segment(ctx, sort, out, &payload, mss);
	if (frame) {
		counts->segments++;
		counts->answer_bytes += payload.length;
	}
	return sent(counts, frame);
}

static __always_inline int resolution(struct xdp_md *ctx, struct served_counts *counts, __u32 sort)
{
	struct solicited asked = {};
	struct arp *arp;

	if (!answers_for_address)
		return XDP_PASS;
	if (sort & OVER_IPV6) {
		if (!read_solicitation(ctx, sort, tag_control, &asked) || !is_same(&asked.target, listen, sort))
			return XDP_PASS;
		if (!answer_solicitation(ctx, sort, tag_control, &asked, own_mac))
			return XDP_DROP;
		counts->advertisements++;
	} else {
		arp = arp_request(ctx, sort, tag_control);
		if (!arp || arp_target(arp) != listen[0])
			return XDP_PASS;
		answer_arp(arp, sort, tag_control, own_mac);
		counts->arp_replies++;
	}
	return redirect_to ? bpf_redirect(redirect_to, 0) : XDP_TX;
}

static __always_inline int serves(struct xdp_md *ctx, __u32 sort)
{
	__u32 cpu = bpf_get_smp_processor_id(), initial, has;
	struct served_counts *counted;
	struct segment out = { .control = tag_control };
	struct arrived in = {};
	enum reading reading;

	counted = bpf_map_lookup_elem(&counts, &cpu);
	if (!counted)
		return XDP_PASS;
	reading = read_segment(ctx, sort, &in, &out);
	if (reading == OF_OTHERS)
		return resolution(ctx, counted, sort);
	/* What is for another host's Ethernet address was flooded here, and is that host's to answer. */
	for (int i = 0; i < 3; i++)
		if (out.source_mac[i] != own_mac[i])
			return XDP_PASS;
	if (!is_same(&in.destination, listen, sort) || in.ports.destination != listen_port)
		return XDP_PASS;
	counted->rx_frames++;
	counted->rx_bytes += in.frame;
	if (reading == MALFORMED) {
		counted->malformed++;
		return XDP_DROP;
	}
	if (sort & OVER_UDP)
		return datagram(ctx, sort, counted, &in, &out);
	if (in.flags & TCP_RST) {
		counted->resets++;
		return XDP_DROP;
	}
	initial = cookie(&in, sort);
	if (in.flags & TCP_SYN) {
		if (in.flags & TCP_ACK) {
			counted->unexpected++;
			return XDP_DROP;
		}
		counted->syns++;
		out.sequence = initial;
		out.acknowledged = in.sequence + 1;
		out.flags = TCP_SYN | TCP_ACK;
		return bare(ctx, sort, counted, &out);
	}
	if (!(in.flags & TCP_ACK)) {
		counted->unexpected++;
		return XDP_DROP;
	}
	has = in.acknowledged - initial - 1;
	if (has > answer_length * requests + 1)
		return stranger(ctx, sort, counted, &in, &out);
	return of_connection(ctx, sort, counted, &in, &out, has);
}

EACH_SORT(sessions_server, server, serves)

char _license[] SEC("license") = "MIT OR Apache-2.0";
