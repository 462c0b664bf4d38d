"""How a run in rounds ends: its folder, its summary, what the Prefect UI shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flows.conversation import Conversation
from flows.finish import run_folder, show_in_prefect, steps_of, write_json, write_records
from schemas.config import RunConfig
from schemas.manifest import Record
from storage.store import Store
from tasks.page.facts import RoundsFacts
from tasks.page.render import summary_markdown
from tasks.page.rounds_words import question
from tasks.report import peak_rss_mb, read_facts
from tasks.timeline import Timeline


def finish_rounds(
    store: Store,
    config: RunConfig,
    records: Sequence[Record],
    page: Record,
    said: Conversation,
    timeline: Timeline,
) -> dict[str, Any]:
    """Write the run's folder and tell Prefect's UI; returns the summary that `ldptree run --json` prints."""
    by_step = {record.step: record for record in (*records, page)}
    facts = read_facts(store, page["page"])
    assert isinstance(facts, RoundsFacts)
    run = run_folder(store)
    model = by_step["learn"]["model"]
    store.replace(run / "report.html", store.file(page["page"], "report.html").read_bytes())
    store.replace(run / "model.json", store.file(model, "model.json").read_bytes())
    questions = [json.loads(store.file(q["question"], "question.json").read_bytes()) for q in said.asked]
    store.replace(run / "questions.json", json.dumps(questions, indent=1).encode())
    write_records(store, run, (*records, page))
    summary = summary_of(store, config, facts, by_step, said, timeline) | {
        "run": run.name,
        "report": str(run / "report.html"),
        "model": str(run / "model.json"),
    }
    write_json(store, run / "run.json", summary)
    show_in_prefect(summary_markdown(facts), facts.title, summary)
    return summary


def summary_of(
    store: Store,
    config: RunConfig,
    facts: RoundsFacts,
    by_step: Mapping[str, Record],
    said: Conversation,
    timeline: Timeline,
) -> dict[str, Any]:
    """The run in one JSON object, without its paths."""
    shown, scored = by_step["show"], by_step.get("evaluate_shown")
    content = json.loads(store.file(scored["scores"], "scores.json").read_bytes()) if scored else {}
    metrics = {
        key: {
            name: value for name, value in score.items() if name in ("mse", "mae", "r2") and value is not None
        }
        for key, score in content.get("scores", {}).items()
    }
    return {
        "name": config.name,
        "estimator": config.model.estimator,
        "epsilon": config.privacy.epsilon,
        "epsilon_exact": facts.epsilon_exact,
        "epsilon_spent": facts.epsilon_spent,
        "largest_spend": said.spent.largest,
        "mechanism": ", ".join(dict.fromkeys(one.mechanism for one in facts.asked)),
        "form": "reports",
        "seeded": config.is_seeded,
        "n_private": shown.facts["n_private"],
        "n_public": by_step["scale"].facts["n_public"],
        "n_test": content.get("n_test", 0),
        "n_features": shown.facts["n_features"],
        "columns_left_out": facts.columns_left_out,
        "rounds": [
            {"about": question(one, facts), "epsilon": one.epsilon, "n_asked": one.n_asked}
            for one in facts.asked
        ],
        "metrics": metrics.get("ours", {}),
        "baselines": {key: value for key, value in metrics.items() if key != "ours"},
        "steps": steps_of(timeline, by_step),
        "seconds": round(timeline.elapsed, 2),
        "peak_rss_mb": peak_rss_mb(),
    }
