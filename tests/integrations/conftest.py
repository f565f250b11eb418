"""Not every worker of a test run should import Lightning when it looks for doctests."""

collect_ignore = ["pair.py"]
