package mention

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// MaxNames bounds the names of one value; one with more has the name Any.
	MaxNames = 4096
	// maxDepth bounds the messages within messages that are looked into.
	maxDepth = 4
	// stepPrefix begins every step id.
	stepPrefix = "step_"
	// maxStepDigits keeps a number within 64 bits.
	maxStepDigits = 19
	// maxWordLetters bounds the letters before a ref that may be the end of a word.
	maxWordLetters = 8
	// maxFolderBytes bounds a folder in a path, with every byte of it escaped.
	maxFolderBytes = 6 * 256
)

// In returns the names in a stored message, each once, in order: those in each of its
// fields that is a text, and in the messages that it holds.
func In(message []byte) []Name {
	var f finder
	f.message(message, maxDepth)
	return f.names()
}

// InText returns the names in a text.
func InText(text []byte) []Name {
	var f finder
	f.text(text)
	return f.names()
}

type finder struct {
	found []Name
	full  bool
}

func (f *finder) names() []Name {
	f.compact()
	if f.full {
		return []Name{Any}
	}
	return f.found
}

func (f *finder) compact() {
	slices.Sort(f.found)
	f.found = slices.Compact(f.found)
	f.full = f.full || len(f.found) > MaxNames
}

func (f *finder) add(name Name) {
	if f.found = append(f.found, name); len(f.found) >= 4*MaxNames {
		f.compact()
	}
}

func (f *finder) message(message []byte, depth int) {
	for field, err := range wire.Fields(message) {
		if err != nil || f.full {
			return
		}
		f.text(field.Bytes)
		// A text can also parse as a message, so both readings are searched.
		if depth > 1 && isMessage(field.Bytes) {
			f.message(field.Bytes, depth-1)
		}
	}
}

// isMessage reports whether a field can be a message with a field that may be a text.
func isMessage(b []byte) bool {
	texts := false
	for field, err := range wire.Fields(b) {
		if err != nil {
			return false
		}
		texts = texts || len(field.Bytes) > 0
	}
	return texts
}

func (f *finder) text(text []byte) {
	if len(text) <= len(stepPrefix) { // the shortest name takes one byte more
		return
	}
	f.refs(text)
	f.steps(text)
	f.paths(text)
}

// hexDigits has true for each hexadecimal digit.
var hexDigits = func() (is [256]bool) {
	for _, b := range []byte("0123456789abcdefABCDEF") {
		is[b] = true
	}
	return is
}()

func isLetter(b byte) bool { return b > '9' }

// refs looks for runs of MinRefDigits hexadecimal digits: in each piece of a text that
// is as long, the last byte decides whether to look closer.
func (f *finder) refs(text []byte) {
	for i := MinRefDigits - 1; i < len(text) && !f.full; {
		if !hexDigits[text[i]] {
			i += MinRefDigits
			continue
		}
		start, end := i, i+1
		for start > 0 && hexDigits[text[start-1]] {
			start--
		}
		for end < len(text) && hexDigits[text[end]] {
			end++
		}
		f.run(text, start, end)
		i = end + MinRefDigits
	}
}

// run adds the names in a run of digits: at its beginning, and behind what may not
// belong to the ref, the last letters of a word or the digits of an escape.
func (f *finder) run(text []byte, start, end int) {
	f.ref(text[start:end])
	for i := start; i < start+maxWordLetters && i < end && isLetter(text[i]); i++ {
		f.ref(text[i+1 : end])
	}
	if start == 0 {
		return
	}
	switch text[start-1] {
	case '%', 'x':
		f.ref(text[min(start+2, end):end])
	case 'u':
		f.ref(text[min(start+4, end):end])
	}
}

func (f *finder) ref(digits []byte) {
	if len(digits) < MinRefDigits {
		return
	}
	name := [1 + MinRefDigits/2]byte{sortRef[0]}
	if _, err := hex.Decode(name[1:], digits[:MinRefDigits]); err == nil {
		f.add(Name(name[:]))
	}
}

func (f *finder) steps(text []byte) {
	for !f.full {
		at := bytes.Index(text, []byte(stepPrefix))
		if at < 0 {
			return
		}
		text = text[at+len(stepPrefix):]
		digits := 0
		for digits < min(len(text), maxStepDigits) && '0' <= text[digits] && text[digits] <= '9' {
			digits++
		}
		if number, err := strconv.ParseUint(string(text[:digits]), 10, 64); err == nil {
			f.add(OfStep(number))
		}
	}
}

// paths looks behind each slash that ends the name of a folder.
func (f *finder) paths(text []byte) {
	for at := 0; !f.full; at++ {
		slash := bytes.IndexByte(text[at:], '/')
		if slash < 0 {
			return
		}
		at += slash
		end := at
		for end > max(0, at-maxSlashEscapes) && text[end-1] == '\\' {
			end--
		}
		for below, folder := range folders {
			if bytes.HasSuffix(text[:end], folder) {
				f.path(text[at+1:], below)
			}
		}
	}
}

// folders are the names of the folders, each with one folder more below it.
var folders = [][]byte{
	[]byte(strings.TrimSuffix(OutputsFolder, "/")), []byte(strings.TrimSuffix(ArchiveFolder, "/")), []byte(strings.TrimSuffix(PersistentFolder, "/")),
}

// maxSlashEscapes bounds the escapes of a slash.
const maxSlashEscapes = 8

// path adds the name that follows so many folders.
func (f *finder) path(text []byte, folders int) {
	for ; folders > 0; folders-- {
		at := bytes.IndexByte(text[:min(len(text), maxFolderBytes)], '/')
		if at < 0 {
			return
		}
		text = text[at+1:]
	}
	if part := unescape(text); len(part) > 0 {
		f.add(ofPath(string(part)))
	}
}

// unescape returns the beginning of a text, up to what can't stand in the last part of
// a path, with the escapes of JSON undone.
func unescape(text []byte) []byte {
	part := make([]byte, 0, maxPathBytes+utf8.UTFMax)
	for len(text) > 0 && len(part) < maxPathBytes+len(readPrefix) {
		b := text[0]
		if b < ' ' || b == '"' || b == '/' || b == 0x7f {
			break
		}
		if b != '\\' {
			part, text = append(part, b), text[1:]
			continue
		}
		r, size := escaped(text)
		if size == 0 {
			break
		}
		part, text = utf8.AppendRune(part, r), text[size:]
	}
	return part
}

// escaped reads \uXXXX, or two of them that are one character; size 0 for anything
// else.
func escaped(text []byte) (r rune, size int) {
	const length = len(`\u0000`)
	unit := func(text []byte) (rune, bool) {
		if len(text) < length || text[1] != 'u' || text[0] != '\\' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(text[2:length]), 16, 16)
		return rune(n), err == nil
	}
	first, ok := unit(text)
	if !ok || first < ' ' {
		return 0, 0
	}
	if second, ok := unit(text[length:]); ok && utf16.IsSurrogate(first) {
		return utf16.DecodeRune(first, second), 2 * length
	}
	return first, length
}
