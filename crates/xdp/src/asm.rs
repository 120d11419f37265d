//! Writing eBPF: instructions with names, and jumps to labels.
//!
//! Only what the compiler needs. The encoding is that of
//! Documentation/bpf/standardization/instruction-set.rst (RFC 9669).

use bpf::Insn;

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reg(u8);

/// Result, and scratch.
pub const R0: Reg = Reg(0);
/// First argument; calls destroy 1 to 5.
pub const R1: Reg = Reg(1);
/// Second argument.
pub const R2: Reg = Reg(2);
/// Third argument.
pub const R3: Reg = Reg(3);
/// Fourth argument.
pub const R4: Reg = Reg(4);
/// Fifth argument.
pub const R5: Reg = Reg(5);
/// Kept over calls, as the next three.
pub const R6: Reg = Reg(6);
/// Kept.
pub const R7: Reg = Reg(7);
/// Kept.
pub const R8: Reg = Reg(8);
/// Kept.
pub const R9: Reg = Reg(9);
/// The end of the stack frame, read only.
pub const FP: Reg = Reg(10);

/// Width of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// One byte.
    B,
    /// Two.
    H,
    /// Four.
    W,
    /// Eight.
    D,
}

impl Size {
    fn bits(self) -> u8 {
        match self {
            Size::W => 0x00,
            Size::H => 0x08,
            Size::B => 0x10,
            Size::D => 0x18,
        }
    }

    /// In bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
            Size::D => 8,
        }
    }
}

/// Arithmetic on 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Unsigned quotient; 0 when divided by 0.
    Div,
    /// Union of bits.
    Or,
    /// Intersection.
    And,
    /// To the left.
    Shl,
    /// To the right, unsigned.
    Shr,
    /// Unsigned remainder.
    Mod,
    /// Exclusive or.
    Xor,
    /// Copy.
    Mov,
}

impl Op {
    fn bits(self) -> u8 {
        match self {
            Op::Add => 0x00,
            Op::Sub => 0x10,
            Op::Mul => 0x20,
            Op::Div => 0x30,
            Op::Or => 0x40,
            Op::And => 0x50,
            Op::Shl => 0x60,
            Op::Shr => 0x70,
            Op::Mod => 0x90,
            Op::Xor => 0xa0,
            Op::Mov => 0xb0,
        }
    }
}

/// Unsigned comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum If {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Some bit in common.
    Set,
}

impl If {
    fn bits(self) -> u8 {
        match self {
            If::Eq => 0x10,
            If::Gt => 0x20,
            If::Ge => 0x30,
            If::Set => 0x40,
            If::Ne => 0x50,
            If::Lt => 0xa0,
            If::Le => 0xb0,
        }
    }
}

/// A place to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A jump is too long for its 16 bits: the program is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFar;

/// Helpers of the kernel, by their numbers in include/uapi/linux/bpf.h.
pub mod helper {
    /// `u64 bpf_ktime_get_ns(void)`
    pub const KTIME: i32 = 5;
    /// `u64 bpf_ktime_get_tai_ns(void)` (Linux 6.1)
    pub const KTIME_TAI: i32 = 208;
    /// `long bpf_redirect(ifindex, flags)`
    pub const REDIRECT: i32 = 23;
    /// `long bpf_xdp_adjust_tail(ctx, delta)`
    pub const ADJUST_TAIL: i32 = 65;
    /// `long bpf_xdp_store_bytes(ctx, offset, from, length)`
    pub const STORE_BYTES: i32 = 190;
}

/// Collects instructions.
#[derive(Debug, Default)]
pub struct Asm {
    code: Vec<Insn>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    /// Nothing yet.
    pub fn new() -> Asm {
        Asm::default()
    }

    /// Instructions so far.
    pub fn size(&self) -> usize {
        self.code.len()
    }

    /// The program, its jumps resolved.
    ///
    /// # Errors
    /// That a jump is longer than an instruction can say.
    pub fn finish(mut self) -> Result<Vec<Insn>, TooFar> {
        for (at, label) in &self.jumps {
            // A label that was never placed is a defect of the compiler; the verifier would refuse the jump.
            let to = self.labels[label.0].unwrap_or(*at) as i64;
            self.code[*at].offset = i16::try_from(to - *at as i64 - 1).map_err(|_| TooFar)?;
        }
        Ok(self.code)
    }

    fn push(&mut self, code: u8, dst: Reg, src: Reg, offset: i16, immediate: i32) {
        self.code.push(Insn { code, registers: dst.0 | src.0 << 4, offset, immediate });
    }

    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `dst = dst op src`
    pub fn op(&mut self, op: Op, dst: Reg, src: Reg) {
        self.push(0x0f | op.bits(), dst, src, 0, 0);
    }

    /// `dst = dst op value`; a value beyond 32 bits goes through `spare`.
    pub fn op_imm(&mut self, op: Op, dst: Reg, value: u64, spare: Reg) {
        match i32::try_from(value as i64) {
            Ok(small) => self.push(0x07 | op.bits(), dst, R0, 0, small),
            Err(_) => {
                self.mov_imm(spare, value);
                self.op(op, dst, spare);
            }
        }
    }

    /// `dst = dst op value`, for values of at most 31 bits.
    pub fn op_small(&mut self, op: Op, dst: Reg, value: u32) {
        debug_assert!(value <= i32::MAX as u32, "sign would be extended");
        self.push(0x07 | op.bits(), dst, R0, 0, value as i32);
    }

    /// `dst = value`
    pub fn mov_imm(&mut self, dst: Reg, value: u64) {
        match i32::try_from(value as i64) {
            Ok(small) => self.push(0xb7, dst, R0, 0, small),
            Err(_) => {
                self.push(0x18, dst, R0, 0, value as i32);
                self.push(0x00, R0, R0, 0, (value >> 32) as i32);
            }
        }
    }

    /// `dst = src`
    pub fn mov(&mut self, dst: Reg, src: Reg) {
        self.op(Op::Mov, dst, src);
    }

    /// `dst = dst & 0xffffffff`
    pub fn low32(&mut self, dst: Reg) {
        self.push(0xbc, dst, dst, 0, 0);
    }

    /// The low `bits` (16, 32, 64) as big-endian bytes, as they are to stand in a frame.
    pub fn big_endian(&mut self, dst: Reg, bits: i32) {
        self.push(0xdc, dst, R0, 0, bits);
    }

    /// `dst = *(size *)(src + offset)`
    pub fn load(&mut self, size: Size, dst: Reg, src: Reg, offset: i16) {
        self.push(0x61 | size.bits(), dst, src, offset, 0);
    }

    /// `*(size *)(dst + offset) = src`
    pub fn store(&mut self, size: Size, dst: Reg, offset: i16, src: Reg) {
        self.push(0x63 | size.bits(), dst, src, offset, 0);
    }

    /// `*(size *)(dst + offset) = value`, sign-extended from 32 bits.
    pub fn store_imm(&mut self, size: Size, dst: Reg, offset: i16, value: i32) {
        self.push(0x62 | size.bits(), dst, R0, offset, value);
    }

    /// `dst = &value of the map + offset`
    pub fn map_value(&mut self, dst: Reg, map: i32, offset: u32) {
        self.push(0x18, dst, Reg(2), 0, map);
        self.push(0x00, R0, R0, 0, offset as i32);
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: i32) {
        self.push(0x85, R0, R0, 0, helper);
    }

    /// Ends the program; R0 is the verdict.
    pub fn exit(&mut self) {
        self.push(0x95, R0, R0, 0, 0);
    }

    /// Jumps.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, R0, R0, 0, 0);
    }

    /// Jumps if `a cond b`.
    pub fn jump_if(&mut self, cond: If, a: Reg, b: Reg, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x0d | cond.bits(), a, b, 0, 0);
    }

    /// Jumps if `a cond value`; a value beyond 31 bits goes through `spare`.
    pub fn jump_if_imm(&mut self, cond: If, a: Reg, value: u64, spare: Reg, to: Label) {
        match i32::try_from(value as i64) {
            Ok(small) => {
                self.jumps.push((self.code.len(), to));
                self.push(0x05 | cond.bits(), a, R0, 0, small);
            }
            Err(_) => {
                self.mov_imm(spare, value);
                self.jump_if(cond, a, spare, to);
            }
        }
    }
}
