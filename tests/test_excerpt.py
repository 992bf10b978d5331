"""What is shown of a long text tells what its reader must know."""

import pytest

from mcptrials.excerpt import telling

NPM = """npm error code E404
npm error 404 Not Found - GET https://packages.example/nosuch
npm error 404
npm error A complete log of this run can be found in: /root/.npm/_logs/debug-0.log
"""
NODE = "node:internal:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x.js'\n    at load\n\nNode.js v22.1.0\n"
PYTHON = """INFO failed to load a theme
Traceback (most recent call last):
  File "x.py", line 3, in <module>
    raise ValueError("fatal")
shop.db.NoFileError: there is no shop.db
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | ConnectionError: no route to the store
    +------------------------------------
"""
PULL = """Unable to find image 'none:1' locally
docker: Error response from daemon: pull access denied for none

Run 'docker run --help' for more information
"""
FORM = "docker: invalid reference format\n\nRun 'docker run --help' for more information\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NPM, "npm error code E404 / npm error 404 Not Found - GET https://packages.example/nosuch"),
        (NODE, "Error: Cannot find module '/x.js'"),
        (PYTHON, "shop.db.NoFileError: there is no shop.db"),
        (PULL, "docker: Error response from daemon: pull access denied for none"),
        (FORM, "docker: invalid reference format"),
        (GROUP, "ConnectionError: no route to the store"),
        ("starting\nno database, giving up\n", "no database, giving up"),
        ("fatal: a\nfatal: a\nbye", "fatal: a"),
        ("listening with 0 errors\nbye", "bye"),
        (" \n", ""),
        ("error: " + "x" * 400, "error: " + "x" * 293 + "[...]"),
    ],
)
def test_the_stderr_of_a_failed_program_is_cut_to_what_tells_why(text: str, why: str) -> None:
    assert telling(text, 300) == why
