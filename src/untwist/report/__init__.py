"""What an audit of labels found, as one HTML file that needs nothing else."""

from untwist.audit.comparison import Peer, compare
from untwist.report.page import report

__all__ = ["Peer", "compare", "report"]
