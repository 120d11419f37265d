//! How many promises about time were judged, of those that there are. Such a promise is held only against a sender that says
//! itself that it was in time, so on a busy machine none may be judged, and a suite that passes says nothing of them. Each
//! test that has some ends with a line in the suite's output (not captured, also where it passes), and with the same line in
//! the file that NETDYNO_JUDGED names, which `scripts/test` and `scripts/test-hard` add up.

use std::cell::{Cell, RefCell};
use std::io::Write as _;

/// Of one test: libtest gives each a thread of its own, which ends with it.
#[derive(Default)]
struct Promises {
    judged: Cell<u32>,
    all: Cell<u32>,
    test: RefCell<String>,
}

thread_local! {
    static PROMISES: Promises = Promises::default();
}

/// Is the promise that follows to be judged? `in_time`: the sender says that it was.
pub fn judged(in_time: bool) -> bool {
    PROMISES.with(|promises| {
        promises.all.set(promises.all.get() + 1);
        promises.judged.set(promises.judged.get() + u32::from(in_time));
        let thread = std::thread::current();
        *promises.test.borrow_mut() = thread.name().unwrap_or("a test").to_owned();
    });
    in_time
}

impl Promises {
    fn line(&self) -> Option<String> {
        let (judged, all) = (self.judged.get(), self.all.get());
        (all > 0).then(|| format!("judged {judged} of {all} promises about time: {}\n", self.test.borrow()))
    }
}

impl Drop for Promises {
    fn drop(&mut self) {
        let Some(line) = self.line() else { return };
        // Written at once, past libtest's capture, which takes only what is printed.
        let _ = std::io::stderr().write_all(line.as_bytes());
        if let Some(path) = std::env::var_os("NETDYNO_JUDGED")
            && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path)
        {
            let _ = file.write_all(line.as_bytes());
        }
    }
}

#[test]
fn promises_that_were_not_judged_are_counted() {
    std::thread::spawn(|| {
        assert!(judged(true) && !judged(false) && !judged(false));
        let line = PROMISES.with(Promises::line).expect("a line");
        assert!(line.starts_with("judged 1 of 3 promises about time: "), "{line}");
        // These were none.
        PROMISES.with(|promises| promises.all.set(0));
        assert_eq!(PROMISES.with(Promises::line), None);
    })
    .join()
    .expect("no panic");
}
