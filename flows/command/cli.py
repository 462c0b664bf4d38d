"""The commands of `ldptree` and their options. What a run does is in `train_flow`, how a command ends in `main`.

Nothing heavy is imported here, so that help and mistakes answer at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.command.settings import CommandWithSettings
from flows.command.streams import print_file, print_json
from ldptree.errors import BudgetError, ConfigError
from schemas.named_files import shown_path
from storage.machine_faults import check_working_directory
from storage.objects.addresses import bucket_address, refuse_bucket

if TYPE_CHECKING:
    from schemas.config import RunConfig

app = typer.Typer(
    name="ldptree",
    help="Decision trees learned from private records that nobody sees, run as a data pipeline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
datasets_app = typer.Typer(help="The catalogue of data sets.", no_args_is_help=True)
app.add_typer(datasets_app, name="datasets")

WORK = Path("work")
_WORK_HELP = "The work folder: artifacts, runs, Prefect's database."
WorkFolder = Annotated[Path, typer.Option("--work", help=_WORK_HELP, envvar="LDPTREE_WORK")]
Work = Annotated[
    Path,
    typer.Option("--work", help=f"{_WORK_HELP} Or a bucket, s3://NAME/PREFIX.", envvar="LDPTREE_WORK"),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and Prefect's log.")]


def _configs(incomplete: str) -> list[str]:
    from schemas.config import packaged

    return [name for name in packaged() if name.startswith(incomplete)]


def _sets(incomplete: str) -> list[str]:
    from schemas.catalogue import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def _suites(incomplete: str) -> list[str]:
    from schemas.benchmark.suite import suites

    return [name for name in suites() if name.startswith(incomplete)]


def _mechanisms(incomplete: str) -> list[str]:
    from flows.command.audit import EVERY
    from ldptree.mechanisms import CHOICES

    names = dict.fromkeys((*CHOICES, *EVERY, "all"))
    return [name for name in names if name.startswith(incomplete)]


@app.command()
def init(
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, text, ARFF, these gzipped; Parquet; a workbook; a zip with one of these."
        ),
    ],
    target: Annotated[str, typer.Option("--target", help="The column to learn.")],
    public: Annotated[
        str | None,
        typer.Option(
            "--public", metavar="RULE", help="Which rows everybody may see; only they are looked at."
        ),
    ] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="The sheet of a workbook.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The configuration to write; NAME.toml by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Ask what the values do not tell.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Look at some rows of a file, and write a configuration that runs as it is."""
    from flows.command.init import init as look_and_write

    look_and_write(
        data, target=target, public=public, sheet=sheet, out=out, force=force, ask=ask, as_json=as_json
    )


@app.command(cls=CommandWithSettings)
def run(
    config: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a packaged one.", autocompletion=_configs)
    ] = "quickstart",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a key of the configuration; KEY= takes it away."
        ),
    ] = None,
    work: Work = WORK,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Shards computed at once; without it as many as there are CPUs."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help='Where shards are computed: "threads" or "ray".')
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    debug: Debug = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would run, and run nothing.")] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Draw real coins and charge the ledger, though private rows are scored on."
        ),
    ] = False,
) -> None:
    """Run a configuration, from raw files to one HTML page."""
    from schemas.config import load

    options = {"release": "true" if release else None, "run.engine": engine}
    assignments = [
        *(assignments or []),
        *(f"{key}={value}" for key, value in options.items() if value is not None),
    ]
    settings = load(config, [*assignments, *([] if workers is None else [f"run.workers={workers}"])])
    _look_at_named(settings)
    if plan:
        from flows.run_plan.show import show_plan

        show_plan(settings, _place(settings, work), as_json=as_json)
        return
    from flows.command.running import run_here

    run_here(
        settings,
        _place(settings, work),
        as_json=as_json,
        debug=debug,
        command=_command(config, assignments, work),
    )


@app.command(cls=CommandWithSettings)
def plan(
    config: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a packaged one.", autocompletion=_configs)
    ] = "quickstart",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the configuration, as with run."),
    ] = None,
    holders: Annotated[
        str | None, typer.Option("--holders", metavar="N,N", help="How many people would answer.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            metavar="E,E",
            help="What each would spend; by default 0.5,1,2,4 and what is configured.",
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            "--accuracy", help="Also say what it takes to reach this share right; without --detect."
        ),
    ] = None,
    mse: Annotated[
        float | None,
        typer.Option(
            "--mse", help="Also say what it takes to reach this mean squared error; without --detect."
        ),
    ] = None,
    detect: Annotated[
        float | None,
        typer.Option(
            "--detect",
            help="Suppose the public model wrong by this much, and say what it takes to find that; without --accuracy or --mse.",
        ),
    ] = None,
    work: Work = WORK,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="An HTML page to write.")] = None,
) -> None:
    """Say what a collection would bring, from public rows alone, before anybody is asked."""
    from flows.command.plan import Options, plan_and_print
    from schemas.config import load

    options = Options(holders=holders, epsilon=epsilon, accuracy=accuracy, mse=mse, detect=detect)
    settings = load(config, assignments)
    _look_at_named(settings)
    plan_and_print(settings, _place(settings, work), options, as_json=as_json, out=out)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A run's folder, or the model.json in it.")],
    data: Annotated[
        Path, typer.Argument(help="A data file: rows as the run takes them, with or without the label.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="Parquet or CSV to write (.parquet, .csv), a line a row: the class and probabilities, or the number and, for "
            "one tree, mean_lower and mean_upper: the interval of its cell's mean, no label of a row (90 %; it may hold less "
            "often where private people differ from public ones, see docs/measured/lpdt.md). Of a corrected model it is that of "
            "the correction: the public model's own error within a cell is not in it; what that one says alone is beside it.",
        ),
    ],
) -> None:
    """Score a data file with a model, streamed.

    Beside the run.json of its run, rows are read as the run read its own, derived columns too.
    """
    from tasks.predict import predict_file

    rows = predict_file(model, data, out, lambda message: typer.echo(message, err=True))
    typer.echo(f"{out}: {rows:,} rows", err=True)


@app.command()
def aggregate(
    protocol: Annotated[Path, typer.Option("--protocol", help="The protocol.json that was published.")],
    reports: Annotated[
        Path, typer.Option("--reports", help="A folder of reports: *.jsonl of clients, *.parquet.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder for the totals, as Parquet.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Add up reports from anywhere: those that answer the protocol; the others are counted."""
    from tasks.answers.receive import described, receive, write

    received = receive(protocol, reports)
    found = described(received)
    if out is not None:
        write(received, out)
    for message in filter(None, (received.passed_over_in_words(), received.refused_in_words())):
        typer.echo(message, err=True)
    if as_json:
        print_json(found)
        return
    at = "{} "
    for part in found.get("labels", [found]):
        if "residual" in found:
            of, label = found["residual"]["of"], part.get("label", found["residual"]["label"])
            asked, at = of if label is None else f"{of} = {label}", "at {}: "
            typer.echo(f"People by level of the public model's error on {asked} (truth less answer)")
        for cell in part["cells"]:
            counts = ", ".join(
                f"{at.format(_short(name) if 'residual' in found else name)}{n:,.1f} ± {cell['sd'][name]:,.1f}"
                for name, n in cell["totals"].items()
            )
            typer.echo(f"{cell['where']}: {counts}")
    typer.echo(f"{found['accepted']:,} reports accepted; {received.in_words()}", err=True)


def _short(text: str) -> str:
    return f"{float(text):.4g}"


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A run's folder, or the model.json in it.")],
    to: Annotated[str, typer.Option("--to", help="sql, json or dot.")],
    table: Annotated[str, typer.Option(help="The table the SQL scores.")] = "data",
) -> None:
    """Print a model as a SELECT that scores a DuckDB table, as JSON, or as a tree for Graphviz."""
    from tasks.predict import load_model

    loaded = load_model(model)
    match to:
        case "sql" if not table.strip():
            raise ConfigError('--table "": no table has this name. Name the one that the SQL is to score.')
        case "sql":
            print_file(loaded.to_sql(table))
        case "json":
            print_file(loaded.to_json())
        case "dot":
            print_file(loaded.to_dot())
        case _:
            raise ConfigError(f"--to {to}: write sql, json or dot")


@app.command()
def audit(
    mechanism: Annotated[
        str, typer.Argument(help="A mechanism, or all that real holders may use.", autocompletion=_mechanisms)
    ],
    epsilon: Annotated[float, typer.Option(help="The claim.")],
    cells: Annotated[int, typer.Option(min=1, help="Cells of the tree.")] = 4,
    classes: Annotated[
        int, typer.Option(min=2, help="Classes of the label, or levels of a joint report's number.")
    ] = 2,
    label: Annotated[
        str, typer.Option(help="What is sent beside the cell: a class, or a number; all has both.")
    ] = "class",
    reports: Annotated[
        int | None, typer.Option(help="Reports drawn for each input; by default enough for the claim.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="For coins that can be drawn again; else the system's.")
    ] = None,
    holders: Annotated[
        int, typer.Option(min=1, help="How many report, for what 1 % of them can move.")
    ] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Test whether a mechanism keeps the epsilon it claims; exit code 4 if it does not."""
    from flows.command.audit import run_audit

    stands = run_audit(
        mechanism,
        label=label,
        epsilon=epsilon,
        cells=cells,
        classes=classes,
        reports=reports,
        seed=seed,
        holders=holders,
        as_json=as_json,
    )
    if not stands:
        raise typer.Exit(BudgetError.exit_code)


@app.command()
def explain(
    artifact: Annotated[
        str, typer.Argument(help="A path in the work folder, or the first letters of a digest.")
    ],
    work: Work = WORK,
) -> None:
    """Say where an artifact came from, in words."""
    from flows.work_folder.provenance import explain_artifact

    typer.echo(explain_artifact(work, artifact))


@app.command()
def gc(
    work: Work = WORK,
    keep: Annotated[int, typer.Option(min=0, help="How many of the newest runs are kept.")] = 20,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")
    ] = False,
) -> None:
    """Delete what no kept run refers to. A campaign's protocol and reports and the ledger always stay."""
    from flows.server.flow_runs import collect_flow_runs
    from flows.work_folder.garbage import collect_garbage

    typer.echo(collect_garbage(work, keep=keep, dry_run=dry_run))
    if message := collect_flow_runs(work, keep=keep, dry_run=dry_run):
        typer.echo(message)


@app.command()
def ui(
    work: WorkFolder = WORK,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 4200,
) -> None:
    """Start the Prefect server with its UI on this work folder's own database, and serve the pages of its runs beside it."""
    from flows.server.process import start_ui

    def tell(pages: str) -> None:
        typer.echo(f"Prefect UI: http://127.0.0.1:{port}   (stop with Ctrl-C)", err=True)
        typer.echo(f"All runs:   {pages}", err=True)

    refuse_bucket(work, "ldptree ui")
    raise typer.Exit(start_ui(work, port, tell))


@app.command()
def automations(
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="Where to report failed and late runs, as Slack and Mattermost take it.",
        ),
    ] = None,
    work: WorkFolder = WORK,
) -> None:
    """Have the Prefect server watch over the deployments: mark vanished runs, pause after a failure, and tell somebody."""
    from flows.server.process import Server

    server = Server(work, start=False)
    if server.url is None:
        raise ConfigError("no Prefect server is up. Start one with `ldptree ui`, or set PREFECT_API_URL.")
    server.wait()
    from flows.server.automations import create_automations

    for line in create_automations(webhook):
        typer.echo(line)


@app.command()
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
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help='Where cells are computed: "threads" or "ray".')
    ] = "threads",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="Say which suites there are, and run none.")
    ] = False,
) -> None:
    """Compare methods on data sets, on the same rows: a suite of the benchmark. Ends with 1 where a claim is not held."""
    from flows.benchmark.command import Asked, benchmark_here, list_suites, read_engine

    if list_all or not suite:
        for line in list_suites():
            typer.echo(line)
        return
    asked = Asked(
        only=only, methods=methods, repetitions=repetitions, epsilons=epsilons, is_paper=paper,
        run=read_engine(engine, workers),
    )  # fmt: skip
    if not benchmark_here(suite, asked, work, as_json=as_json):
        raise typer.Exit(1)


@datasets_app.command("list")
def datasets_list() -> None:
    """List the catalogue: rows, features, the share of held-back rows that have a copy elsewhere, and which files are here."""
    from flows.command.datasets import list_all

    for name, label, rows, features, copies, files, title in list_all():
        typer.echo(f"{name:20} {label:6} {rows:>7} {features:>8} {copies:>6}  {files:14} {title}")


@datasets_app.command("fetch")
def datasets_fetch(
    name: Annotated[str, typer.Argument(autocompletion=_sets)],
    to: Annotated[
        Path | None, typer.Option("--to", help="The folder of data sets; LDPTREE_DATA without it.")
    ] = None,
) -> None:
    """Fetch the files of a data set from where they are published, and check that they are the stated ones."""
    from flows.command.datasets import fetch

    for line in fetch(name, to):
        typer.echo(line)


@datasets_app.command("show")
def datasets_show(name: Annotated[str, typer.Argument(autocompletion=_sets)]) -> None:
    """Show a data set's specification, and where its files are looked for."""
    from flows.command.datasets import show

    typer.echo(show(name))


@datasets_app.command("make")
def datasets_make(
    name: Annotated[str, typer.Argument(autocompletion=_sets)],
    rows: Annotated[int, typer.Option("--rows", help="How many rows.")],
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a simulated data set as raw CSV."""
    from flows.command.datasets import make

    make(name, rows=rows, out=out, seed=seed)
    typer.echo(f"{out}: {rows:,} simulated rows", err=True)


def _command(config: str, assignments: list[str] | None, work: Path) -> str:
    import shlex

    words = ["ldptree", "run", config, *(w for a in assignments or [] for w in ("--set", a))]
    if work != WORK:
        # Elsewhere nobody is known to have answered.
        words += ["--work", bucket_address(work) or str(work)]
    return shlex.join(words)


def _look_at_named(settings: RunConfig) -> None:
    """Before a server is started: what is wrong with the names and rules that were given, and which file was changed."""
    from tasks.data.source import check_named, say_changed

    check_named(settings.dataset)
    for sentence in say_changed(settings.dataset):
        typer.echo(sentence, err=True)


def _place(settings: RunConfig, work: Path) -> Path:
    """Where the work folder of a run is. Raises ConfigError where its configuration names another place than --work."""
    address = settings.store.address
    if address is None:
        return work
    if work != WORK and bucket_address(work) != bucket_address(address):
        raise ConfigError(
            f"--work {shown_path(work)}: the configuration's [store] names two buckets. Leave one of both out."
        )
    return Path(address)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"ldptree {version('ldptree')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Options of every command."""
    check_working_directory()
