//! One layer as written to the bytes of its header, and what in them varies.

use super::error::{Fault, Outcome, did_you_mean, no_call};
use super::lists;
use super::messages::{self, Turns};
use super::patches::{self, Patch, Patches};
use super::syntax::{Argument, Layer, Span, Value, Word};
use super::value::{self, Sequence, Setting, short};
use std::net::Ipv6Addr;
use wire::proto::{Auto, Field, Kind, OptionSpec, Part, Protocol, Spec, Variable, icmpv6, igmpv3, put};

/// Payload of one layer, at most.
const MAX_PAYLOAD: u128 = 65_535;
/// Room for any header's fixed part.
const SCRATCH: usize = 64;

/// A layer's bytes.
#[derive(Debug)]
pub(super) struct Header {
    pub spec: &'static Spec,
    /// The layer's name in the expression; nowhere for a header that was put in front.
    pub span: Span,
    /// Where it starts in the frame.
    pub start: usize,
    pub bytes: Vec<u8>,
    /// What the user gave, in the order of writing.
    pub settings: Vec<Setting>,
    /// The checksum is to be wrong.
    pub bad_checksum: bool,
    pub segments: Vec<Ipv6Addr>,
    pub payload: Option<Payload>,
    /// What varies in the parts of a message; bits counted from the header's begin.
    pub patches: Vec<Patch>,
    /// Bytes of a message that take turns.
    pub turns: Option<Turns>,
}

/// What `raw` and `payload` describe.
#[derive(Debug)]
pub(super) struct Payload {
    /// Bytes that must be there.
    pub content: usize,
    /// Repeated after the content.
    pub fill: Vec<u8>,
    /// Where the length varies.
    pub length: Option<(Sequence, Span)>,
    /// What of the bytes varies.
    pub patches: Patches,
}

impl Payload {
    /// Bytes that a signature must leave alone.
    pub fn kept(&self) -> usize {
        self.content.max(self.patches.end())
    }
}

impl Header {
    /// Whether the user gave this field a value.
    pub fn is_set(&self, field: &Field) -> bool {
        self.settings.iter().any(|setting| std::ptr::eq(setting.field, field))
    }

    /// The field with that role, unless the user gave it a value.
    pub fn auto(&self, role: Auto) -> Option<&'static Field> {
        self.spec.auto(role).filter(|field| !self.is_set(field))
    }

    /// Writes a value into the header.
    pub fn write(&mut self, name: &str, value: u128) {
        if let Some(field) = self.spec.field(name)
            && !self.is_set(field)
            && let Some(at) = field.place(&self.bytes)
        {
            put(&mut self.bytes, at, usize::from(field.bits), value);
        }
    }

    /// Value of a field of the header's bytes.
    pub fn read(&self, name: &str) -> Option<u128> {
        self.spec.field(name)?.read(&self.bytes)
    }
}

/// Names of Scapy that are no layer here, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "BOOTP",
        "one layer for BOOTP and DHCP, such as dhcp(type=discover, xid=1, chaddr=02:00:00:00:00:01, options=[opt(43, hex=\"01\")])",
    ),
    ("ICMPv6EchoRequest", "icmpv6(type=echo-request, id=1, seq=1)"),
    ("ICMPv6EchoReply", "icmpv6(type=echo-reply, id=1, seq=1)"),
    ("ICMPv6ND_NS", "icmpv6(type=neighbor-solicit, target=2001:db8::1)"),
    ("ICMPv6ND_NA", "icmpv6(type=neighbor-advert, target=2001:db8::1)"),
    ("ICMPv6ND_RS", "icmpv6(type=router-solicit)"),
    ("ICMPv6ND_RA", "icmpv6(type=router-advert)"),
    ("IGMPv3mr", "igmpv3(records=[to_exclude(239.1.1.1)])"),
    ("IGMPv3mq", "igmpv3(type=query, group=239.1.1.1)"),
    ("HTTPRequest", "http(method=GET, path=\"/\", host=www.example.org), without HTTP() in front"),
    ("HTTPResponse", "http(status=200, body=\"text\"), without HTTP() in front"),
];

/// The protocol a layer's name means.
pub(super) fn protocol(name: &Word<'_>) -> Outcome<Protocol> {
    Protocol::by_name(name.text).ok_or_else(|| {
        if let Some((_, advice)) = ELSEWHERE.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.text)) {
            return Fault::at(name.span, format!("`{}` is written otherwise here: {advice}", name.text));
        }
        let all = || Protocol::ALL.into_iter().map(Protocol::spec);
        let hint = did_you_mean(
            name.text,
            all().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied())),
        );
        let names: Vec<&str> = all().map(|spec| spec.name).collect();
        let message = format!("unknown layer `{}`{hint}layers: {}", short(name.text), names.join(", "));
        Fault::at(name.span, message)
    })
}

/// A header with nothing but defaults.
pub(super) fn default(protocol: Protocol) -> Outcome<Header> {
    let nowhere = Span { start: 0, end: 1 };
    build(protocol, &Layer { name: Word { text: "", span: nowhere }, arguments: Vec::new() })
}

/// The header of a layer.
pub(super) fn build(protocol: Protocol, layer: &Layer<'_>) -> Outcome<Header> {
    let spec = protocol.spec();
    let mut header = Header {
        spec,
        span: layer.name.span,
        start: 0,
        bytes: Vec::new(),
        settings: Vec::new(),
        bad_checksum: false,
        segments: Vec::new(),
        payload: None,
        patches: Vec::new(),
        turns: None,
    };
    if protocol == Protocol::Raw {
        let (bytes, payload) = payload(layer)?;
        header.bytes = bytes;
        header.payload = Some(payload);
        return Ok(header);
    }
    let mut list = None;
    let mut left_auto: Vec<&Field> = Vec::new();
    let mut parts: Vec<(&'static Part, &Argument<'_>)> = Vec::new();
    for argument in layer.arguments.iter().flat_map(|argument| messages::unfolded(protocol, argument)) {
        let Some(name) = &argument.name else {
            return Err(Fault::at(
                argument.value.span(),
                format!("expected field=value; {}", fields_of(spec)),
            ));
        };
        if spec.field(name.text).is_none()
            && spec.list_names().iter().any(|n| n.eq_ignore_ascii_case(name.text))
        {
            if list.replace(argument).is_some() {
                return Err(Fault::at(name.span, format!("`{}` is given twice", name.text)));
            }
            continue;
        }
        if let Some(part) = spec.parts().iter().find(|part| part.is_called(name.text)) {
            if parts.iter().any(|(other, _)| std::ptr::eq(*other, part)) {
                return Err(Fault::at(name.span, format!("`{}` is given twice", name.text)));
            }
            parts.push((part, argument));
            continue;
        }
        let Some(field) = spec.field(name.text) else {
            let names =
                spec.fields.iter().flat_map(|f| std::iter::once(f.name).chain(f.aliases.iter().copied()));
            let names = names.chain(spec.list_names().iter().copied());
            let hint = did_you_mean(name.text, names.chain(spec.parts().iter().map(|part| part.name)));
            let option = option_of(spec, name.text);
            let message = format!(
                "unknown field `{}` of {}{option}{hint}{}{}",
                short(name.text),
                spec.name,
                fields_of(spec),
                if spec.protocol == Protocol::Tcp { TCP_OPTIONS } else { "" }
            );
            return Err(Fault::at(name.span, message));
        };
        // Scapy's word for a field that is not given.
        if matches!(&argument.value, Value::Word(word) if word.text == "None") {
            continue;
        }
        if header.is_set(field) || left_auto.iter().any(|f| std::ptr::eq(*f, field)) {
            return Err(Fault::at(name.span, format!("`{}` is given twice", name.text)));
        }
        match special(field, argument) {
            Some(Special::Auto) => left_auto.push(field),
            Some(Special::Bad) => {
                left_auto.push(field);
                header.bad_checksum = true;
            }
            None => header.settings.push(value::setting(field, argument)?),
        }
    }
    fixed_part(&mut header, list, &left_auto)?;
    variable_part(&mut header, list)?;
    messages::write(&mut header, parts)?;
    derived(&mut header)?;
    Ok(header)
}

enum Special {
    Auto,
    Bad,
}

/// One of [`value::specials`].
fn special(field: &Field, argument: &Argument<'_>) -> Option<Special> {
    let Value::Word(word) = &argument.value else { return None };
    if !argument.modifiers.is_empty() {
        return None;
    }
    match *value::specials(field).iter().find(|special| word.text.eq_ignore_ascii_case(special))? {
        "auto" => Some(Special::Auto),
        _ => Some(Special::Bad),
    }
}

/// Behind the list of fields, whose last one is `options`.
const TCP_OPTIONS: &str = ", such as options=[mss(1460), wscale(7)]";

/// How it is written, if it is no field but one of the header's options.
fn option_of(spec: &Spec, name: &str) -> String {
    let Variable::Options { table, .. } = spec.variable else { return String::new() };
    let called = |option: &&OptionSpec| {
        std::iter::once(option.name)
            .chain(option.aliases.iter().copied())
            .any(|n| n.eq_ignore_ascii_case(name))
    };
    let option = table.iter().find(called);
    option.map_or_else(String::new, |option| {
        format!(", but an option: options=[{}{}]", option.name, option.layout.arguments())
    })
}

fn fields_of(spec: &Spec) -> String {
    let names: Vec<&str> =
        spec.fields.iter().map(|f| f.name).chain(spec.list_names().first().copied()).collect();
    let names: Vec<&str> = names.into_iter().chain(spec.parts().iter().map(|part| part.name)).collect();
    if names.is_empty() { "it has no fields".into() } else { format!("fields: {}", names.join(", ")) }
}

/// Everything before options and lists. Some fields decide where, and whether, others stand: these come first.
fn fixed_part(header: &mut Header, list: Option<&Argument<'_>>, left_auto: &[&Field]) -> Outcome<()> {
    let spec = header.spec;
    let mut bytes = vec![0u8; SCRATCH];
    let write = |bytes: &mut Vec<u8>, field: &Field, at: usize, value: u128| {
        put(bytes, at, usize::from(field.bits), value);
    };
    for field in spec.fields.iter().filter(|field| field.at.is_none() && !field.view) {
        write(&mut bytes, field, usize::from(field.bit), field.default);
    }
    for setting in header.settings.iter().filter(|setting| setting.field.at.is_none()) {
        write(&mut bytes, setting.field, usize::from(setting.field.bit), setting.sequence.first());
    }
    let given = header.settings.iter().map(|setting| setting.field).chain(left_auto.iter().copied());
    let mut flags: Vec<&'static str> = given.filter_map(|field| field.needs).collect();
    if spec.protocol == Protocol::Gtpu && list.is_some() {
        flags.push("e");
    }
    for flag in flags.into_iter().filter_map(|name| spec.field(name)) {
        if !header.is_set(flag) {
            write(&mut bytes, flag, usize::from(flag.bit), 1);
        }
    }
    for field in spec.fields.iter().filter(|field| field.at.is_some()) {
        // A default never goes over what the user wrote into the same bits under another name.
        let free = |at: usize| {
            let range = at..at + usize::from(field.bits);
            !header.settings.iter().any(|s| {
                s.field
                    .place(&bytes)
                    .is_some_and(|at| at < range.end && range.start < at + usize::from(s.field.bits))
            })
        };
        if let Some(at) = field.place(&bytes).filter(|at| free(*at)) {
            write(&mut bytes, field, at, field.default);
        }
    }
    for setting in &header.settings {
        let Some(at) = setting.field.place(&bytes) else {
            let message =
                format!("this header has no `{}` as it stands: {}", setting.field.name, setting.field.doc);
            return Err(Fault::at(setting.span, message));
        };
        write(&mut bytes, setting.field, at, setting.sequence.first());
    }
    let length = match spec.protocol {
        Protocol::Icmpv6 => icmpv6::fixed_len(bytes.first().copied().unwrap_or(0)),
        Protocol::Igmpv3 => igmpv3::fixed_len(bytes.first().copied().unwrap_or(0)),
        Protocol::Gre => (spec.header_len)(&bytes).unwrap_or(spec.min_len),
        Protocol::Gtpu if bytes.first().is_some_and(|byte| byte & 7 != 0) => 12,
        _ => spec.min_len,
    };
    bytes.truncate(length);
    header.bytes = bytes;
    Ok(())
}

fn variable_part(header: &mut Header, list: Option<&Argument<'_>>) -> Outcome<()> {
    let spec = header.spec;
    if let Some((name, _)) = list.and_then(|list| list.modifiers.first()) {
        return Err(Fault::at(name.span, "a list in a header does not vary"));
    }
    match spec.variable {
        Variable::None | Variable::Message { .. } => {}
        Variable::Options { table, align } => {
            let mut out = match list {
                Some(list) => lists::options(spec.protocol, table, &list.value)?,
                None => Vec::new(),
            };
            lists::pad(spec.protocol, &mut out, header.bytes.len(), align);
            header.bytes.extend(out);
        }
        Variable::Segments => {
            if let Some(list) = list {
                header.segments = lists::segments(&list.value)?;
            }
            header.bytes.extend(header.segments.iter().flat_map(|address| address.octets()));
        }
        Variable::GtpuExtensions => {
            if let Some(list) = list {
                let (kind, out) = lists::gtpu_extensions(&list.value)?;
                header.write("next_ex", u128::from(kind));
                header.bytes.extend(out);
            }
        }
    }
    Ok(())
}

/// The fields that follow from the header itself.
fn derived(header: &mut Header) -> Outcome<()> {
    let length = header.bytes.len();
    if let Some(field) = header.auto(Auto::HeaderWords) {
        if length > 60 {
            let message = format!("a header of {length} bytes: options take 40 at most");
            return Err(Fault::at(header.span, message));
        }
        header.write(field.name, length as u128 / 4);
    }
    if let Some(field) = header.auto(Auto::HeaderEights) {
        if length > 2048 {
            let message = format!("a header of {length} bytes: 2048 are the most");
            return Err(Fault::at(header.span, message));
        }
        header.write(field.name, length as u128 / 8 - 1);
    }
    let count = header.segments.len() as u128;
    match header.spec.protocol {
        Protocol::Routing => header.write("segleft", count),
        Protocol::Srv6 => {
            header.write("segleft", count.saturating_sub(1));
            header.write("lastentry", count.saturating_sub(1));
        }
        _ => {}
    }
    Ok(())
}

/// `raw("text")`, `raw(hex="..")`, `payload(len=.., fill=..)`.
fn payload(layer: &Layer<'_>) -> Outcome<(Vec<u8>, Payload)> {
    const FORMS: &str = "write raw(\"text\"), raw(hex=\"de ad\"), or payload(len=100, fill=0x00)";
    /// Payload lengths are written like any 16-bit field.
    static LENGTH: Field = Field::new("len", 0, 16, Kind::Uint, "Bytes of payload.");
    let mut content: Option<Vec<u8>> = None;
    let mut length = None;
    let mut fill: Option<Vec<u8>> = None;
    let mut patches: Option<Patches> = None;
    for argument in &layer.arguments {
        let span = argument.value.span();
        let name = argument.name.as_ref().map(|name| name.text.to_ascii_lowercase());
        let twice = match (name.as_deref(), &argument.value) {
            (None | Some("load" | "text"), Value::Text(text, _)) => content.replace(text.clone()).is_some(),
            (None | Some("load"), value) => match lists::hex_value(value)? {
                Some(bytes) => content.replace(bytes).is_some(),
                None => {
                    let message = match value {
                        Value::Call(name, ..) => no_call(name.text, &["hex"], FORMS),
                        _ => FORMS.into(),
                    };
                    return Err(Fault::at(span, message));
                }
            },
            (Some("hex"), Value::Text(text, span)) => {
                content.replace(lists::from_hex(text, *span)?).is_some()
            }
            (Some("len" | "length"), _) => {
                let setting = value::setting(&LENGTH, argument)?;
                if setting.every != value::Every::Frames(1) {
                    return Err(Fault::at(span, "a length changes with each frame: every= does not apply"));
                }
                length.replace((setting.sequence, span)).is_some()
            }
            (Some("fields"), value) => patches.replace(patches::read(value)?).is_some(),
            (Some("fill"), Value::Text(text, _)) if !text.is_empty() => fill.replace(text.clone()).is_some(),
            (Some("fill"), Value::Word(word)) => {
                let byte = value::number(word.text)
                    .and_then(|n| u8::try_from(n).ok())
                    .ok_or_else(|| Fault::at(span, "fill= takes a byte, a string, or hex(\"..\")"))?;
                fill.replace(vec![byte]).is_some()
            }
            (Some("fill"), value) => match lists::hex_value(value)?.filter(|bytes| !bytes.is_empty()) {
                Some(bytes) => fill.replace(bytes).is_some(),
                None => return Err(Fault::at(span, "fill= takes a byte, a string, or hex(\"..\")")),
            },
            (Some(name), _) => {
                let hint = did_you_mean(name, ["hex", "len", "fill", "fields", "load"].into_iter());
                return Err(Fault::at(
                    span,
                    format!("`{}` does not go with payload{hint}{FORMS}", short(name)),
                ));
            }
        };
        if twice || !argument.modifiers.is_empty() && !matches!(name.as_deref(), Some("len" | "length")) {
            let why = if twice {
                "content, length, fill and fields are given once each"
            } else {
                "payload bytes do not vary as a whole; write fields=[field(OFFSET, BITS, VALUE)]"
            };
            return Err(Fault::at(span, why));
        }
    }
    let mut bytes = content.unwrap_or_default();
    if bytes.len() as u128 > MAX_PAYLOAD {
        return Err(Fault::at(
            layer.name.span,
            format!("{} bytes of payload; {MAX_PAYLOAD} are the most", bytes.len()),
        ));
    }
    let fill = fill.unwrap_or_else(|| vec![0]);
    let content = bytes.len();
    let mut varies = None;
    if let Some((sequence, span)) = length {
        let shortest = match &sequence {
            Sequence::One(length) => *length,
            Sequence::Range { first, last, .. }
            | Sequence::Random { first, last, .. }
            | Sequence::Shuffled { first, last, .. } => *first.min(last),
            Sequence::List(items) | Sequence::RandomList(items) => items.iter().copied().min().unwrap_or(0),
            Sequence::Runs { runs, .. } => {
                runs.iter().map(|(first, last)| *first.min(last)).min().unwrap_or(0)
            }
        };
        if shortest < content as u128 {
            return Err(Fault::at(span, format!("the content has {content} bytes: len= cannot be less")));
        }
        extend(&mut bytes, content, &fill, shortest as usize);
        varies = sequence.varies().then_some((sequence, span));
    }
    let mut patches = patches.unwrap_or_default();
    patches.check(bytes.len())?;
    for patch in &patches.fields {
        put(&mut bytes, patch.bit, usize::from(patch.setting.field.bits), patch.setting.sequence.first());
    }
    Ok((bytes, Payload { content, fill, length: varies, patches }))
}

/// Lengthens `bytes`, whose payload content ends at `from`, with the fill pattern.
pub(super) fn extend(bytes: &mut Vec<u8>, from: usize, fill: &[u8], length: usize) {
    while bytes.len() < length {
        let byte = fill.get((bytes.len() - from) % fill.len().max(1)).copied().unwrap_or(0);
        bytes.push(byte);
    }
}
