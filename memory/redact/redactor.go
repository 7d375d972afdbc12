package redact

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Limits of the search.
const (
	// MaxSecretBytes bounds one secret. What is longer is redacted so far.
	MaxSecretBytes = 16 << 10
	// MaxOwn bounds the own patterns of a Redactor.
	MaxOwn = 64
	// MaxNameBytes bounds the name of an own pattern.
	MaxNameBytes = 64
)

// Counts are how many secrets were found, by the names of their patterns. The nil Counts is
// empty.
type Counts map[string]int32

// Add adds what others have.
func (c *Counts) Add(others Counts) {
	if len(others) == 0 {
		return
	}
	if *c == nil {
		*c = make(Counts, len(others))
	}
	for name, n := range others {
		(*c)[name] += n
	}
}

// Redactor looks for secrets. It is safe for concurrent use.
type Redactor struct {
	kinds    []kind // the built-in ones, each with the bit of its place
	own      []Own
	eager    bool
	begins   [1 << 16 / 64]uint64 // which hashes three bytes have with which a pattern begins
	begun    map[uint32]uint32    // those patterns
	single   uint32               // kinds that one byte shows
	totals   map[string]*atomic.Int64
	textOnly uint32 // kinds that are not looked for in bytes that are no text
}

// New returns a Redactor with the built-in patterns and groups of those names, and own ones.
// Without either it is nil. Errors: *invalid.Error.
func New(names []string, own []Own) (*Redactor, error) {
	kinds, err := chosen(names)
	if err != nil {
		return nil, err
	}
	if err := checkOwn(own); err != nil {
		return nil, err
	}
	if len(kinds) == 0 && len(own) == 0 {
		return nil, nil
	}
	return build(kinds, own, false), nil
}

// Eager returns a Redactor with all built-in patterns of secrets that takes for a secret
// whatever stands where one would, also if it is an ordinary word.
var Eager = sync.OnceValue(func() *Redactor {
	kinds, err := chosen([]string{Secrets})
	if err != nil {
		panic(err)
	}
	return build(kinds, nil, true)
})

func build(kinds []kind, own []Own, eager bool) *Redactor {
	r := &Redactor{kinds: kinds, own: own, eager: eager, begun: make(map[uint32]uint32), totals: make(map[string]*atomic.Int64)}
	for i, k := range kinds {
		bit := uint32(1) << i
		if k.textOnly {
			r.textOnly |= bit
		}
		r.totals[k.name] = new(atomic.Int64)
		for _, begin := range k.begins {
			if len(begin) == 1 {
				r.single |= bit
				continue
			}
			h := hash(uint32(begin[0]) | uint32(begin[1])<<8 | uint32(begin[2])<<16)
			r.begins[h/64] |= 1 << (h % 64)
			r.begun[h] |= bit
		}
	}
	for _, o := range own {
		r.totals[o.Name] = new(atomic.Int64)
	}
	return r
}

// hash is one of three bytes, the same for letters in either case.
func hash(three uint32) uint32 { return (three & 0xDFDFDF * 0x9E3779B1) >> 16 }

// Names are the names of the patterns that r looks for, sorted.
func (r *Redactor) Names() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.totals))
}

// Totals are how many secrets were found since the Redactor was made.
func (r *Redactor) Totals() map[string]int64 {
	if r == nil {
		return nil
	}
	totals := make(map[string]int64, len(r.totals))
	for name, n := range r.totals {
		totals[name] = n.Load()
	}
	return totals
}

// Text redacts a text, which may be JSON or hold some. Counts may be nil.
func (r *Redactor) Text(text string, counts *Counts) string {
	if r == nil || text == "" {
		return text
	}
	b := blocks.Get().(*block)
	defer b.free()
	b.take(text)
	if r.find(b, 0, len(b.text), ^uint32(0)); len(b.found) == 0 {
		return text
	}
	out, _ := r.replace(make([]byte, 0, len(text)+64), b, text, 0, len(b.text), counts)
	return string(out)
}

// Finds reports whether a text holds a secret; nothing is counted.
func (r *Redactor) Finds(text string) bool {
	if r == nil || text == "" {
		return false
	}
	b := blocks.Get().(*block)
	defer b.free()
	b.take(text)
	r.find(b, 0, len(b.text), ^uint32(0))
	return len(b.found) > 0
}

// Bytes is Text for bytes, which it leaves as they are.
func (r *Redactor) Bytes(text []byte, counts *Counts) []byte {
	if r == nil || len(text) == 0 {
		return text
	}
	if out := r.Text(string(text), counts); out != string(text) {
		return []byte(out)
	}
	return text
}

// Value redacts a value of decoded JSON, in a copy where something is found. A text under
// a name such as password is one of that pattern.
func (r *Redactor) Value(value any, counts *Counts) any {
	if r == nil {
		return value
	}
	return r.value("", value, counts)
}

func (r *Redactor) value(name string, value any, counts *Counts) any {
	switch v := value.(type) {
	case string:
		return r.Named(name, v, counts)
	case map[string]any:
		return r.object(v, counts)
	case []any:
		var out []any
		for i, old := range v {
			changed := r.value(name, old, counts)
			if out == nil && !same(old, changed) {
				out = slices.Clone(v)
			}
			if out != nil {
				out[i] = changed
			}
		}
		if out != nil {
			return out
		}
	}
	return value
}

// Object is Value for an object.
func (r *Redactor) Object(values map[string]any, counts *Counts) map[string]any {
	if r == nil {
		return values
	}
	return r.object(values, counts)
}

func (r *Redactor) object(values map[string]any, counts *Counts) map[string]any {
	var out map[string]any
	for _, name := range slices.Sorted(maps.Keys(values)) {
		old := values[name]
		changed, safe := r.value(name, old, counts), r.Text(name, counts)
		if safe == name && same(old, changed) {
			continue
		}
		if out == nil {
			out = maps.Clone(values)
		}
		if safe != name {
			delete(out, name)
			for taken := true; taken; {
				if _, taken = out[safe]; taken {
					safe += "+"
				}
			}
		}
		out[safe] = changed
	}
	if out != nil {
		return out
	}
	return values
}

// same reports whether redacting has left a value alone, which returns it as it was then.
func same(old, changed any) bool {
	switch v := old.(type) {
	case string:
		return v == changed
	case map[string]any:
		c, ok := changed.(map[string]any)
		return ok && reflect.ValueOf(v).Pointer() == reflect.ValueOf(c).Pointer()
	case []any:
		c, ok := changed.([]any)
		return ok && len(c) == len(v) && (len(v) == 0 || &v[0] == &c[0])
	}
	return true
}

// Named redacts a text that stands under a name, such as a field of JSON or a header.
func (r *Redactor) Named(name, text string, counts *Counts) string {
	if r == nil {
		return text
	}
	if r.has(Password) && secretName(name) && r.plausible(text, true) {
		r.count(Password, counts)
		return mark(Password)
	}
	out := r.Text(text, counts)
	if out == text && text != "" && text != mark(Authorization) && slices.Contains(credentialHeaders, strings.ToLower(name)) && r.has(Authorization) {
		r.count(Authorization, counts)
		return mark(Authorization)
	}
	return out
}

// has reports whether a pattern is looked for.
func (r *Redactor) has(name string) bool {
	return slices.ContainsFunc(r.kinds, func(k kind) bool { return k.name == name })
}

func (r *Redactor) count(name string, counts *Counts) {
	r.totals[name].Add(1)
	if counts != nil {
		counts.Add(Counts{name: 1})
	}
}

// mark stands in the place of a secret.
func mark(name string) string { return "[redacted:" + name + "]" }

// found is a secret in the text of a block.
type found struct {
	start, end int
	name       string
}

// find looks for secrets in the text of a block that begin between two places, and sorts them.
func (r *Redactor) find(b *block, from, until int, kinds uint32) {
	b.found = b.found[:0]
	r.findKinds(b, from, min(len(b.text), until+beforeBytes), kinds)
	for _, o := range r.own {
		if o.Literal != "" && !strings.Contains(b.text, o.Literal) {
			continue
		}
		for _, at := range o.expression.FindAllStringIndex(b.text, -1) {
			if at[1] > from && at[1] > at[0] {
				b.found = append(b.found, found{max(at[0], from), at[1], o.Name})
			}
		}
	}
	if len(b.found) > 1 {
		slices.SortStableFunc(b.found, func(a, b found) int { return cmp.Compare(a.start, b.start) })
	}
}

// findKinds asks the built-in patterns. A secret may begin before the place that shows it.
func (r *Redactor) findKinds(b *block, from, until int, kinds uint32) {
	text := b.text
	if len(text) < from+3 {
		return
	}
	three := uint32(text[from])<<8 | uint32(text[from+1])<<16
	for i := from; i < until && i+2 < len(text); i++ {
		three = three>>8 | uint32(text[i+2])<<16
		if h := hash(three); r.begins[h/64]&(1<<(h%64)) != 0 {
			if end := r.match(b, from, i, kinds&r.begun[h]); end > i+1 {
				i = end - 1
				three = 0
				if end+1 < len(text) {
					three = uint32(text[end])<<8 | uint32(text[end+1])<<16
				}
			}
		}
	}
	if kinds&r.single == 0 {
		return
	}
	for i := from; i < until; i++ {
		if c := text[i]; c == '@' || c-'2' < 5 {
			i = max(i, r.match(b, from, i, kinds&r.single)-1)
		}
	}
}

// match asks some patterns about a place, and returns the end of what one has found.
func (r *Redactor) match(b *block, from, i int, kinds uint32) (end int) {
	for at, k := range r.kinds {
		if kinds&(1<<at) == 0 {
			continue
		}
		if start, end, ok := k.match(r, b.text, i); ok {
			b.found = append(b.found, found{max(start, from), end, k.name})
			return end
		}
	}
	return 0
}

// replace appends what the raw text becomes, from the place of the text that from is to the
// one that until is, or the end of a secret that begins before; and returns how much of the
// raw text that is.
func (r *Redactor) replace(dst []byte, b *block, raw string, from, until int, counts *Counts) ([]byte, int) {
	at := from
	for _, f := range b.found {
		if f.start >= until {
			break
		}
		if f.end <= at {
			continue
		}
		if f.start >= at {
			dst = append(dst, raw[b.raw(at):b.raw(f.start)]...)
			dst = append(dst, mark(f.name)...)
			r.count(f.name, counts)
		}
		at = f.end // of one that begins inside another the rest goes with that
	}
	if end := max(at, until); end > at {
		dst = append(dst, raw[b.raw(at):b.raw(end)]...)
		at = end
	}
	return dst, b.raw(at)
}
