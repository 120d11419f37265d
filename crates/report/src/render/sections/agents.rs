//! What each agent did, where several machines carried out one job, a row each.

use super::{Line, Section};
use crate::data::model::{AgentPart, Report};
use crate::data::units;
use crate::render::table::Less;
use crate::render::tabular::{Column, Tabular, count, text, time};
use crate::render::text::Options;

/// A row for each agent; what it did not do has no value.
fn table(agents: &[AgentPart]) -> Tabular<&AgentPart> {
    const LESS: &[Less<'_>] = &[
        Less::Without(&["host"]),
        Less::Shorter("clock ahead", "ahead"),
        Less::Shorter("measured at", "at"),
        Less::Without(&["began late"]),
        Less::Without(&["ahead", "within"]),
    ];
    let columns: [Column<&AgentPart>; 10] = [
        text("agent", |agent| Some(agent.name.clone())),
        text("host", |agent| agent.host.clone()),
        text("sent by", |agent| joined(&agent.sends_on)),
        count("sent", |agent| Some(agent.report.as_ref()?.result.tx.as_ref()?.totals.frames)),
        text("measured at", |agent| joined(&agent.measures_on)),
        count("received", |agent| Some(agent.report.as_ref()?.result.rx.as_ref()?.totals.frames)),
        time("began late", |agent| agent.began_late_ns),
        text("clock ahead", |agent| agent.clock.map(|clock| units::signed_time(clock.offset_ns))),
        time("within", |agent| agent.clock.map(|clock| clock.error_ns)),
        text("", |agent| agent.error.as_ref().map(|_| "lost".to_owned())),
    ];
    Tabular::new(columns, LESS).of(agents)
}

fn joined(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

pub(super) struct Agents;

impl Section for Agents {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let began = || report.result.agents.iter().filter(|agent| agent.began_late_ns.is_some());
        let within = began().map(AgentPart::began_within_ns).collect::<Option<Vec<u64>>>();
        let most = within.and_then(|within| within.into_iter().max());
        let line = most.filter(|_| began().count() > 1).map(|most| {
            format!(
                "all first frames left within {} of the common start, errors of clocks included",
                units::time(most)
            )
        });
        line.map(|line| Line::text("start", line)).into_iter().collect()
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        vec![table(&report.result.agents).text(options)]
    }

    fn cards(&self, report: &Report) -> String {
        table(&report.result.agents).card("Agents", false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::{AgentClock, Tx};
    use crate::data::sections::totals::Totals;

    #[test]
    fn an_agent_has_a_row_and_who_sent_is_said_to_have_begun_in_time() {
        let mut own = Report::new("send");
        own.result.tx = Some(Tx { totals: Totals::over(5_000, 300_000, 1_000_000_000), ..Tx::default() });
        let clock =
            AgentClock { offset_ns: -41_300, error_ns: 92_100, round_trip_ns: 184_000, same_host: false };
        let sends = |name: &str, late: u64| AgentPart {
            name: name.to_owned(),
            sends_on: vec!["eth1".to_owned()],
            clock: Some(clock),
            began_late_ns: Some(late),
            report: Some(Box::new(own.clone())),
            ..AgentPart::default()
        };
        let lost = AgentPart {
            name: "c".to_owned(),
            measures_on: vec!["eth2".to_owned()],
            error: Some("it did not answer".to_owned()),
            ..AgentPart::default()
        };
        let mut report = Report::new("send");
        report.result.agents = vec![sends("a", 3_000), sends("b", 18_000), lost];
        let rows = Agents.tables(&report, Options::default()).remove(0);
        for words in ["agent", "5,000", "92.1 us", "lost"] {
            assert!(rows.contains(words), "{rows}");
        }
        let lines = Agents.lines(&report);
        let super::super::Says::Text(said) = &lines[0].says else { panic!("a sentence") };
        assert!(said.contains("within 110 us") || said.contains("within 110.1 us"), "{said}");
        report.result.agents.truncate(1);
        assert!(Agents.lines(&report).is_empty(), "one alone has a start of its own");
    }
}
