//! This program at an agent's host: it is copied there, if it is not there yet, and run from where it was copied to.
//!
//! ```text
//!   ssh lab1 netdyno agent --stdio --allow-interface eth1
//!   '------' '-----' '---------------------------------'
//!    prefix  replaced by ~/.cache/netdyno/netdyno-HASH
//! ```
//!
//! By the command's prefix a shell there is asked for its machine and for the file's hash, `dd` takes the file, and the shell looks at the hash again
//! before the file gets its name. What stands there under the name is never believed without its hash.

use crate::client::Patience;
use crate::lost::Lost;
use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What is running, also where its file was replaced meanwhile.
const THIS: &str = "/proc/self/exe";
/// Within this a copy must be there: 100 MB over 2 Mbit/s.
const COPIED_WITHIN: Duration = Duration::from_secs(600);
/// And its hash be looked at, before it has its name.
const NAMED_WITHIN: Duration = Duration::from_secs(60);
const ASKED_WITHIN: Duration = Duration::from_secs(2);
/// Bytes that a shell says, at most.
const SAID_BYTES: u64 = 4096;
/// What ends a line that is meant for us: a login may greet.
const MARK: &str = "netdyno-copy:";

/// Where the program was copied to, of one agent; each of its clones knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copied(Arc<Mutex<Option<String>>>);

impl PartialEq for Copied {
    /// What was found out is no part of what was asked for.
    fn eq(&self, _: &Copied) -> bool {
        true
    }
}

impl Eq for Copied {}

/// The parts of a command around the name of the program.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'c> {
    prefix: &'c str,
    behind: &'c str,
}

/// Of `ssh lab1 netdyno agent --stdio` what stands before `netdyno`, and ` agent --stdio`.
fn parts(command: &str) -> Option<Parts<'_>> {
    let mut at = 0;
    let words: Vec<(usize, &str)> = command
        .split_inclusive(char::is_whitespace)
        .map(|piece| {
            let start = at;
            at += piece.len();
            (start, piece.trim_end())
        })
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let is_program = |word: &str| word.rsplit('/').next() == Some("netdyno") && is_plain(word);
    let [(start, program), _] = *words
        .windows(2)
        .find(|two| matches!(two, [(_, program), (_, verb)] if is_program(program) && *verb == "agent"))?
    else {
        return None;
    };
    let (prefix, behind) = (command.get(..start)?, command.get(start + program.len()..)?);
    // Inside of quotes other words would be another's.
    let is_open = |quote: char| prefix.matches(quote).count() % 2 == 1;
    (!is_open('\'') && !is_open('"')).then_some(Parts { prefix, behind })
}

/// Is it the same word to every shell?
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+'))
}

/// The command that runs the copy.
///
/// # Errors
/// It cannot be copied there.
pub(crate) fn command(command: &str, copied: &Copied, patience: &Patience) -> Result<String, Lost> {
    let Some(parts) = parts(command) else {
        return Err(Lost::NotCopied {
            why: "its command has no words `netdyno agent` outside of quotes, so that where to copy it is not known".to_owned(),
        });
    };
    // One at a time: of an agent that several parts of a job are at, the others wait.
    let mut copied = copied.0.lock().unwrap_or_else(PoisonError::into_inner);
    let path = match &*copied {
        Some(path) => path.clone(),
        None => copied.insert(copy(&parts, patience)?).clone(),
    };
    Ok(format!("{}{path}{}", parts.prefix, parts.behind))
}

fn copy(parts: &Parts<'_>, patience: &Patience) -> Result<String, Lost> {
    let hash = this_hash()?;
    let script = format!(
        "umask 077\nh={hash}\nd=${{XDG_CACHE_HOME:-${{HOME:?}}/.cache}}/netdyno\nmkdir -p \"$d\" || exit\nf=$d/netdyno-$h\n\
         s=no\n[ -f \"$f\" ] && [ \"$(sha256sum \"$f\" | cut -c1-64)\" = $h ] && s=yes\necho \"{MARK} $(uname -s) $(uname -m) $s $f\"\n"
    );
    let shell = format!("{}sh", parts.prefix);
    // Its hash is that of a large file.
    let answer = Duration::max(patience.answer, ASKED_WITHIN);
    let said = at(&shell, Sends::Text(&script), (answer, patience))?;
    let [system, machine, is_there, path] = told(&said)?;
    let here = std::env::consts::ARCH;
    if (system, machine) != ("Linux", here) {
        return Err(not_copied(format!(
            "its machine is {machine} ({system}), and this netdyno is one for {here} (Linux)"
        )));
    }
    // It becomes a word of a command, which shells read.
    if !(path.starts_with('/') && path.ends_with(&hash) && is_plain(path)) {
        return Err(not_copied(format!("the folder there is none to copy to: {}", crate::lost::shown(path))));
    }
    if is_there == "yes" {
        return Ok(path.to_owned());
    }
    let part = format!("{path}.{}-{}", std::process::id(), clocks::now(clocks::Clock::Tai));
    let takes = format!("{}dd bs=65536 of={part}", parts.prefix);
    let took = at(&takes, Sends::This, (COPIED_WITHIN, patience));
    // Whatever came of it: nothing half stays there.
    let script = format!(
        "if [ \"$(sha256sum {part} | cut -c1-64)\" = {hash} ] && chmod 700 {part} && mv {part} {path}; then s=yes; else rm -f {part}; s=no; fi\n\
         echo \"{MARK} Linux {here} $s {path}\"\n"
    );
    let within = Duration::max(answer, NAMED_WITHIN);
    let said = at(&shell, Sends::Text(&script), (within, patience));
    took?;
    let said = said?;
    match told(&said)? {
        [_, _, "yes", found] if found == path => Ok(path.to_owned()),
        _ => Err(not_copied("what arrived there is not what was sent: its disk may be full".to_owned())),
    }
}

fn not_copied(why: String) -> Lost {
    Lost::NotCopied { why }
}

/// The last line that is meant for us.
fn told(said: &str) -> Result<[&str; 4], Lost> {
    let line = said.lines().rev().find_map(|line| line.trim().strip_prefix(MARK));
    let words: Option<[&str; 4]> =
        line.and_then(|line| line.split_whitespace().collect::<Vec<_>>().try_into().ok());
    words.ok_or_else(|| not_copied(format!("no shell answers there: {}", crate::lost::shown(said.trim()))))
}

/// SHA-256 of this program, in hexadecimal.
fn this_hash() -> Result<String, Lost> {
    static HASH: OnceLock<String> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return Ok(hash.clone());
    }
    let (mut file, mut hash, mut piece) = (std::fs::File::open(THIS)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(piece.get(..count).unwrap_or_default()),
        }
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(HASH.get_or_init(|| hash).clone())
}

/// What a command gets as its input.
enum Sends<'a> {
    Text(&'a str),
    This,
}

/// Runs a command to its end, and returns what it said.
fn at(command: &str, sends: Sends<'_>, (within, patience): (Duration, &Patience)) -> Result<String, Lost> {
    let (input, text) = match sends {
        Sends::Text(text) => (Stdio::piped(), text),
        Sends::This => (Stdio::from(std::fs::File::open(THIS)?), ""),
    };
    let mut child = Ends(
        port::outside::program("sh")
            .args(["-c", command])
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?,
    );
    let reader = |from: Option<Box<dyn Read + Send>>| {
        let read = move || {
            let mut said = Vec::new();
            if let Some(mut from) = from {
                let _ = from.by_ref().take(SAID_BYTES).read_to_end(&mut said);
                // Who writes more is not held up.
                let _ = std::io::copy(&mut from, &mut std::io::sink());
            }
            String::from_utf8_lossy(&said).into_owned()
        };
        std::thread::Builder::new().name("copies".to_owned()).stack_size(128 << 10).spawn(read)
    };
    let out = reader(child.0.stdout.take().map(|from| Box::new(from) as Box<dyn Read + Send>))?;
    let errors = reader(child.0.stderr.take().map(|from| Box::new(from) as Box<dyn Read + Send>))?;
    if let Some(mut to) = child.0.stdin.take() {
        // It is less than a pipe holds; who does not read it says why.
        match to.write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
    }
    let until = Instant::now() + within;
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        if patience.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Lost::Stopped);
        }
        if Instant::now() > until {
            return Err(not_copied(format!(
                "no end within {} s of `{}`",
                within.as_secs(),
                crate::lost::shown(command)
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        // What the command started may hold the pipes still.
        let said = if errors.is_finished() { errors.join().unwrap_or_default() } else { String::new() };
        return Err(Lost::Ended { how: format!("ended ({status})"), said });
    }
    Ok(out.join().unwrap_or_default())
}

/// A command that is ended with all that it started, however it is left.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_its_command() {
        for (command, prefix, behind) in [
            ("netdyno agent --stdio", "", " agent --stdio"),
            ("ssh -p 22 lab1 /opt/netdyno agent --stdio", "ssh -p 22 lab1 ", " agent --stdio"),
            ("kubectl exec -i pod -- sudo -n netdyno  agent", "kubectl exec -i pod -- sudo -n ", "  agent"),
            ("ssh 'a b' netdyno agent --x 'y z'", "ssh 'a b' ", " agent --x 'y z'"),
        ] {
            assert_eq!(parts(command), Some(Parts { prefix, behind }), "{command}");
        }
        for none in [
            "ssh lab1",
            "netdyno agents reach lab1",
            "ssh lab1 'netdyno agent --stdio'",
            "ssh lab1 \"sudo netdyno agent\"",
            "agent",
            "sh -c '/opt/netdyno agent --stdio'",
            "",
        ] {
            assert_eq!(parts(none), None, "{none}");
        }
    }

    #[test]
    fn what_a_login_says_before_is_left_and_what_is_no_answer_is_an_error() {
        let said = format!("Welcome!\n{MARK} Linux x86_64 no /root/.cache/netdyno/netdyno-ab\n");
        assert_eq!(told(&said).ok(), Some(["Linux", "x86_64", "no", "/root/.cache/netdyno/netdyno-ab"]));
        for bad in ["", "netdyno-copy:", "netdyno-copy: a b c", "netdyno-copy: a b c d e", "x"] {
            assert!(
                told(bad).is_err_and(|lost| lost.to_string().contains("no shell answers there")),
                "{bad}"
            );
        }
    }
}
