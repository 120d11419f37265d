//! `netdyno edit`: a capture in, an edited one out.

use crate::cli::edit::{Edit, FragmentSides, LinkChoice};
use crate::compat::edits::link;
use crate::output::note;
use ::edit::cache::{Cache, Way};
use ::edit::fragment::Rules;
use ::edit::rewrite::{self, Fragmenting, Plan, PortMap, Side, Target, Totals, Uses};
use anyhow::{Context, Result, bail};
use capture::{FileFormat, Reader};
use job::kinds::edits::plan;
use report::units;
use spec::Edits;
use std::cell::RefCell;
use std::path::Path;

pub fn run(args: Edit) -> Result<u8> {
    let edits = args.edits.0;
    let to_ethernet = edits.to_ethernet;
    let rules = MapRules::of(&edits);
    let mut plan = plan(&edits, args.sides.is_some())?;
    let format = FileFormat::of_name(&args.write);
    let choice = args.link.or(to_ethernet.then_some(LinkChoice::Ethernet));
    let link = choice.map(|choice| link(choice, &mut plan));
    let fragroute = fragroute(args.fragroute.as_deref(), args.fragroute_seed)?;
    let fragment = fragmenting(fragroute.as_ref(), args.fragroute_sides);
    let uses = RefCell::new(Uses::default());
    let counted = (!rules.is_empty() || plan.scramble_ip.is_some()).then_some(&uses);
    let target =
        Target { path: &args.write, format, link, snaplen: None, known: None, fragment, uses: counted };
    let mut input = Reader::open(&args.input)?;
    if args.skip_corrupt {
        input = input.lenient();
    }
    let (totals, whole) = pass(&args.input, input, target, &plan, args.sides.as_deref())?;
    note(&summary(&totals, &args.write, plan.drop_unsupported));
    if let Some(told) = not_in_headers(&totals) {
        note(&format!("warning: {told}"));
    }
    if counted.is_some() {
        rules.told(&uses.borrow()).iter().for_each(|line| note(line));
    }
    Ok(u8::from(!whole))
}

/// Maps as they were typed, to tell what each found.
#[derive(Debug, Default)]
struct MapRules {
    /// What is mapped wherever it stands, of sources, of destinations.
    all: Vec<String>,
    source: Vec<String>,
    destination: Vec<String>,
    ports: Vec<String>,
}

impl MapRules {
    fn of(edits: &Edits) -> MapRules {
        let parts = |texts: &[String]| -> Vec<String> {
            texts.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
        };
        let one = |text: &Option<String>| parts(text.as_slice());
        MapRules {
            all: parts(&edits.map_ip),
            source: one(&edits.map_src_ip),
            destination: one(&edits.map_dst_ip),
            ports: edits.map_port.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        [&self.all, &self.source, &self.destination, &self.ports].into_iter().all(Vec::is_empty)
    }

    /// What each rule found, a line each, and which hosts became one.
    fn told(&self, uses: &Uses) -> Vec<String> {
        let mut lines = Vec::new();
        let mut found = |option: &str, rule: &str, count: u64, what: &str| {
            let said = match (count, what) {
                (0, _) => format!("nothing: no {what} of the capture is one that it maps"),
                (1, _) => format!("1 {what}"),
                (count, "port") => format!("{} ports", units::count(count)),
                (count, _) => format!("{} addresses", units::count(count)),
            };
            lines.push(format!("{option} {rule} found {said}"));
        };
        let at = |counts: &[u64], entry: usize| counts.get(entry).copied().unwrap_or(0);
        for (entry, rule) in self.all.iter().enumerate() {
            found("--map-ip", rule, at(&uses.client, entry) + at(&uses.server, entry), "address");
        }
        for (option, rules, counts) in [
            ("--map-src-ip", &self.source, &uses.source),
            ("--map-dst-ip", &self.destination, &uses.destination),
        ] {
            for (entry, rule) in rules.iter().enumerate() {
                found(option, rule, at(counts, entry), "address");
            }
        }
        let mut before = PortMap::default();
        for rule in &self.ports {
            // What an earlier rule maps is its.
            let mut own = PortMap::default();
            let _ = rewrite::port_map(rule, &mut own);
            let count = uses.ports(|port| own.holds(port) && !before.holds(port));
            let _ = rewrite::port_map(rule, &mut before);
            found("--map-port", rule, count, "port");
        }
        for (new, old) in uses.merged().unwrap_or_default() {
            const SHOWN: usize = 4;
            let more = old.len().saturating_sub(SHOWN);
            let shown: Vec<String> = old.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("{} hosts became one, {new}: {}{more}", old.len(), shown.join(", ")));
        }
        // A /16 folded into a /24 would be told 256 times.
        const MOST: usize = 8;
        let told = self.all.len() + self.source.len() + self.destination.len() + self.ports.len() + MOST;
        if lines.len() > told {
            let more = lines.len() - told;
            lines.truncate(told);
            lines.push(format!("and so {} more", units::counted(more as u64, "time")));
        }
        lines
    }
}

/// The rules in a file.
pub fn fragroute(file: Option<&Path>, seed: u64) -> Result<Option<Rules>> {
    let Some(file) = file else { return Ok(None) };
    let name = || format!("--fragroute {}", file.display());
    let text = std::fs::read_to_string(file).with_context(name)?;
    Rules::parse(&text, seed).with_context(name).map(Some)
}

pub fn fragmenting(rules: Option<&Rules>, sides: FragmentSides) -> Option<Fragmenting<'_>> {
    rules.map(|rules| Fragmenting {
        rules,
        client: sides != FragmentSides::Server,
        server: sides != FragmentSides::Client,
    })
}

/// What was asked of link headers, and frames whose headers do not have it.
pub fn not_in_headers(totals: &Totals) -> Option<String> {
    let all = [
        (totals.no_source, "no source address to set"),
        (totals.no_destination, "no destination address to set"),
        (totals.no_addresses, "no Ethernet address to replace or scramble"),
        (totals.no_tag, "no place for a VLAN tag"),
    ];
    let told = all.iter().filter(|(frames, _)| *frames > 0);
    let told: Vec<_> =
        told.map(|(frames, what)| format!("{} {what}", units::counted(*frames, "frame"))).collect();
    (!told.is_empty()).then(|| {
        format!("link headers without what was to be edited, which stay as they are: {}", told.join(", "))
    })
}

fn summary(totals: &Totals, path: &Path, dropped: bool) -> String {
    let mut text = format!("wrote {} of {}", path.display(), units::counted(totals.written, "frame"));
    if totals.unsupported > 0 && !dropped {
        text += &format!(", {} of them unedited: their headers cannot be read", totals.unsupported);
    }
    if totals.left > 0 {
        text += &format!("; {} left out", units::counted(totals.left, "frame"));
    }
    text
}

/// Edits the capture; the output gets its name only when it is whole. Besides the totals, whether the input was.
pub fn pass<'a>(
    path: &Path,
    mut input: Reader,
    mut target: Target<'a>,
    plan: &Plan,
    cache: Option<&'a Path>,
) -> Result<(Totals, bool)> {
    if same_file(path, target.path) {
        bail!("{} cannot be read and written at once: give another name for the output", path.display());
    }
    let cache = cache.map(|file| Cache::open(file).map(|cache| (file, cache))).transpose()?;
    if let Some((file, cache)) = &cache {
        target.known = Some((cache.len(), *file));
    }
    let side = |number: u64| match cache.as_ref().map(|(_, cache)| cache.way(number)) {
        None | Some(Some(Way::Primary)) => Some(Side::Client),
        Some(Some(Way::Secondary)) => Some(Side::Server),
        // What it does not know is refused by its number.
        Some(None | Some(Way::Skip)) => None,
    };
    let stop = crate::client::Signals::at_once()?.stop;
    let totals = rewrite::run(&mut input, target, plan, side, &stop)?;
    let cut = input.notes().cut_short.as_ref();
    if let Some(why) = cut {
        note(&format!("taken as far as it is sound: {why}"));
    }
    Ok((totals, cut.is_none()))
}

/// Whether both names lead to one file. Names that lead nowhere yet do not.
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()));
    id(a).is_some_and(|a| id(b) == Some(a))
}
