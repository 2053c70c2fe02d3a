"""The mathematics of the paper, in its own letters: losses, links, twists, and what can be proved of a run.

- `losses`: what an estimate of a posterior costs; the alpha-loss.
- `properties`: what a loss must fulfil, as checks that can fail.
- `links`: from a booster's score to the twisted and the clean posterior.
- `closed_form_links`: the links of some losses in closed form, which take the place of the general recipe.
- `twists`: what label noise does to posteriors, and the alpha that undoes it.
- `explorer`: whether a family of losses is twist-proper.
- `certificate`: the convergence theorem, checked on a finished run.
- `numerics`: slopes, roots, integrals and minimisers for what has no closed form.

The room imports NumPy, SciPy, `untwist.arguments` and the compiled core, and nothing else of the package. What it needs
of a boosting round or of a loss it states as a protocol.
"""

# The closed forms of links register themselves when they are imported. A package is imported before its modules, so
# nobody gets `links` without them.
from untwist.theory import closed_form_links as closed_form_links
