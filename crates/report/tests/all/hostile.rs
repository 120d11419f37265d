//! File names, command lines and interface names chosen by someone who means harm.

use netdyno_report::*;

use crate::fixtures::lossy_replay;

/// Every text a stranger can choose, chosen badly.
pub const ATTACK: &str =
    "</script><script>alert(1)</script><img src=x onerror='alert(1)'>\"&\u{1b}[2J\u{202e}\r\n";

pub fn hostile() -> Report {
    let mut report = lossy_replay();
    let attack = || ATTACK.to_owned();
    report.command = attack();
    report.command_line = vec![attack(); 3];
    report.resolved.source = Some(Source::Files { files: vec![attack()] });
    report.resolved.interfaces = vec![attack()];
    report.resolved.engine = Some(attack());
    report.resolved.rate = Some(RequestedRate { text: attack(), ..RequestedRate::default() });
    let e = &mut report.environment;
    e.netdyno_version = attack();
    for text in [
        &mut e.netdyno_commit,
        &mut e.started,
        &mut e.hostname,
        &mut e.kernel,
        &mut e.cpu_model,
        &mut e.governor,
        &mut e.clocksource,
    ] {
        *text = Some(attack());
    }
    e.interfaces = vec![Interface {
        name: attack(),
        role: Some(attack()),
        driver: Some(attack()),
        qdisc: Some(attack()),
        offloads: vec![attack()],
        ..Interface::default()
    }];
    let not_taken = vec![NotTaken { name: attack(), reason: attack() }];
    e.engine = Some(Choice { name: attack(), reason: attack(), not_taken });
    e.meter = e.engine.clone();
    report.result.verdict = Verdict::Short { reasons: vec![Code::Other.says(attack())] };
    if let Some(tx) = &mut report.result.tx {
        tx.engine = attack();
        tx.interface_counters = vec![InterfaceCounters::compare(attack(), 1, 1)];
    }
    if let Some(pacing) = &mut report.result.pacing {
        pacing.measured_at = Some(attack());
    }
    for stream in &mut report.streams {
        stream.name = Some(attack());
    }
    report.warnings.add(Code::Other, attack());
    report
}

#[test]
fn the_page_reaches_for_nothing_outside_itself() {
    for report in [lossy_replay(), hostile()] {
        let page = html::render(&report).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for reference in ["http://", "https://", "//cdn", "url(", "@import", " src=", " href=", "fetch("] {
            // The attack's own text stands there escaped: `<img src=` as text references nothing.
            let found = page.replace("&lt;img src=x", "").replace("\\u003cimg src=x", "");
            assert!(!found.contains(reference), "{reference}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let page = html::render(&hostile());
    assert_eq!(page.matches("<script").count(), 2, "the data and our own script");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<img"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    for rendering in [page, text::render(&hostile(), text::Options::default()), classic::render(&hostile())] {
        let control =
            rendering.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}');
        assert_eq!(control, None);
        assert!(!rendering.contains(ATTACK));
    }
}
