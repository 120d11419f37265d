//! Captured frames: each is copied whole, then gets the addresses of its pass and its signature.

use super::{ARENA, Compiler, DATA, LENGTH_SLOT, SPARE_SLOT};
use crate::XdpError;
use crate::asm::{FP, If, Op, R0, R1, R2, R3, R4, R5, R6, R8, R9, Size, helper};
use crate::layout::{self, stream as words};
use bpf::Memory;
use traffic::Templates;
use traffic::program::Stream;
use traffic::templates::Addresses;
use wire::checksum::{fold, sum};
use wire::layers::Layers;
use wire::numbers::protocol;
use wire::signature;

/// What a template's table entry holds: 32 bits of place, 32 bits of facts, and 64 for signing.
const ENTRY: u32 = 16;

/// Facts: length in the low 16 bits.
const KIND_SHIFT: u32 = 16;
const V4: u64 = 1;
const V6: u64 = 2;
/// The source address is the lesser.
const SOURCE_IS_LESS: u32 = 18;
const SIGNABLE: u32 = 19;
const HAS_CHECKSUM: u32 = 20;
const UDP: u32 = 21;
const ODD: u32 = 22;
/// Offset of the addresses, from here on.
const ADDRESSES_SHIFT: u32 = 23;
const ADDRESSES_MOST: u64 = 0x1ff;

/// Templates stand at multiples of this, so that 32 bits reach far.
const ALIGN: usize = 4;

/// Copies a stream's templates to the places that they were given.
pub(super) fn write(arena: &mut Memory, begin: usize, templates: &Templates) {
    let mut at = begin;
    for i in 0..templates.len() {
        let frame = templates.get(i);
        arena.write(at, frame);
        at = (at + frame.len()).next_multiple_of(ALIGN);
    }
}

impl<'p> Compiler<'p> {
    /// Emits what makes a captured stream's frame. Its words are at `base`.
    pub(super) fn captured(&mut self, s: usize, base: u32) -> Result<(), XdpError> {
        let plan = &self.plans[s];
        let (stream, longest) = (plan.stream, plan.longest);
        let page = self.frame.len();
        let entries = self.collect(stream)?;
        let count = (entries.len() / ENTRY as usize) as u64;
        let at = self.table(entries);
        let _ = base;
        let reach = self.arena;

        let (inside, same_pass, whole) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.load(Size::D, R1, R9, words::LENGTH as i16);
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Lt, R1, count, R5, inside);
        self.asm.mov_imm(R1, 0);
        self.asm.place(inside);
        self.asm.mov(R2, R1);
        self.asm.op_small(Op::Shl, R2, 4);
        self.asm.map_value(R8, DATA, at);
        self.asm.op(Op::Add, R8, R2);
        // The pass of this frame goes to the stack; the words move on to the next frame.
        self.asm.load(Size::D, R2, R9, words::PASS as i16);
        self.asm.store(Size::D, FP, SPARE_SLOT, R2);
        self.asm.op_imm(Op::Add, R1, 1, R5);
        self.asm.jump_if_imm(If::Lt, R1, count, R5, same_pass);
        self.asm.mov_imm(R1, 0);
        self.asm.op_imm(Op::Add, R2, 1, R5);
        self.asm.store(Size::D, R9, words::PASS as i16, R2);
        self.asm.place(same_pass);
        self.asm.store(Size::D, R9, words::LENGTH as i16, R1);

        self.asm.load(Size::H, R1, R8, 4);
        self.asm.store(Size::D, FP, LENGTH_SLOT, R1);
        if self.lengths_vary {
            self.add_word(layout::BYTES, R1, R2);
        }
        self.asm.mov(R2, R1);
        self.asm.op_imm(Op::Sub, R2, page as u64, R5);
        self.asm.jump_if_imm(If::Eq, R2, 0, R5, whole);
        self.asm.mov(R1, R6);
        self.asm.call(helper::ADJUST_TAIL);
        self.asm.place(whole);

        self.asm.load(Size::D, R4, FP, LENGTH_SLOT);
        // Both always hold: this is for the verifier.
        self.asm.jump_if_imm(If::Gt, R4, longest as u64, R5, self.drop);
        self.asm.jump_if_imm(If::Lt, R4, 1, R5, self.drop);
        self.asm.load(Size::W, R1, R8, 0);
        self.asm.op_small(Op::Shl, R1, ALIGN.trailing_zeros());
        self.asm.jump_if_imm(If::Gt, R1, (reach - longest) as u64, R5, self.drop);
        self.asm.map_value(R3, ARENA, 0);
        self.asm.op(Op::Add, R3, R1);
        self.asm.mov(R1, R6);
        self.asm.mov_imm(R2, 0);
        self.asm.call(helper::STORE_BYTES);

        if !stream.unique_addresses && stream.signature.is_none() {
            return Ok(());
        }
        // What follows needs the entry; R8 becomes the frame.
        self.asm.load(Size::W, R0, R8, 4);
        if let Some(number) = stream.signature {
            let unsigned = self.asm.label();
            if stream.unique_addresses {
                self.asm.load(Size::D, R3, R8, 8);
                self.asm.store(Size::D, FP, SIGNING_SLOT, R3);
                self.asm.store(Size::D, FP, FACTS_SLOT, R0);
                self.unique();
                self.asm.load(Size::D, R0, FP, FACTS_SLOT);
                self.asm.load(Size::D, R3, FP, SIGNING_SLOT);
            } else {
                self.asm.load(Size::D, R3, R8, 8);
            }
            self.asm.mov(R1, R0);
            self.asm.op_small(Op::And, R1, 1 << SIGNABLE);
            self.asm.jump_if_imm(If::Eq, R1, 0, R5, unsigned);
            self.asm.store(Size::D, FP, SIGNING_SLOT, R3);
            self.asm.store(Size::D, FP, FACTS_SLOT, R0);
            self.sign_captured(number);
            self.asm.place(unsigned);
        } else {
            self.unique();
        }
        Ok(())
    }

    /// Gives the stream's templates places in the arena, and makes their table.
    fn collect(&mut self, stream: &'p Stream) -> Result<Vec<u8>, XdpError> {
        let templates = &stream.templates;
        self.captured.push((self.arena, templates));
        let mut entries = Vec::with_capacity(templates.len() * ENTRY as usize);
        for i in 0..templates.len() {
            let frame = templates.get(i);
            let (addresses, source_is_less) = templates.addresses(i);
            let (kind, offset) = match addresses {
                Addresses::None => (0, 0),
                Addresses::V4(at) => (V4, at as u64),
                Addresses::V6(at) => (V6, at as u64),
            };
            let mut facts = frame.len() as u64
                | kind << KIND_SHIFT
                | u64::from(source_is_less) << SOURCE_IS_LESS
                | offset.min(ADDRESSES_MOST) << ADDRESSES_SHIFT;
            let mut signing = 0;
            if stream.signature.is_some() && templates.signed_rank(i).is_some() {
                let (more, how) = signing_facts(frame);
                facts |= more;
                signing = how;
            }
            let at =
                u32::try_from(self.arena / ALIGN).map_err(|_| XdpError::TooMuchData { bytes: self.arena })?;
            entries.extend(at.to_ne_bytes());
            entries.extend((facts as u32).to_ne_bytes());
            entries.extend(signing.to_ne_bytes());
            self.arena = (self.arena + frame.len()).next_multiple_of(ALIGN);
        }
        // Room behind the last, so that a copy of the longest from any place stays inside.
        self.arena = (self.arena + templates.longest() as usize).next_multiple_of(ALIGN);
        if self.arena > super::LARGEST_TABLE {
            return Err(XdpError::TooMuchData { bytes: self.arena });
        }
        Ok(entries)
    }

    /// `traffic::executor::spread_addresses`. R0 are the template's facts, the pass is in `SPARE_SLOT`.
    fn unique(&mut self) {
        let (done, v6, swap) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.frame_pointer(1);
        // R3: pass modulo 2^32 - 1.
        self.asm.load(Size::D, R3, FP, SPARE_SLOT);
        self.asm.jump_if_imm(If::Eq, R3, 0, R5, done);
        self.asm.mov_imm(R5, 0xffff_ffff);
        self.asm.op(Op::Mod, R3, R5);
        // R4: the source address.
        self.asm.mov(R4, R0);
        self.asm.op_small(Op::Shr, R4, ADDRESSES_SHIFT);
        self.asm.op_small(Op::And, R4, ADDRESSES_MOST as u32);
        self.asm.op(Op::Add, R4, R8);
        self.asm.mov(R1, R0);
        self.asm.op_small(Op::Shr, R1, KIND_SHIFT);
        self.asm.op_small(Op::And, R1, 3);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, done);
        // The lesser goes down by the pass, the greater up: R3 is added to the source, R5 to the destination.
        self.asm.mov_imm(R5, 0xffff_ffff);
        self.asm.op(Op::Sub, R5, R3);
        self.asm.mov(R2, R0);
        self.asm.op_small(Op::And, R2, 1 << SOURCE_IS_LESS);
        self.asm.jump_if_imm(If::Eq, R2, 0, R2, swap);
        self.asm.mov(R2, R3);
        self.asm.mov(R3, R5);
        self.asm.mov(R5, R2);
        self.asm.place(swap);
        self.asm.store(Size::D, FP, SECOND_SLOT, R5);
        self.asm.jump_if_imm(If::Ne, R1, V4, R5, v6);
        self.move_addresses(4);
        self.asm.jump(done);
        self.asm.place(v6);
        self.move_addresses(16);
        self.asm.place(done);
    }

    /// Adds R3 to the low 32 bits of the address at R4 and the word in `SECOND_SLOT` to the one behind it, modulo
    /// 2^32 - 1. Both are at most 2^32 - 1.
    fn move_addresses(&mut self, size: i16) {
        let short = self.asm.label();
        self.asm.mov(R1, R4);
        self.asm.op_imm(Op::Add, R1, 2 * size as u64, R5);
        self.asm.load(Size::W, R2, R6, 4);
        self.asm.jump_if(If::Gt, R1, R2, short);
        self.asm.mov_imm(R5, 0xffff_ffff);
        for at in [size - 4, 2 * size - 4] {
            let below = self.asm.label();
            self.asm.load(Size::W, R1, R4, at);
            self.asm.big_endian(R1, 32);
            self.asm.op(Op::Add, R1, R3);
            // At most twice 2^32 - 1.
            self.asm.jump_if(If::Lt, R1, R5, below);
            self.asm.op(Op::Sub, R1, R5);
            self.asm.jump_if(If::Lt, R1, R5, below);
            self.asm.op(Op::Sub, R1, R5);
            self.asm.place(below);
            self.asm.big_endian(R1, 32);
            self.asm.store(Size::W, R4, at, R1);
            self.asm.load(Size::D, R3, FP, SECOND_SLOT);
        }
        self.asm.place(short);
    }

    /// `traffic::executor::sign_captured`. Facts and signing facts are in their slots.
    fn sign_captured(&mut self, number: u32) {
        let (done, even, keep) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.stamp();
        self.frame_pointer(1);
        self.tail_pointer();
        self.signature(number, R4, 0);
        // R2 is what the signature adds; R0 the facts; R3 the sum of all else, below 2^32, and the field's place above.
        self.asm.load(Size::D, R0, FP, FACTS_SLOT);
        self.asm.mov(R1, R0);
        self.asm.op_small(Op::And, R1, 1 << HAS_CHECKSUM);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, done);
        self.asm.mov(R1, R0);
        self.asm.op_small(Op::And, R1, 1 << ODD);
        self.asm.jump_if_imm(If::Eq, R1, 0, R5, even);
        self.asm.op_small(Op::Shl, R2, 8);
        self.asm.place(even);
        self.asm.load(Size::D, R3, FP, SIGNING_SLOT);
        self.asm.mov(R4, R3);
        self.asm.op_small(Op::Shr, R4, 32);
        self.asm.low32(R3);
        self.asm.op(Op::Add, R3, R2);
        self.fold(R3, 58);
        self.asm.op_small(Op::Xor, R3, 0xffff);
        self.asm.jump_if_imm(If::Ne, R3, 0, R5, keep);
        self.asm.op_small(Op::And, R0, 1 << UDP);
        self.asm.jump_if_imm(If::Eq, R0, 0, R5, keep);
        self.asm.mov_imm(R3, 0xffff);
        self.asm.place(keep);
        self.asm.big_endian(R3, 16);
        // It always is: this is for the verifier.
        self.asm.jump_if_imm(If::Gt, R4, self.frame.len() as u64, R5, done);
        self.asm.op(Op::Add, R4, R8);
        self.asm.mov(R1, R4);
        self.asm.op_imm(Op::Add, R1, 2, R5);
        self.asm.load(Size::W, R2, R6, 4);
        self.asm.jump_if(If::Gt, R1, R2, done);
        self.asm.store(Size::H, R4, 0, R3);
        self.asm.place(done);
    }
}

const SECOND_SLOT: i16 = -24;
const SIGNING_SLOT: i16 = -32;
const FACTS_SLOT: i16 = -40;

/// How a captured frame's checksum follows from its signature: facts, and the sum of all else (low half) with the
/// checksum's offset (high half).
fn signing_facts(frame: &[u8]) -> (u64, u64) {
    let layers = Layers::parse(wire::LinkType::ETHERNET, frame);
    let (Some(l4), Some(tail)) = (layers.l4_offset, frame.len().checked_sub(signature::LEN)) else {
        return (0, 0);
    };
    let (field, udp) = match layers.ip_protocol {
        Some(protocol::TCP) => (l4 + 16, false),
        Some(protocol::UDP) => (l4 + 6, true),
        _ => return (0, 0),
    };
    if field + 2 > tail {
        return (0, 0);
    }
    let mut facts = 1 << SIGNABLE;
    let before = u16::from_be_bytes([frame[field], frame[field + 1]]);
    if udp && before == 0 {
        return (facts, 0); // The sender chose to have no checksum.
    }
    let odd = (tail - l4) % 2 == 1;
    let old = if odd { sum(&frame[tail..]) << 8 } else { sum(&frame[tail..]) };
    facts |= 1 << HAS_CHECKSUM | u64::from(udp) << UDP | u64::from(odd) << ODD;
    // HC' = ~(~HC + ~m + m'), RFC 1624; ~m is taken as a multiple of 0xffff less m, never zero, as the executor does.
    let rest = u64::from(!before) + u64::from(0xffff - fold(old)) + 0xffff;
    (facts, rest | (field as u64) << 32)
}
