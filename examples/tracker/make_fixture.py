"""Write the tracker's database, the same on every run: python make_fixture.py [FILE]"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent

SCHEMA = """
create table projects (key text primary key, name text not null);
create table issues (
    key text primary key,
    project text not null references projects (key),
    number integer not null,
    title text not null,
    type text not null,
    status text not null,
    priority text not null,
    assignee text not null,
    version text not null
);
create table labels (key text not null references issues (key), label text not null, primary key (key, label));
create table history (
    id integer primary key, key text not null references issues (key), day text not null, event text not null
);
"""

PROJECTS = {"BILL": "Billing", "AUTH": "Accounts", "WEB": "Web app"}

# key | title | type | status | priority | assignee | version | labels
ISSUES = """
BILL-118 | Invoice PDF drops the last page | support | closed | low | Jonas Weber | 4.2.1 |
BILL-163 | Refund is paid twice after a retry | bug | open | urgent | Priya Nair | 4.9.0 | payments
BILL-207 | Export invoices as CSV | feature | open | low | Mei Okafor | 5.1.0 |
BILL-254 | Tax is rounded per line | bug | in_progress | high | Tomas Lind | 4.6.3 | tax
BILL-311 | Coupon survives a plan downgrade | support | open | normal | Aisha Karim | 5.0.4 |
BILL-368 | Card expiry mail goes out late | support | closed | normal | Priya Nair | 4.7.8 |
BILL-425 | Yearly plan renews a day early | support | blocked | high | Dana Ruiz | 4.8.5 |
BILL-482 | Currency flips to dollars at checkout | bug | open | urgent | Jonas Weber | 5.0.2 |
AUTH-104 | Login loops after a password reset | bug | closed | urgent | Dana Ruiz | 3.4.1 | security
AUTH-139 | Backup codes print on two pages | bug | open | low | Tomas Lind | 3.7.6 |
AUTH-172 | Passkeys for shared devices | feature | open | normal | Aisha Karim | 4.1.0 |
AUTH-216 | Session ends while typing a comment | bug | blocked | high | Mei Okafor | 3.9.3 | session
AUTH-248 | Captcha fails for long surnames | bug | in_progress | normal | Priya Nair | 3.8.8 |
AUTH-291 | Invite link opens the wrong team | bug | open | high | Jonas Weber | 4.0.7 |
AUTH-337 | Lockout mail names the wrong city | bug | closed | low | Aisha Karim | 3.6.2 |
AUTH-388 | Remember-me cookie expires on Sundays | bug | open | normal | Tomas Lind | 4.0.9 | session
WEB-57 | Dark mode flickers on scroll | bug | open | low | Mei Okafor | 7.3.2 | theme
WEB-93 | Search box loses accents | bug | closed | normal | Dana Ruiz | 7.1.5 |
WEB-128 | Keyboard shortcuts for the board | feature | blocked | low | Jonas Weber | 7.8.0 | accessibility
WEB-166 | Calendar shows two Mondays | bug | in_progress | high | Aisha Karim | 7.6.4 |
WEB-201 | Drag and drop skips a column | bug | open | normal | Priya Nair | 7.5.1 |
WEB-239 | Avatar upload rejects portrait photos | bug | open | low | Tomas Lind | 7.4.9 |
WEB-274 | Tooltip hides the save button | bug | closed | high | Mei Okafor | 7.2.6 |
WEB-315 | Print view cuts long tables | bug | open | normal | Dana Ruiz | 7.7.3 | print
"""

# key: the days on which it was opened, closed, reopened, closed, reopened ...
HISTORY = """
BILL-118: 2026-01-08 2026-02-25 2026-03-03 2026-03-19
BILL-163: 2026-02-20 2026-03-02 2026-03-06 2026-03-27 2026-03-30 2026-04-10 2026-04-14
BILL-207: 2026-04-02
BILL-254: 2026-01-05 2026-01-16 2026-01-20 2026-02-02 2026-02-03 2026-02-13 2026-02-17 2026-03-05 2026-03-09 2026-04-01 2026-04-08
BILL-311: 2026-03-11
BILL-368: 2026-02-06 2026-03-24
BILL-425: 2026-01-28 2026-02-04 2026-02-10 2026-02-18 2026-02-23
BILL-482: 2026-02-27 2026-03-02 2026-03-04 2026-03-10 2026-03-12 2026-03-20 2026-03-25
AUTH-104: 2026-01-12 2026-01-19 2026-01-30 2026-02-05
AUTH-139: 2026-03-16
AUTH-172: 2026-02-09
AUTH-216: 2026-02-24 2026-03-02 2026-03-03 2026-03-06 2026-03-10 2026-03-13 2026-03-17 2026-03-20 2026-03-26
AUTH-248: 2026-03-18
AUTH-291: 2026-01-22 2026-02-11 2026-04-16
AUTH-337: 2026-02-03 2026-02-12
AUTH-388: 2026-03-29
WEB-57: 2026-01-14 2026-01-27 2026-03-31
WEB-93: 2026-01-06 2026-01-15
WEB-128: 2026-02-19
WEB-166: 2026-03-23
WEB-201: 2026-02-16 2026-03-09 2026-04-21
WEB-239: 2026-04-07
WEB-274: 2026-01-21 2026-02-26
WEB-315: 2026-03-13 2026-03-24 2026-04-03
"""  # noqa: E501 - a table


def _fields(table: str, separator: str) -> list[list[str]]:
    return [[field.strip() for field in line.split(separator)] for line in table.strip().splitlines()]


def _add_issues(database: sqlite3.Connection) -> None:
    for key, title, kind, status, priority, assignee, version, label in _fields(ISSUES, "|"):
        project, _, number = key.partition("-")
        row = (key, project, int(number), title, kind, status, priority, assignee, version)
        database.execute("insert into issues values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if label:
            database.execute("insert into labels values (?, ?)", (key, label))


def _add_history(database: sqlite3.Connection) -> None:
    for key, days in _fields(HISTORY, ":"):
        for place, day in enumerate(days.split()):
            event = "opened" if place == 0 else ("reopened", "closed")[place % 2]
            database.execute("insert into history (key, day, event) values (?, ?, ?)", (key, day, event))


def make_fixture(path: Path) -> None:
    """Write the database to `path`, in place of what is there."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        database.executemany("insert into projects values (?, ?)", PROJECTS.items())
        _add_issues(database)
        _add_history(database)


if __name__ == "__main__":
    make_fixture(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "fixtures" / "tracker.db")
