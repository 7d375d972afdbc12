package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// The kinds of records that separate sections show. User memories are all others.
const (
	KindKnowledge = "knowledge"
	KindPlaybook  = playbook.Kind
	KindNote      = "note"
	KindSkill     = settings.SkillKind
	kindTask      = "task"
)

const (
	// minShare is the part of the best score that the others need. It keeps nine tenths
	// of the evidence that a search has among its first hundred hits.
	minShare = 0.2
	// fewRecords is how many records a scope must hold for a least score to count in full.
	// Among fewer a word that is asked for is rare in none, so that no score says much, and
	// what does not fit takes little room.
	fewRecords = 50
	// goalShare is how much a hit of the goal counts against one of the newest message.
	goalShare = 0.5
	// endBytes is how much of the beginning, and of the end, of a long text is searched
	// for: together they are a few hundred words, and who asks does so at either end.
	endBytes = 768
)

// Store is where records are. *memory.Store is one.
type Store interface {
	At(view kv.Reader) memory.View
	Foresee(along *kv.Reads, scope kv.Scope)
}

var _ Store = (*memory.Store)(nil)

// remembered is what a source finds in a view that only remembers; false where that does
// not suffice.
func remembered(store Store, a *gather.Ask, collect func(view memory.View) (gather.Found, error)) (gather.Found, bool, error) {
	found, err := collect(store.At(a.View).Remembered())
	if errors.Is(err, memory.ErrNotRemembered) {
		return gather.Found{}, false, nil
	}
	return found, err == nil, err
}

// query is what a source searches for.
type query struct {
	scopes   []kv.Scope
	filter   string
	limit    int
	minScore float64
}

// clipped is a text as it is searched for.
func clipped(s string) string {
	s = text.Valid(s)
	if len(s) <= 2*endBytes {
		return s
	}
	return text.Head(s, endBytes) + "\n" + text.Tail(s, endBytes)
}

// search asks for what fits the newest message and the goal, the best first. note says
// what the search had to do without, or why there are no hits.
func search(ctx context.Context, view memory.View, a *gather.Ask, q query) (hits []memory.Hit, note string, err error) {
	s := searching{view: view, query: q, why: "there is no message and no goal to search with"}
	for _, words := range asked(a.Newest) {
		if err := s.ask(ctx, words, 1); err != nil {
			return nil, "", err
		}
	}
	share := goalShare
	if len(s.hits) == 0 {
		share = 1
	}
	for _, words := range asked(a.Goal) {
		if a.Goal == a.Newest {
			break // it was asked already
		}
		if err := s.ask(ctx, words, share); err != nil {
			return nil, "", err
		}
	}
	if len(s.hits) == 0 {
		s.note = strings.TrimSuffix(s.why+"; "+s.note, "; ")
	}
	return s.hits, s.note, nil
}

// searching is one search.
type searching struct {
	view  memory.View
	query query
	hits  []memory.Hit
	// note says what it had to do without, why there is no hit.
	note, why string
	// best is the score of the best record so far.
	best float64
}

// ask adds what fits some words. share is how much that counts.
func (s *searching) ask(ctx context.Context, words string, share float64) error {
	q := &s.query
	found, err := s.view.QueryScopes(ctx, q.scopes, question.Question{Text: words, Filter: q.filter, Limit: min(q.limit, question.MaxLimit)})
	if err != nil {
		return err
	}
	s.note = strings.Join(found.Receipt.Degraded, "; ")
	least := q.minScore * float64(min(found.Receipt.Records, fewRecords)) / fewRecords
	more := fitting(found.Hits, least)
	for i := range more {
		more[i].Score *= share
	}
	s.hits = joined(s.hits, more, q.limit)
	switch {
	case len(found.Hits) > 0 && found.Hits[0].Score >= s.best:
		s.best = found.Hits[0].Score
		s.why = fmt.Sprintf("what fits best scores %.2f, less than %.2f", s.best, least)
	case s.best == 0:
		s.why = "nothing fits what is asked"
	}
	return nil
}

const (
	// maxSentences bounds the sentences of a text that are queried alone: in the whole text
	// each counts little among all the words that no record has.
	maxSentences = 3
	// minSentence is the length in bytes of the shortest that is.
	minSentence = 12
)

// asked returns the queries made from a text: the whole, and its most important sentences:
// questions, then the last one, then the first.
func asked(s string) []string {
	whole := strings.TrimSpace(clipped(s))
	if whole == "" {
		return nil
	}
	queries := []string{whole}
	var sentences []string
	for sentence := range passage.Sentences(whole) {
		if len(sentence) >= minSentence {
			sentences = append(sentences, sentence)
		}
	}
	if len(sentences) == 0 {
		return queries
	}
	add := func(sentence string) {
		if len(queries) <= maxSentences && !slices.Contains(queries, sentence) {
			queries = append(queries, sentence)
		}
	}
	for _, sentence := range slices.Backward(sentences) {
		if strings.HasSuffix(sentence, "?") {
			add(sentence)
		}
	}
	add(sentences[len(sentences)-1])
	add(sentences[0])
	return queries
}

// fitting are the hits that are sure enough.
func fitting(hits []memory.Hit, minScore float64) []memory.Hit {
	if len(hits) == 0 || hits[0].Score < minScore {
		return nil
	}
	least := minShare * hits[0].Score
	for i := range hits {
		if hits[i].Score < least {
			return hits[:i]
		}
	}
	return hits
}

// joined are the best of two lists of hits, each once.
func joined(first, second []memory.Hit, limit int) []memory.Hit {
	type name struct {
		scope kv.Scope
		id    string
	}
	at := make(map[name]int, len(first))
	for i, hit := range first {
		at[name{hit.Scope, hit.Record.ID}] = i
	}
	for _, hit := range second {
		if i, there := at[name{hit.Scope, hit.Record.ID}]; there {
			first[i].Score = max(first[i].Score, hit.Score)
			continue
		}
		first = append(first, hit)
	}
	slices.SortStableFunc(first, func(a, b memory.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return first[:min(len(first), limit)]
}

// userScope is that of the user of a prompt; false where none is named.
func userScope(a *gather.Ask) (kv.Scope, bool) {
	if a.Settings.UserID == "" {
		return kv.Scope{}, false
	}
	return kv.Scope{Tenant: a.Scope.Tenant, Kind: kv.OwnerUser, Owner: a.Settings.UserID}, true
}

// scopesOf returns the scopes of the agent and of the user.
func scopesOf(a *gather.Ask) []kv.Scope {
	scopes := []kv.Scope{a.Scope}
	if user, named := userScope(a); named {
		scopes = append(scopes, user)
	}
	return scopes
}

// userRef begins the refs of records that are the user's.
const userRef = "user:"

// refOf names a record.
func refOf(scope kv.Scope, id string) string {
	if scope.Kind == kv.OwnerUser {
		return userRef + id
	}
	return id
}

// versionOf says which state of a record something shows.
func versionOf(r *record.Record) string {
	return strconv.FormatInt(r.Version, 10) + "/" + strconv.FormatBool(r.Archived) + "/" + r.SupersededBy
}

// changed reports whether a record that is shown is no longer as it is shown.
func changed(ctx context.Context, view memory.View, a *gather.Ask) (bool, error) {
	return anyShown(ctx, view, a, func(r *record.Record, item gather.Item) bool { return versionOf(r) != item.Version })
}

// anyShown reports whether one of the records that are shown has gone, or differs.
func anyShown(ctx context.Context, view memory.View, a *gather.Ask, differs func(*record.Record, gather.Item) bool) (bool, error) {
	if len(a.Shown) == 0 {
		return false, nil
	}
	for _, scope := range scopesOf(a) {
		var ids []string
		var items []gather.Item
		for _, item := range a.Shown {
			if id, users := strings.CutPrefix(item.Ref, userRef); users == (scope.Kind == kv.OwnerUser) {
				ids, items = append(ids, id), append(items, item)
			}
		}
		records, err := view.GetAll(ctx, scope, ids)
		if err != nil {
			return false, err
		}
		for i, r := range records {
			if r == nil || differs(r, items[i]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// isVersionConflict reports whether somebody else changed a record first.
func isVersionConflict(err error) bool { return errors.Is(err, memory.ErrVersionConflict) }

// sequences say how far the records of the scopes of a prompt were read.
func sequences(ctx context.Context, view memory.View, scopes []kv.Scope) ([]gather.Sequence, error) {
	var all []gather.Sequence
	for _, scope := range scopes {
		n, err := view.Sequence(ctx, scope)
		if err != nil {
			return nil, err
		}
		source := "memory"
		if scope.Kind == kv.OwnerUser {
			source = "user_memory"
		}
		all = append(all, gather.Sequence{Source: source, Number: n})
	}
	return all, nil
}

// Terms are the words of a text as the index has them.
type Terms func(text string) iter.Seq[string]

// passageBytes is how much of a long text stands in a prompt: the passages of it that fit the
// question.
const passageBytes = 1200

// partOf is what stands in a prompt of a text: a short one whole, of a long one the passages
// that say most of the question, with what is left out marked and counted at the end. name
// names the text where it can be read whole; empty: the prompt does so elsewhere.
func partOf(s, name string, asked map[string]float64, terms Terms) string {
	s = strings.TrimSpace(text.Valid(s))
	if len(s) <= passageBytes {
		return s
	}
	by := passage.Filler{Terms: terms, Weights: asked, Count: func(s string) int { return len(s) }}
	var b strings.Builder
	end := 0
	for _, p := range by.Passages(s, passageBytes) {
		switch {
		case b.Len() > 0:
			b.WriteString(" " + text.Ellipsis + " ")
		case p.From > 0:
			b.WriteString(text.Ellipsis)
		}
		b.WriteString(p.In(s))
		end = p.To
	}
	if end < len(s) {
		b.WriteString(text.Ellipsis)
	}
	b.WriteString(" [part of " + text.HumanSize(int64(len(s))))
	if name != "" {
		b.WriteString(", record " + name)
	}
	b.WriteString("]")
	return b.String()
}

// askedWords are the words that a prompt searches for, one as much as the other.
func askedWords(a *gather.Ask, terms Terms) map[string]float64 {
	words := make(map[string]float64)
	for _, s := range []string{clipped(a.Newest), clipped(a.Goal)} {
		for term := range terms(s) {
			words[term] = 1
		}
	}
	return words
}
