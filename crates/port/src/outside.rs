//! Other programs that this one calls: tcpdump, a shell.

use std::path::PathBuf;
use std::process::Command;

/// Where the system's programs are (the default of sudo's secure_path).
const SYSTEM: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A command that runs `name`. For root it is the system's, whatever PATH says: that may be the one of a user who became
/// root with it as it was, and name a folder that others may write to.
pub fn program(name: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(name);
    }
    let found = SYSTEM.iter().map(|folder| PathBuf::from(folder).join(name)).find(|path| path.is_file());
    // One that is not there must not be looked for in PATH.
    Command::new(found.unwrap_or_else(|| PathBuf::from(SYSTEM[0]).join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn root_runs_the_systems_programs() {
        assert!(rustix::process::geteuid().is_root(), "these tests need root");
        let shell = program("sh");
        assert!(Path::new(shell.get_program()).is_absolute(), "{shell:?}");
        assert!(
            program("sh")
                .args(["-c", "true"])
                .env("PATH", "/no/such/folder")
                .status()
                .expect("a shell")
                .success()
        );
        assert!(program("no-such-program").spawn().is_err());
    }
}
