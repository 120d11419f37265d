//! Golden files: what a rendering was when someone last looked at it.

/// Compares with a file under tests/golden, or writes it when NETDYNO_BLESS=1.
pub fn assert_golden(path: &str, actual: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("NETDYNO_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, actual).expect("the golden file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected != actual {
        let differs = expected.lines().zip(actual.lines()).position(|(e, a)| e != a);
        let line = differs.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
        panic!(
            "{} is stale from line {}; look at the change, then NETDYNO_BLESS=1 cargo test -p netdyno-report\n  file: {:?}\n  now:  {:?}",
            path.display(),
            line + 1,
            expected.lines().nth(line),
            actual.lines().nth(line)
        );
    }
}
