"""Commands of the package: `python -m faircast campaign run SCENARIO`. `faircast campaign` calls them."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from typing import Sequence

from . import Campaign, Scenario, ScenarioError, repro
from ._native import VERSION


def main(words: Sequence[str] | None = None, program: str = "faircast") -> int:
    """Run a command. Return the exit code: 0 success, 1 failed runs, 2 wrong usage."""
    arguments = _parser(program).parse_args(words)
    if arguments.command == "verify":
        return _verify(arguments)
    try:
        campaign = _campaign(arguments)
        missing = campaign.missing()
        if getattr(arguments, "out", None):
            os.makedirs(arguments.out, exist_ok=True)
    except (ScenarioError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.command == "missing":
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


def _verify(arguments: argparse.Namespace) -> int:
    """Repeat figures of the papers, and print their claims. Return 1 if a claim fails."""
    try:
        done = repro.verify(
            arguments.figures or None,
            seeds=arguments.seeds,
            executor=arguments.executor,
            directory=arguments.dir,
            alternatives=arguments.alternatives,
            progress=not arguments.quiet,
        )
    except (ImportError, KeyError, ValueError) as error:
        print(f"error: {error.args[0] if error.args else error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Exception) as error:  # an executor passes on any exception
        print(f"stopped: {error!r}; the same command makes the missing runs", file=sys.stderr)
        return 1
    print("\t".join(("figure", "claim", "published", "measured", "low", "high", "verdict")))
    verdicts: Counter[str] = Counter()
    for figure in done:
        claims = figure.claims.to_dict()
        for row, verdict in enumerate(claims.get("verdict", [])):
            numbers = [f"{claims[name][row]:.6g}" for name in ("published", "measured", "low", "high")]
            print("\t".join([figure.id, claims["claim"][row], *numbers, verdict]))
            verdicts[verdict] += 1
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()), file=sys.stderr)
    return 1 if verdicts["fails"] else 0


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
            first, last = map(int, text.split(".."))
            if last < first:
                raise argparse.ArgumentTypeError(f"the range {text} has no seeds")
            return list(range(first, last + 1))
        return [int(seed) for seed in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"seeds are a number, a list or a range, as in 10, 3,7,9 or 101..110, not {text!r}") from None


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(program, description="Make many runs on many machines, each run once.")
    parser.add_argument("--version", action="version", version=VERSION)
    groups = parser.add_subparsers(dest="group", required=True, metavar="campaign")
    commands = groups.add_parser("campaign", help="runs on Dask, Ray, SLURM or this machine").add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the missing runs, and print the means of all runs")
    missing = commands.add_parser("missing", help="list the missing runs")
    verify = commands.add_parser("verify", help="repeat figures of the papers, and judge their claims")
    for command in (run, missing):
        command.add_argument("scenario", metavar="SCENARIO", help="scenario file")
        command.add_argument("--seeds", type=_seeds, help="a number, a list or a range, as in 10, 3,7,9 or 101..110 [default: from the scenario]")
        command.add_argument("--set", type=_change, action="append", default=[], metavar="KEY=VALUE", help="change a key of the scenario")
    run.add_argument("--out", help="write the tables of all runs as Parquet files into this directory")
    verify.add_argument("figures", metavar="FIGURE", nargs="*", help="figure or group, as in 002/fig-3.12a or 002 [default: all]")
    verify.add_argument("--seeds", type=_seeds, default=10, help="as for run [default: 10]")
    verify.add_argument("--alternatives", type=int, default=0, metavar="SEEDS", help="seeds of runs with other values of open choices [default: 0]")
    for command, directory in ((run, "campaign"), (missing, "campaign"), (verify, "verify")):
        command.add_argument(
            "--dir", default=directory, help=f"directory of the completed runs; all workers must see it [default: {directory}]"
        )
    for command in (run, verify):
        command.add_argument(
            "--executor",
            default="local",
            help="local[:PROCESSES], dask[:ADDRESS], ray[:ADDRESS] or slurm[:PARTITION] [default: local]",
        )
        command.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main(program="python -m faircast"))
