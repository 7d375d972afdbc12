package proxy

import (
	"bytes"
	"encoding/json"
)

// span is where a value stands in JSON text.
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }

// space is the first byte at or behind i that is no white space.
func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// valueEnd is where the value ends that begins at i; -1 where it does not. Only where things
// begin and end is looked at: whoever reads a value finds out whether it is JSON.
func valueEnd(text []byte, i int) int {
	depth := 0
	for begin := i; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = quoteEnd(text, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			switch depth--; {
			case depth == 0:
				return i + 1
			case depth < 0:
				return end(begin, i)
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return end(begin, i)
			}
		}
	}
	return -1
}

// valuesOf is about how many values JSON text has, lists, objects and their members among them.
func valuesOf(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = quoteEnd(text, i); i < 0 {
				return n
			}
		case '{', '[', ',':
			n++
		}
	}
	return n
}

// end is i, or -1 where nothing stands before it.
func end(begin, i int) int {
	if i == begin {
		return -1
	}
	return i
}

// quoteEnd is where the text that begins at i has its last quote; -1 for nowhere.
func quoteEnd(text []byte, i int) int {
	for from := i + 1; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return -1
		}
		at := from + n
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		from = at + 1
	}
}

// members are the values of an object with their names, elements those of a list, whose names
// are empty; false where it is neither.
func members(text []byte, within span, each func(name string, value span)) bool {
	return values(text, within, '{', '}', each)
}

func elements(text []byte, within span, each func(value span)) bool {
	return values(text, within, '[', ']', func(_ string, value span) { each(value) })
}

func values(text []byte, within span, open, closes byte, each func(name string, value span)) bool {
	text = text[:within.to]
	i := space(text, within.from)
	if i >= len(text) || text[i] != open {
		return false
	}
	if i = space(text, i+1); i < len(text) && text[i] == closes {
		return space(text, i+1) == len(text)
	}
	for i < len(text) {
		name := ""
		if open == '{' {
			stop := -1
			if text[i] == '"' {
				stop = quoteEnd(text, i)
			}
			if stop < 0 || json.Unmarshal(text[i:stop+1], &name) != nil {
				return false
			}
			if i = space(text, stop+1); i >= len(text) || text[i] != ':' {
				return false
			}
			i = space(text, i+1)
		}
		stop := valueEnd(text, i)
		if stop < 0 {
			return false
		}
		each(name, span{i, stop})
		if i = space(text, stop); i >= len(text) || text[i] != ',' {
			return i < len(text) && text[i] == closes && space(text, i+1) == len(text)
		}
		i = space(text, i+1)
	}
	return false
}

// member is the place of an object's member; false where there is none, or more than one.
func member(text []byte, within span, name string) (found span, ok bool) {
	n := 0
	whole := members(text, within, func(given string, value span) {
		if given == name {
			found = value
			n++
		}
	})
	return found, whole && n == 1
}

// quoted is a text as JSON.
func quoted(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
