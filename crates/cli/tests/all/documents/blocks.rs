//! The command lines of a page, and what the page says of them.
//!
//! A block is a paragraph that is indented by four blanks, or what stands between fences of `sh`. It is one of commands if its first
//! line begins with a word of `PROGRAMS`; others show output, files or drawings. Each command of a block is typed by itself, and must
//! end with 0, unless a comment right above the block, which nobody sees in the page as it is drawn, says otherwise, and why:
//!
//! ```text
//! <!-- not typed: it needs a NIC of 100GbE -->
//! <!-- exit 1: the bottleneck loses frames -->
//! <!-- exit 0 or 1: as the machine has it -->
//! <!-- until 2s: it runs until Ctrl-C -->
//! <!-- until 2s exit 1: it runs until Ctrl-C, and was to run for an hour -->
//! <!-- stays: a server, for what follows -->
//! <!-- far stays: a server, on the other host -->
//! <!-- as profile.yaml -->                    above a fence: what stands there is the file that the next commands read
//! <!-- line 2 until 2s: of the second command of the block only -->
//! ```

use std::path::Path;

/// What commands in documents begin with.
const PROGRAMS: &[&str] = &[
    "apt",
    "cargo",
    "cd",
    "clang",
    "containerlab",
    "cp",
    "curl",
    "docker",
    "echo",
    "for",
    "git",
    "gor",
    "ip",
    "iperf3",
    "jq",
    "kubectl",
    "ln",
    "make",
    "mkdir",
    "mkfifo",
    "netdyno",
    "netperf",
    "netstat",
    "podman",
    "printf",
    "rustup",
    "sed",
    "sha256sum",
    "ssh-keygen",
    "sudo",
    "tar",
    "tcpdump",
    "timeout",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    NotTyped,
    /// It ends, with one of these.
    Exit(Vec<i32>),
    /// It runs until Ctrl-C, so many seconds after its first words, and ends with this.
    Until(u32, i32),
    /// It stays until the page ends.
    Stays,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub line: usize,
    pub text: String,
    pub says: Says,
    pub far: bool,
}

/// The commands of a page, or what is wrong with it.
pub fn commands(page: &str, text: &str) -> Result<Vec<Typed>, String> {
    let mut found = Vec::new();
    for block in blocks(text) {
        let at = |what: &str| format!("{page}:{}: {what}", block.line);
        if let ["cat <<'END' >", name, text @ ..] = &block.lines[..] {
            let text = format!("cat <<'END' >{name}\n{}", text.join("\n"));
            found.push(Typed { line: block.line, text, says: Says::Exit(vec![0]), far: false });
            continue;
        }
        let first = block.lines.iter().position(|line| !line.starts_with('#')).unwrap_or_default();
        let are = block.lines.get(first).is_some_and(|line| is_command(line));
        if !are {
            if !block.comments.is_empty() {
                return Err(at("a comment for commands stands above what is none"));
            }
            if let Some(line) =
                block.lines.iter().find(|line| line.starts_with("netdyno ") || line.starts_with("sudo "))
            {
                return Err(at(&format!("a command in the midst of other lines: {line}")));
            }
            continue;
        }
        let mut typed: Vec<Typed> = split(&block.lines)
            .into_iter()
            .map(|(line, text)| Typed {
                line: block.line + line,
                text,
                says: Says::Exit(vec![0]),
                far: false,
            })
            .collect();
        for comment in &block.comments {
            let (only, far, says) =
                said(comment).ok_or_else(|| at(&format!("not understood, or no reason: {comment}")))?;
            let count = typed.len();
            let chosen = match only {
                None => typed.iter_mut().collect::<Vec<_>>(),
                Some(n) => {
                    vec![typed.get_mut(n - 1).ok_or_else(|| at(&format!("line {n} of {count} commands")))?]
                }
            };
            for one in chosen {
                one.says = says.clone();
                one.far = far;
            }
        }
        found.extend(typed);
    }
    Ok(found)
}

struct Block<'a> {
    /// Of its first line, from 1.
    line: usize,
    lines: Vec<&'a str>,
    comments: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block> = Vec::new();
    let mut comments = Vec::new();
    let (mut within, mut fence) = (false, None);
    // A file that a page shows, which is written by a command of ours.
    let mut file: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            within = false;
            fence = match fence {
                Some(_) => None,
                None => Some(language),
            };
            if let Some(mut written) = file.take() {
                written.lines.push("END");
                found.push(written);
            } else if let Some(name) = comments.first().and_then(|comment: &&str| comment.strip_prefix("as "))
            {
                file = Some(Block { line: at + 1, lines: vec!["cat <<'END' >", name], comments: Vec::new() });
                comments.clear();
            }
            continue;
        }
        if let Some(file) = &mut file {
            file.lines.push(line);
            continue;
        }
        let code = match fence {
            Some("sh") => (!line.is_empty()).then_some(line),
            Some(_) => None,
            None => line.strip_prefix("    ").filter(|line| !line.trim().is_empty()),
        };
        match (code, found.last_mut()) {
            (Some(code), Some(block)) if within => block.lines.push(code),
            (Some(code), _) => {
                let comments = std::mem::take(&mut comments);
                found.push(Block { line: at + 1, lines: vec![code], comments });
            }
            (None, _) if fence.is_none() => match comment(line) {
                Some(comment) => comments.push(comment),
                None if line.trim().is_empty() => {}
                None => comments.clear(),
            },
            (None, _) => {}
        }
        within = code.is_some();
    }
    found
}

fn comment(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let words = ["not typed", "exit", "until", "stays", "far", "line", "as "];
    words.iter().any(|word| inner.starts_with(word)).then_some(inner)
}

fn is_command(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    let assigns = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    (PROGRAMS.contains(&word) || word.starts_with("scripts/") || assigns) && !line.starts_with(' ')
}

/// `line 2 until 2s: reason`: of which command, whether on the other host, what.
fn said(comment: &str) -> Option<(Option<usize>, bool, Says)> {
    let (words, reason) = comment.split_once(": ")?;
    if reason.trim().len() < 8 {
        return None;
    }
    let (only, words) = match words.strip_prefix("line ") {
        Some(rest) => {
            let (number, words) = rest.split_once(' ')?;
            (Some(number.parse::<usize>().ok().filter(|n| *n > 0)?), words)
        }
        None => (None, words),
    };
    let (far, words) = words.strip_prefix("far ").map_or((false, words), |words| (true, words));
    let says = match words.split_once(' ') {
        _ if words == "stays" => Says::Stays,
        _ if words == "not typed" => Says::NotTyped,
        Some(("exit", all)) => {
            Says::Exit(all.split(" or ").map(|one| one.parse().ok()).collect::<Option<_>>()?)
        }
        Some(("until", time)) => {
            let (time, status) = time.split_once(" exit ").unwrap_or((time, "0"));
            Says::Until(time.strip_suffix('s')?.parse().ok()?, status.parse().ok()?)
        }
        _ => return None,
    };
    Some((only, far, says))
}

/// Commands: lines that belong together by a backslash, an open quote, a pipe, or since the first runs in the background.
fn split(lines: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in lines.iter().enumerate() {
        match found.last_mut() {
            Some((_, text)) if open => {
                text.push('\n');
                text.push_str(line);
            }
            _ => found.push((at, (*line).to_owned())),
        }
        let so_far = found.last().map_or("", |(_, text)| text.as_str());
        let (quoted, code) = without_quotes(so_far);
        let end = code.trim_end();
        let loops = so_far.starts_with("for ") && !so_far.ends_with("\ndone");
        open = quoted || loops || end.ends_with(['\\', '|', '&', '{', '(']);
    }
    found.retain(|(_, text)| text.lines().any(|line| !line.starts_with('#')));
    found
}

/// Is a quote open at its end? And its last line without what stands in quotes, and without its comment.
fn without_quotes(text: &str) -> (bool, String) {
    let (mut open, mut rest, mut before, mut remark) = (None, String::new(), ' ', false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match open {
            _ if c == '\n' && open.is_none() => {
                remark = false;
                rest.clear();
            }
            _ if remark => {}
            None if c == '\\' => {
                rest.push(c);
                if chars.next() == Some('\n') {
                    rest.clear();
                }
            }
            None if c == '"' || c == '\'' => open = Some(c),
            None if c == '#' && before.is_whitespace() => remark = true,
            None => rest.push(c),
            Some('"') if c == '\\' => {
                chars.next();
            }
            Some(quote) if c == quote => open = None,
            Some(_) => {}
        }
        before = c;
    }
    (open.is_some(), rest)
}

/// README.md and the pages of docs, by their paths from the repository's root.
pub fn pages(root: &Path) -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in [
        "docs",
        "docs/benchmarks",
        "docs/design",
        "examples",
        "examples/containerlab",
        "examples/kubernetes",
        "examples/nats",
        "examples/grafana",
    ] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

#[test]
fn commands_are_told_from_output_and_say_what_becomes_of_them() {
    let page = "text\n\n    netdyno a 'b\n      c' # d & e\n    netdyno f \\\n      g &\n    kill $!\n\n    sent 1\n\n\
        <!-- line 2 exit 1: it loses frames -->\n<!-- line 1 far stays: it is a server -->\n\n    # first\n    netdyno h\n    for a in b; do\n      jq c\n    done\n    jq i |\n      jq j\n\n\
        ```sh\nmake k\n\nmake l\n```\n\n```yaml\nnetdyno m\n```\n\n\
        <!-- as n -->\n```yaml\no:\n\n  p\n```\n";
    let found = commands("p", page).expect("commands");
    let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "netdyno a 'b\n  c' # d & e",
            "netdyno f \\\n  g &\nkill $!",
            "netdyno h",
            "for a in b; do\n  jq c\ndone",
            "jq i |\n  jq j",
            "make k",
            "make l",
            "cat <<'END' >n\no:\n\n  p\nEND"
        ]
    );
    assert_eq!(found[2], Typed { line: 15, text: "netdyno h".into(), says: Says::Stays, far: true });
    assert_eq!((found[3].says.clone(), found[3].far), (Says::Exit(vec![1]), false));
    for wrong in [
        "<!-- exit 1 -->\n\n    netdyno a\n",
        "<!-- exit 1: no -->\n\n    netdyno a\n",
        "<!-- until: Ctrl-C ends it -->\n\n    netdyno a\n",
        "<!-- line 2 exit 1: there is no second -->\n\n    netdyno a\n",
        "<!-- not typed: this is no command -->\n\n    sent 1\n",
        "    sent 1\n    netdyno a\n",
    ] {
        commands("p", wrong).expect_err(wrong);
    }
}
