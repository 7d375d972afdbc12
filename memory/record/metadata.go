package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// MetadataKind is the middle of a metadata term, which is a path, a kind and a value.
// Kinds are bytes that UTF-8 does not have, so that a path's own values and the paths
// that go on from it never look alike.
type MetadataKind byte

// The kinds. They are part of the index format.
const (
	MetadataText   MetadataKind = 0xf8
	MetadataNumber MetadataKind = 0xf9
	MetadataBool   MetadataKind = 0xfa
	// The same for what stands in an array at the path.
	ElementText   MetadataKind = 0xfb
	elementNumber MetadataKind = 0xfc
	elementBool   MetadataKind = 0xfd
	// MetadataGroup marks the path of an object or array, with one of the two
	// values below or nothing.
	MetadataGroup MetadataKind = 0xfe
)

// ManyElements is the value of a group whose array has more elements than are
// terms; the record itself must be asked.
const ManyElements = "many"

// maxElements bounds the elements of arrays that become terms in one record: a
// list of labels has fewer, a vector of thousands of numbers is not to be
// searched by its numbers.
const maxElements = 64

// MetadataValue is a scalar of the metadata, or a group.
type MetadataValue struct {
	// Path is where it stands, see MetadataPath.
	Path string
	Kind MetadataKind
	// Text is the value: of a number its canonical form.
	Text string
	// InArray: it stands in an array at the path.
	InArray bool
}

// MetadataTerms checks metadata and returns the terms of its scalars and
// groups. Nulls have none. A key that an object holds twice counts with both
// values.
func MetadataTerms(metadata []byte) ([]string, error) {
	if err := checkMetadata(metadata); err != nil || len(metadata) == 0 {
		return nil, err
	}
	var terms []string
	elements := 0
	err := WalkMetadata(metadata, func(v MetadataValue) {
		if v.InArray && v.Kind != MetadataGroup {
			if elements++; elements > maxElements {
				v = MetadataValue{Path: v.Path, Kind: MetadataGroup, Text: ManyElements}
			}
		}
		terms = append(terms, v.Term())
	})
	return terms, err
}

// MergeMetadata is metadata with the listed members taken from changes; members that
// changes lacks are removed. The error is a *invalid.Error if the result is not valid
// metadata.
func MergeMetadata(metadata, changes []byte, members []string) ([]byte, error) {
	after, given := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	for into, text := range map[*map[string]json.RawMessage][]byte{&after: metadata, &given: changes} {
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, invalid.Field(ErrInvalid, "metadata", "is no JSON object")
		}
	}
	for _, name := range members {
		delete(after, name)
		if value, ok := given[name]; ok {
			after[name] = value
		}
	}
	if len(after) == 0 {
		return nil, nil
	}
	var merged bytes.Buffer
	encoder := json.NewEncoder(&merged)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(after); err != nil {
		return nil, invalid.Field(ErrInvalid, "metadata", "is no JSON object")
	}
	out := bytes.TrimSuffix(merged.Bytes(), []byte("\n"))
	return out, checkMetadata(out)
}

func checkMetadata(metadata []byte) error {
	switch {
	case len(metadata) == 0:
		return nil
	case len(metadata) > MaxMetadataBytes:
		return TooLong("metadata", len(metadata), MaxMetadataBytes)
	case !utf8.Valid(metadata):
		return invalid.Field(ErrInvalid, "metadata", "is not UTF-8")
	case !json.Valid(metadata):
		return invalid.Field(ErrInvalid, "metadata", "is not JSON")
	case bytes.TrimLeft(metadata, " \t\r\n")[0] != '{':
		return invalid.Field(ErrInvalid, "metadata", "is not a JSON object")
	}
	return nil
}

// Term returns the term of a value. A long value is cut and ends in its
// digest behind byte ff, so that the beginning can still be compared.
func (v MetadataValue) Term() string {
	kind := v.Kind
	if v.InArray && kind != MetadataGroup {
		kind += ElementText - MetadataText // the same in an array
	}
	const digestBytes = 16
	term := v.Path + string([]byte{byte(kind)}) + v.Text
	if len(term) < segment.MaxTermBytes {
		return term
	}
	end := segment.MaxTermBytes - 1 - 1 - digestBytes
	for !utf8.RuneStart(term[end]) && end > len(v.Path)+1 {
		end--
	}
	sum := sha256.Sum256([]byte(v.Text))
	return term[:end] + cutMark + string(sum[:digestBytes])
}

// cutMark stands before the digest of a cut value. UTF-8 does not have it.
const cutMark = "\xff"

// WalkMetadata yields the values of metadata that checkMetadata passed.
func WalkMetadata(metadata []byte, visit func(MetadataValue)) error {
	w := metadataWalk{json: metadata, visit: visit}
	return w.value("", false, 0)
}

// metadataWalk reads JSON that is known to be valid. A filter may have to read
// the metadata of many records, so it does not check them all over again.
type metadataWalk struct {
	json  []byte
	at    int
	visit func(MetadataValue)
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
			v.Path, v.InArray = path, inArray
			w.visit(v)
		}
		return nil
	}
	if depth == MaxMetadataDepth {
		return invalid.Field(ErrInvalid, "metadata", "nests deeper than %d levels", MaxMetadataDepth)
	}
	if depth > 0 && !inArray {
		w.visit(MetadataValue{Path: path, Kind: MetadataGroup})
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
			member = MetadataPath(path, w.text())
		}
		if err := w.value(member, inArray, depth); err != nil {
			return err
		}
	}
}

// scalar reads a text, number or bool that begins so; false for null.
func (w *metadataWalk) scalar(first byte) (v MetadataValue, ok bool) {
	if first == '"' {
		return MetadataValue{Kind: MetadataText, Text: w.text()}, true
	}
	rest := w.json[w.at:]
	end := bytes.IndexFunc(rest, endsWord)
	if end < 0 {
		end = len(rest)
	}
	w.at += max(end, 1)
	switch word := string(rest[:end]); word {
	case "null", "":
		return MetadataValue{}, false
	case "true", "false":
		return MetadataValue{Kind: MetadataBool, Text: word}, true
	default:
		return MetadataValue{Kind: MetadataNumber, Text: CanonicalNumber(word)}, true
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

// MetadataPath returns the path of a member. A long one becomes a digest, so
// that deep objects with long names stay cheap.
func MetadataPath(parent, name string) string {
	const longest = 64
	path := kv.AppendEscaped([]byte(parent), name)
	if len(path) <= longest {
		return string(path)
	}
	// Names are escaped, so 00 02 can't begin a path that was written out.
	sum := sha256.Sum256(path)
	return "\x00\x02" + string(sum[:16])
}

// CutValue returns what a term keeps of a value, and whether that is all.
func CutValue(rest string) (kept string, whole bool) {
	kept, _, cut := strings.Cut(rest, cutMark)
	return kept, !cut
}
