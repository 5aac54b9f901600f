"""The nets of the book's fifth chapter: two towers, and candidates with ranking as the chapter describes them."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, losses
from paddlecli.models.network import Network
from paddlecli.models.sequence_layers import sequence_conv
from paddlecli.models.shape_layers import cos_sim
from paddlecli.models.text import words_of

USER_FIELDS = (("gender_id", "gender_table"), ("age_id", "age_table"), ("job_id", "job_table"))
"""What is known of a user beside the id, and the names of the tables."""
Sizes = tuple[Count, ...]
LARGEST_SCORE = 5.0
"""The scores' scale: the cosine of the towers times this."""


@MODELS.register("recommender_towers")
def recommender_towers(
    net: Network, *, dim: Count = 32, side_dim: Count = 16, size: Count = 200
) -> None:
    """A user's and a movie's features are each brought to ``size`` numbers; the predicted score is 5
    times their cosine, the loss the square of its error against the label `score`.

    ``dim``: width of the ids', categories' and titles' vectors; ``side_dim``: of gender, age and
    job.
    """
    user, movie = user_tower(net, dim, side_dim, size), movie_tower(net, dim, size)
    with net.naming("prediction"):
        prediction = cos_sim(net, user, movie, scale=LARGEST_SCORE)
    net.output("prediction", prediction)
    losses.square_error_cost(net, prediction, net.label())


@MODELS.register("recommender_candidates")
def recommender_candidates(net: Network, *, dim: Count = 32, hidden: Sizes = (128, 64)) -> None:
    """Which of all films a user turns to next: the mean of the vectors of the films in `history` and
    what is known of the user go through layers with relu; softmax over the films.

    The first of the two nets that the chapter describes. ``dim``: width of a film's vector; that of
    gender, age and job is half of it. ``hidden``: widths of the layers.
    """
    with net.layer("user"):
        y = _relus(net, layers.concat(net, *_known(net, dim)), hidden)
    film = net.feature("movie_id")
    with net.naming("scores"):
        logits = layers.fc(net, y, size=words_of(net, film))
    with net.layer("softmax"):
        net.output("probability", layers.activate(net, logits, "softmax"))
    losses.softmax_with_cross_entropy(net, logits, film)


@MODELS.register("recommender_ranking")
def recommender_ranking(net: Network, *, dim: Count = 32, hidden: Sizes = (256, 128)) -> None:
    """The score that a user gives a film, from all that is known of both, the films in `history`
    among it, through layers with relu.

    The second net that the chapter describes; scores stand for its watch time. ``dim``: width of the
    vectors of ids, categories and titles; that of gender, age and job is half of it.
    """
    with net.layer("user"):
        user = [_row(net, "user_id", "user_table", dim), *_known(net, dim)]
    with net.layer("movie"):
        films = layers.fc(net, _row(net, "movie_id", FILMS, dim), size=dim)
        pools = [
            layers.sequence_pool(net, _row(net, field, table, dim), kind="average")
            for field, table in (("category_id", "category_table"), ("movie_title", "title_table"))
        ]
    y = _relus(net, layers.concat(net, *user, films, *pools), hidden)
    with net.naming("prediction"):
        prediction = layers.fc(net, y, size=1)
    net.output("prediction", prediction)
    losses.square_error_cost(net, prediction, net.label())


FILMS = "movie_table"
"""The table that the history and the film to be rated share."""


def _known(net: Network, dim: int) -> list[Tensor]:
    """The mean vector of the films in a user's history, and the user's own features."""
    films = layers.sequence_pool(net, _row(net, "history", FILMS, dim), kind="average")
    return [films, *(_row(net, field, table, max(dim // 2, 1)) for field, table in USER_FIELDS)]


def _relus(net: Network, x: Tensor, hidden: Sizes) -> Tensor:
    for size in hidden:
        x = layers.fc(net, x, size=size, activation="relu", weight_init="msra")
    return x


def user_tower(net: Network, dim: int, side_dim: int, size: int) -> Tensor:
    """The user's features as [N, size]."""
    with net.layer("user"):
        parts = [layers.fc(net, _row(net, "user_id", "user_table", dim), size=dim)]
        parts += [
            layers.fc(net, _row(net, field, table, side_dim), size=side_dim)
            for field, table in USER_FIELDS
        ]
        return layers.fc(net, layers.concat(net, *parts), size=size, activation="tanh")


def movie_tower(net: Network, dim: int, size: int) -> Tensor:
    """The movie's features as [N, size]."""
    with net.layer("movie"):
        ids = layers.fc(net, _row(net, "movie_id", "movie_table", dim), size=dim)
        categories = _row(net, "category_id", "category_table", dim)
        title = sequence_conv(
            net, _row(net, "movie_title", "title_table", dim), filters=dim, activation="tanh"
        )
        pools = [layers.sequence_pool(net, t) for t in (categories, title)]
        return layers.fc(net, layers.concat(net, ids, *pools), size=size, activation="tanh")


def _row(net: Network, field: str, table: str, dim: int) -> Tensor:
    x = net.feature(field)
    return layers.embedding(net, x, size=words_of(net, x), dim=dim, sparse=True, table=table)
