//! Tidy tables: one row per observation, one column per variable.

use serde::{Deserialize, Serialize};

/// Rows of `bottlenecks.csv` for each window, at most.
pub(crate) const BOTTLENECKS: usize = 100;

/// A table with named, typed columns of equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its name, also that of its file.
    pub name: String,
    /// The columns, in the order in which they are written.
    pub columns: Vec<(String, Column)>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Numbers; not-a-number stands for "none" and is written as an empty field.
    Number(Vec<f64>),
    /// Words from a small set.
    Text(Vec<String>),
}

impl Column {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Whole(values) => values.len(),
            Column::Number(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The whole numbers of the column of this name; none where it is not there.
    pub fn wholes(&self, name: &str) -> &[u64] {
        match self.column(name) {
            Some(Column::Whole(values)) => values,
            _ => &[],
        }
    }

    /// The numbers likewise.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.column(name) {
            Some(Column::Number(values)) => values,
            _ => &[],
        }
    }

    /// The texts likewise.
    pub fn texts(&self, name: &str) -> &[String] {
        match self.column(name) {
            Some(Column::Text(values)) => values,
            _ => &[],
        }
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }
}
