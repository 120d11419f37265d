//! What is read as one sequence of packets, each with the side that it leaves on: a capture, whose sides a cache file
//! or a classification tells, or the two captures of a tap, one for each direction, merged by their times.

use super::SourceError;
use super::reading::Oddities;
use capture::{Reader, Record};
use edit::cache::{Cache, Way};
use wire::LinkType;

/// The sides of a capture's packets, and where that is known from.
#[derive(Debug)]
pub struct Sides {
    /// A way for each packet.
    pub cache: Cache,
    /// The cache file; `None`: the capture itself was looked through.
    pub file: Option<String>,
}

/// A capture, or a pair of them.
#[derive(Debug)]
pub struct Input {
    first: Reader,
    second: Option<Box<Second>>,
    sides: Option<Sides>,
    /// Number of the last packet that was read.
    last: u64,
}

/// What merging takes.
#[derive(Debug)]
struct Second {
    reader: Reader,
    heads: [Head; 2],
}

/// The next packet of one of two captures.
#[derive(Debug)]
struct Head {
    state: State,
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    interface: u32,
    number: u64,
    data: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was handed out, or none was read yet.
    Empty,
    Ready,
    Ended,
}

impl Default for Head {
    fn default() -> Head {
        let (state, data) = (State::Empty, Vec::new());
        Head { state, time_ns: 0, wire_len: 0, link: LinkType::ETHERNET, interface: 0, number: 0, data }
    }
}

impl Head {
    fn fill(&mut self, reader: &mut Reader) -> Result<(), SourceError> {
        if self.state != State::Empty {
            return Ok(());
        }
        match reader.next_record()? {
            None => self.state = State::Ended,
            Some(record) => {
                self.data.clear();
                self.data.extend_from_slice(record.data);
                (self.time_ns, self.wire_len, self.link) = (record.time_ns, record.wire_len, record.link);
                (self.interface, self.number, self.state) = (record.interface, record.number, State::Ready);
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Record<'_> {
        self.state = State::Empty;
        Record {
            time_ns: self.time_ns,
            data: &self.data,
            wire_len: self.wire_len,
            // Replay has no use for it: the network card makes one.
            fcs: &[],
            fcs_len: 0,
            link: self.link,
            interface: self.interface,
            number: self.number,
        }
    }
}

impl From<Reader> for Input {
    fn from(reader: Reader) -> Input {
        Input { first: reader, second: None, sides: None, last: 0 }
    }
}

impl Input {
    /// A capture whose packets leave on these sides, or not at all.
    pub fn with_sides(reader: Reader, sides: Sides) -> Input {
        Input { sides: Some(sides), ..Input::from(reader) }
    }

    /// Two captures, the first of what leaves on the one side, the second of what leaves on the other. Of packets of the
    /// same time the first's comes first.
    pub fn pair(first: Reader, second: Reader) -> Input {
        let second = Second { reader: second, heads: [Head::default(), Head::default()] };
        Input { second: Some(Box::new(second)), ..Input::from(first) }
    }

    /// The next packet and its side, 0 or 1; no side: it is not to be sent. `None` behind the last.
    #[inline]
    pub(super) fn next_record(&mut self) -> Result<Option<(Record<'_>, Option<u8>)>, SourceError> {
        // Behind the last packet that the sides are known of there must be no more.
        if self.sides.as_ref().is_some_and(|sides| self.last == sides.cache.len()) {
            if self.first.next_record()?.is_none() {
                return Ok(None);
            }
            return Err(self.too_long_for_its_sides());
        }
        if let Some(second) = &mut self.second {
            return second.next_record(&mut self.first);
        }
        let Some(sides) = &self.sides else {
            return Ok(self.first.next_record()?.map(|record| (record, Some(0))));
        };
        let Some(record) = self.first.next_record()? else { return Ok(None) };
        self.last = record.number;
        let side = match sides.cache.way(record.number) {
            Some(Way::Primary) => Some(0),
            Some(Way::Secondary) => Some(1),
            Some(Way::Skip) | None => None,
        };
        Ok(Some((record, side)))
    }

    /// The cache has no entry for a packet: says of how many it has none, as far as that can be found out.
    #[cold]
    fn too_long_for_its_sides(&mut self) -> SourceError {
        let mut packets = self.last + 1;
        let known = self.first.file_len().is_some();
        while known && matches!(self.first.next_record(), Ok(Some(_))) {
            packets += 1;
        }
        let sides = self.sides.as_ref();
        SourceError::OtherCache {
            cache: sides.and_then(|sides| sides.file.clone()).unwrap_or_default(),
            entries: sides.map_or(0, |sides| sides.cache.len()),
            file: self.first.name().to_owned(),
            packets: if known { packets.to_string() } else { format!("{packets} or more") },
        }
    }

    /// Is there an entry for each packet, and a packet for each entry? Reads the capture, where it can be read twice.
    /// One that is damaged, and taken as far as it is sound, may have fewer packets.
    ///
    /// # Errors
    /// There is not; or the capture cannot be read.
    pub fn check_sides(&mut self) -> Result<(), SourceError> {
        if self.sides.is_none() || self.first.file_len().is_none() {
            return Ok(());
        }
        while self.next_record()?.is_some() {}
        if let Some(Sides { cache, file: Some(file) }) = &self.sides
            && self.last < cache.len()
            && self.first.notes().cut_short.is_none()
        {
            return Err(SourceError::OtherCache {
                cache: file.clone(),
                entries: cache.len(),
                file: self.first.name().to_owned(),
                packets: self.last.to_string(),
            });
        }
        self.rewind()
    }

    /// Starts again.
    ///
    /// # Errors
    /// A capture cannot be read a second time.
    pub fn rewind(&mut self) -> Result<(), SourceError> {
        self.first.rewind()?;
        self.last = 0;
        if let Some(second) = &mut self.second {
            second.reader.rewind()?;
            second.heads.iter_mut().for_each(|head| head.state = State::Empty);
        }
        Ok(())
    }

    /// The captures.
    pub fn readers(&self) -> impl Iterator<Item = &Reader> {
        std::iter::once(&self.first).chain(self.second.iter().map(|second| &second.reader))
    }

    /// The name of the capture that packets of this side come from.
    pub(super) fn name(&self, side: u8) -> &str {
        match &self.second {
            Some(second) if side == 1 => second.reader.name(),
            _ => self.first.name(),
        }
    }

    /// The names of all, for messages.
    pub(super) fn names(inputs: &[Input]) -> String {
        inputs.iter().flat_map(Input::readers).map(Reader::name).collect::<Vec<_>>().join(", ")
    }

    /// Notes what turned out to be odd, behind the last packet.
    pub(super) fn note(&self, odd: &mut Oddities) {
        odd.cut_short.extend(self.readers().filter_map(|reader| reader.notes().cut_short.clone()));
        if let Some(Sides { cache, file: Some(file) }) = &self.sides
            && self.last < cache.len()
        {
            odd.surplus.push(format!(
                "{file} has {} entries, but {} only {} packets: it was made from another capture, or the capture was cut",
                cache.len(),
                self.first.name(),
                self.last
            ));
        }
    }
}

impl Second {
    /// The earlier one of both next packets.
    fn next_record(&mut self, first: &mut Reader) -> Result<Option<(Record<'_>, Option<u8>)>, SourceError> {
        let [one, two] = &mut self.heads;
        one.fill(first)?;
        two.fill(&mut self.reader)?;
        Ok(match (one.state, two.state) {
            (State::Ready, State::Ready) if one.time_ns > two.time_ns => Some((two.take(), Some(1))),
            (State::Ready, _) => Some((one.take(), Some(0))),
            (_, State::Ready) => Some((two.take(), Some(1))),
            _ => None,
        })
    }
}
