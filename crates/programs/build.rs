//! Compiles the programs in `bpf/` with clang and generates their typed skeletons into `OUT_DIR`.

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::{env, fs};

/// What to type on the systems people have, said with every failure here.
const MEND: &str = "What runs in the kernel is compiled by clang 14 or newer (set CLANG to name another one). \
     On Debian and Ubuntu: apt install clang libelf-dev zlib1g-dev linux-libc-dev";

/// `bpf/NAME.bpf.c` becomes `NAME.skel.rs`; `src/lib.rs` has the same names.
const PROGRAMS: [&str; 12] = [
    "bridge", "drops", "guard", "heads", "meter", "reflect", "segments", "serve", "sessions", "stamp",
    "steer", "verdicts",
];

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bpf = here.join("bpf");
    println!("cargo:rerun-if-changed={}", bpf.display());
    println!("cargo:rerun-if-env-changed=CLANG");

    let clang = env::var_os("CLANG").map_or_else(|| PathBuf::from("clang"), PathBuf::from);
    if let Err(error) = Command::new(&clang).arg("--version").output() {
        fail(&format!("cannot run the compiler `{}`: {error}", clang.display()));
    }

    let mut args =
        vec!["-Wall".to_owned(), "-Wextra".to_owned(), "-Werror".to_owned(), format!("-I{}", bpf.display())];
    // BTF has the sources' names, and a binary should be the same wherever it is built.
    args.push(format!("-ffile-prefix-map={}=programs", here.display()));
    // <linux/bpf.h> wants <asm/types.h>, which Debian keeps in a folder named after the architecture.
    args.extend(
        triplets()
            .filter(|path| path.join("asm/types.h").exists())
            .map(|path| format!("-I{}", path.display())),
    );

    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for name in PROGRAMS {
        let (source, skeleton) = (bpf.join(format!("{name}.bpf.c")), out.join(format!("{name}.skel.rs")));
        let built = SkeletonBuilder::new()
            .source(&source)
            .clang(&clang)
            .clang_args(args.clone())
            .build_and_generate(&skeleton);
        if let Err(error) = built {
            fail(&format!("cannot compile {}: {error:#}", source.display()));
        }
    }
}

/// `/usr/include/x86_64-linux-gnu` and its like.
fn triplets() -> impl Iterator<Item = PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    fs::read_dir("/usr/include").into_iter().flatten().flatten().map(|entry| entry.path()).filter(
        move |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with(&arch) && name.contains("-linux-gnu")
        },
    )
}

fn fail(what: &str) -> ! {
    for line in what.lines().chain([MEND]) {
        println!("cargo:error={line}");
    }
    exit(1)
}
