package mention

import (
	"encoding/binary"
	"encoding/hex"
	"path"
	"strings"
)

const (
	// MinRefDigits is how many digits of a ref name a blob at least.
	MinRefDigits = 12
	// OutputsFolder is a folder whose paths are names.
	OutputsFolder = "outputs/"
	// PersistentFolder is another one, with two folders below it.
	PersistentFolder = "persistent/"
	// ArchiveFolder is another one, with a folder below it.
	ArchiveFolder = "archive/"
	// ResultsFolder has paths that begin with digits of a ref.
	ResultsFolder = "storage/tool_results/"
	// readPrefix and fileAlias begin the same names.
	readPrefix = "read_"
	fileAlias  = "file_"
	// maxPathBytes bounds what a key has of a path.
	maxPathBytes = 48
)

// Sorts of names: the first byte of each (memory/FORMAT.md).
const (
	sortAny  = "*"
	sortRef  = "h"
	sortPath = "p"
	sortStep = "s"
)

// Name is a name as it stands in keys. No name is the beginning of another one.
type Name string

// Any is the name of every blob: a text with too many names has it.
const Any = Name(sortAny)

// OfRef returns the name that the first digits of a ref are, and false for anything
// else.
func OfRef(digits string) (Name, bool) {
	if len(digits) < MinRefDigits {
		return "", false
	}
	start, err := hex.DecodeString(digits[:MinRefDigits])
	return Name(sortRef + string(start)), err == nil
}

// OfStep returns the name of what a step made.
func OfStep(number uint64) Name {
	return Name(binary.BigEndian.AppendUint64([]byte(sortStep), number))
}

// ofPath returns the name of the last part of a path, or of a text that begins with
// it.
func ofPath(part string) Name {
	if rest, ok := strings.CutPrefix(part, fileAlias); ok {
		part = readPrefix + rest
	}
	return Name(sortPath + part[:min(len(part), maxPathBytes)] + "\x00")
}

// Pattern matches the names that begin with it.
type Pattern string

// Patterns returns what finds every name of a blob: of its ref, of the step that made
// it, 0 for none, of its paths, and Any.
func Patterns(ref string, step uint64, paths ...string) []Pattern {
	all := []Pattern{Pattern(Any)}
	if name, ok := OfRef(ref); ok {
		all = append(all, Pattern(name))
	}
	if step > 0 {
		all = append(all, Pattern(OfStep(step)))
	}
	for _, p := range paths {
		part := path.Base(p)
		if strings.HasPrefix(p, ResultsFolder) {
			if name, ok := OfRef(part); ok {
				all = append(all, Pattern(name))
			}
			continue
		}
		// A text may go on behind the path.
		all = append(all, Pattern(strings.TrimSuffix(string(ofPath(part)), "\x00")))
	}
	return all
}

// cutName splits what follows the tag in a mention's key into the name and who has
// it; false for what is no mention.
func cutName(rest string) (name Name, by string, ok bool) {
	if rest == "" {
		return "", "", false
	}
	size := 0
	switch rest[:1] {
	case sortAny:
		size = 1
	case sortRef:
		size = 1 + MinRefDigits/2
	case sortStep:
		size = 1 + 8
	case sortPath:
		size = strings.IndexByte(rest, 0) + 1
	}
	if size == 0 || len(rest) < size {
		return "", "", false
	}
	return Name(rest[:size]), rest[size:], true
}
