//! Parquet files of single runs: one row, and a column of lists of structs for each table. Query engines unnest such a column.

use super::{array, column};
use crate::table::{Column, Table};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use std::sync::Arc;

/// Key of the run's name in the metadata.
const RUN: &str = "faircast.run";

/// Key of the checksums in the metadata: one for the columns of each table, and one for the footer, after [`OF_FOOTER`].
const SUMS: &str = "faircast.sums";

/// Text before the footer's checksum. The checksum is that of the footer with zeros in its place.
const OF_FOOTER: &[u8] = b"footer=";

/// Number of digits of a checksum.
const DIGITS: usize = 32;

/// Number of bytes after the footer: its length, and `PAR1`.
const TAIL: usize = 8;

/// Writes tables as the file of a single run, which has a name. NaN is written as null.
///
/// # Errors
/// The library's error.
pub fn to_run_file(run: &str, tables: &[Table]) -> Result<Vec<u8>, ParquetError> {
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
    let zeros = "0".repeat(DIGITS);
    let sums = format!("{}{}{zeros}", zeros.repeat(tables.len()), String::from_utf8_lossy(OF_FOOTER));
    // A campaign has many small files. Statistics take a third of the time to write one, and no query of single runs needs them.
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_key_value_metadata(Some(vec![
            KeyValue::new(RUN.to_owned(), run.to_owned()),
            KeyValue::new(SUMS.to_owned(), sums.clone()),
        ]))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    let metadata = writer.close()?;
    let sums_at = found(&bytes, sums.as_bytes()).expect("the writer has written the metadata");
    for (number, table) in tables.iter().enumerate() {
        let sum = sum_of_columns(&metadata, &table.name, |start, length| {
            Ok(bytes[start as usize..][..length].to_vec())
        })?;
        bytes[sums_at + number * DIGITS..][..DIGITS].copy_from_slice(sum.as_bytes());
    }
    let footer = footer_length(&bytes)?;
    let start = bytes.len() - TAIL - footer;
    let sum = checksum([&bytes[start..]]);
    let at = sums_at + sums.len() - DIGITS;
    bytes[at..at + DIGITS].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

/// The file of a single run, open for reading.
#[derive(Debug)]
pub struct RunFile<R> {
    file: R,
    metadata: ArrowReaderMetadata,
}

impl<R: ChunkReader + 'static> RunFile<R> {
    /// Reads everything except the tables of the run with this name, and checks it.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or is that of another run.
    pub fn of(run: &str, file: R) -> Result<RunFile<R>, ParquetError> {
        let wrong = |what: &str| ParquetError::General(what.to_owned());
        let tail_at = file.len().checked_sub(TAIL as u64).ok_or_else(|| wrong("it is too short"))?;
        let tail = file.get_bytes(tail_at, TAIL)?;
        let footer = footer_length(&tail)?;
        let at = tail_at.checked_sub(footer as u64).ok_or_else(|| wrong("it is damaged"))?;
        let mut footer = file.get_bytes(at, footer + TAIL)?.to_vec();
        let sum_at = found(&footer, OF_FOOTER).ok_or_else(|| wrong("it has no checksums"))? + OF_FOOTER.len();
        let sum = footer.get_mut(sum_at..sum_at + DIGITS).ok_or_else(|| wrong("it is damaged"))?;
        let stated = sum.to_vec();
        sum.fill(b'0');
        if checksum([&footer[..]]).as_bytes() != stated {
            return Err(wrong("it is damaged"));
        }
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let read = RunFile { file, metadata };
        match read.stated(RUN) {
            stated if stated == run => Ok(read),
            stated => Err(wrong(&format!("it is a copy of {stated}"))),
        }
    }

    /// Returns the value of a key in the metadata.
    fn stated(&self, key: &str) -> &str {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata();
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.as_deref()).unwrap_or_default()
    }

    /// Returns the names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str())
    }

    /// Reads a table; a table that the run does not have has no columns. Null becomes NaN.
    ///
    /// # Errors
    /// If the table is damaged, or a column has a type that no table has.
    pub fn table(self, name: &str) -> Result<Table, String> {
        let mut table = Table { name: name.to_owned(), columns: Vec::new() };
        let Some(place) = self.tables().position(|table| table == name) else { return Ok(table) };
        let rows = self.rows(name, place).map_err(|error| error.to_string())?;
        let rows = rows.as_struct_opt().ok_or_else(|| format!("`{name}` is not a list of rows"))?;
        for (field, values) in rows.fields().iter().zip(rows.columns()) {
            let values =
                column(values).ok_or_else(|| format!("the type of column `{}` is wrong", field.name()))?;
            table.columns.push((field.name().clone(), values));
        }
        Ok(table)
    }

    fn rows(self, name: &str, place: usize) -> Result<ArrayRef, ParquetError> {
        let sum = sum_of_columns(self.metadata.metadata(), name, |start, length| {
            self.file.get_bytes(start, length).map(|bytes| bytes.to_vec())
        })?;
        if self.stated(SUMS).get(place * DIGITS..(place + 1) * DIGITS) != Some(&sum) {
            return Err(ParquetError::General(format!("`{name}` is damaged")));
        }
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, self.metadata);
        let mask = ProjectionMask::roots(builder.parquet_schema(), [place]);
        let batch = builder.with_projection(mask).build()?.next();
        let batch = batch.ok_or_else(|| ParquetError::General("it has no row".to_owned()))??;
        let list = batch.column(0).as_list_opt::<i32>().filter(|list| list.len() == 1);
        let rows = list.map(|list| list.value(0));
        rows.ok_or_else(|| ParquetError::General(format!("`{name}` is not one list")))
    }
}

/// Returns the length of the footer of a file with this end.
fn footer_length(end: &[u8]) -> Result<usize, ParquetError> {
    match end.last_chunk::<TAIL>() {
        Some([a, b, c, d, b'P', b'A', b'R', b'1']) => Ok(u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        _ => Err(ParquetError::General("it is cut off, or no Parquet file".to_owned())),
    }
}

/// Returns the checksum of the columns of a table, whose bytes `read` returns.
fn sum_of_columns(
    metadata: &ParquetMetaData,
    table: &str,
    read: impl Fn(u64, usize) -> Result<Vec<u8>, ParquetError>,
) -> Result<String, ParquetError> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let of_table =
        columns.filter(|column| column.column_path().parts().first().is_some_and(|root| root == table));
    let bytes: Vec<Vec<u8>> = of_table
        .map(|column| column.byte_range())
        .map(|(start, length)| read(start, length as usize))
        .collect::<Result<_, _>>()?;
    Ok(checksum(bytes.iter().map(Vec::as_slice)))
}

fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sum = blake3::Hasher::new();
    for part in parts {
        sum.update(part);
    }
    sum.finalize().to_hex()[..DIGITS].to_owned()
}

/// Returns the place of the last occurrence of a text.
fn found(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).rposition(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, Write};

    const NAME: &str = "run=12ab-1";

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).and_then(|()| file.rewind()).expect("it is written");
        file
    }

    fn tables() -> [Table; 2] {
        let rates = vec![
            ("count".to_owned(), Column::Whole(vec![1, u64::MAX])),
            ("rate".to_owned(), Column::Number(vec![0.1, 7.0])),
            ("flow".to_owned(), Column::Text(vec!["multicast".to_owned(), String::new()])),
        ];
        let metrics = vec![("value".to_owned(), Column::Number(vec![2.5]))];
        [("rates", rates), ("metrics", metrics)]
            .map(|(name, columns)| Table { name: name.to_owned(), columns })
    }

    #[test]
    fn run_files_read_back_unchanged() {
        let bytes = to_run_file(NAME, &tables()).expect("it is written");
        let read = || RunFile::of(NAME, file(&bytes)).expect("a file of this run");
        assert!(read().tables().eq(["rates", "metrics"]));
        for table in tables() {
            assert_eq!(read().table(&table.name).expect("it is read"), table);
        }
        assert!(read().table("queues").expect("it is read").columns.is_empty());
        let other = RunFile::of("run=12ab-2", file(&bytes)).expect_err("another seed");
        assert!(other.to_string().contains("a copy of run=12ab-1"), "{other}");
    }

    #[test]
    fn each_changed_bit_is_found() {
        let bytes = to_run_file(NAME, &tables()).expect("it is written");
        let outcome = |bytes: &[u8]| {
            let read = || RunFile::of(NAME, file(bytes)).map_err(|error| error.to_string());
            tables().iter().map(|table| read()?.table(&table.name)).collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(outcome(&bytes).as_deref(), Ok(&tables()[..]));
        let mut unnoticed = 0;
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = outcome(&damaged) {
                assert_eq!(read, tables(), "bit {bit}");
                unnoticed += 1;
            }
        }
        // No reader uses the first magic number and the indexes of the pages.
        assert!(unnoticed < bytes.len(), "{unnoticed} of {} bits", 8 * bytes.len());
        for end in [0, 4, 8, bytes.len() / 2, bytes.len() - 1] {
            assert!(RunFile::of(NAME, file(&bytes[..end])).is_err(), "{end} bytes");
        }
    }
}
