// Package charset says in which encoding a text file is, and reads and writes it.
//
// [Detect] looks at the beginning of a file, [Named] takes a name. What is decoded and
// encoded again is the same bytes, byte order mark included: a change of a file
// compares them first, because a wrong name is possible. The encodings of one byte a
// character have nothing that distinguishes them: there Detect guesses, and says so.
package charset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ErrUnknown: there is no encoding of that name.
var ErrUnknown = errors.New("charset: unknown encoding")

// MissingError says that an encoding does not have a character.
type MissingError struct {
	Encoding  string
	Character rune
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the encoding %s has no character %q (%U)", e.Encoding, e.Character, e.Character)
}

// Encoding is how text is written as bytes. The zero value is UTF-8 without a mark. It
// never changes.
type Encoding struct {
	name    string // empty is UTF-8
	mark    string // bytes that stand before the text
	form    encoding.Encoding
	guessed bool
}

// The encodings that files declare.
var (
	utf8Marked = Encoding{name: "utf-8-sig", mark: "\xef\xbb\xbf"}
	utf16LE    = Encoding{name: "utf-16le", form: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}
	utf16BE    = Encoding{name: "utf-16be", form: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
)

// marked is an encoding with a byte order mark.
func (e Encoding) marked(mark string) Encoding {
	e.name, e.mark = "utf-16", mark
	return e
}

// Named returns the encoding of a name: utf-8, utf-8-sig (with a mark), utf-16 (with a
// mark, little-endian), utf-16le, utf-16be, latin-1, or a label of the WHATWG's standard,
// such as windows-1251 or shift_jis. An unknown name is ErrUnknown.
func Named(name string) (Encoding, error) {
	switch label := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-"); label {
	case "utf-8", "utf8", "ascii", "us-ascii":
		return Encoding{}, nil
	case "utf-8-sig", "utf-8-bom":
		return utf8Marked, nil
	case "utf-16", "utf16":
		return utf16LE.marked("\xff\xfe"), nil
	case "utf-16le", "utf-16-le":
		return utf16LE, nil
	case "utf-16be", "utf-16-be":
		return utf16BE, nil
	case "latin-1", "latin1", "iso-8859-1":
		return Encoding{name: "iso-8859-1", form: charmap.ISO8859_1}, nil
	default:
		form, err := htmlindex.Get(strings.ToLower(strings.TrimSpace(name)))
		if err != nil {
			return Encoding{}, fmt.Errorf("%w: %s", ErrUnknown, name)
		}
		canonical, err := htmlindex.Name(form)
		if err != nil || canonical == "replacement" || canonical == "x-user-defined" {
			return Encoding{}, fmt.Errorf("%w: %s", ErrUnknown, name)
		}
		return Encoding{name: canonical, form: form}, nil
	}
}

// Name returns its name, which Named takes.
func (e Encoding) Name() string {
	if e.name == "" {
		return "utf-8"
	}
	return e.name
}

// Plain reports whether the bytes are the text: UTF-8 without a mark.
func (e Encoding) Plain() bool { return e.name == "" }

// Guessed reports whether Detect found nothing in the file that says so for sure.
func (e Encoding) Guessed() bool { return e.guessed }

// Reader gives the text of a file as UTF-8, without its mark. Bytes that are invalid in the
// encoding become U+FFFD.
func (e Encoding) Reader(r io.Reader) io.Reader {
	if e.mark != "" {
		r = &markless{from: r, mark: []byte(e.mark)}
	}
	if e.form == nil {
		return r
	}
	return transform.NewReader(r, e.form.NewDecoder())
}

// markless leaves a mark at the beginning out.
type markless struct {
	from io.Reader
	mark []byte // still to be read
}

func (m *markless) Read(p []byte) (int, error) {
	if len(m.mark) > 0 {
		head := make([]byte, len(m.mark))
		n, err := io.ReadFull(m.from, head)
		if head = head[:n]; bytes.Equal(head, m.mark) {
			head = nil
		}
		m.mark = nil
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		m.from = io.MultiReader(bytes.NewReader(head), m.from)
	}
	return m.from.Read(p)
}

// Decode is Reader for bytes that are there.
func (e Encoding) Decode(content []byte) (string, error) {
	content = bytes.TrimPrefix(content, []byte(e.mark))
	if e.form == nil {
		return strings.ToValidUTF8(string(content), "\uFFFD"), nil
	}
	text, err := e.form.NewDecoder().Bytes(content)
	return string(text), err
}

// Encode returns the bytes of a text, with the mark. A character that the encoding does
// not have is a *MissingError.
func (e Encoding) Encode(text string) ([]byte, error) { return e.encode(text, e.mark) }

// EncodeMore is Encode for text that is put behind other text: it has no mark.
func (e Encoding) EncodeMore(text string) ([]byte, error) { return e.encode(text, "") }

func (e Encoding) encode(text, mark string) ([]byte, error) {
	if e.form == nil {
		return append([]byte(mark), text...), nil
	}
	content, err := e.form.NewEncoder().Bytes([]byte(text))
	if err != nil {
		return nil, &MissingError{Encoding: e.Name(), Character: e.missing(text)}
	}
	return append([]byte(mark), content...), nil
}

// missing is the first character of a text that the encoding does not have.
func (e Encoding) missing(text string) rune {
	for _, r := range text {
		if _, err := e.form.NewEncoder().String(string(r)); err != nil {
			return r
		}
	}
	return utf8.RuneError
}
