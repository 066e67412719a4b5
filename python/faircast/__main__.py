"""Commands of the package: `python -m faircast campaign run SCENARIO`. `faircast campaign` calls them."""

from __future__ import annotations

import argparse
import sys
from typing import Sequence

from . import Campaign, Scenario, ScenarioError
from ._native import VERSION


def main(words: Sequence[str] | None = None, program: str = "faircast") -> int:
    """Run a command. Return the exit code: 0 success, 1 failed runs, 2 wrong usage."""
    arguments = _parser(program).parse_args(words)
    try:
        campaign = _campaign(arguments)
    except (ScenarioError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.command == "missing":
        missing = campaign.missing()
        for point, seed in missing:
            where = ", ".join(f"{axis} = {value}" for axis, value in campaign.scenario.points[point].items())
            print(f"point {point}, seed {seed}" + (f": {where}" if where else ""))
        print(f"{len(missing)} of {len(campaign.jobs)} runs are missing in {campaign.directory}", file=sys.stderr)
        return 0
    try:
        result = campaign.run(arguments.executor, progress=not arguments.quiet)
    except (ImportError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        left = len(campaign.missing())
        print(f"stopped: {left} of {len(campaign.jobs)} runs are missing; the same command makes them", file=sys.stderr)
        return 1
    except Exception as error:  # an executor passes on any exception
        left = len(campaign.missing())
        print(f"error: {error}\n{left} of {len(campaign.jobs)} runs are missing; the same command makes them", file=sys.stderr)
        return 1
    if arguments.out:
        result.to_parquet(arguments.out)
    rows = result.summary.to_dict()
    axes = [name for name in rows if name not in ("point", "metric", "runs", "mean", "deviation", "low", "high")]
    print("\t".join([*axes, "metric", "mean", "low", "high", "runs"]))
    for row in range(len(rows["metric"])):
        fields = [str(rows[axis][row]) for axis in axes] + [rows["metric"][row]]
        fields += [f"{rows[name][row]:.6g}" for name in ("mean", "low", "high")] + [str(rows["runs"][row])]
        print("\t".join(fields))
    return 0


def _campaign(arguments: argparse.Namespace) -> Campaign:
    scenario = Scenario.load(arguments.scenario)
    changes = dict(change.split("=", 1) for change in arguments.set)
    if changes:
        scenario = Scenario(scenario._native.changed(list(changes.items())))
    return Campaign(scenario, arguments.seeds, directory=arguments.dir)


def _change(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"a change is KEY=VALUE, not {text!r}")
    return text


def _seeds(text: str) -> int | list[int]:
    try:
        if ".." in text:
            first, last = text.split("..")
            return list(range(int(first), int(last) + 1))
        return [int(seed) for seed in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"seeds are a number, a list or a range, as in 10, 3,7,9 or 101..110, not {text!r}") from None


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(program, description="Make many runs on many machines, each run once.")
    parser.add_argument("--version", action="version", version=VERSION)
    groups = parser.add_subparsers(dest="group", required=True, metavar="campaign")
    commands = groups.add_parser("campaign", help="runs on Dask, Ray, SLURM or this machine").add_subparsers(dest="command", required=True)
    for name, about in (("run", "make the missing runs, and print the means of all runs"), ("missing", "list the missing runs")):
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("scenario", metavar="SCENARIO", help="scenario file")
        command.add_argument("--dir", default="campaign", help="data set with the completed runs; all workers must see it [default: campaign]")
        command.add_argument("--seeds", type=_seeds, help="a number, a list or a range, as in 10, 3,7,9 or 101..110 [default: from the scenario]")
        command.add_argument("--set", type=_change, action="append", default=[], metavar="KEY=VALUE", help="change a key of the scenario")
        if name == "run":
            command.add_argument(
                "--executor",
                default="local",
                help="local[:PROCESSES], dask[:ADDRESS], ray[:ADDRESS] or slurm[:PARTITION] [default: local]",
            )
            command.add_argument("--out", help="write the tables of all runs as Parquet files into this directory")
            command.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main(program="python -m faircast"))
