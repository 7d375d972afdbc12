package text

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON values; encoding/json has the same bound.
// Anything deeper becomes null.
const maxDepth = 10000

// CanonicalJSON returns v as canonical JSON without spaces: keys sorted by code
// point, text as UTF-8 with only what must be escaped escaped, whole numbers
// without exponent. Equal values give equal bytes. v is what encoding/json
// decodes into (json.Number included), or JSON text as json.RawMessage.
// What is not JSON (NaN, text that is no UTF-8, other Go types) becomes the
// nearest JSON there is, at worst null.
func CanonicalJSON(v any) []byte { return jsonWriter{}.value(nil, v, 0) }

// SpacedJSON is CanonicalJSON with a space behind each comma and colon, for
// lines of a prompt.
func SpacedJSON(v any) []byte { return jsonWriter{space: " "}.value(nil, v, 0) }

type jsonWriter struct{ space string }

func (w jsonWriter) value(dst []byte, v any, depth int) []byte {
	if depth > maxDepth {
		return append(dst, "null"...)
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return AppendString(dst, v)
	case json.Number:
		return append(dst, canonicalNumber(string(v))...)
	case float64:
		return appendFloat(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case map[string]any:
		return w.object(dst, v, depth)
	case []any:
		return w.array(dst, v, depth)
	}
	return w.foreign(dst, v, depth)
}

func (w jsonWriter) object(dst []byte, object map[string]any, depth int) []byte {
	object = withValidKeys(object)
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			dst = append(append(dst, ','), w.space...)
		}
		dst = append(append(AppendString(dst, key), ':'), w.space...)
		dst = w.value(dst, object[key], depth+1)
	}
	return append(dst, '}')
}

// withValidKeys returns object, or a copy with keys that are UTF-8: only those
// can be sorted before they are written. Of two keys that become equal the one
// that sorts last stays.
func withValidKeys(object map[string]any) map[string]any {
	valid := true
	for key := range object {
		valid = valid && utf8.ValidString(key)
	}
	if valid {
		return object
	}
	clean := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		clean[Valid(key)] = object[key]
	}
	return clean
}

func (w jsonWriter) array(dst []byte, array []any, depth int) []byte {
	dst = append(dst, '[')
	for i, element := range array {
		if i > 0 {
			dst = append(append(dst, ','), w.space...)
		}
		dst = w.value(dst, element, depth+1)
	}
	return append(dst, ']')
}

// foreign takes the way over encoding/json for every other type. JSON text that has
// too much to be taken apart keeps the order of its keys.
func (w jsonWriter) foreign(dst []byte, v any, depth int) []byte {
	text, isText := v.(json.RawMessage)
	if !isText {
		var err error
		if text, err = json.Marshal(v); err != nil {
			return append(dst, "null"...)
		}
	}
	decoded, whole, err := decodeJSON(text, MaxContainers)
	if err != nil {
		return append(dst, "null"...)
	}
	if !whole {
		compact := bytes.NewBuffer(dst)
		_ = json.Compact(compact, text) // it is valid
		return compact.Bytes()
	}
	return w.value(dst, decoded, depth)
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as canonical JSON: within quotes, and with U+FFFD for each
// run of bytes that is no UTF-8.
func AppendString(dst []byte, s string) []byte {
	s = Valid(s)
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		dst = appendEscape(dst, c)
	}
	return append(append(dst, s[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return append(dst, canonicalNumber(strconv.FormatFloat(f, 'e', -1, 64))...)
}

// How long a number may be written out before it gets an exponent. Every whole
// number that a float64 can hold has fewer digits.
const (
	maxWholeDigits    = 400
	maxFractionDigits = 20
)

// maxExponent bounds exponents. Beyond it no program can do anything with a
// number, so it becomes null.
const maxExponent = 1 << 20

// canonicalNumber rewrites a JSON number so that equal numbers look the same,
// without ever rounding: digits, with a point where one is needed, and an
// exponent only where the digits would be too many. Anything else becomes null.
func canonicalNumber(text string) string {
	if strings.Trim(text, "0123456789+-.eE") != "" || !json.Valid([]byte(text)) {
		return "null"
	}
	digits, negative := strings.CutPrefix(text, "-")
	digits, exponentText, _ := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent, err := strconv.Atoi(cmp.Or(exponentText, "0"))
	if err != nil || max(exponent, -exponent) > 2*maxExponent {
		return "null"
	}
	exponent += len(digits) - len(trimmed) - len(fraction)
	if first := exponent + len(trimmed) - 1; max(first, -first) > maxExponent {
		return "null"
	}
	plain := plainNumber(trimmed, exponent)
	if negative {
		return "-" + plain
	}
	return plain
}

// plainNumber writes digits times ten to the exponent; digits neither begin
// nor end with a zero.
func plainNumber(digits string, exponent int) string {
	switch {
	case exponent == 0 || exponent > 0 && len(digits)+exponent <= maxWholeDigits:
		return digits + strings.Repeat("0", exponent)
	case exponent < 0 && -exponent < len(digits):
		point := len(digits) + exponent
		return digits[:point] + "." + digits[point:]
	case exponent < 0 && -exponent <= maxFractionDigits:
		return "0." + strings.Repeat("0", -exponent-len(digits)) + digits
	}
	exponent += len(digits) - 1
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return digits + "e" + strconv.Itoa(exponent)
}
