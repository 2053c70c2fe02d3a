"""A page served on this machine alone, and the decisions made on it, on disk before anybody is told that they are.

- `ledger`: the decisions and their file;
- `lock`: one review of a file at a time;
- `server`: what browsers may ask, and who else may not;
- `connections`: how many may ask at once, and how long each may take.
"""

from untwist.review.ledger import Ledger
from untwist.review.lock import Lock
from untwist.review.server import ReviewServer

__all__ = ["Ledger", "Lock", "ReviewServer"]
