//! docs/recipes.md, line by line, as it is typed.

use crate::common::{run, unfolded};
use crate::documents::SLOW;
use crate::judged::judged;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Recipes at once. Most wait for their own end most of the time; more would make senders late.
const AT_ONCE: usize = 4;
/// None takes as long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is to be done, and how.
struct Recipe {
    task: String,
    line: String,
}

/// Each indented line, with the paragraph above it.
fn recipes(page: &str) -> Vec<Recipe> {
    let mut task = "";
    let mut found = Vec::new();
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(command) => found.push(Recipe { task: task.to_owned(), line: command.to_owned() }),
            None if !line.trim().is_empty() => task = line,
            None => {}
        }
    }
    found
}

/// Runs a line as a shell does, in a folder and with a loopback interface of its own. Status and what it printed.
fn typed(line: &str, folder: &Path) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_netdyno")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("unshare");
    // Whatever it has started ends with it.
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"]);
    command.arg(format!("ip link set lo up; {line}"));
    let output = std::fs::File::create(folder.join(".output")).expect("a file");
    command.stdout(output.try_clone().expect("a descriptor")).stderr(output).stdin(Stdio::null());
    let mut child = command.env("PATH", path).current_dir(folder).spawn().expect("unshare, of util-linux");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("its state") {
            break status.code().unwrap_or(128);
        }
        if start.elapsed() > PATIENCE {
            child.kill().expect("it runs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let printed = std::fs::read(folder.join(".output")).expect("its output");
    (status, String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn each_recipe_does_what_it_says() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md"))
        .expect("the page");
    let recipes = recipes(&page);
    assert!(recipes.len() >= 30, "{} recipes", recipes.len());
    let scratch = tempfile::tempdir().expect("a folder");
    let capture = scratch.path().join("small.pcap");
    run(format!("netdyno synth --profile smallflows -w {}", capture.display())).ok();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let late = AtomicUsize::new(0);
    let cook = || {
        while let Some(recipe) = recipes.get(next.fetch_add(1, Relaxed)) {
            let folder = tempfile::tempdir_in(scratch.path()).expect("a folder");
            if !recipe.line.contains("-w small.pcap") {
                std::fs::hard_link(&capture, folder.path().join("small.pcap")).expect("the capture");
            }
            let (status, printed) = typed(&recipe.line, folder.path());
            let wanted = i32::from(recipe.task.contains("exit status 1"));
            // Lines are folded where the sentence may be.
            let said = unfolded(&printed);
            let slow = status == 1 && SLOW.iter().any(|slow| said.contains(slow));
            late.fetch_add(usize::from(slow), Relaxed);
            if !(status == wanted || slow) || printed.contains("netdyno: ") || printed.contains("panicked") {
                wrong
                    .lock()
                    .expect("no panic")
                    .push(format!("{}\n{}\nstatus {status}\n{printed}", recipe.task, recipe.line));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(cook))));
    judged(late.into_inner() == 0);
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recipes.len(), wrong.join("\n\n"));
}
