//! A trend as one table for DuckDB, pandas and their like: a row for each figure of each result of a series, as Parquet.

use crate::series::{Line, Past, Series, Trend};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Whether this build can write such files.
pub const HERE: bool = true;

/// Whose schema has this name is a table of ours.
const NAME: &str = "netdyno_trend_1";
/// Rows of a group: as many as DuckDB has in one of its own.
const GROUP: usize = 122_880;

const SCHEMA: &str = "
    required binary series (UTF8);
    optional binary host (UTF8);
    required binary result (UTF8);
    optional int64 started (TIMESTAMP(MILLIS,true));
    required boolean short;
    optional binary conditions (JSON);
    required binary figure (UTF8);
    required binary name (UTF8);
    required binary unit (UTF8);
    required binary better (UTF8);
    optional double value;
    optional int32 group_number (INTEGER(32,false));
    optional double group_mean;
    required boolean exception;
    required binary outcome (UTF8);
";

/// A figure of a result: where the result does not have it, without a value.
struct Row<'t> {
    series: &'t Series,
    past: &'t Past,
    line: &'t Line,
    at: usize,
}

impl Row<'_> {
    fn group(&self) -> Option<(usize, f64)> {
        let at = self.at;
        let in_one = !self.line.exceptions.contains(&at) && self.value().is_some();
        let mut groups = self.line.groups.iter().enumerate();
        let found = groups.find(|(_, group)| in_one && (group.first..=group.last).contains(&at));
        found.map(|(number, group)| (number, group.mean))
    }

    fn value(&self) -> Option<f64> {
        self.line.values.get(self.at).copied().flatten()
    }

    fn conditions(&self) -> Option<ByteArray> {
        let members = self.past.conditions.iter();
        let members: Map<String, Value> =
            members.map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
        (!members.is_empty()).then(|| bytes(&Value::Object(members).to_string()))
    }
}

/// All series as Parquet: the bytes of a file.
///
/// # Errors
/// It is more than a file of Parquet holds.
pub fn parquet(trend: &Trend) -> Result<Vec<u8>, String> {
    write(trend).map_err(|error| error.to_string())
}

/// Whether a file is such a table, which may be replaced by a newer one.
pub fn is_table(path: &Path) -> bool {
    let found =
        File::open(path).ok().and_then(|file| ParquetMetaDataReader::new().parse_and_finish(&file).ok());
    found.is_some_and(|found| found.file_metadata().schema().name() == NAME)
}

fn write(trend: &Trend) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(&format!("message {NAME} {{{SCHEMA}}}"))?);
    let properties = WriterProperties::builder()
        .set_created_by(concat!("netdyno ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(GROUP));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    let rows: Vec<Row<'_>> = rows(trend).collect();
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        columns(rows, &mut group)?;
        group.close()?;
    }
    writer.into_inner()
}

/// By figure, and within each in the order of the results.
fn rows(trend: &Trend) -> impl Iterator<Item = Row<'_>> {
    trend.lines().flat_map(|(series, line)| {
        series.results.iter().enumerate().map(move |(at, past)| Row { series, past, line, at })
    })
}

/// In the order of the schema.
fn columns(rows: &[Row<'_>], group: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<(), ParquetError> {
    let whole = |value: usize| i32::try_from(value).ok();
    all::<ByteArrayType>(group, rows.iter().map(|row| bytes(&row.series.name)))?;
    some::<ByteArrayType>(
        group,
        rows.iter().map(|row| Some(&row.series.host).filter(|host| !host.is_empty()).map(|host| bytes(host))),
    )?;
    all::<ByteArrayType>(group, rows.iter().map(|row| bytes(&row.past.path)))?;
    let started = |past: &Past| i64::try_from(past.at).ok()?.checked_mul(1_000).filter(|at| *at > 0);
    some::<Int64Type>(group, rows.iter().map(|row| started(row.past)))?;
    all::<BoolType>(group, rows.iter().map(|row| row.past.short))?;
    some::<ByteArrayType>(group, rows.iter().map(Row::conditions))?;
    all::<ByteArrayType>(group, rows.iter().map(|row| bytes(&row.line.key)))?;
    all::<ByteArrayType>(group, rows.iter().map(|row| bytes(&row.line.name)))?;
    all::<ByteArrayType>(group, rows.iter().map(|row| word(&row.line.unit)))?;
    all::<ByteArrayType>(group, rows.iter().map(|row| word(&row.line.better)))?;
    some::<DoubleType>(group, rows.iter().map(Row::value))?;
    some::<Int32Type>(group, rows.iter().map(|row| row.group().and_then(|(number, _)| whole(number))))?;
    some::<DoubleType>(group, rows.iter().map(|row| row.group().map(|(_, mean)| mean)))?;
    all::<BoolType>(group, rows.iter().map(|row| row.line.exceptions.contains(&row.at)))?;
    all::<ByteArrayType>(group, rows.iter().map(|row| word(&row.line.outcome)))
}

/// A column that each row has.
fn all<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    column::<T>(group, &values.collect::<Vec<_>>(), None)
}

/// A column that some rows do not have.
fn some<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut known, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(value.is_some().into());
        known.extend(value);
    }
    column::<T>(group, &known, Some(&levels))
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the table has fewer columns than are written".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text)
}

/// As JSON calls it.
fn word(of: &impl serde::Serialize) -> ByteArray {
    let value = serde_json::to_value(of).unwrap_or_default();
    bytes(value.as_str().unwrap_or_default())
}
