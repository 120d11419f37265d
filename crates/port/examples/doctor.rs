//! Prints a diagnosis: `sudo doctor eth0`. `netdyno doctor` does the same, with `--json`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let interface = std::env::args().nth(1);
    match netdyno_port::doctor::diagnose(interface.as_deref()) {
        Ok(diagnosis) => {
            print!("{}", diagnosis.text());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("doctor: {error}");
            ExitCode::from(2)
        }
    }
}
