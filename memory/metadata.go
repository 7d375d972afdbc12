package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// metadataValues checks metadata and returns the terms of its scalars: path,
// type and value in one. Values inside arrays and nulls have no term. A key
// that an object holds twice counts with both values.
func metadataValues(metadata []byte) ([]string, error) {
	switch {
	case len(metadata) == 0:
		return nil, nil
	case len(metadata) > MaxMetadataBytes:
		return nil, tooLong("metadata", len(metadata), MaxMetadataBytes)
	case !utf8.Valid(metadata):
		return nil, &InvalidError{"metadata", "is not UTF-8"}
	case !json.Valid(metadata):
		return nil, &InvalidError{"metadata", "is not JSON"}
	case bytes.TrimLeft(metadata, " \t\r\n")[0] != '{':
		return nil, &InvalidError{"metadata", "is not a JSON object"}
	}
	w := metadataWalk{decoder: json.NewDecoder(bytes.NewReader(metadata))}
	w.decoder.UseNumber()
	if err := w.value("", false, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return w.terms, nil
}

// metadataWalk reads valid JSON.
type metadataWalk struct {
	decoder *json.Decoder
	terms   []string
}

// value reads a value at path. Inside an array nothing becomes a term.
func (w *metadataWalk) value(path string, inArray bool, depth int) error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	if delimiter, ok := token.(json.Delim); ok {
		if depth == MaxMetadataDepth {
			return &InvalidError{"metadata", "nests deeper than " + strconv.Itoa(MaxMetadataDepth) + " levels"}
		}
		return w.members(path, inArray || delimiter == '[', delimiter == '{', depth+1)
	}
	if term, ok := metadataTerm(path, token); ok && !inArray {
		w.terms = append(w.terms, term)
	}
	return nil
}

// members reads an object or array behind its opening bracket.
func (w *metadataWalk) members(path string, inArray, object bool, depth int) error {
	for w.decoder.More() {
		member := path
		if object {
			name, err := w.decoder.Token()
			if err != nil {
				return err
			}
			key, _ := name.(string)
			member = metadataPath(path, key)
		}
		if err := w.value(member, inArray, depth); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
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

// metadataTerm returns the term of a scalar: string, json.Number or bool.
func metadataTerm(path string, scalar any) (string, bool) {
	switch v := scalar.(type) {
	case string:
		return path + "s" + v, true
	case json.Number:
		return path + "n" + canonicalNumber(v.String()), true
	case bool:
		return path + "b" + strconv.FormatBool(v), true
	}
	return "", false
}

// canonicalNumber returns one form for all spellings of a decimal number: 1,
// 1.0 and 10e-1 are 1e0. Digits are never lost.
func canonicalNumber(text string) string {
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	exponent := new(big.Int)
	if exponentText != "" {
		exponent.SetString(strings.TrimPrefix(exponentText, "+"), 10)
	}
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(significant)-len(fraction))))
	return sign + significant + "e" + exponent.String()
}
