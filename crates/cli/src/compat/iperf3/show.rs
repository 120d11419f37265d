//! Where a test's text or JSON goes: standard output or a file, each line with its title and time.

use endpoint::iperf3::json::{self, Document};
use endpoint::iperf3::results::Output;
use endpoint::iperf3::summary::{End, Interval, Role, Start};
use endpoint::iperf3::text::Text;
use endpoint::iperf3::units::Format;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use transport::iperf3::{Show, time};

/// Where output goes, shared by all tests of a server.
pub struct Sink {
    out: Mutex<Box<dyn Write + Send>>,
    /// A format of strftime(3) before each line.
    timestamps: Option<String>,
    /// Set where nobody reads any more.
    stop: Arc<AtomicBool>,
}

impl Sink {
    pub fn new(out: Box<dyn Write + Send>, timestamps: Option<String>, stop: Arc<AtomicBool>) -> Sink {
        Sink { out: Mutex::new(out), timestamps, stop }
    }

    /// Lines, each with its prefix.
    pub fn lines(&self, title: Option<&str>, text: &str) {
        let time = self.timestamps.as_deref().and_then(time::local).unwrap_or_default();
        let title = title.map(|title| format!("{title}:  ")).unwrap_or_default();
        if time.is_empty() && title.is_empty() {
            return self.write(text);
        }
        let lines: String = text.lines().map(|line| format!("{time}{title}{line}\n")).collect();
        self.write(&lines);
    }

    /// As it is.
    pub fn write(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.stop.store(true, Relaxed);
        }
    }
}

/// How tests are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Text {
        format: Format,
        verbose: bool,
    },
    Json,
    /// A line for each event; `full`: and the document.
    Stream {
        full: bool,
    },
}

/// Shows one test.
pub struct Shown {
    sink: Arc<Sink>,
    version: String,
    style: Style,
    text: Text,
    document: Document,
    title: Option<String>,
    /// The server's output for its client.
    record: String,
    ended: bool,
}

impl Shown {
    pub fn new(sink: Arc<Sink>, style: Style, version: &str, system: &str) -> Shown {
        let text = match style {
            Style::Text { format, verbose } => Text::new(format, verbose),
            _ => Text::default(),
        };
        let document = Document::new(version, system);
        let version = version.to_owned();
        Shown { sink, version, style, text, document, title: None, record: String::new(), ended: false }
    }

    fn say(&mut self, text: &str) {
        self.sink.lines(self.title.as_deref(), text);
        self.record.push_str(text);
    }

    fn is_text(&self) -> bool {
        matches!(self.style, Style::Text { .. })
    }

    fn streams(&self) -> bool {
        matches!(self.style, Style::Stream { .. })
    }
}

impl Show for Shown {
    fn connected(&mut self, start: &Start, dynamic: bool) {
        self.title.clone_from(&start.params.title);
        if self.is_text() {
            if start.role == Role::Client {
                let program = self.text.program(&self.version, &start.system);
                self.say(&program);
            }
            let text = self.text.connecting(start, dynamic);
            self.say(&text);
        }
        self.document.start(&self.version, start);
    }

    fn start(&mut self, start: &Start) {
        if self.is_text() {
            let text = self.text.start(start);
            self.say(&text);
        }
        if self.streams() {
            self.sink.write(&(json::start_event(&self.version, start) + "\n"));
        }
        self.document.start(&self.version, start);
    }

    fn interval(&mut self, start: &Start, interval: &Interval) {
        match self.style {
            Style::Text { .. } => {
                let text = self.text.interval(start, interval);
                self.say(&text);
            }
            Style::Json => self.document.interval(interval),
            Style::Stream { full } => {
                self.sink.write(&(json::interval_event(interval) + "\n"));
                if full {
                    self.document.interval(interval);
                }
            }
        }
    }

    fn end(&mut self, start: &Start, end: &End) {
        self.ended = true;
        if self.is_text() {
            let text = self.text.end(start, end);
            self.say(&text);
        }
        if self.streams() {
            self.sink.write(&(json::end_event(start, end) + "\n"));
            if let Some(output) = &end.server_output {
                self.sink.write(&(json::server_output_event(output) + "\n"));
            }
        }
        self.document.end(start, end);
    }

    fn error(&mut self, error: &str) {
        let error = report::units::printable(error);
        match self.style {
            Style::Text { .. } => {
                let _ = writeln!(std::io::stderr(), "iperf3: {error}");
            }
            Style::Json => self.document.error(&error),
            Style::Stream { .. } => {
                self.document.error(&error);
                self.sink.write(&(json::error_event(&error) + "\n"));
                if !self.ended {
                    self.ended = true;
                    self.sink.write(&(json::empty_end_event() + "\n"));
                }
            }
        }
    }

    fn output(&mut self) -> Option<Output> {
        Some(match self.style {
            Style::Text { .. } => Output::Text(self.record.clone()),
            _ => Output::Json(self.document.finish().value()),
        })
    }
}

/// The document is whole when the test is over, however it ended.
impl Drop for Shown {
    fn drop(&mut self) {
        if matches!(self.style, Style::Json | Style::Stream { full: true }) {
            self.sink.write(&(self.document.finish().document() + "\n"));
        }
    }
}
