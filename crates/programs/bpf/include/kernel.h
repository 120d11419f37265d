/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernels that programs are for. */
#ifndef NETDYNO_KERNEL_H
#define NETDYNO_KERNEL_H

/*
 * What the oldest kernel has that a program is for. There is a program for each, and not a constant, because a verifier
 * looks at encodings that are never reached, too. User space tries them in this order.
 *
 *   LINUX_5_18   frames in several buffers (the program is loaded with BPF_F_XDP_HAS_FRAGS) and bytes copied out of them
 *   LINUX_5_12   atomic operations that give a value
 *   LINUX_5_9    XDP links, without which nothing here is attached; a lock stands in for those operations
 */
enum kernel { LINUX_5_18, LINUX_5_12, LINUX_5_9 };

#endif
