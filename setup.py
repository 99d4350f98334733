"""Names the packages; everything else is in pyproject.toml.

`graft_app` and `graft_sample_data` live in `app/` and `sample_data/`: a mapping that pyproject.toml can only
state together with a full list of sub-packages, which would be forgotten with the next folder.
"""

from setuptools import find_namespace_packages, find_packages, setup

FOLDERS = {"graft_app": "app", "graft_sample_data": "sample_data"}


def packages() -> list[str]:
    """Every package of the distribution, by the name it is imported under."""
    found = find_packages(include=["graft_core", "graft_core.*"])
    for name, folder in FOLDERS.items():
        inner = find_namespace_packages(folder, exclude=["*__pycache__*"])
        found += [name, *(f"{name}.{package}" for package in inner)]
    return found


setup(packages=packages(), package_dir=FOLDERS)
