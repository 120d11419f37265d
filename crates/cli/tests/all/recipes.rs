//! docs/recipes.md, line by line, as it is typed.

use crate::common::{run, unfolded};
use crate::documents::SLOW;
use crate::judged::judged;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Recipes at once. Most wait for their own end most of the time; more would make senders late.
const AT_ONCE: usize = 4;
/// None takes as long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Frames that a recipe writes: the file, what tshark says of them by a display filter, how many they are (of `None` all in the
/// file), and how many different values fields have.
type Frames = (&'static str, &'static str, Option<usize>, &'static [(&'static str, usize)]);

/// What the sentences of recipes say of the frames that they write.
const FRAMES: &[Frames] = &[
    (
        "dns.pcap",
        "dns.flags.response == 0 && udp.dstport == 53",
        Some(1_000),
        &[("dns.qry.name", 3), ("dns.id", 1_000)],
    ),
    (
        "dhcp.pcap",
        "dhcp.option.dhcp == 1 && eth.dst == ff:ff:ff:ff:ff:ff",
        Some(1_000),
        &[("dhcp.hw.mac_addr", 1_000), ("eth.src", 1_000)],
    ),
    ("http.pcap", "http.request.method == \"GET\"", Some(100), &[("http.request.uri", 2), ("http.host", 2)]),
    (
        "join.pcap",
        "eth.dst == 01:00:5e:00:00:16 && ip.dst == 224.0.0.22 && ip.ttl == 1 && igmp.type == 0x22",
        Some(65_536),
        &[("igmp.maddr", 65_536)],
    ),
    ("ports.pcap", "tcp.flags == 2 && ip.dst == 10.0.0.1", Some(1_024), &[("tcp.dstport", 1_024)]),
    // 60 bytes are 64 with the FCS.
    (
        "tcp_port_scan_64.pcap",
        "tcp.flags == 2 && frame.len == 60 && tcp.dstport >= 1025",
        Some(64_511),
        &[("tcp.dstport", 64_511), ("ip.dst", 1)],
    ),
    ("flows10k.pcap", "udp && ip.src == 10.0.0.0/8", Some(10_000), &[("ip.src", 10_000)]),
    ("gtpu.pcap", "gtp && tcp", Some(100), &[("gtp.teid", 10)]),
    // As tshark counts them in the whole capture.
    ("part.pcap", "frame.time_relative <= 100", Some(5_044), &[]),
    ("scrambled.pcap", "frame", Some(14_261), &[]),
    // Three times the frames of smallFlows.pcap.
    ("longer.pcap", "frame", Some(3 * 14_261), &[]),
    ("edited.pcap", "eth.src == 02:00:00:00:00:0a && !(tcp.port == 80)", None, &[("eth.src", 1)]),
];

/// The file that a line makes of frames, if it does.
fn written(line: &str) -> Option<&str> {
    let file = line.split(" -w ").nth(1)?.split_whitespace().next()?;
    (file.ends_with(".pcap") && file != "small.pcap").then_some(file)
}

/// What tshark finds in a file is not what its recipe says.
fn misjudged(folder: &Path, line: &str) -> Option<String> {
    let file = written(line)?;
    let Some((_, filter, wanted, fields)) = FRAMES.iter().find(|(name, ..)| *name == file) else {
        return Some(format!(
            "nothing is known of the frames of {file}: say in recipes.rs what its sentence says"
        ));
    };
    let listed = |filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.current_dir(folder).args([
            "-n",
            "-r",
            file,
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
        ]);
        for (field, _) in *fields {
            tshark.args(["-e", field]);
        }
        let output = tshark.output().unwrap_or_else(|error| panic!("cannot run tshark: {error}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    let rows = listed(filter);
    let wanted = wanted.unwrap_or_else(|| listed("frame").len());
    if rows.len() != wanted || rows.is_empty() {
        return Some(format!("{file}: {} frames are as said, and {wanted} should be: {filter}", rows.len()));
    }
    fields.iter().enumerate().find_map(|(at, (field, different))| {
        let values: BTreeSet<&str> = rows.iter().filter_map(|row| Some(row.get(at + 1)?.as_str())).collect();
        (values.len() != *different).then(|| {
            let some: Vec<&&str> = values.iter().take(3).collect();
            format!(
                "{file}: {field} has {} different values, and should have {different}: {some:?}",
                values.len()
            )
        })
    })
}

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
            let bad = misjudged(folder.path(), &recipe.line);
            if let Some(bad) = bad {
                wrong.lock().expect("no panic").push(format!("{}\n{}\n{bad}", recipe.task, recipe.line));
            }
            if !(status == wanted || slow) || printed.contains("netdyno: ") || printed.contains("panicked") {
                wrong
                    .lock()
                    .expect("no panic")
                    .push(format!("{}\n{}\nstatus {status}\n{printed}", recipe.task, recipe.line));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(cook))));
    // One for each.
    let late = late.into_inner();
    for n in 0..recipes.len() {
        judged(n >= late);
    }
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recipes.len(), wrong.join("\n\n"));
}
