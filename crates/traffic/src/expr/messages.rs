//! The parts of a message that stand at no fixed place: `dns(qname="www.example.org")` to bytes, with what in them varies.
//!
//! A number varies where it stands, as a field of a header does. Texts that take turns have different lengths: the message
//! is written once for each, brought to the same length in the way that its protocol has for it, and where the bytes
//! differ they take turns.

use super::error::{Fault, Outcome, no_call};
use super::header::Header;
use super::lists;
use super::patches::Patch;
use super::syntax::{Argument, Span, Value, Word};
use super::value::{self, Every, Sequence, Setting, short};
use wire::proto::{Field, Kind, Part, Protocol, dhcp, dns, igmpv3, put};

/// Texts that take turns in one message, at most.
const MAX_TURNS: usize = 4096;
/// Bytes of one text, at most.
const MAX_TEXT: usize = 65_535;
/// Bytes of all messages that take turns, at most.
const MAX_BYTES: usize = 8 << 20;
/// Answers, records or options of one message, at most.
const MAX_ITEMS: usize = 256;

/// Bytes that take turns in a header.
#[derive(Debug)]
pub(super) struct Turns {
    /// Where they start in the header.
    pub start: usize,
    /// One for each item, all of the same length.
    pub items: Vec<Vec<u8>>,
    pub random: bool,
    pub every: Every,
    pub span: Span,
}

/// What was given for the parts of a message.
pub(super) struct Given<'e, 'a> {
    parts: Vec<(&'static str, &'e Argument<'a>)>,
    span: Span,
}

/// An argument, or those that Scapy writes in a question of its own: `qd=DNSQR(qname="..")`.
pub(super) fn unfolded<'e, 'a>(protocol: Protocol, argument: &'e Argument<'a>) -> &'e [Argument<'a>] {
    match &argument.value {
        Value::Call(name, arguments, _)
            if protocol == Protocol::Dns
                && name.text.eq_ignore_ascii_case("dnsqr")
                && argument.name.is_some_and(|name| name.text.eq_ignore_ascii_case("qd")) =>
        {
            arguments
        }
        _ => std::slice::from_ref(argument),
    }
}

/// Writes the parts behind the header's fixed part.
pub(super) fn write(header: &mut Header, parts: Vec<(&'static Part, &Argument<'_>)>) -> Outcome<()> {
    let parts = parts.into_iter().map(|(part, argument)| (part.name, argument)).collect();
    let given = Given { parts, span: header.span };
    match header.spec.protocol {
        Protocol::Dns => dns_message(header, &given),
        Protocol::Dhcp => dhcp_message(header, &given),
        Protocol::Http => http_message(header, &given),
        Protocol::Igmpv3 => igmp_message(header, &given),
        _ => Ok(()),
    }
}

/// One part as text, for each message that takes its turn.
struct Text {
    items: Vec<Vec<u8>>,
    random: bool,
    every: Option<Every>,
    span: Span,
}

impl Text {
    fn of(turn: usize, text: Option<&Text>) -> Option<&[u8]> {
        let items = &text?.items;
        items.get(turn).or(items.first()).map(Vec::as_slice)
    }
}

impl<'a> Given<'_, 'a> {
    fn get(&self, name: &str) -> Option<&Argument<'a>> {
        self.parts.iter().find(|(part, _)| *part == name).map(|(_, argument)| *argument)
    }

    /// A part that is text, or several in turn.
    fn text(&self, name: &str) -> Outcome<Option<Text>> {
        let Some(argument) = self.get(name) else { return Ok(None) };
        let span = argument.value.span();
        let forms = format!("`{name}` takes a text such as \"text\", a list [\"a\", \"b\"] or random([..])");
        let form = || Fault::at(span, forms.clone());
        let mut modifiers: Vec<&(Word<'_>, Value<'_>)> = argument.modifiers.iter().collect();
        let mut random = false;
        let body = match &argument.value {
            Value::Call(name, arguments, _) if name.text.eq_ignore_ascii_case("random") => {
                random = true;
                let [Argument { name: None, value, modifiers: inner }] = arguments.as_slice() else {
                    return Err(form());
                };
                modifiers.extend(inner);
                value
            }
            Value::Call(name, ..) => {
                return Err(Fault::at(span, no_call(name.text, &["random"], &forms)));
            }
            other => other,
        };
        let items = match body {
            Value::List(items, _) if items.len() > MAX_TURNS => {
                return Err(Fault::at(span, format!("more than {MAX_TURNS} texts in turn")));
            }
            Value::List(items, _) => {
                items.iter().map(|item| one_text(item).ok_or_else(form)).collect::<Outcome<_>>()?
            }
            one if !random => vec![one_text(one).ok_or_else(form)?],
            _ => return Err(form()),
        };
        if items.is_empty() {
            return Err(Fault::at(span, "the list is empty"));
        }
        if let Some(long) = items.iter().find(|item| item.len() > MAX_TEXT) {
            return Err(Fault::at(span, format!("{} bytes of text; {MAX_TEXT} are the most", long.len())));
        }
        let mut every = None;
        for (word, value) in modifiers {
            let frames = value::plain(value).and_then(|word| value::number(word.text));
            let frames = frames.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
            every = match (word.text.eq_ignore_ascii_case("every"), frames) {
                (true, Some(frames)) if items.len() > 1 => Some(Every::Frames(frames)),
                _ => {
                    return Err(Fault::at(word.span, "of texts in turn there is every=, a number of frames"));
                }
            };
        }
        Ok(Some(Text { items, random, every, span }))
    }

    /// A part that is a number or an address.
    fn number(&self, name: &str, field: &'static Field) -> Outcome<Option<Setting>> {
        self.get(name).map(|argument| value::setting(field, argument)).transpose()
    }

    /// The items of a list, or the one that stands without brackets.
    fn list(&self, name: &str) -> Outcome<Vec<Argument<'a>>> {
        let Some(argument) = self.get(name) else { return Ok(Vec::new()) };
        match &argument.value {
            Value::List(items, span) => {
                if let Some((name, _)) = argument.modifiers.first() {
                    return Err(Fault::at(
                        name.span,
                        "this list does not take turns: all of it is in each message",
                    ));
                }
                if items.len() > MAX_ITEMS {
                    return Err(Fault::at(*span, format!("more than {MAX_ITEMS} in one message")));
                }
                Ok(items
                    .iter()
                    .map(|value| Argument { name: None, value: value.clone(), modifiers: Vec::new() })
                    .collect())
            }
            _ => Ok(vec![Argument { name: None, ..argument.clone() }]),
        }
    }
}

fn one_text(value: &Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::Text(text, _) => Some(text.clone()),
        Value::Word(word) => Some(word.text.as_bytes().to_vec()),
        _ => None,
    }
}

/// A message while it is written.
#[derive(Default)]
struct Draft {
    bytes: Vec<u8>,
    /// What of it varies by number; bits counted from the message's variable part.
    patches: Vec<Patch>,
}

impl Draft {
    fn word(&mut self, value: usize) {
        self.bytes.extend((value as u16).to_be_bytes());
    }

    /// A number as wide as its field.
    fn setting(&mut self, setting: &Setting) {
        let bit = self.bytes.len() * 8;
        let bits = usize::from(setting.field.bits);
        self.bytes.resize(self.bytes.len() + bits / 8, 0);
        put(&mut self.bytes, bit, bits, setting.sequence.first());
        if setting.sequence.varies() {
            self.patches.push(Patch { bit, setting: setting.clone() });
        }
    }
}

/// Puts one message, or those that take turns, behind the header's fixed part.
fn place(header: &mut Header, texts: &[Option<&Text>], drafts: Vec<Draft>, span: Span) -> Outcome<()> {
    let start = header.bytes.len();
    let Some(first) = drafts.first() else { return Ok(()) };
    let places = |draft: &Draft| draft.patches.iter().map(|patch| patch.bit).collect::<Vec<_>>();
    if drafts.iter().any(|draft| places(draft) != places(first)) {
        let message = "a number behind texts of different lengths cannot vary: let one of them stand still";
        return Err(Fault::at(span, message));
    }
    let several = texts.iter().flatten().find(|text| text.items.len() > 1);
    header.bytes.extend(&first.bytes);
    if let Some(text) = several {
        header.turns = Some(Turns {
            start,
            random: text.random,
            every: text.every.clone().unwrap_or(Every::Frames(1)),
            span: text.span,
            items: drafts.iter().map(|draft| draft.bytes.clone()).collect(),
        });
    }
    let patches = drafts.into_iter().next().map(|draft| draft.patches).unwrap_or_default();
    header.patches.extend(patches.into_iter().map(|patch| Patch { bit: patch.bit + start * 8, ..patch }));
    Ok(())
}

/// How many messages take turns: as many as each text that is a list has items. All else of a message has `others` bytes.
fn turns(texts: &[Option<&Text>], others: usize) -> Outcome<usize> {
    let mut turns = 1;
    for text in texts.iter().flatten().filter(|text| text.items.len() > 1) {
        if turns > 1 && text.items.len() != turns {
            let message = format!(
                "lists of one message take turns together: this has {} items, another {turns}",
                text.items.len()
            );
            return Err(Fault::at(text.span, message));
        }
        turns = text.items.len();
    }
    let longest = |text: &&Text| text.items.iter().map(Vec::len).max().unwrap_or(0);
    let each = others + texts.iter().flatten().copied().map(|text| longest(&text)).sum::<usize>();
    match texts.iter().flatten().next() {
        Some(text) if turns > 1 && turns.saturating_mul(each) > MAX_BYTES => Err(Fault::at(
            text.span,
            format!("{turns} messages of up to {each} bytes take turns: 8 MB are the most"),
        )),
        _ => Ok(turns),
    }
}

const fn field(name: &'static str, bits: u8, kind: Kind, names: &'static [(&'static str, u128)]) -> Field {
    Field::new(name, 0, bits, kind, "A part of a message.").names(names)
}

static QTYPE: Field = field("qtype", 16, Kind::Uint, dns::TYPES);
static QCLASS: Field = field("qclass", 16, Kind::Uint, dns::CLASSES);
static TTL: Field = field("ttl", 32, Kind::Uint, &[]);
static EDNS: Field = field("edns", 16, Kind::Uint, &[]);
static PREFERENCE: Field = field("preference", 16, Kind::Uint, &[]);
static V4: Field = field("address", 32, Kind::Ipv4, &[]);
static V6: Field = field("address", 128, Kind::Ipv6, &[]);
static CLIENT_ID: Field = field("client_id", 48, Kind::Mac, &[]);
static LEASE: Field = field("lease", 32, Kind::Uint, &[]);
static MESSAGE: Field = field("type", 8, Kind::Uint, dhcp::TYPES);
static CODE: Field = field("code", 8, Kind::Uint, &[]);
static GROUP: Field = field("group", 32, Kind::Ipv4, &[]);
static SOURCE: Field = field("source", 32, Kind::Ipv4, &[]);

fn fixed(field: &'static Field, value: u128, span: Span) -> Setting {
    Setting { field, sequence: Sequence::One(value), every: Every::Frames(1), span }
}

/// RFC 1035 section 3.1: labels with their lengths.
fn name(text: &[u8], span: Span, out: &mut Vec<u8>) -> Outcome<()> {
    let start = out.len();
    let text = text.strip_suffix(b".").unwrap_or(text);
    for label in text.split(|byte| *byte == b'.').filter(|_| !text.is_empty()) {
        if label.is_empty() || label.len() > 63 {
            let text = String::from_utf8_lossy(text);
            return Err(Fault::at(
                span,
                format!("`{}` is no domain name: labels between dots have 1 to 63 bytes", short(&text)),
            ));
        }
        out.push(label.len() as u8);
        out.extend(label);
    }
    out.push(0);
    if out.len() - start > 255 {
        return Err(Fault::at(span, "a domain name has 255 bytes at most (RFC 1035 section 2.3.4)"));
    }
    Ok(())
}

/// Data of one answer.
enum Data {
    Number(Setting),
    Name(Vec<u8>),
    Mx(Setting, Vec<u8>),
    Bytes(Vec<u8>),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Data::Number(setting) => usize::from(setting.field.bits) / 8,
            Data::Name(bytes) | Data::Mx(_, bytes) | Data::Bytes(bytes) => bytes.len() + 2,
        }
    }
}

fn answer(item: &Argument<'_>) -> Outcome<(Setting, Data)> {
    const NAMES: [&str; 9] = ["a", "aaaa", "cname", "ns", "ptr", "mx", "txt", "record", "dnsrr"];
    const FORMS: &str = "an answer is an address, a(..), aaaa(..), cname(\"..\"), ns(\"..\"), ptr(\"..\"), mx(N, \"..\"), txt(\"..\") or record(TYPE, hex=\"..\")";
    let span = item.value.span();
    let bad = || Fault::at(span, FORMS);
    let of = |kind: u128, data| Ok((fixed(&QTYPE, kind, span), data));
    let is_v6 = |value: &Value<'_>| {
        let word = match value {
            Value::Range(word, _) => Some(*word),
            other => value::plain(other),
        };
        word.is_some_and(|word| word.text.contains(':'))
    };
    let Value::Call(called, arguments, _) = &item.value else {
        return if is_v6(&item.value) {
            of(28, Data::Number(value::setting(&V6, item)?))
        } else {
            of(1, Data::Number(value::setting(&V4, item)?))
        };
    };
    let encoded = |value: &Value<'_>| {
        let mut out = Vec::new();
        name(&one_text(value).ok_or_else(bad)?, value.span(), &mut out)?;
        Ok(out)
    };
    match (called.text.to_ascii_lowercase().as_str(), arguments.as_slice()) {
        ("a", [address]) => of(1, Data::Number(value::setting(&V4, address)?)),
        ("aaaa", [address]) => of(28, Data::Number(value::setting(&V6, address)?)),
        ("ns", [target]) => of(2, Data::Name(encoded(&target.value)?)),
        ("cname", [target]) => of(5, Data::Name(encoded(&target.value)?)),
        ("ptr", [target]) => of(12, Data::Name(encoded(&target.value)?)),
        ("mx", [preference, target]) => {
            of(15, Data::Mx(value::setting(&PREFERENCE, preference)?, encoded(&target.value)?))
        }
        ("txt", [text]) => {
            let text = one_text(&text.value).ok_or_else(bad)?;
            // Strings of 255 bytes at most, each with its length (RFC 1035 section 3.3.14).
            let strings = text.chunks(255).flat_map(|part| [&[part.len() as u8][..], part].concat());
            of(16, Data::Bytes(if text.is_empty() { vec![0] } else { strings.collect() }))
        }
        ("record", [kind, data]) => {
            let data = lists::bytes(data)?.ok_or_else(bad)?;
            Ok((value::setting(&QTYPE, kind)?, Data::Bytes(data)))
        }
        // Scapy's.
        ("dnsrr", fields) => {
            let data = fields
                .iter()
                .find(|field| field.name.is_some_and(|name| name.text.eq_ignore_ascii_case("rdata")));
            let data = data.filter(|data| !matches!(data.value, Value::Call(..))).ok_or_else(bad)?;
            answer(&Argument { name: None, ..data.clone() })
        }
        _ => Err(Fault::at(span, no_call(called.text, &NAMES, FORMS))),
    }
}

fn dns_message(header: &mut Header, given: &Given<'_, '_>) -> Outcome<()> {
    let span = given.span;
    let qname = given.text("qname")?;
    let qtype = given.number("qtype", &QTYPE)?.unwrap_or_else(|| fixed(&QTYPE, 1, span));
    let qclass = given.number("qclass", &QCLASS)?.unwrap_or_else(|| fixed(&QCLASS, 1, span));
    let ttl = given.number("ttl", &TTL)?.unwrap_or_else(|| fixed(&TTL, 300, span));
    let edns = given.number("edns", &EDNS)?;
    let answers = given.list("answers")?.iter().map(answer).collect::<Outcome<Vec<_>>>()?;
    let texts = [qname.as_ref()];
    let mut names = Vec::new();
    let others = answers.iter().map(|(_, data)| data.len() + 12).sum();
    for turn in 0..turns(&texts, others)? {
        let text = Text::of(turn, qname.as_ref()).unwrap_or(b"www.example.org");
        let mut encoded = Vec::new();
        name(text, qname.as_ref().map_or(span, |text| text.span), &mut encoded)?;
        names.push(encoded);
    }
    let longest = names.iter().map(Vec::len).max().unwrap_or(0);
    // Padding of EDNS brings messages to one length (RFC 7830): that is what it is for.
    let padded = names.iter().any(|name| name.len() < longest);
    let edns = edns.or_else(|| padded.then(|| fixed(&EDNS, 1232, span)));
    let mut drafts = Vec::with_capacity(names.len());
    for name in &names {
        let mut draft = Draft { bytes: name.clone(), ..Draft::default() };
        draft.setting(&qtype);
        draft.setting(&qclass);
        for (kind, data) in &answers {
            // The owner is the question's name, at byte 12 (RFC 1035 section 4.1.4).
            draft.word(0xc00c);
            draft.setting(kind);
            draft.word(1);
            draft.setting(&ttl);
            match data {
                Data::Number(setting) => {
                    draft.word(usize::from(setting.field.bits) / 8);
                    draft.setting(setting);
                }
                Data::Name(bytes) | Data::Bytes(bytes) => {
                    if bytes.len() > usize::from(u16::MAX) {
                        return Err(Fault::at(span, "a record holds 65535 bytes at most"));
                    }
                    draft.word(bytes.len());
                    draft.bytes.extend(bytes);
                }
                Data::Mx(preference, target) => {
                    draft.word(target.len() + 2);
                    draft.setting(preference);
                    draft.bytes.extend(target);
                }
            }
        }
        if let Some(edns) = &edns {
            draft.bytes.extend([0, 0, 41]);
            draft.setting(edns);
            draft.bytes.extend([0; 4]);
            let padding = longest - name.len();
            if padded {
                draft.word(padding + 4);
                draft.word(12);
                draft.word(padding);
                draft.bytes.resize(draft.bytes.len() + padding, 0);
            } else {
                draft.word(0);
            }
        }
        drafts.push(draft);
    }
    header.write("qdcount", 1);
    header.write("ancount", answers.len() as u128);
    header.write("arcount", u128::from(edns.is_some()));
    if !answers.is_empty() {
        header.write("qr", 1);
        header.write("ra", 1);
    }
    place(header, &texts, drafts, qname.as_ref().map_or(span, |text| text.span))
}

fn dhcp_message(header: &mut Header, given: &Given<'_, '_>) -> Outcome<()> {
    let span = given.span;
    let kind = given.number("type", &MESSAGE)?.unwrap_or_else(|| fixed(&MESSAGE, 1, span));
    let mut start = Draft::default();
    start.bytes.resize(dhcp::OPTIONS - dhcp::COOKIE.len() - header.bytes.len(), 0);
    start.bytes.extend(dhcp::COOKIE);
    start.bytes.extend([53, 1]);
    start.setting(&kind);
    if let Some(client) = given.number("client_id", &CLIENT_ID)? {
        // The hardware type stands in front (RFC 2132 section 9.14).
        start.bytes.extend([61, 7, 1]);
        start.setting(&client);
    }
    let numbers = [
        ("requested", 50, &V4),
        ("server", 54, &V4),
        ("lease", 51, &LEASE),
        ("mask", 1, &V4),
        ("router", 3, &V4),
        ("dns", 6, &V4),
    ];
    for (name, code, field) in numbers {
        if let Some(setting) = given.number(name, field)? {
            start.bytes.extend([code, 4]);
            start.setting(&setting);
        }
    }
    let params = given.list("params")?;
    if !params.is_empty() {
        start.bytes.extend([55, params.len().min(255) as u8]);
        for param in params.iter().take(255) {
            let setting = value::setting(&CODE, param)?;
            start.setting(&setting);
        }
    }
    for item in given.list("options")? {
        let (code, data) = dhcp_option(&item)?;
        start.bytes.extend([code, data.len() as u8]);
        start.bytes.extend(data);
    }
    let named = [("hostname", 12), ("domain", 15), ("vendor", 60)];
    let texts: Vec<(u8, Option<Text>)> =
        named.into_iter().map(|(name, code)| Ok((code, given.text(name)?))).collect::<Outcome<_>>()?;
    let all: Vec<Option<&Text>> = texts.iter().map(|(_, text)| text.as_ref()).collect();
    let mut drafts = Vec::new();
    for turn in 0..turns(&all, start.bytes.len())? {
        let mut draft = Draft { bytes: start.bytes.clone(), patches: Vec::new() };
        for (code, text) in &texts {
            let Some(bytes) = Text::of(turn, text.as_ref()) else { continue };
            let length = u8::try_from(bytes.len());
            let length = length.map_err(|_| Fault::at(span, "an option of DHCP holds 255 bytes at most"))?;
            draft.bytes.extend([*code, length]);
            draft.bytes.extend(bytes);
        }
        draft.bytes.push(255);
        drafts.push(draft);
    }
    let longest = drafts.iter().map(|draft| draft.bytes.len()).max().unwrap_or(0);
    let length = longest.max(dhcp::SHORTEST - header.bytes.len());
    for draft in &mut drafts {
        draft.bytes.resize(length, 0);
        draft.patches = start
            .patches
            .iter()
            .map(|patch| Patch { bit: patch.bit, setting: patch.setting.clone() })
            .collect();
    }
    let server = matches!(kind.sequence.first(), 2 | 5 | 6);
    header.write("op", if server { 2 } else { 1 });
    place(header, &all, drafts, span)
}

/// `opt(43, hex="..")`.
fn dhcp_option(item: &Argument<'_>) -> Outcome<(u8, Vec<u8>)> {
    const FORM: &str =
        "an option of DHCP is opt(N, hex=\"..\") or opt(N, \"text\"), N from 1 to 254, of 255 bytes at most";
    let span = item.value.span();
    let bad = || Fault::at(span, FORM);
    match &item.value {
        Value::Call(name, arguments, _) if name.text.eq_ignore_ascii_case("opt") => {
            let [code, data] = arguments.as_slice() else { return Err(bad()) };
            let code = value::plain(&code.value).and_then(|word| value::number(word.text)).ok_or_else(bad)?;
            let data = lists::bytes(data)?.filter(|data| data.len() <= 255).ok_or_else(bad)?;
            Ok((u8::try_from(code).ok().filter(|code| (1..255).contains(code)).ok_or_else(bad)?, data))
        }
        Value::Call(name, ..) => Err(Fault::at(span, no_call(name.text, &["opt"], FORM))),
        _ => Err(bad()),
    }
}

/// Names of status codes (RFC 9110 section 15) that are written where only the number is given.
const REASONS: &[(&str, &str)] = &[
    ("200", "OK"),
    ("201", "Created"),
    ("204", "No Content"),
    ("206", "Partial Content"),
    ("301", "Moved Permanently"),
    ("302", "Found"),
    ("304", "Not Modified"),
    ("400", "Bad Request"),
    ("401", "Unauthorized"),
    ("403", "Forbidden"),
    ("404", "Not Found"),
    ("429", "Too Many Requests"),
    ("500", "Internal Server Error"),
    ("502", "Bad Gateway"),
    ("503", "Service Unavailable"),
];

fn http_message(header: &mut Header, given: &Given<'_, '_>) -> Outcome<()> {
    let (method, path, version) = (given.text("method")?, given.text("path")?, given.text("version")?);
    let (host, status, body) = (given.text("host")?, given.text("status")?, given.text("body")?);
    for (name, text) in
        [("method", &method), ("path", &path), ("version", &version), ("host", &host), ("status", &status)]
    {
        if let Some(text) =
            text.as_ref().filter(|text| text.items.iter().flatten().any(|byte| byte.is_ascii_control()))
        {
            return Err(Fault::at(
                text.span,
                format!("`{name}` holds no line ends: write them into `raw` if they are meant"),
            ));
        }
    }
    if let (Some(_), Some(request)) = (&status, method.as_ref().or(path.as_ref()).or(host.as_ref())) {
        return Err(Fault::at(
            request.span,
            "a message with `status` is a response: it has no method, path or host",
        ));
    }
    let headers = given.list("headers")?;
    let headers = headers.iter().map(|line| {
        one_text(&line.value)
            .ok_or_else(|| Fault::at(line.value.span(), "headers are texts such as [\"Accept: */*\"]"))
    });
    let headers = headers.collect::<Outcome<Vec<_>>>()?;
    let measured = headers.iter().any(|line| line.to_ascii_lowercase().starts_with(b"content-length:"));
    let agent = headers.iter().any(|line| line.to_ascii_lowercase().starts_with(b"user-agent:"));
    let texts =
        [method.as_ref(), path.as_ref(), version.as_ref(), host.as_ref(), status.as_ref(), body.as_ref()];
    let mut halves = Vec::new();
    let others = headers.iter().map(Vec::len).sum();
    for turn in 0..turns(&texts, others)? {
        let of = |text, default| Text::of(turn, text).unwrap_or(default);
        let version = of(version.as_ref(), b"HTTP/1.1");
        let mut head = match Text::of(turn, status.as_ref()) {
            Some(status) => {
                let reason = REASONS
                    .iter()
                    .find(|(code, _)| code.as_bytes() == status)
                    .map_or("", |(_, reason)| reason);
                let gap: &[u8] = if reason.is_empty() { b"" } else { b" " };
                [version, b" ", status, gap, reason.as_bytes(), b"\r\nServer: netdyno"].concat()
            }
            None => {
                let (method, path) = (of(method.as_ref(), b"GET"), of(path.as_ref(), b"/"));
                let host = of(host.as_ref(), b"www.example.org");
                let name: &[u8] = if agent { b"" } else { b"\r\nUser-Agent: netdyno" };
                [method, b" ", path, b" ", version, b"\r\nHost: ", host, name].concat()
            }
        };
        let mut rest = b"\r\n".to_vec();
        for line in &headers {
            rest.extend(line);
            rest.extend(b"\r\n");
        }
        let content = of(body.as_ref(), b"");
        if !measured && (body.is_some() || status.is_some()) {
            rest.extend(format!("Content-Length: {}\r\n", content.len()).bytes());
        }
        rest.extend(b"\r\n");
        rest.extend(content);
        head.shrink_to_fit();
        halves.push((head, rest));
    }
    // Blanks behind a header's value mean nothing (RFC 9110 section 5.5): they bring messages to one length.
    let longest = halves.iter().map(|(head, rest)| head.len() + rest.len()).max().unwrap_or(0);
    let drafts = halves.into_iter().map(|(mut head, rest)| {
        head.resize(longest - rest.len(), b' ');
        head.extend(rest);
        Draft { bytes: head, patches: Vec::new() }
    });
    let drafts = drafts.collect();
    place(header, &texts, drafts, given.span)
}

fn igmp_message(header: &mut Header, given: &Given<'_, '_>) -> Outcome<()> {
    let span = given.span;
    let query = header.bytes.first() == Some(&igmpv3::QUERY);
    let (unfit, what) = if query { ("records", "a report") } else { ("sources", "a query (type=query)") };
    if let Some(argument) = given.get(unfit) {
        return Err(Fault::at(argument.value.span(), format!("`{unfit}` belongs to {what}")));
    }
    let mut draft = Draft::default();
    if query {
        let sources = given.list("sources")?;
        for source in &sources {
            draft.setting(&value::setting(&SOURCE, source)?);
        }
        header.write("nsources", sources.len() as u128);
        return place(header, &[], vec![draft], span);
    }
    let records = given.list("records")?;
    for record in &records {
        igmp_record(record, &mut draft)?;
    }
    if given.get("records").is_none() && header.bytes.first() == Some(&igmpv3::REPORT) {
        draft.bytes.extend([4, 0, 0, 0, 239, 255, 0, 1]);
        header.write("nrecords", 1);
    } else {
        header.write("nrecords", records.len() as u128);
    }
    place(header, &[], vec![draft], span)
}

/// `to_exclude(239.1.1.1, 10.0.0.1, ..)`.
fn igmp_record(record: &Argument<'_>, draft: &mut Draft) -> Outcome<()> {
    let names: Vec<&str> = igmpv3::RECORDS.iter().map(|(name, _)| *name).collect();
    let form = format!("a group record is {} with (GROUP, SOURCE, ..)", names.join(", "));
    let Value::Call(name, arguments, span) = &record.value else {
        return Err(Fault::at(record.value.span(), form));
    };
    let kind = igmpv3::RECORDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name.text))
        .map(|(_, kind)| *kind);
    let (Some(kind), [group, sources @ ..]) = (kind, arguments.as_slice()) else {
        return Err(Fault::at(*span, no_call(name.text, &names, &form)));
    };
    if sources.len() > MAX_ITEMS {
        return Err(Fault::at(record.value.span(), format!("more than {MAX_ITEMS} sources in one record")));
    }
    draft.bytes.extend([kind, 0]);
    draft.word(sources.len());
    draft.setting(&value::setting(&GROUP, group)?);
    for source in sources {
        draft.setting(&value::setting(&SOURCE, source)?);
    }
    Ok(())
}
