package memory

import (
	"context"
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// lives is what the life of a scope's records should have left on the disk.
type lives struct {
	scope    kv.Scope
	versions map[string]int64  // how many earlier versions the record has
	expiring map[string][]byte // the key that says when it expires
}

// checkLife compares earlier versions and moments of expiry with the records.
func checkLife(ctx context.Context, view kv.Reader, scope kv.Scope, found *lexical.Differences) error {
	l := lives{scope, make(map[string]int64), make(map[string][]byte)}
	for r, err := range record.All(ctx, view, scope) {
		if err != nil {
			return err
		}
		if first, end := r.KeptVersions(); end > first {
			l.versions[r.ID] = end - first
		}
		if !r.ExpireTime.IsZero() {
			l.expiring[r.ID] = expiryKey(scope, r.ExpireTime, r.ID)
		}
	}
	if err := l.checkVersions(ctx, view, found); err != nil {
		return err
	}
	return l.checkExpiry(ctx, view, found)
}

func (l lives) checkVersions(ctx context.Context, view kv.Reader, found *lexical.Differences) error {
	kept, total := make(map[string]int64), int64(0)
	prefix := l.scope.Key(record.TagVersion)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		id, number, err := kv.CutEscaped(pair.Key[len(prefix):])
		if err != nil {
			return err
		}
		r, err := record.Decode(pair.Value)
		if err != nil {
			return err
		}
		if len(number) != 8 || r.ID != id || r.Version != int64(binary.BigEndian.Uint64(number)) {
			found.Add("version %d of record %q is kept as version %x of %q", r.Version, r.ID, number, id)
		}
		kept[id]++
		total++
	}
	for id, want := range l.versions {
		if kept[id] != want {
			found.Add("%d earlier versions of record %q are kept, %d there should be", kept[id], id, want)
		}
		delete(kept, id)
	}
	for id, n := range kept {
		found.Add("%d earlier versions are kept of record %q, which has none", n, id)
	}
	counted, err := readVersionCount(ctx, view, l.scope)
	if err == nil && counted != total {
		found.Add("%d earlier versions are counted, %d are kept", counted, total)
	}
	return err
}

func (l lives) checkExpiry(ctx context.Context, view kv.Reader, found *lexical.Differences) error {
	prefix := l.scope.Key(tagExpiry)
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		const moment = 8
		id := string(pair.Key[min(len(prefix)+moment, len(pair.Key)):])
		if string(l.expiring[id]) != string(pair.Key) {
			found.Add("a key says that record %q expires at another time than it does", id)
		}
		delete(l.expiring, id)
	}
	for id := range l.expiring {
		found.Add("no key says when record %q expires", id)
	}
	return nil
}
