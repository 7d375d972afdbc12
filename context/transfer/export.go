package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxHeldParts bounds the bytes of sessions, without their results, that all exports and
// imports under way have in memory: a few of the longest.
const maxHeldParts = 4 * session.MaxPartsBytes

// Mover exports and imports sessions. Its methods are safe for concurrent use.
type Mover struct {
	log    *session.Log
	blobs  *blob.Store
	view   func(ctx context.Context) (kv.Snapshot, error)
	writer *kv.Writer
	secret func(text string) bool
	held   atomic.Int64 // bytes of the parts of sessions under way
}

// Options are what a Mover works with. All but Secret are required.
type Options struct {
	Log    *session.Log
	Blobs  *blob.Store
	Engine kv.Engine
	Writer *kv.Writer
	// Secret reports whether a text holds what the server does not store. Default: none does.
	Secret func(text string) bool
}

// New returns a Mover.
func New(o Options) *Mover {
	if o.Secret == nil {
		o.Secret = func(string) bool { return false }
	}
	view := func(ctx context.Context) (kv.Snapshot, error) { return o.Engine.Snapshot(ctx) }
	return &Mover{log: o.Log, blobs: o.Blobs, view: view, writer: o.Writer, secret: o.Secret}
}

// Export calls do with the lines of an agent's session, or of all its sessions in order of
// their ids where id is empty. The parts of a session are as they were at one moment;
// offloaded results that are gone are left out. The lines belong to do, whose errors end
// the export. A session that is not there is nothing. Errors: session.ErrTooLong, ErrBusy,
// blob.ErrDamaged.
func (m *Mover) Export(ctx context.Context, scope kv.Scope, id string, do func(line []byte) error) error {
	ids := []string{id}
	if id == "" {
		var err error
		if ids, err = m.log.PartSessions(ctx, scope); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := m.export(ctx, scope, id, do); err != nil {
			return err
		}
	}
	return nil
}

// hold counts bytes of parts that are in memory; release takes them back.
func (m *Mover) hold(bytes int) error {
	if m.held.Add(int64(bytes)) > maxHeldParts {
		m.release(bytes)
		return ErrBusy
	}
	return nil
}

func (m *Mover) release(bytes int) { m.held.Add(-int64(bytes)) }

// Lines returns messages that were said elsewhere as the lines of a session. Each has the time
// of the same index. Errors: session.ErrInvalid, session.ErrTooLong.
func Lines(id string, msgs []session.Message, times []time.Time) (lines [][]byte, err error) {
	parts, err := session.PartsOfMessages(msgs, times)
	if err != nil {
		return nil, err
	}
	all := []jsonLine{{Kind: kindSession, Format: format, Session: id}}
	size := 0
	for _, p := range parts {
		if size += len(p.Value); size > session.MaxPartsBytes {
			return nil, fmt.Errorf("%w: %q has more than %d bytes", session.ErrTooLong, id, session.MaxPartsBytes)
		}
		all = append(all, partLine(p))
	}
	for _, l := range append(all, jsonLine{Kind: kindEnd, Session: id, Lines: len(all)}) {
		line, err := l.encode()
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func partLine(p session.StoredPart) jsonLine {
	return jsonLine{Kind: kindPart, Part: p.Kind, Number: p.Number, Stored: p.Value}
}

func (m *Mover) export(ctx context.Context, scope kv.Scope, id string, do func([]byte) error) error {
	parts, err := m.parts(ctx, scope, id)
	if err != nil || len(parts) == 0 {
		return err
	}
	size := 0
	for _, p := range parts {
		size += len(p.Value)
	}
	if err := m.hold(size); err != nil {
		return err
	}
	defer m.release(size)
	lines := 0
	write := func(l jsonLine) error {
		lines++
		text, err := l.encode()
		if err == nil {
			err = do(text)
		}
		return err
	}
	if err := write(jsonLine{Kind: kindSession, Format: format, Session: id}); err != nil {
		return err
	}
	for _, p := range parts {
		if err := write(partLine(p)); err != nil {
			return err
		}
	}
	results, err := m.results(ctx, scope, id, parts)
	if err != nil {
		return err
	}
	for _, home := range slices.Sorted(maps.Keys(results)) {
		if err := m.exportResult(ctx, scope, results[home], write); err != nil {
			return err
		}
	}
	return write(jsonLine{Kind: kindEnd, Session: id, Lines: lines})
}

func (m *Mover) parts(ctx context.Context, scope kv.Scope, id string) (_ []session.StoredPart, err error) {
	view, err := m.view(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	return m.log.At(view).Parts(ctx, scope, id)
}

// results returns the offloaded results of a session, and results of other sessions that
// its steps refer to, by their original paths.
func (m *Mover) results(ctx context.Context, scope kv.Scope, id string, parts []session.StoredPart) (map[string]blob.Entry, error) {
	found := make(map[string]blob.Entry)
	for after := ""; ; {
		page, err := m.blobs.List(ctx, scope, blob.Filter{SessionID: id}, after, 0)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			found[e.Home()] = e
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for _, path := range session.PathsIn(parts) {
		e, err := m.blobs.Lookup(ctx, scope, path)
		switch {
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrAmbiguous):
		case err != nil:
			return nil, err
		case slices.Contains(e.Paths(), path): // no ref or step id that an importer would not know it by
			found[e.Home()] = e
		}
	}
	return found, nil
}

func (m *Mover) exportResult(ctx context.Context, scope kv.Scope, e blob.Entry, write func(jsonLine) error) error {
	if err := write(jsonLine{Kind: kindResult, Result: resultOf(e)}); err != nil {
		return err
	}
	rest := []byte(nil)
	for piece, err := range m.blobs.Read(ctx, scope, e, 0, -1) {
		if err != nil {
			return err
		}
		for rest = append(rest, piece...); len(rest) >= pieceBytes; rest = rest[pieceBytes:] {
			if err := write(jsonLine{Kind: kindBytes, Bytes: rest[:pieceBytes]}); err != nil {
				return err
			}
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return write(jsonLine{Kind: kindBytes, Bytes: rest})
}
