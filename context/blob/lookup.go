package blob

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

// MinRefDigits is how many digits of a ref must be given at least.
const MinRefDigits = mention.MinRefDigits

// Lookup finds the entry that a name leads to: a path or an earlier one, its
// short form without "workspace/", a step id with or without an ending
// ("step_001.json", also under the folder), "file_…" for "read_…", the ref of a
// compressed tool result, or at least MinRefDigits leading digits of a blob's
// ref. Where a step has several blobs, the
// ending chooses, else the first by path. Nothing is ErrNotFound, what was
// collected a *CollectedError, a ref of several blobs ErrAmbiguous.
func (s *Store) Lookup(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	if err := scope.Validate(); err != nil {
		return Entry{}, err
	}
	if name == "" || len(name) > MaxPathBytes || strings.IndexByte(name, 0) >= 0 {
		return Entry{}, fmt.Errorf("%w: %.64q", ErrNotFound, name)
	}
	missing := fmt.Errorf("%w: %q", ErrNotFound, name)
	for _, find := range []func(context.Context, kv.Scope, string) (Entry, error){
		s.byPath, s.byStep, s.byReadAlias, s.byResult, s.byRef,
	} {
		e, err := find(ctx, scope, name)
		if err == nil {
			return e.seen(scope.Owner, s.now()), nil
		}
		if !errors.Is(err, ErrNotFound) {
			return Entry{}, err
		}
		if errors.Is(err, ErrCollected) {
			missing = err
		}
	}
	return Entry{}, missing
}

// StepOf returns the step of a session that made what a name leads to; empty for what
// is no name of a blob, and for what leads nowhere or can't be read now.
func (s *Store) StepOf(ctx context.Context, scope kv.Scope, sessionID, name string) string {
	if len(mention.InText([]byte(name))) == 0 {
		return ""
	}
	e, err := s.Lookup(ctx, scope, name)
	if err != nil || e.SessionID != sessionID {
		return ""
	}
	return e.StepID
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
	values, err := s.engine.Get(ctx, kv.Blobs, pathKey(scope, name), aliasKey(scope, name))
	if err != nil {
		return Entry{}, fmt.Errorf("blob: look up %s: %w", name, err)
	}
	switch {
	case values[0] != nil:
		return decodeEntry(name, values[0])
	case values[1] != nil && string(values[1]) != name:
		return s.byPath(ctx, scope, string(values[1]))
	}
	return Entry{}, s.missing(ctx, scope, collectedPath, name, name)
}

// missing is the error for a name that leads nowhere any more, or never did.
func (s *Store) missing(ctx context.Context, scope kv.Scope, what byte, key, name string) error {
	values, err := s.engine.Get(ctx, kv.Blobs, collectedKey(scope, what, key))
	if err != nil {
		return fmt.Errorf("blob: look up %s: %w", name, err)
	}
	if values[0] == nil {
		return ErrNotFound
	}
	at, err := decodeCollected(values[0])
	if err != nil {
		return damagedEntry(name)
	}
	return &CollectedError{Name: name, Time: at}
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
		found = cmp.Or(found, p)
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

// byResult knows the refs of compressed tool results. They are whole names, so
// they come before what other refs begin with.
func (s *Store) byResult(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	ref := strings.ToLower(name)
	if len(ref) < MinRefDigits || strings.Trim(ref, "0123456789abcdef") != "" {
		return Entry{}, ErrNotFound
	}
	e, err := s.byPath(ctx, scope, ResultPath(ref, KindJSON))
	if errors.Is(err, ErrNotFound) && !errors.Is(err, ErrCollected) {
		return s.byPath(ctx, scope, ResultPath(ref, KindBinary))
	}
	return e, err
}

func (s *Store) byRef(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	digits := strings.ToLower(name)
	start, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil || len(digits) < MinRefDigits || len(digits) > hex.EncodedLen(32) {
		return Entry{}, ErrNotFound
	}
	found, err := s.hashes(ctx, manifestKey(scope, start), digits, len(start))
	if err != nil || len(found) > 1 {
		return Entry{}, cmp.Or(err, fmt.Errorf("%w: %s", ErrAmbiguous, name))
	}
	if len(found) == 1 {
		return s.answering(ctx, scope, found[0])
	}
	gone, err := s.hashes(ctx, collectedKey(scope, collectedRef, start), digits, len(start))
	if err != nil || len(gone) == 0 {
		return Entry{}, cmp.Or(err, ErrNotFound)
	}
	return Entry{}, s.missing(ctx, scope, collectedRef, gone[0].key, name)
}

// hashed is a key that ends with a blob's hash, and its value.
type hashed struct {
	ref, key string
	value    []byte
}

// hashes returns up to two pairs whose key, a prefix with so many bytes of the
// hash at its end, goes on to a hash that begins with the digits.
func (s *Store) hashes(ctx context.Context, prefix []byte, digits string, known int) ([]hashed, error) {
	var found []hashed
	for pair, err := range s.engine.Scan(ctx, kv.Blobs, kv.Prefix(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("blob: look up %s: %w", digits, err)
		}
		hash := pair.Key[len(prefix)-known:]
		if ref := hex.EncodeToString(hash); strings.HasPrefix(ref, digits) {
			found = append(found, hashed{ref, string(hash), pair.Value})
		}
		if len(found) == 2 {
			break
		}
	}
	return found, nil
}

// answering returns the entry that answers for a blob: the one that brought it,
// or, when that was collected, another one.
func (s *Store) answering(ctx context.Context, scope kv.Scope, blob hashed) (Entry, error) {
	m, err := decodeManifest(blob.value)
	if err != nil {
		return Entry{}, &DamagedError{Ref: blob.ref, Chunk: WholeBlob, Problem: err.Error()}
	}
	e, err := s.byPath(ctx, scope, m.first)
	if !errors.Is(err, ErrNotFound) && (err != nil || e.Ref == blob.ref) {
		return e, err
	}
	for e, err := range entries(ctx, s.engine, scope, "", 0) {
		if err != nil || e.Ref == blob.ref {
			return e, err
		}
	}
	return Entry{}, ErrNotFound
}
