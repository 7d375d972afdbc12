package compress

import (
	"encoding/base64"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// stub stands for what is no text.
func (j *job) stub() string {
	size := len(j.Content)
	if _, bytes, ok := dataURL(j.Content); ok {
		size = bytes
	}
	return "[" + j.kind + " " + step.HumanSize(int64(size)) + " → " + j.RefPath + "]"
}

// contentKind is what a content is.
func contentKind(content string, strategy Strategy) string {
	if media, _, ok := dataURL(content); ok {
		return mediaKind(media)
	}
	kind, _ := blob.KindOf([]byte(content))
	if kind == blob.KindText && strategy == Exec {
		return blob.KindLog
	}
	return kind
}

// maxMediaBytes bounds the media type of a data URL.
const maxMediaBytes = 128

// dataURL recognizes bytes in text form, as `data:image/png;base64,…`, and tells
// their media type and how many there are.
func dataURL(text string) (media string, size int, ok bool) {
	rest, ok := strings.CutPrefix(text, "data:")
	if !ok {
		return "", 0, false
	}
	head, _, ok := strings.Cut(rest[:min(len(rest), maxMediaBytes)], ";base64,")
	if !ok || strings.HasPrefix(head, "text/") || strings.ContainsAny(head, " \n") {
		return "", 0, false
	}
	data := strings.TrimSpace(rest[len(head)+len(";base64,"):])
	if !onlyBase64(data) {
		return "", 0, false
	}
	return head, base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "="))), true
}

func onlyBase64(data string) bool {
	for i := range len(data) {
		switch c := data[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '+', c == '/', c == '-', c == '_', c == '=', c == '\n', c == '\r':
		default:
			return false
		}
	}
	return true
}

// mediaKind is the kind of a media type.
func mediaKind(media string) string {
	switch {
	case strings.HasPrefix(media, "image/"):
		return blob.KindImage
	case strings.HasPrefix(media, "audio/"):
		return blob.KindAudio
	}
	return blob.KindBinary
}
