"""Makes the database that a trial starts from."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

SCHEMA = """
create table customers (id integer primary key, name text not null, city text not null);
create table orders (
    id integer primary key,
    customer_id integer not null references customers,
    status text not null check (status in ('open', 'paid', 'shipped', 'returned')),
    cents integer not null,
    ordered_on text not null
);
"""
CUSTOMERS = (
    (1, "Hanna Berg", "Oslo"),
    (2, "Luis Ortega", "Lima"),
    (3, "Hanna Bergman", "Malmo"),
    (4, "Aiko Mori", "Kyoto"),
    (5, "Sam Okoye", "Lagos"),
)
ORDERS = (
    (101, 1, "shipped", 4250, "2026-01-12"),
    (102, 3, "open", 1999, "2026-01-30"),
    (103, 2, "paid", 12900, "2026-02-02"),
    (104, 1, "open", 1999, "2026-02-14"),
    (105, 4, "returned", 8800, "2026-02-20"),
    (106, 2, "shipped", 3100, "2026-03-01"),
    (107, 4, "paid", 5400, "2026-03-03"),
    (108, 2, "returned", 700, "2026-03-09"),
)


def make_shop(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        database.executemany("insert into customers values (?, ?, ?)", CUSTOMERS)
        database.executemany("insert into orders values (?, ?, ?, ?, ?)", ORDERS)


if __name__ == "__main__":
    make_shop(Path(sys.argv[1]))
