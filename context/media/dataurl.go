package media

import (
	"encoding/base64"
	"fmt"
	"strings"
)

const (
	// maxTypeBytes bounds a media type.
	maxTypeBytes = 128
	// base64Mark stands between the media type of a data URL and its bytes.
	base64Mark = ";base64,"
)

// DataURL is bytes written as text: "data:image/png;base64,…".
type DataURL struct {
	// Type is the media type, such as "image/png".
	Type string
	// Payload is the base64 text.
	Payload string
}

// ParseDataURL recognizes a text that is nothing but a data URL of bytes. One that
// holds text is none.
func ParseDataURL(text string) (DataURL, bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "data:")
	if !ok {
		return DataURL{}, false
	}
	head, _, ok := strings.Cut(rest[:min(len(rest), maxTypeBytes)], base64Mark)
	mediaType, _, _ := strings.Cut(head, ";")
	if !ok || !IsType(mediaType) || strings.HasPrefix(mediaType, "text/") || strings.ContainsFunc(head, func(r rune) bool { return r <= ' ' }) {
		return DataURL{}, false
	}
	payload := strings.TrimSpace(rest[len(head)+len(base64Mark):])
	return DataURL{Type: mediaType, Payload: payload}, onlyBase64(payload)
}

// Info describes the bytes of the data URL.
func (d DataURL) Info() Info { return InfoOfBase64(d.Type, d.Payload) }

// Info is what can be said about bytes that are not shown.
type Info struct {
	// Type is the media type; empty when it is not known.
	Type string
	// Size is the number of bytes.
	Size int64
	// Width and Height are an image's, in pixels; zero when not known.
	Width, Height int
}

// InfoOf describes bytes of a size by how they begin. A media type that is given
// wins over the one that they look like.
func InfoOf(mediaType string, head []byte, size int64) Info {
	if !IsType(mediaType) {
		mediaType = TypeOf(head)
	}
	i := Info{Type: mediaType, Size: size}
	if i.Kind() == Image {
		i.Width, i.Height = ImageSize(head)
	}
	return i
}

// InfoOfBase64 describes bytes that are written as base64.
func InfoOfBase64(mediaType, payload string) Info {
	size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(payload, "=")))
	return InfoOf(mediaType, decodedHead(payload), int64(size))
}

// Kind is the sort of bytes: Image, Audio or Binary.
func (i Info) Kind() string { return Kind(i.Type) }

// Words is the description, such as "image image/png 640x480": the kind, the type
// where it is known, and an image's size, or that of other bytes in bytes.
func (i Info) Words() string {
	words := i.Kind()
	if i.Type != "" {
		words += " " + i.Type
	}
	if i.Width > 0 && i.Height > 0 {
		return fmt.Sprintf("%s %dx%d", words, i.Width, i.Height)
	}
	return fmt.Sprintf("%s %d bytes", words, i.Size)
}

// decodedHead is the beginning of bytes that are written as base64; nothing when
// it is none.
func decodedHead(payload string) []byte {
	payload = payload[:min(len(payload), base64.StdEncoding.EncodedLen(HeaderBytes))]
	head, err := Decode(payload[:len(payload)/4*4])
	if err != nil {
		return nil
	}
	return head
}

// Decode reads base64 in either alphabet, with or without padding and line ends.
func Decode(payload string) ([]byte, error) {
	payload = strings.TrimRight(payload, "=\r\n \t")
	if strings.ContainsAny(payload, "-_") {
		payload = strings.NewReplacer("-", "+", "_", "/").Replace(payload)
	}
	return base64.RawStdEncoding.DecodeString(payload)
}

// isBase64 are the bytes of both alphabets of base64, and the padding.
var isBase64 = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		is[c] = true
	}
	return is
}()

// onlyBase64 reports whether a text is in the alphabets of base64, but for line ends.
func onlyBase64(data string) bool {
	for i := range len(data) {
		if c := data[i]; !isBase64[c] && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}
