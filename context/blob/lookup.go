package blob

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MinRefDigits is how many digits of a ref must be given at least.
const MinRefDigits = 12

// Lookup finds the entry that a name leads to: a path, its short form without
// "workspace/", a step id with or without an ending ("step_001.json", also
// under the folder), "file_…" for "read_…", or at least MinRefDigits leading
// digits of a ref. Where a step has several blobs, the ending chooses, else the
// first by path. Nothing is ErrNotFound, a ref of several blobs ErrAmbiguous.
func (s *Store) Lookup(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	if err := scope.Validate(); err != nil {
		return Entry{}, err
	}
	if name == "" || len(name) > MaxPathBytes || strings.IndexByte(name, 0) >= 0 {
		return Entry{}, fmt.Errorf("%w: %.64q", ErrNotFound, name)
	}
	for _, find := range []func(context.Context, kv.Scope, string) (Entry, error){
		s.byPath, s.byStep, s.byReadAlias, s.byRef,
	} {
		e, err := find(ctx, scope, name)
		if !errors.Is(err, ErrNotFound) {
			return e, err
		}
	}
	return Entry{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// fullPath gives a path its long, clean form.
func fullPath(name string) string {
	name = path.Clean(name)
	if strings.HasPrefix(name, folderAlias) {
		return "workspace/" + name
	}
	return name
}

func (s *Store) byPath(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	name = fullPath(name)
	values, err := s.engine.Get(ctx, kv.Blobs, pathKey(scope, name))
	if err != nil {
		return Entry{}, fmt.Errorf("blob: look up %s: %w", name, err)
	}
	if values[0] == nil {
		return Entry{}, ErrNotFound
	}
	return decodeEntry(name, values[0])
}

// byReadAlias knows that what a read stored is also called a file.
func (s *Store) byReadAlias(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	if rest, ok := strings.CutPrefix(fullPath(name), Folder+"file_"); ok {
		return s.byPath(ctx, scope, Folder+"read_"+rest)
	}
	return Entry{}, ErrNotFound
}

func (s *Store) byStep(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	name = strings.TrimPrefix(fullPath(name), Folder)
	ext := path.Ext(name)
	number, ok := step.ParseID(strings.TrimSuffix(name, ext))
	if !ok {
		return Entry{}, ErrNotFound
	}
	prefix := stepPrefix(scope, number)
	found := ""
	for pair, err := range s.engine.Scan(ctx, kv.Blobs, kv.Prefix(prefix)) {
		if err != nil {
			return Entry{}, fmt.Errorf("blob: look up %s: %w", name, err)
		}
		p := string(pair.Key[len(prefix):])
		if found == "" {
			found = p
		}
		if path.Ext(p) == ext {
			found = p
			break
		}
	}
	if found == "" {
		return Entry{}, ErrNotFound
	}
	return s.byPath(ctx, scope, found)
}

func (s *Store) byRef(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	digits := strings.ToLower(name)
	lower, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil || len(digits) < MinRefDigits || len(digits) > hex.EncodedLen(32) {
		return Entry{}, ErrNotFound
	}
	prefix := manifestKey(scope, lower)
	first := ""
	for pair, err := range s.engine.Scan(ctx, kv.Blobs, kv.Prefix(prefix)) {
		if err != nil {
			return Entry{}, fmt.Errorf("blob: look up %s: %w", name, err)
		}
		hash := hex.EncodeToString(pair.Key[len(prefix)-len(lower):])
		if !strings.HasPrefix(hash, digits) {
			continue
		}
		if first != "" {
			return Entry{}, fmt.Errorf("%w: %s", ErrAmbiguous, name)
		}
		m, err := decodeManifest(pair.Value)
		if err != nil {
			return Entry{}, &DamagedError{Ref: hash, Chunk: WholeBlob, Problem: err.Error()}
		}
		first = m.first
	}
	if first == "" {
		return Entry{}, ErrNotFound
	}
	return s.byPath(ctx, scope, first)
}
