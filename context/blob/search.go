package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/context/turn"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const (
	// MaxShownBytes bounds the text of a match; it is the part around it when
	// the line is longer.
	MaxShownBytes = 512
	// shownBefore is how much of a long line stands before the match.
	shownBefore = 128
	// maxLineBytes is from when on a line is looked at in parts.
	maxLineBytes = 256 << 10
	// lineOverlap is how much of a part is looked at again with the next one: a
	// match that is not longer is found wherever the line was cut.
	lineOverlap = 4 << 10
	// fetchAhead is how many chunks are read while one is searched.
	fetchAhead = 2
)

// Match is a line that matches, or the part of a long one around its first
// match.
type Match struct {
	// Line is the line's number, from 1.
	Line int64
	// Offset is where in the blob the first match of the line begins, in bytes,
	// and Length how long it is.
	Offset, Length int64
	// Text is the line without its line feed, or at most MaxShownBytes of it
	// around the match.
	Text []byte
}

// From is where a search begins. Zero is the beginning of the blob.
type From struct {
	// Offset is the first byte to look at, and Lines is how many line feeds come
	// before it.
	Offset, Lines int64
	// MidLine passes over the rest of the line that Offset lies in.
	MidLine bool
}

// After is where a search goes on behind the line of a match.
func (m Match) After() From {
	return From{Offset: m.Offset + m.Length, Lines: m.Line - 1, MidLine: true}
}

// UnfinishedError ends a search whose time is over. From is where to go on; what
// comes before it was searched.
type UnfinishedError struct{ From From }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("blob: the search's time was over at byte %d", e.From.Offset)
}

// Search yields the lines of a blob that match, in order, one chunk held at a
// time however long a line is. It is for one use. Lines end with a line feed;
// one of more than 256 KiB is looked at in parts, which count as lines of their
// own for `^` and `$`, and a match across two of them is found if it has no more
// than 4 KiB. An error comes last, with a zero Match: after Options.SearchTime an
// *UnfinishedError, and before anything when too many searches are under way a
// *turn.BusyError.
//
// A search scans in turns with others. What it found in a turn it yields between
// two turns, so that a slow caller delays no other.
func (s *Store) Search(ctx context.Context, scope kv.Scope, e Entry, p *LinePattern, from From) iter.Seq2[Match, error] {
	if from.Offset < 0 || from.Lines < 0 || from.Offset > e.Size {
		return func(yield func(Match, error) bool) {
			yield(Match{}, fmt.Errorf("%w: the blob has no byte %d", ErrInvalid, from.Offset))
		}
	}
	return s.SearchPieces(ctx, scope, s.ahead(ctx, scope, e, from.Offset), p, from)
}

// SearchPieces is Search in content that is stored elsewhere: pieces yields it
// from from.Offset on. Its time and its turns count for the scope.
func (s *Store) SearchPieces(ctx context.Context, scope kv.Scope, pieces iter.Seq2[[]byte, error], p *LinePattern, from From) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		work, err := s.searches.Enter(scope.Tenant, scope.Owner)
		if err != nil {
			yield(Match{}, err)
			return
		}
		defer work.Leave()
		search(ctx, &scan{work: work, limit: s.opts.SearchTime, began: time.Now()}, pieces, p, from)(yield)
	}
}

// search looks through pieces as a part of a scan.
func search(ctx context.Context, work *scan, pieces iter.Seq2[[]byte, error], p *LinePattern, from From) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		g := &grep{
			places: places{pattern: p}, offset: from.Offset, line: from.Lines + 1, midLine: from.MidLine,
			start: from.Offset, yield: yield, scan: work, ctx: ctx,
		}
		err := g.run(pieces)
		if err != nil && !errors.Is(err, errStopped) {
			yield(Match{}, err)
		}
	}
}

// scan is the time that one search has, and its turns.
type scan struct {
	work  *turn.Work
	limit time.Duration // 0 for none
	began time.Time
	away  time.Duration // in the hands of the caller
}

// over reports whether the time is up. That of waiting for turns counts, that of the caller
// does not.
func (s *scan) over() bool { return s.limit > 0 && s.took() >= s.limit }

func (s *scan) took() time.Duration { return time.Since(s.began) - s.away }

// lineGrace is how much longer the line has that a search begins with: without it a search
// whose time is short would never get on.
const lineGrace = time.Second

// errStopped: the caller wants no more matches.
var errStopped = errors.New("blob: search stopped by its caller")

// maxFoundAhead bounds the matches that are found before they are yielded.
const maxFoundAhead = 64

// grep looks through content that comes in pieces.
type grep struct {
	places places
	yield  func(Match, error) bool
	scan   *scan
	ctx    context.Context // of the search, which lasts as long as the grep

	// text is the content from offset on: what is left of earlier pieces, and the
	// latest one.
	text, folded []byte
	offset       int64
	start        int64 // where the search began
	line         int64 // the number of the line that offset lies in
	// midLine says that the rest of the first line is passed over.
	midLine bool
	// matched says that the line at the beginning of text has matched already.
	matched bool
	// first says that the line that is looked at is the one where the search began.
	first bool
	// found are matches that are not yielded yet.
	found []Match
}

// run looks through all pieces, each in a turn or several.
func (g *grep) run(pieces iter.Seq2[[]byte, error]) error {
	for piece, err := range pieces {
		if err != nil {
			return err
		}
		if err := g.inTurn(func() error { return g.add(piece) }); err != nil {
			return err
		}
		if g.scan.over() && g.offset > g.start {
			return &UnfinishedError{From{Offset: g.offset, Lines: g.line - 1, MidLine: g.midLine || g.matched}}
		}
	}
	return g.inTurn(g.end)
}

// inTurn does a part of the work in a turn, and yields what it found.
func (g *grep) inTurn(part func() error) error {
	if err := g.scan.work.Begin(g.ctx); err != nil {
		return err
	}
	err := part()
	g.scan.work.End()
	if errors.Is(err, errStopped) {
		return err
	}
	if stopped := g.flush(); stopped != nil {
		return stopped
	}
	return err
}

// flush yields the hits. It must not be called while holding a turn.
func (g *grep) flush() error {
	if len(g.found) == 0 {
		return nil
	}
	began := time.Now()
	defer func() { g.scan.away += time.Since(began) }()
	for _, m := range g.found {
		if !g.yield(m, nil) {
			return errStopped
		}
	}
	g.found = g.found[:0]
	return nil
}

// add looks through the whole lines of a piece.
func (g *grep) add(piece []byte) error {
	if g.midLine {
		end := bytes.IndexByte(piece, '\n') + 1
		if end == 0 {
			g.offset += int64(len(piece))
			return nil
		}
		piece, g.midLine = piece[end:], false
		g.offset, g.line = g.offset+int64(end), g.line+1
	}
	if len(g.text) == 0 {
		g.text = piece
	} else {
		g.text = append(g.text, piece...)
	}
	if whole := bytes.LastIndexByte(g.text, '\n') + 1; whole > 0 {
		if err := g.lines(g.text[:whole]); err != nil {
			return err
		}
		g.drop(whole)
		g.matched = false
	}
	if len(g.text) > maxLineBytes {
		return g.part()
	}
	return nil
}

// end looks through what comes behind the last line feed.
func (g *grep) end() error {
	if len(g.text) > 0 {
		return g.lines(g.text)
	}
	return nil
}

// part looks at the beginning of a long line and keeps its end.
func (g *grep) part() error {
	if err := g.lines(g.text); err != nil {
		return err
	}
	g.drop(len(g.text) - lineOverlap)
	return nil
}

// drop removes the searched text. Its line numbers are counted already.
func (g *grep) drop(n int) {
	g.text = g.text[:copy(g.text, g.text[n:])]
	g.offset += int64(n)
}

// lines looks through some lines. It leaves line at the number of the line
// that comes after the last line feed.
func (g *grep) lines(text []byte) error {
	looked := text
	if g.places.pattern.fold {
		g.folded = appendLower(g.folded[:0], text)
		looked = g.folded
	}
	g.places.begin(looked)
	counted := 0 // line feeds before it are in g.line
	for at := 0; at <= len(text); {
		if at = g.places.after(at); at < 0 {
			break
		}
		start := bytes.LastIndexByte(text[:at], '\n') + 1
		end := len(text)
		if feed := bytes.IndexByte(text[at:], '\n'); feed >= 0 {
			end = at + feed
		}
		g.line += int64(bytes.Count(text[counted:start], []byte{'\n'}))
		counted = start
		if err := g.one(text, start, end); err != nil {
			return err
		}
		at = end + 1
		if at < len(text) && g.scan.over() {
			return &UnfinishedError{From{Offset: g.offset + int64(at), Lines: g.line}}
		}
	}
	g.line += int64(bytes.Count(text[counted:], []byte{'\n'}))
	return nil
}

// one looks at one line, and lets others have their turns.
func (g *grep) one(text []byte, start, end int) error {
	if start == 0 && g.matched {
		return nil
	}
	g.first = g.offset+int64(start) == g.start
	first, last, ok, err := g.places.pattern.in(text[start:end], g.within)
	if errors.Is(err, errLineTime) {
		if !g.first {
			return &UnfinishedError{From{Offset: g.offset + int64(start), Lines: g.line - 1}}
		}
		return invalid.Field(ErrInvalid, "regexp", "takes longer than %v for one line of %d bytes; make it simpler", g.scan.limit, end-start)
	}
	if err != nil {
		return err
	}
	if ok {
		g.match(text, start, end, first, last)
	}
	return g.pause()
}

// errLineTime: the time was over within a line.
var errLineTime = errors.New("blob: the search's time was over within a line")

// within is pause within a line.
func (g *grep) within() error {
	if g.scan.over() && (!g.first || g.scan.took() >= g.scan.limit+lineGrace) {
		return errLineTime
	}
	return g.pause()
}

// pause ends the turn when it is long enough, or many matches wait.
func (g *grep) pause() error {
	if len(g.found) < maxFoundAhead {
		return g.scan.work.Pause(g.ctx)
	}
	g.scan.work.End()
	if err := g.flush(); err != nil {
		return err
	}
	return g.scan.work.Begin(g.ctx)
}

// match notes a match that begins and ends so far behind the start of its line.
func (g *grep) match(text []byte, start, end, first, last int) {
	if start == 0 {
		g.matched = true
	}
	m := Match{Line: g.line, Offset: g.offset + int64(start+first), Length: int64(last - first)}
	shown := text[start:end]
	if len(shown) > MaxShownBytes {
		from := max(min(first-shownBefore, len(shown)-MaxShownBytes), 0)
		shown = shown[from : from+MaxShownBytes]
	}
	m.Text = bytes.Clone(shown)
	g.found = append(g.found, m)
}

// ahead yields the pieces of a blob from an offset on, and reads the next ones
// meanwhile. Each chunk is checked against its hash, the whole is not.
func (s *Store) ahead(ctx context.Context, scope kv.Scope, e Entry, offset int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		type read struct {
			piece []byte
			err   error
		}
		inner, cancel := context.WithCancel(ctx)
		reads := make(chan read, fetchAhead)
		go func() {
			defer close(reads)
			for piece, err := range s.read(inner, scope, e, offset, -1, false) {
				select {
				case reads <- read{piece, err}:
				case <-inner.Done():
					return
				}
			}
		}()
		// When the search is over, the store is not read any more.
		defer func() {
			cancel()
			for range reads {
				continue // until the reader has ended
			}
		}()
		for r := range reads {
			if !yield(r.piece, r.err) || r.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}
