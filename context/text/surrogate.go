package text

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// PairedSurrogates is JSON text with the replacement character in the place of each half of
// a surrogate pair that is escaped without its other half: many writers of JSON let it
// pass, and strict readers refuse the whole text for it. The same text comes back where
// there is none.
func PairedSurrogates(json string) string {
	var out strings.Builder
	from := 0
	for at := nextEscape(json, 0); at < len(json); at = nextEscape(json, at) {
		r, ok := escaped(json[at:])
		if !ok || !utf16.IsSurrogate(r) {
			continue
		}
		if low, is := strings.CutPrefix(json[at+escapeDigits:], `\u`); is {
			if other, ok := escaped(low); ok && utf16.DecodeRune(r, other) != '\uFFFD' {
				at += escapeDigits + len(`\u`) + escapeDigits
				continue
			}
		}
		out.WriteString(json[from:at] + "fffd")
		from = at + escapeDigits
	}
	if from == 0 {
		return json
	}
	return out.String() + json[from:]
}

// escapeDigits follow the u of an escape.
const escapeDigits = 4

// nextEscape is where the digits of the next escape stand in JSON text, or its length: a u
// behind an odd number of backslashes.
func nextEscape(json string, from int) int {
	for at := from; ; {
		next := strings.Index(json[at:], `\u`)
		if next < 0 {
			return len(json)
		}
		at += next
		slashes := 1
		for at-slashes >= 0 && json[at-slashes] == '\\' {
			slashes++
		}
		at += len(`\u`)
		if slashes%2 == 1 {
			return at
		}
	}
}

// escaped is the number that the digits of an escape stand for.
func escaped(s string) (rune, bool) {
	if len(s) < escapeDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:escapeDigits], 16, 32)
	return rune(n), err == nil //nolint:gosec // four digits
}
