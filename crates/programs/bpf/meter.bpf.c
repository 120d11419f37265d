// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The meter: counts what arrives at an interface, as early as the kernel lets a program see it.
 *
 * For every frame: bytes, size class, time of the first and the last. For a frame with a signature at its end: which
 * stream, whether it is in order, reordered or a duplicate, and how long it was under way. Optionally the arrival
 * time of every frame, or a copy of the frame. It changes no frame and decides nothing: one verdict for all, drop or pass.
 *
 * Everything is kept in plain arrays that user space maps, so that a reader costs no system call. What is about all
 * frames is kept per CPU, without locks and atomics (except one for arrivals, which must share one order): a program
 * runs on one CPU with its soft interrupts off, so no other run of it can come in between. Streams are kept per CPU,
 * too, while that takes little memory, but for which numbers were seen (seen.h); of many there is one record each, of 320 bytes, that a CPU takes hold of by one
 * exchange. Arrays rather than hash tables because a stream's number *is* its index: a look-up is a multiplication that
 * the JIT inlines.
 *
 * User space adds the CPUs' shares (crates/meter/src/layout.rs says why that is exact). It sets the constants below
 * before loading; the verifier removes what they switch off. crates/meter/src/tracker.rs does the same in Rust for
 * machines without XDP, and a property test holds the two equal.
 *
 * crates/meter/src/twin.rs prints what a frame costs (docs/measuring.md has the figures).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "include/background.h"
#include "include/content.h"
#include "include/exchange.h"
#include "include/icmp.h"
#include "include/meter.h"
#include "include/seen.h"
#include "include/sequence.h"
#include "include/signature.h"
#include "include/tick.h"
#include "include/trailer.h"

const volatile __u32 verdict = XDP_PASS;
/* Size of the table of streams. */
const volatile __u32 stream_limit = 1;
/* 1: one table for all CPUs, whose records are taken hold of; else each has its own. */
const volatile __u32 shared_streams = 0;
/* Where each CPU has its own: so many bits of sequence numbers are remembered for all together, 8 to 16; 0: not at all. */
const volatile __u32 seen_bits = 0;
/* 1: stores are seen in their order by other CPUs (x86), so that letting go of a record takes no exchange. */
const volatile __u32 ordered_stores = 0;
/* 1: read the clock for each frame (about 33 ns on a virtual machine), else once a tick (1 to 10 ms). */
const volatile __u32 exact_clock = 0;
const volatile __u32 measure_latency = 0;
/* 1: frames are stamped by CLOCK_TAI, which hosts can share, instead of CLOCK_MONOTONIC. */
const volatile __u32 tai_clock = 0;
/* 1: look for the signature up to 18 bytes before the frame's end, too. */
const volatile __u32 find_trailers = 0;
/* Entries of `contents` for each stream; 0: the bytes before the signature are not looked at. */
const volatile __u32 content_slots = 0;
/* The first so many streams have a histogram of their latencies each. */
const volatile __u32 histogram_limit = 0;
/* The first so many streams have a histogram of the times between their arrivals each; with any, records are shared. */
const volatile __u32 gaps_limit = 0;
/* How many arrival times are kept; 0: none. */
const volatile __u32 arrivals_limit = 0;
/* 1: an ICMP error is no signed frame, whatever stands at the end of what it quotes. */
const volatile __u32 ignore_icmp_errors = 0;

/* So many bytes of each frame are handed to user space; 0: none, and nothing of what does it is left in the program. */
const volatile __u32 capture_bytes = 0;

/* Of a program for one interface: what its driver is asked for. */
const volatile __u32 ask_stamps = 0;
const volatile __u32 ask_tags = 0;

/* One entry for each CPU number; user space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* Entry stream, or cpu * histogram_limit + stream. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct histogram);
} histograms SEC(".maps");

/* Entry stream, or cpu * stream_limit + stream. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream);
} streams SEC(".maps");

/* Entry stream: times between its arrivals, in the order that its record was taken hold of. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct histogram);
} stream_gaps SEC(".maps");

/*
 * The first stream_limit entries are a recent number of each stream, 0 if there was none; then come the streams' rings.
 * Only where each CPU has records of its own.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* Entry 0 counts the frames; frame n (from 0) has its time in entry n + 1, as far as there are entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrivals SEC(".maps");

/* Entry stream * content_slots and those behind it; written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct content);
} contents SEC(".maps");

/*
 * A ring for each CPU, which user space opens (perf_event_open). Rings of this kind rather than BPF ring buffers, because the
 * helper copies a length that is only known here, out of several buffers as well, on all kernels that this is for.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} frames SEC(".maps");

/* Not 0: whoever takes copies wants no more of them. User space sets it while frames come. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} frames_over SEC(".maps");

/* Two, so that one can be written while the other is in force, and which one it is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct device_clock);
} device_clock SEC(".maps");

/* etherStats size classes (RFC 2819, section 5); sizes there include the FCS. The most frequent ones are asked first. */
static __always_inline __u32 size_class(__u64 length)
{
	__u64 size = length + FCS_LEN;

	if (size == 64)
		return 1;
	if (size > 1023)
		return size > 1518 ? 7 : 6;
	if (size < 64)
		return 0;
	if (size < 256)
		return size < 128 ? 2 : 3;
	return size < 512 ? 4 : 5;
}

/* The driver's (Linux 6.3); only of programs that were loaded for its interface. */
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp) __ksym __weak;

/* The same of a VLAN tag that the NIC took out of the frame (Linux 6.8). */
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *protocol, __u16 *tag) __ksym __weak;

/* Where a frame's time of arrival comes from: a program for each. */
enum stamper { SOFTWARE, HARDWARE, TOLD };

/* By the hardware's clock; 0: it did not stamp this frame. */
static __always_inline __u64 hardware_time(struct xdp_md *ctx, const enum stamper by)
{
	__u64 time = 0, *told;

	if (by == HARDWARE && !ask_stamps)
		return 0;
	if (by == HARDWARE)
		return bpf_xdp_metadata_rx_timestamp(ctx, &time) ? 0 : time;
	told = (void *)(long)ctx->data_meta;
	return (void *)(told + 1) > (void *)(long)ctx->data ? 0 : *told;
}

/* Bytes of a frame that are not in its buffers: a tag, which is put into `taken` as it was on the wire. */
static __always_inline __u64 taken_out(struct xdp_md *ctx, const enum stamper by, __u32 *taken)
{
	__be16 protocol;
	__u16 tag;

	if (by != HARDWARE || !ask_tags || !bpf_ksym_exists(bpf_xdp_metadata_rx_vlan_tag))
		return 0;
	if (bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &tag))
		return 0;
	*taken = bpf_ntohs(protocol) << 16 | tag;
	return sizeof(struct tag);
}

static __always_inline struct device_clock *clock_in_force(void)
{
	struct device_clock *which;
	__u32 slot = 2;

	which = bpf_map_lookup_elem(&device_clock, &slot);
	if (!which)
		return NULL;
	slot = which->at & 1;
	return bpf_map_lookup_elem(&device_clock, &slot);
}

/* By CLOCK_MONOTONIC. `clock` stays NULL if that is not what the hardware said. */
static __always_inline __u64 time_of_frame(struct xdp_md *ctx, struct totals *sums, const enum stamper by,
					   struct device_clock **clock)
{
	__u64 stamp;

	if (by != SOFTWARE) {
		stamp = hardware_time(ctx, by);
		if (stamp)
			*clock = clock_in_force();
		if (*clock) {
			sums->by_hardware++;
			return stamp + (*clock)->ahead + (((__s64)(stamp - (*clock)->at) * (*clock)->slope) >> 32);
		}
	}
	return exact_clock ? bpf_ktime_get_ns() : time_by_tick(&sums->tick, sums->last_ns);
}

static __always_inline void record_arrival(__u64 now, const enum kernel on)
{
	__u32 zero = 0, slot;
	__u64 *count, *time;
	__u64 n;

	count = bpf_map_lookup_elem(&arrivals, &zero);
	if (!count)
		return;
	n = fetch_add(count, 1, 0, on);
	if (n >= arrivals_limit)
		return;
	slot = n + 1;
	time = bpf_map_lookup_elem(&arrivals, &slot);
	if (time)
		*time = now;
}

/* How often a record that another CPU holds is asked for: some tens of microseconds. */
#define PATIENCE 1024

static __always_inline bool hold(struct stream *stream, __u32 number, const enum kernel on)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (!exchange(&stream->busy, 1, number, on))
			return true;
	}
	return false;
}

static __always_inline void let_go(struct stream *stream, __u32 number, const enum kernel on)
{
	if (ordered_stores) {
		asm volatile("" ::: "memory");
		*(volatile __u64 *)&stream->busy = 0;
	} else {
		/* Its result is used, or the compiler would make a plain store of it. */
		__u64 was = exchange(&stream->busy, 0, number, on);

		asm volatile("" : "+r"(was));
	}
}

/* The wide number of a frame with the 40 bits of `written`; ASTRAY: it cannot be this stream's. */
static __always_inline __u64 number_of(struct stream *stream, __u32 which, __u64 written, const enum kernel on)
{
	__u64 number = stream->next ? sequence_near(written, stream->next) : written + SEQUENCE_ROUND, at = stream->next;
	__u64 *near = NULL;

	if (number == at)
		return number;
	if (seen_bits) {
		/* Others may have seen what tells in which round this CPU's first frame is, or one after a long time. */
		near = bpf_map_lookup_elem(&seen, &which);
		if (!near)
			return number;
		at = *(volatile __u64 *)near;
		if (!at)
			at = compare_exchange(near, 0, number, which, on);
		if (at)
			number = sequence_near(written, at);
	}
	if (!at || number < at || !((number - at) >> ASTRAY_BITS))
		return number;
	if (sequence_run(stream) < RUN_ELSEWHERE)
		return ASTRAY;
	if (near)
		*(volatile __u64 *)near = number;
	return number;
}

/* Whether any CPU has seen the frame. */
static __always_inline enum seen seen_by_any(__u32 which, __u64 number, const enum kernel on)
{
	__u32 slot = stream_limit + which * seen_words(seen_bits) + seen_word(number, seen_bits);
	__u64 *word = bpf_map_lookup_elem(&seen, &slot), *near;

	if (!word)
		return SEEN_UNKNOWN;
	if (!(number & ((1ull << seen_bits) - 1))) {
		near = bpf_map_lookup_elem(&seen, &which);
		if (near && *(volatile __u64 *)near < number)
			*(volatile __u64 *)near = number;
	}
	return seen_mark(word, number, seen_bits, which, on);
}

static __always_inline void add_sums(struct latency *sums, __u64 value)
{
	if (!sums->count || value < sums->min)
		sums->min = value;
	if (value > sums->max)
		sums->max = value;
	sums->count++;
	sum_add(&sums->sum, value);
}

/* Of what is kept for all frames only: how many there were and the least of them the buckets tell. */
static __always_inline void add_spread(struct latency *sums, __u64 value)
{
	if (value > sums->max)
		sums->max = value;
	sum_add(&sums->sum, value);
}

/* Hides from the compiler where `bucket` comes from, so that the register that is tested is the one that is used. */
static __always_inline __u64 hidden(__u64 bucket)
{
	asm volatile("" : "+r"(bucket));
	return bucket;
}

static __always_inline __u64 bucket_of(__u64 value)
{
	__u64 shift = loglinear_shift(&value);

	return hidden(loglinear_bucket(value, shift));
}

static __always_inline void record_gap(struct totals *sums, __u64 gap)
{
	__u64 bucket = bucket_of(gap);

	add_spread(&sums->gap, gap);
	if (bucket < LOGLINEAR_BUCKETS) /* it always is, here and below: this is for the verifier */
		sums->gaps[bucket]++;
}

/* How the time under way changes from frame to frame of a stream, whatever the clocks' offset. */
static __always_inline void record_variation(struct totals *sums, struct stream *stream, __s64 elapsed)
{
	__s64 change = elapsed - (__s64)stream->transit;
	__u64 size = change < 0 ? -change : change, bucket;

	stream->transit = elapsed;
	if (!(stream->latency.count + stream->latency.negative))
		return;
	stream->jitter += size - ((stream->jitter + 8) >> 4);
	add_spread(&sums->variation, size);
	bucket = bucket_of(size);
	if (bucket < LOGLINEAR_BUCKETS)
		sums->variations[bucket]++;
}

static __always_inline void record_latency(struct totals *sums, struct stream *stream, struct histogram *own,
					   __s64 elapsed)
{
	__u64 bucket, shift, value = elapsed;

	if (stream)
		record_variation(sums, stream, elapsed);
	if (elapsed < 0) {
		sums->latency.negative++;
		if (stream)
			stream->latency.negative++;
		return;
	}
	add_sums(&sums->latency, elapsed);
	if (stream)
		add_sums(&stream->latency, elapsed);
	shift = loglinear_shift(&value);
	bucket = hidden(loglinear_fine_bucket(value, shift));
	if (bucket < LOGLINEAR_FINE_BUCKETS)
		sums->latencies[bucket]++;
	bucket = hidden(loglinear_bucket(value, shift));
	if (own && bucket < LOGLINEAR_BUCKETS)
		own->buckets[bucket]++;
}

/* The time from a stream's arrival to the one before, whichever of its frames they are. */
static __always_inline void record_stream_gap(__u32 stream, __u64 gap)
{
	struct histogram *own = bpf_map_lookup_elem(&stream_gaps, &stream);
	__u64 bucket = bucket_of(gap);

	if (own && bucket < LOGLINEAR_BUCKETS)
		own->buckets[bucket]++;
}

/* When a stream's frame arrived. Neither the hardware's queues nor CPUs are served in the order of their frames' times. */
static __always_inline void stream_arrived(struct stream *stream, __u32 number, __u64 now)
{
	__u64 gap;

	if (!stream->frames) {
		stream->first_ns = now;
		stream->last_ns = now;
		return;
	}
	gap = now > stream->last_ns ? now - stream->last_ns : 0;
	if (gap > stream->gap_max)
		stream->gap_max = gap;
	if (gap)
		stream->last_ns = now;
	if (number < gaps_limit)
		record_stream_gap(number, gap);
}

/* Do the bytes before the signature, which begins at `end`, differ from what the stream's frames have there? */
static __always_inline bool is_corrupted(struct xdp_md *ctx, __u32 stream, __u32 length, __u32 end,
					 const enum kernel on)
{
	struct content *content = NULL, *any;
	__u32 slot, bytes;
	__u64 hash;

	for (__u32 i = 0; i < 8 && i < content_slots; i++) {
		slot = stream * content_slots + i;
		any = bpf_map_lookup_elem(&contents, &slot);
		if (!any)
			return false;
		/* The first is about frames of any length, so it is the last resort. */
		if (!i || (__u32)any->length == length)
			content = any;
	}
	if (!content)
		return false;
	bytes = content->length >> 32;
	if (!bytes)
		return false;
	if (bytes > end)
		return true;
	if (on == LINUX_5_18)
		hash = content_hash(ctx, end - bytes, bytes);
	else
		hash = content_hash_in_place(ctx, end - bytes, bytes);
	return hash != content->hash;
}

/* Is this frame to be copied? One that is not is counted: it is not missing. */
static __always_inline bool is_wanted(struct totals *sums)
{
	__u32 zero = 0, *over = bpf_map_lookup_elem(&frames_over, &zero);

	if (!over || !*(volatile __u32 *)over)
		return true;
	sums->unwanted++;
	return false;
}

/* Hands a copy of the frame to user space. What finds its ring full is missing there: user space knows how many there were. */
static __always_inline void capture(struct xdp_md *ctx, struct captured *head)
{
	head->bytes = head->length < capture_bytes ? head->length : capture_bytes;
	bpf_perf_event_output(ctx, &frames, (__u64)head->bytes << 32 | BPF_F_CURRENT_CPU, head, sizeof(*head));
}

static __always_inline int measure(struct xdp_md *ctx, const enum stamper by, const enum kernel on)
{
	__u64 linear = (long)ctx->data_end - (long)ctx->data, length, whole, now, arrived, number = 0;
	__u32 cpu = bpf_get_smp_processor_id(), copy = shared_streams ? 0 : cpu, slot, behind = 0;
	struct signature signature = {}, copied;
	struct totals *sums;
	struct stream *stream = NULL;
	struct histogram *own = NULL;
	struct device_clock *clock = NULL;
	bool is_signed, corrupted = false;
	__u32 tag = 0;
	__s64 elapsed = 0;
	enum seen came;

	/* Where there is no other length the compiler would subtract from data_end itself, which verifiers forbid. */
	if (on != LINUX_5_18)
		asm volatile("" : "+r"(linear));
	length = linear;
	sums = bpf_map_lookup_elem(&totals, &cpu);
	if (!sums)
		return verdict;
	now = time_of_frame(ctx, sums, by, &clock);
	/*
	 * Asking for the length of a frame that may lie in several buffers is a call of 6 ns. A signature at the end of the
	 * first buffer says that there is no other: what is sent ends with it.
	 */
	is_signed = signature_in_place(ctx, length, &signature);
	if (!is_signed) {
		if (on == LINUX_5_18)
			length = bpf_xdp_get_buff_len(ctx);
		if (on == LINUX_5_18 && length != linear) {
			is_signed = signature_copied(ctx, length, &copied);
			if (is_signed)
				signature = copied;
		} else if (find_trailers) {
			behind = signature_trailer(ctx, length);
			is_signed = behind && signature_in_place(ctx, length - behind, &signature);
		}
	}

	/* What is at the frame's end is found by what is here. */
	whole = length + taken_out(ctx, by, &tag);
	sums->sizes[size_class(whole)]++;
	sums->bytes += whole;
	if (!sums->first_ns)
		sums->first_ns = now;
	else if (exact_clock)
		/* The hardware's queues are not served in the order of its stamps. */
		record_gap(sums, by == SOFTWARE || now > sums->last_ns ? now - sums->last_ns : 0);
	sums->last_ns = now;
	if (arrivals_limit)
		record_arrival(now, on);
	if (capture_bytes && is_wanted(sums)) {
		struct captured head = { .time = now, .length = length, .tag = tag, .stream = NO_STREAM };

		if (is_signed && !(ignore_icmp_errors && is_icmp_error(ctx))) {
			head.stream = signature.stream;
			head.sequence = signature.sequence;
		}
		capture(ctx, &head);
	}
	if (!is_signed) {
		sums->background += is_background(ctx);
		return verdict;
	}
	if (ignore_icmp_errors && is_icmp_error(ctx))
		return verdict;

	sums->signed_frames++;
	if (behind)
		sums->trailed++;
	if (signature.stream < stream_limit) {
		slot = copy * stream_limit + signature.stream;
		stream = bpf_map_lookup_elem(&streams, &slot);
	}
	if (content_slots && stream && length >= behind + SIGNATURE_LEN) {
		corrupted = is_corrupted(ctx, signature.stream, whole - behind, length - behind - SIGNATURE_LEN,
					 on);
		sums->corrupted += corrupted;
	}
	/* A sender that spares itself the clock writes 0. */
	if (measure_latency && signature.time) {
		arrived = now;
		if (tai_clock)
			arrived = clock ? now + clock->tai : bpf_ktime_get_tai_ns();
		elapsed = signature_elapsed(signature.time, arrived);
		if (signature.stream < histogram_limit) {
			slot = copy * histogram_limit + signature.stream;
			own = bpf_map_lookup_elem(&histograms, &slot);
		}
	}
	if (!stream) {
		sums->unplaced++;
	} else if (shared_streams && !hold(stream, signature.stream, on)) {
		sums->contended++;
		stream = NULL;
		own = NULL;
	}
	if (stream) {
		number = number_of(stream, signature.stream, signature.sequence, on);
		if (number == ASTRAY) {
			sums->astray++;
			if (shared_streams)
				let_go(stream, signature.stream, on);
			stream = NULL;
			own = NULL;
		}
	}
	if (stream) {
		if (seen_bits)
			came = seen_by_any(signature.stream, number, on);
		else
			came = window_seen(stream, number);
		sequence_seen(sums, stream, number, signature.time, came);
		if (exact_clock)
			stream_arrived(stream, signature.stream, now);
		stream->frames++;
		stream->bytes += whole;
		if (content_slots)
			stream->corrupted += corrupted;
	}
	if (measure_latency && signature.time)
		record_latency(sums, stream, own, elapsed);
	if (shared_streams && stream)
		let_go(stream, signature.stream, on);
	return verdict;
}

SEC("xdp")
int meter(struct xdp_md *ctx)
{
	return measure(ctx, SOFTWARE, LINUX_5_18);
}

SEC("xdp")
int meter_5_12(struct xdp_md *ctx)
{
	return measure(ctx, SOFTWARE, LINUX_5_12);
}

SEC("xdp")
int meter_5_9(struct xdp_md *ctx)
{
	return measure(ctx, SOFTWARE, LINUX_5_9);
}

/* For one interface, whose driver is asked for the hardware's time stamps. */
SEC("xdp")
int meter_hardware(struct xdp_md *ctx)
{
	return measure(ctx, HARDWARE, LINUX_5_18);
}

/* The same for tests, which put the stamp into 8 bytes before the frame. */
SEC("xdp")
int meter_told(struct xdp_md *ctx)
{
	return measure(ctx, TOLD, LINUX_5_18);
}

/*
 * What the kernel lets ask a driver for time stamps must call itself compatible with the GPL in one of the kernel's own
 * words. MIT is, and lets whoever gets this pass it on under the GPL as well.
 */
char _license[] SEC("license") = "Dual MIT/GPL";
