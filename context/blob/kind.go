package blob

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The kinds of content.
const (
	KindText   = "text"
	KindJSON   = "json"
	KindLog    = "log" // output of a command; never guessed, only told
	KindImage  = "image"
	KindAudio  = "audio"
	KindBinary = "binary"
)

// signature is how files of a format begin.
type signature struct {
	start string // at the very beginning, if not empty
	at    int
	bytes string
	kind  string
	media string
}

// signatures returns the formats that are told apart.
func signatures() []signature {
	return []signature{
		{"", 0, "\x89PNG\r\n\x1a\n", KindImage, "image/png"},
		{"", 0, "\xff\xd8\xff", KindImage, "image/jpeg"},
		{"", 0, "GIF8", KindImage, "image/gif"},
		{"RIFF", 8, "WEBP", KindImage, "image/webp"},
		{"", 4, "ftypavif", KindImage, "image/avif"},
		{"", 4, "ftypheic", KindImage, "image/heic"},
		{"", 0, "II*\x00", KindImage, "image/tiff"},
		{"", 0, "MM\x00*", KindImage, "image/tiff"},
		{"RIFF", 8, "WAVE", KindAudio, "audio/wav"},
		{"", 0, "ID3", KindAudio, "audio/mpeg"},
		{"", 0, "OggS", KindAudio, "audio/ogg"},
		{"", 0, "fLaC", KindAudio, "audio/flac"},
		{"", 4, "ftypM4A", KindAudio, "audio/mp4"},
		{"", 0, "%PDF-", KindBinary, "application/pdf"},
		{"", 0, "PK\x03\x04", KindBinary, "application/zip"},
		{"", 0, "\x1f\x8b", KindBinary, "application/gzip"},
	}
}

func (s signature) fits(head []byte) bool {
	return len(head) >= s.at && bytes.HasPrefix(head, []byte(s.start)) && bytes.HasPrefix(head[s.at:], []byte(s.bytes))
}

// KindOf tells what bytes look like that are all in memory: their kind, and their
// format where it was told apart. A store finds the same of an upload.
func KindOf(data []byte) (kind, mediaType string) {
	var text textScan
	text.add(data)
	return kindOf(nil, data, text.binary())
}

// kindOf guesses a content's kind and format from its beginning; all of it,
// when it is there, decides about JSON.
func kindOf(head, all []byte, isBinary bool) (kind, media string) {
	if head == nil {
		head = all
	}
	if isBinary {
		for _, s := range signatures() {
			if s.fits(head) {
				return s.kind, s.media
			}
		}
		return KindBinary, ""
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
	isBinary bool
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
	if t.isBinary {
		return
	}
	if bytes.IndexByte(piece, 0) >= 0 {
		t.isBinary = true
		return
	}
	for len(t.pending) > 0 && len(piece) > 0 && !utf8.FullRune(t.pending) {
		t.pending, piece = append(t.pending, piece[0]), piece[1:]
	}
	if !utf8.FullRune(t.pending) && len(t.pending) > 0 {
		return
	}
	whole := len(piece) - cutOff(piece)
	t.isBinary = !utf8.Valid(t.pending) || !utf8.Valid(piece[:whole])
	t.pending = append(t.pending[:0], piece[whole:]...)
}

// cutOff is the length of the character that the end of a piece cuts off.
func cutOff(piece []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(piece); n++ {
		if end := piece[len(piece)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// binary tells whether the content is no text, now that all of it was seen.
func (t *textScan) binary() bool { return t.isBinary || len(t.pending) > 0 }

func (t *textScan) lines() int64 {
	if t.any && t.last != '\n' {
		return t.feeds + 1
	}
	return t.feeds
}
