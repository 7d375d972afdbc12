"""How pip builds the package: by hatchling, and not at all with a Python that is too old.

pip looks for the Python that a package needs only when it has built its description. So
this file runs on any Python 3.
"""

import os
import sys

OLDEST = (3, 11)

if sys.version_info >= OLDEST:
    from hatchling.build import (
        build_editable,
        build_sdist,
        build_wheel,
        get_requires_for_build_editable,
        get_requires_for_build_sdist,
        get_requires_for_build_wheel,
    )

    __all__ = [
        "build_editable",
        "build_sdist",
        "build_wheel",
        "get_requires_for_build_editable",
        "get_requires_for_build_sdist",
        "get_requires_for_build_wheel",
    ]
else:

    def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
        """Refuse, unless the description was requested first."""
        sys.exit("loombridge needs Python {}.{} or later, and this is {}.{}".format(*_versions()))

    build_editable = build_sdist = build_wheel

    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        """Write a description that states the required Python, which pip then reports."""
        folder = "loombridge-0.dist-info"
        os.mkdir(os.path.join(metadata_directory, folder))
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: loombridge\nVersion: 0\n")
            file.write("Requires-Python: >={}.{}\n".format(*OLDEST))
        return folder

    prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

    def _versions():
        return (*OLDEST, sys.version_info[0], sys.version_info[1])
