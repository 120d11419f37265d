//! The cause that the kernel itself told: evidence, where the others are likelihood.

use super::{By, Cause};
use crate::data::model::Achieved;
use crate::data::sections::drops::meaning;
use crate::data::units::{self, printable};

/// Sources of counters of a lab's own device: what they count it does on purpose, which says more than the function that does it.
const ON_PURPOSE: [&str; 3] = ["rule", "queue", "impair"];

/// Of a loss of so many frames, if the kernel dropped a share of them that explains it. `counter`: what counters tell.
pub(super) fn of(result: &Achieved, lost: u64, counter: Option<&Cause>) -> Option<Cause> {
    let named = result.drops_traced.as_ref()?.named_frames;
    // What was lost in a NIC, say, the kernel does not see.
    let says_more = |cause: &Cause| {
        cause.counter.as_ref().is_some_and(|counter| {
            let gone = counter.rise.saturating_sub(counter.own_frames.unwrap_or(0));
            ON_PURPOSE.contains(&counter.source.as_str()) || gone.min(lost) > named
        })
    };
    // More than was lost: some of it had been measured before, and which is not known.
    if named > lost || named.saturating_mul(10) < lost || counter.is_some_and(says_more) {
        return None;
    }
    let most = result.drops.iter().filter(|one| one.is_loss()).max_by_key(|one| one.frames)?;
    let share = (most.frames as f64 / lost.max(1) as f64).min(1.0);
    let at = most.interface.as_deref().map(|name| format!(" at {}", printable(name))).unwrap_or_default();
    // Who counted them says more than what can be the matter.
    let why = meaning(&most.function, &most.reason).filter(|_| most.rules.is_empty());
    let said: Vec<String> = why.map(str::to_owned).into_iter().chain(most.witnesses()).collect();
    let said: String = said.iter().map(|said| format!("; {}", printable(said))).collect();
    let said = format!(
        "this kernel dropped {} of them ({} of the loss){at} in {}{said}",
        units::count(most.frames),
        units::percent(share),
        printable(&most.cause())
    );
    Some(Cause::new(By::Dropped, said, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::{DropRule, DropsTraced, HostCounter};
    use crate::data::sections::drops::{Dropped, DroppedKind};

    fn dropped(reason: &str, frames: u64, measured: bool) -> Dropped {
        Dropped {
            function: "nf_hook_slow".to_owned(),
            reason: reason.to_owned(),
            kind: DroppedKind::Test,
            frames,
            measured,
            ..Dropped::default()
        }
    }

    fn result(named_frames: u64) -> Achieved {
        Achieved {
            drops: vec![
                dropped("QDISC_DROP", 999, true),
                dropped("NETFILTER_DROP", 90, false),
                dropped("NO_SOCKET", 5, false),
            ],
            drops_traced: Some(DropsTraced { named_frames, ..DropsTraced::default() }),
            ..Achieved::default()
        }
    }

    #[test]
    fn what_the_kernel_told_is_the_cause_unless_the_labs_device_does_it_on_purpose() {
        let found = of(&result(95), 100, None).expect("evidence");
        assert_eq!(found.by, By::Dropped);
        assert!(
            found.said.contains("90 of them (90.0 % of the loss) in nf_hook_slow, NETFILTER_DROP; a rule"),
            "{}",
            found.said
        );
        let mut by_a_rule = result(95);
        let rule = DropRule {
            family: "inet".to_owned(),
            table: "f".to_owned(),
            chain: "c".to_owned(),
            handle: Some(4),
            text: Some("udp dport 1 counter drop".to_owned()),
            counted: Some(90),
            certain: true,
        };
        by_a_rule.drops[1].rules = vec![rule];
        let said = of(&by_a_rule, 100, None).expect("evidence").said;
        let wanted =
            "NETFILTER_DROP; by the rule `udp dport 1 counter drop` (inet f, chain c, handle 4), counted 90";
        assert!(said.ends_with(wanted), "{said}");
        by_a_rule.drops[1].rules[0].counted = None;
        by_a_rule.drops[1].rules_uncertain = Some("1 rule without a counter".to_owned());
        let said = of(&by_a_rule, 100, None).expect("evidence").said;
        assert!(
            said.contains("; possibly by the rule `udp")
                && said.ends_with("cannot tell: 1 rule without a counter"),
            "{said}"
        );
        assert!(of(&result(95), 100_000, None).is_none(), "a few explain a few");
        assert!(of(&result(95), 94, None).is_none(), "more than was lost explains nothing");
        let counter = |source: &str, rise| Cause {
            counter: Some(HostCounter {
                place: "the lab's dut0".to_owned(),
                source: source.to_owned(),
                name: "nft_dropped".to_owned(),
                rise,
                own_frames: None,
                explains: None,
            }),
            ..Cause::default()
        };
        assert!(of(&result(95), 100, Some(&counter("rule", 90))).is_none());
        assert!(of(&result(95), 100, Some(&counter("interface", 90))).is_some());
        assert!(of(&result(20), 100, Some(&counter("interface", 80))).is_none(), "most was lost elsewhere");
        assert!(of(&Achieved::default(), 100, None).is_none(), "nobody looked");
    }
}
