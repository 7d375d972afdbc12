package past_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var scope = kv.AgentScope("t", "a")

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// opened is a store with what it stands on.
type opened struct {
	*past.Store
	log    *session.Log
	engine kv.Engine
	writer *kv.Writer
}

func mustOpen(tb testing.TB) *opened {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	tb.Cleanup(func() {
		must(tb, writer.Close())
		must(tb, engine.Close())
	})
	log := session.New(engine, writer, nil)
	return &opened{past.New(engine, writer, log), log, engine, writer}
}

// restart forgets what the store remembers.
func (o *opened) restart() { o.Store = past.New(o.engine, o.writer, o.log) }

// keys counts the records and texts of the session.
func (o *opened) keys(tb testing.TB) (records, texts int) {
	tb.Helper()
	for tag, n := range map[byte]*int{'p': &records, 'x': &texts} {
		for _, err := range o.engine.Scan(tb.Context(), kv.Log, kv.Prefix(scope.Key(tag))) {
			must(tb, err)
			*n++
		}
	}
	return records, texts
}

func own(section, text string) past.Message {
	return past.Message{
		Message: session.Message{Role: session.User, Content: text}, Pieces: []past.Piece{{Section: section, Bytes: len(text)}},
	}
}

func (o *opened) save(tb testing.TB, id string, position uint64, messages ...past.Message) {
	tb.Helper()
	must(tb, o.Save(tb.Context(), scope, "s", past.Kept{ID: id, Position: position, Tools: []byte(`[{"name":"t"}]`)}, messages))
}

func (o *opened) messages(tb testing.TB, id string) []past.Message {
	tb.Helper()
	p, err := o.Find(tb.Context(), scope, "s", id)
	must(tb, err)
	if string(p.Tools) != `[{"name":"t"}]` {
		tb.Errorf("tools %q", p.Tools)
	}
	messages, err := o.Messages(tb.Context(), scope, "s", p)
	must(tb, err)
	return messages
}

func wantGone(tb testing.TB, err error, what string) {
	tb.Helper()
	gone, ok := errors.AsType[*past.GoneError](err)
	if !ok || !strings.Contains(gone.What, what) {
		tb.Errorf("error %v, want one that says %q", err, what)
	}
}

// A prompt comes back message by message, from the log, from its folds and from texts of
// its own, after a restart, too.
func TestRoundTrip(t *testing.T) {
	o := mustOpen(t)
	said := session.Message{
		Role: session.Assistant, BlocksJSON: []byte(`[{"type":"text","text":"é"}]`), ExtraJSON: []byte(`{"x":1.0}`),
		ToolCalls: []session.ToolCall{{ID: "c", Name: "n", Arguments: `{"n": 1}`, Extra: `{"y":2}`}},
	}
	_, err := o.log.AppendMessages(t.Context(), scope, "s", []session.Message{{Role: session.User, Content: "ask"}, said, {Role: session.Tool, ToolCallID: "c", Content: "gave"}}, "")
	must(t, err)
	must(t, o.log.AppendFolds(t.Context(), scope, "s", 0, []history.Fold{{
		Policy: "x", Batch: 1, Level: 1, Spans: []history.Span{{First: 2, Last: 3}}, Through: 3, Seen: 3, Text: "folded text",
	}}))
	want := []past.Message{
		own("system", "you are"),
		{Message: session.Message{Role: session.User, Content: "ask"}, Pieces: []past.Piece{{Section: "history", Bytes: 3}}, From: 1},
		{Message: said, From: 2},
		{Message: session.Message{Role: session.User, Content: "folded text"}, Batch: 1, First: 2},
		own("huge", strings.Repeat("0123456789abcdef", 150_000)),
		own("exactly two values", strings.Repeat("x", 1<<20-11)),
		{Message: session.Message{Role: session.User, Content: "qtail"}, Pieces: []past.Piece{{Section: "history", Bytes: 1}, {Section: "goal", Bytes: 4}}},
	}
	for len(want) < 100 {
		want = append(want, own("many", fmt.Sprint("message ", len(want))))
	}
	o.save(t, "one", 3, want...)
	for range 2 {
		if diff := cmp.Diff(want, o.messages(t, "one")); diff != "" {
			t.Errorf("(-want +got):\n%.2000s", diff)
		}
		// A fold that was undone is in the prompts that had it all the same.
		_, err = o.log.Undo(t.Context(), scope, "s", 0, "")
		if err != nil && !errors.Is(err, session.ErrNothingToUndo) {
			t.Fatal(err)
		}
		o.restart()
	}
}

// What equal beginnings say is stored once.
func TestTextsAreStoredOnce(t *testing.T) {
	o := mustOpen(t)
	var messages []past.Message
	for n := range 40 {
		messages = append(messages, own("history", fmt.Sprint("message ", n)))
		o.save(t, fmt.Sprint(n), uint64(n), messages...)
	}
	records, texts := o.keys(t)
	// The tools, 40 messages, and the run of the first 32.
	if records != 40 || texts != 42 {
		t.Errorf("%d records and %d texts", records, texts)
	}
	o.restart()
	o.save(t, "again", 40, messages...)
	if records, texts = o.keys(t); records != 41 || texts != 42 {
		t.Errorf("after a restart %d records and %d texts", records, texts)
	}
	if got := o.messages(t, "12"); len(got) != 13 || got[12].Content != "message 12" {
		t.Errorf("prompt 12 has %v", got)
	}
}

// Prompts are found by id, by what was recorded behind them, and from the newest one on.
func TestFind(t *testing.T) {
	o := mustOpen(t)
	_, err := o.Last(t.Context(), scope, "s")
	wantGone(t, err, "no record of a prompt")
	for n, position := range []uint64{0, 2, 2, 5} {
		o.save(t, fmt.Sprint("id", n%3), position, own("x", fmt.Sprint(n)))
	}
	for position, want := range map[uint64]uint64{1: 1, 2: 1, 3: 3, 5: 3, 6: 4, 99: 4} {
		p, err := o.Before(t.Context(), scope, "s", position, "step_001")
		must(t, err)
		if p.Number != want {
			t.Errorf("before position %d: prompt %d, want %d", position, p.Number, want)
		}
	}
	_, err = o.Before(t.Context(), scope, "s", 0, "step_001")
	wantGone(t, err, "no record of a prompt before step_001")
	p, err := o.Find(t.Context(), scope, "s", "id0")
	must(t, err)
	last, err := o.Last(t.Context(), scope, "s")
	must(t, err)
	if p.Number != 4 || last.Number != 4 {
		t.Errorf("prompts %d and %d, want the last one of equal ids", p.Number, last.Number)
	}
	p, err = o.Previous(t.Context(), scope, "s", p)
	must(t, err)
	if p.Number != 3 {
		t.Errorf("before prompt 4 comes %d", p.Number)
	}
	_, err = o.Find(t.Context(), scope, "s", "other")
	wantGone(t, err, `prompt "other"`)
	for _, foreign := range []kv.Scope{kv.AgentScope("t", "b"), kv.AgentScope("u", "a")} {
		_, err = o.Find(t.Context(), foreign, "s", "id0")
		wantGone(t, err, "")
	}
	_, err = o.Find(t.Context(), scope, "s2", "id0")
	wantGone(t, err, "")
}

// The oldest prompts go, many at a time, and their texts with them; those that stay are
// whole, and the answer for one that went says so.
func TestOldPromptsGo(t *testing.T) {
	o := mustOpen(t)
	most := 0
	for n := 1; n <= past.MaxPrompts+200; n++ {
		o.save(t, fmt.Sprint("id", n), uint64(n), own("system", "always"), own("goal", fmt.Sprint("goal ", n)))
		if n%37 == 0 {
			o.restart()
		}
		if n%10 != 0 {
			continue
		}
		records, texts := o.keys(t)
		if most = max(most, records); n >= past.MaxPrompts && records < past.MaxPrompts {
			t.Fatalf("only %d records after %d prompts", records, n)
		}
		if texts > 2*records+40 {
			t.Fatalf("%d texts of %d records", texts, records)
		}
	}
	if most < past.MaxPrompts || most > past.MaxPrompts+64 {
		t.Errorf("at most %d records", most)
	}
	_, err := o.Find(t.Context(), scope, "s", "id1")
	wantGone(t, err, "prompts were removed")
	p, err := o.Last(t.Context(), scope, "s")
	for n := 0; err == nil; n++ {
		messages, problem := o.Messages(t.Context(), scope, "s", p)
		must(t, problem)
		if want := fmt.Sprint("goal ", p.Number); messages[1].Content != want {
			t.Fatalf("prompt %d says %q", p.Number, messages[1].Content)
		}
		p, err = o.Previous(t.Context(), scope, "s", p)
	}
	wantGone(t, err, "the prompt before prompt")
}

// What a sweep left that was interrupted, the next one after a start removes.
func TestInterruptedSweep(t *testing.T) {
	o := mustOpen(t)
	n := 0
	save := func(prompts int) {
		for range prompts {
			n++
			o.save(t, fmt.Sprint("id", n), uint64(n), own("goal", fmt.Sprint("goal ", n)))
		}
	}
	save(1)
	var first []kv.Pair
	for pair, err := range o.engine.Scan(t.Context(), kv.Log, kv.Prefix(scope.Key('p'))) {
		must(t, err)
		first = append(first, pair)
	}
	left := func() bool {
		values, err := o.engine.Get(t.Context(), kv.Log, first[0].Key)
		must(t, err)
		return values[0] != nil
	}
	for save(past.MaxPrompts); left(); save(1) {
		if n > 2*past.MaxPrompts {
			t.Fatal("the first prompt stays")
		}
	}
	must(t, o.writer.Do(t.Context(), kv.Request{Blind: []kv.Ref{{Keyspace: kv.Log, Scope: scope}}, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.Log, first[0].Key, first[0].Value)
		return nil
	}}))
	o.restart()
	if save(past.MaxPrompts); left() {
		t.Errorf("what was left is stored behind %d prompts", n)
	}
}

// What was taken out of the log, or of the records, is named.
func TestGoneIsNamed(t *testing.T) {
	o := mustOpen(t)
	o.save(t, "log", 9, past.Message{From: 7})
	o.save(t, "fold", 9, past.Message{Batch: 3, First: 4})
	for id, what := range map[string]string{"log": "message_007", "fold": "the fold of batch 3 at position 4"} {
		p, err := o.Find(t.Context(), scope, "s", id)
		must(t, err)
		_, err = o.Messages(t.Context(), scope, "s", p)
		wantGone(t, err, what)
	}
}

func layout(head string, messages ...past.Written) *past.Comparable {
	return &past.Comparable{Head: []byte(head), Tools: "tools", Messages: messages}
}

// written is a message of sections, in turn their names and texts.
func written(parts ...string) past.Written {
	var m past.Written
	for pair := range slices.Chunk(parts, 2) {
		m.Content += pair[1]
		m.Pieces = append(m.Pieces, past.Piece{Section: pair[0], Bytes: len(pair[1])})
	}
	m.Bytes = []byte(`{"content":"` + m.Content + `"},`)
	return m
}

// The first byte that differs, and the section that owns it in the newer prompt.
func TestCompare(t *testing.T) {
	base := layout("tools", written("system", "abc"), written("history", "one"), written("history", "two", "goal", "Goal"))
	head := int64(len(`{"content":"`))
	for name, test := range map[string]struct {
		to       *past.Comparable
		section  string
		byte     int64
		message  int
		from, is string
	}{
		"equal":              {to: base},
		"tools":              {layout("toolz", base.Messages...), "tools", 4, -1, "s", "z"},
		"more tools":         {layout("tools2", base.Messages...), "tools", 5, -1, "", "2"},
		"first message":      {layout("tools", written("system", "abX"), base.Messages[1], base.Messages[2]), "system", 5 + head + 2, 0, `c"},`, `X"},`},
		"second piece":       {layout("tools", base.Messages[0], base.Messages[1], written("history", "two", "goal", "GoaX")), "goal", 5 + 18 + 18 + head + 6, 2, `l"},`, `X"},`},
		"longer first piece": {layout("tools", base.Messages[0], base.Messages[1], written("history", "twos", "goal", "Goal")), "history", 5 + 18 + 18 + head + 3, 2, `Goal"},`, `sGoal"},`},
		"one more":           {layout("tools", append(slices.Clone(base.Messages), written("events", "new"))...), "events", 5 + 18 + 18 + 22, 3, "", `{"content":"new"},`},
		"one less":           {layout("tools", base.Messages[:2]...), "history", 5 + 18 + 18, 2, `{"content":"twoGoal"},`, ""},
	} {
		got := past.Compare(base, test.to)
		want := past.Difference{Section: test.section, Byte: test.byte, Message: test.message, From: test.from, To: test.is}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An excerpt is at most so long and never ends within a character.
func TestExcerpts(t *testing.T) {
	for n := past.ExcerptBytes - 3; n < past.ExcerptBytes+3; n++ {
		long := strings.Repeat("x", n) + "é" + strings.Repeat("y", 300)
		got := past.Compare(layout("", written("a", "")), layout("", written("a", long)))
		if len(got.To) > past.ExcerptBytes || len(got.To) < past.ExcerptBytes-1 || strings.ContainsRune(got.To, '\uFFFD') {
			t.Errorf("%d: %d bytes %q", n, len(got.To), got.To)
		}
	}
}

// Many at once save prompts of one session: each gets a number of its own and comes back
// whole.
func TestManyAtOnce(t *testing.T) {
	o := mustOpen(t)
	var all sync.WaitGroup
	for n := range 64 {
		all.Go(func() {
			if err := o.Save(t.Context(), scope, "s", past.Kept{ID: fmt.Sprint("id", n)}, []past.Message{own("system", "always"), own("goal", fmt.Sprint(n))}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	numbers := make(map[uint64]bool)
	for n := range 64 {
		p, err := o.Find(t.Context(), scope, "s", fmt.Sprint("id", n))
		must(t, err)
		messages, err := o.Messages(t.Context(), scope, "s", p)
		must(t, err)
		if messages[1].Content != fmt.Sprint(n) {
			t.Errorf("prompt %d says %q", n, messages[1].Content)
		}
		numbers[p.Number] = true
	}
	if len(numbers) != 64 {
		t.Errorf("%d numbers of 64 prompts", len(numbers))
	}
}

// Check finds each byte of a text that was changed on disk, and nothing where none was.
func TestCheck(t *testing.T) {
	o := mustOpen(t)
	o.save(t, "one", 1, own("system", "you are"), own("huge", strings.Repeat("0123456789abcdef", 80_000)))
	check := func() (found []error) {
		must(t, past.Check(t.Context(), o.engine, scope, func(err error) { found = append(found, err) }))
		return found
	}
	if found := check(); len(found) != 0 {
		t.Fatalf("found %v", found)
	}
	var pairs []kv.Pair
	for _, tag := range []byte("pxr") {
		for pair, err := range o.engine.Scan(t.Context(), kv.Log, kv.Prefix(scope.Key(tag))) {
			must(t, err)
			if tag == 'x' || len(pairs) < 1 {
				pairs = append(pairs, kv.Pair{Key: slices.Clone(pair.Key), Value: slices.Clone(pair.Value)})
			}
		}
	}
	put := func(key, value []byte) {
		t.Helper()
		must(t, o.writer.Do(t.Context(), kv.Request{
			Blind: []kv.Ref{{Keyspace: kv.Log, Scope: scope}},
			Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.Log, key, value)
				return nil
			},
		}))
	}
	for _, pair := range pairs {
		broken := slices.Clone(pair.Value)
		if broken[0]++; len(broken) > 1 {
			broken[len(broken)-1]++
		}
		put(pair.Key, broken)
		if found := check(); len(found) == 0 {
			t.Errorf("%q was changed, and nothing was found", pair.Key)
		}
		put(pair.Key, pair.Value)
	}
	if found := check(); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

// gate is an engine whose commits wait for a word while it is shut.
type gate struct {
	kv.Engine
	shut atomic.Pointer[chan struct{}]
}

func (g *gate) Commit(ctx context.Context, c kv.Commit) error {
	if word := g.shut.Load(); word != nil {
		<-*word
	}
	return g.Engine.Commit(ctx, c)
}

// What is saved later is written in its order, before what comes after it in the log, and
// before anybody looks for it; more than may wait is written, too.
func TestSaveLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Engine: memkv.New(nil)}
		writer := kv.NewWriter(g, nil)
		var store *past.Store
		log := session.New(g, writer, &session.Options{Settle: func(ctx context.Context, scope kv.Scope) { store.Settle(ctx, scope) }})
		store = past.New(g, writer, log)
		defer func() { must(t, store.Close()); must(t, writer.Close()); must(t, g.Close()) }()
		word := make(chan struct{})
		g.shut.Store(&word)
		const prompts = 40 // more than may wait
		go func() {
			for i := range prompts {
				store.SaveLater(t.Context(), scope, "s", &past.Later{
					Prompt:   past.Kept{ID: fmt.Sprint(i)},
					Messages: func() []past.Message { return []past.Message{own("system", fmt.Sprint("text ", i))} }, Bytes: 10,
				})
			}
		}()
		synctest.Wait()
		said, found := false, ""
		go func() {
			_, err := log.AppendMessages(t.Context(), scope, "s", []session.Message{{Role: session.User, Content: "next"}}, "")
			must(t, err)
			said = true
		}()
		go func() {
			p, err := store.Last(t.Context(), scope, "s")
			must(t, err)
			found = p.ID
		}()
		// Another agent's log waits for nobody.
		store.Settle(t.Context(), kv.AgentScope("t", "other"))
		synctest.Wait()
		if said || found != "" {
			t.Error("something overtook the records that wait")
		}
		g.shut.Store(nil)
		close(word)
		synctest.Wait()
		must(t, store.Close())
		p, err := store.Last(t.Context(), scope, "s")
		must(t, err)
		if !said || p.ID != fmt.Sprint(prompts-1) || p.Number != prompts {
			t.Errorf("last is prompt %d, %q; want %d", p.Number, p.ID, prompts)
		}
		for i := range prompts {
			p, err := store.Find(t.Context(), scope, "s", fmt.Sprint(i))
			must(t, err)
			messages, err := store.Messages(t.Context(), scope, "s", p)
			must(t, err)
			if p.Number != uint64(i+1) || len(messages) != 1 || messages[0].Content != fmt.Sprint("text ", i) {
				t.Errorf("prompt %d is number %d with %v", i, p.Number, messages)
			}
		}
	})
}
