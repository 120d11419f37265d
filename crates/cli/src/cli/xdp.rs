//! The words of `netdyno xdp`.

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Xdp {
    #[command(subcommand)]
    pub command: XdpCommand,
}

#[derive(Debug, Subcommand)]
pub enum XdpCommand {
    /// Run an XDP program over each frame of a capture, at no interface: verdicts, and ns a frame.
    Test(Test),
}

/// What an XDP program can say of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Expected {
    /// To the host's stack.
    Pass,
    /// Not at all.
    Drop,
    /// Back out of the interface.
    Tx,
    /// Out of another one.
    Redirect,
    /// The program failed.
    Aborted,
}

impl Expected {
    /// In the report's words.
    pub fn name(self) -> &'static str {
        match self {
            Expected::Pass => "pass",
            Expected::Drop => "drop",
            Expected::Tx => "tx",
            Expected::Redirect => "redirect",
            Expected::Aborted => "aborted",
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "The kernel runs the program (BPF_PROG_TEST_RUN); nothing is sent, and the program is attached nowhere. First each frame is \
judged once, in order; then some are timed by the kernel's own repetition.\n\n\
Exit status: 0 done, 1 a frame has another verdict than --expect says, 2 not done."
)]
pub struct Test {
    /// The object, as `clang -O2 -g -target bpf -c prog.c -o prog.o` makes it.
    #[arg(value_name = "PROG.o", value_hint = ValueHint::FilePath)]
    pub object: PathBuf,
    /// The capture; - is standard input.
    #[arg(value_name = "CAPTURE", value_hint = ValueHint::FilePath)]
    pub capture: PathBuf,
    /// The program to run, by the name of its function or its section, where the object holds several.
    #[arg(long, value_name = "NAME")]
    pub program: Option<String>,
    /// The verdict that every frame must have; frames with another one are listed by number.
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub expect: Option<Expected>,
    /// Time each frame by so many runs; of long captures a thousand frames are timed. 0: do not.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub repeat: u64,
    /// Write the frames that go on (pass, tx, redirect), as the program left them, into this capture; of pcapng with number and
    /// verdict as a comment.
    #[arg(long, short = 'w', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
