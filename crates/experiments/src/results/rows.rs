//! Tables that are built row by row.

use crate::scenario::{Axis, Point, Setting};
use crate::table::{Column, Table};

/// A field of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field<'a> {
    Whole(u64),
    Number(f64),
    Text(&'a str),
}

/// A table under construction. The first row determines the names and types of the columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows(pub Table);

impl Rows {
    /// Returns an empty table.
    pub fn new(name: &str) -> Rows {
        Rows(Table { name: name.to_owned(), columns: Vec::new() })
    }

    /// Adds a row: the names of columns, and the values in these columns.
    pub fn push(&mut self, row: &[(&str, Field<'_>)]) {
        if self.0.columns.is_empty() {
            let column = |(name, field): &(&str, Field<'_>)| {
                let column = match field {
                    Field::Whole(_) => Column::Whole(Vec::new()),
                    Field::Number(_) => Column::Number(Vec::new()),
                    Field::Text(_) => Column::Text(Vec::new()),
                };
                ((*name).to_owned(), column)
            };
            self.0.columns.extend(row.iter().map(column));
        }
        debug_assert_eq!(row.len(), self.0.columns.len());
        for ((_, column), (_, field)) in self.0.columns.iter_mut().zip(row) {
            match (column, field) {
                (Column::Whole(values), Field::Whole(value)) => values.push(*value),
                (Column::Number(values), Field::Number(value)) => values.push(*value),
                (Column::Text(values), Field::Text(value)) => values.push((*value).to_owned()),
                _ => unreachable!("rows have the types of their table's first row"),
            }
        }
    }
}

/// Concatenates the tables of several runs; each row gets the run's point, axes and seed. An axis with the name of another column
/// becomes the column `sweep.NAME`.
pub(crate) fn stack(axes: &[Axis], points: &[Point], runs: &[((usize, u64), &Table)]) -> Table {
    let Some((_, first)) = runs.first() else { return Table::default() };
    // A table without rows has no columns, so the columns are taken from a table with rows.
    let filled = runs.iter().map(|(_, table)| table).find(|table| !table.columns.is_empty());
    let mut columns = vec![("point".to_owned(), Column::Whole(Vec::new()))];
    for axis in axes {
        let numbers = axis.values.iter().all(|value| matches!(value, Setting::Number(_)));
        let column = if numbers { Column::Number(Vec::new()) } else { Column::Text(Vec::new()) };
        let is_taken = ["point", "seed"].contains(&axis.name.as_str())
            || filled.is_some_and(|table| table.column(&axis.name).is_some());
        let name = if is_taken { format!("sweep.{}", axis.name) } else { axis.name.clone() };
        columns.push((name, column));
    }
    columns.push(("seed".to_owned(), Column::Whole(Vec::new())));
    let keys = columns.len();
    let empty = filled.into_iter().flat_map(|table| &table.columns).map(|(name, column)| {
        let column = match column {
            Column::Whole(_) => Column::Whole(Vec::new()),
            Column::Number(_) => Column::Number(Vec::new()),
            Column::Text(_) => Column::Text(Vec::new()),
        };
        (name.clone(), column)
    });
    columns.extend(empty);
    for ((point, seed), table) in runs {
        let rows = table.rows();
        fill(&mut columns[0].1, &Setting::Number(*point as f64), rows);
        for ((_, column), (_, value)) in columns[1..keys - 1].iter_mut().zip(&points[*point].values) {
            fill(column, value, rows);
        }
        if let Column::Whole(seeds) = &mut columns[keys - 1].1 {
            seeds.extend(std::iter::repeat_n(*seed, rows));
        }
        for ((_, into), (_, from)) in columns[keys..].iter_mut().zip(&table.columns) {
            match (into, from) {
                (Column::Whole(into), Column::Whole(from)) => into.extend_from_slice(from),
                (Column::Number(into), Column::Number(from)) => into.extend_from_slice(from),
                (Column::Text(into), Column::Text(from)) => into.extend_from_slice(from),
                _ => unreachable!("a table has the same columns in every run"),
            }
        }
    }
    Table { name: first.name.clone(), columns }
}

fn fill(column: &mut Column, value: &Setting, rows: usize) {
    match (column, value) {
        (Column::Whole(values), Setting::Number(number)) => {
            values.extend(std::iter::repeat_n(*number as u64, rows));
        }
        (Column::Number(values), Setting::Number(number)) => {
            values.extend(std::iter::repeat_n(*number, rows))
        }
        (Column::Text(values), value) => values.extend(std::iter::repeat_n(value.to_string(), rows)),
        (_, Setting::Text(_)) => unreachable!("an axis with a text in it is a column of texts"),
    }
}

/// Returns the tables of several runs; the tables of each kind are concatenated.
pub(crate) fn rows_of_runs(
    axes: &[Axis],
    points: &[Point],
    runs: &[((usize, u64), Vec<Table>)],
) -> Vec<Table> {
    let kinds = runs.first().map_or(0, |(_, tables)| tables.len());
    let kind = |kind: usize| {
        let parts: Vec<((usize, u64), &Table)> =
            runs.iter().map(|(job, tables)| (*job, &tables[kind])).collect();
        stack(axes, points, &parts)
    };
    (0..kinds).map(kind).collect()
}
