"""Plugins on disk: create, build, check, load and watch them."""
