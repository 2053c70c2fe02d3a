"""How long a test waits before it says that something hangs."""

# Whatever takes this many seconds hangs, however busy the machine is. No test measures how fast something is by it.
PATIENCE = 1200
