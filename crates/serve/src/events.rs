//! Server-Sent Events: how a run goes, and which runs there are. A client that is slow gets fewer snapshots, always the newest.

use crate::hand::Hand;
use crate::runs::Run;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What keeps proxies from closing.
const ALIVE: Duration = Duration::from_secs(10);
/// Between two snapshots that one client is told at least.
const LEAST: Duration = Duration::from_millis(90);

fn event(name: &str, id: Option<u64>, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // JSON has no line ends.
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

fn response(next: impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(next)).into_response()
}

struct Following {
    run: Arc<Run>,
    news: watch::Receiver<u64>,
    sequence: Option<u64>,
    notes: u64,
    due: VecDeque<Bytes>,
    over: bool,
}

impl Following {
    /// What has come since.
    fn look(&mut self) {
        let (moment, notes, told) = self.run.since(self.sequence, self.notes);
        self.notes = told;
        self.due.extend(notes.iter().map(|note| event("notice", None, &note.to_string())));
        if let Some(moment) = moment {
            self.sequence = Some(moment.sequence);
            self.due.push_back(event("moment", Some(moment.sequence), &moment.text));
        }
        if self.run.is_over() && !self.over {
            self.over = true;
            self.due.push_back(event("end", None, &json!({"run": self.run.told()}).to_string()));
        }
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Following)> {
        loop {
            if let Some(bytes) = self.due.pop_front() {
                return Some((Ok(bytes), self));
            }
            if self.over {
                return None;
            }
            match tokio::time::timeout(ALIVE, self.news.changed()).await {
                Ok(Ok(())) => {
                    tokio::time::sleep(LEAST).await;
                    self.news.mark_unchanged();
                    self.look();
                }
                Ok(Err(_)) => return None,
                Err(_) => return Some((Ok(Bytes::from_static(b": keep-alive\n\n")), self)),
            }
        }
    }
}

/// How a run goes, from its last 300 snapshots on.
pub(crate) fn of_run(run: Arc<Run>) -> Response {
    let news = run.news();
    let (mut hello, sequence, notes) = run.past();
    hello["schema"] = "netdyno.live/1".into();
    hello["run"] = run.told();
    let first =
        format!("retry: 1000\n{}", String::from_utf8_lossy(&event("hello", sequence, &hello.to_string())));
    let mut following =
        Following { run, news, sequence, notes, due: VecDeque::from([first.into()]), over: false };
    following.look();
    response(stream::unfold(following, Following::next))
}

struct Listing {
    hand: Hand,
    changes: watch::Receiver<u64>,
    told: String,
    first: bool,
}

impl Listing {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Listing)> {
        loop {
            if !std::mem::take(&mut self.first) {
                match tokio::time::timeout(ALIVE, self.changes.changed()).await {
                    Ok(Ok(())) => tokio::time::sleep(LEAST).await,
                    Ok(Err(_)) => return None,
                    Err(_) => return Some((Ok(Bytes::from_static(b": keep-alive\n\n")), self)),
                }
            }
            let runs: Vec<_> = self.hand.runs().all().iter().map(|run| run.told()).collect();
            let told = json!({"runs": runs}).to_string();
            // Each snapshot is a change, and most change nothing of this.
            if told != self.told {
                self.told = told;
                return Some((Ok(event("runs", None, &self.told)), self));
            }
        }
    }
}

/// Which runs there are, each time that one of them is another.
pub(crate) fn of_all(hand: Hand) -> Response {
    let changes = hand.runs().watch();
    response(stream::unfold(Listing { hand, changes, told: String::new(), first: true }, Listing::next))
}
