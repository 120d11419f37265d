//! Compiles the programs in `bpf/` that this crate loads.

#[path = "bpf/build.rs"]
mod bpf;

fn main() {
    bpf::compile(&["guard"]);
}
