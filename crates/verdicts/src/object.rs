//! An XDP program out of an object that somebody else compiled.

use crate::error::VerdictsError;
use bpf::{Program, Quiet, kernel, without_pins};
use libbpf_rs::{ErrorKind, MapType, Object, ObjectBuilder, OpenObject, OpenProgram, ProgramType};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// No object is larger.
const LARGEST: u64 = 64 << 20;
/// So many lines of the verifier are told.
const LINES: usize = 12;
/// Sections whose programs run behind a redirection, at no interface.
const BEHIND: [&str; 4] = ["xdp/devmap", "xdp/cpumap", "xdp.frags/devmap", "xdp.frags/cpumap"];

/// A program in the kernel, with the object that it came of.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// The name of its function.
    pub name: String,
    /// The section that it stood in.
    pub section: String,
    /// Keeps its maps.
    _object: Object,
}

/// Loads the XDP program of an object; of several the one with this name, or in this section.
///
/// # Errors
/// The file cannot be read, does not hold such a program, or the kernel does not load it: with the verifier's last lines.
pub fn load(path: &Path, wanted: Option<&str>) -> Result<Loaded, VerdictsError> {
    let file = path.display().to_string();
    let bytes = read(path).map_err(|error| VerdictsError::File { path: file.clone(), error })?;
    let _quiet = Quiet::start();
    let mut object = ObjectBuilder::default().open_memory(&bytes).map_err(|error| {
        let said = Quiet::last_lines(1).pop();
        VerdictsError::NoObject { path: file.clone(), reason: said.unwrap_or_else(|| format!("{error:#}")) }
    })?;
    let (name, section) = choose(&object, wanted, &file)?;
    // Programs that are called by number stand in a map, and must be there, too.
    let calls = object.maps().any(|map| map.map_type() == MapType::ProgArray);
    without_pins(&mut object);
    for mut program in object.progs_mut() {
        let is_it = program.name().to_string_lossy() == name;
        if is_it && program.prog_type() == ProgramType::Unspec {
            program.set_prog_type(ProgramType::Xdp);
        }
        program.set_autoload(is_it || calls && program.prog_type() == ProgramType::Xdp);
    }
    let object = object.load().map_err(|error| refused(&error, &name, &file))?;
    let found = object.progs().find(|program| program.name().to_string_lossy() == name);
    let gone = || VerdictsError::NoSuch { path: file.clone(), wanted: name.clone(), found: String::new() };
    let program = Program::keep(found.ok_or_else(gone)?.as_fd())
        .map_err(|error| VerdictsError::System { what: "keeping the XDP program", error })?;
    Ok(Loaded { program, name, section, _object: object })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::other("it is larger than 64 MB")),
        false => Ok(bytes),
    }
}

/// Name and section.
type Named = (String, String);

fn named(program: &OpenProgram<'_>) -> Named {
    (program.name().to_string_lossy().into_owned(), program.section().to_string_lossy().into_owned())
}

/// The program that is meant.
fn choose(object: &OpenObject, wanted: Option<&str>, file: &str) -> Result<Named, VerdictsError> {
    let all: Vec<(ProgramType, Named)> =
        object.progs().map(|program| (program.prog_type(), named(&program))).collect();
    let of = |kind: ProgramType| all.iter().filter(move |(is, _)| *is == kind).map(|(_, named)| named);
    let mut xdp: Vec<&Named> = of(ProgramType::Xdp).collect();
    if xdp.is_empty() {
        // Older objects name their sections as they like; libbpf does not know what those are for.
        xdp = of(ProgramType::Unspec).collect();
    }
    let path = file.to_owned();
    if xdp.is_empty() {
        let found = listed(all.iter().map(|(_, named)| named));
        return Err(VerdictsError::NoProgram { path, found });
    }
    let meant: Vec<&Named> = match wanted {
        Some(wanted) => {
            xdp.iter().copied().filter(|(name, section)| name == wanted || section == wanted).collect()
        }
        None => xdp
            .iter()
            .copied()
            .filter(|(_, section)| !BEHIND.iter().any(|behind| section.starts_with(behind)))
            .collect(),
    };
    match (&meant[..], wanted) {
        ([only], _) => Ok((*only).clone()),
        ([], Some(wanted)) => {
            Err(VerdictsError::NoSuch { path, wanted: wanted.to_owned(), found: listed(xdp.into_iter()) })
        }
        ([], None) => Err(VerdictsError::Several { path, found: listed(xdp.into_iter()) }),
        (several, _) => Err(VerdictsError::Several { path, found: listed(several.iter().copied()) }),
    }
}

/// "xdp_pass (section xdp), xdp_drop (section xdp)".
fn listed<'n>(programs: impl Iterator<Item = &'n Named>) -> String {
    let each: Vec<String> = programs.map(|(name, section)| format!("{name} (section {section})")).collect();
    if each.is_empty() { "no program at all".to_owned() } else { each.join(", ") }
}

fn refused(error: &libbpf_rs::Error, name: &str, file: &str) -> VerdictsError {
    if error.kind() == ErrorKind::PermissionDenied && !Quiet::has_verifiers_log() {
        return VerdictsError::Permission { what: "loading an XDP program" };
    }
    let mut lines = Quiet::last_lines(LINES);
    if lines.is_empty() {
        lines.push(format!("{error:#}"));
    }
    VerdictsError::NotLoaded {
        release: kernel::release(),
        program: name.to_owned(),
        path: file.to_owned(),
        lines: lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
    }
}
