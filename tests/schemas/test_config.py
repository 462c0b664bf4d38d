"""A configuration is checked whole before anything starts, and every mistake is named by its key."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ldptree.errors import ConfigError
from schemas.config import find, load, packaged, parse

LPCT = {"estimator": "lpct"}


def raw(**changes):
    """The smallest configuration, with tables laid over it."""
    content = {
        "name": "mine",
        "dataset": {"name": "mine", "path": "rows.csv", "target": "paid", "public": "zone = 'a'"},
        "privacy": {"epsilon": 1.0},
    }
    return {
        **content,
        **{k: content.get(k, {}) | v if isinstance(v, dict) else v for k, v in changes.items()},
    }


def message(**changes) -> str:
    with pytest.raises(ConfigError) as fault:
        parse(raw(**changes), source="run.toml")
    assert fault.value.exit_code == 2
    return str(fault.value)


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def test_ten_lines_make_a_run_and_the_rest_has_defaults():
    config = parse(raw())
    assert (config.model.estimator, config.model.settings.partition, config.model.settings.depth) == (
        "auto",
        "cart",
        "auto",
    )
    assert (config.privacy.mechanism, config.privacy.outside) == ("auto", "clip")
    assert config.privacy.max_report_bytes == 2 * 2**30
    assert (config.dataset.holder, config.dataset.test_fraction, config.evaluate) == ("row", 0.2, True)


@pytest.mark.parametrize(
    "changes", [{"release": True}, {"evaluate": False}, {"campaign": {"name": "weekly"}}]
)
def test_the_coins_of_whoever_is_asked_in_earnest_come_from_the_system(changes):
    config = parse(raw(**changes))
    assert (config.is_trial, config.noise_seed) == (False, None)
    assert parse(raw(simulation={"noise_seed": 0}, **changes)).is_seeded


def test_a_trial_is_seeded_by_its_name_or_as_it_says():
    one, other = parse(raw()), parse(raw(name="other"))
    assert one.is_trial
    assert one.noise_seed == parse(raw(seed=3)).noise_seed != other.noise_seed
    assert parse(raw(simulation={"noise_seed": 0})).noise_seed == 0


@pytest.mark.parametrize("name", sorted(packaged()))
def test_every_packaged_configuration_is_valid(name):
    assert load(name).name == name
    assert find(f"{name}.toml") == packaged()[name]


def test_the_noise_of_trials_alone_is_seeded_in_packaged_configurations():
    """The campaign that is deployed as it is protects its holders: nobody has to take a seed out of it."""
    for name in packaged():
        config = load(name)
        assert config.is_seeded is config.is_trial is (name != "weekly")


@pytest.mark.parametrize("name", ["wine", "wine.toml"])
def test_a_folder_does_not_hide_a_packaged_configuration_of_its_name(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert find(name) == packaged()["wine"]
    with pytest.raises(ConfigError, match=r"wine.*: is a folder.* Did you mean wine\?$"):
        find(f"./{name}")


EPSILON, CAP = (
    "epsilon must be a number above 0 and at most 64",
    "the lifetime cap must be above 0 and at most 1000",
)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("epsilon", value, EPSILON) for value in (0.0, 0, -1.0, math.nan, math.inf, -math.inf, 1e9, 64.1)]
    + [("lifetime_epsilon", value, CAP) for value in (0.0, -1.0, math.nan, math.inf, 1001.0)]
    + [("epsilon", "two", "'two'"), ("epsilon", True, "true and false"), ("epsilon", [1], "[1]")],
)
def test_an_amount_that_is_no_budget_is_refused_by_its_key(key, value, said):
    told = message(privacy={key: value})
    assert f"run.toml: 1 problem\n  privacy.{key}: " in told
    assert said in told
    assert said != EPSILON or repr(float(value)) in told


def test_epsilon_is_1_unless_another_is_named():
    without = {key: table for key, table in raw().items() if key != "privacy"}
    assert parse(without).privacy.epsilon == parse(without | {"privacy": {}}).privacy.epsilon == 1.0


@pytest.mark.parametrize(
    ("changes", "key", "near"),
    [
        ({"privacy": {"epsilonn": 1.0}}, "privacy.epsilonn", "did you mean epsilon?"),
        ({"model": {"depht": 3}}, "model.depht", "did you mean depth?"),
        ({"dataset": {"targets": "x"}}, "dataset.targets", "did you mean target?"),
        ({"privcy": {"epsilon": 1.0}}, "privcy", "did you mean privacy?"),
        ({"simulation": {"seed": 1}}, "simulation.seed", "did you mean noise_seed?"),
        ({"epsilon": 1.0}, "epsilon", "did you mean privacy.epsilon?"),
        ({"eps": 1.0}, "eps", "did you mean privacy.epsilon?"),
        ({"dept": 3}, "dept", "did you mean model.depth?"),
        ({"model": LPCT | {"epsilon": 3}}, "model.epsilon", "did you mean privacy.epsilon?"),
        ({"zzz": 3}, "zzz", "known here: name, "),
        ({"model": {"zzz": 1}}, "model.zzz", "known here: estimator, partition, depth"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(changes, key, near):
    assert f"1 problem\n  {key}: unknown key; {near}" in message(**changes)


def test_an_unknown_word_is_told_with_the_nearest_known_one():
    said = message(privacy={"epsilon": 1.0, "mechanism": "oeu"})
    assert said.endswith("got 'oeu'; did you mean 'oue'?")


def test_a_word_that_is_like_none_is_told_without_a_guess():
    for word in ("zzz", 7):
        assert message(privacy={"epsilon": 1.0, "mechanism": word}).endswith(
            f"or 'signed_subset', got {word!r}"
        )


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"seed": -1}, "seed", "greater than or equal to 0, got -1"),
        ({"seed": "seven"}, "seed", "got 'seven'"),
        ({"name": "a/b"}, "name", "got 'a/b'"),
        ({"evaluate": "maybe"}, "evaluate", "got 'maybe'"),
        ({"model": {"estimator": "forest"}}, "model.estimator", "'lpct'"),
        (
            {"privacy": {"mechanism": "gauss"}},
            "privacy.mechanism",
            "'auto', 'grr', 'oue', 'sue', 'ss', 'olh', 'discrete_laplace', 'randomized_response', 'laplace' or 'signed_subset'",
        ),
        (
            {
                "privacy": {"mechanism": "signed_subset"},
                "dataset": {"classes": ["a", "b", "c"]},
                "model": LPCT,
            },
            "privacy.mechanism",
            'is for two classes, and there are 3; use "auto"',
        ),
        (
            {
                "privacy": {"mechanism": "signed_subset"},
                "model": {"estimator": "correction", "label_levels": 4},
            },
            "model.label_levels",
            '"signed_subset" rounds to 2 levels, not to 4; leave it out',
        ),
        (
            {"privacy": {"mechanism": "randomized_response"}, "model": {"estimator": "correction"}},
            "privacy.mechanism",
            '"randomized_response" is not for a residual',
        ),
        (
            {
                "privacy": {"mechanism": "signed_subset"},
                "model": {"estimator": "public_features"},
                "features": {"private": []},
            },
            "privacy.mechanism",
            "a family that asks in rounds has its own; leave it out",
        ),
        ({"privacy": {"outside": "wrap"}}, "privacy.outside", "'clip' or 'drop'"),
        ({"privacy": {"max_report_bytes": -1}}, "privacy.max_report_bytes", "got -1"),
        ({"simulation": {"noise_seed": -3}}, "simulation.noise_seed", "got -3"),
        ({"evaluation": {"redraws": 1001}}, "evaluation.redraws", "got 1001"),
        ({"campaign": {"name": "../up"}}, "campaign.name", "got '../up'"),
        ({"campaign": "trips"}, "campaign", "a table of keys, got 'trips'"),
        ({"dataset": {"test_fraction": 1.0}}, "dataset.test_fraction", "less than 1, got 1.0"),
        ({"dataset": {"fill": "guess"}}, "dataset.fill", "'drop', 'median' or 'level'"),
        ({"dataset": {"on_bad_rows": "skip"}}, "dataset.on_bad_rows", "'stop' or 'quarantine'"),
        ({"dataset": {"public": ""}}, "dataset.public", "say which rows are public"),
        ({"dataset": {"target": 3}}, "dataset.target", "got 3"),
        ({"dataset": {"drop": ["a", "a"]}}, "dataset.drop", "named twice: a"),
        ({"dataset": {"holder": "paid"}}, "dataset", '"paid" is the target'),
        ({"dataset": {"ranges": {"fare": [3, 1]}}}, "dataset.ranges", '"fare": [3.0, 1.0] is not a range'),
    ],
)
def test_every_bad_value_gives_one_line_with_the_path_of_its_key(changes, key, said):
    lines = message(**changes).splitlines()
    assert lines[0] == "run.toml: 1 problem"
    assert len(lines) == 2
    assert lines[1].startswith(f"  {key}")
    assert said in lines[1]


def test_all_problems_are_listed_at_once():
    said = message(
        seed=-1,
        privacy={"epsilon": 0, "outside": "wrap"},
        model={"depht": 2, "prune": "hard"},
        dataset={"public": "random 2", "test_fraction": 7},
    )
    assert said.startswith("run.toml: 7 problems\n")
    keys = [line.split(":")[0].strip() for line in said.splitlines()[1:]]
    assert keys == [
        "dataset.public",
        "dataset.test_fraction",
        "model.depht",
        "model.prune",
        "privacy.epsilon",
        "privacy.outside",
        "seed",
    ]


def test_an_unknown_data_set_is_one_problem_beside_the_others():
    said = message(dataset={"name": "sensus", "path": None}, privacy={"epsilon": -1})
    assert "dataset.path" in said  # a path was given, so the name is one's own
    content = raw(privacy={"epsilon": -1}) | {"dataset": {"name": "sensus"}}
    with pytest.raises(ConfigError) as fault:
        parse(content)
    assert "2 problems" in str(fault.value)
    assert "dataset.name: 'sensus' is not in the catalogue (did you mean 'census'?)" in str(fault.value)


@pytest.mark.parametrize("content", [{}, {"name": "mine"}, {"dataset": 3, "privacy": 4, "name": 5}])
def test_a_configuration_of_other_things_is_a_configuration_error(content):
    with pytest.raises(ConfigError, match="problem"):
        parse(content)


def test_assignments_are_laid_over_the_file(tmp_path):
    path = written(tmp_path, 'name = "m"\n[dataset]\nname = "taxi"\nrows = 10\n[privacy]\nepsilon = 1.0\n')
    config = load(
        path,
        [
            "privacy.epsilon=3",
            "model.depth=4",
            "dataset.drop=['tips']",
            "privacy.mechanism=oue",
            "simulation.noise_seed=5",
        ],
    )
    assert (config.privacy.epsilon, config.model.settings.depth, config.dataset.drop) == (3.0, 4, ("tips",))
    assert (config.privacy.mechanism, config.simulation.noise_seed) == ("oue", 5)


def test_a_key_can_be_taken_away(tmp_path):
    config = load("wine", ["model.estimator=correction", "model.label_range="])
    assert config.model.estimator == "correction"
    assert config.model.settings.label_range is None
    assert load("wine", ["model=", "model.estimator=lpdt"]).model.settings.label_range is None
    assert load("wine", ["simulation.noise_seed= "]).simulation.noise_seed is None
    assert load("wine", ["privacy.epsilon="]).privacy.epsilon == 1.0


@pytest.mark.parametrize("key", ["model.rho", "modl.rho", "seed.noise", "simulation.noise_seeed"])
def test_only_a_key_that_is_there_can_be_taken_away(key):
    with pytest.raises(ConfigError, match="no such key to take away"):
        load("wine", [f"{key}="])


def test_what_is_to_be_left_out_is_told_with_how_to_do_it():
    """Where assignments are in play, and of a key that the file sets: what was typed need only not be typed."""
    remedy = r"model\.label_range: is for .*leave it out .*\(--set model\.label_range= removes it\)"
    with pytest.raises(ConfigError, match=remedy):
        load("wine", ["model.estimator=lpct"])
    for config, typed in (("wine", ["model.base=tree"]), ("quickstart", ["model.label_range=[0, 1]"])):
        with pytest.raises(ConfigError) as told:
            load(config, typed)
        assert "leave it out" in str(told.value)
        assert "removes it" not in str(told.value)


@pytest.mark.parametrize(
    ("assignment", "said"),
    [(one, "write KEY=VALUE") for one in ("privacy.epsilon", "=3", ".epsilon=3", "privacy..epsilon=3")]
    + [
        ("seed.noise=3", "seed is a value, not a table"),
        ("privacy.epsilon=nan", r"privacy\.epsilon: epsilon must be a number above 0"),
        ("privacy.epsilon=1e-300", "at least 1e-06"),  # what would stop a run after its reports
        (f"seed={2**32}", "seed"),
        ('name=""', r"name: use letters, .* got ''"),  # an empty text is no absence
    ],
)
def test_an_assignment_that_is_none_or_a_mistake_is_refused_as_a_written_one(assignment, said):
    with pytest.raises(ConfigError, match=said):
        load("quickstart", [assignment])


def test_a_configuration_that_is_not_there_gets_a_near_name(tmp_path):
    with pytest.raises(ConfigError, match=r"no such file.*Did you mean quickstart\?"):
        load("quikstart")
    with pytest.raises(ConfigError, match="is a folder"):
        load(tmp_path)


def test_a_file_that_is_not_toml_or_not_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="not TOML"):
        load(written(tmp_path, "name = \n"))
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(path)


def test_a_file_that_a_windows_editor_saved_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    text = 'name = "m"\n[dataset]\nname = "taxi"\n[privacy]\nepsilon = 1.0\n'
    path.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    assert load(path).name == "m"


def test_relative_data_paths_start_at_the_configuration(tmp_path):
    path = written(
        tmp_path,
        'name = "m"\n[dataset]\nname = "m"\npath = ["rows/*.csv", "/data/a.csv"]\ntarget = "y"\npublic = "random 0.5"\n'
        "[privacy]\nepsilon = 1.0\n",
    )
    assert load(path).dataset.path == (str(tmp_path / "rows/*.csv"), "/data/a.csv")


def test_a_lifetime_cap_has_room_for_the_run_that_states_it():
    assert parse(raw(privacy={"lifetime_epsilon": 1.0})).privacy.lifetime_epsilon == 1.0
    said = message(privacy={"epsilon": 2.0, "lifetime_epsilon": 1.5})
    assert "1 problem\n  privacy.lifetime_epsilon: 1.5 is less than this run's epsilon = 2.0" in said


def test_paths_of_a_packaged_configuration_are_taken_from_where_it_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load("weekly").dataset.path == (str(tmp_path / "incoming/*.csv"),)
    copied = tmp_path / "mine" / "weekly.toml"
    copied.parent.mkdir()
    copied.write_bytes(packaged()["weekly"].read_bytes())
    assert load(copied).dataset.path == (str(copied.parent / "incoming/*.csv"),)
