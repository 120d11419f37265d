//! Where requests and answers end: HTTP/1 (RFC 9112) by its heads, Redis (RESP) by its lengths. Bytes in, messages' ends and their heads'
//! and bodies' bytes out; bodies are kept nowhere. Of any other protocol nothing is known but whose turn it is (`table`).
//!
//! Whoever speaks here is not trusted: heads are bounded, lengths are counters. What cannot be followed any more is [`Lost`].

use std::fmt;

/// A head or a line longer than this is not followed.
const MOST_HEAD: usize = 64 << 10;
/// Bytes of a message's first line that are kept.
const LINE: usize = 47;

/// What a message begins with, as far as it is kept: a request line, a status line.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    bytes: [u8; LINE],
    length: u8,
}

impl Default for Line {
    fn default() -> Line {
        Line { bytes: [0; LINE], length: 0 }
    }
}

impl Line {
    /// The first line of these bytes.
    pub fn of(bytes: &[u8]) -> Line {
        let end = bytes.iter().take(LINE).position(|byte| matches!(byte, b'\r' | b'\n'));
        let length = end.unwrap_or(bytes.len().min(LINE));
        let mut line = Line { length: length as u8, ..Line::default() };
        line.bytes.iter_mut().zip(bytes.get(..length).unwrap_or_default()).for_each(|(to, from)| *to = *from);
        line
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Is nothing known of it?
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Nothing was said yet.
    #[default]
    Unknown,
    /// HTTP/1.
    Http,
    /// Redis.
    Redis,
    /// Another: a request is what a client says until it is answered.
    Turns,
}

const METHODS: [&str; 9] =
    ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "TRACE ", "CONNECT "];

/// Does an HTTP/1 request begin here?
pub fn is_http(bytes: &[u8]) -> bool {
    let Some(method) = METHODS.iter().find(|method| bytes.starts_with(method.as_bytes())) else {
        return false;
    };
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let whole = line.len() < bytes.len();
    let version = line.trim_ascii_end();
    matches!(bytes.get(method.len()), Some(b'/' | b'*' | b'h' | b'H'))
        && (!whole || version.ends_with(b"HTTP/1.1") || version.ends_with(b"HTTP/1.0"))
}

/// Does a client begin with HTTP/2's preface (RFC 9113 section 3.4), without TLS?
pub fn is_http2(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PRI * HTTP/2.0\r\n")
}

/// Does a TLS handshake begin here: a record of version 3.x with a ClientHello (RFC 8446 sections 5.1 and 4.1.2)? A first segment that ends
/// within that is not looked through.
pub fn is_tls(bytes: &[u8]) -> bool {
    let &[0x16, 3, 0..=4, high, low, 1, 0, _, _, 3, 0..=4, ..] = bytes else { return false };
    // The record holds the message's head at least, and no more than a record may.
    (42..=16_384).contains(&u16::from_be_bytes([high, low]))
}

impl Protocol {
    /// By what a client says first.
    pub fn of(bytes: &[u8]) -> Protocol {
        match bytes {
            [] => Protocol::Unknown,
            [b'*', digit, ..] if digit.is_ascii_digit() => Protocol::Redis,
            _ if is_http(bytes) => Protocol::Http,
            _ => Protocol::Turns,
        }
    }
}

/// Where the next message begins is not known any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Something else is spoken from here on, or more than is followed, or not all was captured.
    Elsewhere,
    /// The message breaks the rules that say where it ends (RFC 9112, sections 6 and 7): no client knows what belongs to it.
    Malformed,
}

/// What was taken of some bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// So many of them.
    pub bytes: usize,
    /// A message ends with them.
    pub ended: bool,
    /// Its head ends with, or before, them.
    pub head: Option<Head>,
}

/// What a message's head says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// Its first line.
    pub line: Line,
    /// The answer to this request has no body, whatever its head says (HEAD).
    pub bodyless: bool,
    /// Another answer to the same request follows (100 Continue).
    pub interim: bool,
}

/// Bytes of a message, without what only says how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A head, whole.
    Head(&'a [u8]),
    /// More of the body; of Redis the whole message.
    Body(&'a [u8]),
    /// So many bytes of the body are not known.
    Hole(u64),
}

#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    Body(u64),
    /// A line that says how long the next chunk is.
    Size(Vec<u8>),
    /// A chunk, and the line's end behind it.
    Chunk(u64),
    Trailer(Vec<u8>),
    UntilClose,
    Redis {
        values: u64,
        skip: u64,
        line: Vec<u8>,
        first: Option<Line>,
    },
}

/// Follows the messages of one direction. Between two messages it holds nothing.
#[derive(Debug, Default)]
pub struct Framer {
    state: Option<Box<State>>,
}

impl Framer {
    /// Is it between two messages?
    pub fn is_idle(&self) -> bool {
        self.state.is_none()
    }

    /// What came of a head that is not whole.
    pub fn head(&self) -> Option<&[u8]> {
        match self.state.as_deref() {
            Some(State::Head(held)) => Some(held),
            _ => None,
        }
    }

    /// Does the message end with the connection?
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.state.as_deref(), Some(State::UntilClose))
    }

    /// Takes what belongs to one message. `answer`: a server says it; `bodyless`: to a request of that kind. What it holds is told to
    /// `tell`, but for interim answers.
    ///
    /// # Errors
    /// That the message cannot be followed.
    pub fn take(
        &mut self,
        protocol: Protocol,
        bytes: &[u8],
        (answer, bodyless): (bool, bool),
        tell: &mut impl FnMut(Part<'_>),
    ) -> Result<Took, Lost> {
        match protocol {
            Protocol::Http => self.http(bytes, (answer, bodyless), tell),
            Protocol::Redis => {
                let took = self.redis(bytes)?;
                tell(Part::Body(bytes.get(..took.bytes).unwrap_or_default()));
                Ok(took)
            }
            Protocol::Unknown | Protocol::Turns => Err(Lost::Elsewhere),
        }
    }

    /// So many bytes were not captured: that is of no account within a body. How many of them are the body's.
    ///
    /// # Errors
    /// That more was there than a body's rest.
    pub fn skip(&mut self, bytes: u64) -> Result<(Took, u64), Lost> {
        let took = Took { bytes: bytes as usize, ..Took::default() };
        match self.state.as_deref_mut() {
            Some(State::UntilClose) => Ok((took, bytes)),
            Some(State::Body(left)) if *left > bytes => {
                *left -= bytes;
                Ok((took, bytes))
            }
            Some(State::Body(left)) if *left == bytes => {
                self.state = None;
                Ok((Took { ended: true, ..took }, bytes))
            }
            Some(State::Chunk(left)) if *left > bytes => {
                let body = bytes.min(left.saturating_sub(2));
                *left -= bytes;
                Ok((took, body))
            }
            _ => Err(Lost::Elsewhere),
        }
    }

    fn http(
        &mut self,
        bytes: &[u8],
        of: (bool, bool),
        tell: &mut impl FnMut(Part<'_>),
    ) -> Result<Took, Lost> {
        let mut took = Took::default();
        loop {
            let rest = bytes.get(took.bytes..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(took);
            }
            match self.state.as_deref_mut() {
                None => match head_end(rest, 0) {
                    // The usual case: a whole head, read where it stands.
                    Some(end) => {
                        took.bytes += end;
                        self.begin(rest.get(..end).unwrap_or_default(), of, &mut took, tell)?;
                    }
                    None if rest.len() > MOST_HEAD => return Err(Lost::Elsewhere),
                    None => {
                        begins(rest, of.0)?;
                        self.state = Some(Box::new(State::Head(rest.to_vec())));
                        took.bytes += rest.len();
                    }
                },
                Some(State::Head(held)) => {
                    let before = held.len();
                    held.extend_from_slice(rest);
                    match head_end(held, before.saturating_sub(3)) {
                        Some(end) => {
                            let head = held.get(..end).unwrap_or_default().to_vec();
                            took.bytes += end - before;
                            self.begin(&head, of, &mut took, tell)?;
                        }
                        None if held.len() > MOST_HEAD => return Err(Lost::Elsewhere),
                        None => {
                            begins(held, of.0)?;
                            took.bytes += rest.len();
                        }
                    }
                }
                Some(State::Body(left)) => {
                    let part = (*left).min(rest.len() as u64);
                    *left -= part;
                    took.bytes += part as usize;
                    tell(Part::Body(rest.get(..part as usize).unwrap_or_default()));
                    if *left == 0 {
                        return Ok(self.end(took));
                    }
                }
                Some(State::UntilClose) => {
                    tell(Part::Body(rest));
                    took.bytes += rest.len();
                }
                Some(State::Size(line)) => {
                    if !fill(line, rest, &mut took)? {
                        continue;
                    }
                    let size = chunk_size(line)?;
                    **self.state.as_mut().ok_or(Lost::Elsewhere)? = match size {
                        0 => State::Trailer(Vec::new()),
                        size => State::Chunk(size.checked_add(2).ok_or(Lost::Malformed)?),
                    };
                }
                Some(State::Chunk(left)) => {
                    let part = (*left).min(rest.len() as u64);
                    // The line's end behind a chunk is none of it.
                    let body = part.min(left.saturating_sub(2));
                    let behind = rest.get(body as usize..part as usize).unwrap_or_default();
                    let end =
                        b"\r\n".get(2_usize.saturating_sub((*left - body) as usize)..).unwrap_or_default();
                    if !end.starts_with(behind) {
                        return Err(Lost::Malformed);
                    }
                    *left -= part;
                    took.bytes += part as usize;
                    tell(Part::Body(rest.get(..body as usize).unwrap_or_default()));
                    if *left == 0 {
                        **self.state.as_mut().ok_or(Lost::Elsewhere)? = State::Size(Vec::new());
                    }
                }
                Some(State::Trailer(line)) => {
                    if fill(line, rest, &mut took)? {
                        if line.is_empty() || line == b"\r" {
                            return Ok(self.end(took));
                        }
                        // A field like those of the head (RFC 9110, section 6.5).
                        tell(Part::Head(&[b"\n", line.as_slice()].concat()));
                        line.clear();
                    }
                }
                Some(State::Redis { .. }) => return Err(Lost::Elsewhere),
            }
            if took.ended {
                return Ok(took);
            }
        }
    }

    fn end(&mut self, took: Took) -> Took {
        self.state = None;
        Took { ended: true, ..took }
    }

    /// A head is whole: what follows it?
    fn begin(
        &mut self,
        head: &[u8],
        (answer, bodyless): (bool, bool),
        took: &mut Took,
        tell: &mut impl FnMut(Part<'_>),
    ) -> Result<(), Lost> {
        let line = Line::of(head);
        let mut said = Head { line, ..Head::default() };
        let nothing = if answer {
            let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
            let status =
                status.filter(|status| status.iter().all(u8::is_ascii_digit)).ok_or(Lost::Malformed)?;
            if status == b"101" {
                return Err(Lost::Elsewhere);
            }
            said.interim = status.starts_with(b"1");
            bodyless || said.interim || status == b"204" || status == b"304"
        } else {
            if head.starts_with(b"CONNECT ") || !head.contains(&b' ') {
                return Err(Lost::Elsewhere);
            }
            said.bodyless = head.starts_with(b"HEAD ");
            false
        };
        took.head = Some(said);
        // What has no body needs no length (RFC 9112, section 6.3, rule 1).
        let state = match if nothing { Length::None } else { Length::of(head)? } {
            _ if nothing => None,
            Length::Bytes(0) => None,
            Length::Bytes(length) => Some(State::Body(length)),
            Length::Chunked => Some(State::Size(Vec::new())),
            Length::Encoded if !answer => return Err(Lost::Malformed),
            Length::None | Length::Encoded => answer.then_some(State::UntilClose),
        };
        took.ended = state.is_none();
        self.state = state.map(Box::new);
        if !said.interim {
            tell(Part::Head(head));
        }
        Ok(())
    }

    /// RESP2 and RESP3: values that say how many values or bytes follow. A line that begins with none of their signs is an inline
    /// command.
    fn redis(&mut self, bytes: &[u8]) -> Result<Took, Lost> {
        let mut took = Took::default();
        // The usual case: short, and whole.
        let mut state = match self.state.take() {
            Some(state) => *state,
            None => State::Redis { values: 1, skip: 0, line: Vec::new(), first: None },
        };
        let State::Redis { values, skip, line, first } = &mut state else { return Err(Lost::Elsewhere) };
        loop {
            let rest = bytes.get(took.bytes..).unwrap_or_default();
            if *skip > 0 {
                let part = (*skip).min(rest.len() as u64);
                *skip -= part;
                took.bytes += part as usize;
            }
            if *skip == 0 && *values == 0 {
                took.ended = true;
                took.head = Some(Head { line: first.unwrap_or_default(), ..Head::default() });
                return Ok(took);
            }
            let rest = bytes.get(took.bytes..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if !fill(line, rest, &mut took)? {
                continue;
            }
            first.get_or_insert_with(|| summary(line));
            let number = || {
                let digits = line.get(1..).unwrap_or_default().trim_ascii();
                std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i64>().ok())
            };
            let count = |each: u64| -> Result<u64, Lost> {
                let items = number().ok_or(Lost::Malformed)?.max(0);
                u64::try_from(items).map_err(|_| Lost::Malformed)?.checked_mul(each).ok_or(Lost::Malformed)
            };
            *values -= 1;
            match line.first() {
                Some(b'*' | b'~' | b'>') => *values = values.checked_add(count(1)?).ok_or(Lost::Malformed)?,
                Some(b'%') => *values = values.checked_add(count(2)?).ok_or(Lost::Malformed)?,
                // An attribute stands before the value that it is of.
                Some(b'|') => {
                    *values = values
                        .checked_add(count(2)?)
                        .and_then(|sum| sum.checked_add(1))
                        .ok_or(Lost::Malformed)?
                }
                Some(b'$' | b'=' | b'!') => {
                    let length = number().ok_or(Lost::Malformed)?;
                    *skip = u64::try_from(length).map_or(0, |length| length.saturating_add(2));
                }
                _ => {}
            }
            line.clear();
        }
        self.state = Some(Box::new(state));
        Ok(took)
    }
}

/// How long a body is, by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    None,
    Bytes(u64),
    Chunked,
    /// It has a Transfer-Encoding whose last is not chunked.
    Encoded,
}

impl Length {
    /// RFC 9112, section 6.3: a Transfer-Encoding goes before every Content-Length, of which several have to be the same.
    fn of(head: &[u8]) -> Result<Length, Lost> {
        let (mut length, mut coding, mut fault) = (None, None, false);
        for field in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = field.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = field.split_at(colon);
            let value = value.get(1..).unwrap_or_default();
            let is = |of: &[u8]| name.trim_ascii_end().eq_ignore_ascii_case(of);
            let (is_length, is_coding) = (is(b"content-length"), is(b"transfer-encoding"));
            if !is_length && !is_coding {
                continue;
            }
            // A name with a space behind it is read in different ways (section 5.1).
            if name.ends_with(b" ") || name.ends_with(b"\t") {
                return Err(Lost::Malformed);
            }
            for item in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if is_coding {
                    coding = Some(item);
                    continue;
                }
                let number = number(item, 10);
                fault |= number.is_none() || length.replace(number).is_some_and(|before| before != number);
            }
        }
        Ok(match (coding, length) {
            (Some(last), _) if last.eq_ignore_ascii_case(b"chunked") => Length::Chunked,
            (Some(_), _) => Length::Encoded,
            // Only where no coding goes before them they have to agree.
            (None, _) if fault => return Err(Lost::Malformed),
            (None, length) => length.flatten().map_or(Length::None, Length::Bytes),
        })
    }
}

/// A number of digits alone: no sign, and not nothing.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    if !digits.iter().all(|digit| char::from(*digit).is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// How long a chunk is, by the line before it.
fn chunk_size(line: &[u8]) -> Result<u64, Lost> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    number(digits, 16).ok_or(Lost::Malformed)
}

/// May an answer begin like this?
fn begins(head: &[u8], answer: bool) -> Result<(), Lost> {
    let begins = head.iter().zip(b"HTTP/1.").all(|(byte, wanted)| byte == wanted);
    if answer && !begins { Err(Lost::Malformed) } else { Ok(()) }
}

/// What an answer of Redis is, without what it holds: errors and words are told whole.
fn summary(line: &[u8]) -> Line {
    match line.first() {
        Some(b'-' | b'+' | b'*' | b'%') => Line::of(line),
        Some(b'$') if line.get(1) == Some(&b'-') => Line::of(b"nil"),
        Some(b'$') => Line::of(b"bulk string"),
        Some(b':') => Line::of(b"integer"),
        _ => Line::of(line),
    }
}

/// Fills a line; is it whole? Its end is not part of it.
fn fill(line: &mut Vec<u8>, bytes: &[u8], took: &mut Took) -> Result<bool, Lost> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    if line.len() + part.len() > MOST_HEAD {
        return Err(Lost::Elsewhere);
    }
    line.extend_from_slice(part);
    took.bytes += part.len() + usize::from(end.is_some());
    Ok(end.is_some())
}

/// Behind the empty line that ends a head.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let feed = at + bytes.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        match bytes.get(feed + 1..)? {
            [b'\n', ..] => return Some(feed + 2),
            [b'\r', b'\n', ..] => return Some(feed + 3),
            _ => at = feed + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All messages of a stream that comes in pieces of so many bytes: how long each is and what it begins with.
    fn messages(
        protocol: Protocol,
        bytes: &[u8],
        piece: usize,
        answer: bool,
    ) -> Result<Vec<(usize, String)>, Lost> {
        let (mut framer, mut all, mut length, mut line) = (Framer::default(), Vec::new(), 0, String::new());
        for mut piece in bytes.chunks(piece) {
            while !piece.is_empty() {
                let took = framer.take(protocol, piece, (answer, false), &mut |_| ())?;
                length += took.bytes;
                if let Some(head) = took.head {
                    line = head.line.to_string();
                }
                if took.ended {
                    all.push((std::mem::take(&mut length), std::mem::take(&mut line)));
                    assert!(framer.is_idle());
                }
                piece = &piece[took.bytes..];
            }
        }
        Ok(all)
    }

    const ANSWERS: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204 No Content\r\nX: y\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n\
        HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 Not Found\ncontent-length:3\n\nabc";

    const REDIS: &[u8] = b"+OK\r\n$5\r\nhello\r\n$-1\r\n*3\r\n:1\r\n$2\r\n\r\n\r\n*1\r\n+x\r\n-ERR no such thing\r\n%1\r\n+a\r\n*-1\r\n*0\r\n";

    #[test]
    fn messages_end_where_they_end_however_they_are_cut() {
        for piece in 1..ANSWERS.len() + 1 {
            let found = messages(Protocol::Http, ANSWERS, piece, true).unwrap();
            let wanted = [
                "HTTP/1.1 200 OK",
                "HTTP/1.1 204 No Content",
                "HTTP/1.1 200 OK",
                "HTTP/1.1 100 Continue",
                "HTTP/1.0 404 Not Found",
            ];
            assert_eq!(found.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), wanted);
            assert_eq!(found.iter().map(|(length, _)| length).sum::<usize>(), ANSWERS.len());
            assert_eq!(found[0].0, 43);
        }
        for piece in 1..REDIS.len() + 1 {
            let found = messages(Protocol::Redis, REDIS, piece, true).unwrap();
            let wanted = ["+OK", "bulk string", "nil", "*3", "-ERR no such thing", "%1", "*0"];
            assert_eq!(found.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), wanted, "{piece}");
            assert_eq!(found.iter().map(|(length, _)| length).sum::<usize>(), REDIS.len());
        }
    }

    #[test]
    fn a_body_is_what_was_answered_however_it_was_cut_and_framed() {
        for piece in 1..ANSWERS.len() + 1 {
            let (mut framer, mut heads, mut bodies) = (Framer::default(), 0, Vec::new());
            for mut piece in ANSWERS.chunks(piece) {
                while !piece.is_empty() {
                    let tell = &mut |part: Part<'_>| match part {
                        Part::Head(head) => heads += usize::from(head.ends_with(b"\n")),
                        Part::Body(bytes) => bodies.extend_from_slice(bytes),
                        Part::Hole(_) => panic!("nothing is missing"),
                    };
                    let took = framer.take(Protocol::Http, piece, (true, false), tell).unwrap();
                    piece = &piece[took.bytes..];
                }
            }
            assert_eq!((heads, bodies.as_slice()), (4, &b"hellohelloabc"[..]), "{piece}");
        }
    }

    #[test]
    fn what_breaks_the_rules_of_its_length_is_not_followed() {
        let head = "HTTP/1.1 200 OK\r\n";
        for (rest, followed) in [
            ("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", true),
            ("Content-Length: 5, 5\r\n\r\nhello", true),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", true),
            ("Content-Length: 50\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
            ("Transfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true),
            ("Content-Length: 50\r\nContent-Length: 5\r\n\r\nhello", false),
            ("Content-Length: 50, 5\r\n\r\nhello", false),
            ("Content-Length: +5\r\n\r\nhello", false),
            ("Content-Length: \r\n\r\nhello", false),
            ("Content-Length : 5\r\n\r\nhello", false),
            ("Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", false),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", false),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nhelloab\r\n0\r\n\r\n", false),
            ("Transfer-Encoding: chunked\r\n\r\n9\r\nhello\r\n0\r\n\r\n", false),
            ("Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", false),
        ] {
            let bytes = [head, rest].concat();
            for piece in 1..bytes.len() + 1 {
                let found = messages(Protocol::Http, bytes.as_bytes(), piece, true);
                match followed {
                    true => assert_eq!(found.unwrap().len(), 1, "{rest}"),
                    false => assert_eq!(found, Err(Lost::Malformed), "{rest}"),
                }
            }
        }
        assert_eq!(messages(Protocol::Http, b"hello\n", 3, true), Err(Lost::Malformed));
        // No body, no length.
        let two = "Content-Length: 50\r\nContent-Length: 5\r\n\r\n";
        for status in ["204 No Content", "304 Not Modified", "103 Early Hints"] {
            let bytes = format!("HTTP/1.1 {status}\r\n{two}");
            let found = messages(Protocol::Http, bytes.as_bytes(), 7, true).unwrap();
            assert_eq!(
                found.iter().map(|(length, _)| *length).collect::<Vec<_>>(),
                [bytes.len()],
                "{status}"
            );
        }
        let bytes = format!("{head}{two}");
        let took = Framer::default().take(Protocol::Http, bytes.as_bytes(), (true, true), &mut |_| ());
        assert!(took.unwrap().ended);
        // Not chunked last: to the end of the connection, whatever length is said beside it.
        for coding in ["gzip", "xchunked", "chunked, gzip"] {
            let bytes = format!("{head}Transfer-Encoding: {coding}\r\nContent-Length: 5\r\n\r\nhello");
            assert_eq!(messages(Protocol::Http, bytes.as_bytes(), 9, true), Ok(Vec::new()), "{coding}");
        }
    }

    #[test]
    fn what_is_missing_of_a_chunk_is_none_of_the_line_end_behind_it() {
        let mut framer = Framer::default();
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe";
        framer.take(Protocol::Http, head, (true, false), &mut |_| ()).unwrap();
        assert_eq!(framer.skip(4).map(|(took, body)| (took.bytes, body)), Ok((4, 3)));
        assert!(framer.take(Protocol::Http, b"\n0\r\n\r\n", (true, false), &mut |_| ()).unwrap().ended);
    }

    #[test]
    fn requests_say_whether_their_answer_has_a_body() {
        let mut framer = Framer::default();
        let asked = framer
            .take(Protocol::Http, b"HEAD /x HTTP/1.1\r\nHost: y\r\n\r\n", (false, false), &mut |_| ())
            .unwrap();
        assert!(asked.ended && asked.head.unwrap().bodyless);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
        assert!(framer.take(Protocol::Http, answer, (true, true), &mut |_| ()).unwrap().ended);
        let took = framer.take(Protocol::Http, answer, (true, false), &mut |_| ()).unwrap();
        assert!(!took.ended);
        assert_eq!(framer.skip(400).map(|(took, _)| took.ended), Ok(false));
        assert_eq!(framer.skip(101), Err(Lost::Elsewhere));
        assert_eq!(framer.skip(100).map(|(took, _)| took.ended), Ok(true));
    }

    #[test]
    fn tls_and_http2_are_known_by_their_first_bytes_and_nothing_else_is_taken_for_them() {
        let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 7, 7, 7];
        assert!(is_tls(&hello));
        for (at, byte) in [(0, 0x17), (1, 2), (2, 5), (5, 2), (6, 1), (9, 2)] {
            let mut other = hello;
            other[at] = byte;
            assert!(!is_tls(&other), "{at}");
        }
        // A packet of MySQL's client whose length begins like that.
        assert!(!is_tls(&[0x16, 3, 0, 1, 0x85, 0xa6, 0x3f, 0x20, 0, 0, 0, 1]));
        assert!(!is_tls(&hello[..9]));
        assert!(is_http2(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") && !is_http2(b"PRI * HTTP/2"));
    }

    #[test]
    fn protocols_are_known_by_how_clients_begin() {
        for (bytes, protocol) in [
            (&b"GET / HTTP/1.1\r\n"[..], Protocol::Http),
            (b"GET /verylong", Protocol::Http),
            (b"GET / HTTP/2.0\r\n", Protocol::Turns),
            (b"PRI * HTTP/2.0\r\n", Protocol::Turns),
            (b"*2\r\n$4\r\nPING", Protocol::Redis),
            (b"\x16\x03\x01", Protocol::Turns),
            (b"", Protocol::Unknown),
        ] {
            assert_eq!(Protocol::of(bytes), protocol, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_stand_still(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'*'), Just(b'1')], 0..200),
            redis in any::<bool>(), piece in 1usize..50, answer in any::<bool>(),
        ) {
            let protocol = if redis { Protocol::Redis } else { Protocol::Http };
            let mut framer = Framer::default();
            'all: for mut piece in bytes.chunks(piece) {
                while !piece.is_empty() {
                    let Ok(took) = framer.take(protocol, piece, (answer, false), &mut |_| ()) else { break 'all };
                    prop_assert!(took.bytes > 0 && took.bytes <= piece.len());
                    piece = &piece[took.bytes..];
                }
            }
        }
    }
}
