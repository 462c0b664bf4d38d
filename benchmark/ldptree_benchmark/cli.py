"""`ldptree benchmark` and its options, at the entry point by which the command line finds it. `command` does the work.

Nothing heavy is imported here, so that help and mistakes answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from flows.command.cli import WORK, WorkFolder

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _suites(incomplete: str) -> list[str]:
    from ldptree_benchmark.suite import suites

    return [name for name in suites() if name.startswith(incomplete)]


@app.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: ldptree benchmark smoke --reps 1",
)
def benchmark(
    suite: Annotated[
        str, typer.Argument(help="A suite by its name, or a TOML file.", autocompletion=_suites)
    ] = "",
    only: Annotated[
        str | None, typer.Option("--only", metavar="SET,...", help="These data sets alone.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="METHOD,...", help="These methods alone.")
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option("--reps", metavar="N", help="Repetitions, each with rows and coins of its own."),
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option("--epsilon", metavar="EPSILON,...", help="These in place of the suite's.")
    ] = None,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Try each method's candidates, and pick on TEST rows, as papers did."),
    ] = False,
    work: WorkFolder = WORK,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Cells computed at once.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="Say which suites there are, and run none.")
    ] = False,
) -> None:
    """Compare methods on the same rows of data sets, by a suite. Ends with 1 if a claim is not held."""
    from ldptree_benchmark.command import Asked, benchmark_here, list_suites
    from schemas.tables import RunnerConfig

    if list_all or not suite:
        for line in list_suites():
            print(line)
        return
    asked = Asked(
        only=only, methods=methods, repetitions=repetitions, epsilons=epsilons, is_paper=paper,
        run=RunnerConfig(workers=workers),
    )  # fmt: skip
    if not benchmark_here(suite, asked, work, as_json=as_json):
        raise typer.Exit(1)
