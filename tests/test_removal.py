"""A folder goes with all that is in it, whatever was done to it, and nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcptrials.removal import remove_tree

DEEP = """
import os, sys
from pathlib import Path
from mcptrials.removal import remove_tree
folder, theirs, here = Path(sys.argv[1]), sys.argv[2], os.getcwd()
for name in ("d", "n" * 200):
    os.chdir(folder)
    for _ in range(120):  # deeper than the stack, and more than a path can name
        os.mkdir(name)
        os.chdir(name)
        os.symlink(theirs, "link")
        open("file", "w").close()
os.chdir(here)
sys.setrecursionlimit(100)
remove_tree(folder)
"""
FORBIDDEN = """
import os, shutil, sys, tempfile
from pathlib import Path
from mcptrials.removal import remove_tree
if os.geteuid() == 0:  # whom nothing is forbidden
    os.setgid(65534)
    os.setuid(65534)
folder = Path(tempfile.mkdtemp())
(folder / "mod/cache/inner").mkdir(parents=True)
(folder / "mod/cache/inner/file").write_text("x")
for path, mode in (("mod/cache/inner", 0), ("mod/cache", 0o555), ("mod", 0o300), ("", 0o500)):
    (folder / path).chmod(mode)
shutil.rmtree(folder, ignore_errors=True)
assert folder.exists()
remove_tree(folder)
assert not folder.exists()
"""


def test_a_folder_of_any_depth_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    folder, theirs = tmp_path / "deep", tmp_path / "theirs"
    folder.mkdir()
    theirs.mkdir()
    (theirs / "keep").write_text("x")
    subprocess.run([sys.executable, "-c", DEEP, folder, theirs], check=True, timeout=60)
    assert [*tmp_path.rglob("*")] == [theirs, theirs / "keep"]


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/keep").write_text("x")
    (tmp_path / "link").symlink_to("theirs")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "theirs/keep").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_folders_that_forbid_their_owner_go_too() -> None:
    subprocess.run([sys.executable, "-c", FORBIDDEN], check=True, timeout=60, cwd="/")
