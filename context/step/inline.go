package step

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// shown is a text that a prompt shows of a result, within a limit.
type shown struct {
	// head stands first, whole; it is short.
	head string
	// text is all of it, or its beginning, and then tail its end; size is the
	// length of all of it.
	text, tail string
	size       int64
	// isError keeps more of the end, because that is where errors say what
	// happened.
	isError bool
	// place is where the text begins in one that can be read on, nil for any other
	// text.
	place *Offset
	// taken says that the text was taken out of the result, which says it otherwise.
	taken bool
}

// shownText is a text that is all there.
func shownText(text string) shown { return shown{text: text, size: int64(len(text))} }

// below returns s with a text above it.
func (s shown) below(text string) shown {
	if s.size > 0 {
		text += "\n"
	}
	s.text = text + s.text
	s.size += int64(len(text))
	return s
}

// above returns s with a text below it.
func (s shown) above(text string) shown {
	if s.size > 0 {
		text = "\n" + text
	}
	if s.whole() {
		s.text += text
	} else {
		s.tail += text
	}
	s.size += int64(len(text))
	return s
}

// whole reports whether text is all of it.
func (s shown) whole() bool { return int64(len(s.text)) >= s.size }

// bytes is the length of it all.
func (s shown) bytes() int64 {
	if s.head == "" {
		return s.size
	}
	return int64(len(s.head)) + s.size + 1
}

// preview is its beginning on one line, at most n characters of it, or of a failure its end,
// where the error is.
func (s shown) preview(n int) string {
	line, cut := text.LinesHead(n, s.head, s.text)
	switch {
	case cut && s.isError:
		said, cut := text.TailChars(strings.TrimSpace(s.end()), complaintChars)
		if cut {
			said = text.Ellipsis + said
		}
		return text.OneLine(s.head + "\n" + said)
	case cut:
		return line + text.Dots
	}
	return line
}

// end is what is held of its end.
func (s shown) end() string {
	if s.whole() {
		return s.text
	}
	return s.tail
}

// lastLine is its last line that is not blank.
func (s shown) lastLine() string {
	end := strings.TrimRight(text.Tail(s.end(), MaxErrorBytes), " \t\r\n")
	return strings.TrimSpace(end[strings.LastIndexByte(end, '\n')+1:])
}

// cutText says what of a text is shown: so many bytes of its beginning and its
// end, or all of it.
type cutText struct {
	inline     string
	all        bool
	head, tail int
	// missing bytes are not shown.
	missing int64
}

// cut returns a text within the inline limit: its head and its tail on borders
// of lines, and between them a line that says how many bytes are missing. Of a
// result two thirds are head; of an error two thirds are tail.
func (r *Reducer) cut(s shown) cutText {
	lead := s.head
	if lead != "" && s.size > 0 {
		lead += "\n"
	}
	limit := max(r.opts.InlineBytes-len(lead), 0)
	if s.whole() && len(s.text) <= limit {
		return cutText{inline: lead + s.text, all: true}
	}
	tail := s.tail
	if s.whole() {
		tail = s.text
	}
	room := limit - len(cutMark(s.size, ""))
	if s.place != nil || s.taken {
		room -= readOnBytes
	}
	room = max(room, 0)
	headRoom, tailRoom := excerpt.Halves(room, s.isError)
	head := excerpt.NamedHead(s.text, headRoom)
	end := excerpt.NamedTail(tail, min(tailRoom, max(int(s.size)-len(head), 0)))
	missing := s.size - int64(len(head)) - int64(len(end))
	mark := cutMark(missing, s.readOn(head))
	if s.whole() && !r.pays(s.text[len(head):len(s.text)-len(end)], mark) {
		return cutText{inline: lead + s.text, all: true}
	}
	return cutText{inline: lead + head + mark + end, head: len(head), tail: len(end), missing: missing}
}

// maxTokenBytes is the longest token of the vocabularies that are public.
const maxTokenBytes = 128

// pays reports whether a mark is shorter than what it stands for.
func (r *Reducer) pays(missing, mark string) bool {
	if len(missing) > maxTokenBytes*len(mark) {
		return true // it can't have fewer tokens
	}
	return r.opts.Count(mark) < r.opts.Count(missing)
}

// cutSign begins a mark, and the line that it stands in.
const cutSign = "\n[… "

// cutMark stands where bytes were left out. It ends the line before it and
// begins the next.
func cutMark(missing int64, more string) string {
	return fmt.Sprintf(cutSign+"%d"+cutWords+"see reference%s]\n", missing, more)
}

// cutWords stand behind the number of bytes in a mark.
const cutWords = " bytes left out; full text: "

// CutMark returns the words that stand in Inline where bytes of the result were left
// out, with the line ends around them, and how many bytes that are; nothing when
// all of it is there.
func (s Step) CutMark() (mark string, missing int64) {
	sign := cutSign
	if !strings.Contains(s.Inline, sign) {
		return "", 0
	}
	missing, known := s.Figure(figureLeftOut)
	if known {
		sign += strconv.FormatInt(missing, 10) + cutWords // a result may contain such words itself
	}
	start := strings.Index(s.Inline, sign)
	if start < 0 {
		return "", 0
	}
	digits, rest, found := strings.Cut(s.Inline[start+len(cutSign):], cutWords)
	n, err := strconv.ParseInt(digits, 10, 64)
	end := strings.Index(rest, "]\n")
	if !found || err != nil || end < 0 {
		return "", 0
	}
	size := len(cutSign) + len(digits) + len(cutWords) + end + len("]\n")
	return s.Inline[start : start+size], n
}

// figureLeftOut is how many bytes of a result Inline leaves out. It is a key of a
// step's metadata and never changes.
const figureLeftOut = "left_out_bytes"

// readOnBytes is room for what readOn says.
const readOnBytes = len("; read on with offset_bytes 9223372036854775807")

// readOn says how to read on behind the head that is shown.
func (s shown) readOn(head string) string {
	if s.taken {
		return "; as text: " + idMark + ".txt"
	}
	if s.place == nil {
		return ""
	}
	next := s.place.Next(head, strings.HasPrefix(s.text[len(head):], "\n"))
	if next == "" {
		return ""
	}
	return "; read on with " + next
}

// Beginning returns how much of Inline, in bytes, is the beginning of the result
// as it is, before anything is left out.
func (s Step) Beginning() int {
	if at := strings.Index(s.Inline, cutSign); at >= 0 {
		return at
	}
	return len(s.Inline)
}

// Offset is where a text begins in the one that a call of fs:read_file reads, in
// the numbers that such calls count with.
type Offset struct {
	// Line is its first line, from 1; zero when the call counted bytes.
	Line int64
	// Byte is its first byte; it is known of Line 0 and 1.
	Byte int64
}

// PlaceOf returns where the text begins that a call of fs:read_file with these
// arguments gives.
func PlaceOf(args map[string]any) Offset {
	_, limited := args["limit_bytes"]
	if first, byBytes := integer(args["offset_bytes"]); byBytes || limited {
		return Offset{Byte: max(first, 0)}
	}
	line, ok := integer(args["offset"])
	if !ok {
		line, _ = integer(args["start_line"])
	}
	return Offset{Line: max(line, 1)}
}

// Next says how to read on behind the beginning of a text that begins at p, such
// as "offset 12", or nothing when that is not known. ended says that the
// beginning ends with its line.
func (p Offset) Next(beginning string, ended bool) string {
	lines := int64(strings.Count(beginning, "\n"))
	if ended {
		lines++
	}
	switch {
	case p.Line > 0 && lines > 0:
		return fmt.Sprintf("offset %d", p.Line+lines)
	case p.Line <= 1:
		return fmt.Sprintf("offset_bytes %d", p.Byte+int64(len(beginning)))
	}
	return ""
}
