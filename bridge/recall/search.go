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

// The kinds of records that separate sections show. Notes show what is
// pinned, too; the section of memories shows all others.
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
	// asideShare is how much a hit of the goal, or of what a message may refer to, counts
	// against one of the newest message.
	asideShare = 0.5
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
	scopes []kv.Scope
	filter string
	limit  int
	// minScore is what the best hit needs, minShare the part of its score that others do.
	minScore, minShare float64
}

// clipped is a text as it is searched for.
func clipped(s string) string {
	s = text.Valid(s)
	if len(s) <= 2*endBytes {
		return s
	}
	return text.Head(s, endBytes) + "\n" + text.Tail(s, endBytes)
}

// results are what a search found, for reading only.
type results struct {
	// hits are the best first.
	hits []memory.Hit
	// words are the words of the query, as the index has them, and the weight of each.
	words map[string]float64
	// note says what the search had to do without, or why there are no hits.
	note string
}

// search asks for what fits the newest message, what that refers to, and the goal. It returns
// what of makes of that, and of nothing else, which takes so many bytes and is for reading
// only.
func search[T any](ctx context.Context, view memory.View, a *gather.Ask, q query, of func(*results) (T, int)) (T, error) {
	var none T
	parts := []string{fmt.Sprintf("%T", none), a.Newest, a.Before, a.Answer, a.Goal, q.filter, fmt.Sprint(q.limit, q.minScore, q.minShare)}
	return memory.Whole(ctx, view, q.scopes, parts, func(view memory.View) (T, int, error) {
		found, err := q.search(ctx, view, a)
		if err != nil {
			return none, 0, err
		}
		made, bytes := of(&found)
		return made, bytes, nil
	})
}

// asFound is what a search found, as it is.
func asFound(r *results) (results, int) { return *r, r.bytes() }

// bytes is about what they take in memory.
func (r *results) bytes() int {
	const perHit, perWord = 1 << 10, 64
	n := len(r.note) + perWord*len(r.words)
	for i := range r.hits {
		n += perHit + r.hits[i].Record.Bytes()
	}
	return n
}

func (q query) search(ctx context.Context, view memory.View, a *gather.Ask) (results, error) {
	s := searching{view: view, query: q, results: results{words: make(map[string]float64)}, why: "there is no message and no goal to search with"}
	if err := s.leaveEmpty(ctx); err != nil {
		return results{}, err
	}
	first, aside := []string{clipped(a.Newest)}, referred(a)
	if len(aside) > 0 && len(strings.Fields(a.Newest)) <= fewWords {
		first, aside = aside, first
	}
	if err := s.askAll(ctx, first, 1); err != nil {
		return results{}, err
	}
	share := asideShare
	if len(s.hits) == 0 {
		share = 1
	}
	if a.Goal != a.Newest { // else it was asked already
		aside = append(aside, clipped(a.Goal))
	}
	if err := s.askAll(ctx, aside, share); err != nil {
		return results{}, err
	}
	if len(s.hits) == 0 {
		s.note = strings.TrimSuffix(s.why+"; "+s.note, "; ")
	}
	return s.results, nil
}

// askAll asks for what fits texts. A question at the end of a page, or among other matters,
// finds little as a part of the whole: unless what that found is sure, the text's sentences are
// asked alone, too, and count the more the less sure that is and the more their best hit stands
// out. "What next?" fits a word of very many.
func (s *searching) askAll(ctx context.Context, texts []string, share float64) error {
	for _, said := range texts {
		if said = strings.TrimSpace(said); said == "" {
			continue
		}
		best := 0.0
		if err := s.ask(ctx, said, func(hits []memory.Hit) float64 {
			if len(hits) > 0 {
				best = hits[0].Score
			}
			return share
		}); err != nil {
			return err
		}
		if best >= sure {
			continue
		}
		for _, sentence := range apart(said) {
			if err := s.ask(ctx, sentence, func(hits []memory.Hit) float64 { return share * (1 - best) * standsOut(hits) }); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// sure is the score of a hit that answers the whole of what was said.
	sure = 0.4
	// crowd is the place of a hit that the best of a clear question stands out from.
	crowd = 10
)

// standsOut is how far the best hit stands out from the others: 1 where there are few.
func standsOut(hits []memory.Hit) float64 {
	if len(hits) < crowd || hits[0].Score <= 0 {
		return 1
	}
	return 1 - hits[crowd-1].Score/hits[0].Score
}

const (
	// followUpBytes is the length of the longest message that may be about what was said
	// before it, as "and in Paris?" is: one sentence.
	followUpBytes = 64
	// fewWords is how many words it has at most if it hardly says anything without that.
	fewWords = 4
)

// referred are the queries of a short message with what it may refer to: the message before it,
// and the answer to that.
func referred(a *gather.Ask) (queries []string) {
	said := strings.TrimSpace(text.Valid(a.Newest))
	if said == "" || len(said) > followUpBytes {
		return nil
	}
	for _, before := range []string{a.Before, a.Answer} {
		if before = strings.TrimSpace(text.Valid(before)); before != "" {
			queries = append(queries, before+"\n"+said)
		}
	}
	return queries
}

// searching is one search.
type searching struct {
	results
	view  memory.View
	query query
	// why is why there is no hit.
	why string
	// best is the score of the best record so far.
	best float64
}

// leaveEmpty leaves out the scopes that never held a record.
func (s *searching) leaveEmpty(ctx context.Context) error {
	var held []kv.Scope
	for _, scope := range s.query.scopes {
		n, err := s.view.Sequence(ctx, scope)
		if err != nil {
			return err
		}
		if n > 0 {
			held = append(held, scope)
		}
	}
	s.query.scopes = held
	return nil
}

// ask adds what fits some words. counts says of what was found how much it does.
func (s *searching) ask(ctx context.Context, words string, counts func(hits []memory.Hit) float64) error {
	q := &s.query
	if len(q.scopes) == 0 {
		s.why = nothingFits
		return nil
	}
	found, err := s.view.QueryScopes(ctx, q.scopes, question.Question{Text: words, Filter: q.filter, Limit: min(q.limit, question.MaxLimit)})
	if err != nil {
		return err
	}
	s.note = strings.Join(found.Receipt.Degraded, "; ")
	share := counts(found.Hits)
	least := q.minScore * float64(min(found.Receipt.Records, fewRecords)) / fewRecords
	more := fitting(found.Hits, least, q.minShare)
	for i := range more {
		more[i].Score *= share
	}
	s.hits = joined(s.hits, more, q.limit)
	for word, weight := range found.Words() {
		s.words[word] = max(s.words[word], share*weight)
	}
	switch {
	case len(found.Hits) > 0 && found.Hits[0].Score >= s.best:
		s.best = found.Hits[0].Score
		s.why = fmt.Sprintf("what fits best scores %.2f, less than %.2f", s.best, least)
	case s.best == 0:
		s.why = nothingFits
	}
	return nil
}

const nothingFits = "nothing fits what is asked"

const (
	// maxSentences bounds the sentences of a text that are queried alone: in the whole text
	// each counts little among all the words that no record has.
	maxSentences = 3
	// minSentence is the length in bytes of the shortest that is.
	minSentence = 12
)

// apart are the most important sentences of a text of several: questions, then the last one,
// then the first.
func apart(whole string) (queries []string) {
	var sentences []string
	for sentence := range passage.Sentences(whole) {
		if len(sentence) >= minSentence {
			sentences = append(sentences, sentence)
		}
	}
	if len(sentences) == 0 {
		return nil
	}
	add := func(sentence string) {
		if len(queries) < maxSentences && sentence != whole && !slices.Contains(queries, sentence) {
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

// fitting are the hits that are sure enough: the best has minScore, the others minShare of that
// of the best.
func fitting(hits []memory.Hit, minScore, minShare float64) []memory.Hit {
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
	shown := joinedPassages(s, by.Passages(s, passageBytes)) + " [part of " + text.HumanSize(int64(len(s)))
	if name != "" {
		shown += ", record " + name
	}
	return shown + "]"
}

// joinedPassages are passages of a text, with what is left out marked.
func joinedPassages(s string, passages []passage.Passage) string {
	var b strings.Builder
	end := 0
	for _, p := range passages {
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
