"""The commands of `ldptree` and their options. What a run does is in `train_flow`, how a command ends in `main`.

Nothing heavy is imported here, so that help and mistakes answer at once.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of

from flows.command.streams import print_file, print_json, say
from ldptree.errors import BudgetError, ConfigError
from storage.machine_faults import check_working_directory
from storage.objects.addresses import bucket_address, refuse_bucket

if TYPE_CHECKING:
    from schemas.config import RunConfig


ASSIGNMENT = r"[a-z_0-9]+(\.[a-z_0-9]+)*=.*"
"""A key and its value, as --set takes them."""


class CommandWithSettings(TyperCommand):
    """A command with the option `--set`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any command does."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as fault:
            if hasattr(fault, "option_name") and hasattr(fault, "possibilities"):  # there is no such option
                self._say_how_it_is_set(fault, typed)
            elif bare := _find_bare(typed):  # more words than the command takes
                fault.message = f"{bare} sets a key: write --set {shlex.quote(bare)}"  # type: ignore[attr-defined]
            raise

    def _say_how_it_is_set(self, fault: Any, typed: list[str]) -> None:
        from schemas.config import suggest_key

        name = fault.option_name
        known = {option.lstrip("-") for parameter in self.params for option in parameter.opts}
        key = suggest_key(name.lstrip("-").replace("-", "_"), known)
        if not key or key in known:
            return
        _, *values = next(word for word in typed if word.partition("=")[0] == name).split("=", 1)
        values += typed[typed.index(name) + 1 :] if name in typed else []
        value = values[0] if values and not values[0].startswith("-") else "VALUE"
        fault.message += f". Write --set {shlex.quote(f'{key}={value}')}"
        fault.possibilities = None


def _find_bare(typed: list[str]) -> str:
    """The first word that sets a key without --set before it; "" where there is none."""
    pairs = zip(["", *typed], typed, strict=False)
    return next((word for before, word in pairs if before != "--set" and re.fullmatch(ASSIGNMENT, word)), "")


class Commands(TyperGroup):
    """The commands of this file, and those that other distributions add as entry points of the group `ldptree.commands`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Raise ConfigError for a command whose distribution is not installed."""
        if cmd_name not in self.commands:
            self._add_installed()
            if cmd_name == "benchmark" and cmd_name not in self.commands and not ctx.resilient_parsing:
                raise ConfigError("the benchmark is not installed: pip install ldptree-benchmark")
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Those of this file first."""
        self._add_installed()
        return super().list_commands(ctx)

    def _add_installed(self) -> None:
        from importlib.metadata import entry_points  # slow to import

        for entry in entry_points(group="ldptree.commands"):
            if entry.name not in self.commands:
                self.add_command(command_of(entry.load()), entry.name)


app = typer.Typer(
    name="ldptree",
    cls=Commands,
    help="Decision trees learned from private records that nobody sees, run as a data pipeline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
datasets_app = typer.Typer(
    help="The catalogue of data sets.", no_args_is_help=True, epilog="Example: ldptree datasets list"
)
app.add_typer(datasets_app, name="datasets")
ledger_app = typer.Typer(invoke_without_command=True)
app.add_typer(ledger_app, name="ledger")

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


def _mechanisms(incomplete: str) -> list[str]:
    from flows.command.audit import EVERY
    from ldptree.mechanisms import CHOICES

    names = dict.fromkeys((*CHOICES, *EVERY, "all"))
    return [name for name in names if name.startswith(incomplete)]


@app.command(epilog="Example: ldptree init trips.csv --target paid_by --public \"site = 'open'\"")
def init(
    data: Annotated[
        Path,
        typer.Argument(help="CSV or TSV, also gzipped; Parquet; a workbook."),
    ],
    target: Annotated[str, typer.Option("--target", help="The column to learn.")],
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="RULE",
            help='Rows that are public, for example "company_id = 6". Only these are read.',
        ),
    ] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="The sheet of a workbook.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The configuration to write; NAME.toml by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Look at some rows of a file, and write a configuration that runs as it is."""
    from flows.command.init import init as look_and_write

    look_and_write(data, target=target, public=public, sheet=sheet, out=out, force=force, as_json=as_json)


@app.command(cls=CommandWithSettings, epilog="Example: ldptree run quickstart --set privacy.epsilon=1")
def run(
    config: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a packaged one.", autocompletion=_configs)
    ] = "quickstart",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a setting, for example privacy.epsilon=1; KEY= removes it.",
        ),
    ] = None,
    work: Work = WORK,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Shards to compute in parallel (default: one per CPU)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    debug: Debug = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would run, and run nothing.")] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Use real noise and spend privacy budget, although private rows are scored."
        ),
    ] = False,
) -> None:
    """Run a configuration, from raw files to one HTML page."""
    from schemas.config import load

    assignments = [*(assignments or []), *(["release=true"] if release else [])]
    settings = load(config, [*assignments, *([] if workers is None else [f"run.workers={workers}"])])
    _look_at_named(settings)
    if plan:
        from flows.run_plan.show import show_plan

        show_plan(settings, work, as_json=as_json)
        return
    from flows.command.running import run_here

    run_here(
        settings,
        work,
        as_json=as_json,
        debug=debug,
        command=_command(config, assignments, work),
    )


@app.command(
    cls=CommandWithSettings, epilog="Example: ldptree plan quickstart --holders 10000,100000 --accuracy 0.65"
)
def plan(
    config: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a packaged one.", autocompletion=_configs)
    ] = "quickstart",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the configuration, as with run."),
    ] = None,
    holders: Annotated[
        str | None, typer.Option("--holders", metavar="N,N", help="Numbers of people who would report.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            metavar="E,E",
            help="Budgets of a person; by default 0.5,1,2,4 and the configured one.",
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            "--accuracy",
            help="Target accuracy, such as 0.65: how many people and which epsilon reach it? Not with --detect.",
        ),
    ] = None,
    mse: Annotated[
        float | None,
        typer.Option(
            "--mse",
            help="Target mean squared error: how many people and which epsilon reach it? Not with --detect.",
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
    plan_and_print(settings, work, options, as_json=as_json, out=out)


@app.command(epilog="Example: ldptree predict work/runs/RUN trips.csv --out scored.parquet")
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
            "one tree, mean_lower and mean_upper: the interval of its group's mean, no label of a row (90 %; it may hold less "
            "often where private people differ from public ones, see docs/measured/lpdt.md). Of a corrected model it is that of "
            "the correction: the public model's own error within a group is not in it; what that one says alone is beside it. "
            "In a CSV a class that a spreadsheet would compute, =1+1, has ' before it.",
        ),
    ],
) -> None:
    """Score a data file with a model, streamed.

    Beside the run.json of its run, rows are read as the run read its own, derived columns too.
    """
    from tasks.predict import predict_file

    rows = predict_file(model, data, out)
    say(f"{out}: {rows:,} rows")


@app.command(epilog="Example: ldptree aggregate --protocol protocol.json --reports inbox/ --out totals/")
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
    """Add up the reports that match a protocol, and count those that do not."""
    from tasks.answers.receive import described, receive_folder, write

    received = receive_folder(protocol, reports)
    content = described(received)
    if out is not None:
        write(received, out)
    for message in filter(None, (received.passed_over_in_words(), received.refused_in_words())):
        say(message)
    if as_json:
        print_json(content)
        return
    at = "{} "
    for part in content.get("labels", [content]):
        if "residual" in content:
            of, label = content["residual"]["of"], part.get("label", content["residual"]["label"])
            asked, at = of if label is None else f"{of} = {label}", "at {}: "
            print(f"People by level of the public model's error on {asked} (truth less prediction)")
        for cell in part["cells"]:
            counts = ", ".join(
                f"{at.format(_short(name) if 'residual' in content else name)}{n:,.1f} ± {cell['sd'][name]:,.1f}"
                for name, n in cell["totals"].items()
            )
            print(f"{cell['where']}: {counts}")
    say(f"{content['accepted']:,} reports accepted; {received.in_words()}")


def _short(text: str) -> str:
    return f"{float(text):.4g}"


@app.command(epilog="Example: ldptree export work/runs/RUN --to sql --table trips")
def export(
    model: Annotated[Path, typer.Argument(help="A run's folder, or the model.json in it.")],
    to: Annotated[str, typer.Option("--to", help="sql, json or dot.")],
    table: Annotated[str, typer.Option(help="The table the SQL scores.")] = "data",
) -> None:
    """Print a model as a SELECT that scores a DuckDB table, as JSON, or as a tree for Graphviz."""
    from tasks.predict import export_sql, load_model

    loaded = load_model(model)
    match to:
        case "sql" if not table.strip():
            raise ConfigError('--table "": no table has this name. Name the one that the SQL is to score.')
        case "sql":
            print_file(export_sql(loaded, table))
        case "json":
            print_file(loaded.to_json())
        case "dot":
            print_file(loaded.to_dot())
        case _:
            raise ConfigError(f"--to {to}: write sql, json or dot")


@app.command(epilog="Example: ldptree registry work/runs/RUN")
def registry(run: Annotated[Path, typer.Argument(help="The folder of a release or collection.")]) -> None:
    """Print a run as a draft entry of the registry of differential privacy deployments, with what its owner must add."""
    from flows.work_folder.registry import draft_entry

    print_file(draft_entry(run))


@app.command(epilog="Example: ldptree audit grr --epsilon 1 --cells 8")
def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            help="A mechanism, or all that real people may use; with --row a protocol.json.",
            autocompletion=_mechanisms,
        ),
    ],
    epsilon: Annotated[float | None, typer.Option(help="The claim.")] = None,
    cells: Annotated[int, typer.Option(min=1, help="Cells of the tree.")] = 4,
    classes: Annotated[
        int, typer.Option(min=2, help="Classes of the label, or levels of a joint report's number.")
    ] = 2,
    label: Annotated[
        str, typer.Option(help="The kind of label beside the cell: a class, or a number; all has both.")
    ] = "class",
    reports: Annotated[
        str | None,
        typer.Option(
            help="Reports drawn for each input; by default enough for the claim. With --row: a file of a client's answers."
        ),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(help="A made-up row with its label, as JSON, for which a client drew all of --reports."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The seed of repeatable coins; by default the system's.")
    ] = None,
    holders: Annotated[
        int, typer.Option(min=1, help="The number of reports, of which 1 % are forged, or all are shuffled.")
    ] = 10_000,
    shuffled: Annotated[
        bool,
        typer.Option("--shuffled", help="The epsilon of reports that another party shuffles, at --delta."),
    ] = False,
    delta: Annotated[float, typer.Option(help="The delta of that epsilon.")] = 1e-8,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Test whether a mechanism keeps the epsilon it claims; exit code 4 if it does not."""
    from flows.command.audit import audit_answers, run_audit, show_shuffled

    if shuffled and (row is not None or reports is not None):
        raise ConfigError(
            "--shuffled: computed of a mechanism, without reports. Leave --reports and --row away"
        )
    if row is not None:
        if not audit_answers(Path(mechanism), reports, row, seed=seed, as_json=as_json):
            raise typer.Exit(BudgetError.exit_code)
        return
    if shuffled:
        show_shuffled(
            mechanism, epsilon, cells=cells, classes=classes, holders=holders, delta=delta, as_json=as_json
        )
        return
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


@app.command(epilog="Example: ldptree explain work/runs/RUN/model.json")
def explain(
    artifact: Annotated[
        str, typer.Argument(help="A path in the work folder, or the first letters of a digest.")
    ],
    work: Work = WORK,
) -> None:
    """Say where an artifact came from, in words."""
    from flows.work_folder.provenance import explain_artifact

    print(explain_artifact(work, artifact))


@app.command(epilog="Example: ldptree gc --keep 5 --dry-run")
def gc(
    work: Work = WORK,
    keep: Annotated[int, typer.Option(min=0, help="The number of newest runs to keep.")] = 20,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")
    ] = False,
) -> None:
    """Delete what no kept run refers to. A campaign's protocol and reports and the ledger always stay."""
    from flows.work_folder.garbage import collect_garbage

    print(collect_garbage(work, keep=keep, dry_run=dry_run))


@ledger_app.callback(epilog="Example: ldptree ledger --work work")
def ledger(
    context: typer.Context,
    work: Work = WORK,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Show what the people of a work folder spent, on which questions, and what is left to them; nobody is named."""
    from flows.command.ledger import show_ledger

    if context.invoked_subcommand is None:
        show_ledger(work, as_json=as_json)


@ledger_app.command("backup", epilog="Example: ldptree ledger backup holders-2026-11-28.db")
def ledger_backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A new file, which is made for its owner only.")],
    work: Work = WORK,
) -> None:
    """Copy the database of who was asked, as it is at one moment, whatever goes on meanwhile."""
    from flows.command.ledger import back_up

    source = context.get_parameter_source("work")
    if context.parent is not None and (source is None or source.name != "COMMANDLINE"):
        work = context.parent.params["work"]  # `ldptree ledger --work WORK backup FILE`
    back_up(work, file)
    say(f"{file}: a copy of the database of who was asked")


@app.command(epilog="Example: ldptree ui --work work")
def ui(
    work: WorkFolder = WORK,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 4200,
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where the Prefect server listens; another one than this machine's own needs a password.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Start the Prefect server with its UI on this work folder's own database, and serve the pages of its runs beside it."""
    from flows.server.pages import PAGES
    from flows.server.process import start_ui
    from flows.work_folder.index import write_index
    from storage.store import Store

    def tell(address: str) -> None:
        write_index(Store(work))  # before the first run there is none
        say(f"Prefect UI: {address}   (stop with Ctrl-C)")
        say(f"All runs:   {address}{PAGES}")
        say(f"For runs:   export PREFECT_API_URL={address}/api")

    refuse_bucket(work, "ldptree ui")
    raise typer.Exit(start_ui(work, port, listen, tell))


@datasets_app.command("list", epilog="Example: ldptree datasets list")
def datasets_list() -> None:
    """List the catalogue with rows, features, the share of rows kept aside with a copy elsewhere, and local files."""
    from flows.command.datasets import list_all

    for name, label, rows, features, copies, files, title in list_all():
        print(f"{name:20} {label:6} {rows:>7} {features:>8} {copies:>6}  {files:14} {title}")


@datasets_app.command("fetch", epilog="Example: ldptree datasets fetch abalone --to data/")
def datasets_fetch(
    name: Annotated[str, typer.Argument(autocompletion=_sets)],
    to: Annotated[
        Path | None, typer.Option("--to", help="The folder of data sets; LDPTREE_DATA without it.")
    ] = None,
) -> None:
    """Fetch the files of a data set from where they are published, and check that they are the stated ones."""
    from flows.command.datasets import fetch

    for line in fetch(name, to):
        print(line)


@datasets_app.command("show", epilog="Example: ldptree datasets show abalone")
def datasets_show(name: Annotated[str, typer.Argument(autocompletion=_sets)]) -> None:
    """Show a data set's specification, and where its files are looked for."""
    from flows.command.datasets import show

    print(show(name))


@datasets_app.command("make", epilog="Example: ldptree datasets make taxi --rows 10000 --out trips.csv")
def datasets_make(
    name: Annotated[str, typer.Argument(autocompletion=_sets)],
    rows: Annotated[int, typer.Option("--rows", help="The number of rows.")],
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a simulated data set as raw CSV."""
    from flows.command.datasets import make

    make(name, rows=rows, out=out, seed=seed)
    say(f"{out}: {rows:,} simulated rows")


def _command(config: str, assignments: list[str] | None, work: Path) -> str:
    import shlex

    words = ["ldptree", "run", config, *(w for a in assignments or [] for w in ("--set", a))]
    if work != WORK:
        # Elsewhere nobody is known to have answered.
        words += ["--work", bucket_address(work) or str(work)]
    return shlex.join(words)


def _look_at_named(settings: RunConfig) -> None:
    """Report faults in the given names and rules, before a server is started."""
    from tasks.data.source import check_named

    check_named(settings.dataset)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"ldptree {version('ldptree')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of every command."""
    check_working_directory()
