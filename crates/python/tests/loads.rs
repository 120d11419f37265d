//! What CPython looks for when it loads the extension, in the library as it was linked. (What the extension does is tested in Python,
//! `scripts/python`; this has Cargo build it with all other tests, from the same parts.)

use std::path::PathBuf;
use std::process::Command;

#[test]
fn cpython_finds_the_modules_beginning_and_nothing_of_it_is_linked_in() {
    // Cargo puts the library beside its tests.
    let test = std::env::current_exe().expect("this test has a path");
    let library = test.parent().expect("in a folder").join("libnetdyno_core.so");
    let said = |option: &str, library: &PathBuf| {
        let ran = Command::new("readelf")
            .args([option, "--wide"])
            .arg(library)
            .output()
            .expect("readelf (binutils)");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let begins = |line: &&str| line.ends_with(" PyInit__core") && !line.contains(" UND ");
    assert_eq!(said("--dyn-syms", &library).lines().filter(begins).count(), 1);
    // One library for every CPython from 3.9 on: it takes that of whoever loads it.
    let needed = said("--dynamic", &library);
    assert!(needed.contains("(NEEDED)") && !needed.contains("libpython"), "{needed}");
}
