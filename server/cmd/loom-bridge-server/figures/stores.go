package figures

import (
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// farStore is a store in PostgreSQL.
type farStore interface {
	Stats() pgkv.Stats
	Schema() string
	Self() registry.Bridge
}

// ofFarStore shows how a store in PostgreSQL is used, by its schema and the name of this
// server among the servers that share it.
func ofFarStore(store farStore) source {
	return func(show shower) {
		show = show.with("postgres_", "store", store.Schema(), "bridge", store.Self().Name)
		s := store.Stats()
		for name, pool := range map[string]pgkv.Pool{"calls": s.Calls, "views": s.Views} {
			show("connections", "Connections to PostgreSQL in use, by pool.", float64(pool.InUse), "pool", name)
			show("connections_most", "How many there may be.", float64(pool.Most), "pool", name)
			show("connection_waits_total", "How often somebody waited for a connection.", float64(pool.Waits), "pool", name)
			show("connection_wait_seconds_total", "How long they waited together.", pool.WaitTime.Seconds(), "pool", name)
		}
		show("commits_total", "Commits that were written.", float64(s.Commits))
		show("conflicts_total", "Commits that were refused because something else was written before.", float64(s.Conflicts))
		show("unknown_outcomes_total", "Commits of which no answer came.", float64(s.Unknown))
		show("transactions_total", "Transactions that wrote commits, several at once where several waited.", float64(s.Joins))
		show("transaction_seconds_total", "How long these took together.", s.CommitTime.Seconds())
	}
}

// ofHealth shows how the store is.
func ofHealth(health *kv.Health, scrub func() integrity.Report) source {
	return func(show shower) {
		show = show.with("store_")
		condition, _ := health.Condition()
		show("writable", "1 while writes can succeed, 0 while they can't.", oneIf(condition.Failed == nil))
		for _, ks := range append(kv.Keyspaces(), kv.WholeStore) {
			show("damaged", "1 while something is known to be damaged, by keyspace; store stands for what belongs to all.", oneIf(condition.Damaged[ks] != nil), "keyspace", ks.String())
		}
		report, last := scrub(), 0.0
		if !report.End.IsZero() {
			last = float64(report.End.UnixMilli()) / 1000
		}
		show("scrub_passes_total", "How often the whole store was read back.", float64(report.Passes))
		show("scrub_bytes_total", "Bytes that were read for it.", float64(report.Bytes))
		show("scrub_findings", "What the last such reading found damaged.", float64(report.Damaged))
		show("scrub_last_end_seconds", "When it ended, in seconds since 1970; 0 for never.", last)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// ofBackups shows how the backups go.
func ofBackups(keeper *backup.Keeper) source {
	return func(show shower) {
		show = show.with("backup_")
		r, last := keeper.Report(), 0.0
		if !r.Last.Time.IsZero() {
			last = float64(r.Last.Time.UnixMilli()) / 1000
		}
		show("made_total", "Backups that were made.", float64(r.Made))
		show("failed_total", "Backups that failed.", float64(r.Failed))
		show("last_seconds", "When the newest backup was begun, in seconds since 1970; 0 for none.", last)
		show("duration_seconds", "How long the last backup took; 0 if this server has made none.", r.Seconds)
		show("bytes", "Size of the newest backup.", float64(r.Last.Bytes))
		show("new_bytes", "Size of what the newest backup has that the one before had not.", float64(r.Last.NewBytes))
	}
}

// ofMesh shows what a mesh does, by this server's id. A peer's series ends when it goes.
func ofMesh(with *mesh.Mesh) source {
	return func(show shower) {
		show = show.with("mesh_", "bridge", with.Self().ID)
		s := with.Stats()
		show("peers", "Servers that are there.", float64(s.Peers))
		show("links", "Routes to other servers, or the connection to the NATS server.", float64(s.Links))
		show("requests", "Requests of other servers that run.", float64(s.Serving))
		show("sent_total", "Messages, requests and answers that were sent.", float64(s.Sent))
		show("received_total", "Messages, requests and answers that came.", float64(s.Received))
		show("dropped_total", "Received messages that were dropped: a queue was full, or no handler was registered.", float64(s.Dropped))
		show("unsent_total", "Messages that could not be sent.", float64(s.Unsent))
		show("refused_total", "Messages that came and are not believed: malformed, foreign, late, or of a server that is gone.", float64(s.Refused))
		for _, t := range with.Traffic() {
			show("received_from_total", "Messages that came from a server since it is there.", float64(t.Received), "peer", t.Peer.ID)
		}
	}
}
