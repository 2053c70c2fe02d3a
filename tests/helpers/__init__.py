"""What several tests share: slow twins, test doubles, data, and fixtures that releases must keep."""
