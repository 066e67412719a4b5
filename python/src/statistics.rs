//! Statistics of runs.

use crate::table::Table;
use faircast_experiments::stats::{self, Estimate};
use faircast_experiments::table::{Column, Table as TableOfResults};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Returns the mean, and the ends of its confidence interval by Student's t.
#[pyfunction]
pub fn student(values: Vec<f64>, confidence: f64) -> PyResult<(f64, f64, f64)> {
    check(&values, confidence)?;
    let (low, high) = stats::student_interval(&values, confidence);
    Ok((stats::mean(&values), low, high))
}

/// Returns the mean, and the ends of its confidence interval by the bootstrap.
#[pyfunction]
pub fn bootstrap(
    values: Vec<f64>,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> PyResult<(f64, f64, f64)> {
    check(&values, confidence)?;
    if resamples < 100 {
        return Err(PyValueError::new_err("the bootstrap needs at least 100 resamples"));
    }
    let (low, high) = stats::bootstrap_interval(&values, confidence, resamples, seed);
    Ok((stats::mean(&values), low, high))
}

fn check_finite(values: &[f64]) -> PyResult<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(PyValueError::new_err(format!(
            "all values must be finite, but value {at} (from 0) is {}",
            values[at]
        ))),
        None => Ok(()),
    }
}

fn check(values: &[f64], confidence: f64) -> PyResult<()> {
    if values.len() < 2 {
        return Err(PyValueError::new_err(format!(
            "a confidence interval needs at least two values, not {}",
            values.len()
        )));
    }
    check_finite(values)?;
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PyValueError::new_err(format!(
            "the confidence level is between 0 and 1, not {confidence}"
        )));
    }
    Ok(())
}

/// Returns the number of values at the beginning of a series that MSER-5 assigns to the warm-up; `None` if the series is too
/// short or has no stationary part.
#[pyfunction]
pub fn mser5(values: Vec<f64>) -> PyResult<Option<usize>> {
    check_finite(&values)?;
    Ok(stats::mser5(&values))
}

/// Returns the probability that a series without trend has a trend at least as strong as this one; `None` for a short series.
#[pyfunction]
pub fn trend(values: Vec<f64>) -> PyResult<Option<f64>> {
    check_finite(&values)?;
    Ok(stats::trend(&values))
}

/// Returns a row for each metric at each point of a table of metrics: number of runs, mean, standard deviation, and the ends of
/// the confidence interval by Student's t. One run has no interval (NaN).
#[pyfunction]
pub fn summary(metrics: &Table, confidence: f64) -> PyResult<Table> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PyValueError::new_err(format!(
            "the confidence level is between 0 and 1, not {confidence}"
        )));
    }
    let metrics = metrics.to_results("metrics".to_owned())?;
    let missing = |name: &str| PyKeyError::new_err(format!("a table of metrics has a column `{name}`"));
    let column = |name: &str| metrics.column(name).ok_or_else(|| missing(name));
    let (Column::Whole(points), Column::Text(names), Column::Number(values)) =
        (column("point")?, column("metric")?, column("value")?)
    else {
        return Err(PyValueError::new_err(
            "the columns point, metric and value have the types uint64, utf8 and double",
        ));
    };
    // Metrics keep the order of their first appearance at each point.
    let (mut groups, mut order) = (BTreeMap::<(u64, &str), (usize, Vec<f64>)>::new(), Vec::new());
    for (row, ((point, name), value)) in points.iter().zip(names).zip(values).enumerate() {
        let group = groups.entry((*point, name)).or_insert_with(|| {
            order.push((*point, name.as_str()));
            (row, Vec::new())
        });
        group.1.push(*value);
    }
    order.sort_by_key(|(point, _)| *point);
    let first_rows: Vec<usize> = order.iter().map(|key| groups[key].0).collect();
    let keys =
        metrics.columns.iter().filter(|(name, _)| !["seed", "metric", "value"].contains(&name.as_str()));
    let mut columns: Vec<(String, Column)> =
        keys.map(|(name, column)| (name.clone(), picked(column, &first_rows))).collect();
    columns.push(("metric".into(), Column::Text(order.iter().map(|(_, name)| (*name).to_owned()).collect())));
    let estimates: Vec<Estimate> = order.iter().map(|key| Estimate::of(&groups[key].1)).collect();
    let interval = |estimate: &Estimate, values: &[f64]| match estimate.runs {
        0 | 1 => (f64::NAN, f64::NAN),
        _ => stats::student_interval(values, confidence),
    };
    let finite =
        |key| groups[key].1.iter().copied().filter(|value: &f64| value.is_finite()).collect::<Vec<_>>();
    let intervals: Vec<(f64, f64)> =
        order.iter().zip(&estimates).map(|(key, estimate)| interval(estimate, &finite(key))).collect();
    let numbers = |of: &dyn Fn(&Estimate) -> f64| Column::Number(estimates.iter().map(of).collect());
    columns.push((
        "runs".into(),
        Column::Whole(estimates.iter().map(|estimate| estimate.runs as u64).collect()),
    ));
    columns.push(("mean".into(), numbers(&|estimate| estimate.mean)));
    columns.push(("deviation".into(), numbers(&|estimate| estimate.deviation)));
    columns.push(("low".into(), Column::Number(intervals.iter().map(|ends| ends.0).collect())));
    columns.push(("high".into(), Column::Number(intervals.iter().map(|ends| ends.1).collect())));
    Table::new(TableOfResults { name: "summary".to_owned(), columns })
}

/// Returns the values of a column in these rows.
fn picked(column: &Column, rows: &[usize]) -> Column {
    match column {
        Column::Whole(values) => Column::Whole(rows.iter().map(|row| values[*row]).collect()),
        Column::Number(values) => Column::Number(rows.iter().map(|row| values[*row]).collect()),
        Column::Text(values) => Column::Text(rows.iter().map(|row| values[*row].clone()).collect()),
    }
}
