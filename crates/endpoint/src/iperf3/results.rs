//! What both sides tell each other after the data: CPU use, and of each stream what was sent or arrived.

use super::error::Error;
use super::limits;
use serde_json::{Map, Value, json};

/// Of one side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// Its CPU use.
    pub cpu: Cpu,
    /// Whether its retransmissions mean something: it sends TCP.
    pub retransmits: bool,
    /// Its congestion control.
    pub congestion: Option<String>,
    /// What the server printed, where it was asked for.
    pub output: Option<Output>,
    /// Its streams.
    pub streams: Vec<Stream>,
}

/// CPU use in percent of one core.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cpu {
    /// In all.
    pub total: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel for it.
    pub system: f64,
}

/// A server's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// As text.
    Text(String),
    /// As JSON.
    Json(Value),
}

/// Of one stream. What a side does not know is `None`, or zero where the protocol has no other way to say so.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stream {
    /// 1, 3, 4, 5: iperf3 leaves out 2.
    pub id: u32,
    /// Bytes sent, or received.
    pub bytes: u64,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// Seconds; of a receiver of datagrams.
    pub jitter: f64,
    /// Datagrams lost; late ones and duplicates lower it, so that it may be negative.
    pub errors: i64,
    /// Datagrams: of a receiver the highest number seen.
    pub packets: u64,
    /// Of these, before the time that counts. 3.13 and later.
    pub omitted: Option<(i64, u64)>,
    /// Seconds from the start of what counts.
    pub end: f64,
}

/// The number of a stream in the results, counted from 0 as they were opened.
pub fn stream_id(index: usize) -> u32 {
    u32::try_from(index).map_or(u32::MAX, |index| if index == 0 { 1 } else { index + 2 })
}

impl Cpu {
    /// Whether a host can have used that; who wrote it is not asked.
    pub fn is_possible(&self) -> bool {
        [self.total, self.user, self.system].iter().all(|percent| (0.0..=MOST_CPU).contains(percent))
    }
}

impl Results {
    /// As sent.
    pub fn json(&self) -> Value {
        let streams = self.streams.iter().map(|stream| {
            let (omitted_errors, omitted_packets) = stream.omitted.unwrap_or_default();
            json!({
                "id": stream.id,
                "bytes": stream.bytes,
                "retransmits": stream.retransmits.map_or(json!(-1), |count| json!(count)),
                "jitter": finite(stream.jitter),
                "errors": stream.errors,
                "omitted_errors": omitted_errors,
                "packets": stream.packets,
                "omitted_packets": omitted_packets,
                "start_time": 0,
                "end_time": finite(stream.end),
            })
        });
        let mut all = Map::new();
        all.insert("cpu_util_total".into(), finite(self.cpu.total).into());
        all.insert("cpu_util_user".into(), finite(self.cpu.user).into());
        all.insert("cpu_util_system".into(), finite(self.cpu.system).into());
        let has = if self.retransmits { 1 } else { -1 };
        all.insert("sender_has_retransmits".into(), has.into());
        if let Some(congestion) = &self.congestion {
            all.insert("congestion_used".into(), congestion.as_str().into());
        }
        match &self.output {
            Some(Output::Text(text)) => all.insert("server_output_text".into(), text.as_str().into()),
            Some(Output::Json(value)) => all.insert("server_output_json".into(), value.clone()),
            None => None,
        };
        all.insert("streams".into(), streams.collect());
        Value::Object(all)
    }

    /// As received.
    ///
    /// # Errors
    /// What member is missing.
    pub fn of(value: &Value) -> Result<Results, Error> {
        let missing = |name: &str| Error::Results(format!("{name} is missing"));
        let number = |name: &str| value.get(name).and_then(Value::as_f64).map(finite);
        let streams = value.get("streams").and_then(Value::as_array).ok_or_else(|| missing("streams"))?;
        if streams.len() > 2 * limits::STREAMS as usize {
            return Err(Error::Results(format!("{} streams", streams.len())));
        }
        let streams = streams.iter().map(|stream| {
            let whole = |name: &str| stream.get(name).and_then(whole);
            Ok(Stream {
                id: whole("id")
                    .and_then(|id| u32::try_from(id).ok())
                    .ok_or_else(|| missing("a stream's id"))?,
                bytes: whole("bytes")
                    .and_then(|n| u64::try_from(n).ok())
                    .ok_or_else(|| missing("a stream's bytes"))?,
                // 3.12 says -1 as 2^64-1.
                retransmits: whole("retransmits")
                    .and_then(|n| u64::try_from(n).ok())
                    .filter(|n| *n < 1 << 62),
                jitter: seconds(stream, "jitter")?,
                errors: whole("errors").map_or(0, saturate),
                packets: whole("packets").and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
                omitted: whole("omitted_errors")
                    .zip(whole("omitted_packets"))
                    .map(|(errors, packets)| (saturate(errors), u64::try_from(packets).unwrap_or(0))),
                // Of less there is no rate.
                end: Some(seconds(stream, "end_time")?).filter(|end| *end >= LEAST_TIME).unwrap_or(0.0),
            })
        });
        let output = match (value.get("server_output_text"), value.get("server_output_json")) {
            (Some(Value::String(text)), _) => Some(Output::Text(text.clone())),
            (_, Some(json)) => Some(Output::Json(json.clone())),
            _ => None,
        };
        Ok(Results {
            cpu: Cpu {
                total: number("cpu_util_total").unwrap_or(0.0),
                user: number("cpu_util_user").unwrap_or(0.0),
                system: number("cpu_util_system").unwrap_or(0.0),
            },
            retransmits: number("sender_has_retransmits").is_some_and(|has| has == 1.0),
            congestion: value.get("congestion_used").and_then(Value::as_str).map(str::to_owned),
            output,
            streams: streams
                .map(|stream| stream.and_then(Stream::is_possible))
                .collect::<Result<_, Error>>()?,
        })
    }

    /// Do these say something of each of so many streams?
    ///
    /// # Errors
    /// That one is missing.
    pub fn has_all(self, streams: usize) -> Result<Results, Error> {
        let missing = (0..streams).map(stream_id).find(|id| self.stream(*id).is_none());
        missing.map_or(Ok(self), |id| Err(Error::Results(format!("stream {id} is missing"))))
    }

    /// The stream of this number.
    pub fn stream(&self, id: u32) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl Stream {
    /// A receiver misses none but those that it knows of, of those that count as of all; and no more come late than came.
    fn is_possible(self) -> Result<Stream, Error> {
        let (left_errors, left_packets) = self.omitted.unwrap_or((0, 0));
        let errors = i128::from(self.errors);
        let packets = i128::from(self.packets);
        let counting = packets - i128::from(left_packets);
        let lost = errors - i128::from(left_errors);
        if errors > packets || errors < -packets || counting < 0 || lost > counting {
            let said = format!("a stream lost {lost} of {counting} datagrams");
            return Err(Error::Results(said));
        }
        Ok(self)
    }
}

/// Percent of a core, of a host with ten thousand of them.
const MOST_CPU: f64 = 100.0 * 10_000.0;
/// Seconds of a test that has a rate,
const LEAST_TIME: f64 = 1e-3;
/// and of the longest one.
const MOST_TIME: f64 = 10.0 * limits::SECONDS as f64;

/// A time that can be one; 0 where none is said.
fn seconds(stream: &Value, name: &str) -> Result<f64, Error> {
    let time = stream.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    match (0.0..=MOST_TIME).contains(&time) {
        true => Ok(time),
        false => Err(Error::Results(format!("a stream's {name} is {time:e} seconds"))),
    }
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// A number that cJSON may have written as a float.
fn whole(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).or_else(|| {
        let float = value.as_f64()?;
        float.is_finite().then_some(float as i128)
    })
}

fn saturate(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: u64, errors in -1000i64..900, packets in 1000u64.., jitter in 0.0..1e5f64, again in proptest::option::of(0..1u64 << 60)) {
            let results = Results {
                cpu: Cpu { total: 1.5, user: 0.5, system: 1.0 },
                retransmits: again.is_some(),
                congestion: Some("cubic".into()),
                output: Some(Output::Text("a line\n".into())),
                streams: vec![Stream { id: 1, bytes, retransmits: again, jitter, errors, packets, omitted: Some((0, 7)), end: 1.25 }],
            };
            prop_assert_eq!(Results::of(&results.json()), Ok(results));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            if let Ok(value) = serde_json::from_str(&text) {
                let _ = Results::of(&value);
            }
        }
    }

    /// As captured from iperf3 3.12's server.
    #[test]
    fn a_receivers_missing_retransmissions_stay_unknown() {
        let sent = r#"{"cpu_util_total":0.5,"cpu_util_user":0,"cpu_util_system":0.5,"sender_has_retransmits":18446744073709551615,"streams":[{"id":1,"bytes":1000,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000118}]}"#;
        let results = Results::of(&serde_json::from_str(sent).unwrap()).unwrap();
        assert_eq!((results.retransmits, results.streams[0].retransmits), (false, None));
        assert_eq!(results.streams[0].omitted, None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let of = |member: &str, value: &str| {
            let mut stream =
                json!({"id": 1, "bytes": 5, "errors": 0, "packets": 4, "jitter": 0.1, "end_time": 1.0});
            if member == "omitted_packets" {
                (stream["errors"], stream["omitted_errors"]) = (json!(3), json!(0));
            }
            stream[member] = serde_json::from_str(value).unwrap();
            Results::of(&json!({ "streams": [stream] }))
        };
        for (member, value) in [
            ("end_time", "-5"),
            ("end_time", "1e300"),
            ("jitter", "-1"),
            ("jitter", "1e300"),
            ("errors", "5"),
            ("errors", "-5"),
            ("omitted_packets", "5"),
            ("omitted_packets", "2"),
            ("bytes", "-1"),
            ("bytes", "1e300"),
        ] {
            assert!(matches!(of(member, value), Err(Error::Results(_))), "{member} {value}");
        }
        // Duplicates lower what was lost; and who says no time has ours.
        assert_eq!(of("errors", "-4").unwrap().streams[0].errors, -4);
        assert_eq!(of("omitted_packets", "1").unwrap().streams[0].omitted, Some((0, 1)));
        for (percent, possible) in [(-50.0, false), (1e300, false), (0.0, true), (12_800.0, true)] {
            let cpu = Cpu { total: percent, user: 0.0, system: 0.0 };
            assert_eq!(cpu.is_possible(), possible, "{percent}");
        }
        assert_eq!(of("end_time", "1e-300").unwrap().streams[0].end, 0.0);
        let one = of("errors", "4").unwrap();
        assert!(one.clone().has_all(1).is_ok());
        assert_eq!(one.has_all(2), Err(Error::Results("stream 3 is missing".to_owned())));
    }

    #[test]
    fn the_second_stream_is_the_third() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }
}
