"""Searches with SQLite's FTS5 in this process and says how long that took.

The first argument is a JSON file: a list of scopes, each with `records` (id,
author, text) and `queries`, and `limit` and `seconds`. The second is where the
databases go. The answer is printed as JSON.
"""

import json
import os
import sqlite3
import sys
import time


def load(path, records):
    db = sqlite3.connect(path)
    db.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, author, body, tokenize='porter unicode61')")
    began = time.perf_counter()
    with db:
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", records)
    took = time.perf_counter() - began
    with db:
        db.execute("INSERT INTO t(t) VALUES ('optimize')")
    return db, took


def search(db, query, limit):
    """`query` is words with OR between them."""
    return db.execute("SELECT id, body FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (query, limit)).fetchall()


def measure(db, queries, limit, seconds):
    """Searches again and again; the first tenth of the time does not count."""
    times = []
    start = time.perf_counter()
    end, counted = start + seconds, start + seconds / 10
    n = 0
    while (began := time.perf_counter()) < end:
        search(db, queries[n % len(queries)], limit)
        n += 1
        if began > counted:
            times.append(time.perf_counter() - began)
    return sorted(times)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        job = json.load(f)
    answers = []
    for i, scope in enumerate(job["scopes"]):
        db, took = load(os.path.join(sys.argv[2], f"{i}.db"), scope["records"])
        answer = {"load_seconds": took, "hits": [], "times": []}
        if job["seconds"] > 0:
            answer["times"] = [round(t * 1e9) for t in measure(db, scope["queries"], job["limit"], job["seconds"])]
        else:
            answer["hits"] = [[row[0] for row in search(db, q, job["limit"])] for q in scope["queries"]]
        answers.append(answer)
        db.close()
    json.dump({"version": sqlite3.sqlite_version, "answers": answers}, sys.stdout)


main()
