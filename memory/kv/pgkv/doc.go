// Package pgkv is the engine of the kv contract over PostgreSQL 15 or later: for those
// who have a server that is replicated and backed up already, and for a store that must
// outlive the machine.
//
// The nouns:
//
//   - A [DB] is an open store: a schema of one database. A table for each keyspace holds
//     (key, value), and the table sequences the sequence and the token of each ref.
//   - A join is the set of commits that waited while those before were on their way. It
//     is one transaction and one round trip; each commit of it holds or fails by itself.
//   - A lane is a connection that writes one join at a time.
//   - A view is a transaction (REPEATABLE READ) on its own connection, which a
//     snapshot or a long scan holds until it ends or is too old.
//   - The notifier sends other processes (NOTIFY) the refs that have moved, after the
//     commit and several at once: in the commit it would take a lock of the whole database.
//   - The epoch counts who has opened the store for itself alone ([Options.Exclusive]).
//     Commits of an earlier epoch are refused.
//   - The fence is a key that the commits of one process rely on ([kv.Shared]): who was
//     taken for dead and lives writes nothing more.
//
// READ COMMITTED is enough for commits: the row of the sequence is locked and compared,
// and every key lies under a guarded ref. Rows are locked in the order of their keys, so
// that commits wait for one another and not in a circle.
//
// Caveats: a statement that was sent is never cancelled. A server that waits for its
// standby would make a cancelled commit visible without it; where an answer does not
// come in time ([Options.CommitTimeout]) the connections are given up and the outcome
// is unknown ([kv.ErrUnknownOutcome]). A view keeps the server from removing old
// versions of rows, which is why it lives for seconds. README.md has what can go wrong.
//
// server/docs/cluster.md says what to do where one PostgreSQL is not enough.
package pgkv
