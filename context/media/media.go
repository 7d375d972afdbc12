package media

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // reads the size of an image
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"strings"
)

// The kinds of media.
const (
	Image  = "image"
	Audio  = "audio"
	Binary = "binary"
)

// Kind is the sort of a media type: Image, Audio or Binary.
func Kind(mediaType string) string {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return Image
	case strings.HasPrefix(mediaType, "audio/"):
		return Audio
	}
	return Binary
}

// IsType reports whether a text has the form of a media type, such as "image/png".
func IsType(text string) bool {
	kind, format, ok := strings.Cut(text, "/")
	return ok && len(text) <= maxTypeBytes && isTypeName(kind) && isTypeName(format)
}

func isTypeName(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		if (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') && strings.IndexByte("!#$&-^_.+", name[i]) < 0 {
			return false
		}
	}
	return name != ""
}

// signature is how files of a format begin.
type signature struct {
	start string // at the very beginning, if not empty
	at    int
	bytes string
	media string
}

// signatures returns the formats that are recognized.
func signatures() []signature {
	return []signature{
		{"", 0, "\x89PNG\r\n\x1a\n", "image/png"},
		{"", 0, "\xff\xd8\xff", "image/jpeg"},
		{"", 0, "GIF8", "image/gif"},
		{"RIFF", 8, "WEBP", "image/webp"},
		{"", 4, "ftypavif", "image/avif"},
		{"", 4, "ftypheic", "image/heic"},
		{"", 0, "II*\x00", "image/tiff"},
		{"", 0, "MM\x00*", "image/tiff"},
		{"RIFF", 8, "WAVE", "audio/wav"},
		{"", 0, "ID3", "audio/mpeg"},
		{"", 0, "OggS", "audio/ogg"},
		{"", 0, "fLaC", "audio/flac"},
		{"", 4, "ftypM4A", "audio/mp4"},
		{"", 0, "%PDF-", "application/pdf"},
		{"", 0, "PK\x03\x04", "application/zip"},
		{"", 0, "\x1f\x8b", "application/gzip"},
	}
}

// TypeOf returns the format of binary bytes, by how they begin; empty if it is unknown.
func TypeOf(head []byte) string {
	for _, s := range signatures() {
		if len(head) >= s.at && bytes.HasPrefix(head, []byte(s.start)) && bytes.HasPrefix(head[s.at:], []byte(s.bytes)) {
			return s.media
		}
	}
	return ""
}

// Extension is the ending of a file's name for a media type, such as "png"; "bin"
// for one that has none here.
func Extension(mediaType string) string {
	switch mediaType {
	case "image/png", "image/gif", "image/webp", "image/avif", "image/heic", "image/tiff", "audio/wav", "audio/ogg",
		"audio/flac", "application/pdf", "application/zip":
		_, ending, _ := strings.Cut(mediaType, "/")
		return ending
	case "image/jpeg":
		return "jpg"
	case "image/svg+xml":
		return "svg"
	case "audio/mpeg":
		return "mp3"
	case "audio/mp4":
		return "m4a"
	case "application/gzip":
		return "gz"
	}
	return "bin"
}

// HeaderBytes is how much of an image's beginning ImageSize looks at. A photograph
// may have a thumbnail of 64 KiB before its size.
const HeaderBytes = 96 << 10

// ImageSize reads the size of an image in pixels from the beginning of its bytes;
// zeros when they don't say it.
func ImageSize(head []byte) (width, height int) {
	head = head[:min(len(head), HeaderBytes)]
	if config, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
		return config.Width, config.Height
	}
	return webpSize(head)
}

// webpSize reads the size of a WebP image in any of its three forms.
func webpSize(raw []byte) (width, height int) {
	const formBytes = 30 // up to the size in each of them
	if len(raw) < formBytes || string(raw[:4]) != "RIFF" || string(raw[8:12]) != "WEBP" {
		return 0, 0
	}
	switch string(raw[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(raw[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(raw[28:]) & 0x3fff)
	case "VP8L":
		sizes := binary.LittleEndian.Uint32(raw[21:])
		return int(sizes&0x3fff) + 1, int(sizes>>14&0x3fff) + 1
	case "VP8X":
		return int(uint24(raw[24:])) + 1, int(uint24(raw[27:])) + 1
	}
	return 0, 0
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
