/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finding and reading the 18-byte signature at the end of a test frame.
 *
 * The layout is documented in crates/wire/src/signature.rs and held to it by a property test of the meter. This
 * header reads it only; it decides nothing about what the values mean.
 */
#ifndef NETDYNO_SIGNATURE_H
#define NETDYNO_SIGNATURE_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#define SIGNATURE_LEN 18
#define SIGNATURE_MAGIC 0x9d1ed7a0u
#define SIGNATURE_SEQUENCE_BITS 40
#define SIGNATURE_TIME_BITS 48

struct signature {
	__u32 stream;
	__u64 sequence; /* 40 bits */
	__u64 time;     /* 48 bits of nanoseconds */
};

static __always_inline void signature_split(struct signature *out, __u64 middle)
{
	out->stream = middle >> SIGNATURE_SEQUENCE_BITS;
	out->sequence = middle & ((1ull << SIGNATURE_SEQUENCE_BITS) - 1);
}

/*
 * A frame that lies in several buffers (jumbo frames, merged frames): the signature is in the last of them, or across
 * two, so it is copied out. Read in units of at most four bytes because the verifier wants aligned stack accesses.
 */
static __noinline __attribute__((unused)) bool signature_copied(struct xdp_md *ctx, __u64 length, struct signature *out)
{
	__u32 raw[5]; /* the last one holds only two bytes */

	if (!out || length < SIGNATURE_LEN || length > 0xffffffff)
		return false;
	if (bpf_xdp_load_bytes(ctx, length - SIGNATURE_LEN, raw, SIGNATURE_LEN))
		return false;
	if (raw[0] != bpf_htonl(SIGNATURE_MAGIC))
		return false;
	signature_split(out, ((__u64)bpf_ntohl(raw[1]) << 32) | bpf_ntohl(raw[2]));
	out->time = ((__u64)bpf_ntohl(raw[3]) << 16) | bpf_ntohs(*(__u16 *)&raw[4]);
	return true;
}

/*
 * A frame in one buffer of `length` bytes: read in place, three loads and two byte swaps. Packet memory need not be
 * aligned on any architecture that has a BPF JIT and a fast NIC.
 */
static __always_inline bool signature_in_place(struct xdp_md *ctx, __u64 length, struct signature *out)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	__u64 offset = length - SIGNATURE_LEN;
	void *at;

	/* The verifier follows packet offsets up to 64 KiB only; a short frame's offset wraps to beyond that, too. */
	if (offset > 0xffff - SIGNATURE_LEN)
		return false;
	/* Hides from the compiler that data + offset + 18 is data_end: the verifier wants to see the comparison. */
	asm volatile("" : "+r"(offset));
	at = data + offset;
	if (at + SIGNATURE_LEN > data_end)
		return false;
	if (*(__u32 *)at != bpf_htonl(SIGNATURE_MAGIC))
		return false;
	signature_split(out, bpf_be64_to_cpu(*(__u64 *)(at + 4)));
	/* The last eight bytes: two of the sequence, then the six of the time. */
	out->time = bpf_be64_to_cpu(*(__u64 *)(at + 10)) & ((1ull << SIGNATURE_TIME_BITS) - 1);
	return true;
}

/* Nanoseconds from `sent` to `received`, both modulo 2^48, as a signed difference. */
static __always_inline __s64 signature_elapsed(__u64 sent, __u64 received)
{
	return (__s64)((received - sent) << (64 - SIGNATURE_TIME_BITS)) >> (64 - SIGNATURE_TIME_BITS);
}

#endif
