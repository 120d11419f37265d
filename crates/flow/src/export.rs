//! Writes records as messages: NetFlow v5, v9 (RFC 3954) and IPFIX (RFC 7011).
//!
//! A message goes out when it is full or when it is asked for. Templates go ahead of the first records and again from time to
//! time, because UDP may lose them. Sequence numbers are those of the protocols: of v5 flows, of v9 messages, of IPFIX data
//! records, those of options among them.
//!
//! Several collectors have a [`Session`] each: templates and numbers of their own.

mod options;
mod session;

pub use session::Session;

use crate::table::Over;
use crate::template::{BadTemplate, Context, Field, Purpose, Template, UPTIME_NS, Version};
use options::OptionsTemplate;

/// What is written, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// As which protocol.
    pub version: Version,
    /// Names of elements, as [`Template::parse`] reads them; v5 has its own.
    pub template: String,
    /// The number of IPv4's template; IPv6's is the next one, and those of flows with packets of both directions the next two.
    /// From 256 on.
    pub first_template: u16,
    /// Flows are of both directions (RFC 5103): of IPFIX only.
    pub both_ways: bool,
    /// Test signatures are looked for: of IPFIX only.
    pub signed: bool,
    /// Observation domain (IPFIX), source (v9), engine (v5, which has one byte for it).
    pub domain: u32,
    /// The longest message, in bytes.
    pub longest: usize,
    /// Templates are sent again after so many messages,
    pub refresh_messages: u32,
    /// and after so long.
    pub refresh_ns: u64,
    /// What is known beside flows.
    pub context: Context,
}

/// The most bytes of a message over UDP that no Ethernet cuts: 1,500 without the headers of IPv6 and UDP.
pub const LONGEST: usize = 1452;

/// What was written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub octets: u64,
    /// Records of flows.
    pub records: u64,
    /// Records of IPv6, which v5 cannot say.
    pub unsayable: u64,
    /// Records of times that `sysUpTime` cannot say: before the exporter began, or longer ago than its 32 bits reach back.
    pub untimely: u64,
}

/// What the probe says of itself (RFC 7011, 4.1 to 4.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Packets that were not metered: lost before they were seen, or without a flow.
    pub ignored_packets: u64,
    /// Their bytes, as far as they are known.
    pub ignored_octets: u64,
    /// When the first and the last of them were ignored, in nanoseconds since 1970.
    pub ignored_ns: [u64; 2],
    /// Records, packets and bytes of flows that were metered and not sent.
    pub unsent: [u64; 3],
    /// When the first and the last of them were not sent.
    pub unsent_ns: [u64; 2],
}

/// A message that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Records of flows in it,
    pub records: u32,
    /// and what they counted: packets and bytes.
    pub counted: [u64; 2],
    /// By how much it raises the sequence number.
    pub numbers: u32,
}

/// What a transport session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// A message with the templates, and with how packets and flows were selected where not all were.
    pub bytes: Vec<u8>,
    /// By how much it raises the sequence number.
    pub numbers: u32,
}

/// Makes messages of records.
#[derive(Debug)]
pub struct Exporter {
    settings: Settings,
    /// Of IPv4 and IPv6; then the same of flows with packets of both directions.
    templates: Vec<Template>,
    options: Vec<OptionsTemplate>,
    message: Vec<u8>,
    /// The set that is open: its number and where it begins.
    set: Option<(u16, usize)>,
    /// Records of any kind in the message: flows, options, templates.
    count: u16,
    /// Of these, data records.
    data: u32,
    flows: u32,
    counted: [u64; 2],
    /// Of the flows in the message the earliest one's first packet, and when the last of them was added.
    reach_ns: Option<[u64; 2]>,
    sequence: u32,
    /// Templates go with the messages; else they are sent otherwise.
    tells_templates: bool,
    /// Messages since the templates were sent, and when that was.
    since: Option<(u32, u64)>,
    counters: Counters,
}

/// What a transport session of these settings begins with.
///
/// # Errors
/// What of the template is none.
pub fn opening(settings: Settings) -> Result<Opening, BadTemplate> {
    Ok(Exporter::new(settings)?.opening(0))
}

/// Where templates' numbers begin.
const LEAST_TEMPLATE: u16 = 256;

impl Exporter {
    /// Nothing was written yet.
    ///
    /// # Errors
    /// What of the template is none.
    pub fn new(settings: Settings) -> Result<Exporter, BadTemplate> {
        let text = settings.template.clone();
        let both_ways = settings.both_ways && settings.version == Version::Ipfix;
        let of = |(answered, v6)| match settings.version {
            // Not used: its layout is fixed.
            Version::V5 => Template::parse("%IPV4_SRC_ADDR", Purpose::one_way(Version::V5, v6)),
            version => {
                Template::parse(&text, Purpose { version, v6, both_ways, answered, signed: settings.signed })
            }
        };
        let each = [(false, false), (false, true), (true, false), (true, true)];
        let templates: Vec<Template> = each
            .into_iter()
            .filter(|(answered, _)| both_ways || !answered)
            .map(of)
            .collect::<Result<_, _>>()?;
        let settings = Settings {
            first_template: settings.first_template.clamp(LEAST_TEMPLATE, u16::MAX - 16),
            longest: settings.longest.clamp(512, usize::from(u16::MAX)),
            ..settings
        };
        Ok(Exporter {
            options: OptionsTemplate::of(&settings, settings.first_template + templates.len() as u16),
            settings,
            templates,
            message: Vec::with_capacity(LONGEST),
            set: None,
            count: 0,
            data: 0,
            flows: 0,
            counted: [0; 2],
            reach_ns: None,
            sequence: 0,
            tells_templates: true,
            since: None,
            counters: Counters::default(),
        })
    }

    /// The same without templates: each collector gets them by a [`Session`].
    #[must_use]
    pub fn without_templates(self) -> Exporter {
        Exporter { tells_templates: false, ..self }
    }

    /// The longest time from a flow's first packet to its last that its record can say, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        match self.settings.version {
            Version::V5 => UPTIME_NS,
            _ => self.templates.iter().map(Template::longest_ns).min().unwrap_or(u64::MAX),
        }
    }

    /// The most bytes that the counters of a record hold.
    pub fn most_octets(&self) -> u64 {
        match self.settings.version {
            Version::V5 => u32::MAX.into(),
            _ => self.templates.iter().map(Template::most_octets).min().unwrap_or(u64::MAX),
        }
    }

    /// Says when what is exported began, where that is not known beforehand: the first packet of a capture.
    pub fn begin_at(&mut self, began_ns: u64) {
        self.settings.context.began_ns = began_ns;
    }

    /// What was written so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Writes the record of a flow; messages that are full go to `send`.
    pub fn add(&mut self, over: &Over, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        if self.is_untimely(over, now_ns) {
            self.counters.untimely += 1;
            return;
        }
        // Those that are in the message go before they are out of reach.
        if self.reach_ns.is_some_and(|[earliest, _]| self.is_beyond(earliest, now_ns)) {
            self.flush(now_ns, send);
        }
        if self.settings.version == Version::V5 {
            return self.add_v5(over, now_ns, send);
        }
        self.refresh(now_ns, send);
        let answered = over.back.is_some_and(|back| back.packets > 0) && self.templates.len() > 2;
        let which = usize::from(over.flow.key.is_v6()) + if answered { 2 } else { 0 };
        let Some(template) = self.templates.get(which) else { return };
        let number = self.settings.first_template + which as u16;
        self.open_set(number, template.length(), now_ns, send);
        if let Some(template) = self.templates.get(which) {
            template.write(over, &self.settings.context, &mut self.message);
        }
        self.count += 1;
        self.data += 1;
        self.wrote(over, now_ns);
    }

    /// Times that are given by `sysUpTime` are those of 2^32 ms before the message, and none before the exporter began. IPFIX says
    /// what they count from in the record itself.
    fn is_untimely(&self, over: &Over, now_ns: u64) -> bool {
        let [first, _] = over.flow.times_ns;
        self.has_uptime() && first < self.settings.context.began_ns || self.is_beyond(first, now_ns)
    }

    fn has_uptime(&self) -> bool {
        match self.settings.version {
            Version::V5 => true,
            Version::V9 => self.templates.first().is_some_and(Template::has_uptime),
            Version::Ipfix => false,
        }
    }

    /// Whether a message of this time cannot say when this was, because it is too long ago.
    fn is_beyond(&self, first_ns: u64, now_ns: u64) -> bool {
        self.has_uptime()
            && self.message_ms(now_ns).saturating_sub(first_ns / 1_000_000) > u64::from(u32::MAX)
    }

    /// The time of a message, in milliseconds since 1970. A message of v9 has but seconds, beside an uptime to the millisecond: if both
    /// are of the same whole second, who adds them gets times to the millisecond; of v5 pmacct 1.7.7 reads no more than the second, too.
    /// It is the next one, because a flow that ended within this one would have ended after the message: pmacct puts the end of such a
    /// flow 49.7 days off.
    fn message_ms(&self, now_ns: u64) -> u64 {
        match self.settings.version {
            Version::V5 | Version::V9 => now_ns.div_ceil(1_000_000_000) * 1000,
            Version::Ipfix => now_ns / 1_000_000,
        }
    }

    fn wrote(&mut self, over: &Over, now_ns: u64) {
        let [first, _] = over.flow.times_ns;
        self.reach_ns = Some([self.reach_ns.map_or(first, |[earliest, _]| earliest.min(first)), now_ns]);
        self.flows += 1;
        self.counted[0] += over.flow.packets;
        self.counted[1] += over.flow.octets;
        if let Some(back) = over.back {
            self.counted[0] += back.packets;
            self.counted[1] += back.octets;
        }
        self.counters.records += 1;
    }

    /// Writes what the probe says of itself.
    pub fn status(&mut self, status: &Status, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        if self.settings.version == Version::V5 {
            return;
        }
        self.refresh(now_ns, send);
        self.say(status, now_ns, |_| true, send);
    }

    /// Writes records of options.
    fn say(
        &mut self,
        status: &Status,
        now_ns: u64,
        which: impl Fn(&OptionsTemplate) -> bool,
        send: &mut (impl FnMut(Message<'_>) + ?Sized),
    ) {
        for at in 0..self.options.len() {
            let Some(options) = self.options.get(at).filter(|options| which(options)) else { continue };
            let (number, length) = (options.number, options.length());
            self.open_set(number, length, now_ns, send);
            if let Some(options) = self.options.get(at) {
                options.write(&self.settings, &self.counters, status, &mut self.message);
            }
            self.count += 1;
            self.data += 1;
        }
    }

    /// The message that a transport session begins with. The exporter must have no message under way.
    fn opening(&mut self, now_ns: u64) -> Opening {
        let mut opening = Opening { bytes: Vec::new(), numbers: 0 };
        let mut keep = |message: Message<'_>| {
            opening.bytes.extend(message.bytes);
            opening.numbers += message.numbers;
        };
        if self.settings.version != Version::V5 {
            self.tell_templates();
            self.say(&Status::default(), now_ns, |options| options.of_selection, &mut keep);
            self.flush(now_ns, &mut keep);
        }
        opening
    }

    /// Sends what is written.
    pub fn flush(&mut self, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        if self.count > 0 {
            self.finish(now_ns, send);
        }
    }

    /// Sends templates ahead of what comes, if it is time to.
    fn refresh(&mut self, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        let due = self.since.is_none_or(|(messages, at_ns)| {
            messages >= self.settings.refresh_messages
                || now_ns >= at_ns.saturating_add(self.settings.refresh_ns)
        });
        if !due || !self.tells_templates {
            return;
        }
        self.flush(now_ns, send);
        self.since = Some((0, now_ns));
        self.tell_templates();
    }

    /// Writes the templates.
    fn tell_templates(&mut self) {
        self.begin();
        let first = self.settings.first_template;
        let ids = if self.settings.version == Version::V9 { [0, 1] } else { [2, 3] };
        let set = self.begin_set(ids[0]);
        for (number, template) in (first..).zip(&self.templates) {
            self.message.extend(number.to_be_bytes());
            self.message.extend((template.fields.len() as u16).to_be_bytes());
            template.fields.iter().for_each(|field| specifier(*field, &mut self.message));
        }
        self.end_set(set);
        // Each in a set of its own: nfcapd 1.7.1 and nfacctd 1.7.7 read one of a set.
        for at in 0..self.options.len() {
            let set = self.begin_set(ids[1]);
            if let Some(options) = self.options.get(at) {
                options.describe(self.settings.version, &mut self.message);
            }
            self.end_set(set);
        }
        self.count += (self.templates.len() + self.options.len()) as u16;
    }

    /// Begins a message, if there is none.
    fn begin(&mut self) {
        if self.message.is_empty() {
            self.message.resize(self.header(), 0);
        }
    }

    fn header(&self) -> usize {
        match self.settings.version {
            Version::V5 => 24,
            Version::V9 => 20,
            Version::Ipfix => 16,
        }
    }

    /// Sees to it that a record of so many bytes can be written into the set of this number.
    fn open_set(
        &mut self,
        number: u16,
        length: usize,
        now_ns: u64,
        send: &mut (impl FnMut(Message<'_>) + ?Sized),
    ) {
        let head = if self.set.is_some_and(|(open, _)| open == number) { 0 } else { SET };
        // Three bytes of padding for the set that is closed, and three for the one that is opened.
        if self.message.len() + head + length + 6 > self.settings.longest {
            self.flush(now_ns, send);
        }
        self.begin();
        if self.set.is_none_or(|(open, _)| open != number) {
            self.close_set();
            self.set = Some((number, self.begin_set(number)));
        }
    }

    fn begin_set(&mut self, number: u16) -> usize {
        self.close_set();
        let at = self.message.len();
        self.message.extend(number.to_be_bytes());
        self.message.extend([0, 0]);
        at
    }

    fn close_set(&mut self) {
        if let Some((_, at)) = self.set.take() {
            self.end_set(at);
        }
    }

    /// Pads a set to words of four bytes, and writes its length.
    fn end_set(&mut self, at: usize) {
        while !self.message.len().is_multiple_of(4) {
            self.message.push(0);
        }
        let length = (self.message.len() - at) as u16;
        if let Some(field) = self.message.get_mut(at + 2..at + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }

    fn finish(&mut self, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        self.close_set();
        // One that waited so long has the time of its last flow, which could say all times: by a later one they would be 49.7 days off.
        let now_ns = match self.reach_ns.take() {
            Some([earliest, added]) if self.is_beyond(earliest, now_ns) => added,
            _ => now_ns,
        };
        let now_ms = self.message_ms(now_ns);
        let seconds = (now_ms / 1000) as u32;
        let uptime = now_ms.wrapping_sub(self.settings.context.began_ns / 1_000_000) as u32;
        let before = self.sequence;
        let mut head = Vec::with_capacity(24);
        head.extend(self.settings.version.number().to_be_bytes());
        match self.settings.version {
            Version::Ipfix => {
                head.extend((self.message.len() as u16).to_be_bytes());
                head.extend(seconds.to_be_bytes());
                head.extend(self.sequence.to_be_bytes());
                head.extend(self.settings.domain.to_be_bytes());
                self.sequence = self.sequence.wrapping_add(self.data);
            }
            Version::V9 => {
                head.extend(self.count.to_be_bytes());
                head.extend(uptime.to_be_bytes());
                head.extend(seconds.to_be_bytes());
                head.extend(self.sequence.to_be_bytes());
                head.extend(self.settings.domain.to_be_bytes());
                self.sequence = self.sequence.wrapping_add(1);
            }
            Version::V5 => {
                head.extend(self.count.to_be_bytes());
                head.extend(uptime.to_be_bytes());
                head.extend(seconds.to_be_bytes());
                // Nanoseconds.
                head.extend([0; 4]);
                head.extend(self.sequence.to_be_bytes());
                let sampling = self.settings.context.sampling;
                let mode = match (sampling > 1, self.settings.context.random) {
                    (false, _) => 0,
                    (true, false) => 1u16,
                    (true, true) => 2,
                };
                let interval = if sampling > 1 { sampling.min(0x3fff) as u16 } else { 0 };
                head.extend([0, self.settings.domain as u8]);
                head.extend((mode << 14 | interval).to_be_bytes());
                self.sequence = self.sequence.wrapping_add(self.count.into());
            }
        }
        if let Some(place) = self.message.get_mut(..head.len()) {
            place.copy_from_slice(&head);
        }
        self.counters.messages += 1;
        self.counters.octets += self.message.len() as u64;
        let numbers = self.sequence.wrapping_sub(before);
        send(Message { bytes: &self.message, records: self.flows, counted: self.counted, numbers });
        self.message.clear();
        (self.count, self.data, self.flows, self.counted) = (0, 0, 0, [0; 2]);
        if let Some((messages, _)) = &mut self.since {
            *messages += 1;
        }
    }

    /// Version 5 has one layout: 30 records of 48 bytes at most.
    fn add_v5(&mut self, over: &Over, now_ns: u64, send: &mut (impl FnMut(Message<'_>) + ?Sized)) {
        let flow = &over.flow;
        if flow.key.is_v6() {
            self.counters.unsayable += 1;
            return;
        }
        if self.count >= 30 {
            self.flush(now_ns, send);
        }
        self.begin();
        let context = &self.settings.context;
        let uptime = |ns: u64| (ns / 1_000_000).wrapping_sub(context.began_ns / 1_000_000) as u32;
        let fits = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
        let address = |which: usize| (flow.key.address_words(which)[1] as u32).to_be_bytes();
        let index = |index: u32| u16::try_from(index).unwrap_or(0).to_be_bytes();
        let out = &mut self.message;
        out.extend(address(0));
        out.extend(address(1));
        out.extend([0; 4]);
        let [ingress, egress] = context.interfaces(flow);
        out.extend(index(ingress));
        out.extend(index(egress));
        out.extend(fits(flow.packets));
        out.extend(fits(flow.octets));
        out.extend(uptime(flow.times_ns[0]).to_be_bytes());
        out.extend(uptime(flow.times_ns[1]).to_be_bytes());
        let [source, destination] = flow.key.ports();
        out.extend(source.to_be_bytes());
        out.extend(destination.to_be_bytes());
        out.extend([0, flow.tcp_flags as u8, flow.key.protocol(), flow.key.tos()]);
        // Autonomous systems and prefix lengths: not known where packets are only seen.
        out.extend([0; 8]);
        self.count += 1;
        self.wrote(over, now_ns);
    }
}

/// Bytes of a set's head.
const SET: usize = 4;

fn specifier(field: Field, out: &mut Vec<u8>) {
    let own = if field.number.enterprise == 0 { 0 } else { 0x8000 };
    out.extend((field.number.id | own).to_be_bytes());
    out.extend(field.length.to_be_bytes());
    if field.number.enterprise != 0 {
        out.extend(field.number.enterprise.to_be_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests;
