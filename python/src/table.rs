//! Tables in the Arrow C interface, without copies of numbers.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use faircast_experiments::table::{Column, Table as TableOfResults};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use std::sync::Arc;

/// A table with named columns. It implements the Arrow C stream interface (`__arrow_c_stream__`).
#[pyclass(frozen, module = "faircast._native")]
pub struct Table {
    name: String,
    batch: RecordBatch,
}

impl Table {
    /// Takes over the columns of a table. Texts are copied, because Arrow stores them in one buffer.
    pub fn new(table: TableOfResults) -> PyResult<Table> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (name, column) in table.columns {
            let (kind, array): (DataType, ArrayRef) = match column {
                Column::Whole(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values))),
                Column::Number(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
                Column::Text(values) => (DataType::Utf8, Arc::new(StringArray::from(values))),
            };
            fields.push(Field::new(name, kind, false));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = match arrays.is_empty() {
            true => Ok(RecordBatch::new_empty(schema)),
            false => RecordBatch::try_new(schema, arrays),
        };
        let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Table { name: table.name, batch })
    }

    /// Returns the table in the form that the writers of results take.
    pub fn to_results(&self, name: String) -> PyResult<TableOfResults> {
        let schema = self.batch.schema();
        let columns = schema.fields().iter().zip(self.batch.columns()).map(|(field, array)| {
            let column = match field.data_type() {
                DataType::UInt64 => Column::Whole(array.as_primitive::<UInt64Type>().values().to_vec()),
                DataType::Float64 => Column::Number(array.as_primitive::<Float64Type>().values().to_vec()),
                DataType::Utf8 => {
                    let texts = array.as_string::<i32>();
                    Column::Text((0..texts.len()).map(|row| texts.value(row).to_owned()).collect())
                }
                other => {
                    let name = field.name();
                    return Err(PyTypeError::new_err(format!(
                        "column `{name}` has the type {other}; results have uint64, double and utf8"
                    )));
                }
            };
            Ok((field.name().clone(), column))
        });
        Ok(TableOfResults { name, columns: columns.collect::<PyResult<_>>()? })
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the columns as lists of Python objects.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.to_results(self.name.clone())?.columns {
            match column {
                Column::Whole(values) => dict.set_item(name, values)?,
                Column::Number(values) => dict.set_item(name, values)?,
                Column::Text(values) => dict.set_item(name, values)?,
            }
        }
        Ok(dict)
    }

    /// Pickles a table by its columns.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let columns = PyList::empty(py);
        for (name, column) in self.to_results(self.name.clone())?.columns {
            match column {
                Column::Whole(values) => columns.append((name, "whole", values))?,
                Column::Number(values) => columns.append((name, "number", values))?,
                Column::Text(values) => columns.append((name, "text", values))?,
            }
        }
        let restored = py.get_type::<Table>().getattr("restored")?;
        Ok((restored, (&self.name, columns).into_pyobject(py)?))
    }

    /// Returns a table that was pickled.
    #[staticmethod]
    fn restored(name: String, columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Table> {
        let restore = |(name, kind, values): (String, String, Bound<'_, PyAny>)| {
            let column = match kind.as_str() {
                "whole" => Column::Whole(values.extract()?),
                "number" => Column::Number(values.extract()?),
                _ => Column::Text(values.extract()?),
            };
            Ok((name, column))
        };
        let columns = columns.into_iter().map(restore).collect::<PyResult<_>>()?;
        Table::new(TableOfResults { name, columns })
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Exports the table as an Arrow C stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface permits a producer to ignore the requested schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}
