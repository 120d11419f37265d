//! What came of a mesh of endpoint tests (`netdyno endpoint --mesh`): each host as a client of every other, and who is slow to whom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::figure::{Measured, figures};
use crate::data::model::Report;
use crate::data::units;

/// A host is called slow from this share of difference on: below it is what the same test differs by from time to time.
const FAR: f64 = 0.1;

/// What came of endpoint tests between all ordered pairs of some hosts. A pair that has no value is counted by why it has none, and is in no
/// median.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mesh {
    /// The test of each pair: `tcp-stream`, `udp-rr`, `stamp`, ...
    pub test: String,
    /// By what pairs are compared.
    pub compared_by: MeshFigure,
    /// Which tests were done at the same time.
    pub schedule: MeshSchedule,
    /// Rounds of tests, one after the other.
    pub rounds: u64,
    /// The most tests that were to be done at the same time.
    pub at_once: u64,
    /// The hosts, in the order of the matrix's rows and columns.
    pub hosts: Vec<MeshHost>,
    /// Pairs to be tested: each agent with each other host.
    pub tests: u64,
    /// Pairs whose test was done as it was asked for.
    pub done: u64,
    /// Pairs whose test fell short of what was asked.
    pub short: u64,
    /// Pairs whose test came to no result.
    pub failed: u64,
    /// Pairs whose test was not begun when the mesh ended.
    pub not_begun: u64,
    /// Median of the pairs that have a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<MeshValue>,
    /// The pair with the worst value; left out with fewer than two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<MeshWorst>,
    /// The host whose pairs have the worst median, of those that have a value for half of their pairs at least; left out with fewer than three
    /// hosts, and where its median is not worse by a tenth at least than that of the pairs without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_host: Option<MeshSlowest>,
    /// The pair of hosts whose two directions differ most; left out where no two hosts have both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asymmetry: Option<MeshAsymmetry>,
    /// Of tests all at once: from when the first one was asked for to when the last one's agent had answered, by the clock of the host where
    /// the mesh was asked for. No test began further from another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_within_ns: Option<u64>,
    /// For how long each test was to measure; left out where it was to go on until an amount was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_duration_ns: Option<u64>,
    /// From the first test's start to when the last one's end was known; servers were ended after that.
    pub elapsed_ns: u64,
    /// Each pair, in the order of the matrix: row by row. Of a pair's test no more is kept than stands here.
    pub pairs: Vec<MeshPair>,
}

/// By what pairs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshFigure {
    /// Bits of payload per second that the receiver got: more is better.
    #[default]
    Throughput,
    /// Median latency of a transaction: less is better.
    Latency,
    /// Median round trip of a STAMP packet: less is better.
    RoundTrip,
}

/// Which tests were done at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshSchedule {
    /// In rounds: no host was in two tests at the same time.
    #[default]
    Rounds,
    /// All at once. Each pair's value is that of the loaded network if `began_within_ns` is below a tenth of `test_duration_ns`.
    AllAtOnce,
}

/// A value by which pairs are compared: in one of two units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshValue {
    /// Throughput, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<f64>,
    /// Latency or round trip, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

/// A host of a mesh: a row and a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshHost {
    /// What it is called: its agent's name, or the address of a host without an agent.
    pub name: String,
    /// The address that its clients connect to.
    pub address: String,
    /// Whether it has an agent: then it is a client, too. A host without one is a column only.
    pub agent: bool,
    /// Name of the agent's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Why its agent could not be used, or when it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Median of its row: of the pairs in which it is the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_client: Option<MeshValue>,
    /// Median of its column: of the pairs in which it is the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_server: Option<MeshValue>,
    /// What its own server counted; left out where it has none, or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<MeshServed>,
}

/// What the server at an agent counted of all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeshServed {
    /// Tests that were over; left out of a STAMP reflector, which knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
    /// Tests of those that broke off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_tests: Option<u64>,
    /// STAMP packets that the reflector answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
}

/// One ordered pair: a cell of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshPair {
    /// The client: the row.
    pub from: String,
    /// The server: the column.
    pub to: String,
    /// What became of its test.
    pub outcome: MeshOutcome,
    /// Why it is not `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In which round it was to be tested, from 1.
    pub round: u64,
    /// When its agent was asked to begin its test, from the start of the first; left out where it was not asked, or refused. Without an answer
    /// of the agent it is not known whether the test began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// Throughput of the client's stream, by what the receiver got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<f64>,
    /// Transactions per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_per_second: Option<f64>,
    /// Median latency of its transactions; of stamp, median round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// The 99th percentile of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Transactions that were answered, datagrams or STAMP packets that were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Datagrams, requests over UDP, or STAMP packets that were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Lost ones over those sent (0 to 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Lost datagrams that had reached the receiver's host, or of stamp datagrams that had reached the client's, and found no room in its
    /// socket: no loss of the path. Left out where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_by_receiver: Option<u64>,
    /// Segments that the client sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

/// What became of a pair's test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshOutcome {
    /// It was done as asked.
    Done,
    /// It fell short of what was asked: its figures are of what was done.
    Short,
    /// It came to no result.
    Failed,
    /// It was not begun: the mesh ended before.
    #[default]
    NotBegun,
}

/// The pair with the worst value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshWorst {
    /// The client.
    pub from: String,
    /// The server.
    pub to: String,
    /// The value.
    pub value: MeshValue,
}

/// The host whose pairs have the worst median.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshSlowest {
    /// What it is called.
    pub host: String,
    /// Median of its pairs: its row and its column together.
    pub median: MeshValue,
    /// Median of all pairs without it.
    pub others: MeshValue,
}

/// Two hosts whose directions differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshAsymmetry {
    /// The client of the worse direction.
    pub from: String,
    /// Its server.
    pub to: String,
    /// The value of the worse direction.
    pub value: MeshValue,
    /// The value of the other direction.
    pub back: MeshValue,
    /// The difference over the greater of both (0 to 1).
    pub ratio: f64,
}

impl MeshFigure {
    /// What it is, in words: `throughput`.
    pub fn name(self) -> &'static str {
        match self {
            MeshFigure::Throughput => "throughput",
            MeshFigure::Latency => "median latency",
            MeshFigure::RoundTrip => "median round trip",
        }
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        self == MeshFigure::Throughput
    }

    /// A number as a value of this figure.
    fn value(self, number: f64) -> MeshValue {
        match self {
            MeshFigure::Throughput => MeshValue { bits_per_second: Some(number), time_ns: None },
            _ => MeshValue { bits_per_second: None, time_ns: Some(number.round() as u64) },
        }
    }

    /// How bad a number is: the greater, the worse.
    pub(crate) fn badness(self, number: f64) -> f64 {
        if self.more_is_better() { -number } else { number }
    }
}

impl MeshValue {
    /// The value as a number, whatever its unit is.
    pub fn number(self) -> Option<f64> {
        self.bits_per_second.or(self.time_ns.map(|ns| ns as f64))
    }

    /// The value with its unit.
    pub fn show(self) -> String {
        match self {
            MeshValue { bits_per_second: Some(rate), .. } => units::bit_rate(rate),
            MeshValue { time_ns: Some(ns), .. } => units::time(ns),
            _ => "not known".to_owned(),
        }
    }
}

impl MeshPair {
    /// What it is called: `a to b`.
    pub fn name(&self) -> String {
        format!("{} to {}", self.from, self.to)
    }

    /// By what pairs are compared, as a number.
    pub fn number(&self, by: MeshFigure) -> Option<f64> {
        match by {
            MeshFigure::Throughput => self.bits_per_second,
            _ => self.p50_ns.map(|ns| ns as f64),
        }
        .filter(|number| number.is_finite())
    }
}

/// Median of what is there: of an even number the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    match values.len() % 2 {
        0 => Some((values.get(half - 1)? + upper) / 2.0),
        _ => Some(upper),
    }
}

impl Mesh {
    /// Fills in what follows from the pairs: counts by outcome, medians, the worst pair, the slowest host, asymmetry.
    pub fn conclude(&mut self) {
        let count = |outcome| self.pairs.iter().filter(|pair| pair.outcome == outcome).count() as u64;
        let counts =
            [MeshOutcome::Done, MeshOutcome::Short, MeshOutcome::Failed, MeshOutcome::NotBegun].map(count);
        [self.done, self.short, self.failed, self.not_begun] = counts;
        let by = self.compared_by;
        self.median = self.median_of(|_| true);
        let valued = || self.pairs.iter().filter_map(|pair| Some((pair, pair.number(by)?)));
        self.worst = valued()
            .max_by(|(_, a), (_, b)| by.badness(*a).total_cmp(&by.badness(*b)))
            .filter(|_| valued().count() > 1)
            .map(|(pair, number)| MeshWorst {
                from: pair.from.clone(),
                to: pair.to.clone(),
                value: by.value(number),
            });
        let names: Vec<String> = self.hosts.iter().map(|host| host.name.clone()).collect();
        let rows: Vec<_> = names
            .iter()
            .map(|name| (self.median_of(|pair| pair.from == *name), self.median_of(|pair| pair.to == *name)))
            .collect();
        for (host, (as_client, as_server)) in self.hosts.iter_mut().zip(rows) {
            (host.as_client, host.as_server) = (as_client, as_server);
        }
        self.slowest_host = self.slowest(&names);
        self.asymmetry = self.most_asymmetric();
    }

    fn median_of(&self, is: impl Fn(&MeshPair) -> bool) -> Option<MeshValue> {
        let values =
            self.pairs.iter().filter(|pair| is(pair)).filter_map(|pair| pair.number(self.compared_by));
        median(values.collect()).map(|number| self.compared_by.value(number))
    }

    fn slowest(&self, names: &[String]) -> Option<MeshSlowest> {
        if names.len() < 3 {
            return None;
        }
        let bad = |value: &MeshValue| self.compared_by.badness(value.number().unwrap_or(0.0));
        let of = |name: &String| {
            let is_of = |pair: &MeshPair| pair.from == *name || pair.to == *name;
            let own = || self.pairs.iter().filter(|pair| is_of(pair));
            let valued = own().filter(|pair| pair.number(self.compared_by).is_some()).count();
            if 2 * valued < own().count() {
                return None;
            }
            let (median, others) = (self.median_of(is_of)?, self.median_of(|pair| !is_of(pair))?);
            Some(MeshSlowest { host: name.clone(), median, others })
        };
        let slowest = names.iter().filter_map(of).max_by(|a, b| bad(&a.median).total_cmp(&bad(&b.median)))?;
        let [own, others] = [slowest.median.number()?, slowest.others.number()?];
        let is_far = (own - others).abs() > FAR * own.max(others);
        (is_far && bad(&slowest.median) > bad(&slowest.others)).then_some(slowest)
    }

    fn most_asymmetric(&self) -> Option<MeshAsymmetry> {
        let by = self.compared_by;
        let numbers: std::collections::BTreeMap<(&str, &str), f64> =
            self.pairs.iter().filter_map(|pair| Some(((&*pair.from, &*pair.to), pair.number(by)?))).collect();
        let both = numbers.iter().filter_map(|((from, to), there)| {
            let back = *numbers.get(&(*to, *from))?;
            let greater = there.max(back);
            // Of each two hosts the worse direction.
            let is_worse = by.badness(*there) > by.badness(back);
            (is_worse && greater > 0.0).then(|| MeshAsymmetry {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                value: by.value(*there),
                back: by.value(back),
                ratio: (there - back).abs() / greater,
            })
        });
        both.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The pair from one host to another.
    pub fn pair(&self, from: &str, to: &str) -> Option<&MeshPair> {
        self.pairs.iter().find(|pair| pair.from == from && pair.to == to)
    }

    /// Whether all of its tests loaded the network at the same time: they began within less than a tenth of the time that each measured.
    pub fn loads_network(&self) -> bool {
        let apart = self.began_within_ns.zip(self.test_duration_ns);
        let together = apart.is_some_and(|(apart, lasts)| apart < lasts / 10);
        self.schedule == MeshSchedule::AllAtOnce && together
    }

    /// How many pairs there have to be: each agent with each other host.
    pub fn pairs_of_hosts(&self) -> u64 {
        let agents = self.hosts.iter().filter(|host| host.agent).count() as u64;
        agents.saturating_mul((self.hosts.len() as u64).saturating_sub(1))
    }
}

figures! {
    /// Ordered pairs of hosts whose test was done as asked.
    DONE = "mesh_done_pairs", "pairs done" as "pairs of a mesh done", Gauge, Higher;
    /// Ordered pairs of hosts whose test came to no result.
    FAILED = "mesh_failed_pairs", "pairs failed" as "pairs of a mesh failed", Count, Lower;
    /// Median throughput of all pairs of hosts.
    MEDIAN_THROUGHPUT = "mesh_median_throughput", "median throughput of all pairs", BitsPerSecond, Higher;
    /// Median over all pairs of hosts of their median latencies.
    MEDIAN_LATENCY = "mesh_median_latency_p50", "median latency of all pairs", Ns, Lower;
    /// Throughput of the worst pair of hosts.
    WORST_THROUGHPUT = "mesh_worst_throughput", "throughput of the worst pair", BitsPerSecond, Higher;
    /// Median latency of the worst pair of hosts.
    WORST_LATENCY = "mesh_worst_latency_p50", "latency of the worst pair, p50", Ns, Lower;
    /// Largest difference between the two directions of two hosts, over the greater.
    ASYMMETRY = "mesh_asymmetry_ratio", "largest difference of two directions", Ratio, Lower;
    /// Throughput of each pair of hosts.
    THROUGHPUT = "mesh_throughput", "throughput of a pair", BitsPerSecond, Higher;
    /// Latency, or round trip of STAMP, that half of a pair's transactions or packets had at most.
    LATENCY_P50 = "mesh_latency_p50", "latency of a pair, p50", Ns, Lower;
    /// Latency, or round trip of STAMP, that 99 % of a pair's transactions or packets had at most.
    LATENCY_P99 = "mesh_latency_p99", "latency of a pair, p99", Ns, Lower;
    /// Transactions a second of each pair of hosts.
    TRANSACTION_RATE = "mesh_transactions_per_second", "transactions a second of a pair", PerSecond, Higher;
    /// Datagrams, requests or STAMP packets of a pair that were lost, over those sent.
    LOSS = "mesh_loss_ratio", "loss of a pair", Ratio, Lower;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(mesh) = &report.result.mesh else { return Vec::new() };
    let mut figures = vec![DONE.count(mesh.done), FAILED.count(mesh.failed).of(mesh.tests)];
    let [median, worst] = match mesh.compared_by {
        MeshFigure::Throughput => [&MEDIAN_THROUGHPUT, &WORST_THROUGHPUT],
        _ => [&MEDIAN_LATENCY, &WORST_LATENCY],
    };
    figures.extend(mesh.median.and_then(MeshValue::number).map(|number| median.is(number)));
    figures.extend(mesh.worst.as_ref().and_then(|of| of.value.number()).map(|number| worst.is(number)));
    figures.extend(mesh.asymmetry.as_ref().map(|of| ASYMMETRY.is(of.ratio)));
    for pair in &mesh.pairs {
        let name = || pair.name();
        figures.extend(pair.bits_per_second.map(|rate| THROUGHPUT.is(rate).named(name())));
        figures.extend(pair.p50_ns.map(|ns| LATENCY_P50.count(ns).named(name())));
        figures.extend(pair.p99_ns.map(|ns| LATENCY_P99.count(ns).named(name())));
        figures.extend(pair.transactions_per_second.map(|rate| TRANSACTION_RATE.is(rate).named(name())));
        figures.extend(pair.loss_ratio.map(|ratio| LOSS.is(ratio).named(name())));
    }
    figures
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A mesh of these hosts, whose pairs have these values in microseconds; 0: its test failed.
    pub(crate) fn mesh(names: &[&str], rows: &[&[u64]]) -> Mesh {
        let host = |name: &&str| MeshHost {
            name: (*name).to_owned(),
            address: format!("10.0.0.{}", name.len()),
            agent: true,
            ..MeshHost::default()
        };
        let mut mesh = Mesh {
            test: "tcp-rr".to_owned(),
            compared_by: MeshFigure::Latency,
            rounds: 2 * names.len() as u64 - 2,
            at_once: names.len() as u64 / 2,
            hosts: names.iter().map(host).collect(),
            ..Mesh::default()
        };
        for (from, row) in names.iter().zip(rows) {
            for (to, us) in names.iter().zip(*row).filter(|(to, _)| *to != from) {
                let done = *us > 0;
                mesh.pairs.push(MeshPair {
                    from: (*from).to_owned(),
                    to: (*to).to_owned(),
                    outcome: if done { MeshOutcome::Done } else { MeshOutcome::Failed },
                    reason: (!done).then(|| "connection refused".to_owned()),
                    p50_ns: done.then_some(us * 1000),
                    p99_ns: done.then_some(us * 3000),
                    ..MeshPair::default()
                });
            }
        }
        mesh.tests = mesh.pairs_of_hosts();
        mesh.conclude();
        mesh
    }

    #[test]
    fn a_slow_host_is_named_and_a_pair_without_a_value_is_in_no_median() {
        let mesh = mesh(
            &["a", "b", "c", "d"],
            &[&[0, 50, 52, 900], &[51, 0, 0, 905], &[50, 49, 0, 910], &[400, 410, 420, 0]],
        );
        assert_eq!((mesh.tests, mesh.done, mesh.failed, mesh.short + mesh.not_begun), (12, 11, 1, 0));
        assert_eq!(mesh.median.and_then(|value| value.time_ns), Some(400_000));
        let worst = mesh.worst.as_ref().expect("one");
        assert_eq!((&*worst.from, &*worst.to, worst.value.time_ns), ("c", "d", Some(910_000)));
        let slowest = mesh.slowest_host.as_ref().expect("one");
        assert_eq!(
            (&*slowest.host, slowest.median.time_ns, slowest.others.time_ns),
            ("d", Some(660_000), Some(50_000))
        );
        let asymmetry = mesh.asymmetry.as_ref().expect("one");
        assert_eq!((&*asymmetry.from, &*asymmetry.to), ("a", "d"));
        assert!((asymmetry.ratio - 500.0 / 900.0).abs() < 1e-9);
        assert_eq!(mesh.hosts[3].as_client.and_then(|value| value.time_ns), Some(410_000));
        assert_eq!(mesh.hosts[3].as_server.and_then(|value| value.time_ns), Some(905_000));
    }

    #[test]
    fn a_host_with_few_values_is_not_called_slow() {
        let few = mesh(
            &["a", "b", "c", "d"],
            &[&[0, 50, 50, 0], &[50, 0, 50, 0], &[50, 50, 0, 0], &[900, 910, 0, 0]],
        );
        assert_eq!((few.slowest_host.as_ref(), few.failed), (None, 4));
    }

    #[test]
    fn of_equal_hosts_none_is_the_slowest_and_of_one_value_none_is_the_worst() {
        let equal = mesh(&["a", "b", "c"], &[&[0, 50, 50], &[50, 0, 50], &[50, 50, 0]]);
        assert_eq!((equal.slowest_host.as_ref(), equal.asymmetry.as_ref()), (None, None));
        let one = mesh(&["a", "b"], &[&[0, 50], &[0, 0]]);
        assert_eq!((one.worst.as_ref(), one.failed), (None, 1));
        let none = mesh(&["a", "b"], &[&[0, 0], &[0, 0]]);
        assert_eq!((none.median, none.done), (None, 0));
    }
}
