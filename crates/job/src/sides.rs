//! `--sides`: which frames of a capture leave by the first interface, which by the second, and which not at all.

use anyhow::{Context as _, Error, Result, anyhow, bail};
use capture::Reader;
use edit::cache::Cache;
use edit::classify::{Auto, Mode, Rules, Services, classify};
use engine::source::{Input, Sides as Known};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How sides are told apart.
#[derive(Debug, Clone)]
pub enum Sides {
    /// By what the capture shows of its hosts, or by their addresses or ports: `netdyno tcpprep` before sending.
    Rules(Box<Rules>),
    /// By a cache file that tcpprep wrote.
    Cache(PathBuf),
    /// By the file: captures come in pairs, one for each side, and are merged by their times.
    Files,
}

impl FromStr for Sides {
    type Err = Error;

    fn from_str(text: &str) -> Result<Sides> {
        let rules = |mode| Ok(Sides::Rules(Box::new(Rules::new(mode))));
        match text {
            "files" => return Ok(Sides::Files),
            // Hosts that give nothing away are clients: most of them only ask.
            "auto" | "client" => return rules(Mode::Auto(Auto::Client)),
            "server" => return rules(Mode::Auto(Auto::Server)),
            "bridge" => return rules(Mode::Auto(Auto::Bridge)),
            "router" => return rules(Mode::Auto(Auto::Router)),
            "first" => return rules(Mode::Auto(Auto::First)),
            "port" => return rules(Mode::Port(Services::default())),
            _ => {}
        }
        match text.split_once('=') {
            Some(("cidr", nets)) => rules(Mode::Cidr(nets.parse()?)),
            Some(("mac", list)) => {
                let macs = list.split(',').map(|mac| mac.trim().parse().with_context(|| format!("`{mac}`")));
                rules(Mode::Mac(macs.collect::<Result<_>>()?))
            }
            _ if Path::new(text).exists() || text.contains(['/', '.']) => Ok(Sides::Cache(text.into())),
            _ => Err(anyhow!(
                "there are auto, client, server, bridge, router, first, port, cidr=NETS, mac=LIST, files, and the name of \
                 a cache file"
            )),
        }
    }
}

impl Sides {
    /// What is read to send the captures `readers` stand at the beginning of.
    ///
    /// # Errors
    /// That a capture cannot be read from its beginning again.
    pub fn inputs(&self, mut readers: Vec<Reader>) -> Result<Vec<Input>> {
        match self {
            Sides::Files => pairs(readers),
            Sides::Cache(file) => {
                let known = |reader| {
                    let cache = Cache::open(file)?;
                    Ok(Input::with_sides(reader, Known { cache, file: Some(file.display().to_string()) }))
                };
                readers.into_iter().map(known).collect()
            }
            Sides::Rules(rules) => {
                let caches: Vec<Cache> =
                    readers.iter_mut().map(|reader| looked_through(reader, rules)).collect::<Result<_>>()?;
                let known = |(reader, cache)| Input::with_sides(reader, Known { cache, file: None });
                Ok(readers.into_iter().zip(caches).map(known).collect())
            }
        }
    }
}

/// The sides of a capture's packets, by what is in it.
fn looked_through(reader: &mut Reader, rules: &Rules) -> Result<Cache> {
    if reader.file_len().is_none() {
        bail!(
            "{} cannot be read a second time, to look through it for the sides first: give a file, or a cache file with `.sides`",
            reader.name()
        );
    }
    let cache = classify(reader, rules)?;
    reader.rewind()?;
    Ok(cache)
}

fn pairs(readers: Vec<Reader>) -> Result<Vec<Input>> {
    let given = readers.len();
    if !given.is_multiple_of(2) {
        bail!(
            "captures of both sides come in pairs, the first side's and then the second's, but {given} {}: add the missing one",
            if given == 1 { "was given" } else { "were given" }
        );
    }
    let mut readers = readers.into_iter();
    let mut inputs = Vec::new();
    while let (Some(first), Some(second)) = (readers.next(), readers.next()) {
        if let Some(piped) = [&first, &second].into_iter().find(|reader| reader.file_len().is_none()) {
            bail!("{} is no file: captures of both sides are merged from files", piped.name());
        }
        inputs.push(Input::pair(first, second));
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_tell_sides_apart_has_a_name() {
        let parsed = |text: &str| text.parse::<Sides>().map_err(|error| crate::in_full(&error));
        for text in
            ["auto", "client", "server", "bridge", "router", "first", "port", "cidr=10.0.0.0/8,fe80::/10"]
        {
            assert!(matches!(parsed(text), Ok(Sides::Rules(_))), "{text}");
        }
        assert!(matches!(parsed("mac=02:00:00:00:00:01"), Ok(Sides::Rules(_))));
        assert!(matches!(parsed("files"), Ok(Sides::Files)));
        assert!(matches!(parsed("./files"), Ok(Sides::Cache(_))));
        assert!(matches!(parsed("cap.prep"), Ok(Sides::Cache(_))));
        assert!(parsed("clients").unwrap_err().contains("there are auto, client"));
        assert!(parsed("mac=02:00").unwrap_err().contains("`02:00`"));
        assert!(parsed("cidr=10.0.0.0/40").is_err());
    }
}
