package compress

import (
	"encoding/json"
	"iter"
	"strings"
)

// jsonSpace is what may stand between the parts of JSON.
const jsonSpace = " \t\r\n"

// members yields the members of an object or the elements of an array, in the
// order of the text: the key as it is written, empty in an array, and the value
// as it is written. value must be valid JSON. Anything else has no members.
func members(value string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		value = strings.Trim(value, jsonSpace)
		if value == "" || value[0] != '{' && value[0] != '[' {
			return
		}
		object := value[0] == '{'
		for at := skipSpace(value, 1); at < len(value) && value[at] != '}' && value[at] != ']'; {
			key := ""
			if object {
				end := stringEnd(value, at)
				key = value[at:end]
				at = skipSpace(value, skipSpace(value, end)+1) // behind the colon
			}
			end := valueEnd(value, at)
			if !yield(key, value[at:end]) {
				return
			}
			if at = skipSpace(value, end); at < len(value) && value[at] == ',' {
				at = skipSpace(value, at+1)
			}
		}
	}
}

// isArray reports whether JSON is an array.
func isArray(value string) bool { return strings.HasPrefix(strings.TrimLeft(value, jsonSpace), "[") }

// size counts the members of an object or the elements of an array.
func size(value string) int {
	n := 0
	for range members(value) {
		n++
	}
	return n
}

func skipSpace(s string, at int) int {
	for at < len(s) && strings.IndexByte(jsonSpace, s[at]) >= 0 {
		at++
	}
	return at
}

// stringEnd is where the string that begins at a quote ends.
func stringEnd(s string, at int) int {
	for at++; at < len(s); at++ {
		switch s[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(s)
}

// valueEnd is where the value that begins at a byte ends. It holds nothing but
// a number, so that no depth is too much for it.
func valueEnd(s string, at int) int {
	depth := 0
	for at < len(s) {
		switch s[at] {
		case '"':
			at = stringEnd(s, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
			at++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
			at++
			continue
		default:
			at++
			continue
		}
		if depth == 0 {
			return at
		}
	}
	return len(s)
}

// textOf is the text of a JSON string; false for anything else.
func textOf(value string) (string, bool) {
	var text string
	if value == "" || value[0] != '"' || json.Unmarshal([]byte(value), &text) != nil {
		return "", false
	}
	return text, true
}

// scalar is a value on one line: the text of a string, anything else as it is
// written.
func scalar(value string, n int) string {
	if text, ok := textOf(value); ok {
		value = text
	}
	return oneLine(value, n)
}

// field returns the first of some members of an object that it has. Of members
// with one key the first counts.
func field(object string, keys ...string) (string, bool) {
	found := make([]string, len(keys))
	for key, value := range members(object) {
		for i, wanted := range keys {
			if found[i] == "" && len(key) == len(wanted)+2 && key[1:len(key)-1] == wanted {
				found[i] = value
			}
		}
	}
	for _, value := range found {
		if value != "" {
			return value, true
		}
	}
	return "", false
}
