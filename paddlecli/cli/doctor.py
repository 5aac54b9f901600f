"""`paddlecli doctor`: is everything there, and does it train?"""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli.options import Json


def command(
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="How long to train; 0 leaves it out.")
    ] = 2.0,
    as_json: Json = False,
) -> int:
    """Check this installation and this machine, with a cure for what is wrong.

    Exit code 0, or that of the first fault.
    """
    from paddlecli.cli.output import print_json
    from paddlecli.engine.doctor import examine
    from paddlecli.engine.report import plural

    checks = []
    for check in examine(seconds):
        checks.append(check)
        if not as_json:
            found = check.finding
            typer.echo(f"{found.status:7}  {check.name:15}  {found.text}")
            if found.cure:
                typer.echo(f"{'':7}  {'':15}  cure: {found.cure}")
    faults = [c.finding.code for c in checks if c.finding.status == "fault"]
    if as_json:
        status = "fault" if faults else "ok"
        print_json({"schema": 1, "status": status, "checks": [c.as_dict() for c in checks]})
    else:
        warnings = sum(c.finding.status == "warning" for c in checks)
        told = f"{plural(len(faults), 'fault')}, {plural(warnings, 'warning')}"
        typer.echo(f"{len(checks)} checks: {told}")
    return faults[0] if faults else 0
