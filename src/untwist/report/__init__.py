"""What an audit of labels found, as one HTML file that needs nothing else."""

from untwist.report.page import report
from untwist.report.peers import Peer, compare

__all__ = ["Peer", "compare", "report"]
