package plans

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxSummaryLines is how many lines Summarize joins.
const MaxSummaryLines = 50

// line is what is kept of an event.
type line struct {
	timestampMillis int64
	kind, source    string
}

// String is the line as callers see it.
func (l line) String() string {
	return fmt.Sprintf("[%d] %s from %s", l.timestampMillis, l.kind, l.source)
}

// AppendLine appends a line to the session: an event of that kind came from
// source at that time, in ms since 1970. A line over MaxLineBytes is a
// *SizeError.
func (s *Store) AppendLine(ctx context.Context, tenant, session string, timestampMillis int64, kind, source string) error {
	value := encodeLine(line{timestampMillis, kind, source})
	if len(value) > MaxLineBytes {
		return &SizeError{What: "line", Size: len(value), Limit: MaxLineBytes}
	}
	return wrap("append line", s.append(ctx, tenant, session, lines, value))
}

// Retrieve returns the lines of a session that contain query in any case, the
// oldest first. An empty query is in all of them. An empty session stands for all
// sessions of the tenant, one after another, always in the same order. It returns
// at most k lines; 0 counts as 1, and a negative k asks for all. More lines than
// one answer holds are a *SizeError.
func (s *Store) Retrieve(ctx context.Context, tenant, session, query string, k int) ([]string, error) {
	if len(query) > MaxQueryBytes {
		return nil, nil
	}
	all := s.lines(ctx, tenant, session)
	if session == "" {
		all = s.linesOfAll(ctx, tenant)
	}
	query = strings.ToLower(query)
	left := s.room()
	var matches []string
	for text, err := range all {
		if err == nil && strings.Contains(strings.ToLower(text), query) {
			matches, err = append(matches, text), left.take(len(text))
		}
		if err != nil {
			return nil, wrap("retrieve lines", err)
		}
		if len(matches) > 0 && len(matches) >= k && k >= 0 {
			break
		}
	}
	return matches, nil
}

// Summarize joins the oldest MaxSummaryLines lines that the session still has,
// and returns how many these are. An unknown session gives an empty text.
func (s *Store) Summarize(ctx context.Context, tenant, session string) (text string, events int, err error) {
	var texts []string
	for text, err := range s.lines(ctx, tenant, session) {
		if err != nil {
			return "", 0, wrap("summarize", err)
		}
		if texts = append(texts, text); len(texts) == MaxSummaryLines {
			break
		}
	}
	return strings.Join(texts, "\n"), len(texts), nil
}

// lines yields the lines of one session, the oldest first.
func (s *Store) lines(ctx context.Context, tenant, session string) iter.Seq2[string, error] {
	return linesIn(s.entries(ctx, tenant, session, lines, oldestFirst))
}

// linesOfAll yields the lines of all sessions, each as it is at one moment. Where they
// take longer to read than a snapshot lives, entries appended meanwhile may be missing, and
// so may entries that they push out.
func (s *Store) linesOfAll(ctx context.Context, tenant string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		view := kv.ReadLong(s.engine)
		defer view.Close()
		for f, err := range sessions(ctx, view, tenant) {
			if err != nil {
				yield("", err)
				return
			}
			for text, err := range linesIn(entriesUpTo(ctx, view, f.scope, lines, f.counters.lines, oldestFirst)) {
				if !yield(text, err) || err != nil {
					return
				}
			}
		}
	}
}

// linesIn reads entries of lines.
func linesIn(entries iter.Seq2[[]byte, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for value, err := range entries {
			var l line
			if err == nil {
				l, err = decodeLine(value)
			}
			if err != nil {
				yield("", err)
				return
			}
			if !yield(l.String(), nil) {
				return
			}
		}
	}
}
