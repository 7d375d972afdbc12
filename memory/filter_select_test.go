package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

var filterScope = kv.AgentScope("default", "filters")

// plain is a condition with its plain meaning.
type plain struct {
	text  string
	holds func(record.Record) bool
}

func (p plain) not() plain {
	return plain{"NOT (" + p.text + ")", func(r record.Record) bool { return !p.holds(r) }}
}

func (p plain) minus() plain { return plain{"-(" + p.text + ")", p.not().holds} }

func (p plain) and(q plain) plain {
	return plain{"(" + p.text + ") AND (" + q.text + ")", func(r record.Record) bool { return p.holds(r) && q.holds(r) }}
}

// blank joins as AND does; where there are no parentheses, OR is read first.
func (p plain) blank(q plain) plain {
	joined := p.and(q)
	return plain{"(" + p.text + ") (" + q.text + ")", joined.holds}
}

func (p plain) or(q plain) plain {
	return plain{"(" + p.text + ") OR (" + q.text + ")", func(r record.Record) bool { return p.holds(r) || q.holds(r) }}
}

// chooser makes random records and conditions.
type chooser struct{ *rand.Rand }

func pick[T any](c chooser, from ...T) T { return from[c.IntN(len(from))] }

var (
	longName    = strings.Repeat("long name ", 15)
	filterTexts = []string{"", "a", "b", "ab", "10", "Ann", "éa", "日本", longName + "1", longName + "2", longName[:70]}
	filterNames = []string{"a", "b", "ab", "Ann", "éa", "日本", longName + "1", longName + "2", longName[:70]}
	filterDays  = []string{"2023-05-07", "2023-05-08", "2023-05-09", "2023-06", "2022"}
	numbers     = []string{"0", "-1", "5", "5.0", "50e-1", "2.5", "9007199254740993", "9007199254740992", "123456789012345678901234567890.5", "-0.001", "1e2"}
	operators   = []string{"=", "!=", "<", "<=", ">", ">="}
)

func (c chooser) record(i int) record.Record {
	r := record.Record{
		Text: pick(c, "common", "a common disk", "disk*full", "line\nof common "+longName), Kind: pick(c, "note", "fact", "plan"), SessionID: pick(c, "", "s1", "s2", longName+"1"),
		Author: pick(c, append([]string{""}, filterNames...)...), Origin: pick(c, record.OriginUser, record.OriginAgent, record.OriginTool, record.OriginWeb),
		Importance: pick(c, 0, 0.25, 0.5, 0.7, 1),
	}
	if c.IntN(2) == 0 {
		r.Key = fmt.Sprintf("%s%03d", pick(c, "k", longName), i)
	}
	for range c.IntN(3) {
		r.Tags = append(r.Tags, pick(c, "red", "sweet", "*", "true"))
	}
	if c.IntN(3) > 0 {
		r.EventTime = time.Date(2023, 5, 7+c.IntN(3), pick(c, 0, 12), 0, 0, pick(c, 0, 1000), time.UTC)
	}
	if c.IntN(3) == 0 {
		r.TTL = pick(c, time.Hour, 48*time.Hour)
	}
	r.Metadata = json.RawMessage(c.metadata())
	return r
}

func (c chooser) metadata() string {
	var members []string
	add := func(name, value string) { members = append(members, fmt.Sprintf("%q: %s", name, value)) }
	for _, name := range []string{"x", "y"} {
		switch text, _ := json.Marshal(pick(c, filterTexts...)); c.IntN(6) {
		case 0:
			add(name, string(text))
		case 1, 2:
			add(name, pick(c, numbers...))
		case 3:
			add(name, pick(c, "true", "false", "null"))
		case 4:
			add(name, fmt.Sprintf(`[%s, %s, {"z": %s}]`, text, pick(c, numbers...), pick(c, numbers...)))
		}
	}
	if c.IntN(3) == 0 {
		add("deep", fmt.Sprintf(`{"z": %s, "n": null}`, pick(c, numbers...)))
	}
	if c.IntN(8) == 0 {
		add("wide", "["+strings.Repeat("0,", 100)+pick(c, numbers...)+"]")
	}
	return "{" + strings.Join(members, ",") + "}"
}

// texts are the fields that hold a text.
var texts = map[string]func(record.Record) string{
	"key": func(r record.Record) string { return r.Key }, "kind": func(r record.Record) string { return r.Kind },
	"session_id": func(r record.Record) string { return r.SessionID }, "author": func(r record.Record) string { return r.Author },
}

func ordered(c int, operator string) bool {
	switch operator {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func (c chooser) condition() plain {
	operator := pick(c, operators...)
	switch c.IntN(11) {
	case 0, 1:
		return c.textCondition(operator)
	case 2:
		value := pick(c, "red", "sweet", "blue", `\*`, "true", "*", "s*t", "*e*", `*\*`)
		return plain{fmt.Sprintf("tags:%q", value), func(r record.Record) bool { return slices.ContainsFunc(r.Tags, like(value)) }}
	case 3:
		return c.timeCondition(operator)
	case 4:
		value := pick(c, "0", "0.25", "0.5", "0.6", "0.7", "1", "2", "-1")
		want, _ := new(big.Rat).SetString(value)
		return plain{"importance " + operator + " " + value, func(r record.Record) bool {
			own, _ := new(big.Rat).SetString(fmt.Sprint(r.Importance))
			return ordered(own.Cmp(want), operator)
		}}
	case 5:
		return pick(c,
			plain{"tags:*", func(r record.Record) bool { return len(r.Tags) > 0 }},
			plain{"tier >= 4", func(record.Record) bool { return true }},
			plain{"tier < 3.5", func(record.Record) bool { return false }},
			plain{"origin != web", func(r record.Record) bool { return r.Origin != record.OriginWeb }},
			plain{"pinned != true", func(record.Record) bool { return true }},
			plain{`id != "id007"`, func(r record.Record) bool { return r.ID != "id007" }},
			plain{`id = ("id007" OR "id008")`, func(r record.Record) bool { return r.ID == "id007" || r.ID == "id008" }},
			plain{"metadata:*", func(r record.Record) bool { return len(decoded(r)) > 0 && !onlyNulls(r) }},
			plain{"metadata:deep", func(r record.Record) bool { return decoded(r)["deep"] != nil }},
		)
	case 6:
		return c.storedCondition(operator)
	case 7:
		value := pick(c, "common", "*common*", "a *", "*full", "disk*full", `disk\*full`, "", "*\nof*", "id00*")
		switch c.IntN(4) {
		case 0:
			return plain{fmt.Sprintf("text != %q", value), func(r record.Record) bool { return !like(value)(r.Text) }}
		case 1:
			return plain{fmt.Sprintf("text:%q", value), func(r record.Record) bool { return like("*" + value + "*")(r.Text) }}
		case 2:
			return plain{fmt.Sprintf("id = %q", value), func(r record.Record) bool { return value != "" && like(value)(r.ID) }}.unlessEmpty(value)
		}
		return plain{fmt.Sprintf("text = %q", value), func(r record.Record) bool { return like(value)(r.Text) }}
	}
	return c.metadataCondition(operator)
}

// unlessEmpty keeps a condition that an empty value makes none.
func (p plain) unlessEmpty(value string) plain {
	if value == "" {
		return plain{"tier >= 4", func(record.Record) bool { return true }}
	}
	return p
}

// like is what a text of a filter means beside = and :, said by a regular
// expression.
func like(text string) func(string) bool {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(text), `\\\*`, "\x00")
	pattern := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, `.*`), "\x00", `\*`) + `$`)
	return pattern.MatchString
}

// storedCondition is on a field that the index does not have.
func (c chooser) storedCondition(operator string) plain {
	switch c.IntN(3) {
	case 0:
		value := pick(c, 0, 1, 2, 3)
		return plain{fmt.Sprintf("version %s %d", operator, value), func(r record.Record) bool {
			return ordered(cmp.Compare(r.Version, int64(value)), operator)
		}}
	case 1:
		if c.IntN(3) == 0 {
			return plain{"superseded_by:*", func(r record.Record) bool { return r.SupersededBy != "" }}
		}
		value := pick(c, "new1", "new*", "*", "*5")
		if operator == "=" || operator == "!=" {
			return plain{fmt.Sprintf("superseded_by %s %q", operator, value), func(r record.Record) bool {
				return r.SupersededBy != "" && like(value)(r.SupersededBy) == (operator == "=")
			}}
		}
		return plain{fmt.Sprintf("superseded_by %s %q", operator, value), func(r record.Record) bool {
			return r.SupersededBy != "" && ordered(strings.Compare(r.SupersededBy, value), operator)
		}}
	}
	return c.timeConditionOn("update_time", operator)
}

func (c chooser) textCondition(operator string) plain {
	field := pick(c, "key", "kind", "session_id", "author")
	of := texts[field]
	if c.IntN(5) == 0 {
		return plain{field + ":*", func(r record.Record) bool { return of(r) != "" }}
	}
	value := pick(c, append([]string{"note", "s1", "k010", longName + "011"}, filterTexts...)...)
	if operator == "=" || operator == "!=" {
		value = pick(c, value, "k0*", "*1", longName+"*", longName[:30]+"*1", "*", "n*e", "é*", "**a**", "long*name*0*")
		return plain{fmt.Sprintf("%s %s %q", field, operator, value), func(r record.Record) bool {
			return of(r) != "" && like(value)(of(r)) == (operator == "=")
		}}
	}
	return plain{fmt.Sprintf("%s %s %q", field, operator, value), func(r record.Record) bool {
		return of(r) != "" && ordered(strings.Compare(of(r), value), operator)
	}}
}

func (c chooser) timeCondition(operator string) plain {
	return c.timeConditionOn(pick(c, "event_time", "create_time", "expire_time"), operator)
}

func (c chooser) timeConditionOn(field, operator string) plain {
	of := func(r record.Record) time.Time {
		return map[string]time.Time{
			"event_time": r.EventTime, "create_time": r.CreateTime, "expire_time": r.ExpireTime, "update_time": r.UpdateTime,
		}[field]
	}
	if c.IntN(5) == 0 {
		return plain{field + ":*", func(r record.Record) bool { return !of(r).IsZero() }}
	}
	value := pick(c, append([]string{"2026-03-01T12:00:00Z", "2023-05-08T14:00:00+02:00", "2023-05-08T12:00:00.000001Z", "2023-05-08T12:00:00.0000005Z", "2026-03-02"}, filterDays...)...)
	from, to := moments(value)
	return plain{fmt.Sprintf("%s %s %q", field, operator, value), func(r record.Record) bool {
		switch at := of(r); {
		case at.IsZero():
			return false
		case at.Before(from):
			return ordered(-1, operator)
		case at.Before(to) || at.Equal(from):
			return ordered(0, operator)
		}
		return ordered(1, operator)
	}}
}

// moments is the stretch that a text names, its end not included.
func moments(text string) (from, to time.Time) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, at
	}
	parse := func(layout string) time.Time { t, _ := time.Parse(layout, text); return t }
	switch len(text) {
	case 4:
		return parse("2006"), parse("2006").AddDate(1, 0, 0)
	case 7:
		return parse("2006-01"), parse("2006-01").AddDate(0, 1, 0)
	}
	return parse("2006-01-02"), parse("2006-01-02").AddDate(0, 0, 1)
}

func decoded(r record.Record) (object map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(r.Metadata))
	decoder.UseNumber()
	_ = decoder.Decode(&object)
	return object
}

func onlyNulls(r record.Record) bool {
	for _, value := range decoded(r) {
		if value != nil {
			return false
		}
	}
	return true
}

// at returns the values at a path: the one there, or with elements also those
// in arrays on the way.
func at(value any, path []string, elements, inArray bool) []any {
	if list, ok := value.([]any); ok {
		var all []any
		for _, item := range list {
			if elements {
				all = append(all, at(item, path, true, true)...)
			}
		}
		return all
	}
	object, isObject := value.(map[string]any)
	switch {
	case len(path) == 0 && isObject, value == nil:
		return nil
	case len(path) == 0:
		return []any{value}
	case !isObject:
		return nil
	}
	return at(object[path[0]], path[1:], elements, inArray)
}

// present reports whether there is anything at a path that is not null.
func present(value any, path []string) bool {
	if list, ok := value.([]any); ok {
		return len(path) == 0 || slices.ContainsFunc(list, func(item any) bool { return present(item, path) })
	}
	if len(path) == 0 {
		return value != nil
	}
	object, _ := value.(map[string]any)
	return present(object[path[0]], path[1:])
}

func (c chooser) metadataCondition(operator string) plain {
	path := pick(c, []string{"x"}, []string{"y"}, []string{"deep", "z"}, []string{"deep"}, []string{"x", "z"}, []string{"wide"}, []string{"deep", "n"})
	name := "metadata." + strings.Join(path, ".")
	if c.IntN(6) == 0 {
		return plain{name + ":*", func(r record.Record) bool { return present(decoded(r), path) }}
	}
	literal, compare := c.metadataLiteral()
	if c.IntN(6) == 0 && operator != "<" {
		return c.metadataPattern(path, name)
	}
	if c.IntN(4) == 0 {
		return plain{name + ":" + literal, func(r record.Record) bool {
			return slices.ContainsFunc(at(decoded(r), path, true, false), func(own any) bool { c, ok := compare(own); return ok && c == 0 })
		}}
	}
	if literal == "true" {
		operator = pick(c, "=", "!=")
	}
	return plain{name + " " + operator + " " + literal, func(r record.Record) bool {
		own := at(decoded(r), path, false, false)
		if len(own) == 0 {
			return false
		}
		c, same := compare(own[0])
		if operator == "!=" {
			return !same || c != 0
		}
		return same && ordered(c, operator)
	}}
}

// metadataPattern compares a text at a path with a pattern.
func (c chooser) metadataPattern(path []string, name string) plain {
	value := pick(c, "a*", "*b", "*", longName+"*", longName[:80]+"*2", "*name*1", "日*", `*\**`, "1*")
	such := func(own any) bool {
		s, ok := own.(string)
		return ok && like(value)(s)
	}
	switch c.IntN(3) {
	case 0:
		return plain{fmt.Sprintf("%s:%q", name, value), func(r record.Record) bool {
			return slices.ContainsFunc(at(decoded(r), path, true, false), such)
		}}
	case 1:
		return plain{fmt.Sprintf("%s != %q", name, value), func(r record.Record) bool {
			own := at(decoded(r), path, false, false)
			return len(own) > 0 && !such(own[0])
		}}
	}
	return plain{fmt.Sprintf("%s = %q", name, value), func(r record.Record) bool {
		own := at(decoded(r), path, false, false)
		return len(own) > 0 && such(own[0])
	}}
}

// metadataLiteral returns a literal and how values of its type compare with it.
func (c chooser) metadataLiteral() (string, func(any) (int, bool)) {
	switch c.IntN(5) {
	case 0:
		return "true", func(own any) (int, bool) {
			b, ok := own.(bool)
			return map[bool]int{true: 0, false: -1}[b], ok
		}
	case 1, 2:
		value := pick(c, filterTexts...)
		return fmt.Sprintf("%q", value), func(own any) (int, bool) {
			s, ok := own.(string)
			return strings.Compare(s, value), ok
		}
	}
	value := pick(c, "0", "-1", "5", "5.000", "0x5", "2.5", "9007199254740993", "123456789012345678901234567890.5", "-.001", "100")
	want, _ := new(big.Rat).SetString(value)
	return value, func(own any) (int, bool) {
		n, ok := own.(json.Number)
		if !ok {
			return 0, false
		}
		number, _ := new(big.Rat).SetString(n.String())
		return number.Cmp(want), true
	}
}

func (c chooser) tree(depth int) plain {
	if depth == 0 || c.IntN(4) == 0 {
		return c.condition()
	}
	switch c.IntN(6) {
	case 0:
		return c.tree(depth - 1).not()
	case 1:
		return c.tree(depth - 1).minus()
	case 2:
		return c.tree(depth - 1).blank(c.tree(depth - 1))
	case 3, 4:
		return c.tree(depth - 1).and(c.tree(depth - 1))
	}
	return c.tree(depth - 1).or(c.tree(depth - 1))
}

// filterStore is a store with what its index is read by.
type filterStore struct {
	*Store
	engine kv.Engine
}

func MustFilterStore(tb testing.TB, now func() time.Time) filterStore {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := New(engine, writer, &Options{Now: now, PackAfter: 40})
	tb.Cleanup(func() {
		_ = store.Close()
		_ = writer.Close()
	})
	return filterStore{store, engine}
}

// MustSelect returns the ids that a filter lets through, sorted.
func (s filterStore) MustSelect(tb testing.TB, text string, o selection.Options) []string {
	tb.Helper()
	f, err := filter.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	var ids []string
	err = s.view(tb.Context(), func(view kv.Snapshot) error {
		ids, err = s.selected(tb.Context(), view, f, o)
		return err
	})
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	slices.Sort(ids)
	return ids
}

func (s filterStore) selected(ctx context.Context, view kv.Snapshot, f filter.Expression, o selection.Options) ([]string, error) {
	bound, err := f.Bind(ctx, view, filterScope)
	if err != nil {
		return nil, err
	}
	reader, err := s.index.Open(ctx, view, filterScope)
	if err != nil {
		return nil, err
	}
	selection, err := selection.Select(ctx, reader, bound, o)
	if err != nil {
		return nil, err
	}
	ordinals := slices.Collect(selection.All())
	if len(ordinals) != selection.Count() {
		return nil, fmt.Errorf("%d ordinals of %d", len(ordinals), selection.Count())
	}
	return reader.IDs(ctx, ordinals)
}

// changed updates and supersedes some of the records, and returns all as they are
// then, but for those that replaced others.
func (s filterStore) changed(tb testing.TB, c chooser, records []record.Record) []record.Record {
	tb.Helper()
	for range 40 {
		r := records[c.IntN(len(records))]
		if _, err := s.Update(tb.Context(), filterScope, Update{ID: r.ID, Fields: ImportanceField, Values: record.Record{Importance: pick(c, 0.25, 0.5)}}, ""); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range 10 {
		newer := record.Record{ID: fmt.Sprintf("new%d", i), Text: "newer", Supersedes: records[i*7].ID}
		if _, err := s.Save(tb.Context(), filterScope, newer, ""); err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	for i, r := range records {
		if records[i], err = s.Get(tb.Context(), filterScope, r.ID); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range 10 {
		newer, err := s.Get(tb.Context(), filterScope, fmt.Sprintf("new%d", i))
		if err != nil {
			tb.Fatal(err)
		}
		records = append(records, newer)
	}
	return records
}

// What binds tighter than what: OR than a blank, and a blank than AND.
func TestFilterPrecedence(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := MustFilterStore(t, func() time.Time { return now })
	for i := range 16 {
		r := record.Record{ID: fmt.Sprintf("id%02d", i), Text: "common"}
		for bit, tag := range []string{"a", "b", "c", "d"} {
			if i&(1<<bit) != 0 {
				r.Tags = append(r.Tags, tag)
			}
		}
		if _, err := s.Save(t.Context(), filterScope, r, ""); err != nil {
			t.Fatal(err)
		}
	}
	for short, long := range map[string]string{
		"tags:a tags:b":                        "tags:a AND tags:b",
		"tags:a tags:b tags:c":                 "tags:a AND tags:b AND tags:c",
		"tags:a OR tags:b tags:c":              "(tags:a OR tags:b) AND tags:c",
		"tags:a tags:b OR tags:c":              "tags:a AND (tags:b OR tags:c)",
		"tags:a tags:b AND tags:c OR tags:d":   "(tags:a AND tags:b) AND (tags:c OR tags:d)",
		"NOT tags:a -tags:b":                   "(NOT tags:a) AND (NOT tags:b)",
		"tags:(a b)":                           "tags:a AND tags:b",
		"tags:(a OR b) tags:c":                 "(tags:a OR tags:b) AND tags:c",
		"(tags:a tags:b) OR (tags:c   tags:d)": "(tags:a AND tags:b) OR (tags:c AND tags:d)",
	} {
		o := selection.Options{Now: now.UnixMicro()}
		if got, want := s.MustSelect(t, short, o), s.MustSelect(t, long, o); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %v, and %s: %v", short, got, long, want)
		}
	}
}

func TestFiltersAgreeWithPlainReading(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seed := chance.Seed(t)
	c := chooser{rand.New(rand.NewPCG(seed, 1))}
	s := MustFilterStore(t, func() time.Time { return now })
	var records []record.Record
	for i := range 150 {
		draft := c.record(i)
		draft.ID = fmt.Sprintf("id%03d", i)
		r, err := s.Save(t.Context(), filterScope, draft, "")
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	records = s.changed(t, c, records)
	now = now.Add(time.Hour / 2)
	matched := 0
	for range 900 {
		p := c.tree(c.IntN(4))
		if len(p.text) > filter.MaxBytes {
			continue
		}
		var want []string
		for _, r := range records {
			if p.holds(r) {
				want = append(want, r.ID)
			}
		}
		got := s.MustSelect(t, p.text, selection.Options{Now: now.UnixMicro(), Superseded: true})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: filter %s:\ngot  %v\nwant %v", seed, p.text, got, want)
		}
		if len(want) > 0 && len(want) < len(records) {
			matched++
		}
	}
	if matched < 200 {
		t.Errorf("only %d filters told records apart", matched)
	}
}
