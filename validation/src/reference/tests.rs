//! Checks that no part of the files is ignored.

use super::{Failure, NS2, QUEUES, Reference};
use crate::case::{Case, Section};
use serde_json::Value as Json;

const NS2_TEXT: &str = include_str!("../../reference/ns2.json");
const QUEUES_TEXT: &str = include_str!("../../reference/queues.json");
const EMPTY: &str = r#"{"how": [], "again": [], "own": [], "reasons": []}"#;

fn sections() -> Vec<Section> {
    Reference::of(NS2_TEXT, QUEUES_TEXT, EMPTY).expect("the package's own references").sections
}

/// Returns the rows of a section in its file.
fn rows(place: &str) -> Vec<Json> {
    let (file, section) = place.split_once(", ").expect("file and section");
    let text = if file == "ns2.json" { NS2_TEXT } else { QUEUES_TEXT };
    let json: Json = serde_json::from_str(text).expect("JSON");
    let section = &json[section];
    let rows = section.get("rows").or_else(|| section.get("aggregates")).and_then(Json::as_array);
    rows.expect("rows").clone()
}

#[test]
fn every_row_belongs_to_one_case() {
    for section in sections().iter().filter(|section| section.name != "Ours") {
        let mut all: Vec<usize> = section.cases.iter().flat_map(|case| case.rows.clone()).collect();
        all.sort_unstable();
        let count = rows(&section.place).len();
        assert_eq!(all, (0..count).collect::<Vec<_>>(), "{}", section.place);
        assert_eq!(section.rows, count, "{}", section.place);
    }
}

/// Keys that identify a row. All other keys are measured values.
const NAMES: &[&str] = &[
    "exp",
    "variant",
    "delack",
    "profile",
    "T_s",
    "buf_pkts",
    "queue",
    "n",
    "n_seeds",
    "seeds",
    "proto",
    "pkt_B",
    "tcp",
    "n_each",
    "cbr_bps",
    "N",
    "mproto",
    "ecn",
    "seed",
    "bw_bps",
    "qref_pkts",
    "t0_s",
    "fine",
    "a",
    "b",
    "w_hz",
    "limit_pkts",
    "sack",
    "udp_share",
    "simulator",
];

#[test]
fn every_case_has_all_values_of_its_row() {
    for section in sections().iter().filter(|section| section.name != "Ours") {
        let rows = rows(&section.place);
        for case in &section.cases {
            let row = rows[case.rows[0]].as_object().expect("a row");
            let values = row.keys().filter(|name| !NAMES.contains(&name.as_str())).count();
            assert_eq!(case.values.len(), values, "{}, row {}: {}", section.place, case.rows[0], case.name);
        }
    }
}

#[test]
fn names_of_cases_are_unique() {
    let sections = sections();
    let mut names: Vec<&str> =
        sections.iter().flat_map(|section| &section.cases).map(|case: &Case| case.name.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

fn failure(ns2: &str, queues: &str, supplement: &str) -> String {
    Reference::of(ns2, queues, supplement).map(|_| ()).expect_err("it is not understood").to_string()
}

#[test]
fn unknown_key_is_reported_with_its_position() {
    let section = NS2_TEXT.replacen("\"a_single_flow\"", "\"z_section\"", 1);
    let text = failure(&section, QUEUES_TEXT, EMPTY);
    assert!(text.contains(NS2) && text.contains("z_section") && text.contains("line "), "{text}");
    let field = QUEUES_TEXT.replacen("\"jain\"", "\"jane\"", 2);
    let text = failure(NS2_TEXT, &field, EMPTY);
    assert!(text.contains(QUEUES) && text.contains("jane") && text.contains("line "), "{text}");
    let queue = QUEUES_TEXT.replacen("\"queue\":\"RED515hard\"", "\"queue\":\"SRED\"", 1);
    let text = failure(NS2_TEXT, &queue, EMPTY);
    assert!(text.contains("a_ns2_disciplines, row 6") && text.contains("SRED"), "{text}");
    let described = NS2_TEXT.replacen("1 Mbit/s, 20 ms, DropTail", "2 Mbit/s, 20 ms, DropTail", 1);
    let text = failure(&described, QUEUES_TEXT, EMPTY);
    assert!(text.contains("a_single_flow") && text.contains("2 Mbit/s"), "{text}");
}

#[test]
fn supplement_for_an_unknown_case_is_an_error() {
    let reason = r#"{"case": "One flow: Cubic", "quantities": [], "why": "", "shown_by": null}"#;
    let supplement = EMPTY.replace("\"reasons\": []", &format!("\"reasons\": [{reason}]"));
    assert!(failure(NS2_TEXT, QUEUES_TEXT, &supplement).contains("Cubic"));
    let found: Result<_, Failure> = Reference::read();
    assert!(found.is_ok(), "{found:?}");
}
