package erasures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// Suffixes of what a killed command leaves, which the next one removes or goes on from.
const (
	besideSuffix = ".loom-erasing" // next to the store: the new one, or the old one after the exchange
	partSuffix   = ".loom-partial" // next to the certificate: its content so far
)

// erasing is one run of the command.
type erasing struct {
	Options
	subject  erasure.Subject
	key, out string
	absence  bool // a certificate is signed also where nothing is found
	logger   *slog.Logger
}

func (e *erasing) run(ctx context.Context) error {
	if _, err := os.Lstat(e.out); !errors.Is(err, fs.ErrNotExist) {
		return e.Refuse("out", e.out, "exists; a certificate is never written over another")
	}
	place, err := e.place()
	if err != nil {
		return err
	}
	key, err := openKey(e.key)
	if err != nil {
		return e.Refuse("key", e.key, err.Error())
	}
	backups, err := e.Backups()
	if err != nil {
		return err
	}
	c, err := e.earlier()
	if err != nil {
		return err
	}
	picked, err := e.pick(ctx, place, c)
	if err != nil {
		return err
	}
	if err := e.find(ctx, place, c); err != nil {
		return err
	}
	if err := e.audit(ctx, c); err != nil {
		return err
	}
	if err := e.rewrite(ctx, place, c, picked); err != nil {
		return err
	}
	if c.Files, c.Tables, err = e.contents(ctx, place); err != nil {
		return err
	}
	if c.Left, c.Quoted, err = e.scan(ctx, place, c); err != nil {
		return err
	}
	if c.Left > 0 {
		return fmt.Errorf("%d entries of %s are left: this is a fault of the program; no certificate is written", c.Left, e.subject)
	}
	c.Engine = engineOf(place)
	c.Format, c.Version, c.Time = 1, e.Version, time.Now().UTC().Truncate(time.Second)
	c.Backups, c.Claimed, c.NotClaimed, c.TimeTravel = backups, erasure.Claimed(c.Engine), erasure.NotClaimed(e.subject, c.Engine), erasure.TimeTravel
	c.State()
	if err := c.Sign(key); err != nil {
		return err
	}
	if err := writeJSON(e.out+partSuffix, c); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(e.out+partSuffix, e.out), folder.Sync(filepath.Dir(e.out))); err != nil {
		return err
	}
	return e.report(c)
}

// place is where the store is. Nothing that has to outlive the erasure lies inside of it.
func (e *erasing) place() (stores.Place, error) {
	place, err := e.Place()
	if err != nil || place.Far() {
		return place, err
	}
	if place.Dir, err = filepath.EvalSymlinks(place.Dir); err != nil {
		return place, err
	}
	for _, file := range []struct{ flag, name string }{{"out", e.out}, {"key", e.key}} {
		switch inside, err := paths.Within(file.name, place.Dir); {
		case err != nil:
			return place, e.Refuse(file.flag, file.name, err.Error())
		case inside:
			return place, e.Refuse(file.flag, file.name, "is inside --data-dir, which is replaced as a whole; choose another folder")
		}
	}
	return place, nil
}

// engineOf is what a store is kept in.
func engineOf(place stores.Place) erasure.Engine {
	if place.Far() {
		return erasure.PostgreSQL
	}
	return erasure.RocksDB
}

// find notes how much the store has of the subject, before anything of it goes.
func (e *erasing) find(ctx context.Context, place stores.Place, c *erasure.Certificate) error {
	found, _, err := e.scan(ctx, place, c)
	if err != nil {
		return err
	}
	if c.Found = max(c.Found, found); c.Found > 0 {
		return writeJSON(e.out+partSuffix, c)
	}
	if e.absence {
		return nil
	}
	return fmt.Errorf("%w of %s; nothing was changed, and no certificate was written; --certify-absence signs one that says so", erasure.ErrNothing, e.subject)
}

func (e *erasing) report(c *erasure.Certificate) error {
	if c.Found == 0 {
		return e.say("%s The certificate is %s\n", c.Statement, e.out)
	}
	what := fmt.Sprintf("%d entries", c.Found)
	if len(c.Records) > 0 || c.RecordsAnew > 0 {
		what += fmt.Sprintf(" with %d records, and %d records of the same memory were written anew", len(c.Records), c.RecordsAnew)
	}
	if err := e.say("erased %s: %s, %d audit records; the certificate is %s\n", e.subject, what, c.AuditRecords, e.out); err != nil {
		return err
	}
	for _, whose := range slices.Sorted(maps.Keys(c.Quoted)) {
		if err := e.say("its id stands in %d entries that stay: %s\n", c.Quoted[whose], whose); err != nil {
			return err
		}
	}
	if len(c.Backups) > 0 {
		return e.say("%d backups may still hold it: %q; remove them (backup prune) when a newer one is made\n", len(c.Backups), c.Backups)
	}
	return nil
}

// earlier is what a run that was killed had already noted for the same certificate.
func (e *erasing) earlier() (*erasure.Certificate, error) {
	c, err := readCertificate(e.out + partSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &erasure.Certificate{Subject: e.subject}, nil
	case err != nil:
		return nil, err
	case c.Subject != e.subject:
		return nil, e.Refuse("out", e.out, "an erasure of "+c.Subject.String()+" was begun for it and has not ended; end that first")
	}
	return c, nil
}

// audit erases the records of calls, whose digests stay.
func (e *erasing) audit(ctx context.Context, c *erasure.Certificate) (err error) {
	if e.subject.Kind != erasure.Agent || e.subject.Filter != "" {
		return nil
	}
	engine, err := e.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	writer := kv.NewWriter(engine, nil)
	defer func() { err = errors.Join(err, writer.Close()) }()
	log := audit.New(engine, writer, &audit.Options{Retention: -1, Logger: e.logger})
	defer func() { err = errors.Join(err, log.Close()) }()
	n, err := log.Erase(ctx, e.subject.Tenant, e.subject.ID, e.subject.Session, e.subject.Step)
	c.AuditRecords = max(c.AuditRecords, n)
	return err
}

// rewrite puts a store without the subject into the place of the one there is, and removes
// that. What it counts is noted before the two change places: a run that is killed behind
// that finds nothing any more.
func (e *erasing) rewrite(ctx context.Context, place stores.Place, c *erasure.Certificate, picked erasure.Picked) (err error) {
	engine, err := e.open(ctx, place) // and no other process may open it until it is closed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if !place.Far() {
		if err := os.RemoveAll(place.Dir + besideSuffix); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(place.Dir+besideSuffix)) }()
	}
	eraser, err := erasure.New(ctx, e.subject, engine, picked)
	if err != nil {
		return err
	}
	return exchange(ctx, place, engine,
		func(ks kv.Keyspace, p kv.Pair) ([]byte, bool, error) { return eraser.Change(ctx, ks, p) },
		func(to kv.Engine) error { return e.refill(ctx, engine, to, c, picked) },
		func() error {
			c.Erased = most(c.Erased, eraser.Tallies())
			return writeJSON(e.out+partSuffix, c)
		})
}

// pick finds the records that a session or a filter takes out, which the certificate names.
func (e *erasing) pick(ctx context.Context, place stores.Place, c *erasure.Certificate) (picked erasure.Picked, err error) {
	if !e.subject.Narrowed() && e.subject.Kind != erasure.Agent {
		return nil, nil
	}
	if picked, err = e.picked(ctx, place); err != nil {
		return nil, err
	}
	c.Records = append(c.Records, erasure.Digests(picked)...) // to the records that an earlier run has erased
	slices.Sort(c.Records)
	c.Records = slices.Compact(c.Records)
	return picked, nil
}

// picked are the records that go. For a filter the index is asked, which is made anew where it
// is out of date; without one the store is only read.
func (e *erasing) picked(ctx context.Context, place stores.Place) (picked erasure.Picked, err error) {
	if e.subject.Filter == "" {
		engine, err := e.open(ctx, place)
		if err != nil {
			return nil, err
		}
		picked, err = erasure.Pick(ctx, engine, nil, e.subject)
		return picked, errors.Join(err, engine.Close())
	}
	engine, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	store, closeStore, err := e.memoryOf(engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	return erasure.Pick(ctx, engine, store, e.subject)
}

// memoryOf is the memory of a store, with no work in the background but what it asks for.
func (e *erasing) memoryOf(engine kv.Engine) (store *memory.Store, end func() error, err error) {
	o, err := e.Memory()
	if err != nil {
		return nil, nil, err
	}
	o.SweepEvery, o.Logger = -1, e.logger
	writer := kv.NewWriter(engine, nil)
	store = memory.New(engine, writer, &o)
	return store, func() error { return errors.Join(store.Close(), writer.Close()) }, nil
}

// refill writes the memories that the new store was made without, as far as they stay.
func (e *erasing) refill(ctx context.Context, from, to kv.Engine, c *erasure.Certificate, picked erasure.Picked) (err error) {
	if len(picked) == 0 {
		return nil
	}
	old, closeOld, err := e.memoryOf(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOld()) }()
	anew, closeNew, err := e.memoryOf(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeNew()) }()
	n, err := erasure.Refill(ctx, old, anew, e.subject, picked)
	c.RecordsAnew = max(c.RecordsAnew, n)
	return err
}

// carry copies what servers keep in folders inside of the store. A copy of the store that a backup was
// being made from is not carried: it goes with the old store.
func carry(from, to string) error {
	entries, err := os.ReadDir(from)
	for _, entry := range entries {
		if err == nil && entry.IsDir() && entry.Name() != "backup" {
			err = carryFolder(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
		}
	}
	return err
}

// carryFolder copies a folder; who may read what stays as it is, since there are keys among it.
func carryFolder(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, rel), info.Mode().Perm())
	})
}

// most are the higher counts of what went, with the newer ones of what stayed.
func most(before, now map[string]erasure.Tally) map[string]erasure.Tally {
	for name, t := range now {
		b := before[name]
		t.Erased, t.Changed, t.Bytes = max(t.Erased, b.Erased), max(t.Changed, b.Changed), max(t.Bytes, b.Bytes)
		now[name] = t
	}
	return now
}

// writeJSON writes a certificate whole or not at all.
func writeJSON(path string, c *erasure.Certificate) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

// writeFile writes a file that its owner alone can read, whole or not at all.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return folder.Sync(filepath.Dir(path))
}
