"""Expectations: `expect`, what each means, and how a difference is shown."""
