package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// writeBlobs writes the offloaded results of the agent or the session, and results of other
// sessions that the session's steps refer to.
func (w *writer) writeBlobs(ctx context.Context) error {
	for found, err := range w.Blobs.All(ctx, w.Scope, w.Session) {
		if err == nil {
			err = w.writeBlob(ctx, found)
		}
		if err = w.leftOut("result", nameOf(found, err), err); err != nil {
			return err
		}
	}
	if w.Session == "" {
		return nil
	}
	for entry, err := range w.Log.Entries(ctx, w.Scope, w.Session) {
		if errors.Is(err, session.ErrDamaged) {
			continue // it was reported with its session
		}
		if err != nil {
			return err
		}
		if entry.Step == nil || entry.Step.OutcomeRef == "" {
			continue
		}
		found, err := w.Blobs.Lookup(ctx, w.Scope, entry.Step.OutcomePath)
		if errors.Is(err, blob.ErrNotFound) {
			continue // it has expired
		}
		if err == nil && !w.exported[found.Home()] {
			err = w.writeBlob(ctx, found)
		}
		if err = w.leftOut("result", entry.Step.OutcomePath, err); err != nil {
			return err
		}
	}
	return nil
}

// nameOf is the path of a result, or of an entry that can't be read.
func nameOf(found blob.Entry, err error) string {
	if damaged, ok := errors.AsType[*blob.DamagedError](err); ok && found.Ref == "" {
		return damaged.Ref
	}
	return found.Home()
}

// writeBlob writes a blob under all its paths. Of a damaged one nothing is left.
func (w *writer) writeBlob(ctx context.Context, found blob.Entry) error {
	home := found.Home()
	if w.Session != "" {
		w.exported[home] = true
	}
	name := home
	file, err := w.tree.create(name)
	if errors.Is(err, ErrBadName) {
		name = RenamedFolder + found.Ref
		if file, err = w.tree.create(name); errors.Is(err, ErrBadName) && w.tree.made[name] {
			return w.describe(found, []string{name}) // the same bytes are there already
		}
	}
	if err != nil {
		return err
	}
	err = errors.Join(w.copyBlob(ctx, file, found), file.Close())
	if errors.Is(err, blob.ErrDamaged) {
		return errors.Join(err, w.tree.discard(name))
	}
	if err != nil {
		return err
	}
	names, err := w.linkAll(ctx, found, name)
	if err != nil {
		return err
	}
	return w.describe(found, names)
}

// linkAll gives a blob's file its further names and returns all of them.
func (w *writer) linkAll(ctx context.Context, found blob.Entry, name string) ([]string, error) {
	names := []string{name}
	for _, further := range append(slices.Clone(found.Aliases), found.Path) {
		if further == found.Home() {
			continue
		}
		err := w.tree.link(name, further)
		if err != nil && !errors.Is(err, ErrBadName) {
			err = w.copyAs(ctx, found, further) // not every file system has links
		}
		if err != nil && !errors.Is(err, ErrBadName) {
			return nil, err
		}
		if err == nil {
			names = append(names, further)
		}
	}
	return names, nil
}

// copyAs writes a blob's bytes to one more file.
func (w *writer) copyAs(ctx context.Context, found blob.Entry, name string) error {
	file, err := w.tree.create(name)
	if err != nil {
		return err
	}
	return errors.Join(w.copyBlob(ctx, file, found), file.Close())
}

// copyBlob writes a blob's bytes and compares them with its hash.
func (w *writer) copyBlob(ctx context.Context, to io.Writer, found blob.Entry) error {
	hash := sha256.New()
	for piece, err := range w.Blobs.Read(ctx, w.Scope, found, 0, -1) {
		if err != nil {
			return err
		}
		hash.Write(piece)
		if _, err := to.Write(piece); err != nil {
			return err
		}
		w.counts.Bytes += int64(len(piece))
		w.progress()
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != found.Ref {
		return &blob.DamagedError{Ref: found.Ref, Chunk: blob.WholeBlob, Problem: "the bytes have the hash " + got}
	}
	return nil
}

// whole returns all of a blob, nil when there is none any more. A damaged one is
// reported with its blob.
func (w *writer) whole(ctx context.Context, path string) ([]byte, error) {
	found, err := w.Blobs.Lookup(ctx, w.Scope, path)
	var all bytes.Buffer
	if err == nil {
		for piece, readErr := range w.Blobs.Read(ctx, w.Scope, found, 0, -1) {
			all.Write(piece)
			err = readErr
		}
	}
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDamaged) {
		return nil, nil
	}
	return all.Bytes(), err
}

func (w *writer) describe(found blob.Entry, names []string) error {
	w.counts.Results++
	w.progress()
	return w.blobs.Add(text.CanonicalJSON(map[string]any{
		"path": found.Path, "ref": found.Ref, "size": found.Size, "kind": found.Kind, "category": found.Category,
		"step_id": found.StepID, "session_id": found.SessionID, "time": found.Time.UTC().Format(time.RFC3339Nano),
		"files": list(names),
	}))
}
