//! Our own runs of ns-2: references with other random seeds, additional cases, and reasons.

use super::{Failure, SUPPLEMENT, cases_of, given, unknown};
use crate::case::{Again, Case, Net, Reason, Rule, Section, Value};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Description of the method, in sentences.
    pub how: Vec<String>,
    /// Cases of the references with other random seeds.
    again: Vec<Again>,
    /// Networks that are not in the references.
    own: Vec<Own>,
    /// Reasons for values outside the tolerance.
    reasons: Vec<Reason>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    name: String,
    about: String,
    runs: u32,
    rule: Rule,
    window_s: (f64, f64),
    network: Net,
    values: BTreeMap<String, Value>,
}

/// Name of the section.
const OWN: &str = "Ours";

impl File {
    /// Adds the runs and reasons to the cases, and the additional cases as a section.
    pub fn add_to(self, sections: &mut Vec<Section>) -> Result<(), Failure> {
        let about: Vec<_> = self.own.iter().map(|own| format!("{}: {}", own.name, own.about)).collect();
        let cases = self.own.into_iter().enumerate().map(|(number, own)| Case {
            name: format!("{OWN}: {}", own.name),
            rows: vec![number],
            runs: own.runs,
            rule: own.rule,
            window_s: own.window_s,
            network: Ok(own.network),
            values: own.values.iter().map(|(quantity, value)| given(quantity, *value)).collect(),
            again: None,
            reasons: Vec::new(),
        });
        let cases: Vec<Case> = cases.collect();
        sections.push(Section {
            name: OWN,
            place: "supplement.json, own".to_owned(),
            rows: cases.len(),
            described: about,
            cases,
        });
        for again in self.again {
            let case = find(sections, &again.case, "again")?;
            if case.again.is_some() {
                return Err(unknown(SUPPLEMENT, format!("again: {:?} is there twice", again.case)));
            }
            let known = |quantity: &String| case.values.iter().any(|given| given.quantity == *quantity);
            if let Some(quantity) = again.values.keys().find(|quantity| !known(quantity)) {
                return Err(unknown(
                    SUPPLEMENT,
                    format!("again: {:?} has no quantity {quantity:?}", again.case),
                ));
            }
            case.again = Some(again);
        }
        for reason in &self.reasons {
            if let Some(other) = &reason.shown_by {
                find(sections, other, "reasons")?;
            }
            let case = find(sections, &reason.case, "reasons")?;
            let known = |quantity: &String| case.values.iter().any(|given| given.quantity == *quantity);
            if let Some(quantity) = reason.quantities.iter().find(|quantity| !known(quantity)) {
                return Err(unknown(
                    SUPPLEMENT,
                    format!("reasons: {:?} has no quantity {quantity:?}", reason.case),
                ));
            }
        }
        for case in sections.iter_mut().flat_map(|section| &mut section.cases) {
            case.reasons = cases_of(&case.name, &self.reasons);
        }
        Ok(())
    }
}

fn find<'a>(sections: &'a mut [Section], name: &str, part: &str) -> Result<&'a mut Case, Failure> {
    let mut cases = sections.iter_mut().flat_map(|section| &mut section.cases);
    let missing = || unknown(SUPPLEMENT, format!("{part}: there is no case {name:?}"));
    cases.find(|case| case.name == name).ok_or_else(missing)
}
