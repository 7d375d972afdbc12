"""Searches the same texts with other engines of full-text search.

The first argument is a JSON file: `engine`, `limit`, `seconds`, and a list of talks, each
with `records` (id, text) in order and `queries`: `text`, `words` (those of the text that
say something) and `after`, how many of the records exist when it is asked. The second
argument is a folder for the engine's files. The answer is printed as JSON: `version` and
for each talk `load_seconds`, `hits` and `times`; or `missing`, the command that installs
what the engine needs. With `seconds` above zero the queries of each talk are asked again
and again for that long, and `times` says how long each took, in nanoseconds.
"""

import glob
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Missing(Exception):
    """Holds the command that installs what an engine needs."""


def need(*modules):
    """Imports modules from PyPI; the names of a module and its package may differ."""
    found = []
    for module, package in modules:
        try:
            found.append(importlib.import_module(module))
        except ImportError:
            raise Missing("python3 -m pip install " + " ".join(dict.fromkeys(p for _, p in modules))) from None
    return found


class SQLite:
    """FTS5 with the Porter stemmer, BM25, any of the words."""

    def __init__(self, folder):
        import sqlite3

        self.version = "SQLite %s FTS5, porter" % sqlite3.sqlite_version
        self.db = sqlite3.connect(os.path.join(folder, "fts.db"))
        self.db.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, body, tokenize='porter unicode61')")

    def add(self, records):
        with self.db:
            self.db.executemany("INSERT INTO t VALUES (?, ?)", records)
        with self.db:
            self.db.execute("INSERT INTO t(t) VALUES ('optimize')")

    def search(self, query, limit):
        match = " OR ".join('"%s"' % w for w in query["words"])
        rows = self.db.execute("SELECT id, body FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (match, limit))
        return [row[0] for row in rows.fetchall()] if match else []

    def close(self):
        self.db.close()


class Tantivy:
    """The analyser en_stem, BM25, any of the words."""

    def __init__(self, folder):
        (self.module,) = need(("tantivy", "tantivy"))
        self.version = "tantivy %s, en_stem" % version_of("tantivy")
        schema = self.module.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("body", tokenizer_name="en_stem")
        self.index = self.module.Index(schema.build(), path=folder)

    def add(self, records):
        writer = self.index.writer(num_threads=1)
        for name, body in records:
            writer.add_document(self.module.Document(id=[name], body=[body]))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, query, limit):
        words = " ".join('"%s"' % w for w in query["words"])
        if not words:
            return []
        parsed = self.index.parse_query(words, ["body"])
        hits = self.searcher.search(parsed, limit, count=False).hits
        return [self.searcher.doc(address)["id"][0] for _, address in hits]

    def close(self):
        pass


class BM25S:
    """English stop words and the Snowball stemmer, its default BM25 (Lucene's)."""

    def __init__(self, folder):
        self.module, stemmer, _ = need(("bm25s", "bm25s"), ("Stemmer", "PyStemmer"), ("numpy", "numpy"))
        self.version = "bm25s %s, Snowball English" % version_of("bm25s")
        self.stemmer = stemmer.Stemmer("english")
        self.ids, self.tokens = [], []

    def words(self, texts):
        return self.module.tokenize(texts, stopwords="en", stemmer=self.stemmer, return_ids=False, show_progress=False)

    def add(self, records):
        self.ids += [name for name, _ in records]
        self.tokens += self.words([body for _, body in records])
        self.index = self.module.BM25()
        self.index.index(self.tokens, show_progress=False)

    def search(self, query, limit):
        words = self.words([query["text"]])
        if not words[0]:
            return []
        found, scores = self.index.retrieve(words, k=min(limit, len(self.ids)), show_progress=False)
        return [self.ids[i] for i, score in zip(found[0], scores[0]) if score > 0]

    def close(self):
        pass


class LanceDB:
    """Its full-text index in English: stemmed, without stop words."""

    def __init__(self, folder):
        self.module, index = need(("lancedb", "lancedb"), ("lancedb.index", "lancedb"))
        self.config = index.FTS(language="English", stem=True, remove_stop_words=True)
        self.version = "LanceDB %s full text, English" % version_of("lancedb")
        self.db = self.module.connect(folder)
        self.table = None

    def add(self, records):
        rows = [{"id": name, "body": body} for name, body in records]
        if self.table is None:
            self.table = self.db.create_table("t", rows)
        else:
            self.table.add(rows)
        self.table.create_index("body", config=self.config, replace=True)

    def search(self, query, limit):
        found = self.table.search(query["text"], query_type="fts", fts_columns="body").limit(limit)
        return [row["id"] for row in found.select(["id", "_score"]).to_list()]

    def close(self):
        pass


class PostgreSQL:
    """The dictionary english, ts_rank, any of the words."""

    install = "apt-get install postgresql && python3 -m pip install 'psycopg[binary]'"

    def __init__(self, folder):
        try:
            (psycopg,) = need(("psycopg", "psycopg[binary]"))
        except Missing:
            raise Missing(self.install) from None
        # The server refuses root, and its user may not reach the folder of another.
        self.folder, self.user = tempfile.mkdtemp(prefix="bench-postgres-", dir="/tmp"), None
        if os.getuid() == 0:
            self.user = "postgres" if "postgres" in open("/etc/passwd").read() else "nobody"
            shutil.chown(self.folder, self.user)
        store = os.path.join(self.folder, "store")
        self.run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=bench", "--no-sync", store)
        server = [self.program("postgres"), "-D", store, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        self.server = subprocess.Popen(server, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.db = self.connect(psycopg)
        version = self.db.execute("SHOW server_version").fetchone()[0].split()[0]
        self.version = "PostgreSQL %s full text, english" % version
        self.db.execute("CREATE TABLE t (place serial, id text, body text, words tsvector)")
        self.db.execute("CREATE INDEX ON t USING gin (words)")

    def program(self, name):
        found = shutil.which(name) or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name), reverse=True)), None)
        if found is None:
            raise Missing(self.install)
        return found

    def run(self, name, *arguments):
        try:
            subprocess.run([self.program(name), *arguments], user=self.user, cwd=self.folder, check=True, capture_output=True)
        except Exception:
            shutil.rmtree(self.folder)
            raise

    def connect(self, psycopg):
        for attempt in range(100):
            try:
                return psycopg.connect(host=self.folder, user="bench", dbname="postgres", autocommit=True)
            except psycopg.OperationalError:
                time.sleep(0.1)  # it is starting
        self.close()
        raise RuntimeError("PostgreSQL does not answer")

    def add(self, records):
        with self.db.transaction(), self.db.cursor() as cursor:
            cursor.executemany("INSERT INTO t (id, body, words) VALUES (%s, %s, to_tsvector('english', %s))",
                               [(name, body, body) for name, body in records])

    def search(self, query, limit):
        rows = self.db.execute(
            "WITH q AS (SELECT replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery AS q)"
            " SELECT id FROM t, q WHERE words @@ q ORDER BY ts_rank(words, q) DESC, place LIMIT %s", (query["text"], limit))
        return [row[0] for row in rows.fetchall()]

    def close(self):
        if hasattr(self, "db"):
            self.db.close()
        self.server.terminate()
        self.server.wait()
        shutil.rmtree(self.folder)


ENGINES = {"sqlite": SQLite, "tantivy": Tantivy, "bm25s": BM25S, "lancedb": LanceDB, "postgresql": PostgreSQL}


def version_of(package):
    from importlib.metadata import version

    return version(package)


def measure(engine, queries, limit, seconds):
    """Searches again and again; the first tenth of the time does not count."""
    times = []
    start = time.perf_counter()
    end, counted = start + seconds, start + seconds / 10
    n = 0
    while (began := time.perf_counter()) < end:
        engine.search(queries[n % len(queries)], limit)
        n += 1
        if began > counted:
            times.append(time.perf_counter() - began)
    return [round(t * 1e9) for t in sorted(times)]


def answer(engine, talk, job):
    """Adds the records that exist by each query, and asks it."""
    records, queries = talk["records"], talk["queries"]
    known, took, hits = 0, 0.0, []
    for query in queries:
        if query["after"] > known:
            began = time.perf_counter()
            engine.add(records[known:query["after"]])
            took, known = took + time.perf_counter() - began, query["after"]
        if not job["seconds"]:
            hits.append(engine.search(query, job["limit"]) if known else [])
    times = measure(engine, queries, job["limit"], job["seconds"]) if job["seconds"] else []
    return {"load_seconds": took, "hits": hits, "times": times}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        job = json.load(f)
    answers, version = [], ""
    try:
        for i, talk in enumerate(job["talks"]):
            folder = os.path.join(sys.argv[2], str(i))
            os.mkdir(folder)
            engine = ENGINES[job["engine"]](folder)
            version = engine.version
            try:
                answers.append(answer(engine, talk, job))
            finally:
                engine.close()
    except Missing as e:
        json.dump({"missing": str(e)}, sys.stdout)
        return
    json.dump({"version": version, "talks": answers}, sys.stdout)


main()
