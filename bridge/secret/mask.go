package secret

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MinBytes is the least part of a value that is looked for: a shorter one could not be distinguished
// from other text.
const MinBytes = 8

// star stands in the place of each byte of a secret.
const star = '*'

// Mask finds values. It never changes and is safe for concurrent use; the nil Mask finds
// nothing and costs nothing.
type Mask struct {
	tables []*table // the operator's, and a tenant's
}

// table holds the patterns to search for of some values.
type table struct {
	likely [1 << 16 / 64]uint64 // which hashes the windows have
	window map[uint64]struct{}  // each MinBytes bytes of the parts of a value, in lower case
	pairs  [1 << 16 / 64]uint64 // which two bytes follow each other in a window
	whole  []named              // the values themselves, the longest first
}

type named struct{ name, value string }

// New returns a Mask of values by their names; nil without any. Of a value whose name does not
// say that it is secret, as API_KEY does, ordinary words are left alone where they stand by
// themselves.
func New(values map[string]string) *Mask {
	all := make(map[entry]string, len(values))
	for name, value := range values {
		all[entry{name: name}] = value
	}
	if t := newTable(all); t != nil {
		return &Mask{tables: []*table{t}}
	}
	return nil
}

// entry is whose value it is, and its name.
type entry struct{ owner, name string }

func newTable(values map[entry]string) *table {
	t := &table{window: map[uint64]struct{}{}}
	for e, value := range values {
		for _, part := range partsOf(value) {
			t.add(part, secretName(e.owner) || secretName(e.name))
		}
		if len(value) >= MinBytes {
			t.whole = append(t.whole, named{e.name, value})
		}
	}
	if len(t.window) == 0 && len(t.whole) == 0 {
		return nil
	}
	slices.SortFunc(t.whole, func(a, b named) int {
		return cmp.Or(len(b.value)-len(a.value), strings.Compare(a.value, b.value), strings.Compare(a.name, b.name))
	})
	return t
}

// add takes in the windows of a part; unless it is surely secret, without its ordinary words.
func (t *table) add(part string, sure bool) {
	var words words
	if !sure {
		words = wordsOf(part)
	}
	for i := 0; i+MinBytes <= len(part); i++ {
		if few(part[i:i+MinBytes]) || words.hold(i, i+MinBytes) {
			continue
		}
		t.put(part[i : i+MinBytes])
		if strings.Contains(part[i:i+MinBytes], " ") { // as forms write it
			t.put(strings.ReplaceAll(part[i:i+MinBytes], " ", "+"))
		}
	}
}

func (t *table) put(text string) {
	var w uint64
	for i := range MinBytes {
		c := lower(text[i])
		if i > 0 {
			pair := uint16(w)<<8 | uint16(c)
			t.pairs[pair/64] |= 1 << (pair % 64)
		}
		w = w<<8 | uint64(c)
	}
	h := hash(w)
	t.likely[h/64] |= 1 << (h % 64)
	t.window[w] = struct{}{}
}

func hash(w uint64) uint16 { return uint16(w * 0x9E3779B97F4A7C15 >> 48) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

var lowered = func() (t [256]byte) {
	for i := range t {
		t[i] = lower(byte(i))
	}
	return t
}()

// lowerAll is lower for each of eight bytes.
func lowerAll(w uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	low := w &^ high
	letters := (low + (0x80-'A')*each) &^ (low + (0x80-'Z'-1)*each) &^ w & high
	return w | letters>>2
}

// has reports whether eight bytes in lower case are a part of a value.
func (m *Mask) has(w uint64) bool {
	h := hash(w)
	for _, t := range m.tables {
		if t.likely[h/64]&(1<<(h%64)) != 0 && t.holds(w) {
			return true
		}
	}
	return false
}

func (t *table) holds(w uint64) bool {
	_, ok := t.window[w]
	return ok
}

// follows reports whether a part of a value has two bytes in a row.
func (m *Mask) follows(a, b byte) bool {
	pair := uint16(lower(a))<<8 | uint16(lower(b))
	for _, t := range m.tables {
		if t.pairs[pair/64]&(1<<(pair%64)) != 0 {
			return true
		}
	}
	return false
}

// Bytes is data without the values: data itself where there are none, or a copy.
func (m *Mask) Bytes(data []byte) []byte {
	if m == nil || len(data) < MinBytes {
		return data
	}
	found, _ := m.find(data, true)
	if len(found) == 0 {
		return data
	}
	data = bytes.Clone(data)
	for _, s := range found {
		fill(data[s.from:s.to])
	}
	return data
}

func fill(data []byte) {
	for i := range data {
		data[i] = star
	}
}

// Text is Bytes for a text.
func (m *Mask) Text(text string) string {
	if m == nil || len(text) < MinBytes {
		return text
	}
	data := []byte(text)
	if out := m.Bytes(data); &out[0] != &data[0] {
		return string(out)
	}
	return text
}

// In reports whether a text holds a part of a value.
func (m *Mask) In(text string) bool { return m.Text(text) != text }

// JSON is Bytes for one JSON value, which stays one.
func (m *Mask) JSON(data []byte) []byte {
	out := m.Bytes(data)
	if m == nil || len(data) < MinBytes || &out[0] == &data[0] || json.Valid(out) || !json.Valid(data) {
		return out
	}
	// A number was masked, or what lies between two texts: mask each by itself.
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return out
	}
	safe, err := json.Marshal(m.Value(value))
	if err != nil { // of what came as JSON: never
		return out
	}
	return safe
}

// Value is a value of decoded JSON without the values, in a copy where one is found. A number
// that holds one becomes a text.
func (m *Mask) Value(value any) any {
	if m == nil {
		return value
	}
	switch v := value.(type) {
	case string:
		return m.Text(v)
	case json.Number, int, int64, uint64, float64:
		if text := fmt.Sprint(v); m.In(text) {
			return m.Text(text)
		}
	case map[string]any:
		return m.Object(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.Value(v[i])
		}
		return out
	}
	return value
}

// Object is Value for an object; its names are masked, too.
func (m *Mask) Object(values map[string]any) map[string]any {
	if m == nil || values == nil {
		return values
	}
	out := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		safe := m.Text(name)
		for _, taken := out[safe]; taken; _, taken = out[safe] {
			safe += "+"
		}
		out[safe] = m.Value(values[name])
	}
	return out
}

// nameLetter keeps the letters of a name that change nothing around it.
func nameLetter(r rune) rune {
	if r < 0x80 && (alphanumeric(byte(r)) || strings.ContainsRune("_-. ", r)) {
		return r
	}
	return '_'
}

// Named is a text for a person who must see all else of it: each whole value becomes
// <secret NAME>, and nothing else changes.
func (m *Mask) Named(text string) string {
	if m == nil {
		return text
	}
	for _, t := range m.tables {
		for _, w := range t.whole {
			label := "<secret " + strings.Map(nameLetter, w.name) + ">"
			text = strings.ReplaceAll(text, w.value, label)
			if quoted, err := json.Marshal(w.value); err == nil {
				text = strings.ReplaceAll(text, string(quoted[1:len(quoted)-1]), label)
			}
		}
	}
	return text
}
