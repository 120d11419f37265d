// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * TCP clients without a TCP: each opens a connection, asks once or several times, takes the answers, and closes or lets its peer close.
 * A connection may be held open in between, until user space has it asked again or closed. Clients of UDP do the same with datagrams: a
 * session of theirs is a tuple from which requests are sent and answered, and which ends without a word.
 *
 * `sessions_open` runs as live frames: a frame becomes the next connection's SYN when that is due, or a segment that user space listed
 * because nothing came back in time. `sessions_client` is attached where the answers arrive; what a frame asks for is written into the
 * same frame, which goes back. A connection is a slot of 32 bytes; the slot's number gives the tuple.
 *
 * Both programs may meet in a slot, on two CPUs. A state changes by a compare-and-exchange of the word that holds it, and who wins it
 * counts it, so each connection is counted in exactly one end. A RST is never answered, a bare acknowledgement only if it probes whether
 * a held connection is still there, and once a connection is over nothing but the peer's FIN is (by a bare acknowledgement), so two ends of
 * this kind cannot go on for ever.
 *
 * RFC 9293 is implemented as far as such a client needs it: section 3.10.7.3 (SYN-SENT), 3.10.7.4 (what is outside the window), and of
 * RFC 5961 that only a RST with exactly the expected number ends a connection. Data that arrives out of order is not kept, but asked
 * for again. The window is 65,535 bytes at all times.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/arp.h"
#include "include/loglinear.h"
#include "include/neighbour.h"
#include "include/sessions.h"
#include "include/tcp.h"

/* No longer than 64 times the first time-out. */
#define MOST_DOUBLINGS 6
#define MILLISECOND 1000000ULL

const volatile __be16 own_mac[3] = {};
/*
 * Clients have the addresses from `first_address` on, in the machine's byte order, and the ports from `first_port` on. Of IPv6 that is the
 * last word of the address, behind those of `prefix`.
 */
const volatile __u32 first_address = 0;
const volatile __be32 prefix[3] = {};
const volatile __u32 addresses = 1;
const volatile __u32 first_port = 16384;
/* The address of the host itself, which answers ARP and neighbour solicitations for that by itself; all zeros: it answers none. */
const volatile __be32 host[4] = {};
/* In the network's byte order, of IPv4 the first word. All that is ever sent goes there. */
const volatile __be32 server[4] = {};
const volatile __be16 server_port = 0;
const volatile __u32 slots_count = 1;
const volatile __u32 mss = TCP_MOST;
/* Ticks until something is sent again. */
const volatile __u32 retransmit_after = 1;
const volatile __u32 request_length = 0;
const volatile __u32 request_sum = 0;
const volatile __u8 request[1504] = {};
/* A connection asks so often by itself. */
const volatile __u32 requests = 1;
/* Who closes then (`enum session_close`), unless it is held until user space says so. */
const volatile __u32 closes = CLOSE_SERVER;
const volatile __u32 holds = 0;
/* Of UDP: who is used again is sent a datagram by the server, which is asked for that through the tuple of another session. */
const volatile __u32 from_server = 0;
/* Ticks between an answer and the next request; 0: none. */
const volatile __u32 thinks = 0;
/* The control word of the tag of frames that have one: of all that are sent, and as to the VLAN of all that are taken. */
const volatile __be16 tag_control = 0;
/* Of the interface, if answers go out by a redirect: a veth whose peer has no program of its own takes nothing that is sent by XDP_TX. */
const volatile __u32 redirect_to = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_control);
} control SEC(".maps");

/* One entry for each CPU number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_counts);
} counts SEC(".maps");

struct session_times {
	__u64 sum;
	__u64 max;
	__u64 buckets[LOGLINEAR_BUCKETS];
};

/* For each CPU number the time until a connection stood, then that until its answer was whole. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct session_times);
} times SEC(".maps");

/* The beginning of an answer, by CPU. */
#define HEAD_MOST 1024

struct head {
	__u8 bytes[HEAD_MOST];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct head);
} heads SEC(".maps");

/* What a program works with. */
struct work {
	struct xdp_md *ctx;
	__u32 sort; /* of its frames: a constant */
	struct session_control *control;
	struct session_counts *counts;
	struct session_slot *slot;
	__u32 number; /* the slot's */
	__u64 word;   /* what stood in it */
	__u64 set;    /* bits of it that are set with the next state */
	__u64 clear;  /* and those that are cleared before */
};

static __always_inline __u32 ticks(__u64 ns)
{
	return ns >> TICK_BITS;
}

static __always_inline __u32 now(void)
{
	return ticks(bpf_ktime_get_ns());
}

/* RFC 9293, section 3.4.1: it grows with time, so that a tuple can be used again while its peer still remembers the connection before. */
static __always_inline __u32 initial_sequence(__u32 number, __u64 ns)
{
	return mixed(number ^ 0x6e64796e) + (__u32)(ns >> 12);
}

static __always_inline void record(__u32 which, __u32 span)
{
	__u32 key = bpf_get_smp_processor_id() * 2 + which;
	struct session_times *kept = bpf_map_lookup_elem(&times, &key);
	__u64 ns = (__u64)span << TICK_BITS, within = ns, shift, bucket;

	if (!kept)
		return;
	shift = loglinear_shift(&within);
	bucket = loglinear_bucket(within, shift);
	if (bucket >= LOGLINEAR_BUCKETS)
		return;
	kept->buckets[bucket]++;
	kept->sum += ns;
	if (ns > kept->max)
		kept->max = ns;
}

/* Our initial sequence number. */
static __always_inline __u32 initial(const struct work *work)
{
	return work->word >> WORD_INITIAL_SHIFT;
}

/* Puts the slot into `state`, unless somebody else has changed its state meanwhile. That something is sent again changes none. */
static __always_inline bool becomes(struct work *work, __u32 state)
{
	__u64 cleared = WORD_STATE | WORD_TRIES | work->clear;
	__u64 after = (work->word & ~cleared) | work->set | state, was;
	bool held = (work->word & WORD_STATE) == SESSION_HELD;

	for (int i = 0; i < 2; i++) {
		was = __sync_val_compare_and_swap(&work->slot->word, work->word, after);
		if (was == work->word) {
			if (held != (state == SESSION_HELD))
				__sync_fetch_and_add(&work->control->held, held ? -1LL : 1LL);
			return true;
		}
		if ((was ^ work->word) & ~(__u64)WORD_TRIES)
			return false;
		work->word = was;
	}
	return false;
}

static __always_inline void ended(struct work *work)
{
	__sync_fetch_and_add(&work->control->ended, 1);
}

/* All was answered, and it is over. */
static __always_inline void finished(struct work *work)
{
	work->counts->finished++;
	work->counts->finished_badly += ((work->word | work->set) & WORD_BAD) != 0;
	ended(work);
}

/* One of its answers is no success, or contradicts itself. That of who was used again may have been counted before as a good one. */
static __always_inline void goes_bad(struct work *work, bool counted)
{
	if (counted && work->word & WORD_USED_AGAIN && !((work->word | work->set) & WORD_BAD))
		work->counts->used_again_badly++;
	work->set |= WORD_BAD;
}

static __always_inline int sent(struct work *work, __u32 frame, bool answers)
{
	if (!frame) {
		work->counts->no_room++;
		return XDP_DROP;
	}
	work->counts->tx_frames++;
	work->counts->tx_bytes += frame;
	return answers && redirect_to ? bpf_redirect(redirect_to, 0) : XDP_TX;
}

static __always_inline int bare(struct work *work, struct segment *segment, bool answers)
{
	struct payload none = {};

	return sent(work, write_segment(work->ctx, work->sort, segment, &none, mss), answers);
}

static __always_inline int reset(struct work *work, struct segment *segment, bool answers)
{
	work->counts->resets_sent++;
	return bare(work, segment, answers);
}

/* The segment that goes from the slot's tuple to the server. */
static __always_inline void address(const struct work *work, __u32 number, struct segment *segment)
{
	bool v6 = work->sort & OVER_IPV6;

	for (int i = 0; i < 3; i++)
		segment->source_mac[i] = own_mac[i];
	__builtin_memcpy(segment->destination_mac, &work->control->next_mac, sizeof(segment->destination_mac));
	segment->source.words[v6 ? 3 : 0] = bpf_htonl(first_address + number % addresses);
	segment->ports.source = bpf_htons(first_port + number / addresses);
	segment->destination.words[0] = server[0];
	segment->ports.destination = server_port;
	if (!v6)
		return;
	for (int i = 0; i < 3; i++) {
		segment->source.words[i] = prefix[i];
		segment->destination.words[i + 1] = server[i + 1];
	}
}

/* What a request adds to `sent` of its slot. */
static __always_inline __u32 unit(const struct work *work)
{
	return work->sort & OVER_UDP ? 1 : request_length;
}

/* The mark of a request, or of what the server is to send to the tuple that it saw of this session. */
static __always_inline void mark_request(const struct work *work, struct segment *segment, struct mark *mark)
{
	__u64 via = work->control->via[0];

	mark->magic = MARK_REQUEST;
	mark->number = bpf_htonl(segment->sequence);
	if (!from_server || !((work->word | work->set) & WORD_USED_AGAIN))
		return;
	mark->magic = MARK_RELAY;
	mark->port = work->slot->left;
	mark->cookie = work->slot->left >> 16;
	mark->address[0] = work->slot->next;
	/* An address of IPv6 has no room in a slot, and is seldom translated: the cookie tells. */
	if (work->sort & OVER_IPV6)
		__builtin_memcpy(mark->address, &segment->source, sizeof(mark->address));
	address(work, via == work->number ? work->control->via[1] : via, segment);
}

/* Sends the request whose sequence number, or number, the segment has. */
static __always_inline __u32 ask(struct work *work, struct segment *segment)
{
	struct payload whole = { .bytes = (const void *)request, .length = request_length, .sum = request_sum };
	struct mark mark = {};

	segment->flags = TCP_PSH | TCP_ACK;
	if (work->sort & OVER_UDP) {
		mark_request(work, segment, &mark);
		whole.mark = &mark;
		whole.sum += sum_of_mark(&mark, work->sort);
	}
	return write_segment(work->ctx, work->sort, segment, &whole, mss);
}

/* The number of the client that has this address; no less than `addresses`: there is none. */
static __always_inline __u32 client_of(const struct address *address, __u32 sort)
{
	if (!(sort & OVER_IPV6))
		return bpf_ntohl(address->words[0]) - first_address;
	if (address->words[0] != prefix[0] || address->words[1] != prefix[1] || address->words[2] != prefix[2])
		return ~0U;
	return bpf_ntohl(address->words[3]) - first_address;
}

/* Has our FIN been sent? */
static __always_inline bool has_closed(__u32 state)
{
	return state >= SESSION_FIN_WAIT_1 && state <= SESSION_LAST_ACK;
}

/* A connection that was held asks once more. */
static __always_inline int asks_again(struct work *work, struct segment *segment, __u32 task, __u32 at)
{
	struct session_slot *slot = work->slot;

	if ((work->word & WORD_STATE) != SESSION_HELD)
		return XDP_DROP;
	work->set = task == TASK_USE_AGAIN ? WORD_USED_AGAIN : 0;
	/* Nothing that the server may say before this request is sent changes what follows. */
	if (!becomes(work, SESSION_REQUESTED))
		return XDP_DROP;
	slot->sent += unit(work);
	slot->since = slot->began = at;
	slot->deadline = at + retransmit_after;
	work->counts->asked++;
	work->counts->used_again += task == TASK_USE_AGAIN;
	return sent(work, ask(work, segment), false);
}

/* A connection that was held is closed as was asked for. */
static __always_inline int closes_now(struct work *work, struct segment *segment, __u32 at)
{
	if ((work->word & WORD_STATE) != SESSION_HELD)
		return XDP_DROP;
	work->set = WORD_COMPLETE;
	if (closes == CLOSE_RST || work->sort & OVER_UDP) {
		if (!becomes(work, SESSION_FINISHED))
			return XDP_DROP;
		finished(work);
		if (work->sort & OVER_UDP)
			return XDP_DROP;
		segment->flags = TCP_RST | TCP_ACK;
		return reset(work, segment, false);
	}
	work->slot->since = at;
	work->slot->deadline = at + retransmit_after;
	if (!becomes(work, SESSION_FIN_WAIT_1))
		return XDP_DROP;
	segment->flags = TCP_FIN | TCP_ACK;
	return bare(work, segment, false);
}

/* What user space listed: nothing came back in time, or it is to end. */
static __always_inline int listed(struct work *work, struct segment *segment, __u32 task)
{
	struct session_slot *slot = work->slot;
	struct session_counts *counts = work->counts;
	__u32 state = work->word & WORD_STATE, tries = (work->word & WORD_TRIES) >> WORD_TRIES_SHIFT, at = now();

	if (state < SESSION_SYN_SENT || state > SESSION_LAST_ACK)
		return XDP_DROP;
	address(work, work->number, segment);
	segment->sequence = initial(work) + (state == SESSION_SYN_SENT ? 0 : 1 + slot->sent);
	segment->acknowledged = slot->next;
	if (task == TASK_ASK || task == TASK_USE_AGAIN)
		return asks_again(work, segment, task, at);
	if (task == TASK_CLOSE)
		return closes_now(work, segment, at);
	if (task != TASK_AGAIN) {
		if (!becomes(work, task == TASK_TIME_OUT ? SESSION_TIMED_OUT : SESSION_ABANDONED))
			return XDP_DROP;
		*(task == TASK_TIME_OUT ? &counts->timed_out : &counts->abandoned) += 1;
		ended(work);
		if (work->sort & OVER_UDP)
			return XDP_DROP;
		segment->sequence += state == SESSION_SYN_SENT || has_closed(state);
		segment->flags = state == SESSION_SYN_SENT ? TCP_RST : TCP_RST | TCP_ACK;
		return reset(work, segment, false);
	}
	/* It moved on since it was listed. */
	if ((__s32)(at - slot->deadline) <= 0 || state == SESSION_HELD || state == SESSION_FIN_WAIT_2)
		return XDP_DROP;
	if (tries < 0xff && __sync_val_compare_and_swap(&slot->word, work->word, work->word + (1 << WORD_TRIES_SHIFT)) != work->word)
		return XDP_DROP;
	tries = tries < MOST_DOUBLINGS ? tries + 1 : MOST_DOUBLINGS;
	slot->deadline = at + (retransmit_after << tries);
	switch (state) {
	case SESSION_SYN_SENT:
		counts->retransmitted_syns++;
		segment->acknowledged = 0;
		segment->flags = TCP_SYN;
		return bare(work, segment, false);
	case SESSION_REQUESTED:
		counts->retransmitted_requests++;
		segment->sequence -= unit(work);
		return sent(work, ask(work, segment), false);
	case SESSION_WAITING:
	case SESSION_RECEIVING:
		/* A server that keeps no state sends what is missing when it is told what arrived. */
		counts->retransmitted_acks++;
		segment->flags = TCP_ACK;
		return bare(work, segment, false);
	default:
		counts->retransmitted_fins++;
		segment->flags = TCP_FIN | TCP_ACK;
		return bare(work, segment, false);
	}
}

/* A request that had no room in the frame that asked for it. */
static __always_inline int deferred(struct work *work, struct segment *segment)
{
	if ((work->word & WORD_STATE) != SESSION_REQUESTED)
		return XDP_DROP;
	address(work, work->number, segment);
	segment->sequence = initial(work) + 1 + work->slot->sent - unit(work);
	segment->acknowledged = work->slot->next;
	return sent(work, ask(work, segment), false);
}

/* Is the next connection due? At the rate, and after a delay at no more than twice the rate. */
static __always_inline bool is_due(struct session_control *control, __u64 ns)
{
	__u64 open;

	if (control->opened >= control->limit)
		return false;
	open = control->opened - *(volatile __u64 *)&control->ended;
	if (holds)
		open -= *(volatile __u64 *)&control->held;
	if (control->in_flight && open >= control->in_flight)
		return false;
	return !control->gap_ns || (ns >= control->due_ns && ns >= control->last_ns + control->gap_ns / 2);
}

static __always_inline void is_opened(struct session_control *control, __u64 ns)
{
	control->opened++;
	if (!control->gap_ns)
		return;
	control->late += ns > control->due_ns + MILLISECOND;
	control->last_ns = ns;
	control->due_ns += control->gap_ns;
	control->due_part += control->gap_part;
	if (control->due_part >= control->gap_parts) {
		control->due_part -= control->gap_parts;
		control->due_ns++;
	}
}

static __always_inline int open(struct work *work, struct segment *segment)
{
	struct session_control *control = work->control;
	__u64 ns = bpf_ktime_get_ns();
	struct session_slot *slot;
	__u32 state, sequence;

	if (!is_due(control, ns))
		return XDP_DROP;
	work->number = control->slot;
	control->slot = control->slot + 1 < slots_count ? control->slot + 1 : 0;
	slot = bpf_map_lookup_elem(&slots, &work->number);
	if (!slot)
		return XDP_DROP;
	state = slot->word & WORD_STATE;
	if (state >= SESSION_SYN_SENT && state <= SESSION_LAST_ACK) {
		control->busy++;
		return XDP_DROP;
	}
	slot->next = 0;
	slot->left = 0;
	slot->sent = work->sort & OVER_UDP ? 1 : 0;
	slot->since = slot->began = ticks(ns);
	slot->deadline = slot->began + retransmit_after;
	sequence = initial_sequence(work->number, ns);
	state = work->sort & OVER_UDP ? SESSION_REQUESTED : SESSION_SYN_SENT;
	/* Whoever sees the new word sees what was written before it. */
	__sync_lock_test_and_set(&slot->word, (__u64)sequence << WORD_INITIAL_SHIFT | state);
	is_opened(control, ns);
	work->counts->opened++;
	address(work, work->number, segment);
	segment->sequence = sequence;
	if (work->sort & OVER_UDP) {
		segment->sequence++;
		work->counts->asked++;
		return sent(work, ask(work, segment), false);
	}
	segment->flags = TCP_SYN;
	return bare(work, segment, false);
}

static __always_inline int sends(struct xdp_md *ctx, __u32 sort)
{
	__u32 cpu = bpf_get_smp_processor_id(), first = 0, task;
	struct work work = { .ctx = ctx, .sort = sort };
	struct segment segment = { .control = tag_control };
	__u64 *entry, item;

	work.control = bpf_map_lookup_elem(&control, &first);
	work.counts = bpf_map_lookup_elem(&counts, &cpu);
	if (!work.control || !work.counts)
		return XDP_DROP;
	if (work.control->listed_at < work.control->listed_count) {
		item = work.control->listed[work.control->listed_at++ & (LISTED - 1)];
		work.number = item;
		task = item >> 32;
		work.slot = bpf_map_lookup_elem(&slots, &work.number);
		if (!work.slot)
			return XDP_DROP;
		work.word = *(volatile __u64 *)&work.slot->word;
		return listed(&work, &segment, task);
	}
	entry = &work.control->deferred[work.control->deferred_at & (DEFERRED - 1)];
	item = *(volatile __u64 *)entry;
	if (item) {
		*(volatile __u64 *)entry = 0;
		work.control->deferred_at++;
		work.number = item - 1;
		work.slot = bpf_map_lookup_elem(&slots, &work.number);
		if (!work.slot)
			return XDP_DROP;
		work.word = *(volatile __u64 *)&work.slot->word;
		return deferred(&work, &segment);
	}
	return open(&work, &segment);
}

EACH_SORT(sessions_open, open, sends)

/* A request had no room in the frame that asked for it: the next frame of the program that sends becomes it. */
static __always_inline void defer(struct work *work)
{
	struct session_control *control = work->control;
	__u64 end;

	work->counts->deferred++;
	for (int i = 0; i < 8; i++) {
		end = *(volatile __u64 *)&control->deferred_end;
		if (end - *(volatile __u64 *)&control->deferred_at >= DEFERRED)
			break;
		if (__sync_val_compare_and_swap(&control->deferred_end, end, end + 1) != end)
			continue;
		*(volatile __u64 *)&control->deferred[end & (DEFERRED - 1)] = (__u64)work->number + 1;
		return;
	}
	/* It is sent when its time is over. */
	work->counts->undeferred++;
}

/* Sends the request that `slot->sent` has counted already. */
static __always_inline int request_now(struct work *work, struct segment *answer)
{
	__u32 frame = ask(work, answer);

	work->counts->asked++;
	if (frame)
		return sent(work, frame, true);
	defer(work);
	return XDP_DROP;
}

/* SYN-SENT: RFC 9293, section 3.10.7.3. */
static __always_inline int in_syn_sent(struct work *work, const struct arrived *in, struct segment *answer)
{
	struct session_slot *slot = work->slot;
	bool acceptable = in->flags & TCP_ACK && in->acknowledged == initial(work) + 1;
	__u32 at;

	if (in->flags & TCP_RST) {
		if (!acceptable) {
			work->counts->unexpected++;
		} else if (becomes(work, SESSION_RESET)) {
			work->counts->reset++;
			ended(work);
		}
		return XDP_DROP;
	}
	if (in->flags & TCP_ACK && !acceptable) {
		/* The peer still has an old connection: a RST with what it acknowledges ends that, and the SYN is sent again in time. */
		work->counts->unexpected++;
		answer->sequence = in->acknowledged;
		answer->flags = TCP_RST;
		return reset(work, answer, true);
	}
	if (!acceptable || !(in->flags & TCP_SYN)) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	if (request_length > peer_mss(work->ctx, work->sort, in)) {
		if (!becomes(work, SESSION_REFUSED))
			return XDP_DROP;
		record(0, now() - slot->began);
		work->counts->established++;
		work->counts->refused++;
		ended(work);
		answer->sequence = in->acknowledged;
		answer->acknowledged = in->sequence + 1;
		answer->flags = TCP_RST | TCP_ACK;
		return reset(work, answer, true);
	}
	at = now();
	slot->next = in->sequence + 1;
	slot->sent = request_length;
	slot->deadline = at + retransmit_after;
	if (!becomes(work, SESSION_REQUESTED))
		return XDP_DROP;
	record(0, at - slot->began);
	slot->began = at;
	work->counts->established++;
	answer->sequence = initial(work) + 1;
	answer->acknowledged = slot->next;
	return request_now(work, answer);
}

/* What was read of the head of an answer. */
struct scan {
	struct head *head;
	__u64 near, far; /* the last sixteen bytes */
	__u64 older;	 /* those before them */
	__u32 length;    /* bytes of the segment that were loaded */
	__u32 number;    /* of the Content-Length at hand */
	__u32 said;      /* by the one before, if `known` */
	__u32 end;       /* behind the head, once that is known */
	__u32 value;     /* where in the value of a Content-Length it is */
	__u32 known;     /* there is a Content-Length */
	__u32 bad;       /* one of them is no number, or another one than that before (RFC 9112, section 6.3) */
	__u32 coded;     /* there is a Transfer-Encoding, which goes before it */
};

/* In the value of a Content-Length: spaces or digits are next, digits or the end, spaces or the end. */
enum scan_value { VALUE_NONE, VALUE_BEFORE, VALUE_DIGITS, VALUE_BEHIND };

/* The next byte of such a value. */
static __always_inline void scan_length(struct scan *scan, __u32 byte)
{
	if (byte == '\r' || byte == '\n') {
		scan->bad |= scan->value == VALUE_BEFORE || (scan->known && scan->said != scan->number);
		scan->known = 1;
		scan->said = scan->number;
		scan->value = VALUE_NONE;
	} else if (byte == ' ' || byte == '\t') {
		if (scan->value == VALUE_DIGITS)
			scan->value = VALUE_BEHIND;
	} else if (byte - '0' < 10 && scan->value != VALUE_BEHIND) {
		scan->value = VALUE_DIGITS;
		scan->number = scan->number < ANSWER_MOST / 10 ? scan->number * 10 + byte - '0' : ANSWER_MOST;
	} else if (byte == ',' && scan->value != VALUE_BEFORE) {
		/* A list, whose numbers have to be the same (RFC 9110, section 8.6). */
		scan->bad |= scan->known && scan->said != scan->number;
		scan->known = 1;
		scan->said = scan->number;
		scan->number = 0;
		scan->value = VALUE_BEFORE;
	} else {
		scan->bad = 1;
	}
}

/* The next byte; other than 0: it was the last. */
static long scan_head(__u32 i, void *context)
{
	struct scan *scan = context;
	__u64 caps = 0x2020202020202020ULL;
	__u32 byte;

	if (i >= scan->length)
		return 1;
	byte = scan->head->bytes[i & (HEAD_MOST - 1)];
	scan->older = scan->older << 8 | scan->far >> 56;
	scan->far = scan->far << 8 | scan->near >> 56;
	scan->near = scan->near << 8 | byte;
	if ((__u32)scan->near == 0x0d0a0d0a) {
		scan->end = i + 1;
		return 1;
	}
	if (scan->value)
		scan_length(scan, byte);
	/* "\ncontent" and "-length:", in letters of any case. */
	if ((scan->near | caps) == 0x2d6c656e6774683aULL && (scan->far | caps) == 0x2a636f6e74656e74ULL) {
		scan->value = VALUE_BEFORE;
		scan->number = 0;
	}
	/* "\ntr", "ansfer-e" and "ncoding:": not that of Content-Transfer-Encoding. */
	if ((scan->near | caps) == 0x6e636f64696e673aULL && (scan->far | caps) == 0x616e736665722d65ULL &&
	    ((scan->older | caps) & 0xffffff) == 0x2a7472)
		scan->coded = 1;
	return 0;
}

/* Its length is told, and cannot be known. */
#define MISFRAMED 0xfffffffd

/*
 * How long the answer is whose beginning stands `at` there in the frame, head and all: by RFC 9112, section 6.3, what a Content-Length
 * says, and nothing after the head of a 1xx, 204 or 304. TO_THE_END where its head is not whole within this segment, or says neither, or
 * has a Transfer-Encoding; MISFRAMED where its lengths are no numbers, or several.
 * By bpf_loop() (Linux 5.17), whose body the verifier looks at once.
 */
__noinline int answer_length(struct xdp_md *ctx, __u32 at, __u32 payload, __u32 bodiless)
{
	__u32 first = 0, length = payload > HEAD_MOST ? HEAD_MOST : payload;
	struct scan scan = {.head = bpf_map_lookup_elem(&heads, &first), .length = length};

	if (!scan.head || length < 1)
		return TO_THE_END;
	/* As in peer_mss(). */
	length--;
	OPAQUE(length);
	length = (length & (HEAD_MOST - 1)) + 1;
	if (bpf_xdp_load_bytes(ctx, at, scan.head->bytes, length))
		return TO_THE_END;
	bpf_loop(HEAD_MOST, scan_head, &scan, 0);
	if (!scan.end)
		return TO_THE_END;
	if (bodiless)
		return scan.end;
	if (scan.coded)
		return TO_THE_END;
	if (scan.bad)
		return MISFRAMED;
	return scan.known ? scan.end + scan.said : TO_THE_END;
}

/* No more answers of 1xx than this are looked for in a segment before the one that they announce. */
#define INTERIM_MOST 4

/* The status of the answer that begins `at` there in the frame; 0: it is none of HTTP/1.1, or the frame ends within it. */
static __always_inline __u32 status_at(struct work *work, __u32 at, __u32 payload)
{
	__u8 line[12] = {};
	__u32 status;

	if (payload < sizeof(line) || bpf_xdp_load_bytes(work->ctx, at, line, sizeof(line)))
		return 0;
	status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + line[11] - '0';
	if (line[0] == 'H' && line[1] == 'T' && line[2] == 'T' && line[3] == 'P' && line[4] == '/' && line[8] == ' ' && status >= 100 && status < 600)
		return status;
	return 0;
}

/* Of an answer of which there is nothing yet but what announces it. */
#define ONLY_INTERIM 0xfffffffe

/*
 * Reads the head of an answer: its class, and how long it is, with those of 1xx before it, which are counted and are no answers
 * (RFC 9110, section 15.2; but for 101, after which no HTTP is spoken).
 */
static __always_inline __u32 begins(struct work *work, const struct arrived *in)
{
	__u32 status, length, before = 0, class;
	__u8 first = 0;

	work->clear |= WORD_CLASS | WORD_OVERLONG;
	for (int i = 0; i <= INTERIM_MOST; i++) {
		status = status_at(work, in->at + before, in->payload - before);
		length = answer_length(work->ctx, in->at + before, in->payload - before, status < 200 || status == 204 || status == 304);
		if (i == INTERIM_MOST || status < 100 || status >= 200 || status == 101 || length >= MISFRAMED)
			break;
		work->counts->interim++;
		before += length;
		if (before >= in->payload)
			return ONLY_INTERIM;
	}
	class = status / 100;
	/* What may yet become one. */
	if (!status && in->payload > before && in->payload - before < 12 && !(in->flags & TCP_FIN) &&
	    !bpf_xdp_load_bytes(work->ctx, in->at + before, &first, 1) && first == 'H')
		class = STATUS_UNREAD;
	work->set |= (__u64)class << WORD_CLASS_SHIFT;
	/* What is no HTTP has no length either. */
	if (!status)
		length = TO_THE_END;
	if (length == MISFRAMED) {
		work->counts->misframed++;
		goes_bad(work, false);
		length = TO_THE_END;
	}
	if (length == TO_THE_END) {
		work->counts->unframed += closes != CLOSE_SERVER;
		return TO_THE_END;
	}
	return before + length;
}

/* What follows an answer that is whole, where the server has not closed. */
static __always_inline __u32 after_answer(struct work *work, struct segment *answer, __u32 at)
{
	struct session_slot *slot = work->slot;

	if (slot->sent < requests * unit(work)) {
		if (thinks) {
			slot->deadline = at + thinks;
			return SESSION_HELD;
		}
		slot->sent += unit(work);
		slot->since = slot->began = at;
		return SESSION_REQUESTED;
	}
	if (holds) {
		slot->deadline = at + thinks;
		return SESSION_HELD;
	}
	work->set |= WORD_COMPLETE;
	slot->since = at;
	if (work->sort & OVER_UDP)
		return SESSION_FINISHED;
	answer->flags = closes == CLOSE_RST ? TCP_RST | TCP_ACK : TCP_FIN | TCP_ACK;
	return closes == CLOSE_RST ? SESSION_FINISHED : SESSION_FIN_WAIT_1;
}

/* More came than the answer's head announces: of several segments the first counts as an answer that is too long. */
static __always_inline void beyond(struct work *work, bool counted)
{
	goes_bad(work, counted);
	work->counts->unexpected++;
	work->counts->overlong += !(work->word & ~work->clear & WORD_OVERLONG);
	work->set |= WORD_OVERLONG;
}

/* The server says something after our FIN: what it says is taken, and its FIN ends the connection. */
static __always_inline int after_fin(struct work *work, const struct arrived *in, struct segment *answer, bool acknowledged)
{
	struct session_slot *slot = work->slot;
	bool fin = in->flags & TCP_FIN;

	slot->next += in->payload + fin;
	answer->acknowledged = slot->next;
	/* We closed because the answer was whole. */
	if (in->payload)
		beyond(work, true);
	if (in->payload && !fin)
		becomes(work, work->word & WORD_STATE);
	if (fin && acknowledged) {
		if (!becomes(work, SESSION_FINISHED))
			return XDP_DROP;
		finished(work);
	} else if (fin) {
		/* Both closed at once; our FIN is still to be acknowledged. */
		if (!becomes(work, SESSION_LAST_ACK))
			return XDP_DROP;
	}
	return bare(work, answer, true);
}

/* The next piece of an answer, or its end. */
static __always_inline int goes_on(struct work *work, const struct arrived *in, struct segment *answer, __u32 state)
{
	struct session_slot *slot = work->slot;
	bool fin = in->flags & TCP_FIN, whole, waits = state >= SESSION_REQUESTED && state <= SESSION_RECEIVING;
	bool waits_on = false;
	__u32 at = now(), left = slot->left, became, began = slot->began, sent_before = slot->sent;
	__u64 class;

	/* Nothing was asked of one that is held: this is behind its last answer. */
	if (state == SESSION_HELD && in->payload)
		beyond(work, true);
	if (state != SESSION_RECEIVING)
		left = in->payload && waits ? begins(work, in) : TO_THE_END;
	if (left == ONLY_INTERIM) {
		/* The answer is still to begin. */
		whole = false;
		waits_on = true;
		left = TO_THE_END;
	} else if (left == TO_THE_END) {
		whole = waits && fin && (in->payload || state == SESSION_RECEIVING);
	} else {
		/* Who has the server close waits for that, and knows by it whether all came that was announced. */
		whole = waits && in->payload >= left && (fin || closes != CLOSE_SERVER);
		if (waits && in->payload > left)
			beyond(work, false);
		left = in->payload >= left ? 0 : left - in->payload;
	}
	class = ((work->word & ~work->clear) | work->set) >> WORD_CLASS_SHIFT & 7;
	if (whole && class != 2 && class != 3)
		goes_bad(work, false);
	slot->deadline = at + retransmit_after;
	slot->left = left;
	slot->next += in->payload + fin;
	answer->acknowledged = slot->next;
	answer->flags = TCP_ACK;
	if (fin) {
		became = SESSION_LAST_ACK;
		answer->flags |= TCP_FIN;
		slot->since = at;
		if (whole && slot->sent >= requests * request_length && !holds)
			work->set |= WORD_COMPLETE;
		else if (whole || state == SESSION_HELD)
			work->set |= WORD_EARLY;
	} else if (whole) {
		became = after_answer(work, answer, at);
	} else {
		became = waits_on ? SESSION_WAITING : waits ? SESSION_RECEIVING : SESSION_HELD;
	}
	if (!becomes(work, became)) {
		/* It was ended at this moment. */
		work->counts->unexpected++;
		return XDP_DROP;
	}
	work->counts->answer_bytes += in->payload;
	if (whole) {
		record(1, at - began);
		if (class < 6)
			work->counts->classes[class]++;
		else
			work->counts->unread++;
		work->counts->to_the_close += left == TO_THE_END;
		if (work->word & WORD_USED_AGAIN) {
			work->counts->used_again_answered++;
			work->counts->used_again_badly += ((work->word | work->set) & WORD_BAD) != 0;
		}
	}
	if (became == SESSION_REQUESTED) {
		answer->sequence = initial(work) + 1 + sent_before;
		return request_now(work, answer);
	}
	if (became == SESSION_FINISHED) {
		finished(work);
		return reset(work, answer, true);
	}
	return bare(work, answer, true);
}

/* Our FIN was acknowledged after the server's. */
static __always_inline void last_ack(struct work *work)
{
	struct session_counts *counts = work->counts;

	if (work->word & WORD_COMPLETE) {
		if (!becomes(work, SESSION_FINISHED))
			return;
		finished(work);
		return;
	} else if (work->word & WORD_EARLY) {
		if (!becomes(work, SESSION_CLOSED_EARLY))
			return;
		counts->closed_early++;
	} else {
		if (!becomes(work, SESSION_UNANSWERED))
			return;
		counts->unanswered++;
	}
	ended(work);
}

/* An acknowledgement without anything else. */
static __always_inline int acknowledged_only(struct work *work, const struct arrived *in, struct segment *answer, __u32 state, bool all)
{
	if (state == SESSION_HELD && in->sequence == work->slot->next - 1) {
		/* Are we still there? RFC 9293, section 3.8.4. */
		work->counts->duplicates++;
		return bare(work, answer, true);
	}
	if (!all)
		return XDP_DROP;
	if (state == SESSION_LAST_ACK)
		last_ack(work);
	else if (state == SESSION_FIN_WAIT_1)
		becomes(work, SESSION_FIN_WAIT_2);
	else if (state == SESSION_REQUESTED)
		/* From here on it is the server's turn: nothing is sent again before it says something. */
		becomes(work, SESSION_WAITING);
	return XDP_DROP;
}

/* The connection stands: RFC 9293, section 3.10.7.4. */
static __always_inline int established(struct work *work, const struct arrived *in, struct segment *answer, __u32 state)
{
	struct session_slot *slot = work->slot;
	__u32 end = 1 + slot->sent + has_closed(state), acknowledged = in->acknowledged - initial(work);

	answer->sequence = initial(work) + end;
	answer->acknowledged = slot->next;
	answer->flags = TCP_ACK;
	if (in->flags & TCP_RST) {
		if (in->sequence == slot->next && becomes(work, SESSION_RESET)) {
			work->counts->reset++;
			ended(work);
			return XDP_DROP;
		}
		work->counts->unexpected++;
		/* Within the window it is asked whether that was meant (RFC 5961). */
		return in->sequence - slot->next < TCP_WINDOW ? bare(work, answer, true) : XDP_DROP;
	}
	if (in->flags & TCP_SYN) {
		work->counts->duplicates++;
		return bare(work, answer, true);
	}
	if (!(in->flags & TCP_ACK) || acknowledged < 1 || acknowledged > end) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	if (!in->payload && !(in->flags & TCP_FIN))
		return acknowledged_only(work, in, answer, state, acknowledged == end);
	if (in->sequence != slot->next || state == SESSION_LAST_ACK) {
		if ((__s32)(in->sequence - slot->next) < 0)
			work->counts->duplicates++;
		else
			work->counts->out_of_order++;
		return bare(work, answer, true);
	}
	if (has_closed(state))
		return after_fin(work, in, answer, acknowledged == end);
	return goes_on(work, in, answer, state);
}

/* The connection is over: a FIN that comes again was not acknowledged (TIME-WAIT). */
static __always_inline int over(struct work *work, const struct arrived *in, struct segment *answer, __u32 state)
{
	if (state != SESSION_FINISHED || !(in->flags & TCP_FIN) || in->sequence + in->payload + 1 != work->slot->next) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	work->counts->duplicates++;
	answer->sequence = initial(work) + 2 + work->slot->sent;
	answer->acknowledged = work->slot->next;
	answer->flags = TCP_ACK;
	return bare(work, answer, true);
}

/*
 * A datagram came to a session: the answer to the request at hand, or to an earlier one, or none. A server that sends back what came to it is as
 * good as one that answers.
 */
static __always_inline int datagram(struct work *work, const struct arrived *in, struct segment *answer, __u32 state)
{
	struct session_slot *slot = work->slot;
	__u32 began = slot->began, sent_before = slot->sent, behind, became, at;
	struct mark mark = {};

	if (in->payload < mark_bytes(work->sort) || bpf_xdp_load_bytes(work->ctx, in->at, &mark, mark_bytes(work->sort))) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	if (mark.magic == MARK_REFUSED) {
		work->counts->relays_refused++;
		return XDP_DROP;
	}
	/* What is sent back is as long as it was. */
	if (mark.magic != MARK_ANSWER && (mark.magic != MARK_REQUEST || in->payload != request_length)) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	/* The first request has the number behind the initial one. */
	behind = initial(work) + sent_before - bpf_ntohl(mark.number);
	if (behind >= sent_before || state > SESSION_FINISHED) {
		work->counts->unexpected++;
		return XDP_DROP;
	}
	if (behind || state != SESSION_REQUESTED) {
		work->counts->duplicates++;
		return XDP_DROP;
	}
	at = now();
	slot->next = mark.address[0];
	slot->left = (__u32)mark.cookie << 16 | mark.port;
	slot->deadline = at + retransmit_after;
	became = after_answer(work, answer, at);
	if (!becomes(work, became)) {
		/* It was ended at this moment. */
		work->counts->unexpected++;
		return XDP_DROP;
	}
	record(1, at - began);
	work->counts->established += sent_before == 1;
	work->counts->numbered++;
	work->counts->answer_bytes += in->payload;
	work->counts->used_again_answered += (work->word & WORD_USED_AGAIN) != 0;
	if (became == SESSION_FINISHED)
		finished(work);
	if (became != SESSION_REQUESTED)
		return XDP_DROP;
	answer->sequence = initial(work) + 1 + sent_before;
	return request_now(work, answer);
}

/* Who asks for a client's Ethernet address, by ARP or neighbour solicitation, is answered. */
static __always_inline int resolution(struct xdp_md *ctx, struct session_counts *counts, __u32 sort)
{
	struct solicited asked = {};
	struct arp *arp;

	if (sort & OVER_IPV6) {
		if (!read_solicitation(ctx, sort, tag_control, &asked))
			return XDP_PASS;
		if (client_of(&asked.target, sort) >= addresses || is_same(&asked.target, host, sort))
			return XDP_PASS;
		if (!answer_solicitation(ctx, sort, tag_control, &asked, own_mac))
			return XDP_DROP;
		counts->advertisements++;
	} else {
		arp = arp_request(ctx, sort, tag_control);
		if (!arp || bpf_ntohl(arp_target(arp)) - first_address >= addresses || arp_target(arp) == host[0])
			return XDP_PASS;
		answer_arp(arp, sort, tag_control, own_mac);
		counts->arp_replies++;
	}
	return redirect_to ? bpf_redirect(redirect_to, 0) : XDP_TX;
}

static __always_inline int takes(struct xdp_md *ctx, __u32 sort)
{
	__u32 cpu = bpf_get_smp_processor_id(), first = 0, client, port, state;
	struct work work = { .ctx = ctx, .sort = sort };
	struct segment answer = { .control = tag_control };
	struct arrived in = {};
	enum reading reading;

	work.counts = bpf_map_lookup_elem(&counts, &cpu);
	work.control = bpf_map_lookup_elem(&control, &first);
	if (!work.control || !work.counts)
		return XDP_PASS;
	reading = read_segment(ctx, sort, &in, &answer);
	if (reading == OF_OTHERS)
		return resolution(ctx, work.counts, sort);
	/* What is for another host's Ethernet address was flooded here, and is that host's to answer. */
	for (int i = 0; i < 3; i++)
		if (answer.source_mac[i] != own_mac[i])
			return XDP_PASS;
	client = client_of(&in.destination, sort);
	port = bpf_ntohs(in.ports.destination) - first_port;
	if (!is_same(&in.source, server, sort) || in.ports.source != server_port || client >= addresses || port > 0xffff)
		return XDP_PASS;
	/* Of a large pool that is more than 32 bits hold. */
	if ((__u64)port * addresses + client >= slots_count)
		return XDP_PASS;
	work.number = port * addresses + client;
	work.slot = bpf_map_lookup_elem(&slots, &work.number);
	if (!work.slot)
		return XDP_PASS;
	work.word = *(volatile __u64 *)&work.slot->word;
	state = work.word & WORD_STATE;
	/* It may be a connection of the host's own. */
	if (state == SESSION_FREE)
		return XDP_PASS;
	work.counts->rx_frames++;
	work.counts->rx_bytes += in.frame;
	if (reading == MALFORMED) {
		work.counts->malformed++;
		return XDP_DROP;
	}
	if (sort & OVER_UDP)
		return datagram(&work, &in, &answer, state);
	if (state >= SESSION_FINISHED)
		return over(&work, &in, &answer, state);
	return state == SESSION_SYN_SENT ? in_syn_sent(&work, &in, &answer) : established(&work, &in, &answer, state);
}

EACH_SORT(sessions_client, client, takes)

char _license[] SEC("license") = "MIT OR Apache-2.0";
