package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxContainers of a text's lists and objects are taken apart, the first ones.
// In Go an object of one small member takes forty times the bytes of its text.
const MaxContainers = 20_000

// MaxDepth is how deep lists and objects are taken apart. Going deeper costs
// stack.
const MaxDepth = 256

// DecodeJSON decodes one JSON value into what CanonicalJSON takes, with numbers
// kept exact. Behind the first MaxContainers, and below MaxDepth, a list
// or an object is a json.RawMessage.
func DecodeJSON(text []byte) (any, error) {
	v, _, err := decodeJSON(text, MaxContainers)
	return v, err
}

// DecodeAll is DecodeJSON that takes all lists and objects apart down to MaxDepth,
// however many there are.
func DecodeAll(text []byte) (any, error) {
	v, _, err := decodeJSON(text, math.MaxInt)
	return v, err
}

// Place is where a text stands in JSON text, its quotes included.
type Place struct {
	// From and To are bytes of the JSON text.
	From, To int
	// Canonical says that AppendString writes the text as it stands there.
	Canonical bool
}

// WholeText is the key of the place of a value that is itself a text.
const WholeText = ""

// DecodePlaces is DecodeJSON that also returns the places of texts: members of the value by
// their keys, or the value itself by WholeText. places is nil if they are unknown.
// The value shares memory with the JSON text, which must not be changed any more.
func DecodePlaces(text []byte) (v any, places map[string]Place, err error) {
	d := decoder{text: OfBytes(text), texts: make(map[string]Place), left: MaxContainers}
	v, ok := d.value(0)
	end := d.at
	if !ok || !d.end() {
		v, err = decodeSlowly(text)
		return v, nil, err
	}
	if _, isText := v.(string); isText {
		d.texts[WholeText] = Place{d.valueAt, end, !d.odd}
	}
	return v, d.texts, nil
}

// decodeJSON takes so many lists and objects apart, and reports whether those were
// all.
func decodeJSON(text []byte, containers int) (v any, whole bool, err error) {
	d := decoder{text: string(text), left: containers}
	if v, ok := d.value(0); ok && d.end() {
		return v, !d.unread, nil
	}
	v, err = decodeSlowly(text)
	return v, true, err
}

// decodeSlowly takes every value there is, and says what is wrong with what is
// none.
func decodeSlowly(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("text: decode JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("text: decode JSON: something follows the value")
	}
	return v, nil
}

// decoder reads what tools give: long texts, mostly. What is unusual, or wrong,
// it leaves to encoding/json: no method that returns true has changed anything.
type decoder struct {
	text string
	at   int
	// texts are where the texts of the outermost object stand, by their keys; that
	// of a value that is itself a text has no key. Nil: they are not needed.
	texts map[string]Place
	// valueAt is where the last text that was read begins.
	valueAt int
	// odd says that the last text that was read holds an escape that AppendString
	// would write otherwise.
	odd bool
	// left are how many lists and objects may still be taken apart. unread says that
	// there were more.
	left   int
	unread bool
}

func (d *decoder) space() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.at]) >= 0 {
		d.at++
	}
}

func (d *decoder) end() bool {
	d.space()
	return d.at == len(d.text)
}

// next takes a byte behind white space.
func (d *decoder) next(c byte) bool {
	d.space()
	if d.at == len(d.text) || d.text[d.at] != c {
		return false
	}
	d.at++
	return true
}

func (d *decoder) value(depth int) (any, bool) {
	d.space()
	if d.at == len(d.text) {
		return nil, false
	}
	switch c := d.text[d.at]; {
	case (c == '{' || c == '[') && (d.left == 0 || depth == MaxDepth):
		return d.container(depth)
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		return d.string()
	case c == '-' || '0' <= c && c <= '9':
		return d.number()
	}
	for word, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if strings.HasPrefix(d.text[d.at:], word) {
			d.at += len(word)
			return v, true
		}
	}
	return nil, false
}

// container takes a list or an object as it is written.
func (d *decoder) container(depth int) (any, bool) {
	shape := ShapeOf(d.text[d.at:])
	size, deep := shape.Bytes, shape.Depth
	text := json.RawMessage(d.text[d.at : d.at+size])
	if depth+deep > maxDepth || !json.Valid(text) {
		return nil, false
	}
	d.at += size
	d.unread = true
	return text, true
}

func (d *decoder) object(depth int) (any, bool) {
	d.at++
	d.left--
	object := make(map[string]any)
	if d.next('}') {
		return object, true
	}
	for {
		d.space()
		key, ok := d.string()
		if !ok || !d.next(':') {
			return nil, false
		}
		v, ok := d.value(depth + 1)
		if !ok {
			return nil, false
		}
		if _, isText := v.(string); isText && depth == 0 && d.texts != nil {
			d.texts[key.(string)] = Place{d.valueAt, d.at, !d.odd}
		}
		object[key.(string)] = v
		if d.next('}') {
			return object, true
		}
		if !d.next(',') {
			return nil, false
		}
	}
}

func (d *decoder) array(depth int) (any, bool) {
	d.at++
	d.left--
	array := []any{}
	if d.next(']') {
		return array, true
	}
	for {
		v, ok := d.value(depth + 1)
		if !ok {
			return nil, false
		}
		array = append(array, v)
		if d.next(']') {
			return array, true
		}
		if !d.next(',') {
			return nil, false
		}
	}
}

// number takes a number as it is written.
func (d *decoder) number() (any, bool) {
	from := d.at
	for d.at < len(d.text) && strings.IndexByte("0123456789+-.eE", d.text[d.at]) >= 0 {
		d.at++
	}
	text := d.text[from:d.at]
	return json.Number(text), json.Valid([]byte(text))
}

// string takes a text.
func (d *decoder) string() (any, bool) {
	if d.at == len(d.text) || d.text[d.at] != '"' {
		return nil, false
	}
	rest := d.text[d.at+1:]
	d.odd, d.valueAt = false, d.at
	size, ok := plainPart(rest)
	if !ok {
		return nil, false
	}
	if rest[size] == '"' {
		d.at += size + 2
		return strings.Clone(rest[:size]), true
	}
	return d.escaped(rest)
}

// plainPart is the length of what stands before the next quote or escape, and
// whether there is one and all before it may stand in JSON as it is.
func plainPart(text string) (int, bool) {
	ascii := true
	i := 0
	for ; i+8 <= len(text); i += 8 {
		eight := eightBytes(text[i:])
		if hasSpecial(eight) {
			break
		}
		ascii = ascii && eight&eachHigh == 0
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			return i, ascii || utf8.ValidString(text[:i])
		case c < ' ':
			return 0, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return 0, false
}

const (
	eachOne  = 0x0101010101010101 // 1 in each of eight bytes
	eachHigh = 0x80 * eachOne     // the highest bit
)

// eightBytes are the first eight bytes of a text.
func eightBytes(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// hasSpecial reports whether one of eight bytes is a quote, a backslash or a control
// character: taking 1 from a byte that is 0, or a space from a lower one, borrows.
func hasSpecial(eight uint64) bool {
	quote, slash := eight^'"'*eachOne, eight^'\\'*eachOne
	borrows := (quote-eachOne)&^quote | (slash-eachOne)&^slash | (eight-' '*eachOne)&^eight
	return borrows&eachHigh != 0
}

// quoteIn is where the quote stands that ends a text, or its length without one.
func quoteIn(text string) int {
	for end := 0; ; end++ {
		next := strings.IndexByte(text[end:], '"')
		if next < 0 {
			return len(text)
		}
		end += next
		slashes := end
		for slashes > 0 && text[slashes-1] == '\\' {
			slashes--
		}
		if (end-slashes)%2 == 0 {
			return end
		}
	}
}

// escaped takes a text with escapes; rest begins behind its quote.
func (d *decoder) escaped(rest string) (any, bool) {
	var b strings.Builder
	b.Grow(quoteIn(rest)) // no escape is shorter than what it stands for
	for i := 0; ; {
		size, ok := plainPart(rest[i:])
		if !ok {
			return nil, false
		}
		b.WriteString(rest[i : i+size])
		i += size
		if rest[i] == '"' {
			d.at += i + 2
			return b.String(), true
		}
		if size = escape(&b, rest[i:]); size == 0 {
			return nil, false
		}
		d.odd = d.odd || !usualEscape(rest[i:])
		i += size
	}
}

// escape writes what an escape stands for, and returns its length; zero is none
// that is known here.
func escape(b *strings.Builder, text string) int {
	if len(text) < 2 {
		return 0
	}
	switch c := text[1]; c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'u':
		return unicodeEscape(b, text)
	default:
		return 0
	}
	return 2
}

// unicodeEscape writes the character of four hex digits, or of the two halves of a
// pair; half of one that stands alone is no character.
func unicodeEscape(b *strings.Builder, text string) int {
	const size = len(`\u0000`)
	r, ok := hexEscape(text)
	if !ok {
		return 0
	}
	if utf16.IsSurrogate(r) {
		low, _ := hexEscape(text[size:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			b.WriteRune(r)
			return 2 * size
		}
	}
	b.WriteRune(r)
	return size
}

// hexEscape reads the four hex digits of an escape.
func hexEscape(text string) (rune, bool) {
	const size = len(`\u0000`)
	if len(text) < size || text[:2] != `\u` {
		return 0, false
	}
	r := rune(0)
	for _, c := range []byte(text[2:size]) {
		digit := strings.IndexByte(hexDigits, c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// usualEscape reports whether AppendString would write an escape so.
func usualEscape(text string) bool {
	switch {
	case text[1] == '/':
		return false
	case text[1] != 'u':
		return true
	case len(text) < len(`\u0000`) || text[2:4] != "00" || text[4] != '0' && text[4] != '1':
		return false
	}
	digit := strings.IndexByte(hexDigits, text[5])
	return digit >= 0 && !bytes.ContainsRune([]byte("\b\t\n\f\r"), rune(text[4]-'0')<<4|rune(digit))
}
