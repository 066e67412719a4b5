"""Tables of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """A table with one observation in each row.

    It implements the Arrow C stream interface, so that `pyarrow.table(table)`, `polars.DataFrame(table)` and DuckDB read it without
    copying numbers; so does `pandas.DataFrame.from_arrow(table)` from pandas 3 on. An empty cell of a number is NaN.

    Attributes
    ----------
    name : str
        Name of the table.
    column_names : list of str
        Names of the columns.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def column_names(self) -> list[str]:
        return self._native.column_names

    def __len__(self) -> int:
        return len(self._native)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists. This needs no other package."""
        return self._native.to_dict()

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as a table of PyArrow, without copies."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a data frame of pandas. This needs pandas and PyArrow."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a data frame of Polars, without copies."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<Table {self.name!r}: {len(self)} rows, columns {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        from html import escape

        shown = 20
        columns = self.to_dict()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)

        def cell(value: Any) -> str:
            return escape(f"{value:.6g}" if isinstance(value, float) else str(value))

        rows = "".join(
            "<tr>" + "".join(f"<td>{cell(column[row])}</td>" for column in columns.values()) + "</tr>"
            for row in range(min(len(self), shown))
        )
        more = f"<p>{len(self)} rows</p>" if len(self) > shown else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
