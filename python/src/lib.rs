//! The native part of the Python package `faircast`. The documented interface is the Python code in `faircast/`.

mod errors;
mod own;
mod repro;
mod running;
mod scenario;
mod statistics;
mod table;
mod transfers;

/// Functions and classes that the Python code of the package uses.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::errors::{RunError, ScenarioError};
    #[pymodule_export]
    use crate::own::{Data, Decision, Operating, Packet, Report, Representative, Sent, register};
    #[pymodule_export]
    use crate::repro::{entries, reproduce};
    #[pymodule_export]
    use crate::running::{
        Results, Stop, run, run_into, run_until, stack_runs, tables_of_runs, write_parquet,
    };
    #[pymodule_export]
    use crate::scenario::{Scenario, schema, template, templates};
    #[pymodule_export]
    use crate::statistics::{bootstrap, mser5, student, summary, trend};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::transfers::{Session, TransferError, generate_key, receive, send};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Hash of the code that determines the results of runs.
    #[pymodule_export]
    const CODE: &str = faircast_experiments::run::stored_results::CODE;
    /// Names of all tables of results, in their order.
    #[pymodule_export]
    const TABLES: &[&str] = faircast_experiments::results::TABLES;
}
