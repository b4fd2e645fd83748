"""Random numbers as the engine makes them, and a single tree that draws those of a forest's tree."""

from spinney._tree.settings import GrowthSettings

_WORD = 2**64 - 1


def scramble(x):
    """Turn a 64-bit number into one whose bits all depend on all of its bits."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def derive(key, branch):
    """Return the key of a branch."""
    return scramble((key + 0x9E3779B97F4A7C15 * (branch + 1)) & _WORD)


def like_tree_of(forest, t, kind, **parameters):
    """Return a single tree that takes chances as tree t of a fitted forest does: between equally good columns, too.

    Its values are shrunk as the forest's are.
    """

    class Seeded(GrowthSettings):
        def engine_options(self, *args, **options):
            return super().engine_options(*args, **(options | {"seed": derive(derive(forest._growth.seed, 101), t)}))

    class Alone(kind):
        @property
        def _settings(self):
            return Seeded.of(self, random_ties=True)

    return Alone(**({"shrinkage": forest.shrinkage_} | parameters))
