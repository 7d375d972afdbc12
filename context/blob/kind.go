package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The kinds of content.
const (
	KindText   = "text"
	KindJSON   = "json"
	KindLog    = "log" // output of a command; never guessed, only given
	KindImage  = media.Image
	KindAudio  = media.Audio
	KindBinary = media.Binary
)

// KindOf says what bytes look like that are all in memory: their kind, and their
// format where it was recognized. A store finds the same of an upload.
func KindOf(data []byte) (kind, mediaType string) {
	var text textScan
	text.add(data)
	return kindOf(nil, data, text.binary(), false)
}

// kindOf guesses a content's kind and format from its beginning; all of it,
// when it is there, decides about JSON, unless it is known to be that.
func kindOf(head, all []byte, isBinary, isJSON bool) (kind, mediaType string) {
	if head == nil {
		head = all
	}
	if isBinary {
		mediaType := media.TypeOf(head)
		return media.Kind(mediaType), mediaType
	}
	start := bytes.TrimLeft(all, " \t\r\n")
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') && (isJSON || json.Valid(all)) {
		return KindJSON, ""
	}
	return KindText, ""
}

// extension is a file name's ending for a kind.
func extension(kind string) string {
	switch kind {
	case KindJSON:
		return "json"
	case KindText:
		return "txt"
	case KindLog:
		return "log"
	}
	return "bin"
}

// textScan distinguishes text from binary and counts lines, however the content is cut
// into pieces.
type textScan struct {
	isBinary bool // a NUL, or not UTF-8
	invalid  bool // not UTF-8
	feeds    int64
	last     byte
	any      bool
	// pending is the beginning of a character whose end is in the next piece.
	pending []byte
}

func (t *textScan) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	t.any, t.last = true, piece[len(piece)-1]
	t.feeds += int64(bytes.Count(piece, []byte{'\n'}))
	if t.invalid {
		return
	}
	t.isBinary = t.isBinary || bytes.IndexByte(piece, 0) >= 0
	for len(t.pending) > 0 && len(piece) > 0 && !utf8.FullRune(t.pending) {
		t.pending, piece = append(t.pending, piece[0]), piece[1:]
	}
	if !utf8.FullRune(t.pending) && len(t.pending) > 0 {
		return
	}
	whole := len(text.WholeChars(piece))
	t.invalid = !utf8.Valid(t.pending) || !utf8.Valid(piece[:whole])
	t.isBinary = t.isBinary || t.invalid
	t.pending = append(t.pending[:0], piece[whole:]...)
}

// binary reports whether the content is no text, now that all of it was seen.
func (t *textScan) binary() bool { return t.isBinary || len(t.pending) > 0 }

// utf8 reports whether all of the content is UTF-8.
func (t *textScan) utf8() bool { return !t.invalid && len(t.pending) == 0 }

func (t *textScan) lines() int64 {
	if t.any && t.last != '\n' {
		return t.feeds + 1
	}
	return t.feeds
}

// The categories of blobs: which sort of call made them. Other names are
// allowed and expire as CategoryTool does.
const (
	CategoryRead   = "read"   // a file that was read
	CategoryList   = "list"   // a listing
	CategorySearch = "search" // results of a search
	CategoryPage   = "page"   // a page of the web
	CategoryShell  = "shell"  // output of a command
	CategoryTool   = "tool"   // anything else that a tool gave
	CategoryNote   = "note"   // what an agent wrote down for itself
	CategoryReport = "report" // the report of a finished task
)

// noteTTL is how long an agent's own notes stay, and what it promotes for
// itself.
const noteTTL = 7 * 24 * time.Hour

func defaultTTLs() map[string]time.Duration {
	return map[string]time.Duration{
		CategoryShell:  30 * time.Minute,
		CategorySearch: 6 * time.Hour,
		CategoryPage:   6 * time.Hour,
		CategoryRead:   24 * time.Hour,
		CategoryList:   24 * time.Hour,
		CategoryTool:   24 * time.Hour,
		CategoryNote:   noteTTL,
		CategoryReport: -1,
	}
}

// Categories returns the categories that have their own TTL, in the order
// of their names.
func Categories() []string {
	return slices.Sorted(maps.Keys(defaultTTLs()))
}

// ttl is how long a new blob of a category stays; zero: for ever.
func (s *Store) ttl(category string) time.Duration {
	ttl, known := s.opts.TTL[category]
	if !known {
		ttl = s.opts.TTL[CategoryTool]
	}
	return max(ttl, 0)
}

// Tier is how much a blob is worth keeping. The numbers are part of the stored
// format.
type Tier uint8

// The tiers.
const (
	// Working is where every blob begins.
	Working Tier = iota
	// ShortTerm is for what an agent chose to keep for a while.
	ShortTerm
	// LongTerm is for what stays until it is erased: it never expires.
	LongTerm
)

// String returns "working", "short_term" or "long_term".
func (t Tier) String() string {
	switch t {
	case ShortTerm:
		return "short_term"
	case LongTerm:
		return "long_term"
	}
	return "working"
}

// Namer reports whether the blobs of a session's steps are called by their kind and how
// many of that kind the owner has had, search_001.json, and not by the kind and the number
// of the step, search_003.json. Numbers have at least three digits. A blob keeps the path
// it was made with. Namer may be called while others wait, so it should be quick.
type Namer func(ctx context.Context, scope kv.Scope, sessionID string) (byKind bool, err error)

// Name says what the path of a step's blob is made of.
type Name struct {
	// Kind is what sort of call made it, such as "search". Required.
	Kind string
	// Step is the number of the step. Required.
	Step uint64
	// Ext is the ending, without its dot. Required.
	Ext string
}

// StageNamed is Stage for a blob of a step whose path follows from its name;
// e.Path is not looked at. A path that is taken gets _2, _3 … before its ending.
func (s *Store) StageNamed(ctx context.Context, tx *kv.Tx, scope kv.Scope, stored Stored, e Entry, n Name) (Entry, error) {
	number, byKind := n.Step, false
	var err error
	if s.opts.Namer != nil {
		if byKind, err = s.opts.Namer(ctx, scope, e.SessionID); err != nil {
			return Entry{}, fmt.Errorf("blob: naming of session: %w", err)
		}
	}
	if byKind {
		if number, err = nextOfKind(ctx, tx, scope, n.Kind); err != nil {
			return Entry{}, err
		}
	}
	e.Path = Path(n.Kind, number, n.Ext)
	return s.Stage(ctx, tx, scope, stored, e)
}

// fieldLastOfKind is the field of a counter of one kind (memory/FORMAT.md).
const fieldLastOfKind = 1

// nextOfKind counts one more blob of a kind and returns its number, from 1.
func nextOfKind(ctx context.Context, tx *kv.Tx, scope kv.Scope, kind string) (uint64, error) {
	key := kindKey(scope, kind)
	values, err := tx.Get(ctx, kv.Blobs, key)
	if err != nil {
		return 0, fmt.Errorf("blob: count blobs of kind %s: %w", kind, err)
	}
	number := uint64(1)
	for f, err := range wire.Fields(values[0]) {
		if err != nil {
			return 0, fmt.Errorf("%w: the number of blobs of kind %s can't be read", ErrDamaged, kind)
		}
		if f.Number == fieldLastOfKind {
			number = f.Value + 1
		}
	}
	tx.Put(kv.Blobs, key, wire.AppendUint(nil, fieldLastOfKind, number))
	return number, nil
}
