"""Quote SQL text, and check that a configuration's rule is only an expression over one row.

Rules are parsed by DuckDB itself and their syntax tree is walked against lists of what is allowed, so that what
is checked is what would run. Opening files and running queries is in `raw_files`.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from ldptree.errors import ConfigError

LONGEST_EXPRESSION = 20_000
COLUMNS_SHOWN = 30
UNSAFE_OPTIMIZER = "common_subexpressions"
"""Switched off. It takes shared expressions out of TRY, whose errors end the query, and is slow on many columns."""
EXAMPLE = "company = 'Flash Cab' AND fare > 5"

UTC = "UTC"
"""The time zone in which hours and days of an instant are taken unless another is named, and never the machine's."""

# Every name is a pure function of its arguments in one row: no clock, no chance, no setting, no file, no other row.
_FUNCTION_NAMES = """
    + - * / // % ** ^ || & | << >> ~~ !~~ ~~* !~~* ~~~
    like_escape not_like_escape ilike_escape not_ilike_escape
    abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10 pow power mod greatest least
    isnan isinf isfinite sin cos tan asin acos atan atan2 radians degrees pi
    lower upper trim ltrim rtrim length strlen substr substring left right starts_with ends_with prefix suffix
    contains strpos position instr replace concat split_part regexp_matches regexp_full_match regexp_extract
    nullif if ascii regexp_replace translate
    timezone date_part year month day hour minute second dayofweek isodow dayofyear week isoyear quarter weekday
    date_trunc date_diff datediff epoch strptime try_strptime to_days to_hours to_minutes to_seconds to_months
    to_years make_date make_timestamp list_position list_value strip_accents
"""
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
OPERATORS = frozenset(
    {
        "COMPARE_IN",
        "COMPARE_NOT_IN",
        "OPERATOR_NOT",
        "OPERATOR_IS_NULL",
        "OPERATOR_IS_NOT_NULL",
        "OPERATOR_COALESCE",
        "OPERATOR_NULLIF",
        "OPERATOR_TRY",
    }
)
_CAST_NAMES = """
    BOOLEAN BOOL TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT INT INT1 INT2 INT4
    INT8 INT16 INT32 INT64 FLOAT REAL DOUBLE FLOAT4 FLOAT8 DECIMAL NUMERIC VARCHAR TEXT STRING CHAR BPCHAR DATE
    TIME TIMESTAMP TIMESTAMPTZ DATETIME INTERVAL
"""
CASTS = frozenset(_CAST_NAMES.split())
LITERALS = frozenset({"INTEGER", "NUMERIC", "STRING", "BOOLEAN", "NULL_LITERAL"})

_ANYWHERE = frozenset({"class", "type", "alias", "query_location", "query_location_length"})
_KEYS: dict[str, frozenset[str]] = {
    "COLUMN_REF": frozenset({"column_names"}),
    "CONSTANT": frozenset({"literal"}),
    "COMPARISON": frozenset({"left", "right"}),
    "CONJUNCTION": frozenset({"children"}),
    "OPERATOR": frozenset({"children"}),
    "BETWEEN": frozenset({"input", "lower", "upper"}),
    "CASE": frozenset({"case_checks", "else_expr"}),
    "CAST": frozenset({"child", "type_expr", "try_cast"}),
    "FUNCTION": frozenset({"function_name", "qualified_name", "order_bys", "is_operator", "arguments"}),
}
_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function, which looks at other rows",
    "PARAMETER": "a parameter",
    "STAR": "a star",
    "LAMBDA": "a lambda",
}


def scratch_cursor() -> Any:
    """A cursor of DuckDB that reads no files; tables that it registers are its own. Making a database takes far longer."""
    return _scratch_database().cursor()


@cache
def _scratch_database() -> Any:
    import atexit

    import duckdb

    atexit.register(_scratch_database.cache_clear)  # else DuckDB tells of objects that nobody freed
    database = duckdb.connect(config={"threads": 1, "enable_external_access": "false"})
    database.execute(f"SET disabled_optimizers = '{UNSAFE_OPTIMIZER}'")
    database.execute(f"SET GLOBAL TimeZone = '{UTC}'")
    return database


def quote(name: str) -> str:
    """`name` as an SQL identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | bool | None) -> str:
    """`value` as an SQL literal. Raises ValueError on NaN or an infinity."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no SQL literal")
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """' (did you mean "x"?)', or '' where nothing in `known` is near."""
    by_lower = {other.lower(): other for other in known}
    matches = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f' (did you mean "{by_lower[matches[0]]}"?)' if matches else ""


def list_columns(columns: Sequence[str]) -> str:
    """The column names for a message, the first thirty of them."""
    more = f", ... ({len(columns)} in all)" if len(columns) > COLUMNS_SHOWN else ""
    return ", ".join(columns[:COLUMNS_SHOWN]) + more


def check_predicate(text: str, columns: Sequence[str], key: str = "dataset.public") -> tuple[str, ...]:
    """The columns that the expression `text` uses, as spelled in `columns`, in order of first use.

    `text` must be one SQL expression over one row: columns, constants, comparisons, AND / OR / NOT, IN, BETWEEN,
    LIKE, CASE, casts, arithmetic and the functions in `FUNCTIONS`. Names are matched as DuckDB does, without
    regard to case. `key` is where the text stands in the configuration. Raises ConfigError on anything else: a
    second statement, a subquery, an aggregate, a function that is volatile or reaches outside the row, a column
    that is not there.
    """
    columns_by_lower = {column.lower(): column for column in columns}
    used: dict[str, None] = {}
    for name in check_expression(text, key):
        column = columns_by_lower.get(name.lower())
        if column is None:
            raise ConfigError(
                f'{key}: unknown column "{name}"{suggest_name(name, columns)}. Columns: {list_columns(columns)}. '
                "(Text values take single quotes: 'like this'.)"
            )
        used[column] = None
    return tuple(used)


@lru_cache(maxsize=256)
def check_expression(text: str, key: str) -> tuple[str, ...]:
    """The names that the expression `text` uses, as `check_predicate` where the columns are not known yet."""
    names: dict[str, None] = {}
    todo = [_parse(text, key)]
    # A list, not recursion: a long chain of operators is a deep tree.
    while todo:
        node = todo.pop()
        _check_node(node, key)
        if node["class"] == "COLUMN_REF":
            names[".".join(node["column_names"])] = None
        todo.extend(reversed(_children(node)))
    return tuple(names)


def expression_type(text: str, column_types: Mapping[str, str], key: str) -> str:
    """The SQL type of a checked expression over columns of the given SQL types. Reads no data.

    Raises ConfigError where the types do not go together ("lower(fare)" of a number).
    """
    return _expression_type(text, tuple(column_types.items()), key)


@lru_cache(maxsize=256)
def _expression_type(text: str, column_types: tuple[tuple[str, str], ...], key: str) -> str:
    import duckdb

    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in column_types)
    source = f" FROM (SELECT {columns})" if columns else ""
    with scratch_cursor() as cursor:
        try:
            rows = cursor.execute(f"DESCRIBE SELECT ({text}\n) AS value{source}").fetchall()
        except duckdb.Error as error:
            raise ConfigError(f"{key}: {_first_line(error)}") from None
    return str(rows[0][1])


_HAS_OFFSET = ":[0-9.]+ ?([A-Za-z][A-Za-z_/]*|[+-][0-9:]+)$"
"""The end of a text that names an instant, a time with an offset from UTC or the name of a zone behind it."""


@lru_cache(maxsize=256)
def by_clock(text: str, zone: str) -> str:
    """Return a checked expression in which each instant is what a clock in `zone` shows then, whatever the session's zone is.

    A cast to TIMESTAMP or DATE alone would drop the offset that stands in a text, and the hour of a TIMESTAMPTZ is the session's.
    A text without an offset is what the clock shows. `epoch` and `timezone` take the instant itself.
    """
    tree = _parse(text, "")
    try:
        read = _by_clock(tree, zone)
    except RecursionError:
        raise ConfigError(f"{text[:60]} ...: the expression is nested too deeply") from None
    return text if read == tree else _unparse(read)


def _by_clock(node: Any, zone: str, *, is_instant: bool = False) -> Any:
    if isinstance(node, list):
        return [_by_clock(each, zone, is_instant=is_instant) for each in node]
    if not isinstance(node, dict):
        return node
    kind, function = node.get("class"), str(node.get("function_name", "")).lower()
    is_inside = function in ("epoch", "timezone") if kind else is_instant
    read = {key: _by_clock(value, zone, is_instant=is_inside) for key, value in node.items()}
    if function.endswith("strptime"):
        is_instant |= "%z" not in json.dumps(node["arguments"][1:]).lower()
        return read if is_instant else _filled(f"timezone({literal(zone)}, moment)", read)
    to = str(node["type_expr"]["type_name"]).upper() if kind == "CAST" else ""
    if to not in ("TIMESTAMPTZ", "TIMESTAMP", "DATETIME", "DATE"):
        return read
    if to != "TIMESTAMPTZ" and node["child"]["class"] == "CONSTANT":
        return read
    cast = "TRY_CAST" if node.get("try_cast") else "CAST"
    instant = f"{cast}(moment AS TIMESTAMPTZ)"
    shown = f"{cast}(moment AS {'TIMESTAMP' if to == 'TIMESTAMPTZ' else to})"
    if to == "TIMESTAMPTZ" and is_instant:
        shown = f"timezone({literal(zone)}, {shown})"
    else:
        instant = f"timezone({literal(zone)}, {instant})"
        instant = f"CAST({instant} AS DATE)" if to == "DATE" else instant
    has_offset = f"regexp_matches(CAST(moment AS VARCHAR), {literal(_HAS_OFFSET)})"
    return _filled(f"CASE WHEN {has_offset} THEN {instant} ELSE {shown} END", read["child"])


def _filled(template: str, moment: Any) -> Any:
    """The tree of a template whose columns are all `moment`, another tree."""

    def fill(node: Any) -> Any:
        if isinstance(node, list):
            return [fill(each) for each in node]
        if not isinstance(node, dict):
            return node
        return (
            moment if node.get("class") == "COLUMN_REF" else {key: fill(value) for key, value in node.items()}
        )

    return fill(_parse(template, ""))


def _unparse(expression: Any) -> str:
    """The text of a syntax tree."""
    node = {
        "type": "SELECT_NODE",
        "cte_map": {},
        "select_list": [expression],
        "from_table": {"type": "EMPTY"},
    }
    statement = {"error": False, "statements": [{"node": node | {"aggregate_handling": "STANDARD_HANDLING"}}]}
    with scratch_cursor() as cursor:
        answer = cursor.execute("SELECT json_deserialize_sql(?::VARCHAR)", [json.dumps(statement)]).fetchall()
    return str(answer[0][0]).removeprefix("SELECT ")


def _parse(text: str, key: str) -> dict[str, Any]:
    """The syntax tree of one expression. Raises ConfigError."""
    if not text.strip():
        raise ConfigError(f"{key}: the expression is empty")
    if len(text) > LONGEST_EXPRESSION or "\0" in text:
        raise ConfigError(
            f"{key}: the expression is longer than {LONGEST_EXPRESSION} characters, or has a NUL in it"
        )
    with scratch_cursor() as cursor:
        # The newline ends a trailing comment, so that it cannot swallow the bracket.
        row = cursor.execute(
            "SELECT json_serialize_sql(?::VARCHAR, skip_default := true)", [f"SELECT ({text}\n)"]
        ).fetchone()
    try:
        tree: dict[str, Any] = json.loads(row[0])
    except RecursionError:
        raise ConfigError(f"{key}: the expression is nested too deeply") from None
    if tree["error"]:
        message = " ".join(tree["error_message"].split())
        raise ConfigError(
            f"{key}: {message}, in: {text.strip()}. It must be one SQL expression over one row, "
            f"such as {EXAMPLE}."
        )
    statements = tree["statements"]
    node = statements[0]["node"]
    allowed = {"type", "cte_map", "select_list", "from_table", "aggregate_handling"}
    is_one_expression = (
        len(statements) == 1
        and set(statements[0]) == {"node"}
        and set(node) <= allowed
        and node["type"] == "SELECT_NODE"
        and not node.get("cte_map")
        and node.get("from_table") == {"type": "EMPTY"}
        and len(node["select_list"]) == 1
    )
    if not is_one_expression:
        if statements[0].get("named_param_map"):
            raise _refusal(key, "a parameter")
        raise _refusal(key, "more than one expression")
    expression: dict[str, Any] = node["select_list"][0]
    return expression


def _check_node(node: dict[str, Any], key: str) -> None:
    """Raises ConfigError unless this node (not its children) is one that a rule may have."""
    kind = node.get("class", "")
    if kind not in _KEYS:
        raise _refusal(key, _REFUSED.get(kind, "an expression that looks beyond one row"))
    if kind == "FUNCTION":
        name = str(node["function_name"])
        path = node.get("qualified_name", {}).get("path", [name])
        if name.lower() not in FUNCTIONS or path != [name]:
            raise _refusal(key, f"the function {'.'.join(path)}()")
        if set(node.get("order_bys", {})) - {"type"} or any(
            set(a) != {"expression"} for a in node.get("arguments", [])
        ):
            raise _refusal(key, f"an aggregate over rows, {name}()")
    if set(node) - _ANYWHERE - _KEYS[kind]:
        raise _refusal(key, "an aggregate or a modifier")
    if kind == "OPERATOR" and node["type"] not in OPERATORS:
        raise _refusal(key, "a list, a struct or a subscript")
    if kind == "COLUMN_REF" and len(node["column_names"]) != 1:
        raise _refusal(key, f"a table's name or a struct's field, {'.'.join(node['column_names'])}")
    if kind == "CONSTANT" and node["literal"].get("kind") not in LITERALS:
        raise _refusal(key, "a constant that is neither number, text, true, false nor NULL")
    if kind == "CAST":
        target = node["type_expr"]
        simple = all(child.get("class") == "CONSTANT" for child in target.get("children", []))
        if not simple or str(target.get("type_name", "")).upper() not in CASTS:
            raise _refusal(key, f"a cast to {target.get('type_name', 'an unknown type')}")


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The expressions right below a node that has passed `_check_node`."""
    kind = node["class"]
    if kind == "FUNCTION":
        return [argument["expression"] for argument in node.get("arguments", [])]
    if kind == "CASE":
        checks = [side for check in node["case_checks"] for side in (check["when_expr"], check["then_expr"])]
        return [*checks, node["else_expr"]] if "else_expr" in node else checks
    if kind in ("CONJUNCTION", "OPERATOR"):
        return list(node["children"])
    return [node[name] for name in ("left", "right", "input", "lower", "upper", "child") if name in node]


def _refusal(key: str, what: str) -> ConfigError:
    return ConfigError(
        f"{key}: {what} is not allowed here. It must be one SQL expression over the columns of one row, "
        f"such as {EXAMPLE}."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
