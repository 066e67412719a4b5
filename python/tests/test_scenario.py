"""Reading and changes of scenarios."""

from __future__ import annotations

import pickle

import pytest

import faircast as fc


def test_faults_have_line_column_and_advice() -> None:
    text = fc.Scenario.template("dumbbell").text.replace("duration", "duratoin")
    with pytest.raises(fc.ScenarioError) as caught:
        fc.Scenario.parse(text, "mine.toml")
    faults = caught.value.faults
    fault = next(fault for fault in faults if "duratoin" in fault["message"])
    assert fault["file"] == "mine.toml"
    assert text.splitlines()[fault["line"] - 1][fault["column"] - 1 :].startswith("duratoin")
    assert "duration" in fault["help"]
    assert "mine.toml" in str(caught.value)


def test_all_faults_are_reported_together() -> None:
    with pytest.raises(fc.ScenarioError) as caught:
        fc.Scenario.template("dumbbell").with_({"flow.multicast.scheme": "ormc", "flow.tcp.kind": "tcp-rneo"})
    assert len(caught.value.faults) == 2


def test_unknown_paths_are_errors() -> None:
    with pytest.raises(fc.ScenarioError, match="flow.nobody"):
        fc.Scenario.template("dumbbell").with_({"flow.nobody.scheme": "ormcc"})


def test_missing_files_are_errors(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        fc.Scenario.load(tmp_path / "none.toml")
    assert str(caught.value.filename) == str(tmp_path / "none.toml")


def test_dictionary_gives_the_scenario_of_the_file(dumbbell: fc.Scenario) -> None:
    tomllib = pytest.importorskip("tomllib")
    again = fc.Scenario.from_dict(tomllib.loads(dumbbell.text))
    assert again.fingerprint() == dumbbell.fingerprint()


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}])
def test_values_without_toml_form_are_errors(value: object) -> None:
    with pytest.raises(TypeError):
        fc.Scenario.from_dict({"duration": value})


def test_keyword_arguments_set_keys(dumbbell: fc.Scenario) -> None:
    changed = dumbbell.with_(flow__multicast__scheme="tfmcc", duration="10 s")
    assert changed.fingerprint() == dumbbell.with_({"flow.multicast.scheme": "tfmcc"}, duration="10 s").fingerprint()
    assert changed.fingerprint() != dumbbell.fingerprint()


def test_sweep_gives_points(swept: fc.Scenario) -> None:
    assert len(swept.points) == 6
    assert swept.points[3]["scheme"] == "tfmcc"


def test_scenarios_can_be_pickled(swept: fc.Scenario) -> None:
    assert pickle.loads(pickle.dumps(swept)).fingerprint(5) == swept.fingerprint(5)


def test_schema_is_json_schema() -> None:
    assert "duration" in fc.Scenario.schema()["properties"]


def test_scenario_does_not_change(dumbbell: fc.Scenario) -> None:
    dumbbell.points[0]["x"] = 1
    assert dumbbell.points == [{}]


def test_value_of_an_axis_occurs_once(dumbbell: fc.Scenario) -> None:
    with pytest.raises(fc.ScenarioError, match="has a value twice"):
        dumbbell.with_sweep({"flow.multicast.scheme": ["ormcc", "tfmcc", "ormcc"]})


def test_pickled_scenario_is_equal(dumbbell: fc.Scenario) -> None:
    same = pickle.loads(pickle.dumps(dumbbell))
    assert same == dumbbell and hash(same) == hash(dumbbell)
    assert same != dumbbell.with_(duration="21 s")


def test_memory_of_a_template_may_be_larger() -> None:
    with pytest.raises(fc.ScenarioError, match=r"in Python:\s+memory=\d+_000_000_000"):
        fc.Scenario.template("dumbbell").with_(duration="6000000 s")
    assert fc.Scenario.template("dumbbell", memory=20_000_000_000).with_(duration="6000000 s")
