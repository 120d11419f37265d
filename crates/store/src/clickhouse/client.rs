//! The client: HTTP without TLS, in the thread of whoever hands rows over.

use super::{Refused, Server};
use crate::columns::{COLUMNS, Of, write_mac};
use crate::{Kept, Row, Sink, text};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};
use ureq::Agent;

/// Rows of a block: ClickHouse wants 10,000 to 100,000.
const BLOCK: u64 = 65_536;
/// A block waits for more rows for so long.
const AGE: Duration = Duration::from_secs(1);
/// Blocks that wait for a server, at most: some 100 MB.
const WAITING: usize = 8;
/// A server has so long for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a fault the server is left alone for so long, longer from fault to fault.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(8)];
/// At the end a server that has faults is tried for so long.
const LAST: Duration = Duration::from_secs(8);
/// So much of what a server says is reported.
const MOST_SAID: u64 = 300;
/// Fields that have no column.
const OTHERS: &str = "other_fields";

/// Rows in `RowBinary`, and what they are known by.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    rows: u64,
    token: String,
}

/// Inserts rows.
#[derive(Debug)]
pub struct ClickHouse {
    server: Server,
    agent: Agent,
    /// Of this run: blocks are numbered behind it.
    run: String,
    count: u64,
    open: Block,
    since: Instant,
    waiting: VecDeque<Block>,
    /// The server is left alone until then, and the pause that comes next.
    pause: Option<Instant>,
    next_pause: Duration,
    kept: Kept,
    /// The table was not there, and was made.
    made: bool,
}

/// What came of a request.
enum Answer {
    Done,
    /// Perhaps later.
    Later(String),
    /// With its error's number.
    Never(u32, String),
}

impl Server {
    /// Its table as SQL has it.
    fn quoted(&self) -> String {
        let parts: Vec<String> = self.table.split('.').map(|part| format!("`{part}`")).collect();
        parts.join(".")
    }

    fn insert(&self) -> String {
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).chain([OTHERS]).collect();
        format!("INSERT INTO {} (`{}`) FORMAT RowBinary", self.quoted(), names.join("`,`"))
    }

    /// The table as it is made where there is none: a block that comes twice is taken once.
    pub fn definition(&self) -> String {
        let mut sql = format!("CREATE TABLE IF NOT EXISTS {} (", self.quoted());
        for column in &COLUMNS {
            let kind = match column.of {
                Of::Word(_) => "UInt32",
                Of::Number(_) => "UInt64 CODEC(T64, ZSTD)",
                Of::Told(_) => "Nullable(UInt32)",
                Of::Time(_) => "Nullable(DateTime64(9, 'UTC')) CODEC(Delta, ZSTD)",
                Of::Came(_) => "DateTime64(9, 'UTC') CODEC(Delta, ZSTD)",
                Of::Name(_) => "LowCardinality(String)",
                Of::Address(_) => "IPv6",
                Of::Mac(_) => "String",
            };
            // Writing to a String does not fail.
            let _ = write!(sql, "`{}` {kind}, ", column.name);
        }
        sql.push_str("`other_fields` String) ENGINE = MergeTree PARTITION BY toDate(time_received_ns) ");
        sql.push_str("ORDER BY time_received_ns SETTINGS non_replicated_deduplication_window = 1000");
        sql
    }
}

impl ClickHouse {
    /// Asks the server for the table, and makes it if it is not there. `run` tells this run from others.
    ///
    /// # Errors
    /// That the server does not answer, or what it says against it.
    pub fn open(server: Server, run: String) -> Result<ClickHouse, Refused> {
        server.check()?;
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        let mut made = ClickHouse {
            server,
            agent: Agent::new_with_config(config),
            run,
            count: 0,
            open: Block::default(),
            since: Instant::now(),
            waiting: VecDeque::new(),
            pause: None,
            next_pause: PAUSES[0],
            kept: Kept::default(),
            made: false,
        };
        made.prepare()?;
        Ok(made)
    }

    /// The table was not there, and was made.
    pub fn has_made_table(&self) -> bool {
        self.made
    }

    fn prepare(&mut self) -> Result<(), Refused> {
        const UNKNOWN_TABLE: u32 = 60;
        /// Who may only insert is not asked more.
        const ACCESS_DENIED: u32 = 497;
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).chain([OTHERS]).collect();
        // What may not be known has to be Nullable: only then there is this part of it.
        let nulls = COLUMNS.iter().filter(|column| matches!(column.of, Of::Told(_) | Of::Time(_)));
        let nulls: Vec<String> = nulls.map(|column| format!(", `{}`.`null`", column.name)).collect();
        let (names, nulls, table) = (names.join("`,`"), nulls.concat(), self.server.quoted());
        let look = format!("SELECT `{names}`{nulls} FROM {table} LIMIT 0 FORMAT Null");
        let url = || self.server.url.clone();
        let answer = match self.ask(&look, None, &[]) {
            Answer::Never(UNKNOWN_TABLE, _) => {
                self.made = true;
                self.ask(&self.server.definition(), None, &[])
            }
            Answer::Never(ACCESS_DENIED, _) => Answer::Done,
            other => other,
        };
        match answer {
            Answer::Done => Ok(()),
            Answer::Later(why) => Err(Refused::Silent { url: url(), why }),
            Answer::Never(_, said) => Err(Refused::Said { url: url(), said }),
        }
    }

    /// Carries out a query.
    fn ask(&self, query: &str, token: Option<&str>, body: &[u8]) -> Answer {
        let mut request = self.agent.post(format!("{}/", self.server.url.trim_end_matches('/')));
        request = request.query("query", query);
        if let Some(token) = token {
            request = request.query("insert_deduplicate", "1").query("insert_deduplication_token", token);
        }
        if !self.server.user.is_empty() {
            request = request.header("X-ClickHouse-User", &self.server.user);
        }
        if !self.server.password.is_empty() {
            request = request.header("X-ClickHouse-Key", &self.server.password);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Answer::Later(error.to_string()),
        };
        let status = response.status().as_u16();
        let number =
            response.headers().get("X-ClickHouse-Exception-Code").and_then(|code| code.to_str().ok());
        let number = number.and_then(|code| code.parse().ok());
        let said = response.body_mut().with_config().limit(1 << 20).read_to_string();
        let said = match said {
            Ok(said) => said,
            Err(error) => return Answer::Later(format!("its answer broke off: {error}")),
        };
        let short: String =
            said.trim().chars().take(MOST_SAID as usize).filter(|c| !c.is_control()).collect();
        match status {
            200 if number.is_none() && said.trim().is_empty() => Answer::Done,
            // An error that came after the answer had begun: what of the block was taken is not known.
            200 => Answer::Later(short),
            400..=499 if status != 408 && status != 429 => {
                Answer::Never(number.unwrap_or(0), format!("{short} (HTTP {status})"))
            }
            _ => Answer::Later(format!("{short} (HTTP {status})")),
        }
    }

    /// No more rows for the block that is open.
    fn close(&mut self) {
        if self.open.rows == 0 {
            return;
        }
        let room = self.open.bytes.len();
        let mut block =
            std::mem::replace(&mut self.open, Block { bytes: Vec::with_capacity(room), ..Block::default() });
        self.count += 1;
        block.token = format!("{}-{}", self.run, self.count);
        if self.waiting.len() < WAITING {
            self.waiting.push_back(block);
        } else {
            self.kept.lost += block.rows;
        }
    }

    /// Sends blocks that wait, as long as the server takes them.
    fn send(&mut self) {
        if self.pause.is_some_and(|until| Instant::now() < until) {
            return;
        }
        while let Some(block) = self.waiting.front() {
            match self.ask(&self.server.insert(), Some(&block.token), &block.bytes) {
                Answer::Done => {
                    self.kept.records += block.rows;
                    (self.pause, self.next_pause) = (None, PAUSES[0]);
                    self.waiting.pop_front();
                }
                Answer::Later(why) => {
                    let server = &self.server;
                    self.kept.fail(0, || format!("inserting into {server:?}: {why}"));
                    self.pause = Some(Instant::now() + self.next_pause);
                    self.next_pause = (self.next_pause * 2).min(PAUSES[1]);
                    return;
                }
                Answer::Never(_, said) => {
                    let server = &self.server;
                    self.kept.fail(block.rows, || format!("inserting into {server:?}: {said}"));
                    self.waiting.pop_front();
                }
            }
        }
    }
}

impl Sink for ClickHouse {
    fn take(&mut self, rows: &[Row]) {
        if self.open.rows == 0 {
            self.since = Instant::now();
        }
        for row in rows {
            write(row, &mut self.open.bytes);
        }
        self.open.rows += rows.len() as u64;
        if self.open.rows >= BLOCK {
            self.close();
            self.send();
        }
    }

    fn look(&mut self) {
        if self.since.elapsed() >= AGE {
            self.close();
        }
        self.send();
    }

    fn finish(&mut self) {
        self.close();
        let until = Instant::now() + LAST;
        self.pause = None;
        self.send();
        while !self.waiting.is_empty() && Instant::now() < until {
            std::thread::sleep(PAUSES[0]);
            self.pause = None;
            self.send();
        }
        self.kept.lost += self.waiting.drain(..).map(|block| block.rows).sum::<u64>();
        if self.kept.lost == 0 {
            // A server that was away and came again is no fault of the result, as with Kafka.
            self.kept.fault = None;
        }
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

/// A text behind its length (a varint).
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    let mut length = text.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(text);
}

/// A value behind a zero, or a one where there is none.
fn write_known<const LENGTH: usize>(known: Option<[u8; LENGTH]>, out: &mut Vec<u8>) {
    out.push(known.is_none().into());
    out.extend(known.into_iter().flatten());
}

/// A row in `RowBinary`, in the order of [`COLUMNS`].
fn write(row: &Row, out: &mut Vec<u8>) {
    for column in &COLUMNS {
        match column.of {
            Of::Word(get) => out.extend(get(&row.record).to_le_bytes()),
            Of::Number(get) => out.extend(get(&row.record).to_le_bytes()),
            Of::Told(get) => {
                write_known(Some(get(&row.record)).filter(|told| *told > 0).map(u32::to_le_bytes), out)
            }
            // DateTime64(9) is a signed number; what it cannot hold is as if it were not known.
            Of::Time(get) => {
                let time = i64::try_from(get(row)).ok().filter(|time| *time > 0);
                write_known(time.map(i64::to_le_bytes), out);
            }
            Of::Came(get) => out.extend(i64::try_from(get(row)).unwrap_or(0).to_le_bytes()),
            Of::Name(get) => write_text(get(&row.record).as_bytes(), out),
            Of::Address(get) => out.extend(match get(row) {
                None => Ipv6Addr::UNSPECIFIED.octets(),
                Some(IpAddr::V4(v4)) => v4.to_ipv6_mapped().octets(),
                Some(IpAddr::V6(v6)) => v6.octets(),
            }),
            Of::Mac(get) => {
                let mac = get(&row.record);
                out.push(if mac == [0; 6] { 0 } else { 17 });
                if mac != [0; 6] {
                    write_mac(mac, out);
                }
            }
        }
    }
    let mut others = Vec::new();
    if !row.others.is_empty() {
        others.push(b'{');
        text::members(row, &mut others);
        others.pop();
        others.push(b'}');
    }
    write_text(&others, out);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
