package blob

import (
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// Folder is where the paths of offloaded results lie.
	Folder = "workspace/outputs/"
	// folderAlias is its short name.
	folderAlias = "outputs/"
	// MaxPathBytes bounds the path of an entry, which stands in two keys.
	MaxPathBytes = 512
	// maxTaken bounds how many paths of one name are tried.
	maxTaken = 1000
)

// Fields of an entry (memory/FORMAT.md). Its path stands in the key.
const (
	fieldRef = iota + 1
	fieldStep
	fieldSession
	fieldKind
	fieldCategory
	fieldBytes
	fieldTime
)

// Path returns the path of a step's blob: the category, the step's number and
// an ending by content (json, txt, log, bin).
func Path(category string, stepNumber uint64, ext string) string {
	return fmt.Sprintf("%s%s_%03d.%s", Folder, category, stepNumber, ext)
}

// Stage adds to tx what makes an upload a blob that e.Path leads to, and returns
// the entry as stored. Of e, Ref and Size are filled in; so are Path (see Path),
// Kind and Time where they are empty, and a path that is taken gets _2, _3 …
// before its ending. Content that the owner has already is not stored again. The
// request names Ref(scope) in its Refs.
func (s *Store) Stage(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry) (Entry, error) {
	number, err := s.complete(&e, stored)
	if err != nil {
		return Entry{}, err
	}
	hash := stored.SHA256[:]
	known, err := freePath(ctx, tx, scope, &e, hash)
	if err != nil {
		return Entry{}, err
	}
	if !known {
		m := manifest{size: stored.Size, frame: stored.frame, chunks: stored.chunks, first: e.Path}
		tx.Put(kv.Blobs, manifestKey(scope, hash), m.encode())
	}
	tx.Put(kv.Blobs, pathKey(scope, e.Path), e.encode(hash, number))
	if number > 0 {
		tx.Put(kv.Blobs, stepKey(scope, number, e.Path), []byte{})
	}
	return e, nil
}

// complete fills in what the caller left open and returns the step's number,
// zero for none.
func (s *Store) complete(e *Entry, stored Stored) (uint64, error) {
	if stored.frame == nil && stored.chunks == nil {
		return 0, fmt.Errorf("%w: nothing was uploaded", ErrInvalid)
	}
	number, ok := step.ParseID(e.StepID)
	if !ok && e.StepID != "" {
		return 0, fmt.Errorf("%w: %q is no step id", ErrInvalid, e.StepID)
	}
	e.Ref, e.Size = stored.Ref(), stored.Size
	if e.Kind == "" {
		e.Kind = stored.Kind
	}
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
	case len(p) > MaxPathBytes-len("_1000"):
		return fmt.Errorf("%w: path is longer than %d bytes", ErrInvalid, MaxPathBytes-len("_1000"))
	case !utf8.ValidString(p) || strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("%w: path holds NUL or is not UTF-8", ErrInvalid)
	case path.Clean(p) != p || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("%w: path %q is not clean and relative", ErrInvalid, p)
	}
	return nil
}

// freePath changes e.Path to one that nothing has, and tells whether the owner
// has the content already.
func freePath(ctx context.Context, tx *kv.Tx, scope kv.Scope, e *Entry, hash []byte) (known bool, err error) {
	values, err := tx.Get(ctx, kv.Blobs, pathKey(scope, e.Path), manifestKey(scope, hash))
	if err != nil {
		return false, fmt.Errorf("blob: stage %s: %w", e.Path, err)
	}
	known = values[1] != nil
	wanted, ext := e.Path, path.Ext(e.Path)
	for n := 2; values[0] != nil; n++ {
		if n > maxTaken {
			return false, fmt.Errorf("%w: %s is taken %d times", ErrInvalid, wanted, maxTaken)
		}
		e.Path = strings.TrimSuffix(wanted, ext) + "_" + strconv.Itoa(n) + ext
		if values, err = tx.Get(ctx, kv.Blobs, pathKey(scope, e.Path)); err != nil {
			return false, fmt.Errorf("blob: stage %s: %w", e.Path, err)
		}
	}
	return known, nil
}

func (e Entry) encode(hash []byte, number uint64) []byte {
	dst := make([]byte, 0, 96+len(e.SessionID))
	dst = wire.AppendItem(dst, fieldRef, hash)
	dst = wire.AppendUint(dst, fieldStep, number)
	dst = wire.AppendText(dst, fieldSession, e.SessionID)
	dst = wire.AppendText(dst, fieldKind, e.Kind)
	dst = wire.AppendText(dst, fieldCategory, e.Category)
	dst = wire.AppendUint(dst, fieldBytes, uint64(e.Size))
	return wire.AppendTime(dst, fieldTime, e.Time)
}

// decodeEntry reads an entry; path is what its key says.
func decodeEntry(path string, value []byte) (Entry, error) {
	e := Entry{Path: path}
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Entry{}, damagedEntry(path)
		}
		switch f.Number {
		case fieldRef:
			e.Ref = hex.EncodeToString(f.Bytes)
		case fieldStep:
			e.StepID = step.ID(f.Value)
		case fieldSession:
			e.SessionID = string(f.Bytes)
		case fieldKind:
			e.Kind = string(f.Bytes)
		case fieldCategory:
			e.Category = string(f.Bytes)
		case fieldBytes:
			e.Size = int64(f.Value)
		case fieldTime:
			e.Time = f.Time()
		}
	}
	if len(e.Ref) != 2*len(Stored{}.SHA256) || e.Size < 0 {
		return Entry{}, damagedEntry(path)
	}
	return e, nil
}

func damagedEntry(path string) error {
	return &DamagedError{Ref: path, Chunk: WholeBlob, Problem: "its entry can't be read"}
}
