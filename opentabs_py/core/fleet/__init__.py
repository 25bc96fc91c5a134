"""Decisions of a fleet: choice of workers, liveness, ordered delivery."""
