//! Parquet files of single runs: one row, and a column of lists of structs for each table. Query engines unnest such a column.

use super::{array, column};
use crate::table::{Column, Table};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use std::sync::Arc;

/// Writes tables as the file of a single run. NaN is written as null.
///
/// # Errors
/// The library's error.
pub fn to_run_file(tables: &[Table]) -> Result<Vec<u8>, ParquetError> {
    let (mut fields, mut lists) = (Vec::new(), Vec::<ArrayRef>::new());
    for table in tables {
        let form = |(name, column): &(String, Column)| {
            let array = array(column);
            let is_number = matches!(column, Column::Number(_));
            (Field::new(name, array.data_type().clone(), is_number), array)
        };
        let (rows, arrays): (Vec<Field>, Vec<ArrayRef>) = table.columns.iter().map(form).unzip();
        let rows = StructArray::try_new(Fields::from(rows), arrays, None)?;
        let item = Arc::new(Field::new_list_field(rows.data_type().clone(), false));
        let list = ListArray::try_new(item, OffsetBuffer::from_lengths([rows.len()]), Arc::new(rows), None)?;
        fields.push(Field::new(&table.name, list.data_type().clone(), false));
        lists.push(Arc::new(list));
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), lists)?;
    // A campaign has many small files. Statistics take a third of the time to write one, and no query of single runs needs them.
    let properties = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}

/// Returns the names of the tables in the file of a run.
///
/// # Errors
/// The library's error.
pub fn tables_in(file: impl ChunkReader + 'static) -> Result<Vec<String>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    Ok(builder.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// Reads a table from the file of a run; a table that the run does not have has no columns. Null becomes NaN.
///
/// # Errors
/// The library's error, or the column whose type no table has.
pub fn from_run_file(name: &str, file: impl ChunkReader + 'static) -> Result<Table, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    let mut table = Table { name: name.to_owned(), columns: Vec::new() };
    let Ok(place) = builder.schema().index_of(name) else { return Ok(table) };
    let mask = ProjectionMask::roots(builder.parquet_schema(), [place]);
    let mut reader = builder.with_projection(mask).build().map_err(|error| error.to_string())?;
    let batch = reader.next().ok_or("it has no row")?.map_err(|error| error.to_string())?;
    let list = batch.column(0).as_list_opt::<i32>().filter(|list| list.len() == 1);
    let rows = list.map(|list| list.value(0)).ok_or_else(|| format!("`{name}` is not one list"))?;
    let rows = rows.as_struct_opt().ok_or_else(|| format!("`{name}` is not a list of rows"))?;
    for (field, values) in rows.fields().iter().zip(rows.columns()) {
        let values =
            column(values).ok_or_else(|| format!("the type of column `{}` is wrong", field.name()))?;
        table.columns.push((field.name().clone(), values));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, Write};

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).and_then(|()| file.rewind()).expect("it is written");
        file
    }

    #[test]
    fn run_files_read_back_unchanged() {
        let rates = vec![
            ("count".to_owned(), Column::Whole(vec![1, u64::MAX])),
            ("rate".to_owned(), Column::Number(vec![0.1, 7.0])),
            ("flow".to_owned(), Column::Text(vec!["multicast".to_owned(), String::new()])),
        ];
        let metrics = vec![("value".to_owned(), Column::Number(vec![2.5]))];
        let tables = [("rates", rates), ("metrics", metrics)];
        let tables = tables.map(|(name, columns)| Table { name: name.to_owned(), columns });
        let bytes = to_run_file(&tables).expect("it is written");
        assert_eq!(tables_in(file(&bytes)).expect("a Parquet file"), ["rates", "metrics"]);
        for table in tables {
            assert_eq!(from_run_file(&table.name, file(&bytes)).expect("it is read"), table);
        }
        assert!(from_run_file("queues", file(&bytes)).expect("it is read").columns.is_empty());
    }

    #[test]
    fn damaged_run_files_are_errors() {
        let columns = vec![("value".to_owned(), Column::Number(vec![2.5]))];
        let bytes = to_run_file(&[Table { name: "metrics".to_owned(), columns }]).expect("it is written");
        for end in [0, 4, bytes.len() / 2, bytes.len() - 1] {
            let cut = || file(&bytes[..end]);
            assert!(from_run_file("metrics", cut()).is_err() && tables_in(cut()).is_err(), "{end} bytes");
        }
    }
}
