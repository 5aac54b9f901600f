"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Code = Annotated[
    list[str] | None,
    typer.Option("--code", metavar="FILE.py", help="Your own code; may be repeated."),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cpu, cuda, cuda:N or auto (the CPU)."),
]
