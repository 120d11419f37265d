//! What is remembered of an answer until it is compared with the other server's: a number that stands for its body and one for its head's
//! fields, and its first bytes, which show where two answers differ.
//!
//! What differs by nature is left out: fields that a date or the connection decides ([`BY_NATURE`]), and what the user names, a field of
//! that name or the value behind a key of that name in JSON.

use crate::framing::Part;

/// Bytes of a body that are kept, and of a head.
pub const MOST_KEPT: usize = 2048;
/// Longest name of what is ignored, in bytes.
pub const MOST_NAME: usize = 64;
/// Nothing is missing.
const NO_HOLE: u64 = u64::MAX;

/// Fields of HTTP that say nothing of what was answered: of a moment, of a client's state, of a file's copy on one host, of a connection
/// (RFC 9110 section 7.6.1), and lengths, which are compared themselves.
pub const BY_NATURE: [&str; 14] = [
    "age",
    "connection",
    "content-length",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "proxy-connection",
    "set-cookie",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// What the user ignores.
#[derive(Debug, Clone, Default)]
pub struct Ignored {
    names: Vec<Box<[u8]>>,
}

impl Ignored {
    /// Fields and keys of these names.
    pub fn new(names: &[String]) -> Ignored {
        Ignored { names: names.iter().map(|name| name.to_ascii_lowercase().into_bytes().into()).collect() }
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A number that stands for bytes, however they are cut: of two sequences of one length that differ in a single word the numbers differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    state: u64,
    /// The last bytes that are no whole word.
    tail: u64,
    length: u64,
}

impl Sum {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

    fn word(&mut self, word: u64) {
        self.state = (self.state.rotate_left(23) ^ word).wrapping_mul(Sum::ODD);
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.length.is_multiple_of(8)
            && let Some((first, behind)) = rest.split_first()
        {
            self.byte(*first);
            rest = behind;
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        self.length += words.len() as u64 * 8;
        rest.iter().for_each(|byte| self.byte(*byte));
    }

    fn byte(&mut self, byte: u8) {
        self.tail |= u64::from(byte) << (self.length % 8 * 8);
        self.length += 1;
        if self.length.is_multiple_of(8) {
            let tail = std::mem::take(&mut self.tail);
            self.word(tail);
        }
    }
}

/// A field's number.
fn field(name: &[u8], value: &[u8]) -> u64 {
    let mut sum = Sum::default();
    name.iter().for_each(|byte| sum.byte(byte.to_ascii_lowercase()));
    sum.byte(b':');
    sum.push(value);
    sum.word(sum.tail);
    sum.state ^ sum.state >> 29
}

/// The fields of a head that are compared.
fn fields<'a>(head: &'a [u8], ignored: &'a Ignored) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let natural = BY_NATURE.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
        if natural || ignored.has(name) {
            return None;
        }
        Some((name, value.get(1..).unwrap_or_default().trim_ascii()))
    })
}

/// The first bytes.
#[derive(Debug, Clone, Default)]
struct Kept {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// What is remembered.
#[derive(Debug, Clone)]
pub struct Digest {
    /// Of the head's fields, in whatever order.
    fields: u64,
    body: Sum,
    /// Bytes of the body that were not captured.
    missing: u64,
    /// Where the first of them would be.
    hole: u64,
    /// Before this the body is known to be the same as the other's, and nothing of it is kept.
    base: u64,
    kept: Option<Box<Kept>>,
    scan: Option<Box<Scan>>,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { fields: 0, body: Sum::default(), missing: 0, hole: NO_HOLE, base: 0, kept: None, scan: None }
    }
}

/// Where two answers begin to differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstDifference {
    /// In a field of the head of this name, with both values; `None`: it is not there.
    Field(Vec<u8>, [Option<Vec<u8>>; 2]),
    /// In their bodies: at which byte, if it is among the kept ones, and some bytes from there on.
    Body(Option<(u64, [Vec<u8>; 2])>),
}

impl Digest {
    /// Takes what came. `keeps`: its first bytes are kept. True: it began to keep some.
    pub fn take(&mut self, part: Part<'_>, ignored: &Ignored, keeps: bool) -> bool {
        let kept = self.kept.is_some();
        match part {
            Part::Head(head) => {
                let sums = fields(head, ignored).map(|(name, value)| field(name, value));
                self.fields = sums.fold(self.fields, u64::wrapping_add);
                if keeps {
                    let head = head.get(..MOST_KEPT).unwrap_or(head);
                    self.kept.get_or_insert_default().head.extend_from_slice(head);
                }
            }
            Part::Body(bytes) if ignored.names.is_empty() => self.push(bytes, keeps),
            Part::Body(bytes) => {
                let mut scan = self.scan.take().unwrap_or_default();
                scan.take(bytes, ignored, &mut |bytes| self.push(bytes, keeps));
                self.scan = Some(scan);
            }
            Part::Hole(bytes) => {
                if bytes > 0 {
                    self.hole = self.hole.min(self.body.length);
                    self.missing += bytes;
                }
            }
        }
        !kept && self.kept.is_some()
    }

    fn push(&mut self, bytes: &[u8], keeps: bool) {
        let at = self.body.length - self.base;
        // Behind a hole nothing can be set beside the other's.
        if keeps && at < MOST_KEPT as u64 && self.hole == NO_HOLE {
            let room = MOST_KEPT - at as usize;
            let bytes = bytes.get(..room).unwrap_or(bytes);
            self.kept.get_or_insert_default().body.extend_from_slice(bytes);
        }
        self.body.push(bytes);
    }

    /// Bytes of the body, without what is ignored.
    pub fn size(&self) -> u64 {
        self.body.length + self.missing
    }

    /// Were all its bytes captured?
    pub fn is_whole(&self) -> bool {
        self.hole == NO_HOLE
    }

    /// Are first bytes kept?
    pub fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Are the heads' fields the same?
    pub fn has_fields_of(&self, other: &Digest) -> bool {
        self.fields == other.fields
    }

    /// Are both bodies the same, as far as they were captured?
    pub fn has_body_of(&self, other: &Digest) -> bool {
        if self.is_whole() && other.is_whole() {
            return self.body == other.body;
        }
        let until = self.hole.min(other.hole);
        let [a, b] = [self, other].map(|of| {
            let until = usize::try_from(until.saturating_sub(of.base)).unwrap_or(usize::MAX);
            let body = of.kept.as_ref().map_or(&[][..], |kept| &kept.body);
            body.get(..until).unwrap_or(body)
        });
        let common = a.len().min(b.len());
        self.base != other.base || a.get(..common) == b.get(..common)
    }

    /// Both are the same so far: their first bytes need not be kept. How many bodies' bytes were kept before.
    pub fn forget_with(&mut self, other: &mut Digest) -> usize {
        if self.body != other.body || !self.is_whole() || !other.is_whole() {
            return 0;
        }
        let mut count = 0;
        for one in [self, other] {
            one.base = one.body.length;
            count += usize::from(one.kept.take().is_some());
        }
        count
    }

    /// Do these bytes, which would come next, contradict those that the other answer has there?
    pub fn contradicts(&self, bytes: &[u8], other: &Digest) -> bool {
        let Some(kept) = other.kept.as_ref().filter(|_| self.body.length >= other.base) else { return false };
        let from = usize::try_from(self.body.length - other.base).unwrap_or(usize::MAX);
        kept.body.get(from..).unwrap_or_default().iter().zip(bytes).any(|(a, b)| a != b)
    }

    /// Where both begin to differ in their fields.
    pub fn first_field(&self, other: &Digest, ignored: &Ignored) -> Option<FirstDifference> {
        let (own, theirs) = (&self.kept.as_ref()?.head, &other.kept.as_ref()?.head);
        let [mut a, mut b]: [Vec<(&[u8], &[u8])>; 2] =
            [own, theirs].map(|head| fields(head, ignored).collect());
        // Those that both have, in whatever order, are the same.
        a.retain(|field| {
            match b.iter().position(|other| other.0.eq_ignore_ascii_case(field.0) && other.1 == field.1) {
                Some(at) => {
                    b.remove(at);
                    false
                }
                None => true,
            }
        });
        let name = a.first().or(b.first())?.0.to_vec();
        let value = |of: &[(&[u8], &[u8])]| {
            let found = of.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name));
            found.map(|(_, value)| value.to_vec())
        };
        let values = [value(&a), value(&b)];
        Some(FirstDifference::Field(name, values))
    }

    /// Where both begin to differ in their bodies.
    pub fn first_byte(&self, other: &Digest) -> FirstDifference {
        let none = Vec::new();
        let body = |of: &'_ Digest| of.kept.as_ref().map_or_else(|| none.clone(), |kept| kept.body.clone());
        let (a, b) = (body(self), body(other));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        // Where one of them goes on behind what is kept of it, nothing is known.
        let ends = |of: &Digest, kept: &Vec<u8>| of.base + kept.len() as u64 == of.size();
        let known = self.base == other.base
            && (common < a.len() || ends(self, &a))
            && (common < b.len() || ends(other, &b));
        if !known {
            return FirstDifference::Body(None);
        }
        let from = common.saturating_sub(BEFORE);
        let some = |of: &Vec<u8>| of.get(from..of.len().min(common + BEHIND)).unwrap_or_default().to_vec();
        FirstDifference::Body(Some((self.base + common as u64, [some(&a), some(&b)])))
    }
}

/// Bytes that are shown before where two bodies differ,
const BEFORE: usize = 12;
/// and behind.
const BEHIND: usize = 28;

/// Passes over what stands behind keys that are ignored, in JSON, as it comes.
#[derive(Debug, Clone, Default)]
struct Scan {
    state: State,
    /// The string that was read last, if it may be a key.
    token: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Between,
    /// In a string; the next byte is escaped.
    Text(bool),
    /// Behind a string that may be an ignored key.
    Behind,
    /// Behind such a key's colon.
    Value,
    /// In its value: a string,
    SkipText(bool),
    /// a number or a word,
    SkipWord,
    /// or an object or array: how deep, and whether in a string of it, with the next byte escaped.
    SkipNest(u32, Option<bool>),
}

impl Scan {
    /// Passes on what counts.
    fn take(&mut self, bytes: &[u8], ignored: &Ignored, pass: &mut impl FnMut(&[u8])) {
        let mut from = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            let (skipped, word) = (self.skips(), self.state == State::SkipWord);
            self.state = self.next(byte, ignored);
            if self.skips() != skipped {
                // The quotation mark or bracket that ends a value belongs to it; what ends a word does not.
                if skipped {
                    from = if word { at } else { at + 1 };
                } else {
                    pass(bytes.get(from..at).unwrap_or_default());
                }
            }
        }
        if !self.skips() {
            pass(bytes.get(from..).unwrap_or_default());
        }
    }

    fn skips(&self) -> bool {
        matches!(self.state, State::SkipText(_) | State::SkipWord | State::SkipNest(..))
    }

    fn next(&mut self, byte: u8, ignored: &Ignored) -> State {
        match self.state {
            State::Between if byte == b'"' => {
                self.token.clear();
                State::Text(false)
            }
            State::Between => State::Between,
            State::Text(false) if byte == b'"' => {
                if ignored.has(&self.token) {
                    State::Behind
                } else {
                    State::Between
                }
            }
            State::Text(escaped) => {
                if self.token.len() <= MOST_NAME {
                    self.token.push(byte);
                }
                State::Text(byte == b'\\' && !escaped)
            }
            State::Behind if byte.is_ascii_whitespace() => State::Behind,
            State::Behind if byte == b':' => State::Value,
            State::Behind if byte == b'"' => {
                self.token.clear();
                State::Text(false)
            }
            State::Behind => State::Between,
            State::Value if byte.is_ascii_whitespace() => State::Value,
            State::Value => match byte {
                b'"' => State::SkipText(false),
                b'{' | b'[' => State::SkipNest(1, None),
                b',' | b'}' | b']' => State::Between,
                _ => State::SkipWord,
            },
            State::SkipText(false) if byte == b'"' => State::Between,
            State::SkipText(escaped) => State::SkipText(byte == b'\\' && !escaped),
            State::SkipWord => match byte {
                b',' | b'}' | b']' => State::Between,
                byte if byte.is_ascii_whitespace() => State::Between,
                _ => State::SkipWord,
            },
            State::SkipNest(depth, Some(escaped)) => match byte {
                b'"' if !escaped => State::SkipNest(depth, None),
                _ => State::SkipNest(depth, Some(byte == b'\\' && !escaped)),
            },
            State::SkipNest(depth, None) => match byte {
                b'"' => State::SkipNest(depth, Some(false)),
                b'{' | b'[' => State::SkipNest(depth.saturating_add(1), None),
                b'}' | b']' if depth <= 1 => State::Between,
                b'}' | b']' => State::SkipNest(depth - 1, None),
                _ => State::SkipNest(depth, None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(head: &str, body: &[u8], piece: usize, ignored: &Ignored) -> Digest {
        let mut digest = Digest::default();
        if !head.is_empty() {
            digest.take(Part::Head(head.as_bytes()), ignored, true);
        }
        body.chunks(piece.max(1)).for_each(|piece| {
            digest.take(Part::Body(piece), ignored, true);
        });
        digest
    }

    fn plain(body: &[u8]) -> Digest {
        of("", body, 1000, &Ignored::default())
    }

    #[test]
    fn bodies_that_differ_in_one_byte_differ_and_the_first_place_is_shown() {
        let (one, two) = (plain(b"hello 1"), plain(b"hello 2"));
        assert!(!one.has_body_of(&two) && one.has_body_of(&plain(b"hello 1")));
        assert_eq!(one.size(), two.size());
        let wanted = FirstDifference::Body(Some((6, [b"hello 1".to_vec(), b"hello 2".to_vec()])));
        assert_eq!(one.first_byte(&two), wanted);
        let longer = plain(b"hello 1 and more");
        let FirstDifference::Body(Some((at, [_, behind]))) = one.first_byte(&longer) else {
            panic!("a place")
        };
        assert_eq!((at, behind.as_slice()), (7, &b"hello 1 and more"[..]));
        // Behind what is kept it is known that they differ, and not where.
        let long = [vec![b'a'; MOST_KEPT + 1], b"1".to_vec()].concat();
        let other = [vec![b'a'; MOST_KEPT + 1], b"2".to_vec()].concat();
        assert!(!plain(&long).has_body_of(&plain(&other)));
        assert_eq!(plain(&long).first_byte(&plain(&other)), FirstDifference::Body(None));
    }

    #[test]
    fn what_was_not_captured_is_not_compared_and_what_was_is() {
        let ignored = Ignored::default();
        let online = |first: &[u8]| {
            let mut digest = of("", first, 9, &ignored);
            digest.take(Part::Hole(5), &ignored, true);
            digest.take(Part::Body(b"behind"), &ignored, true);
            digest
        };
        let target = plain(b"the first 12345behind");
        assert!(online(b"the first ").has_body_of(&target) && !online(b"the last! ").has_body_of(&target));
        assert_eq!((online(b"the first ").size(), online(b"x").is_whole()), (21, false));
    }

    #[test]
    fn fields_are_compared_in_any_order_without_what_differs_by_nature() {
        let none = Ignored::default();
        let one = "HTTP/1.1 200 OK\r\nDate: now\r\nServer: a\r\nX-Id: 7\r\nSet-Cookie: s=1\r\n\r\n";
        let two = "HTTP/1.1 200 OK\r\nserver: a\r\nX-Id: 8\r\nDate: then\r\n\r\n";
        let [a, b] = [one, two].map(|head| of(head, b"", 1, &none));
        assert!(!a.has_fields_of(&b));
        let wanted = FirstDifference::Field(b"X-Id".to_vec(), [Some(b"7".to_vec()), Some(b"8".to_vec())]);
        assert_eq!(a.first_field(&b, &none), Some(wanted));
        let own = Ignored::new(&["x-id".to_owned()]);
        let [a, b] = [one, two].map(|head| of(head, b"", 1, &own));
        assert!(a.has_fields_of(&b));
        let more = of("HTTP/1.1 200 OK\r\nServer: a\r\nVia: b\r\n\r\n", b"", 1, &own);
        let wanted = FirstDifference::Field(b"Via".to_vec(), [None, Some(b"b".to_vec())]);
        assert_eq!(a.first_field(&more, &own), Some(wanted));
    }

    #[test]
    fn values_of_ignored_keys_are_passed_over_wherever_they_are_cut() {
        let ignored = Ignored::new(&["id".to_owned(), "trace".to_owned()]);
        let a = br#"{"id": "a\"b", "n":1,"trace":{"x":["}",1]},"sub":[{"ID":12},{"id":null}],"k":"id"}"#;
        let b = br#"{"id": "longer", "n":1,"trace":7,"sub":[{"ID":[4,[5]]},{"id":"x"}],"k":"id"}"#;
        for piece in 1..a.len() {
            assert!(of("", a, piece, &ignored).has_body_of(&of("", b, 1000, &ignored)), "{piece}");
        }
        let c = br#"{"id": "longer", "n":2,"trace":7,"sub":[{"ID":[4,[5]]},{"id":"x"}],"k":"id"}"#;
        assert!(!of("", a, 7, &ignored).has_body_of(&of("", c, 9, &ignored)));
        assert!(!of("", a, 7, &Ignored::default()).has_body_of(&of("", b, 9, &Ignored::default())));
    }

    #[test]
    fn what_is_the_same_so_far_is_not_kept_and_what_follows_is_shown_by_its_place() {
        let ignored = Ignored::default();
        let (mut one, mut two) = (plain(b"same"), plain(b"same"));
        assert_eq!(one.forget_with(&mut two), 2);
        assert!(!one.keeps() && !two.keeps());
        one.take(Part::Body(b" and this"), &ignored, true);
        assert!(two.contradicts(b" but", &one) && !two.contradicts(b" and", &one));
        two.take(Part::Body(b" and that"), &ignored, true);
        let FirstDifference::Body(Some((at, _))) = one.first_byte(&two) else { panic!("a place") };
        assert_eq!(at, 11);
    }

    proptest! {
        #[test]
        fn a_sum_is_of_the_bytes_however_they_are_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 1usize..40, at in 0usize..200, other in any::<u8>(),
        ) {
            let mut whole = Sum::default();
            whole.push(&bytes);
            let mut in_pieces = Sum::default();
            bytes.chunks(cut).for_each(|piece| in_pieces.push(piece));
            prop_assert_eq!(whole, in_pieces);
            if let Some(byte) = bytes.get(at).filter(|byte| **byte != other) {
                let mut changed = bytes.clone();
                prop_assert!(*byte != other);
                changed[at] = other;
                let mut sum = Sum::default();
                sum.push(&changed);
                prop_assert_ne!(whole, sum);
            }
        }

        #[test]
        fn any_bytes_are_scanned_alike_however_they_are_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b':'), Just(b'i'), Just(b'd'), Just(b'{'), Just(b'}'), Just(b'\\'), any::<u8>()], 0..120),
            cut in 1usize..20,
        ) {
            let ignored = Ignored::new(&["id".to_owned()]);
            prop_assert_eq!(of("", &bytes, cut, &ignored).body, of("", &bytes, 1000, &ignored).body);
        }
    }
}
