package blob

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

const (
	// Folder is where the paths of offloaded results lie.
	Folder = "workspace/" + folderAlias
	// folderAlias is its short name.
	folderAlias = mention.OutputsFolder
	// ResultsFolder is where the whole of compressed tool results lies, each under
	// its own ref: the first digits of the hash of what the tool gave.
	ResultsFolder = mention.ResultsFolder
	// MaxPathBytes bounds the path of an entry, which stands in two keys. A requested path
	// may get a number appended, within this bound.
	MaxPathBytes = 512
	numberBytes  = len("_1000")
)

// Path returns the path of a step's blob: the category, the step's number and
// an ending by content (json, txt, log, bin).
func Path(category string, stepNumber uint64, ext string) string {
	return fmt.Sprintf("%s%s_%03d.%s", Folder, category, stepNumber, ext)
}

// ResultPath returns the path of a compressed tool result: its ref and an ending
// by the kind of the stored data there.
func ResultPath(ref, kind string) string { return ResultsFolder + ref + "." + extension(kind) }

// Stage adds to tx what makes an upload a blob that e.Path leads to, and returns
// the entry as stored. Of e, Ref, Owner and Size are filled in; so are Path (see
// Path), Kind, MediaType, Time and TTL where they are empty, and a path that is
// taken gets _2, _3 … before its ending. Content that the owner has already is
// not stored again; other content over the owner's quota is a *QuotaError. The
// request names Ref(scope) in its Refs. A text keeps the blob by its path only if that
// lies in a folder of package mention; by step and ref it always does.
func (s *Store) Stage(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry) (Entry, error) {
	number, err := s.complete(&e, scope, stored)
	if err != nil {
		return Entry{}, err
	}
	hash := stored.SHA256[:]
	// One look for all that is needed when the path is free, as it mostly is.
	values, err := tx.Get(ctx, kv.Blobs, pathKey(scope, e.Path), aliasKey(scope, e.Path), manifestKey(scope, hash), usageKey(scope))
	if err != nil {
		return Entry{}, fmt.Errorf("blob: stage %s: %w", e.Path, err)
	}
	if values[0] != nil || values[1] != nil {
		if e.Path, err = freePath(ctx, tx, scope, e.Path); err != nil {
			return Entry{}, err
		}
	}
	return e, s.put(ctx, tx, scope, stored, e.Path, e.encode(hash, number), number, values[2:])
}

// put adds to tx what makes an upload a blob that an entry leads to, stored under home. there are
// the manifest and the usage as they are.
func (s *Store) put(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, home string, entry []byte, number uint64, there [][]byte) error {
	hash := stored.SHA256[:]
	if there[0] == nil {
		if err := s.stageUsage(ctx, tx, scope, there[1], stored.Size); err != nil {
			return err
		}
		m := manifest{size: stored.Size, frame: stored.packed.wait(), chunks: stored.chunks, first: home}
		tx.Put(kv.Blobs, manifestKey(scope, hash), m.encode())
	}
	tx.Put(kv.Blobs, pathKey(scope, home), entry)
	tx.Put(kv.Blobs, append(refPrefix(scope, hash), home...), nil)
	if number > 0 {
		tx.Put(kv.Blobs, stepKey(scope, number, home), []byte{})
	}
	s.staged(scope, stored)
	return nil
}

// complete fills in what the caller left open and returns the step's number,
// zero for none.
func (s *Store) complete(e *Entry, scope kv.Scope, stored Stored) (uint64, error) {
	if stored.packed == nil && stored.chunks == nil {
		return 0, fmt.Errorf("%w: nothing was uploaded", ErrInvalid)
	}
	number, ok := step.ParseID(e.StepID)
	if !ok && e.StepID != "" {
		return 0, fmt.Errorf("%w: %q is no step id", ErrInvalid, e.StepID)
	}
	e.Ref, e.Size, e.Owner = stored.Ref(), stored.Size, scope.Owner
	e.Kind = cmp.Or(e.Kind, stored.Kind)
	e.MediaType = cmp.Or(e.MediaType, stored.MediaType)
	e.TTL = cmp.Or(e.TTL, s.ttl(e.Category)).Truncate(time.Millisecond)
	if e.Time.IsZero() {
		e.Time = s.now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	if e.Path == "" {
		if !ok || e.Category == "" {
			return 0, fmt.Errorf("%w: an entry without a path needs a step and a category", ErrInvalid)
		}
		e.Path = Path(e.Category, number, extension(e.Kind))
	}
	return number, checkPath(e.Path)
}

// checkPath refuses what could not be found again by Lookup.
func checkPath(p string) error {
	switch {
	case len(p) > MaxPathBytes-numberBytes:
		return fmt.Errorf("%w: path is longer than %d bytes", ErrInvalid, MaxPathBytes-numberBytes)
	case !utf8.ValidString(p) || strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("%w: path holds NUL or is not UTF-8", ErrInvalid)
	case path.Clean(p) != p || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("%w: path %q is not clean and relative", ErrInvalid, p)
	}
	return nil
}

// freePath returns a path or, if it is taken, a free numbered form that follows a taken
// one. This is the first free form unless blobs in between were collected. It looks up
// twice as many paths as the number has bits, instead of each one.
func freePath(ctx context.Context, tx *kv.Tx, scope kv.Scope, wanted string) (string, error) {
	taken := func(n uint64) (bool, error) {
		p := numbered(wanted, n)
		values, err := tx.Get(ctx, kv.Blobs, pathKey(scope, p), aliasKey(scope, p))
		if err != nil {
			return false, fmt.Errorf("blob: look for %s: %w", p, err)
		}
		return values[0] != nil || values[1] != nil, nil
	}
	used, free := uint64(0), uint64(1)
	for {
		isTaken, err := taken(free)
		if err != nil {
			return "", err
		}
		if !isTaken {
			break
		}
		used, free = free, 2*free
	}
	for free-used > 1 {
		middle := used + (free-used)/2
		isTaken, err := taken(middle)
		if err != nil {
			return "", err
		}
		if isTaken {
			used = middle
		} else {
			free = middle
		}
	}
	return numbered(wanted, free), nil
}

// numbered is a path with a number before its ending, from 2 on. What makes it too
// long is taken off the name.
func numbered(wanted string, n uint64) string {
	if n < 2 {
		return wanted
	}
	ext, number := path.Ext(wanted), "_"+strconv.FormatUint(n, 10)
	over := len(wanted) + len(number) - MaxPathBytes
	if over >= len(wanted)-len(ext) {
		ext = "" // there is no name before it to be shortened
	}
	stem := strings.TrimSuffix(wanted, ext)
	if over > 0 {
		stem = text.Head(stem, len(stem)-over)
	}
	return stem + number + ext
}

// Restore adds to tx what makes an upload the blob that an entry of another store leads to:
// with its paths, times, tier and place in the archive. An entry that is there as it comes
// is left alone. Errors: ErrInvalid for one that can't be, ErrExists for a path that leads to
// something else, *QuotaError. The request names Ref(scope) in its Refs.
func (s *Store) Restore(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry) error {
	home, hash := e.Home(), stored.SHA256[:]
	number, known := step.ParseID(e.StepID)
	switch {
	case stored.packed == nil && stored.chunks == nil, e.Ref != stored.Ref(), e.Size != stored.Size:
		return fmt.Errorf("%w: %s is not the content that was uploaded", ErrInvalid, home)
	case !known && e.StepID != "", e.TTL < 0, e.Time.IsZero(), e.Tier > LongTerm, len(e.Aliases) > MaxAliases:
		return fmt.Errorf("%w: the entry of %s", ErrInvalid, home)
	}
	names := e.Paths()
	for i, name := range names {
		if err := checkPath(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%w: %s is twice a path of one entry", ErrInvalid, name)
		}
	}
	value := e.encode(hash, number)
	if len(value) > kv.MaxValueBytes {
		return fmt.Errorf("%w: the entry of %s is too long", ErrInvalid, home)
	}
	for i, name := range names {
		values, err := tx.Get(ctx, kv.Blobs, pathKey(scope, name), aliasKey(scope, name))
		if err != nil {
			return fmt.Errorf("blob: restore %s: %w", name, err)
		}
		switch {
		case i == 0 && bytes.Equal(values[0], value):
			return nil
		case values[0] != nil || values[1] != nil:
			return fmt.Errorf("%w: %s", ErrExists, name)
		case i > 0:
			tx.Put(kv.Blobs, aliasKey(scope, name), []byte(home))
		}
	}
	values, err := tx.Get(ctx, kv.Blobs, manifestKey(scope, hash), usageKey(scope))
	if err != nil {
		return fmt.Errorf("blob: restore %s: %w", home, err)
	}
	return s.put(ctx, tx, scope, stored, home, value, number, values)
}
