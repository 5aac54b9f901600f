"""Which events are due at a place of a training: the end of an epoch, an evaluation, a checkpoint."""

from __future__ import annotations

from paddlecli.config.recipe import Recipe
from paddlecli.engine.place import Place


class Due:
    """What a recipe says of events, for an epoch of so many batches."""

    def __init__(self, recipe: Recipe, batches: int) -> None:
        self.train, self.checkpoint, self.batches = recipe.train, recipe.checkpoint, batches

    @property
    def steps(self) -> int:
        """Iterations of the whole training."""
        total = self.train.epochs * self.batches
        return min(total, self.train.max_steps or total)

    def at_last(self, place: Place) -> bool:
        """Whether `train.max_steps` iterations are done, or more: of a run that goes on with fewer."""
        return self.train.max_steps is not None and place.step >= self.train.max_steps

    def at_end(self, place: Place) -> bool:
        """Whether the epoch, or what is trained of it, is done."""
        return place.batch >= self.batches or self.at_last(place)

    def until_event(self, place: Place) -> int:
        """Iterations to the next end of epoch, checkpoint or last step."""
        limits = [self.batches - place.batch]
        if self.train.max_steps is not None:
            limits.append(self.train.max_steps - place.step)
        if (every := self.checkpoint.every_steps) is not None:
            limits.append(every - place.step % every)
        return min(limits)

    def evaluation(self, place: Place, whole: bool) -> bool:
        """Whether this epoch's end is measured; `whole` if no batch of it is left."""
        epoch, every = place.epoch + 1, self.train.eval_every
        last = epoch >= self.train.epochs or self.at_last(place)
        return last or (whole and bool(every) and epoch % every == 0)

    def save_inside(self, place: Place) -> bool:
        """Whether a checkpoint is due between two batches; at an epoch's end it waits for the epoch's events."""
        return self._by_steps(place) and not self.at_end(place)

    def save_behind(self, place: Place, whole: bool, finished: bool) -> bool:
        """Whether a checkpoint is due behind the events of an epoch that was left."""
        every = self.checkpoint.every_epochs
        by_epochs = whole and bool(every) and place.epoch % every == 0
        return self._by_steps(place) or finished or by_epochs

    def _by_steps(self, place: Place) -> bool:
        every = self.checkpoint.every_steps
        return every is not None and place.step % every == 0
