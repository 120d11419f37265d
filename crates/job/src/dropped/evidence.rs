//! Who else counted what was dropped: rules of nftables, queueing disciplines and backlogs, put beside the causes that they explain.
//!
//! What is certain of rules follows from their counters alone. Those that can have been it have counted `sum` together, and a cause has
//! `frames`: a rule that counted more than the others leave room for (`counted + frames > sum`) dropped some of them. That holds only if each of
//! them counts what it drops and nothing else, and if together they counted as many as were dropped; otherwise all are named as possible.

use drops::Cause;
use drops::beside::rules::Suspect;
use drops::beside::{Beside, Counters, Rules};
use report::{DropBacklog, DropQueue, DropRule, Dropped, units};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Rules that are named of one cause.
const NAMED: usize = 8;

/// What is known of a cause beyond what is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub netns: u32,
    pub interfaces: BTreeSet<u32>,
    pub ethertypes: BTreeSet<u16>,
    /// By which the kernel tells it apart.
    pub causes: BTreeSet<Cause>,
}

/// Frames that netfilter dropped, copies included, by namespace and EtherType.
pub(super) type Filtered = BTreeMap<(u32, u16), u64>;

/// Whose counters are read, and what they said before.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub beside: &'a Beside,
    pub before: &'a Counters,
    pub filtered: &'a Filtered,
}

/// Did netfilter drop there? Kernels before 5.18 give no reason for it.
pub(super) fn is_filtered(function: &str, reason: &str) -> bool {
    reason == "NETFILTER_DROP" || function.starts_with("nf_hook_slow") || is_by_nftables(function)
}

/// Since Linux 6.7 nftables drops by itself; before, and for all other parts of netfilter, the hook does it for them.
fn is_by_nftables(function: &str) -> bool {
    function.starts_with("nft_")
}

/// Did traffic control drop there?
fn is_queued(function: &str, reason: &str) -> bool {
    let by_reason = reason.starts_with("QDISC_") || reason.starts_with("TC_");
    let no_reason = reason == "NOT_SPECIFIED" || reason.starts_with('(');
    let places = ["qdisc_", "__dev_queue_xmit", "__dev_xmit_skb", "dev_qdisc_enqueue"];
    let by_function =
        function.ends_with("_enqueue") || places.iter().any(|place| function.starts_with(place));
    by_reason || no_reason && by_function
}

fn is_backlog(function: &str, reason: &str) -> bool {
    reason == "CPU_BACKLOG" || function.starts_with("enqueue_to_backlog")
}

impl Evidence<'_> {
    /// Puts beside each cause who else counted it. Nothing is read where nothing can be told.
    pub(super) fn attach(&self, causes: &mut [(Dropped, Facts)]) {
        let is_told = |(one, _): &(Dropped, Facts)| {
            let (function, reason) = (one.function.as_str(), one.reason.as_str());
            is_filtered(function, reason) || is_queued(function, reason) || is_backlog(function, reason)
        };
        if !causes.iter().any(is_told) {
            return;
        }
        let now = self.beside.read();
        let mut words = BTreeMap::new();
        for (one, facts) in causes.iter_mut().filter(|cause| is_told(cause)) {
            if is_filtered(&one.function, &one.reason) {
                let rules = self.beside.rules(facts.netns, self.before, &now);
                self.blame(one, facts, rules);
                if one.rules.is_empty() {
                    continue;
                }
                let words = words.entry(facts.netns).or_insert_with_key(|netns| self.beside.words(*netns));
                for rule in &mut one.rules {
                    let key = rule.handle.map(|handle| (rule.family.clone(), rule.table.clone(), handle));
                    rule.text = key.and_then(|key| words.get(&key).cloned());
                }
            }
            if is_queued(&one.function, &one.reason) {
                let queues = now.queues(self.before, facts.netns);
                let there = queues.into_iter().filter(|(queue, _)| facts.interfaces.contains(&queue.index));
                let told = |(queue, dropped): (drops::beside::queues::Queue, u64)| DropQueue {
                    handle: queue.handle(),
                    parent: queue.parent(),
                    kind: queue.kind,
                    dropped,
                };
                one.queues = there.map(told).collect();
                one.queues.sort_by_key(|queue| Reverse(queue.dropped));
            }
            if is_backlog(&one.function, &one.reason) {
                let cores = now.cores(self.before).into_iter();
                let told = |(cpu, core): (u32, drops::beside::cores::Core)| DropBacklog {
                    cpu,
                    dropped: core.dropped.into(),
                    time_squeeze: core.time_squeeze.into(),
                };
                one.backlogs = cores.map(told).collect();
            }
        }
    }

    /// Names the rules that can have dropped the frames of a cause, and says which of them did.
    fn blame(&self, one: &mut Dropped, facts: &Facts, rules: Option<Rules>) {
        let Some(rules) = rules else {
            one.rules_uncertain = Some("its network namespace was not looked at".to_owned());
            return;
        };
        if let Some(why) = rules.unread {
            one.rules_uncertain = Some(format!("rules of nftables cannot be read there: {why}"));
            return;
        }
        let by_nftables = is_by_nftables(&one.function);
        // Where nftables drops by itself, what the hook drops is another's.
        let mut suspects = match by_nftables || !drops_by_itself() {
            true => rules.suspects,
            false => Vec::new(),
        };
        suspects.retain(|suspect| can_have_dropped(suspect, one, facts));
        suspects.sort_by_key(|suspect| Reverse(suspect.rise));
        let legacy = if by_nftables { BTreeSet::new() } else { rules.legacy };
        let dropped = facts.ethertypes.iter().filter_map(|of| self.filtered.get(&(facts.netns, *of))).sum();
        (one.rules, one.rules_uncertain) =
            judged(&suspects, &legacy, by_nftables, (one.frames.saturating_add(one.copies), dropped));
    }
}

/// By its family, and by the interface that its chain hangs at.
fn can_have_dropped(suspect: &Suspect, one: &Dropped, facts: &Facts) -> bool {
    let devices = &suspect.devices;
    let there = one.interface.as_ref().is_none_or(|name| devices.is_empty() || devices.contains(name));
    let sees = facts.ethertypes.is_empty() || facts.ethertypes.iter().any(|of| suspect.place.sees(*of));
    there && sees
}

/// Whether this kernel's nftables drops by itself (Linux 6.7). What is not known is taken for no.
fn drops_by_itself() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 7))
}

/// The rules of a cause with so many frames, of all that netfilter dropped there, and why it is not certain that they did. `by_nftables`: no
/// other part of netfilter did.
fn judged(
    suspects: &[Suspect],
    legacy: &BTreeSet<String>,
    by_nftables: bool,
    (frames, dropped): (u64, u64),
) -> (Vec<DropRule>, Option<String>) {
    let sum: u64 = suspects.iter().filter_map(|suspect| suspect.rise).fold(0, u64::saturating_add);
    let doubts = doubts(suspects, legacy, by_nftables, (sum, dropped));
    let named = suspects.iter().map(|suspect| {
        let counted = suspect.rise.unwrap_or(0);
        DropRule {
            family: suspect.place.family_name().to_owned(),
            table: suspect.place.table.clone(),
            chain: suspect.place.chain.clone(),
            handle: suspect.place.handle,
            text: None,
            counted: suspect.rise,
            certain: doubts.is_empty() && counted.saturating_add(frames) > sum,
        }
    });
    let mut rules: Vec<DropRule> = named.collect();
    let mut doubts = doubts;
    if doubts.is_empty() && rules.iter().any(|rule| !rule.certain) {
        doubts.push("frames of several causes are in their counters".to_owned());
    }
    if rules.len() > NAMED {
        doubts.push(format!("{} more can have been it", units::count((rules.len() - NAMED) as u64)));
        rules.truncate(NAMED);
    }
    (rules, (!doubts.is_empty()).then(|| doubts.join("; ")))
}

/// What keeps anything from being certain.
fn doubts(
    suspects: &[Suspect],
    legacy: &BTreeSet<String>,
    by_nftables: bool,
    (sum, dropped): (u64, u64),
) -> Vec<String> {
    let count = |of: &dyn Fn(&Suspect) -> bool| suspects.iter().filter(|suspect| of(suspect)).count() as u64;
    let mut doubts = Vec::new();
    let mut say = |number: u64, what: &str| {
        if number > 0 {
            doubts.push(format!("{} {what}", units::counted(number, "rule")));
        }
    };
    say(count(&|one| one.is_gone), "removed meanwhile");
    say(count(&|one| !one.is_gone && one.rise.is_none()), "without a counter that can be compared");
    say(
        count(&|one| one.rise.is_some() && !one.exact),
        "with a counter that counts more than the rule drops",
    );
    if !legacy.is_empty() {
        let tables: Vec<&str> = legacy.iter().map(String::as_str).collect();
        let shown: Vec<String> = tables.iter().map(|table| shown_by(table)).collect();
        doubts.push(format!(
            "legacy iptables has tables in use there ({}), whose rules are not read: {} there",
            tables.join(", "),
            shown.join(", ")
        ));
    } else if suspects.is_empty() && by_nftables {
        doubts.push(
            "nftables dropped them, and none of its rules that were there before or are there now: one was added and removed meanwhile".to_owned(),
        );
    } else if suspects.is_empty() {
        doubts.push(
            "no rule of nftables that was there before or is there now can have been it: connection tracking, IPVS, a BPF program of netfilter, or a \
             rule that was added and removed meanwhile can"
                .to_owned(),
        );
    }
    if doubts.is_empty() && sum < dropped {
        doubts.push(format!(
            "their counters rose by {}, and {} were dropped there",
            units::count(sum),
            units::counted(dropped, "frame")
        ));
    }
    doubts
}

/// The command that shows a table of legacy iptables with its counters: "ip filter".
fn shown_by(table: &str) -> String {
    let (family, name) = table.split_once(' ').unwrap_or((table, "filter"));
    match family {
        "ip6" => format!("`ip6tables-legacy -t {name} -L -v -x`"),
        "arp" => format!("`arptables-legacy -t {name} -L -v`"),
        _ => format!("`iptables-legacy -t {name} -L -v -x`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(table: &str, rise: Option<u64>, exact: bool) -> Suspect {
        let place = drops::beside::rules::Place::told(2, table, "c", Some(4));
        Suspect { place, rise, exact, devices: Vec::new(), is_gone: false }
    }

    fn told(suspects: &[Suspect], frames: u64, dropped: u64) -> (Vec<bool>, String) {
        let (rules, doubt) = judged(suspects, &BTreeSet::new(), false, (frames, dropped));
        (rules.iter().map(|rule| rule.certain).collect(), doubt.unwrap_or_default())
    }

    #[test]
    fn a_rule_is_certain_only_by_counters_that_leave_no_other() {
        let exact = |rise| suspect("f", Some(rise), true);
        assert_eq!(told(&[exact(10)], 10, 10), (vec![true], String::new()));
        // Some were not seen where they were dropped.
        assert_eq!(told(&[exact(12)], 10, 10), (vec![true], String::new()));
        assert_eq!(told(&[exact(6), exact(4)], 10, 10), (vec![true, true], String::new()));
        // Twelve in the counters, ten in this cause: of the second's two none need be among those.
        let (certain, why) = told(&[exact(10), exact(2)], 10, 12);
        assert!(certain == [true, false] && why.contains("several causes"), "{why}");
        let (certain, why) = told(&[exact(7)], 10, 10);
        assert!(certain == [false] && why.contains("rose by 7, and 10 frames were dropped"), "{why}");
        for (other, wanted) in [
            (suspect("f", None, false), "1 rule without a counter"),
            (suspect("f", Some(3), false), "1 rule with a counter that counts more"),
            (Suspect { is_gone: true, ..suspect("f", None, false) }, "1 rule removed meanwhile"),
        ] {
            let (certain, why) = told(&[exact(10), other.clone()], 10, 10);
            assert!(certain == [false, false] && why.contains(wanted), "{why}");
            // Nor if it is alone.
            let (certain, why) = told(&[other], 3, 3);
            assert!(certain == [false] && why.contains(wanted), "{why}");
        }
        let (certain, why) = told(&[], 10, 10);
        assert!(certain.is_empty() && why.starts_with("no rule of nftables"), "{why}");
        // What nftables dropped itself no other part of netfilter did.
        let (rules, why) = judged(&[], &BTreeSet::new(), true, (10, 10));
        let why = why.expect("a doubt");
        assert!(
            rules.is_empty() && why.starts_with("nftables dropped them") && !why.contains("IPVS"),
            "{why}"
        );
    }

    #[test]
    fn legacy_iptables_is_named_as_what_cannot_be_read() {
        let legacy = BTreeSet::from(["ip filter".to_owned(), "ip6 raw".to_owned()]);
        let (rules, why) = judged(&[suspect("f", Some(10), true)], &legacy, false, (10, 10));
        assert!(!rules[0].certain);
        let why = why.expect("a doubt");
        assert!(why.contains("legacy iptables has tables in use there (ip filter, ip6 raw)"), "{why}");
        assert!(
            why.ends_with("`iptables-legacy -t filter -L -v -x`, `ip6tables-legacy -t raw -L -v -x` there"),
            "{why}"
        );
    }

    #[test]
    fn of_many_rules_some_are_named_and_the_others_counted() {
        let many: Vec<Suspect> = (0..20).map(|n| suspect(&format!("t{n}"), None, false)).collect();
        let (rules, why) = judged(&many, &BTreeSet::new(), false, (10, 10));
        assert_eq!(rules.len(), NAMED);
        assert!(why.expect("a doubt").contains("12 more can have been it"));
    }

    #[test]
    fn what_drops_is_known_by_its_reason_or_its_function() {
        assert!(is_filtered("nf_hook_slow", "(told since Linux 5.17)") && is_filtered("x", "NETFILTER_DROP"));
        assert!(!is_filtered("ip_error", "NOT_SPECIFIED"));
        assert!(is_queued("__dev_queue_xmit", "QDISC_OVERLIMIT") && is_queued("x", "TC_INGRESS"));
        assert!(is_queued("tbf_enqueue", "NOT_SPECIFIED") && !is_queued("ip_error", "NOT_SPECIFIED"));
        assert!(is_backlog("enqueue_to_backlog", "NOT_SPECIFIED") && !is_backlog("x", "QDISC_DROP"));
    }
}
