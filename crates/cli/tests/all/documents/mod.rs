//! README.md and the pages of docs do what they say: each command is typed, in order, page by page, and links lead somewhere.
//!
//! A page is typed in an empty folder and a lab of its own (lab.sh draws it). How a command must end stands in the page (blocks.rs). A
//! page makes what it reads by a line above. Nothing is sent anywhere but within the lab.

mod blocks;
mod links;

use crate::common;
use crate::judged::judged;
use blocks::{Says, Typed, commands, pages};
use std::collections::VecDeque;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// What takes longer hangs.
const PATIENCE: u32 = 120;
/// What falls short where a sender has not the time it needs.
pub const SLOW: [&str; 5] = [
    "the rate was not reached",
    "the sender fell short of the load",
    "not determined",
    "the load was not offered",
    "permit more of them in flight",
];
/// Pages that are typed at once: most of their time passes in waiting.
const AT_ONCE: usize = 4;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

#[test]
fn every_command_of_the_documents_ends_as_its_page_says() {
    let turns = common::temporary();
    let root = root();
    let only = std::env::var("NETDYNO_PAGES").ok();
    let chosen =
        |page: &String| only.as_ref().is_none_or(|only| only.split(' ').any(|one| page.ends_with(one)));
    // Its lines are typed each by itself, in recipes.rs.
    let recipes = |page: &String| page == "docs/recipes.md";
    let makefile = std::fs::read_to_string(root.join("Makefile")).expect("the Makefile");
    let mut todo = VecDeque::new();
    let (mut typed, mut faults) = (0, Vec::new());
    for page in pages(&root).into_iter().filter(|page| chosen(page) && !recipes(page)) {
        let text = std::fs::read_to_string(root.join(&page)).expect("a page");
        match commands(&page, &text) {
            Err(fault) => faults.push(fault),
            Ok(mut found) => {
                // What is not typed names what there is all the same.
                for target in
                    found.iter().filter_map(|one| one.text.strip_prefix("make ")?.split_whitespace().next())
                {
                    if !makefile.contains(&format!("\n{target}:")) {
                        faults.push(format!("{page}: make {target}: the Makefile has no such target"));
                    }
                }
                found.retain(|one| one.says != Says::NotTyped);
                typed += found.len();
                if !found.is_empty() {
                    todo.push_back((page, found));
                }
            }
        }
    }
    assert!(only.is_some() || typed >= 150, "{typed} commands");
    // The longest first.
    todo.make_contiguous().sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    let (todo, faults) = (Mutex::new(todo), Mutex::new(faults));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            // `judged` counts by the name of the test, which is its thread's.
            let name = std::thread::current().name().unwrap_or("documents").to_owned();
            let worker = std::thread::Builder::new().name(name);
            let typing = worker.spawn_scoped(scope, || {
                loop {
                    let next = todo.lock().expect("pages").pop_front();
                    let Some((page, found)) = next else { break };
                    // A place among other tests for each page, so that none waits for all of them.
                    let typed = || {
                        let room = common::folder();
                        type_page(&root, room.path(), &turns.path().join("turn"), &page, &found)
                    };
                    let mut wrong = typed();
                    // Servers and probes of a page have seconds to begin; on a busy machine that may be too little. A page that is
                    // wrong is wrong each time.
                    if !judged(wrong.is_empty()) {
                        println!("{page} is typed again:\n{}", wrong.join("\n"));
                        wrong = typed();
                    }
                    faults.lock().expect("faults").extend(wrong);
                }
            });
            typing.expect("a thread");
        }
    });
    let faults = faults.into_inner().expect("faults");
    assert!(faults.is_empty(), "{} of {typed} commands:\n\n{}", faults.len(), faults.join("\n\n"));
}

/// Types the commands of a page. What went otherwise than the page says.
fn type_page(root: &Path, room: &Path, turn: &Path, page: &str, found: &[Typed]) -> Vec<String> {
    let lab = include_str!("lab.sh");
    for folder in ["desk", "home", "words", "cgroup"] {
        std::fs::create_dir_all(room.join(folder)).expect("a folder");
    }
    let netdyno = common::command("netdyno").get_program().to_owned();
    symlink(netdyno, room.join("words/netdyno")).expect("a link");
    for name in ["containerlab", "docker", "kubectl"] {
        symlink(root.join("crates/cli/tests/all/documents/containerlab.sh"), room.join("words").join(name))
            .expect("a link");
    }
    symlink(root.join("examples"), room.join("desk/examples")).expect("a link");
    let mut script = String::from(lab);
    for (n, one) in found.iter().enumerate() {
        std::fs::write(room.join(format!("{n}.sh")), format!("{}\n", one.text)).expect("a file");
        let far = if one.far { "far-" } else { "" };
        let (how, seconds) = match one.says {
            Says::Exit(_) | Says::NotTyped => ("ends", PATIENCE),
            Says::Until(seconds, _) => ("until", seconds),
            Says::Stays => ("stays", 0),
        };
        script.push_str(&format!("typed {n} {far}{how} {seconds}\n"));
    }
    script.push_str("ended\n");
    std::fs::write(room.join("page.sh"), script).expect("a file");
    let mut shell = Command::new("unshare");
    shell
        .args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash"])
        .arg(room.join("page.sh"));
    let all: String = found.iter().map(|one| one.text.as_str()).collect();
    let needs =
        |name: &'static str, words: &[&str]| words.iter().any(|word| all.contains(word)).then_some(name);
    let services =
        [needs("http", &["http:", ":80", "80-"]), needs("sink", &["--export", "nprobe", "softflowd"])];
    shell.env("SERVICES", services.map(Option::unwrap_or_default).join(" "));
    shell
        .env("ROOM", room)
        .env("WORDS", room.join("words"))
        .env("TURN", turn)
        .stdin(Stdio::null())
        .process_group(0);
    let ran = common::start(shell).wait();
    let mut faults = Vec::new();
    if !room.join("done").exists() {
        faults.push(format!("{page}: its lab failed ({})\n{}{}", ran.status, ran.stdout, ran.stderr));
    }
    let mut took = Duration::ZERO;
    // What a run that was held up left behind is as short as it, and says so by its status alone.
    let mut held_up = false;
    for (n, one) in found.iter().enumerate() {
        let read = |what: &str| std::fs::read(room.join(format!("{n}.{what}"))).unwrap_or_default();
        let said = String::from_utf8_lossy(&read("out")).into_owned();
        let status = String::from_utf8(read("status")).unwrap_or_default();
        let (status, ms) = status.trim().rsplit_once(' ').unwrap_or(("none", "0"));
        let ms = ms.parse().unwrap_or_default();
        took += Duration::from_millis(ms);
        if std::env::var_os("NETDYNO_PAGES").is_some() {
            eprintln!("{page}:{}: {ms} ms, exit {status}: {}", one.line, one.text);
        }
        let wanted = match &one.says {
            Says::Exit(all) => all.clone(),
            Says::Until(_, status) => vec![*status],
            Says::NotTyped | Says::Stays => vec![0],
        };
        let right = status.parse().is_ok_and(|status| wanted.contains(&status));
        if right && wanted == [0] && one.text.contains("--rate") {
            judged(true);
        }
        let excused = !right
            && (status == "1" && only_held_up(&said)
                || held_up && one.text.starts_with("netdyno report ") && matches!(status, "1" | "2"));
        held_up |= excused;
        if !(right || excused) {
            let last: Vec<&str> = said.lines().rev().take(12).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            faults.push(format!(
                "{page}:{}: exit {status}, not {wanted:?}: {}\n{}",
                one.line,
                one.text,
                last.join("\n")
            ));
        }
    }
    eprintln!("{page}: {} commands, {:.1} s", found.len(), took.as_secs_f64());
    faults
}

/// Did a run fall short of its rate only, or a search find nothing out? Beside other work a sender is late, and says so.
fn only_held_up(said: &str) -> bool {
    let short = said.lines().rev().find_map(|line| line.strip_prefix("Short of what was asked: "));
    let reasons = short.unwrap_or_default().trim_end_matches('.').split("; ");
    let only = short.is_some() && reasons.clone().all(|one| SLOW.iter().any(|slow| one.contains(slow)));
    let json = said.contains("\"the rate was not reached")
        && said.matches("\"severity\": \"shortfall\"").count() == 1;
    !judged(!(only || json))
}
