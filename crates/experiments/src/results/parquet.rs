//! Tables as Parquet files.

pub mod run_file;

use crate::table::{Column, Table};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::sync::Arc;

/// Writes the table as a Parquet file. NaN is written as null.
///
/// # Errors
/// The library's error.
pub fn to_parquet(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let columns = table.columns.iter().map(|(name, column)| {
        let nullable = matches!(column, Column::Number(_));
        (name.as_str(), array(column), nullable)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}

/// Returns the values of an array; `None` if no column has its type.
pub(super) fn column(array: &ArrayRef) -> Option<Column> {
    if let Some(values) = array.as_primitive_opt::<UInt64Type>() {
        return Some(Column::Whole(values.values().to_vec()));
    }
    if let Some(values) = array.as_primitive_opt::<Float64Type>() {
        return Some(Column::Number(values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()));
    }
    let texts = array.as_string_opt::<i32>()?;
    Some(Column::Text(texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect()))
}

/// Reads a table from CSV. CSV has no types, so the column types are taken from the Parquet file `part`.
///
/// # Errors
/// The fault in one of the files.
pub fn typed(name: &str, text: &[u8], part: File) -> Result<Table, String> {
    let part = SerializedFileReader::new(part).map_err(|error| error.to_string())?;
    let schema = part.metadata().file_metadata().schema_descr();
    let empty = |place: usize| {
        let column = match schema.column(place).physical_type() {
            Type::INT64 => Column::Whole(Vec::new()),
            Type::DOUBLE => Column::Number(Vec::new()),
            _ => Column::Text(Vec::new()),
        };
        (schema.column(place).name().to_owned(), column)
    };
    let mut columns: Vec<(String, Column)> = (0..schema.num_columns()).map(empty).collect();
    let mut reader = csv::Reader::from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?;
    if !header.iter().eq(columns.iter().map(|(name, _)| name.as_str())) {
        return Err("its columns are not those of the CSV file".to_owned());
    }
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        for ((name, column), field) in columns.iter_mut().zip(&record) {
            let wrong = || format!("`{field}` in column `{name}` is not a number");
            match column {
                Column::Whole(values) => values.push(field.parse().map_err(|_| wrong())?),
                Column::Number(values) if field.is_empty() => values.push(f64::NAN),
                Column::Number(values) => values.push(field.parse().map_err(|_| wrong())?),
                Column::Text(values) => values.push(field.to_owned()),
            }
        }
    }
    Ok(Table { name: name.to_owned(), columns })
}

pub(super) fn array(column: &Column) -> ArrayRef {
    match column {
        Column::Whole(values) => Arc::new(UInt64Array::from(values.clone())),
        Column::Number(values) => {
            Arc::new(values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect::<Float64Array>())
        }
        Column::Text(values) => Arc::new(values.iter().map(Some).collect::<StringArray>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

    #[test]
    fn parquet_tables_read_back_unchanged() {
        let columns = vec![
            ("seed".to_owned(), Column::Whole(vec![1, u64::MAX])),
            ("rate".to_owned(), Column::Number(vec![0.1, f64::NAN])),
            ("flow".to_owned(), Column::Text(vec!["multicast".to_owned(), String::new()])),
        ];
        let bytes = to_parquet(&Table { name: "rates".to_owned(), columns }).expect("it is written");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("it is written");
        let file = std::fs::File::open(file.path()).expect("it is there");
        let mut reader = ParquetRecordBatchReader::try_new(file, 10).expect("a Parquet file");
        let batch = reader.next().expect("one batch").expect("a sound one");
        assert_eq!(batch.column(0).as_primitive::<UInt64Type>().values(), &[1, u64::MAX]);
        let rates = batch.column(1).as_primitive::<Float64Type>();
        assert!(rates.value(0) == 0.1 && rates.is_null(1));
        assert_eq!(batch.column(2).as_string::<i32>().value(0), "multicast");
    }
}
