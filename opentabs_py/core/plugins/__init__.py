"""The files of a plugin: manifests, settings, sources, and their problems."""
