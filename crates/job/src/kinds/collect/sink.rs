//! Writes records to a file, in a thread of its own.
//!
//! Columns have the names of goflow2's flows, which dashboards know, and CSV and JSON have the same ones. `bytes` are bytes of
//! IP. A file appears under its name when it is complete.

use super::protobuf;
use anyhow::{Context as _, Result, bail};
use capture::AtomicFile;
use flow::element;
use flow::record::{Other, Record};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Batches that may wait: some 130,000 rows.
const QUEUE: usize = 128;
/// Bytes of fields without a column that a row keeps; what does not fit is left out. A single one may have 65,535.
const MOST_OTHERS: usize = 1024;

/// A record, and what is known beside it.
#[derive(Debug)]
pub struct Row {
    record: Record,
    from: IpAddr,
    received_ns: u64,
    /// Fields that have no column.
    others: Vec<(element::Number, Vec<u8>)>,
}

impl Row {
    pub fn of(record: &Record, others: &[Other<'_>], from: IpAddr, received_ns: u64) -> Row {
        let mut left = MOST_OTHERS;
        let fits = others.iter().filter(|other| {
            let fits = left.checked_sub(other.bytes.len());
            left = fits.unwrap_or(left);
            fits.is_some()
        });
        let others = fits.map(|other| (other.number, other.bytes.to_vec())).collect();
        Row { record: *record, from, received_ns, others }
    }
}

/// Rows on their way to a writer.
pub type Queue = SyncSender<Arc<Vec<Row>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Lines,
    /// goflow2's messages.
    Protobuf,
}

/// A file that is to be written.
pub struct Sink {
    file: BufWriter<AtomicFile>,
    form: Form,
    path: PathBuf,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    pub records: u64,
    /// Came and could not be written.
    pub lost: u64,
    pub fault: Option<String>,
}

/// A writer that runs.
pub struct Writer(JoinHandle<Written>);

impl Writer {
    /// Waits until all that came is written. To be called when nobody has a queue to it any more.
    pub fn finish(self) -> Written {
        let fault = || Some("a writer's thread panicked: this is a defect of netdyno".to_owned());
        self.0.join().unwrap_or_else(|_| Written { fault: fault(), ..Written::default() })
    }
}

impl Sink {
    pub fn create(path: &Path) -> Result<Sink> {
        let form = match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Form::Csv,
            Some("jsonl" | "json" | "ndjson") => Form::Lines,
            Some("pb") => Form::Protobuf,
            _ => bail!("records are written as .csv, .jsonl or .pb: give the file one of these endings"),
        };
        let mut file = BufWriter::with_capacity(1 << 18, AtomicFile::create(path)?);
        if form == Form::Csv {
            writeln!(file, "{COLUMNS}")?;
        }
        Ok(Sink { file, form, path: path.to_owned() })
    }

    /// Begins to write, in a thread.
    pub fn start(self) -> std::io::Result<(Queue, Writer)> {
        let (into, out) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("write".to_owned()).spawn(move || self.work(&out))?;
        Ok((into, Writer(thread)))
    }

    fn work(mut self, batches: &Receiver<Arc<Vec<Row>>>) -> Written {
        let mut written = Written::default();
        let (mut line, mut messages, mut scratch) = (String::new(), Vec::new(), Vec::new());
        while let Ok(batch) = batches.recv() {
            if written.fault.is_some() {
                written.lost += batch.len() as u64;
                continue;
            }
            line.clear();
            messages.clear();
            for row in batch.iter() {
                match self.form {
                    Form::Csv => csv(row, &mut line),
                    Form::Lines => json(row, &mut line),
                    Form::Protobuf => {
                        protobuf::write(&row.record, row.from, row.received_ns, &mut scratch, &mut messages);
                    }
                }
            }
            let bytes = if self.form == Form::Protobuf { &messages[..] } else { line.as_bytes() };
            match self.file.write_all(bytes) {
                Ok(()) => written.records += batch.len() as u64,
                Err(error) => {
                    written.lost += batch.len() as u64;
                    written.fault = Some(format!("writing {}: {error}", self.path.display()));
                }
            }
        }
        if written.fault.is_none() {
            let path = self.path.clone();
            let ended = self.finish().with_context(|| format!("writing {}", path.display()));
            if let Err(error) = ended {
                written.lost += std::mem::take(&mut written.records);
                written.fault = Some(crate::in_full(&error));
            }
        }
        written
    }

    fn finish(self) -> Result<()> {
        self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
        Ok(())
    }
}

const COLUMNS: &str = "type,time_received_ns,sampler_address,observation_domain_id,sampling_rate,time_flow_start_ns,\
    time_flow_end_ns,bytes,packets,src_addr,dst_addr,etype,proto,src_port,dst_port,in_if,out_if,src_mac,dst_mac,src_vlan,\
    dst_vlan,ip_tos,tcp_flags,src_as,dst_as,src_net,dst_net,next_hop,flow_end_reason";

/// A value of a column.
enum Value<'a> {
    Number(u64),
    Text(&'a str),
    Address(Option<IpAddr>),
    Mac([u8; 6]),
}

/// The columns' values, in their order.
fn values(row: &Row) -> [Value<'_>; 29] {
    use Value::{Address, Mac, Number, Text};
    let r = &row.record;
    let etype = match r.addresses[0] {
        Some(IpAddr::V4(_)) => 0x0800,
        Some(IpAddr::V6(_)) => 0x86dd,
        None => 0,
    };
    [
        Text(r.format.name()),
        Number(row.received_ns),
        Address(Some(row.from.to_canonical())),
        Number(r.domain.into()),
        Number(r.sampling.into()),
        Number(r.times_ns[0]),
        Number(r.times_ns[1]),
        Number(r.octets),
        Number(r.packets),
        Address(r.addresses[0]),
        Address(r.addresses[1]),
        Number(etype),
        Number(r.protocol.into()),
        Number(r.ports[0].into()),
        Number(r.ports[1].into()),
        Number(r.interfaces[0].into()),
        Number(r.interfaces[1].into()),
        Mac(r.macs[0]),
        Mac(r.macs[1]),
        Number(r.vlans[0].into()),
        Number(r.vlans[1].into()),
        Number(r.tos.into()),
        Number(r.tcp_flags.into()),
        Number(r.systems[0].into()),
        Number(r.systems[1].into()),
        Number(r.prefixes[0].into()),
        Number(r.prefixes[1].into()),
        Address(r.next_hop),
        Number(r.end_reason.into()),
    ]
}

impl Value<'_> {
    fn write(&self, out: &mut String) {
        // Writing to a String does not fail.
        let _ = match self {
            Value::Number(number) => write!(out, "{number}"),
            Value::Text(text) => out.write_str(text),
            Value::Address(None) => Ok(()),
            Value::Address(Some(address)) => write!(out, "{address}"),
            Value::Mac([a, b, c, d, e, f]) => write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"),
        };
    }
}

fn csv(row: &Row, out: &mut String) {
    for (number, value) in values(row).iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        value.write(out);
    }
    out.push('\n');
}

/// The same, and fields that have no column: by IANA's name, or by enterprise and number; numbers as such, others in
/// hexadecimal digits.
fn json(row: &Row, out: &mut String) {
    out.push('{');
    for (name, value) in COLUMNS.split(',').zip(values(row)) {
        let _ = write!(out, "\"{name}\":");
        let quoted = !matches!(value, Value::Number(_));
        if quoted {
            out.push('"');
        }
        value.write(out);
        if quoted {
            out.push('"');
        }
        out.push(',');
    }
    for (number, bytes) in &row.others {
        let known = element::of_number(*number);
        let _ = match known {
            Some(element) => write!(out, "\"{}\":", element.name),
            None => write!(out, "\"{}.{}\":", number.enterprise, number.id),
        };
        let is_number =
            known.is_some_and(|element| element.kind == element::Kind::Unsigned) && bytes.len() <= 8;
        if is_number {
            let _ = write!(out, "{}", Other { number: *number, bytes }.unsigned());
        } else {
            out.push('"');
            bytes.iter().for_each(|byte| {
                let _ = write!(out, "{byte:02x}");
            });
            out.push('"');
        }
        out.push(',');
    }
    out.pop();
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_value_for_each_column() {
        assert_eq!(COLUMNS.split(',').count(), 29);
    }
}
