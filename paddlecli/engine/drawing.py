"""The callback that draws: pictures that a network makes, while it learns to make them."""

from __future__ import annotations

from paddlecli.config.registry import CALLBACKS
from paddlecli.config.types import Count, Name, Natural
from paddlecli.engine.callbacks import Callback, Progress
from paddlecli.engine.report import listed, number
from paddlecli.errors import ConfigError


@CALLBACKS.register("images")
class Images(Callback):
    """Draws an output of the network into a grid `EEEE_BBBB.png` (epoch and batch) in the run directory, and
    logs the mean, least, quartiles and largest of its values, beside the losses of that step.

    ``output``: its name; what `predict` reports if left out. ``every``: so many steps. ``count``:
    pictures, for the first samples of the split that is evaluated; noise is the same each time.
    ``columns``: of the grid, about as many as lines for 0. ``folder``: in the run directory.
    """

    def __init__(
        self, *, output: Name | None = None, every: Count = 100, count: Count = 64,
        columns: Natural = 0, folder: Name = "images",
    ) -> None:  # fmt: skip
        self.every = every
        self._output, self._count, self._columns, self._folder = output, count, columns, folder

    def on_start(self, training: Progress) -> None:
        """Finds out how the output is drawn.

        Raises:
            ConfigError: it is no picture, or too many are asked for.
        """
        from paddlecli.engine.pictures import Picture

        name, spec = training.output(self._output)
        said = training.recipe.predict.pictures
        picture = Picture.of(name, spec, None if said is None else said.model_dump())
        if picture is None:
            raise ConfigError(
                f"the callback `images`: the output `{name}` is {spec}, and nothing says how to draw it",
                hint="say which values are black and white: `predict: {pictures: {low: 0, high: 1}}`",
            )
        if self._count > picture.most:
            raise ConfigError(
                f"the callback `images`: {self._count:,} pictures are too many for a grid, at most {picture.most:,} fit"
            )
        self._picture = picture

    def after_step(self, training: Progress) -> None:
        """Draws, and logs the values."""
        from paddlecli.engine.picture_metrics import spread
        from paddlecli.engine.pictures import save

        rows = training.outputs(self._count).get(self._picture.output)
        if rows is None:  # a signal: the training ends here
            return
        name = f"{training.epoch + 1:04d}_{training.batch:04d}.png"
        grid = self._picture.grid(list(rows), self._columns)
        save(training.run_dir / self._folder / name, grid)
        values = {} if self._picture.mask else spread(rows)
        training.log(
            "images", {"epoch": training.epoch + 1, "file": f"{self._folder}/{name}", **values}
        )
        said = " ".join(f"{k} {number(v)}" for k, v in values.items())
        losses = listed(training.losses)
        training.say(
            f"{self._folder}/{name}  {losses}"
            + (f"  {self._picture.output} {said}" if said else "")
        )
