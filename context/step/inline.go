package step

import (
	"fmt"
	"strings"
)

// inlineJSON is the unfolded form of a result without a rule of its own.
func (r *Reducer) inlineJSON(result Result) string {
	if emptyResult(result) {
		return ""
	}
	text := string(SpacedJSON(resultValue(result)))
	left := int64(0)
	if !result.BodyBinary {
		left = max(result.BodySize-int64(len(result.BodyText)), 0)
	}
	return r.clip(text, "", int64(len(text))+left, false)
}

// clip returns text within the inline limit: its head and its tail on borders
// of lines, and between them a line that says how many bytes are missing. text
// is all of it, or its beginning, and then tail its end; size is the length of
// all of it. Of a result two thirds are head; of an error two thirds are tail,
// because that is where errors say what happened.
func (r *Reducer) clip(text, tail string, size int64, isError bool) string {
	limit := r.opts.InlineBytes
	whole := int64(len(text)) >= size
	if whole && len(text) <= limit {
		return text
	}
	if whole {
		tail = text
	}
	room := max(limit-len(clipMark(size)), 0)
	headRoom := room * 2 / 3
	if isError {
		headRoom = room / 3
	}
	head := headLines(text, headRoom)
	end := tailLines(tail, min(room-headRoom, max(int(size)-len(head), 0)))
	return head + clipMark(size-int64(len(head))-int64(len(end))) + end
}

// clipMark stands where bytes were left out. It ends the line before it and
// begins the next.
func clipMark(missing int64) string {
	return fmt.Sprintf("\n[… %d bytes left out; full text: see reference]\n", missing)
}

// headLines returns at most n leading bytes, whole lines if that keeps half of
// them.
func headLines(s string, n int) string {
	s = headBytes(s, n)
	if end := strings.LastIndexByte(s, '\n'); end >= n/2 {
		return s[:end]
	}
	return s
}

// tailLines returns at most n trailing bytes, whole lines if that keeps half of
// them.
func tailLines(s string, n int) string {
	s = tailBytes(s, n)
	if start := strings.IndexByte(s, '\n'); start >= 0 && len(s)-start-1 >= n/2 {
		return s[start+1:]
	}
	return s
}
