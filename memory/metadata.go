package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// A metadata term is a path, a kind and a value. Kinds are bytes that UTF-8
// does not have, so that a path's own values and the paths that go on from it
// never look alike.
type metadataKind byte

// The kinds. They are part of the index format.
const (
	metadataText   metadataKind = 0xf8
	metadataNumber metadataKind = 0xf9
	metadataBool   metadataKind = 0xfa
	// The same for what stands in an array at the path.
	elementText   metadataKind = 0xfb
	elementNumber metadataKind = 0xfc
	elementBool   metadataKind = 0xfd
	// metadataGroup marks the path of an object or array, with one of the two
	// values below or none.
	metadataGroup metadataKind = 0xfe
)

// manyElements is the value of a group whose array has more elements than are
// terms; the record itself must be asked.
const manyElements = "many"

// maxElements bounds the elements of arrays that become terms in one record: a
// list of labels has fewer, a vector of thousands of numbers is not to be
// searched by its numbers.
const maxElements = 64

// element is the kind of the same value inside an array.
func (k metadataKind) element() metadataKind { return k + (elementText - metadataText) }

// metadataValue is a scalar of the metadata, or a group.
type metadataValue struct {
	path    string
	kind    metadataKind
	text    string
	inArray bool
}

// metadataValues checks metadata and returns the terms of its scalars and
// groups. Nulls have none. A key that an object holds twice counts with both
// values.
func metadataValues(metadata []byte) ([]string, error) {
	if err := checkMetadata(metadata); err != nil || len(metadata) == 0 {
		return nil, err
	}
	var terms []string
	elements := 0
	err := walkMetadata(metadata, func(v metadataValue) {
		if v.inArray && v.kind != metadataGroup {
			if elements++; elements > maxElements {
				v = metadataValue{path: v.path, kind: metadataGroup, text: manyElements}
			}
		}
		terms = append(terms, v.term())
	})
	return terms, err
}

func checkMetadata(metadata []byte) error {
	switch {
	case len(metadata) == 0:
		return nil
	case len(metadata) > MaxMetadataBytes:
		return tooLong("metadata", len(metadata), MaxMetadataBytes)
	case !utf8.Valid(metadata):
		return invalid.Field(ErrInvalid, "metadata", "is not UTF-8")
	case !json.Valid(metadata):
		return invalid.Field(ErrInvalid, "metadata", "is not JSON")
	case bytes.TrimLeft(metadata, " \t\r\n")[0] != '{':
		return invalid.Field(ErrInvalid, "metadata", "is not a JSON object")
	}
	return nil
}

// term returns the term of a value. A long value is cut and ends in its
// digest behind byte ff, so that the beginning can still be compared.
func (v metadataValue) term() string {
	kind := v.kind
	if v.inArray && kind != metadataGroup {
		kind = kind.element()
	}
	const digestBytes = 16
	term := v.path + string([]byte{byte(kind)}) + v.text
	if len(term) < segment.MaxTermBytes {
		return term
	}
	end := segment.MaxTermBytes - 1 - 1 - digestBytes
	for !utf8.RuneStart(term[end]) && end > len(v.path)+1 {
		end--
	}
	sum := sha256.Sum256([]byte(v.text))
	return term[:end] + cutMark + string(sum[:digestBytes])
}

// cutMark stands before the digest of a cut value. UTF-8 does not have it.
const cutMark = "\xff"

// walkMetadata yields the values of metadata that checkMetadata passed.
func walkMetadata(metadata []byte, visit func(metadataValue)) error {
	w := metadataWalk{json: metadata, visit: visit}
	return w.value("", false, 0)
}

// metadataWalk reads JSON that is known to be valid. A filter may have to read
// the metadata of many records, so it does not check them all over again.
type metadataWalk struct {
	json  []byte
	at    int
	visit func(metadataValue)
}

// next returns the next character that means something, zero at the end.
func (w *metadataWalk) next() byte {
	for ; w.at < len(w.json); w.at++ {
		switch c := w.json[w.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// value reads a value at path.
func (w *metadataWalk) value(path string, inArray bool, depth int) error {
	opening := w.next()
	if opening != '{' && opening != '[' {
		if v, ok := w.scalar(opening); ok {
			v.path, v.inArray = path, inArray
			w.visit(v)
		}
		return nil
	}
	if depth == MaxMetadataDepth {
		return invalid.Field(ErrInvalid, "metadata", "%s", "nests deeper than "+strconv.Itoa(MaxMetadataDepth)+" levels")
	}
	if depth > 0 && !inArray {
		w.visit(metadataValue{path: path, kind: metadataGroup})
	}
	w.at++
	return w.members(path, inArray || opening == '[', opening == '{', depth+1)
}

// members reads an object or array behind its opening bracket. The elements of
// an array have its path.
func (w *metadataWalk) members(path string, inArray, object bool, depth int) error {
	for {
		switch w.next() {
		case '}', ']', 0:
			w.at++
			return nil
		}
		member := path
		if object {
			member = metadataPath(path, w.text())
		}
		if err := w.value(member, inArray, depth); err != nil {
			return err
		}
	}
}

// scalar reads a text, number or bool that begins so; false for null.
func (w *metadataWalk) scalar(first byte) (v metadataValue, ok bool) {
	if first == '"' {
		return metadataValue{kind: metadataText, text: w.text()}, true
	}
	rest := w.json[w.at:]
	end := bytes.IndexFunc(rest, endsWord)
	if end < 0 {
		end = len(rest)
	}
	w.at += max(end, 1)
	switch word := string(rest[:end]); word {
	case "null", "":
		return metadataValue{}, false
	case "true", "false":
		return metadataValue{kind: metadataBool, text: word}, true
	default:
		return metadataValue{kind: metadataNumber, text: canonicalNumber(word)}, true
	}
}

func endsWord(r rune) bool {
	switch r {
	case ' ', '\t', '\r', '\n', ',', ']', '}':
		return true
	}
	return false
}

// text reads a string that begins here.
func (w *metadataWalk) text() string {
	rest := w.json[w.at:]
	end, escaped := 1, false
	for ; end < len(rest) && rest[end] != '"'; end++ {
		if rest[end] == '\\' {
			escaped = true
			end++
		}
	}
	quoted := rest[:min(end+1, len(rest))]
	w.at += len(quoted)
	if !escaped {
		return string(bytes.Trim(quoted, `"`))
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return text
}

// metadataPath returns the path of a member. A long one becomes a digest, so
// that deep objects with long names stay cheap.
func metadataPath(parent, name string) string {
	const longest = 64
	path := kv.AppendEscaped([]byte(parent), name)
	if len(path) <= longest {
		return string(path)
	}
	// Names are escaped, so 00 02 can't begin a path that was written out.
	sum := sha256.Sum256(path)
	return "\x00\x02" + string(sum[:16])
}

// pathOf returns the path of names, outermost first.
func pathOf(names []string) (path string) {
	for _, name := range names {
		path = metadataPath(path, name)
	}
	return path
}

// cutValue returns what a term keeps of a value, and whether that is all.
func cutValue(rest string) (kept string, whole bool) {
	kept, _, cut := strings.Cut(rest, cutMark)
	return kept, !cut
}
