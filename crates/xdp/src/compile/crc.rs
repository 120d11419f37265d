//! SCTP's CRC-32C. It is linear: what a byte changes depends on the byte and on its distance from the frame's end alone. So
//! the CRC of all that does not vary is a constant (for each length one), and each byte that varies looks up in a table of
//! its place what it changes ([`wire::crc::changes`]). Six instructions a byte, and a kibibyte of table.
//!
//! Fields stand at a fixed distance from the frame's beginning, so frames of several lengths would need as many tables for
//! each of their bytes; such programs are refused. A signature's distance from the end is always the same.

use super::{Compiler, DATA};
use crate::XdpError;
use crate::asm::{Op, R1, R2, R3, R4, R8, R9, Reg, Size};
use std::collections::BTreeSet;
use traffic::program::Crc;
use wire::crc::{changes, crc32c};
use wire::signature;

/// The bytes of a signature that are the same in all frames: magic and stream.
const SAME: usize = 7;

impl Compiler<'_> {
    /// Computes and writes the CRC of stream `s`, if it has one. What it adds to checksums is stored at `note` behind R9.
    pub(super) fn crc(&mut self, s: usize, note: u32) -> Result<(), XdpError> {
        let plan = &self.plans[s];
        let (stream, shortest, longest) = (plan.stream, plan.shortest, plan.longest);
        let Some(crc) = &stream.crc else { return Ok(()) };
        let start = crc.start as usize;
        let fields: BTreeSet<usize> =
            stream.fields.iter().flat_map(|field| field.range()).filter(|at| *at >= start).collect();
        if shortest != longest && !fields.is_empty() {
            return Err(XdpError::CrcOfLengths);
        }
        let bases: Vec<u32> =
            (shortest..=longest).map(|length| self.constant_crc(s, crc, &fields, length)).collect();
        // R3 collects, as the four bytes stand in the frame, read as one number.
        if let [base] = bases[..] {
            self.asm.mov_imm(R3, base.into());
        } else {
            let at = self.table(bases.iter().flat_map(|base| base.to_ne_bytes()));
            self.of_length(at, Size::W, (shortest, longest));
        }
        for at in fields {
            self.change(R8, at as i16, longest - 1 - at);
        }
        if stream.signature.is_some() {
            let (tail, first) = if shortest == longest {
                (R8, longest - signature::LEN)
            } else {
                self.tail_pointer();
                (R4, 0)
            };
            for at in SAME..signature::LEN {
                self.change(tail, (first + at) as i16, signature::LEN - 1 - at);
            }
        }
        self.asm.store(Size::D, R9, note as i16, R3);
        self.asm.big_endian(R3, 32);
        self.asm.store(Size::W, R8, crc.offset as i16, R3);
        Ok(())
    }

    /// The CRC of a frame of `length` bytes with zeros where something varies, as its four bytes stand.
    fn constant_crc(&self, s: usize, crc: &Crc, fields: &BTreeSet<usize>, length: usize) -> u32 {
        let plan = &self.plans[s];
        let mut frame = plan.image[..length].to_vec();
        for field in &plan.stream.length_fields {
            let value = (length - field.less as usize) as u16;
            frame[field.offset as usize..][..2].copy_from_slice(&value.to_be_bytes());
        }
        for &at in fields {
            frame[at] = 0;
        }
        if let Some(stream) = plan.stream.signature {
            let written = signature::Signature { stream, sequence: 0, time: 0 }.to_bytes();
            frame[length - signature::LEN..].copy_from_slice(&written);
        }
        u32::from_be_bytes(crc.bytes(crc32c(&frame[crc.start as usize..])))
    }

    /// Corrects R3 for the byte at `at` behind `from`, which has `behind` bytes behind it. Uses R1 and R2.
    fn change(&mut self, from: Reg, at: i16, behind: usize) {
        let table = self.changes(behind);
        self.asm.load(Size::B, R1, from, at);
        self.asm.op_small(Op::Shl, R1, 2);
        self.asm.map_value(R2, DATA, table);
        self.asm.op(Op::Add, R2, R1);
        self.asm.load(Size::W, R1, R2, 0);
        self.asm.op(Op::Xor, R3, R1);
    }

    /// The table for bytes with so many behind them, which all streams share.
    fn changes(&mut self, behind: usize) -> u32 {
        if let Some(&at) = self.changes.get(&behind) {
            return at;
        }
        let at = self.table(changes(behind).into_iter().flat_map(|change| change.swap_bytes().to_ne_bytes()));
        self.changes.insert(behind, at);
        at
    }
}
