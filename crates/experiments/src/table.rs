//! Tidy tables: one row per observation, one column per variable.

use serde::{Deserialize, Serialize};

/// Maximum number of rows of `bottlenecks.csv` for each window.
pub(crate) const BOTTLENECKS: usize = 100;

/// A table whose columns have names, types and equal lengths.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Name of the table and of its file.
    pub name: String,
    /// The columns, in the order of output.
    pub columns: Vec<(String, Column)>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Numbers; NaN is written as an empty field.
    Number(Vec<f64>),
    /// Texts, with few different values.
    Text(Vec<String>),
}

impl Column {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Whole(values) => values.len(),
            Column::Number(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Returns the whole numbers of the column of this name; empty if there is no such column.
    pub fn wholes(&self, name: &str) -> &[u64] {
        match self.column(name) {
            Some(Column::Whole(values)) => values,
            _ => &[],
        }
    }

    /// Returns the numbers of the column of this name; empty if there is no such column.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.column(name) {
            Some(Column::Number(values)) => values,
            _ => &[],
        }
    }

    /// Returns the texts of the column of this name; empty if there is no such column.
    pub fn texts(&self, name: &str) -> &[String] {
        match self.column(name) {
            Some(Column::Text(values)) => values,
            _ => &[],
        }
    }

    /// Returns the column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }
}
