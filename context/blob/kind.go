package blob

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"

	"github.com/loom-bridge/loom-bridge/context/media"
)

// The kinds of content.
const (
	KindText   = "text"
	KindJSON   = "json"
	KindLog    = "log" // output of a command; never guessed, only told
	KindImage  = media.Image
	KindAudio  = media.Audio
	KindBinary = media.Binary
)

// KindOf tells what bytes look like that are all in memory: their kind, and their
// format where it was told apart. A store finds the same of an upload.
func KindOf(data []byte) (kind, mediaType string) {
	var text textScan
	text.add(data)
	return kindOf(nil, data, text.binary())
}

// kindOf guesses a content's kind and format from its beginning; all of it,
// when it is there, decides about JSON.
func kindOf(head, all []byte, isBinary bool) (kind, mediaType string) {
	if head == nil {
		head = all
	}
	if isBinary {
		mediaType := media.TypeOf(head)
		return media.Kind(mediaType), mediaType
	}
	start := bytes.TrimLeft(all, " \t\r\n")
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(all) {
		return KindJSON, ""
	}
	return KindText, ""
}

// extension is a file name's ending for a kind.
func extension(kind string) string {
	switch kind {
	case KindJSON:
		return "json"
	case KindText:
		return "txt"
	case KindLog:
		return "log"
	}
	return "bin"
}

// textScan tells text from binary and counts lines, however the content is cut
// into pieces.
type textScan struct {
	isBinary bool // a NUL, or not UTF-8
	invalid  bool // not UTF-8
	feeds    int64
	last     byte
	any      bool
	// pending is the beginning of a character whose end is in the next piece.
	pending []byte
}

func (t *textScan) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	t.any, t.last = true, piece[len(piece)-1]
	t.feeds += int64(bytes.Count(piece, []byte{'\n'}))
	if t.invalid {
		return
	}
	t.isBinary = t.isBinary || bytes.IndexByte(piece, 0) >= 0
	for len(t.pending) > 0 && len(piece) > 0 && !utf8.FullRune(t.pending) {
		t.pending, piece = append(t.pending, piece[0]), piece[1:]
	}
	if !utf8.FullRune(t.pending) && len(t.pending) > 0 {
		return
	}
	whole := len(text.WholeChars(piece))
	t.invalid = !utf8.Valid(t.pending) || !utf8.Valid(piece[:whole])
	t.isBinary = t.isBinary || t.invalid
	t.pending = append(t.pending[:0], piece[whole:]...)
}

// binary tells whether the content is no text, now that all of it was seen.
func (t *textScan) binary() bool { return t.isBinary || len(t.pending) > 0 }

// utf8 tells whether all of the content is UTF-8.
func (t *textScan) utf8() bool { return !t.invalid && len(t.pending) == 0 }

func (t *textScan) lines() int64 {
	if t.any && t.last != '\n' {
		return t.feeds + 1
	}
	return t.feeds
}
