//! Tables of single runs: without the columns for point and seed, for stores that keep each run separately.

use super::Results;
use super::rows::stack;
use crate::scenario::Scenario;
use crate::table::{Column, Table};

/// Returns the tables of a single run without the columns for point, axes and seed. Tables without rows are left out.
pub fn tables_of_run(results: &Results) -> Vec<Table> {
    let keys = results.axes.len() + 2;
    let filled = results.tables.iter().filter(|table| table.rows() > 0);
    filled.map(|table| Table { name: table.name.clone(), columns: table.columns[keys..].to_vec() }).collect()
}

/// Concatenates the tables of single runs, in this order; each row gets the run's point, axes and seed.
///
/// # Errors
/// If the tables differ in their columns; the error has the first such run.
pub fn stack_runs(scenario: &Scenario, runs: &[((usize, u64), Table)]) -> Result<Table, (usize, u64)> {
    fn form(table: &Table) -> impl Iterator<Item = (&str, u8)> {
        let kind = |column: &Column| match column {
            Column::Whole(_) => 0,
            Column::Number(_) => 1,
            Column::Text(_) => 2,
        };
        table.columns.iter().map(move |(name, column)| (name.as_str(), kind(column)))
    }
    let mut filled = runs.iter().filter(|(_, table)| !table.columns.is_empty());
    if let Some((_, first)) = filled.next()
        && let Some((job, _)) = filled.find(|(_, table)| !form(table).eq(form(first)))
    {
        return Err(*job);
    }
    let parts: Vec<((usize, u64), &Table)> = runs.iter().map(|(job, table)| (*job, table)).collect();
    Ok(stack(scenario.axes(), scenario.points(), &parts))
}
