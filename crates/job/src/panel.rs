//! What is put on a job's board: from the meter, the machine and whoever runs. Called ten times a second; what is dearer to
//! find out is found out only if somebody wants to see it, and then twice or once a second, so that the whole costs less than
//! a hundredth of a core (`make bench ARGS='--only screen'`).

use crate::run::counters::{host_counter, leave_out_own};
use anyhow::Result;
use clocks::Clock;
use meter::{Meter, StreamStats};
use report::Said;
use snapshot::{Board, Core, Counter, Queue, Request, Snapshot, Stream, Title, machine};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often streams and cores are looked at: at least twice in the second that is "now".
const SLOWLY: Duration = Duration::from_millis(450);
/// How often counters of hosts and drivers are: hundreds of them, in files that the kernel writes anew each time.
const SELDOM: Duration = Duration::from_millis(950);
/// Streams looked at; each costs the meter part of a microsecond for each CPU.
const MOST_STREAMS: u32 = 4096;

/// A board, and what it shows of the job's surroundings.
#[derive(Debug)]
pub struct Panel {
    board: Arc<Board>,
    title: Arc<Title>,
    warnings: Arc<[String]>,
    ends: Vec<(String, port::watch::Watch)>,
    names: Names,
    looked: Option<Instant>,
    counted: Option<Instant>,
    cores: Arc<[Core]>,
    counters: Arc<[Counter]>,
    queues: Arc<[Queue]>,
    counters_at_ns: u64,
    streams: Arc<[Stream]>,
    streams_at_ns: u64,
    beyond: u64,
}

/// Who is who among the streams.
#[derive(Debug, Default)]
pub struct Names {
    /// By number in the program as the user wrote it.
    pub names: BTreeMap<u32, Arc<str>>,
    /// Each worker has numbers of its own.
    pub workers: u32,
    /// Numbers that the meter tells apart.
    pub streams: u32,
}

impl Names {
    /// Of a meter that knows nothing of the sender.
    pub fn unknown(streams: u32) -> Names {
        Names { names: BTreeMap::new(), workers: 1, streams }
    }

    /// The user's number of a stream.
    fn whole(&self, number: u32) -> u32 {
        let whole = number / self.workers.max(1);
        if self.names.contains_key(&whole) { whole } else { number }
    }
}

impl Panel {
    /// Nothing is shown yet.
    pub fn of(board: &Arc<Board>) -> Panel {
        Panel {
            board: Arc::clone(board),
            title: Arc::default(),
            warnings: Arc::default(),
            ends: Vec::new(),
            names: Names::default(),
            looked: None,
            counted: None,
            cores: Arc::default(),
            counters: Arc::default(),
            queues: Arc::default(),
            counters_at_ns: 0,
            streams: Arc::default(),
            streams_at_ns: 0,
            beyond: 0,
        }
    }

    /// Begins to show. `ends` tell what hosts and interfaces count, if somebody wants to see that.
    pub fn begin(
        &mut self,
        title: Title,
        warnings: &[Said],
        ends: impl FnOnce() -> Result<Vec<(String, port::watch::Watch)>>,
        names: Names,
    ) -> Result<()> {
        self.title = Arc::new(Title { version: env!("CARGO_PKG_VERSION").to_owned(), ..title });
        self.warn(warnings);
        self.names = names;
        if self.board.is_watched_closely() {
            self.ends = ends()?;
        }
        Ok(())
    }

    /// Does anybody want to see more than totals?
    pub fn is_watched_closely(&self) -> bool {
        self.board.is_watched_closely()
    }

    /// Sends a request on the user's behalf.
    pub fn request(&self, request: Request) {
        self.board.request(request);
    }

    /// What the user wants.
    pub fn requests(&self) -> Vec<Request> {
        self.board.requests()
    }

    /// How it stands; what is the same for all kinds of runs is filled in here.
    pub fn show(&mut self, moment: Snapshot, meter: Option<&Meter>) {
        if self.is_watched_closely() && self.looked.is_none_or(|at| at.elapsed() >= SLOWLY) {
            self.looked = Some(Instant::now());
            self.look(meter, moment.at_ns);
        }
        // Without a sender, only gaps in the sequence numbers tell of loss.
        let proven = (moment.tx.is_none() && !self.streams.is_empty())
            .then(|| self.streams.iter().map(|stream| stream.lost).sum());
        self.board.publish(Snapshot {
            lost: moment.lost.or(proven),
            title: Arc::clone(&self.title),
            warnings: Arc::clone(&self.warnings),
            cores: Arc::clone(&self.cores),
            counters: Arc::clone(&self.counters),
            queues: Arc::clone(&self.queues),
            counters_at_ns: self.counters_at_ns,
            streams: Arc::clone(&self.streams),
            streams_at_ns: self.streams_at_ns,
            streams_beyond: self.beyond,
            percent: if moment.percent == 0 { 100 } else { moment.percent },
            ..moment
        });
    }

    /// Looks at all again with the next [`Panel::show`], because it is the last.
    pub fn hurry(&mut self) {
        (self.looked, self.counted) = (None, None);
    }

    /// Through what it runs, when that is known only later.
    pub fn retitle(&mut self, change: impl FnOnce(&mut Title)) {
        change(Arc::make_mut(&mut self.title));
    }

    /// What should be known before the figures are trusted.
    pub fn warn(&mut self, warnings: &[Said]) {
        if !warnings.iter().eq(self.warnings.iter()) {
            self.warnings = warnings.iter().map(|said| said.to_string()).collect();
        }
    }

    fn look(&mut self, meter: Option<&Meter>, at_ns: u64) {
        self.streams_at_ns = at_ns;
        self.cores = machine::cores().into();
        if let Some(meter) = meter {
            self.beyond = u64::from(self.names.streams.saturating_sub(MOST_STREAMS));
            let numbers = 0..self.names.streams.min(MOST_STREAMS);
            let ahead = Some(clocks::ahead(Clock::Realtime, meter.clock()).ns);
            let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
            for stats in numbers.filter_map(|number| meter.stream_in_short(number)) {
                let number = self.names.whole(stats.stream);
                let stream = streams.entry(number).or_insert_with(|| Stream {
                    number,
                    name: self.names.names.get(&number).cloned(),
                    ..Stream::default()
                });
                add(stream, &stats, ahead);
            }
            self.streams = streams.into_values().collect();
        }
        if self.counted.is_none_or(|at| at.elapsed() >= SELDOM) {
            (self.counted, self.counters_at_ns) = (Some(Instant::now()), at_ns);
            let dropping = meter.filter(|meter| meter.drops());
            self.count(dropping.map(|meter| meter.snapshot().frames));
        }
    }
}

impl Panel {
    /// What hosts and drivers counted, without the frames that an XDP program measured and then dropped itself.
    fn count(&mut self, dropped: Option<u64>) {
        let (mut counters, mut queues) = (Vec::new(), Vec::new());
        // Only gaps in numbers tell by now of a loss. Where there are no numbers, a counter is the program's if it rose by as much.
        let lost = if self.streams.is_empty() { u64::MAX } else { self.streams.iter().map(|s| s.lost).sum() };
        for (place, watch) in &mut self.ends {
            let (rises, through) = watch.look();
            let meant = rises.into_iter().filter(|rise| rise.meaning().is_some());
            let mut told: Vec<_> = meant.map(|rise| host_counter(place, rise)).collect();
            if let Some(dropped) = dropped {
                leave_out_own(&mut told, place, dropped, lost);
            }
            counters.extend(told.into_iter().filter_map(|told| {
                let rise = told.rise.saturating_sub(told.own_frames.unwrap_or(0));
                let (place, source, name, explains) = (told.place, told.source, told.name, told.explains?);
                Some(Counter { place, source, name, rise, explains })
            }));
            queues.extend(through.into_iter().map(|queue| Queue {
                interface: place.clone(),
                receives: queue.receives,
                number: queue.number,
                packets: queue.packets,
            }));
        }
        (self.counters, self.queues) = (counters.into(), queues.into());
    }
}

/// `ahead`: Unix time, of the meter's clock.
fn add(stream: &mut Stream, stats: &StreamStats, ahead: Option<i64>) {
    if let Some(latency) = &stats.latency {
        let (before, new) = (stream.received.frames as f64, stats.frames as f64);
        let mean = stream.mean_latency_ns.unwrap_or(0.0);
        stream.mean_latency_ns = Some((mean * before + latency.mean_ns * new) / (before + new).max(1.0));
        stream.max_latency_ns = stream.max_latency_ns.max(Some(latency.max_ns));
        stream.min_latency_ns = stream.min_latency_ns.into_iter().chain([latency.min_ns]).min();
    }
    if let (Some((first, last)), Some(ahead)) = (stats.arrivals_ns, ahead) {
        let unix = |ns: u64| ns.saturating_add_signed(ahead);
        stream.first_arrival_ns = stream.first_arrival_ns.into_iter().chain([unix(first)]).min();
        stream.last_arrival_ns = stream.last_arrival_ns.max(Some(unix(last)));
    }
    stream.received.frames += stats.frames;
    stream.received.bytes += stats.bytes;
    stream.lost += stats.lost;
    stream.duplicated += stats.duplicates;
    stream.reordered += stats.reordered;
}
