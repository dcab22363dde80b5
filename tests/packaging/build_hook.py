"""Keeps .gitignore out of the sdist, to which hatchling adds it."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WithoutGitignore(BuildHookInterface):
    def initialize(self, version, build_data):
        added = build_data["force_include"]
        for path in [path for path, place in added.items() if place == ".gitignore"]:
            del added[path]
