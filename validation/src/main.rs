//! `make validate`: runs the networks of ns-2 and ns-3, prints the differences, and writes `docs/validation.md` on request.

use faircast_validation::compare::Verdict;
use faircast_validation::page;
use faircast_validation::reference::{Failure, Reference};
use faircast_validation::run::{Compared, run_all};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: faircast-validation [--write] [WORD...]

Runs the cases whose names contain all WORDs, or all cases. Ends with 1 if a value lies outside its tolerance and no
reason is stated, or a reason is stated that nothing needs. --write, or FAIRCAST_BLESS=1, writes docs/validation.md.";

fn main() -> ExitCode {
    let (options, words): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let write = !options.is_empty() || std::env::var_os("FAIRCAST_BLESS").is_some();
    if options.iter().any(|option| option != "--write") || (write && !words.is_empty()) {
        eprintln!("{USAGE}\n\nThe page has all cases: no WORD with it.");
        return ExitCode::from(2);
    }
    match go(
        &words,
        write.then(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/validation.md")).as_deref(),
    ) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(2)
        }
    }
}

fn go(words: &[String], page: Option<&Path>) -> Result<ExitCode, Failure> {
    let reference = Reference::read()?;
    let all = run_all(&reference, &|name| words.iter().all(|word| name.contains(word.as_str())), None)?;
    print!("{}", page::terminal(&all));
    if let Some(path) = page {
        std::fs::write(path, page::markdown(&reference, &all))?;
    }
    let outside = all.iter().flat_map(|it| &it.lines).any(|line| line.verdict() == Verdict::Outside);
    let needless: Vec<_> = all.iter().flat_map(Compared::needless_reasons).collect();
    for (case, why) in &needless {
        eprintln!("not needed any more, take it out of validation/supplement.json: {case}: {why}");
    }
    Ok(if outside || !needless.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
