//! `netdyno tcpprep`: tcpprep's command line, and cache files equal to its own.
//!
//! What the options mean is decided here; how packets are told apart, in `edit::classify`. What differs from tcpprep
//! stands in docs/compat.md.

use super::autoopts::{self, Parsed, Spec};
use super::{presets, tcpdump};
use crate::output::print;
use anyhow::{Context, Result, anyhow, bail};
use capture::{AtomicFile, Reader};
use edit::cache::{Cache, MAX_COMMENT, Way};
use edit::classify::{Auto, Mode, Rules, Selection, Services, classify};
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const fn option(name: &'static str, short: Option<char>, value: Option<&'static str>) -> Spec {
    Spec { name, short, value }
}

const SPECS: [Spec; 32] = [
    option("auto", Some('a'), Some("MODE")),
    option("cidr", Some('c'), Some("NETWORKS")),
    option("regex", Some('r'), Some("PATTERN")),
    option("port", Some('p'), None),
    option("mac", Some('e'), Some("ADDRESSES")),
    option("reverse", None, None),
    option("comment", Some('C'), Some("TEXT")),
    option("no-arg-comment", None, None),
    option("include", Some('x'), Some("RULE")),
    option("exclude", Some('X'), Some("RULE")),
    option("cachefile", Some('o'), Some("FILE")),
    option("pcap", Some('i'), Some("FILE")),
    option("print-comment", Some('P'), Some("FILE")),
    option("print-info", Some('I'), Some("FILE")),
    option("print-stats", Some('S'), Some("FILE")),
    option("services", Some('s'), Some("FILE")),
    option("nonip", Some('N'), None),
    option("ratio", Some('R'), Some("NUMBER")),
    option("minmask", Some('m'), Some("BITS")),
    option("maxmask", Some('M'), Some("BITS")),
    option("verbose", Some('v'), None),
    option("decode", Some('A'), Some("ARGUMENTS")),
    option("suppress-warnings", Some('w'), None),
    option("dbug", Some('d'), Some("LEVEL")),
    option("version", Some('V'), None),
    option("less-help", Some('h'), None),
    option("help", Some('H'), None),
    option("more-help", Some('!'), None),
    option("save-opts", None, Some("FILE")),
    option("load-opts", None, Some("FILE")),
    // Ours.
    option("skip-corrupt", None, None),
    option("one-ipv6-host", None, None),
];

const HELP: &str = "\
Says for each packet of a capture which side sent it, and writes that into a cache file, which tcpreplay and
tcprewrite read (--cachefile). Options, files and meanings are those of tcpprep 4.4.3 and 4.5; docs/compat.md lists
what differs.

Usage: netdyno tcpprep -i CAPTURE -o CACHE MODE [OPTIONS]
       netdyno tcpprep -P|-I|-S CACHE

Mode, one of:
  -a, --auto=MODE          by what hosts do: bridge, router, client, server, first
  -c, --cidr=NETWORKS      by source address: 10.0.0.0/8,[2001:db8::/32] are primary (sent by -i, --intf1)
  -e, --mac=ADDRESSES      by source Ethernet address: these are primary
  -p, --port               by destination port of TCP and UDP: services' are primary
  -r, --regex=PATTERN      by source address as text: what matches is primary
Files:
  -i, --pcap=FILE          the capture: pcap or pcapng, plain, gzip or zstd; - is standard input
  -o, --cachefile=FILE     the cache to write
  -P, --print-comment=FILE print a cache's comment
  -I, --print-info=FILE    print where each packet goes
  -S, --print-stats=FILE   print how many packets go where
Which packets:
  -x, --include=RULE       send only these: S:, D:, B: or E:NETWORKS (source, destination, both, either) or
                           P:1-5,9,72- (packet numbers)
  -X, --exclude=RULE       send all but these
  -N, --nonip              let what is not IP be primary; otherwise it is secondary
      --skip-corrupt       of a damaged capture take what is sound before the damage
Details:
      --reverse            of --cidr and --mac: let what matches be secondary
  -R, --ratio=NUMBER       --auto: how many times as often a server acts as one than as a client (2.0)
      --one-ipv6-host      --auto: take all IPv6 hosts for one, as tcpprep does by mistake, for caches equal to its own
  -m, --minmask=BITS, -M, --maxmask=BITS
                           --auto=router: checked and of no effect, as in tcpprep (30, 8)
  -s, --services=FILE      --port: the ports of this file (as /etc/services) instead of 0 to 1023
  -C, --comment=TEXT       a comment to keep in the cache, behind the options
      --no-arg-comment     do not keep the options
      --load-opts=FILE     read options from a file, section [TCPPREP]
      --save-opts=FILE     write the options into a file, and do nothing else
  -v, --verbose            have tcpdump print the packets of the capture; -A, --decode=OPTIONS: its options
  -V, --version            print the version
  -h, -H, --help           print this
";

/// Runs `netdyno tcpprep` with the words that follow its name; returns the exit status.
pub fn run(words: &[OsString]) -> Result<u8> {
    let mut parsed = autoopts::parse(&SPECS, words)?;
    if let Some(file) = parsed.files.first() {
        bail!("tcpprep takes no files besides its options: `{}` belongs to -i or -o", file.display());
    }
    if let Some(file) = parsed.value("load-opts").map(str::to_owned) {
        presets::load(Path::new(&file), "tcpprep", &SPECS, &mut parsed)?;
    }
    if ["help", "less-help", "more-help"].iter().any(|name| parsed.has(name)) {
        print(HELP)?;
        return Ok(0);
    }
    if parsed.has("version") {
        print(&format!("netdyno {}, for tcpprep 4.4.3 to 4.5.5\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(0);
    }
    for (name, show) in [("print-comment", comment as Show), ("print-info", info), ("print-stats", stats)] {
        if let Some(file) = parsed.value(name) {
            let cache = Cache::open(Path::new(file))?;
            let mut out = crate::output::printer();
            show(&cache, &mut out)?;
            out.flush()?;
            return Ok(0);
        }
    }
    let Some((capture, cache)) = parsed.value("pcap").zip(parsed.value("cachefile")) else {
        bail!("-i CAPTURE and -o CACHE are needed: what to read and what to write");
    };
    if let Some(file) = parsed.value("save-opts") {
        // Like AutoOpts, that is all.
        presets::save(Path::new(file), "tcpprep", &parsed)?;
        return Ok(0);
    }
    if parsed.has("decode") && !parsed.has("verbose") {
        bail!("--decode belongs to --verbose, which is not given");
    }
    if parsed.has("verbose") {
        tcpdump::check()?;
    }
    let rules = rules(&parsed)?;
    let comment = comment_of(&parsed, words)?;
    let mut reader = Reader::open(Path::new(capture))?;
    if parsed.has("skip-corrupt") {
        reader = reader.lenient();
    }
    let mut made = classify(&mut reader, &rules)?;
    made.set_comment(comment);
    write(&made, Path::new(cache)).with_context(|| format!("writing {cache}"))?;
    if parsed.has("verbose") {
        tcpdump::show(Path::new(capture), parsed.value("decode"))?;
    }
    match &reader.notes().cut_short {
        Some(why) => {
            crate::output::note(&format!("taken as far as it is sound: {why}"));
            Ok(1)
        }
        None => Ok(0),
    }
}

fn write(cache: &Cache, path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(AtomicFile::create(path)?);
    cache.write(&mut file)?;
    file.flush()?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()
}

/// How packets are told apart.
fn mode(parsed: &Parsed, mode: Option<&str>) -> Result<Mode> {
    let value = |name: &str| parsed.value(name).unwrap_or_default();
    Ok(match mode {
        Some("auto") => Mode::Auto(match value("auto") {
            "bridge" => Auto::Bridge,
            "router" => Auto::Router,
            "client" => Auto::Client,
            "server" => Auto::Server,
            "first" => Auto::First,
            other => bail!("--auto={other}: there are bridge, router, client, server and first"),
        }),
        Some("cidr") => Mode::Cidr(value("cidr").parse().context("--cidr")?),
        Some("regex") => {
            let pattern = value("regex");
            Mode::Regex(edit::classify::Regex::new(pattern).map_err(|error| {
                // The library's message has several lines; the last says what is wrong.
                let text = error.to_string();
                let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                anyhow!("--regex: `{pattern}` is not a regular expression: {why}")
            })?)
        }
        Some("mac") => {
            let macs = value("mac")
                .split(',')
                .map(|text| text.trim().parse().with_context(|| format!("--mac: `{text}`")));
            Mode::Mac(macs.collect::<Result<_>>()?)
        }
        Some("port") => Mode::Port(match parsed.value("services") {
            Some(file) => Services::open(Path::new(file)).context("--services")?,
            None => Services::default(),
        }),
        _ => bail!("say how packets are distinguished: --auto, --cidr, --regex, --port or --mac"),
    })
}

fn rules(parsed: &Parsed) -> Result<Rules> {
    let modes: Vec<&str> =
        ["auto", "cidr", "regex", "port", "mac"].into_iter().filter(|name| parsed.has(name)).collect();
    if let [one, other, ..] = modes[..] {
        bail!("--{one} and --{other} exclude each other: packets are distinguished in one way");
    }
    for (name, needs) in [("services", "port"), ("ratio", "auto"), ("minmask", "auto"), ("maxmask", "auto")] {
        if parsed.has(name) && !parsed.has(needs) {
            bail!("--{name} belongs to --{needs}, which is not given");
        }
    }
    let mode = mode(parsed, modes.first().copied())?;
    masks(parsed)?;
    let selection = match (parsed.value("include"), parsed.value("exclude")) {
        (Some(_), Some(_)) => bail!("--include and --exclude exclude each other: give one"),
        (Some(rule), None) => Some(Selection::include(rule).context("--include")?),
        (None, Some(rule)) => Some(Selection::exclude(rule).context("--exclude")?),
        (None, None) => None,
    };
    let ratio = match parsed.value("ratio") {
        None => 2.0,
        Some(text) => text
            .parse()
            .ok()
            .filter(|ratio: &f64| ratio.is_finite() && *ratio >= 0.0)
            .ok_or_else(|| anyhow!("--ratio={text} is not a number of zero or more, such as 2.0"))?,
    };
    Ok(Rules {
        mode,
        selection,
        reverse: parsed.has("reverse"),
        one_ipv6_host: parsed.has("one-ipv6-host") || super::defects()?,
        nonip_primary: parsed.has("nonip"),
        ratio,
    })
}

/// The masks have no effect, but what tcpprep refuses is refused.
fn masks(parsed: &Parsed) -> Result<()> {
    let bits = |name: &str, default: u8| match parsed.value(name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .ok()
            .filter(|bits| *bits <= 32)
            .ok_or_else(|| anyhow!("--{name}={text} is not a prefix length from 0 to 32")),
    };
    let (min, max) = (bits("minmask", 30)?, bits("maxmask", 8)?);
    if min <= max {
        bail!(
            "--minmask={min} must be greater than --maxmask={max}: networks are tried from short to long prefixes"
        );
    }
    Ok(())
}

/// How many bytes tcpprep has room for when it joins its options, with the zero at their end.
const OPTIONS: usize = 1024;

/// The comment that tcpprep would keep: the options, joined by blanks, and what -C says.
fn comment_of(parsed: &Parsed, words: &[OsString]) -> Result<Vec<u8>> {
    let mut comment = Vec::new();
    if !parsed.has("no-arg-comment") {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            // tcpprep leaves out -C, its text, and by mistake the word behind that, too.
            if word == "-C" {
                let _ = (words.next(), words.next());
                continue;
            }
            comment.extend_from_slice(word.as_bytes());
            comment.push(b' ');
        }
        comment.truncate(OPTIONS - 1);
        comment.pop();
    }
    if let Some(text) = parsed.value("comment") {
        if text.len() > MAX_COMMENT + 1 - OPTIONS {
            bail!("--comment has {} bytes: at most {} fit", text.len(), MAX_COMMENT + 1 - OPTIONS);
        }
        comment.truncate(OPTIONS - 2);
        comment.push(b'\n');
        comment.extend_from_slice(text.as_bytes());
    }
    Ok(comment)
}

/// Something that prints what a cache holds.
type Show = fn(&Cache, &mut dyn Write) -> std::io::Result<()>;

fn comment(cache: &Cache, out: &mut dyn Write) -> std::io::Result<()> {
    let comment = String::from_utf8_lossy(cache.comment());
    // A comment comes from a file: it may break lines, but not rule the terminal.
    let lines: Vec<_> = comment.split('\n').map(report::units::printable).collect();
    writeln!(out, "tcpprep args: {}", lines.join("\n"))?;
    writeln!(out, "Cache contains data for {} packets", cache.len())
}

fn info(cache: &Cache, out: &mut dyn Write) -> std::io::Result<()> {
    for (way, number) in cache.ways().zip(1u64..) {
        let way = match way {
            Way::Primary => "Primary",
            Way::Secondary => "Secondary",
            Way::Skip => "Don't Send",
        };
        writeln!(out, "Packet {number} -> {way}")?;
    }
    Ok(())
}

fn stats(cache: &Cache, out: &mut dyn Write) -> std::io::Result<()> {
    let totals = cache.totals();
    writeln!(out, "Primary packets:\t{}", totals.primary)?;
    writeln!(out, "Secondary packets:\t{}", totals.secondary)?;
    writeln!(out, "Skipped packets:\t{}", totals.skipped)?;
    writeln!(out, "------------------------------")?;
    writeln!(out, "Total packets:\t\t{}", cache.len())
}
