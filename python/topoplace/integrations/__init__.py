"""Adapters to schedulers, a package each. They translate and hold no placement logic: policies decide."""
