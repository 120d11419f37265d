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

use crate::client::{Patience, listen};
use crate::lost::Lost;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What is running, also where its file was replaced meanwhile.
const THIS: &str = "/proc/self/exe";
/// Within this a copy must be there: 100 MB over 2 Mbit/s.
const COPIED_WITHIN: Duration = Duration::from_secs(600);
/// And its hash be looked at, before it has its name.
const NAMED_WITHIN: Duration = Duration::from_secs(60);
const ASKED_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);
/// What it said last is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// What ends a line that is meant for us: a login may greet.
const MARK: &str = "netdyno-copy:";

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

/// The command that runs the copy, whose hash was looked at right before.
///
/// # Errors
/// It cannot be copied there.
pub(crate) fn command(command: &str, patience: &Patience) -> Result<String, Lost> {
    let Some(parts) = parts(command) else {
        return Err(not_copied(
            "its command has no words `netdyno agent` outside of quotes, so that where to copy it is not known".to_owned(),
        ));
    };
    let path = copy(&parts, patience).map_err(|lost| match lost {
        // Whatever failed, it is no agent of which the command is to be looked at.
        Lost::Ended { .. } => not_copied(lost.to_string()),
        other => other,
    })?;
    Ok(format!("{}{path}{}", parts.prefix, parts.behind))
}

/// What a shell says of the place of the copy, whose name ends with `$h`, and of an unfinished one.
const LOOKS: &str = "umask 077
d=${XDG_CACHE_HOME:-${HOME:?}/.cache}/netdyno
mkdir -p \"$d\" || exit
find \"$d\" -maxdepth 1 -name 'netdyno-*.part-*' -mmin +60 -exec rm -f {} + 2>/dev/null
f=$d/netdyno-$h
s=no
command -v sha256sum >/dev/null || s=blind
[ -f \"$f\" ] && [ \"$(sha256sum \"$f\" | cut -c1-64)\" = $h ] && s=yes
[ $s = no ] && { : > \"$f.part-$p\" || exit; }
";

fn copy(parts: &Parts<'_>, patience: &Patience) -> Result<String, Lost> {
    let hash = this_hash()?;
    let number = format!("{}-{}", std::process::id(), clocks::now(clocks::Clock::Tai));
    let script = format!("h={hash}\np={number}\n{LOOKS}echo \"{MARK} $(uname -s) $(uname -m) $s $f\"\n");
    let shell = format!("{}sh", parts.prefix);
    // Its hash is that of a large file.
    let answer = Duration::max(patience.answer, ASKED_WITHIN);
    let said = at(&shell, Sends::Text(&script), (answer, patience))?;
    let [system, machine, is_there, path] = told(&said)?;
    let part = format!("{path}.part-{number}");
    // It becomes a word of a command, which shells read.
    if !(path.starts_with('/') && path.ends_with(&hash) && is_plain(path)) {
        return Err(not_copied(format!(
            "the folder there has a name that shells read otherwise: {}",
            crate::lost::shown(path)
        )));
    }
    let here = std::env::consts::ARCH;
    let took = match is_there {
        _ if (system, machine) != ("Linux", here) => Err(not_copied(format!(
            "its machine is {machine} ({system}), and this netdyno is one for {here} (Linux)"
        ))),
        "yes" => return Ok(path.to_owned()),
        "no" => at(&format!("{}dd bs=65536 of={part}", parts.prefix), Sends::This, (COPIED_WITHIN, patience)),
        _ => return Err(not_copied("there is no sha256sum there, by which its hash is compared".to_owned())),
    };
    // Whatever came of it, and whoever does not wait for it: nothing half stays there.
    let script = format!(
        "if [ \"$(sha256sum {part} | cut -c1-64)\" = {hash} ] && chmod 700 {part} && mv {part} {path}; then s=yes; else rm -f {part}; s=no; fi\n\
         echo \"{MARK} Linux {here} $s {path}\"\n"
    );
    let within = Duration::max(answer, if took.is_ok() { NAMED_WITHIN } else { ASKED_WITHIN });
    let ends = Patience { answer, stop: Arc::default() };
    let said = at(&shell, Sends::Text(&script), (within, &ends));
    took?;
    match told(&said?)? {
        [_, _, "yes", found] if found == path => Ok(path.to_owned()),
        _ => Err(not_copied("what arrived there is not what was sent: its disk may be full".to_owned())),
    }
}

fn not_copied(why: String) -> Lost {
    Lost::NotCopied { why }
}

/// The last line that is meant for us: the system, the machine, a word, and a path.
fn told(said: &str) -> Result<[&str; 4], Lost> {
    let line = said.lines().rev().find_map(|line| line.trim().strip_prefix(MARK));
    let words: Option<[&str; 4]> =
        line.and_then(|line| line.trim_start().splitn(4, ' ').collect::<Vec<_>>().try_into().ok());
    let whole = words.filter(|words| words.iter().all(|word| !word.is_empty()));
    whole.ok_or_else(|| not_copied(format!("no shell answers there: {}", crate::lost::shown(said.trim()))))
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

/// The last that a command has said.
type Said = Arc<Mutex<Vec<u8>>>;

/// What a command gets as its input.
enum Sends<'a> {
    Text(&'a str),
    This,
}

/// Runs a command to its end, and returns the last that it said.
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
    let (said, complained): (Said, Said) = Default::default();
    let mut readers = Vec::new();
    if let (Some(out), Some(errors)) = (child.0.stdout.take(), child.0.stderr.take()) {
        readers = vec![listen(out, Arc::clone(&said))?, listen(errors, Arc::clone(&complained))?];
    }
    if let Some(mut to) = child.0.stdin.take() {
        // It is less than a pipe holds; who does not read it says why.
        match to.write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
    }
    let until = Instant::now() + within;
    while !child.has_ended()? {
        if patience.stop.load(Relaxed) {
            return Err(Lost::Stopped);
        }
        if Instant::now() > until {
            let command = crate::lost::shown(command);
            return Err(not_copied(format!("no end within {} s of `{command}`", within.as_secs())));
        }
        std::thread::sleep(LOOK);
    }
    let status = child.end()?;
    // Who left the command's group may hold the pipes for ever.
    let until = Instant::now() + LAST_WORDS;
    while readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
    let text = |said: &Said| {
        String::from_utf8_lossy(&said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    };
    match status.success() {
        true => Ok(text(&said)),
        false => Err(Lost::Ended { how: format!("ended ({status})"), said: text(&complained) }),
    }
}

/// A command that is ended with all that it started, however it is left.
struct Ends(Child);

impl Ends {
    /// It is not waited for: its number stays its own.
    fn has_ended(&self) -> std::io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.0)), how)?.is_some())
    }

    /// Ends what is left of it.
    fn end(&mut self) -> std::io::Result<ExitStatus> {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        self.0.wait()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        // One that was waited for has a status, and no group that is known to be its own.
        if self.has_ended().is_ok() {
            let _ = self.end();
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
        for bad in ["", "netdyno-copy:", "netdyno-copy: a b c", "x"] {
            assert!(
                told(bad).is_err_and(|lost| lost.to_string().contains("no shell answers there")),
                "{bad}"
            );
        }
    }
}
