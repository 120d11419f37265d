//! Parquet: rows are gathered in columns, and a row group is written when there are enough.
//!
//! The `parquet` crate writes pages, dictionaries and statistics; here is what the columns are. Numbers are
//! written as differences, texts by a dictionary as long as they repeat, all of it by zstd.

use crate::Row;
use crate::columns::{COLUMNS, Of, write_address, write_mac};
use crate::ground::Ground;
use crate::text;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataWriter};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

/// Whether this build can write such files.
pub const HERE: bool = true;

/// Rows of a group: as many as DuckDB has in one of its own. They take some 30 MB until they are written.
pub const GROUP: usize = 122_880;
/// Behind the others: fields that have no column, as a JSON object.
const OTHERS: &str = "other_fields";

/// A file that is written.
pub struct Parquet {
    writer: SerializedFileWriter<Ground>,
    ground: Ground,
    columns: Vec<Values>,
    others: Values,
    rows: usize,
    /// Of each group that is in the file: where it ends, and how many rows it has.
    whole: Vec<(u64, u64)>,
}

/// What is gathered of a column.
enum Values {
    Words(Vec<i32>),
    Numbers(Vec<i64>),
    /// Without those that are not known, as are the next two.
    Told {
        known: Vec<i32>,
        levels: Vec<i16>,
    },
    Times {
        known: Vec<i64>,
        levels: Vec<i16>,
    },
    Texts {
        bytes: Vec<u8>,
        /// Where each that is known ends.
        ends: Vec<usize>,
        levels: Vec<i16>,
    },
}

impl Values {
    fn of(of: &Of) -> Values {
        match of {
            Of::Word(_) => Values::Words(Vec::new()),
            Of::Number(_) => Values::Numbers(Vec::new()),
            Of::Told(_) => Values::Told { known: Vec::new(), levels: Vec::new() },
            Of::Time(_) | Of::Came(_) => Values::Times { known: Vec::new(), levels: Vec::new() },
            Of::Name(_) | Of::Address(_) | Of::Mac(_) => Values::texts(),
        }
    }

    fn texts() -> Values {
        Values::Texts { bytes: Vec::new(), ends: Vec::new(), levels: Vec::new() }
    }

    /// One text for each row, by `write`, which says whether there is one.
    fn text<'a>(&mut self, rows: &'a [Row], mut write: impl FnMut(&'a Row, &mut Vec<u8>) -> bool) {
        let Values::Texts { bytes, ends, levels } = self else { return };
        for row in rows {
            let known = write(row, bytes);
            levels.push(known.into());
            if known {
                ends.push(bytes.len());
            }
        }
    }

    fn add(&mut self, rows: &[Row], of: &Of) {
        match (of, &mut *self) {
            (Of::Word(get), Values::Words(words)) => {
                words.extend(rows.iter().map(|row| get(&row.record).cast_signed()));
            }
            (Of::Number(get), Values::Numbers(numbers)) => {
                numbers.extend(rows.iter().map(|row| get(&row.record).cast_signed()));
            }
            (Of::Told(get), Values::Told { known, levels }) => {
                for row in rows {
                    let told = Some(get(&row.record)).filter(|told| *told > 0);
                    levels.push(told.is_some().into());
                    known.extend(told.map(u32::cast_signed));
                }
            }
            (Of::Time(get) | Of::Came(get), Values::Times { known, levels }) => {
                for row in rows {
                    let time = i64::try_from(get(row)).ok().filter(|time| *time > 0);
                    levels.push(time.is_some().into());
                    known.extend(time);
                }
            }
            (Of::Name(get), _) => self.text(rows, |row, out| {
                out.extend_from_slice(get(&row.record).as_bytes());
                true
            }),
            (Of::Address(get), _) => self.text(rows, |row, out| {
                let address = get(row);
                address.iter().for_each(|address| write_address(address, out));
                address.is_some()
            }),
            (Of::Mac(get), _) => self.text(rows, |row, out| {
                let mac = get(&row.record);
                let known = mac != [0; 6];
                if known {
                    write_mac(mac, out);
                }
                known
            }),
            // Columns are made by the same table that they are filled by.
            (Of::Word(_) | Of::Number(_) | Of::Told(_) | Of::Time(_) | Of::Came(_), _) => {}
        }
    }

    /// Writes what was gathered, and forgets it.
    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Values::Words(words) => {
                column.typed::<Int32Type>().write_batch(words, None, None)?;
                words.clear();
            }
            Values::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Values::Told { known, levels } => {
                column.typed::<Int32Type>().write_batch(known, Some(levels), None)?;
                known.clear();
                levels.clear();
            }
            Values::Times { known, levels } => {
                column.typed::<Int64Type>().write_batch(known, Some(levels), None)?;
                known.clear();
                levels.clear();
            }
            Values::Texts { bytes, ends, levels } => {
                let room = bytes.len();
                // Its memory goes with the values, which point into it.
                let all = ByteArray::from(std::mem::take(bytes));
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let texts: Vec<ByteArray> =
                    starts.zip(ends.iter()).map(|(start, end)| all.slice(start, end - start)).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, Some(levels), None)?;
                bytes.reserve(room);
                ends.clear();
                levels.clear();
            }
        }
        Ok(())
    }
}

/// The columns in Parquet's own words.
fn schema() -> String {
    let mut schema = "message flows {".to_owned();
    for column in &COLUMNS {
        let kind = match column.of {
            Of::Word(_) => ("required int32", " (INTEGER(32,false))"),
            Of::Number(_) => ("required int64", " (INTEGER(64,false))"),
            Of::Told(_) => ("optional int32", " (INTEGER(32,false))"),
            Of::Time(_) | Of::Came(_) => ("optional int64", " (TIMESTAMP(NANOS,true))"),
            Of::Name(_) | Of::Address(_) | Of::Mac(_) => ("optional binary", " (UTF8)"),
        };
        // Writing to a String does not fail.
        let _ = write!(schema, "{} {}{};", kind.0, column.name, kind.1);
    }
    let _ = write!(schema, "optional binary {OTHERS} (JSON); }}");
    schema
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("netdyno ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        // Of a group, by which readers skip it; of pages they would take as long to find as to read.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP));
    // A dictionary of numbers takes longer to make than all else, and is no smaller.
    let is_number = |of: &Of| !matches!(of, Of::Name(_) | Of::Address(_) | Of::Mac(_));
    for column in COLUMNS.iter().filter(|column| is_number(&column.of)) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        // The file's own error, which says most.
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

impl std::fmt::Debug for Parquet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parquet").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Parquet {
    pub fn create(ground: Ground) -> io::Result<Parquet> {
        let schema = Arc::new(parse_message_type(&schema()).map_err(failed)?);
        let properties = Arc::new(properties().map_err(failed)?);
        let writer = SerializedFileWriter::new(ground.clone(), schema, properties).map_err(failed)?;
        let columns = COLUMNS.iter().map(|column| Values::of(&column.of)).collect();
        Ok(Parquet { writer, ground, columns, others: Values::texts(), rows: 0, whole: Vec::new() })
    }

    /// Adds rows, and writes groups that are full.
    pub fn write(&mut self, mut rows: &[Row]) -> io::Result<()> {
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.len().min(GROUP - self.rows));
            rows = later;
            for (values, column) in self.columns.iter_mut().zip(&COLUMNS) {
                values.add(now, &column.of);
            }
            self.others.text(now, |row, out| {
                if row.others.is_empty() {
                    return false;
                }
                out.push(b'{');
                text::members(row, out);
                out.pop();
                out.push(b'}');
                true
            });
            self.rows += now.len();
            if self.rows >= GROUP {
                self.write_group().map_err(failed)?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows) as u64;
        let mut group = self.writer.next_row_group()?;
        for values in self.columns.iter_mut().chain([&mut self.others]) {
            // As many as the schema has.
            let Some(mut column) = group.next_column()? else { break };
            values.write(&mut column)?;
            column.close()?;
        }
        group.close()?;
        // What is in the file then is a whole group.
        self.writer.flush()?;
        self.whole.push((self.writer.bytes_written() as u64, rows));
        Ok(())
    }

    /// Bytes in the file so far.
    pub fn size(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Writes the rest, and what makes it a whole file.
    pub fn end(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(failed)?;
        }
        self.writer.finish().map(|_| ()).map_err(failed)
    }

    /// The file, once it has ended, and how many rows are in it.
    pub fn ended(self) -> (u64, Ground) {
        (self.whole.iter().map(|(_, rows)| rows).sum(), self.ground)
    }

    /// Of a file that could not be written, the groups that are whole, as a file of these alone. `None`: there are none.
    ///
    /// What makes it a file (its footer) takes some room, too: where a full disk has none, the last group goes for it.
    pub fn salvage(self) -> Option<(u64, Ground)> {
        let Parquet { writer, ground, mut whole, .. } = self;
        let groups = writer.flushed_row_groups().to_vec();
        let version = writer.properties().writer_version().as_num();
        let created_by = Some(writer.properties().created_by().to_owned());
        let schema = Arc::new(writer.schema_descr().clone());
        let mut ground = ground.close();
        drop(writer);
        while let Some((end, _)) = whole.last() {
            ground.cut(*end);
            let rows: u64 = whole.iter().map(|(_, rows)| rows).sum();
            let count = rows.cast_signed();
            let told = FileMetaData::new(version, count, created_by.clone(), None, Arc::clone(&schema), None);
            let told = ParquetMetaData::new(told, groups.iter().take(whole.len()).cloned().collect());
            let mut footer = Vec::new();
            let made = ParquetMetaDataWriter::new(&mut footer, &told)
                .with_preserve_page_index_locations(false)
                .finish();
            if made.is_ok() && ground.written() == *end && ground.write_all(&footer).is_ok() {
                return Some((rows, ground));
            }
            whole.pop();
        }
        None
    }
}

/// What there is without the feature.
#[cfg(test)]
#[allow(dead_code, reason = "it is compiled so that it does compile")]
#[path = "parquet/absent.rs"]
mod absent;
